"""The messages that a judge receives: the rubric's instructions, the texts and sounds, and the format of the answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from overtone.audio import load_sound
from overtone.errors import DataError
from overtone.judges import voice_description
from overtone.judges.contract import Contract
from overtone.judges.judge_input import Subject
from overtone.judges.rubric import Dimension, Rubric
from overtone.schema import UNKNOWN, Message, Sound

_OTHER_OF_PAIR = {"reply_a": "reply_b", "reply_b": "reply_a", "a": "b", "b": "a"}


def build_messages(
    rubric: Rubric,
    dimensions: Sequence[Dimension],
    contract: Contract,
    subject: Subject,
    swapped: bool,
    hears: str,
    rate: int | None = None,
) -> tuple[Message, ...]:
    """Return the messages of one call. If `rate` is given, sounds are resampled to it.

    Every shown text is enclosed in tags. The rubric tells the judge to treat it as data, and no text can close its own
    tag. Raises DataError, worded as the reason of a missing score, if the subject lacks a text or sound of the rubric.
    """
    system = "\n\n".join([rubric.system.strip(), *map(_scale, dimensions)])
    parts: list[str | Sound] = []
    for key, heading in _shown(rubric, subject):
        text = subject.texts.get(_OTHER_OF_PAIR.get(key, key) if swapped else key, "").strip()
        if key == "cue" and subject.item is not None and subject.item.status == UNKNOWN:
            raise DataError("the benchmark's files do not say what was heard")
        if not text and not key.startswith("reply"):
            continue
        safe = re.sub(rf"</(?=\s*{key})", "< /", text or "(no words)", flags=re.I)
        parts.append(f"{heading}:\n<{key}>\n{safe}\n</{key}>")
    for key in rubric.hears:
        path = subject.sounds.get(_OTHER_OF_PAIR.get(key, key) if swapped else key)
        if hears == "nothing":
            raise DataError(f"the rubric {rubric.name} needs a judge that hears; use hears=audio or hears=description")
        if path is None:
            raise DataError("the reply has no audio" if key == "reply" else f"there is no sound for {key!r}")
        if hears == "description":
            parts.append(f"{rubric.heading(key)}, as measured:\n<{key}>\n{voice_description.describe(path)}\n</{key}>")
        else:
            parts += [f"{rubric.heading(key)}:", load_sound(path, rate=rate, name=path.name)]
    parts.append(contract.instruction)
    return Message("system", (system,)), Message("user", tuple(_joined(parts)))


def _shown(rubric: Rubric, subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield the name and heading of each text to show. A group shows one variant after the other, numbered from 1."""
    if rubric.subject != "group":
        yield from ((key, rubric.heading(key)) for key in rubric.shows)
        return
    number = 1
    while f"reply_{number}" in subject.texts:
        yield from ((f"{key}_{number}", f"Variant {number}. {rubric.heading(key)}") for key in rubric.shows)
        number += 1


def _joined(parts: Sequence[str | Sound]) -> Iterator[str | Sound]:
    """Join neighbouring texts to one part."""
    texts: list[str] = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
            continue
        yield "\n\n".join(texts)
        texts = []
        yield part
    yield "\n\n".join(texts)


def _scale(d: Dimension) -> str:
    lines = [f"{d.label} ({d.key}): {d.question}"]
    lines += [f"  {answer}: {d.anchors[str(answer)]}" for answer in d.menu if str(answer) in d.anchors]
    return "\n".join(lines)
