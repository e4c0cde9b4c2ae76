"""How far levels go together, as tables: the pairs that are spoken of, and the matrices behind them."""

from __future__ import annotations

from collections.abc import Sequence

from overtone.analysis.findings import Finding, Settings
from overtone.analysis.levels import PAIRS, LevelRow, Levels
from overtone.analysis.named import short
from overtone.report.findings._cells import ALL, DEFAULT, basis, cell, named
from overtone.report.table import Cell, Line, PartTable

BYS = ("overall",)
HINTS = {
    "pairs": (
        "Pearson’s r and Spearman’s ρ, 95 % intervals. Between models: do models that are better at one thing do "
        "better at the other? Within a model: is it better at one where it is better at the other, from cue to cue and "
        "from case to case? n are models, cues and cases. Associations, not causes."
    ),
    "matrix": "Pearson’s r above the diagonal, Spearman’s ρ below.",
}
WHERE = {
    ("model", "between"): "Between models",
    ("cue", "within"): "Cues within a model",
    ("case", "within"): "Cases within a model",
    ("cue", "between"): "Between models, over cues both measures have",
    ("case", "between"): "Between models, over cases both measures have",
}
HEADLINE = tuple(WHERE)[:3]


def tables(finding: Finding, *, by: str = "overall", settings: Settings = DEFAULT) -> list[PartTable]:
    found = finding.found
    assert isinstance(found, Levels)
    return level_tables(found, finding, everything=by == ALL)


def level_tables(found: Levels, finding: Finding | None = None, *, everything: bool = False) -> list[PartTable]:
    """The tables of levels; `everything` has all pairs and the two further ways to compare models."""
    ways = tuple(WHERE) if everything else HEADLINE
    ways = tuple(way for way in ways if any((r.level, r.scope) == way and r.pearson.scored for r in found.rows))
    bases = list(dict.fromkeys(row.basis for row in found.rows))
    return [
        _pairs(finding, found.rows, ways, everything),
        *(_matrix(finding, found, way, name, everything) for name in bases for way in ways if _told(found, way, name)),
    ]


def _told(found: Levels, way: tuple[str, str], name: str) -> bool:
    return any((r.level, r.scope) == way and r.basis == name and r.pearson.value is not None for r in found.rows)


def _pairs(
    finding: Finding | None, rows: Sequence[LevelRow], ways: Sequence[tuple[str, str]], everything: bool
) -> PartTable:
    spoken = set(map(frozenset, PAIRS))
    lines: dict[tuple[str, str], dict[tuple[str, str], LevelRow]] = {}
    for row in rows:
        if everything or frozenset((row.first, row.second)) in spoken:
            name = f"{short(row.first)} – {short(row.second)}"
            lines.setdefault((basis(row.basis), name), {})[row.level, row.scope] = row
    heads = tuple(f"{WHERE[way]}, {sign}" for way in ways for sign in "rρ")
    made = []
    for names, found in lines.items():
        cells: list[Cell] = []
        for way in ways:
            one = found.get(way)
            both = (one.pearson, one.spearman) if one is not None else (None, None)
            cells += [cell(finding, e, one.key if one else "", "number") for e in both]
        made.append(Line(None, "", names, tuple(cells)))
    return named(PartTable("levels", "Levels together", HINTS["pairs"], ("Cues", "Measures"), heads, tuple(made)))


def _matrix(finding: Finding | None, found: Levels, way: tuple[str, str], name: str, everything: bool) -> PartTable:
    rows = [row for row in found.rows if (row.level, row.scope) == way and row.basis == name]
    by_pair = {frozenset((row.first, row.second)): row for row in rows}
    used = [m for m in found.measures if any(m in pair for pair in by_pair)]
    spoken = [m for m in used if any(m in pair for pair in PAIRS)]
    used = spoken if len(spoken) > 2 and not everything else used
    lines = []
    for at, first in enumerate(used):
        cells = []
        for place, second in enumerate(used):
            row = by_pair.get(frozenset((first, second)))
            e = None if row is None else row.pearson if place > at else row.spearman
            cells.append(cell(finding, e, row.key if row else "", "number"))
        lines.append(Line(None, "", (short(first),), tuple(cells)))
    over = f" · {basis(name)}" if name else ""
    return PartTable(
        f"levels/{name or 'all'}/{'/'.join(way)}", WHERE[way] + over, HINTS["matrix"], ("Measure",),
        tuple(map(short, used)), tuple(lines),
    )  # fmt: skip
