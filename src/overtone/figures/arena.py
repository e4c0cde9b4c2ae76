"""Ladder of an arena: ratings with intervals, possible ranks, wins and ties, by people and by judges."""

from __future__ import annotations

from overtone.arena.standings import Place, Standing, Standings
from overtone.display import value_rows as grid
from overtone.display.axes import SMALL, Entry, Spot, close, legend, page
from overtone.display.drawing import SIZE, Drawing, series, wrapped
from overtone.findings.figure_source import FigureSource, NothingToDraw
from overtone.text import count

PREFIX = "arena/"  # before the keys of standings.json


def draw(source: FigureSource, width: float) -> Drawing:
    """Draw the electorates below each other on one axis. Each run has its colour."""
    standings = source.arena
    if not isinstance(standings, Standings) or not standings.electorates:
        raise NothingToDraw(
            "there are no votes: run `overtone arena RUN RUN --judge SPEC`, or add people's votes with --votes FILE, "
            "then name its folder with --arena DIR"
        )
    ranked = [one for one in standings.electorates if any(p.rating is not None for p in one.places)]
    if not ranked:
        raise NothingToDraw(f"there are too few votes for a ranking: {standings.electorates[0].problem}")
    drawing, y = page(
        width,
        "Arena: whose replies are preferred",
        "Ratings in points: 400 points are odds of 10 to 1, 1000 is the average run. Before each name: the ranks "
        "that its 95 % interval, clustered by script, leaves open.",
    )
    y = legend(
        drawing, 0, y, width,
        [Entry("wins ÷ own comparisons", "quiet"), Entry("ties ÷ own comparisons", "quiet", hollow=True)],
    )  # fmt: skip
    inks = {run: series(number) for number, run in enumerate(standings.runs)}
    y = grid.rows(
        drawing,
        y,
        [grid.Block(_head(one), tuple(_row(p, inks, one) for p in one.places)) for one in ranked],
        [
            grid.Panel("Rating", "number", "points", zero=1000.0, weight=1.3),
            grid.Panel("Wins and ties", "percent", "percent of own comparisons", low=0.0),
        ],
    )
    for one in (one for one in standings.electorates if one not in ranked):
        y += 6
        for line in wrapped(f"{_who(one)}, no ratings: {one.problem}", width, SMALL):
            y += 9
            drawing.words(0, y, line, size=SMALL, ink="quiet")
    y = _agreements(drawing, y, standings)
    best = "; ".join(f"{one.name}: {one.places[0].run} first of {len(one.places)}" for one in ranked)
    drawing.text = f"A ladder of {len(standings.runs)} runs. {best}."
    notes = [note for one in ranked for note in one.notes]
    return close(drawing, y, notes, standings.signature)


def _head(one: Standing) -> str:
    return f"{_who(one)}: {one.votes:,} votes on {one.pairs:,} pairs of {count(one.scripts, 'script')}"


def _who(one: Standing) -> str:
    return f"judge {one.name}" if one.key.startswith("judge/") else one.name


def _row(p: Place, inks: dict[str, tuple[str, str]], one: Standing) -> grid.Row:
    ink, shape = inks.get(p.run, ("ink", "circle"))
    key = PREFIX + p.key
    who = f"{_who(one)}, {p.run}"
    rating = None
    if p.rating is not None:
        at = "" if p.places is None else f" (rank {_span(p.places, ' to ')})"
        rating = grid.Place((Spot(p.rating, f"{who}, rating{at}", key, ink, shape, kind="number", digits=0),))
    won = Spot(p.won, f"{who}, wins", key, ink, shape)
    tied = Spot(p.tied, f"{who}, ties", key, ink, shape, hollow=True)
    label = p.run if p.places is None else f"{_span(p.places, '–')}  {p.run}"
    return grid.Row(label, (rating, grid.Place((won, tied), written=won)))


def _span(places: tuple[int, int], to: str) -> str:
    return str(places[0]) if places[0] == places[1] else f"{places[0]}{to}{places[1]}"


def _agreements(drawing: Drawing, y: float, standings: Standings) -> float:
    for one in standings.agreements:
        if one.tau.value is None:
            continue
        spot = Spot(one.tau, "", kind="number")
        y += 11
        other = f"judge {one.second}" if one.key.startswith("agreement/judge/") else one.second
        text = f"{one.first} and {other} agree on the ranks of {one.runs} runs with τ = {spot.short}"
        for line in wrapped(text, drawing.width, SIZE - 0.5):
            drawing.words(0, y, line, size=SIZE - 0.5, key=PREFIX + one.key)
            y += 9
        y -= 9
    return y
