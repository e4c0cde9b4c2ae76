"""Choose tables by their keys and columns by their heads, as a user types them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from overtone.display.table_data import PartTable
from overtone.errors import UsageError
from overtone.spec import suggest


def part_name(table: PartTable) -> str:
    """Return the name that a user types to choose one of several tables: the last part of its key."""
    return table.key.rpartition("/")[2]


def chosen_parts(tables: Sequence[PartTable], names: Sequence[str]) -> list[PartTable]:
    """Return the tables with these names, in this order; all tables if no names are given. Raises UsageError for an
    unknown name."""
    known = [part_name(table) for table in tables]
    for name in names:
        if name not in known:
            raise UsageError(f"--part {name}: no such table here{suggest(name, known)}; there are {', '.join(known)}")
    return [t for name in names for t in tables if part_name(t) == name] if names else list(tables)


def chosen_columns(tables: Sequence[PartTable], names: Sequence[str]) -> list[PartTable]:
    """Keep the columns with these heads, in this order. A table with none of these columns is left out.

    Case, arrows and units are ignored, and heads may be abbreviated. Raises UsageError for a head that no table has.
    """
    known: dict[str, str] = {}
    for table in tables:
        for head in table.heads:
            known.setdefault(_plain(head), head)
            known.setdefault(_plain(table.short.get(head, head)), head)
    for name in names:
        if _plain(name) not in known:
            heads = ", ".join(dict.fromkeys(_bare(head) for head in known.values()))
            raise UsageError(f"--columns {name}: no such column{suggest(_plain(name), known)}; there are {heads}")
    wanted = list(dict.fromkeys(known[_plain(name)] for name in names))
    return [table for each in tables if (table := _with_columns(each, wanted)).heads]


def _with_columns(table: PartTable, wanted: Sequence[str]) -> PartTable:
    by_plain = {_plain(head): place for place, head in enumerate(table.heads)}
    places = [by_plain[_plain(head)] for head in wanted if _plain(head) in by_plain]
    lines = tuple(replace(line, cells=tuple(line.cells[place] for place in places)) for line in table.lines)
    return replace(table, heads=tuple(table.heads[place] for place in places), lines=lines)


def _bare(head: str) -> str:
    """Return a column head without its arrow and unit."""
    return re.sub(r"[\s\u00a0]*(?:[↑↓]|·.*$)", "", head).strip()


def _plain(head: str) -> str:
    return _bare(head).casefold()
