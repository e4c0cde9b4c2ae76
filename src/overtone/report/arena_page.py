"""The standings of an arena on a page: sentences, figure, tables, and the cases that were voted on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from overtone.arena.electorates import behind
from overtone.arena.standing_sentences import sentences
from overtone.arena.standings import Standings
from overtone.arena.vote_store import FILE, Table
from overtone.display.table_data import Line, PartTable
from overtone.errors import DataError, UsageError
from overtone.figures.arena import PREFIX
from overtone.findings.figure_source import FigureSource
from overtone.paths import read_plain, shown
from overtone.report.arena_tables import tables
from overtone.report.findings_page import Figure, drawn
from overtone.report.links import Links
from overtone.results.case_names import KeyedCases

STANDINGS = "standings.json"
MOST = 64 * 1024 * 1024  # bytes of standings


class ArenaSection(NamedTuple):
    """The section of a page about an arena."""

    sentences: list[str]
    figures: list[Figure]
    tables: list[PartTable]
    notes: list[str]


def read_standings(folder: Path) -> Standings:
    """Read the standings that `overtone arena` wrote to its folder."""
    path = folder / STANDINGS
    if not path.is_file():
        where = shown(str(folder))
        raise UsageError(f"{where} has no {STANDINGS}; create it with 'overtone arena RUN RUN --out {where}'")
    try:
        return msgspec.json.decode(read_plain(path, MOST), type=Standings)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise DataError(f"cannot read {shown(str(path))}: {error}; write it again with 'overtone arena'") from None


def arena_section(folder: Path, standings: Standings, source: FigureSource, links: Links) -> ArenaSection:
    """Return the section on an arena, and register the links of its numbers in `links`."""
    made = ArenaSection(
        sentences(standings),
        drawn(["arena"], source),
        [_keyed(table, standings) for table in tables(standings)],
        [*(f"{one.name}: {note}" for one in standings.electorates for note in one.notes), *standings.notes],
    )
    wanted = {key for figure in made.figures for key in figure.mark_keys()}
    wanted |= {cell.key for table in made.tables for line in table.lines for cell in line.cells}
    links.take(_cases_by_key(folder, wanted - {""}), wanted, range(len(source.readings)))
    return made


def _cases_by_key(folder: Path, wanted: set[str]) -> Iterator[KeyedCases]:
    if not (folder / FILE).is_file():
        return
    with Table(folder) as table:
        pairs = {pair.id: pair for pair in table.pairs()}
        votes = table.votes()
    for key in sorted(wanted):  # so that the same page is written every time
        yield key, behind(votes, pairs, key.removeprefix(PREFIX))


def _keyed(table: PartTable, standings: Standings) -> PartTable:
    """Return the table with keys in the rows of runs and raters. A key links to the cases that were voted on."""
    kind, _, electorate = table.key.partition("/")
    ends = {"places": "run", "raters": "rater", "effects": "effect"}
    lines = []
    for line in table.lines:
        name = "" if kind == "effects" else f"/{line.names[0]}"
        key = f"{PREFIX}{electorate}/{ends[kind]}{name}" if kind in ends else ""
        cells = tuple(msgspec.structs.replace(cell, key=key) for cell in line.cells)
        lines.append(Line(None, "", line.names, cells))
    names, heads = (tuple(map(capital, some)) for some in (table.names, table.heads))
    key, title = f"arena-{table.key}", capital(table.title)
    return msgspec.structs.replace(table, key=key, title=title, names=names, heads=heads, lines=tuple(lines))


def capital(text: str) -> str:
    """Return a text with a capital first letter."""
    return text[:1].upper() + text[1:]
