"""What the tables of findings have in common: cells with their keys, breakdowns, and how measures are shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol, TypeVar

import msgspec

from overtone.analysis.findings import Finding, Settings
from overtone.analysis.measures import Estimate
from overtone.analysis.named import about, is_percent, short
from overtone.analysis.significance import p_number
from overtone.analysis.summary import LABELS
from overtone.report.apart import OVER
from overtone.report.format import NONE
from overtone.report.table import Cell, PartTable

Kind = Literal["percent", "number", "points", "text"]
ALL = "all"
DEFAULT = Settings()
HOLM = (
    "p by sign flips of scripts; corrected by Holm’s method over all rows that stand overall, and over the rows of a "
    "breakdown for each measure. Significant: at most 0.05 after correction; intervals are of each row alone."
)
FIRST = ("enhance", "basic", "zero")  # whose replies stand for a run, in this order


class _Row(Protocol):
    @property
    def by(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def basis(self) -> str: ...


Row = TypeVar("Row", bound=_Row)


def chosen(rows: Sequence[Row], by: str) -> list[Row]:
    """The rows of a breakdown: those overall first, then its own."""
    return [row for row in rows if by == ALL or row.by in ("overall", by)]


def standing(conditions: Iterable[str], by: str, settings: Settings) -> set[str]:
    """The conditions a table is about: questions, and replies under the prompt that stands for the run, both with the
    input that was chosen. All of them where everything is asked for, or where that would leave none."""
    asked = set(conditions)
    given = {c for c in asked if c.partition("/")[2] == settings.input}
    if by == ALL or not given:
        return asked
    questions = given & {f"task/{settings.input}"}
    order = (settings.prompt,) if settings.prompt else FIRST
    talks = [c for prompt in order if (c := f"{prompt}/{settings.input}") in given]
    return questions | (set(talks[:1]) or given)


def over(row: _Row) -> str:
    """What a row is over, as it stands in a table."""
    if row.by == "overall" or not row.name:
        return ALL
    if row.by == "category":
        return LABELS.get(row.name, row.name)
    return row.name


def basis(name: str) -> str:
    """Over which cues a number is."""
    return OVER.get(name, name)


def named(table: PartTable) -> PartTable:
    """The table without columns of names that say nothing: over all, of all cues."""
    from overtone.report.replies import without_column

    table = without_column(table, "Over", lambda said: said != {ALL})
    return without_column(table, "Cues", lambda said: said != {OVER[""]})


def cell(
    finding: Finding | None, e: Estimate | None, key: str, kind: Kind = "percent", *, digits: int = 2, small: str = ""
) -> Cell:
    """A number with its full key; an empty cell where there is none."""
    if e is None:
        return Cell()
    bare = msgspec.structs.replace(e, best=None, worst=None)  # here what is missing is often not meant to be there
    return Cell(bare, kind, small=small, digits=digits, key=_full(finding, key))


def text(finding: Finding | None, words: str, key: str = "", small: str = "") -> Cell:
    """A count or the like."""
    return Cell(kind="text", text=words, small=small, key=_full(finding, key) if key else "")


def chance(rate: float | None) -> str:
    """What guessing gives, below a rate."""
    return "" if rate is None else f"chance {100 * rate:.0f}"


def p_cell(finding: Finding, p: float | None, of: Estimate, key: str) -> Cell:
    """A p-value; its number of cases is that of what was tested."""
    if p is None:
        return Cell(kind="text", text=NONE, key=_full(finding, key))
    return Cell(Estimate(p, None, None, of.scored, of.asked), "text", p_number(p), key=_full(finding, key))


def _full(finding: Finding | None, key: str) -> str:
    return "" if finding is None else finding.prefix + key  # a number of the paper has no cases here


# ── measures ────────────────────────────────────────────────────────────────────────────────────────────────────────


def kind_of(measure: str, *, difference: bool = False) -> Kind:
    """A share is shown in percent, a difference of shares in points, anything else on its own scale."""
    if not is_percent(measure):
        return "number"
    return "points" if difference else "percent"


def digits_of(measure: str) -> int:
    """After the point, of a number."""
    return about(measure).digits


def head(measure: str) -> str:
    """A measure as the head of a column."""
    arrow = {"higher": " ↑", "lower": " ↓"}.get(about(measure).better, "")
    return f"{short(measure)}{arrow}" + (" · %" if is_percent(measure) else "")
