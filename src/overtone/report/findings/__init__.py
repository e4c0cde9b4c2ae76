"""The tables of findings: for each finding a file of its name, with `tables(finding, by=...)`."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from types import ModuleType

import msgspec

from overtone.analysis.findings import FINDINGS, Finding, Settings
from overtone.report.table import Cell, Line, PartTable

BYS = ("overall", "dimension", "style", "category", "cue", "all")


def tables_of(finding: Finding, by: str = "overall", settings: Settings | None = None) -> list[PartTable]:
    """The tables of a finding that have numbers. Where it has no such breakdown they are those overall.

    Of a run's conditions they show those that stand for it, by what was chosen; `all` shows every one.
    """
    if by != "all" and by not in breakdowns(finding.name):
        by = "overall"
    made: list[PartTable] = _module(finding.name).tables(finding, by=by, settings=settings or Settings())
    return [table for table in made if table.lines]


def breakdowns(name: str) -> tuple[str, ...]:
    """By what a finding is broken down."""
    found: tuple[str, ...] = _module(name).BYS
    return found


def about(name: str) -> str:
    """What the tables of a finding show, in one line."""
    return f"{FINDINGS[name].title}: {FINDINGS[name].question}"


def joined(tables: Iterable[PartTable]) -> list[PartTable]:
    """Tables of one kind, such as those of several runs, as one: with every column that any of them has."""
    kinds: dict[tuple[str, str, tuple[str, ...]], list[PartTable]] = {}
    for table in tables:
        kinds.setdefault((table.key, table.title, table.names), []).append(table)
    made = []
    for alike in kinds.values():
        heads = tuple(dict.fromkeys(head for table in alike for head in table.heads))
        lines = [_widened(line, table.heads, heads) for table in alike for line in table.lines]
        hints = dict.fromkeys(table.hint for table in alike if table.hint)
        made.append(msgspec.structs.replace(alike[0], hint=" ".join(hints), heads=heads, lines=tuple(lines)))
    return made


def _widened(line: Line, own: tuple[str, ...], heads: tuple[str, ...]) -> Line:
    if own == heads:
        return line
    cells = dict(zip(own, line.cells, strict=True))
    return msgspec.structs.replace(line, cells=tuple(cells.get(head, Cell()) for head in heads))


def _module(name: str) -> ModuleType:
    return import_module(f"overtone.report.findings.{name.replace('-', '_')}")
