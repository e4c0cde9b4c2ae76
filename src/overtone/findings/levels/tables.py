"""The tables of levels: the chief pairs of measures, and a correlation matrix of all measures for each scope."""

from __future__ import annotations

from collections.abc import Sequence

from overtone.display.table_data import Cell, Line, PartTable
from overtone.findings.finding import FindingResult, Settings
from overtone.findings.finding_cells import ALL, DEFAULT, basis, cell, named
from overtone.findings.levels.compute import PAIRS, LevelRow, Levels
from overtone.results.measure_names import short

BREAKDOWNS = ("overall",)
HINTS = {
    "pairs": (
        "Pearson’s r and Spearman’s ρ with 95 % intervals. Between models: are models that score higher in one "
        "measure higher in the other? Within a model: are the cues, or the cases, that score higher in one measure "
        "higher in the other? n are models, cues and cases. Associations, not causes."
    ),
    "matrix": "Pearson’s r above the diagonal, Spearman’s ρ below.",
}
SCOPES = {
    ("model", "between"): "Between models",
    ("cue", "within"): "Cues within a model",
    ("case", "within"): "Cases within a model",
    ("cue", "between"): "Between models, over cues both measures have",
    ("case", "between"): "Between models, over cases both measures have",
}
HEADLINE = tuple(SCOPES)[:3]


def make_tables(result: FindingResult[Levels], by: str = "overall", settings: Settings = DEFAULT) -> list[PartTable]:
    """Make the table of the pairs of measures, and a matrix for each scope."""
    return level_tables(result.data, result, everything=by == ALL)


def level_tables(
    data: Levels, result: FindingResult[Levels] | None = None, *, everything: bool = False
) -> list[PartTable]:
    """Make the tables of levels. `everything` adds the other pairs of measures and two more comparisons of models."""
    ways = tuple(SCOPES) if everything else HEADLINE
    ways = tuple(way for way in ways if any((r.level, r.scope) == way and r.pearson.scored for r in data.rows))
    bases = list(dict.fromkeys(row.basis for row in data.rows))
    return [
        _pairs(result, data.rows, ways, everything),
        *(
            _matrix(result, data, way, name, everything)
            for name in bases
            for way in ways
            if _has_values(data, way, name)
        ),
    ]


def _has_values(data: Levels, way: tuple[str, str], name: str) -> bool:
    return any((r.level, r.scope) == way and r.basis == name and r.pearson.value is not None for r in data.rows)


def _pairs(
    result: FindingResult[Levels] | None, rows: Sequence[LevelRow], ways: Sequence[tuple[str, str]], everything: bool
) -> PartTable:
    spoken = set(map(frozenset, PAIRS))
    lines: dict[tuple[str, str], dict[tuple[str, str], LevelRow]] = {}
    for row in rows:
        if everything or frozenset((row.first, row.second)) in spoken:
            name = f"{short(row.first)} – {short(row.second)}"
            lines.setdefault((basis(row.basis), name), {})[row.level, row.scope] = row
    heads = tuple(f"{SCOPES[way]}, {sign}" for way in ways for sign in "rρ")
    made = []
    for names, by_scope in lines.items():
        cells: list[Cell] = []
        for way in ways:
            one = by_scope.get(way)
            both = (one.pearson, one.spearman) if one is not None else (None, None)
            cells += [cell(result, e, one.key if one else "", "number") for e in both]
        made.append(Line(None, "", names, tuple(cells)))
    return named(PartTable("levels", "Levels together", HINTS["pairs"], ("Cues", "Measures"), heads, tuple(made)))


def _matrix(
    result: FindingResult[Levels] | None, data: Levels, way: tuple[str, str], name: str, everything: bool
) -> PartTable:
    rows = [row for row in data.rows if (row.level, row.scope) == way and row.basis == name]
    by_pair = {frozenset((row.first, row.second)): row for row in rows}
    used = [m for m in data.measures if any(m in pair for pair in by_pair)]
    spoken = [m for m in used if any(m in pair for pair in PAIRS)]
    used = spoken if len(spoken) > 2 and not everything else used
    lines = []
    for at, first in enumerate(used):
        cells = []
        for place, second in enumerate(used):
            row = by_pair.get(frozenset((first, second)))
            e = None if row is None else row.pearson if place > at else row.spearman
            cells.append(cell(result, e, row.key if row else "", "number"))
        lines.append(Line(None, "", (short(first),), tuple(cells)))
    over = f" · {basis(name)}" if name else ""
    return PartTable(
        f"levels/{name or 'all'}/{'/'.join(way)}", SCOPES[way] + over, HINTS["matrix"], ("Measure",),
        tuple(map(short, used)), tuple(lines),
    )  # fmt: skip
