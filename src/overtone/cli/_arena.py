"""What `overtone arena` prints: the standings of each electorate, the two rankings side by side, raters' habits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from overtone.analysis.measures import Estimate
from overtone.arena.said import sentences
from overtone.arena.standings import Habit, Standing, Standings
from overtone.report import format as fmt
from overtone.report.terminal import make_console, safe

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

SHOWN_RATERS = 12
EFFECTS = {"side": "shown first", "words": "per word longer", "seconds": "per second longer"}


def print_standings(found: Standings) -> None:
    console = make_console()
    for standing in found.electorates:
        _places(console, standing)
        _effects(console, standing)
        _habits(console, standing.habits)
    if len(found.electorates) > 1:
        _beside(console, found)
    if not found.electorates:
        console.print("No votes yet: name a --judge, or export pairs for people and take their votes in with --votes.")
    for sentence in sentences(found):
        console.print(safe(sentence))
    for standing in found.electorates:
        for note in standing.notes:
            console.print(f"note: {safe(standing.name)}: {safe(note)}")
    for note in found.notes:
        console.print(f"note: {safe(note)}")


def _places(console: Console, s: Standing) -> None:
    title = f"{s.name}: {s.votes:,} votes on {s.pairs:,} pairs of {s.scripts:,} scripts; raters: {s.raters:,}"
    heads = ["place", "rating", "level field", "Elo", "wins", "ties", "wins + ½ ties", "n"]
    table = _table(title, ["run", *heads])
    for p in s.places:
        place = fmt.NONE if p.places is None else _span(p.places)
        cells = [place, _number(p.rating), _number(p.level_field), f"{p.elo:.0f}"]
        cells += [_percent(p.won), _percent(p.tied), _percent(p.halved), f"{p.comparisons:,}"]
        table.add_row(safe(p.run), *map(safe, cells))
    console.print(table)
    if not s.problem:
        console.print(
            "rating: 400 points are odds of 10 to 1, with the 95 % interval by script; level field: sides, and lengths "
            "where known, held equal; wins ÷ own comparisons, percent"
        )


def _effects(console: Console, s: Standing) -> None:
    if s.effects:
        told = [f"{EFFECTS[name]} {_bare(e, 3)}" for name, e in s.effects.items()]
        console.print(safe(f"log-odds of being preferred: {'; '.join(told)}"))


def _habits(console: Console, habits: Sequence[Habit]) -> None:
    if len(habits) < 2:
        return
    table = _table("raters, value ± standard error", ["rater", "votes", "sharpness", "side A", "ties"])
    for h in sorted(habits, key=lambda h: -h.votes)[:SHOWN_RATERS]:
        table.add_row(safe(h.rater), f"{h.votes:,}", *(safe(_habit(x)) for x in (h.sharpness, h.side, h.ties)))
    console.print(table)
    if len(habits) > SHOWN_RATERS:
        console.print(f"and {len(habits) - SHOWN_RATERS} raters more in standings.json")


def _beside(console: Console, found: Standings) -> None:
    whole = [s for s in found.electorates if not s.problem]
    if len(whole) > 1:
        table = _table("rankings side by side", ["run", *(s.name for s in whole)])
        by = [{p.run: p for p in s.places} for s in whole]
        for run in dict.fromkeys(p.run for s in whole for p in s.places):
            cells = [fmt.NONE if run not in held else _ranked(held[run].place, held[run].places) for held in by]
            table.add_row(safe(run), *map(safe, cells))
        console.print(table)
    for a in found.agreements:
        told = f"{a.first} and {a.second}: τ {_bare(a.tau, 2)} over {a.runs} runs"
        if a.same.value is not None:
            told += f"; the same reply preferred on {_percent(a.same)} of {a.same.scored} pairs decided by both"
        console.print(safe(told))


def _ranked(place: int | None, places: tuple[int, int] | None) -> str:
    return fmt.NONE if place is None or places is None else f"{place} ({_span(places)})"


def _span(places: tuple[int, int]) -> str:
    return str(places[0]) if places[0] == places[1] else f"{places[0]} to {places[1]}"


def _number(e: Estimate | None) -> str:
    return _bare(e, 0)


def _bare(e: Estimate | None, digits: int) -> str:
    ends = fmt.between(e, "number", digits)
    return fmt.written(e, "number", digits) + (f" [{ends}]" if ends else "")


def _percent(e: Estimate) -> str:
    ends = fmt.between(e, "percent")
    return fmt.written(e, "percent") + (f" [{ends}]" if ends else "")


def _habit(x: tuple[float, float] | None) -> str:
    return fmt.NONE if x is None else f"{fmt.signed(x[0])} ± {fmt.signed(x[1])}"


def _table(title: str, columns: Sequence[str]) -> Table:
    from rich.table import Table

    table = Table(title=safe(title), title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, name in enumerate(columns):
        table.add_column(safe(name), justify="right" if place else "left")
    return table
