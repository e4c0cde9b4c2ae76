"""Tables and sections without data: for each, one line with the missing data and the command that supplies it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from overtone.display.table_data import PartTable
from overtone.results.measures import Estimate
from overtone.text import NONE

SCORE = "overtone score RUN"
RESUME = "overtone run … (the same command resumes)"
JUDGE = "overtone score RUN --judge SPEC"
RUN = "overtone run BENCHMARK --model SPEC"


class Absent(NamedTuple):
    """A part that the report leaves out, the reason, and the command that supplies it."""

    title: str
    reason: str
    command: str


def has_values(table: PartTable) -> bool:
    """Return whether any cell of a table holds a number or a text."""
    return any(
        (cell.estimate is not None and cell.estimate.value is not None) or cell.text.strip() not in ("", NONE)
        for line in table.lines
        for cell in line.cells
    )


def what_fills(table: PartTable) -> Absent:
    """Return why a table without values is empty, and the command that fills it."""
    estimates = [cell.estimate for line in table.lines for cell in line.cells if cell.estimate is not None]
    return empty_table(table.title, estimates)


def empty_table(title: str, estimates: Iterable[Estimate]) -> Absent:
    """Return why a table that would hold only these estimates is empty, and the command that fills it."""
    asked = max((e.asked for e in estimates), default=0)
    if asked:
        return Absent(title, f"none of the {asked:,} replies has a score", SCORE)
    return Absent(title, "no reply belongs to it", RESUME)


def absent_hearing(estimates: Sequence[Estimate]) -> list[Absent]:
    """Return what fills the table of hearing and reasoning if it has these estimates and none has a value."""
    empty = estimates and all(e.value is None for e in estimates)
    return [empty_table("Hearing and reasoning", estimates)] if empty else []


def absent_talk(replies: Sequence[int]) -> list[Absent]:
    """Return what fills the table of conversations if it has these numbers of replies and all are 0."""
    return [Absent("Conversation", "no conversation has a reply", RESUME)] if replies and not any(replies) else []


def absent_sections(context: Mapping[str, Any]) -> list[Absent]:
    """Return the sections that the runs have no data for."""
    sections = (
        (context["judged"] or context["agreement"], Absent("Judged replies", "no judge rated the replies", JUDGE)),
        (
            context["following"].lines,
            Absent(
                "Does the reply follow the voice?", "it needs replies to two styles of a script", f"{RUN} --levels 3"
            ),
        ),
        (
            context["spoken"],
            Absent(
                "Voice of the replies",
                "no spoken reply was measured",
                "overtone run BENCHMARK --levels 3 --model SPEC, with a model that speaks",
            ),
        ),
        (context["task_rows"], Absent("Sub-tasks", "No questions were asked", f"{RUN} --levels 1,2")),
        (context["maps"], Absent("Cues", "no reply to a clip with a cue has a score", SCORE)),
    )
    return [absent for present, absent in sections if not present]
