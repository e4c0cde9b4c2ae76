"""Items that a model heard in training: they are kept out of the headline and get separate rows.

An item is marked by the closest thing that the model heard: its clip, its speaker, or its corpus. Runs that are
compared use the items that none of their models heard.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from overtone import heard
from overtone.errors import DataError, UsageError
from overtone.heard import COUNTED, MARKS, check_level
from overtone.results.load import Reading
from overtone.runs.marks import STATEMENT
from overtone.text import count

OTHER = "other model"  # the mark of an item that only the model of another run in the comparison heard
ROWS = {**heard.ROWS, OTHER: "heard by another model"}
_FLAG = "--heard corpus, speaker or clip counts them too"


class _Statement(msgspec.Struct):
    complete: bool = True


def mark_heard(readings: Sequence[Reading], level: str = "") -> None:
    """Prepare the marks of runs that are shown together: remove the marks that `level` makes count in the headline,
    and mark the items that the model of another run heard. Raises UsageError for an unknown level."""
    check_level(level)
    marked: set[str] = set()
    for reading in readings:
        reading.heard = level
        for answer in reading.answers:
            if answer.heard in COUNTED[level]:
                answer.heard = ""
            if answer.heard:
                marked.add(answer.item_id)
    for reading in readings if marked else ():
        for answer in reading.answers:
            if not answer.heard and answer.item_id in marked:
                answer.heard = OTHER


def without_heard(reading: Reading) -> Reading:
    """Restrict a run to the items that no model heard, with a note on what its model heard."""
    note = heard_note(reading)
    if not note or note in reading.notes:
        return reading
    kept = [answer for answer in reading.answers if not answer.heard]
    return msgspec.structs.replace(reading, answers=kept, notes=[*reading.notes, note])


def check_left(readings: Sequence[Reading]) -> None:
    """Raise UsageError if a run has no item left after `without_heard`."""
    for reading in readings:
        if not reading.answers and reading.marked:
            raise UsageError(f"{reading.folder}: {reading.notes[-1]}")


def heard_note(reading: Reading) -> str:
    """Return a note on the items that the model heard in training; "" if the model states nothing."""
    items = {answer.item_id: answer.heard for answer in reading.answers}
    marks = Counter(filter(None, items.values()))
    notes = []
    if marks:
        parts = [f"the {mark} of {marks[mark]:,}" for mark in MARKS if marks[mark]]
        parts += [f"another model in this comparison heard {marks[OTHER]:,}"] if marks[OTHER] else []
        whole = marks.total() == len(items)
        start = (
            f"No headline: all {count(len(items), 'item')} were"
            if whole
            else f"{marks.total():,} of {count(len(items), 'item')} are not in the headline, because they were"
        )
        notes.append(f"{start} heard in training ({', '.join(parts)}); {_FLAG}.")
    elif reading.marked == 0 and STATEMENT in reading.meta:
        notes.append("The model heard none of these items in training, nor their speakers or corpora.")
    if reading.heard and reading.marked:
        levels = " or ".join(filter(None, (", ".join(COUNTED[reading.heard][:-1]), COUNTED[reading.heard][-1])))
        notes.append(f"Items whose {levels} the model heard in training count too (--heard {reading.heard}).")
    if not _complete(reading):
        notes.append("The model began with weights that do not state what they heard, so it may have heard more.")
    return " ".join(notes)


def _complete(reading: Reading) -> bool:
    try:
        return msgspec.json.decode(reading.meta.get(STATEMENT, "{}"), type=_Statement).complete
    except msgspec.MsgspecError as error:
        raise DataError(f"{reading.folder}: the statement of what the model heard is damaged: {error}") from None
