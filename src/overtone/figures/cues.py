"""Heat map of cue × stage: how many cases with a cue pass each stage from hearing to sounding right."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from msgspec import Struct

from overtone import cues
from overtone.display.axes import SMALL, Spot, close, fitted, hatched, label, page
from overtone.display.drawing import SIZE, Box, Drawing, Words, on, ramp, width_of, wrapped
from overtone.findings.figure_source import FigureSource, NothingToDraw
from overtone.findings.funnel.compute import LABELS, Funnel, StageRow
from overtone.findings.funnel.funnel_stages import ORDER
from overtone.text import number

HEADS = {
    "words": "words heard",
    "cue": "voice question",
    "reasoned": "reasoning",
    "used": "used in reply",
    "sounded": "sounded right",
}
SMALLEST = 14.0  # points: the least width of a cell with its value
WITH_N, WITH_INTERVAL = 31.0, 68.0  # the least width with the number of cases, and with the interval as well
GAP = 8.0  # between runs

Place = tuple[str, str, bool]  # by, name, whether the cue is unvalidated


class _Block(Struct, frozen=True):
    """The cells of one run."""

    label: str
    prefix: str
    condition: str
    cells: dict[tuple[Place, str], StageRow]


class _Grid(Struct, frozen=True):
    """The positions and sizes of the cells."""

    left: float
    cell: float
    tall: float
    stages: tuple[str, ...]


def draw(source: FigureSource, width: float) -> Drawing:
    """Draw the runs side by side while cells stay readable, and further runs below."""
    blocks = _blocks(source)
    stages = tuple(
        stage for stage in ORDER if any(r.reached.scored for b in blocks for r in b.cells.values() if r.stage == stage)
    )
    if not stages:
        raise NothingToDraw(
            "no case of these runs has a stage of the funnel: run clips with a cue, for their transcripts, answers "
            "or judged replies (overtone score RUN --judge SPEC)"
        )
    places = _places(blocks)
    left = min(max(width_of(_name(p), SIZE, bold=p[0] != "cue") for p in places) + 6, 0.34 * width)
    most = max(1, int((width - left + GAP) // (SMALLEST * len(stages) + GAP)))
    bands = math.ceil(len(blocks) / most)
    across = math.ceil(len(blocks) / bands)
    cell = (width - left - GAP * (across - 1)) / across / len(stages)
    grid = _Grid(left, cell, 11.0 if bands == 1 else 9.5, stages)
    drawing, y = page(
        width,
        "By cue: what is heard, understood and answered",
        "Percent of cases that pass each stage. Darker: fewer; lighter: more.",
        f"A heat map with a row for each of {sum(p[0] == 'cue' for p in places)} cues and a column for each stage: "
        f"{', '.join(LABELS[s] for s in stages)}. Runs: {', '.join(b.label for b in blocks)}.",
    )
    y = _scale(drawing, y)
    shown = fitted([b.label for b in blocks], cell * len(stages), SIZE)
    for start in range(0, len(blocks), across):
        pairs = list(zip(blocks, shown, strict=True))[start : start + across]
        y = _band(drawing, y, pairs, places, grid) + 8
    signatures = dict.fromkeys(result.data.signature for result in source.results_of("funnel", Funnel))
    return close(drawing, y - 8, _notes(blocks, places, grid), "; ".join(signatures))


# ── which numbers ───────────────────────────────────────────────────────────────────────────────────────────────────


def _blocks(source: FigureSource) -> list[_Block]:
    blocks = []
    for result in source.results_of("funnel", Funnel):
        run = result.runs[0]
        rows = result.data.rows
        known = {row.condition for row in rows}
        wanted = [source.conditions[run], f"task/{source.settings.input}", *sorted(known)]
        condition = next((c for c in wanted if c in known), "")
        cells: dict[tuple[Place, str], StageRow] = {}
        for row in rows:
            if row.condition == condition and row.by in ("overall", "dimension", "cue"):
                unsure = row.basis == "unvalidated"
                if row.by != "cue":  # over validated cues, or over the others if there are none
                    cells.setdefault(((row.by, row.name, False), row.stage), row)
                else:
                    cells[(row.by, row.name, unsure), row.stage] = row
        blocks.append(_Block(source.labels[run], result.prefix, condition, cells))
    return blocks


def _places(blocks: Iterable[_Block]) -> list[Place]:
    """Return the rows: all cases, then each dimension with its cues."""
    known = {place for block in blocks for place, _ in block.cells}
    order = cues.slugs()
    places = [p for p in known if p[0] == "overall"]
    dimensions = {p[1] for p in known if p[0] == "dimension"}
    dimension_of = {p: c.dimension if (c := cues.BY_SLUG.get(p[1])) else "" for p in known if p[0] == "cue"}
    for dimension in [*cues.DIMENSIONS, *sorted(dimensions - set(cues.DIMENSIONS)), ""]:
        if dimension in dimensions:
            places.append(("dimension", dimension, False))
        own = [p for p, name in dimension_of.items() if name == dimension]
        places += sorted(own, key=lambda p: (order.index(p[1]) if p[1] in order else len(order), p[1], p[2]))
    return places


def _name(place: Place) -> str:
    by, name, unsure = place
    return {"overall": "all cues", "dimension": name}.get(by, name + (" °" if unsure else ""))


# ── marks ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _scale(drawing: Drawing, y: float) -> float:
    """Draw the colour scale from 0 to 100, and return the position below it."""
    steps, wide = 25, min(100.0, drawing.width - 130)
    for n in range(steps):
        # A little over the next one, so that no paper shows between them.
        drawing.add(Box(9 + n * wide / steps, y, wide / steps + 0.3, 6, ramp((n + 0.5) / steps)))
    drawing.words(5, y + 5.6, "0", size=SMALL, anchor="end", ink="quiet")
    drawing.words(12 + wide, y + 5.6, "100 %", size=SMALL, ink="quiet")
    hatched(drawing, Box(wide + 48, y - 0.5, 12, 7, "paper", "grid"))
    drawing.words(wide + 63, y + 5.6, "nothing scored", size=SMALL, ink="quiet")
    return y + 15


def _band(
    drawing: Drawing, y: float, pairs: Sequence[tuple[_Block, str]], places: Sequence[Place], grid: _Grid
) -> float:
    heads = [wrapped(HEADS[stage], grid.cell - 2, SMALL) for stage in grid.stages]
    turned = any(len(lines) > 2 for lines in heads) or any(
        width_of(line, SMALL) > grid.cell for lines in heads for line in lines
    )
    lines_high = max(map(len, heads))
    top = y + 11 + (max(width_of(HEADS[s], SMALL) for s in grid.stages) + 4 if turned else 8 * lines_high + 4)
    for column, (block, cut) in enumerate(pairs):
        x = grid.left + column * (grid.cell * len(grid.stages) + GAP)
        label(drawing, x, y + 8, block.label, cut)
        drawing.line((x, y + 11), (x + grid.cell * len(grid.stages), y + 11), ink="quiet", width=0.5)
        for at, stage in enumerate(grid.stages):
            middle = x + (at + 0.5) * grid.cell
            if turned:
                drawing.words(middle + 2.5, top - 3, HEADS[stage], size=SMALL, turn=-90)
                continue
            for line, text in enumerate(heads[at]):
                drawing.words(middle, y + 19 + 8 * line, text, size=SMALL, anchor="middle")
    cut_names = fitted([_name(p) for p in places], grid.left - 6)
    y = top
    for place, name in zip(places, cut_names, strict=True):
        whole = place[0] != "cue"
        y += 3 if place[0] == "dimension" else 0
        indent = 0.0 if whole else 5.0
        drawing.add(Words(indent, y + grid.tall - 2.6, name, size=SIZE if grid.tall > 10 else SMALL + 0.5, bold=whole))
        for column, (block, _) in enumerate(pairs):
            x = grid.left + column * (grid.cell * len(grid.stages) + GAP)
            for at, stage in enumerate(grid.stages):
                _cell(drawing, x + at * grid.cell, y, block, place, stage, grid)
        y += grid.tall
    return y


def _cell(drawing: Drawing, x: float, y: float, block: _Block, place: Place, stage: str, grid: _Grid) -> None:
    row = block.cells.get((place, stage))
    wide, tall = grid.cell - 0.6, grid.tall - 0.6
    if row is None or row.reached.value is None:
        what = f"{block.label}, {_name(place)}: no scores for “{LABELS[stage]}”"
        hatched(drawing, Box(x, y, wide, tall, "paper", "grid", title=what))
        return
    spot = Spot(row.reached, f"{block.label}, {_name(place)}, {LABELS[stage]}", block.prefix + row.key)
    colour = ramp(row.reached.value)
    ink = on(colour)
    whole = place[0] != "cue"
    drawing.add(Box(x, y, wide, tall, colour, key=spot.key, title=spot.title))
    value = number(100 * row.reached.value, 0)
    size = SMALL if grid.cell >= 17 else 6.2
    base = y + tall / 2 + size * 0.35
    e = row.reached
    small = ""
    if grid.cell >= WITH_INTERVAL and e.low is not None and e.high is not None:
        small = f"{number(100 * e.low, 0)}–{number(100 * e.high, 0)}  n {e.scored:,}"
    elif grid.cell >= WITH_N:
        small = f"{e.scored:,}"
    if not small:
        drawing.add(Words(x + wide / 2, base, value, ink, size, "middle", whole, key=spot.key, title=spot.title))
        return
    edge = x + (20 if grid.cell >= WITH_INTERVAL else 17)
    drawing.add(Words(edge, base, value, ink, size, "end", whole, key=spot.key, title=spot.title))
    drawing.add(Words(x + wide - 2, base, small, ink, 5.2, "end"))


def _notes(blocks: Sequence[_Block], places: Sequence[Place], grid: _Grid) -> list[str]:
    notes = []
    counts = [row.reached.scored for b in blocks for row in b.cells.values() if row.by == "cue" and row.reached.scored]
    if grid.cell >= WITH_INTERVAL:
        notes.append("Beside each value: its 95 % interval, clustered by script, and the number of cases.")
    elif counts:
        cases = f"{min(counts):,} to {max(counts):,} cases" if max(counts) > 1 else "one case"
        small = " (the small number)" if grid.cell >= WITH_N else ""
        notes.append(f"The value of a cue comes from {cases}{small}: few cases are rough; tables have the intervals.")
    chances = sorted(
        {
            round(100 * row.chance)
            for b in blocks
            for row in b.cells.values()
            if row.chance is not None and row.stage == "cue"
        }
    )
    if chances:
        between = f"{chances[0]} to {chances[-1]}" if len(chances) > 1 else f"{chances[0]}"
        notes.append(f"Blind guessing passes the voice question in {between} percent of cases.")
    missing = [HEADS[s] for s in ORDER if s not in grid.stages]
    if missing:
        notes.append(f"Not scored in these runs: {', '.join(missing)}.")
    if any(unsure for _, _, unsure in places):
        notes.append("° Unvalidated cue: listeners or checks did not confirm that these clips carry it.")
    if {"used", "sounded"} & set(grid.stages):
        notes.append(f"Replies under {', '.join(dict.fromkeys(b.condition for b in blocks))}.")
    return notes
