"""The tables of findings: the tables of one result, and tables of several results joined into one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from overtone.display.table_data import Cell, Line, PartTable
from overtone.findings.finding import FindingResult, Settings


def tables_of(result: FindingResult[Any], by: str = "overall", settings: Settings | None = None) -> list[PartTable]:
    """Return the tables of a result that have rows. A finding without the breakdown `by` shows its overall tables.

    The settings choose the conditions that represent the run; with `by="all"`, the tables show every condition.
    """
    if by != "all" and by not in result.finding.breakdowns:
        by = "overall"
    return [table for table in result.finding.tables(result, by, settings or Settings()) if table.lines]


def joined(tables: Iterable[PartTable]) -> list[PartTable]:
    """Join tables of the same kind, e.g. from several runs. A joined table has every column of its parts."""
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
