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
from overtone.display.drawing import Drawing
from overtone.display.table_data import Line, PartTable
from overtone.errors import DataError, UsageError
from overtone.figures.arena import PREFIX
from overtone.findings.figure_source import FigureSource
from overtone.paths import shown
from overtone.report.arena_tables import tables
from overtone.report.findings_page import drawn
from overtone.report.links import Links
from overtone.results.case_names import KeyedCases

STANDINGS = "standings.json"


class ArenaSection(NamedTuple):
    """The section of a page about an arena."""

    sentences: list[str]
    figures: list[Drawing]
    tables: list[PartTable]
    notes: list[str]


def read_standings(folder: Path) -> Standings:
    """Read the standings that `overtone arena` wrote to its folder."""
    path = folder / STANDINGS
    try:
        return msgspec.json.decode(path.read_bytes(), type=Standings)
    except OSError as error:
        raise UsageError(f"{shown(str(path))}: {error.strerror}; make it with 'overtone arena RUN RUN'") from None
    except (msgspec.MsgspecError, RecursionError) as error:
        raise DataError(f"{shown(str(path))} does not hold standings of this version of Overtone: {error}") from None


def arena_section(folder: Path, found: Standings, source: FigureSource, links: Links) -> ArenaSection:
    """Return the section, and keep the links of its numbers."""
    made = ArenaSection(
        sentences(found),
        drawn(["arena"], source),
        [_keyed(table, found) for table in tables(found)],
        [*(f"{one.name}: {note}" for one in found.electorates for note in one.notes), *found.notes],
    )
    wanted = {mark.key for figure in made.figures for mark in figure.marks}
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


def _keyed(table: PartTable, found: Standings) -> PartTable:
    """Give rows of runs and raters a key to the cases that were voted on."""
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
