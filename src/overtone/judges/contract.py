"""The contract of a verdict: the answers that a judge may give, derived from a rubric's dimensions.

The contract writes the format instruction that the judge receives, and it is the only code that reads the answer. An
answer that does not match is unread, with the reason; its meaning is never guessed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Struct

from overtone.judges.rubric import Dimension

MAX_REASON = 2000  # characters of a reason that are kept
_THINKING = re.compile(r"\A\s*<think>.*?</think>", re.S)
_STRING = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"(\s*:)?', re.S)
_FENCE = re.compile(r"\A```(?:json)?[ \t]*\n(.*)\n[ \t]*```\Z", re.S | re.I)


class Unread(Exception):
    """An answer that the contract does not allow. The message says why."""


class Verdict(Struct, frozen=True):
    """A valid answer."""

    values: dict[str, int | str]
    reasons: dict[str, str]


class Contract:
    """The allowed answers: one JSON object with a reason and an answer for each dimension."""

    def __init__(self, dimensions: Sequence[Dimension]) -> None:
        self.dimensions = tuple(dimensions)
        fields: list[tuple[str, Any]] = []
        for d in self.dimensions:
            fields += [(f"{d.key}_reason", str), (d.key, _type(d))]
        self.record = msgspec.defstruct("Answer", fields, forbid_unknown_fields=True)

    @property
    def instruction(self) -> str:
        """The format instruction, which ends every request."""
        lines = []
        for d in self.dimensions:
            lines.append(f'  "{d.key}_reason": "one short sentence on why"')
            lines.append(f'  "{d.key}": {_menu(d)}')
        return "Answer with one JSON object and nothing else:\n{\n" + ",\n".join(lines) + "\n}"

    @property
    def schema(self) -> dict[str, Any]:
        """The contract as a JSON schema, for endpoints that can enforce one."""
        fields: dict[str, Any] = {}
        for d in self.dimensions:
            fields[f"{d.key}_reason"] = {"type": "string"}
            fields[d.key] = {"type": "integer" if d.scale else "string", "enum": list(d.menu)}
        return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}

    def read(self, text: str) -> Verdict:
        """Return the verdict of an answer. Raises Unread.

        A model's thinking before the answer and a code fence around it are ignored; other text makes it unread.
        """
        body = _THINKING.sub("", text, count=1).strip()
        if fenced := _FENCE.match(body):
            body = fenced[1].strip()
        if not body:
            raise Unread("the answer is empty")
        if not body.startswith("{"):
            raise Unread(f"the answer does not begin with {{: {body[:80]!r}")
        try:
            answer = msgspec.json.decode(body, type=self.record)
        except msgspec.ValidationError as error:
            raise Unread(_plain(str(error), self.dimensions)) from None
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise Unread(f"not one JSON object: {str(error)[:200]}") from None
        _refuse_repeated_keys(body)
        values = {d.key: getattr(answer, d.key) for d in self.dimensions}
        reasons = {d.key: getattr(answer, f"{d.key}_reason")[:MAX_REASON] for d in self.dimensions}
        return Verdict(values, reasons)


def _type(d: Dimension) -> Any:
    if d.scale:
        return Annotated[int, msgspec.Meta(ge=d.scale[0], le=d.scale[1])]
    return Literal[d.choices]


def _menu(d: Dimension) -> str:
    if d.scale:
        return f"a whole number from {d.scale[0]} to {d.scale[1]}"
    return " or ".join(f'"{choice}"' for choice in d.choices)


def _refuse_repeated_keys(body: str) -> None:
    """Raise Unread if a key is repeated: a decoder takes the last value, but the judge may have meant an earlier one.

    A valid answer is flat, so every string before a colon is a key. A key may contain escapes.
    """
    keys = [match[1] for match in _STRING.finditer(body) if match[2]]
    spelt = [msgspec.json.decode(f'"{key}"', type=str) if "\\" in key else key for key in keys]
    if repeated := next((key for key, times in Counter(spelt).items() if times > 1), None):
        raise Unread(f"{repeated!r} is answered twice")


def _plain(message: str, dimensions: Sequence[Dimension]) -> str:
    """Reword a validation error to name the dimension and its allowed answers."""
    for d in dimensions:
        if message.endswith(f"`$.{d.key}`"):
            return f"{d.key} is not on the menu ({_menu(d)}): {message}"
    return message
