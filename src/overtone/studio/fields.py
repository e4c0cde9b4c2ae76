"""The controls that a design can put on its page, as plain data, and how an answer to each is checked.

The page draws a control from the same record, so a new design needs no script.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from overtone.errors import DataError
from overtone.judges.rubric import Dimension

Value = int | float | str | list[str]
Stage = Literal["voice", "words"]  # questions about the voice come before the words are shown
MAX_TEXT = 4000  # characters of a text answer


class Field(Struct, frozen=True, kw_only=True):
    """One question of a page. Its answers become labels of the dimension `key`."""

    key: str
    label: str
    question: str
    stage: Stage = "words"
    required: bool = True
    styles: tuple[str, ...] = ()  # asked about clips of these styles only; empty: all


class Scale(Field, frozen=True, kw_only=True, tag="scale"):
    """Whole numbers from `low` to `high`, each with the text of its anchor, if there is one."""

    low: int
    high: int
    anchors: dict[str, str] = {}


class Choice(Field, frozen=True, kw_only=True, tag="choice"):
    """A question with a few answers, of which a person chooses one: value → text on the button."""

    options: dict[str, str]


class Tags(Field, frozen=True, kw_only=True, tag="tags"):
    """A question with a few answers, of which a person may choose any number.

    `none` is the value of "none of these", which excludes the others. `groups` are headings of long lists: heading →
    values.
    """

    options: dict[str, str]
    none: str = ""
    groups: dict[str, tuple[str, ...]] = {}


class Slider(Field, frozen=True, kw_only=True, tag="slider"):
    """A number between two ends, with a text at each end. `marks` name equal intervals, from low to high."""

    low: float
    high: float
    step: float = 1.0
    ends: tuple[str, str] = ("", "")
    marks: tuple[str, ...] = ()


class Text(Field, frozen=True, kw_only=True, tag="text"):
    """Free text."""

    rows: int = 3


AnyField = Scale | Choice | Tags | Slider | Text


def check(field: AnyField, value: object) -> Value:
    """Return the answer if the question allows it. Raises DataError that lists the allowed answers."""
    match field:
        case Scale():
            if isinstance(value, int) and not isinstance(value, bool) and field.low <= value <= field.high:
                return value
            raise _wrong(field, f"a whole number from {field.low} to {field.high}")
        case Choice():
            if isinstance(value, str) and value in field.options:
                return value
            raise _wrong(field, f"one of {', '.join(field.options)}")
        case Tags():
            return _checked_tags(field, value)
        case Slider():
            if isinstance(value, int | float) and not isinstance(value, bool) and field.low <= value <= field.high:
                return value
            raise _wrong(field, f"a number from {field.low:g} to {field.high:g}")
        case Text():
            if isinstance(value, str) and len(value) <= MAX_TEXT and (value.strip() or not field.required):
                return value
            raise _wrong(field, f"text of at most {MAX_TEXT} characters")


def _checked_tags(field: Tags, value: object) -> Value:
    if not isinstance(value, list) or any(one not in field.options for one in value) or len(set(value)) < len(value):
        raise _wrong(field, f"a list of {', '.join(field.options)}")
    if field.none and field.none in value and len(value) > 1:
        raise _wrong(field, f"{field.none} alone, or other answers without it")
    if field.required and not value:
        raise _wrong(field, "at least one answer")
    return [str(one) for one in value]


def _wrong(field: Field, allowed: str) -> DataError:
    return DataError(f"{field.key}: the answer must be {allowed}")


def of_dimension(dimension: Dimension, stage: Stage) -> Scale | Choice:
    """Return a rubric's question as a control with the rubric's own scale and anchors."""
    about = {"key": dimension.key, "label": dimension.label, "question": dimension.question}
    common = {**about, "stage": stage, "styles": dimension.styles}
    if dimension.scale:
        low, high = dimension.scale
        return Scale(low=low, high=high, anchors=dict(dimension.anchors), **common)  # type: ignore[arg-type]
    options = {choice: dimension.anchors.get(choice, choice) for choice in dimension.choices}
    return Choice(options=options, **common)  # type: ignore[arg-type]
