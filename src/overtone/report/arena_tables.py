"""The standings of an arena as tables, for the terminal and for a page."""

from __future__ import annotations

from typing import IO

import msgspec

from overtone.arena.electorate_agreement import Agreement
from overtone.arena.standing_sentences import sentences
from overtone.arena.standings import Habit, Place, Standing, Standings
from overtone.display.table_data import Cell, Line, PartTable, text_cell
from overtone.report.table_formats import make_console, safe, to_terminal
from overtone.results.measures import Estimate
from overtone.text import NONE, interval, number, value_of

SHOWN = 12  # raters in a table; standings.json has all
HINTS = {
    "places": (
        "400 points are odds of 10 to 1, 1000 is the average run; in brackets the 95 % interval, clustered by script. "
        "Places: the ranks that the intervals leave open. Level field: corrected for the side and, if known, the "
        "length of replies. Wins: wins ÷ own comparisons, in percent. Elo depends on the order of the votes. "
        "Acceptable: the share of a study’s answers that chose the run, or found both replies good."
    ),
    "effects": "Change in the log-odds of being preferred, corrected for the runs; in brackets the 95 % interval.",
    "raters": (
        "Sharpness: 1 follows the ratings like the average rater, 0 votes at random, below 0 votes against them. "
        "Preferences for side A and for ties are in log-odds; 0 is the average rater’s. Each ± its standard error."
    ),
    "beside": "The rank of each run by each group of voters, and the ranks that its interval leaves open.",
    "agreement": (
        "τ is 1 if both rank the runs in the same order and −1 in opposite order. Same choice: of the pairs for which "
        "the majorities of both prefer a reply, how often it is the same one."
    ),
}
EFFECTS = {"side": "being shown first", "words": "one word more", "seconds": "one second more"}


def tables(standings: Standings) -> list[PartTable]:
    """Return every table with data: the tables of each electorate (standings, effects, raters), then the electorates
    compared."""
    made = []
    for one in standings.electorates:
        made += [_places(standings, one), _effects(one), _raters(one)]
    made += [_beside(standings), _agreements(standings)]
    return [table for table in made if table.lines]


def print_standings(standings: Standings, file: IO[str] | None = None) -> None:
    """Print the standings to the terminal, or to `file`."""
    console = make_console(file)
    for table in tables(standings):
        to_terminal(console, [_brief(table)])
        if (more := len(table.lines) - len(_brief(table).lines)) > 0:
            console.print(f"and {more} more raters in standings.json")
    if not standings.electorates:
        console.print("No votes yet: name a --judge, or export pairs for people and import their votes with --votes.")
    for sentence in sentences(standings):
        console.print(safe(sentence))
    for one in standings.electorates:
        for note in one.notes:
            console.print(f"note: {safe(one.name)}: {safe(note)}")
    for note in standings.notes:
        console.print(f"note: {safe(note)}")


def _brief(table: PartTable) -> PartTable:
    return msgspec.structs.replace(table, lines=table.lines[:SHOWN]) if table.key.startswith("raters") else table


def _places(standings: Standings, one: Standing) -> PartTable:
    title = f"{one.name}: {one.votes:,} votes on {one.pairs:,} pairs of {one.scripts:,} scripts; raters: {one.raters:,}"
    heads: tuple[str, ...] = ("place", "rating", "level field", "Elo", "wins", "ties", "wins + ½ ties", "n")
    studied = any(p.acceptable is not None for p in one.places)
    heads = (*heads, "acceptable") if studied else heads
    lines = tuple(Line(standings.runs.index(p.run), one.name, (p.run,), _cells(p, studied)) for p in one.places)
    return PartTable(f"places/{one.key}", title, HINTS["places"], ("run",), heads, lines)


def _cells(p: Place, studied: bool) -> tuple[Cell, ...]:
    return (
        text_cell(NONE if p.places is None else _span(p.places)),
        _cell(p.rating, "number", 0),
        _cell(p.level_field, "number", 0),
        text_cell(number(p.elo, 0)),
        _cell(p.won, "percent"),
        _cell(p.tied, "percent"),
        _cell(p.halved, "percent"),
        text_cell(f"{p.comparisons:,}"),
        *((_cell(p.acceptable, "percent"),) if studied else ()),
    )


def _effects(one: Standing) -> PartTable:
    lines = tuple(Line(0, one.name, (EFFECTS[name],), (_cell(e, "number", 3),)) for name, e in one.effects.items())
    title = f"{one.name}: other preferences"
    return PartTable(f"effects/{one.key}", title, HINTS["effects"], ("for",), ("log-odds",), lines)


def _raters(one: Standing) -> PartTable:
    ordered = sorted(one.habits, key=lambda habit: -habit.votes) if len(one.habits) > 1 else []
    heads = ("votes", "sharpness", "side A", "ties")
    lines = tuple(Line(0, one.name, (habit.rater,), _habit(habit)) for habit in ordered)
    title = f"{one.name}: raters, ± standard error"
    return PartTable(f"raters/{one.key}", title, HINTS["raters"], ("rater",), heads, lines)


def _habit(habit: Habit) -> tuple[Cell, ...]:
    def with_error(x: tuple[float, float] | None) -> Cell:
        return text_cell(NONE if x is None else f"{number(x[0])} ± {number(x[1])}")

    return (text_cell(f"{habit.votes:,}"), *map(with_error, (habit.sharpness, habit.side, habit.ties)))


def _beside(standings: Standings) -> PartTable:
    whole = [one for one in standings.electorates if not one.problem]
    by = [{p.run: p for p in one.places} for one in whole]
    runs = dict.fromkeys(p.run for one in whole for p in one.places) if len(whole) > 1 else {}
    lines = tuple(
        Line(standings.runs.index(run), "", (run,), tuple(_rank(held.get(run)) for held in by)) for run in runs
    )
    heads = tuple(one.name for one in whole)
    return PartTable("beside", "rankings side by side", HINTS["beside"], ("run",), heads, lines)


def _rank(p: Place | None) -> Cell:
    return text_cell(NONE if p is None or p.places is None else f"{p.place} ({_span(p.places)})")


def _agreements(standings: Standings) -> PartTable:
    lines = tuple(Line(0, "", (f"{a.first} and {a.second}",), _agreed(a)) for a in standings.agreements)
    heads = ("Kendall’s τ", "runs", "same choice", "pairs decided by both")
    return PartTable("agreement", "agreement of rankings", HINTS["agreement"], ("who",), heads, lines)


def _agreed(a: Agreement) -> tuple[Cell, ...]:
    decided = f"{a.same.scored:,} of {a.same.asked:,}"
    return (_cell(a.tau, "number", 2), text_cell(f"{a.runs}"), _cell(a.same, "percent"), text_cell(decided))


def _span(places: tuple[int, int]) -> str:
    return str(places[0]) if places[0] == places[1] else f"{places[0]} to {places[1]}"


def _cell(e: Estimate | None, kind: str, digits: int = 2) -> Cell:
    ends = interval(e, kind, digits)
    text = value_of(e, kind, digits) + (f" [{ends}]" if ends else "")
    return Cell(e, "percent" if kind == "percent" else "number", text, digits=digits)
