"""Pictures of a study: the primary tests against their margins, the arms' values, the costs in all outcomes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from overtone.display import axes
from overtone.display.drawing import Box, Drawing, Scale, series
from overtone.display.value_rows import Block, Panel, Place, Row, rows
from overtone.results.measures import Estimate

from .study_analysis import TREATMENT, Analysis, Arm, Number, Primary, Table

WIDTH = 560.0  # points
TALL = 15.0  # of a row of the primary tests
SPLIT_HEADS = {"genre": "left-out genre", "document": "left-out documents", "official": "official test rows"}
DIMENSIONS = {"V": "valence", "A": "arousal", "D": "dominance"}
COSTS = (  # outcome → label, of the third picture
    ("genre V", "valence, left-out genre"),
    ("genre A", "arousal, left-out genre"),
    ("genre D", "dominance, left-out genre"),
    ("open told", "Overtone-Open, cue told"),
    ("dream sum", "DREAM, likelihood"),
    ("dream mean", "DREAM, per token"),
    ("dream less", "DREAM, minus prior"),
    ("dream tuned", "DREAM, after tuning on it"),
)
FLOORS = ("base", "permuted")  # near 0: they would leave no room for the others
COMPARED = ("merged", "shuffled", "pseudo", "base")


def primary(analysis: Analysis) -> Drawing:
    """Draw the primary tests: the treatment minus its control, on the band of its equivalence margin."""
    tests = analysis.primary
    drawing, top = axes.page(
        WIDTH,
        "The primary tests",
        f"Difference {TREATMENT} − control with its 95 % interval. Grey: within the equivalence margin.",
        "A difference and its interval for each primary test, on a band that is its margin.",
    )
    labels = [f"{_short(test)}, − {test.control}" for test in tests]
    room = 0.42 * WIDTH
    most = max([*(test.margin for test in tests), *(abs(end) for test in tests for end in _ends(test.number))])
    scale = Scale(-1.15 * most, 1.15 * most, room, WIDTH - 120)
    bottom = top + TALL * len(tests)
    for number, test in enumerate(tests):
        start, end = scale(-test.margin), scale(test.margin)
        drawing.add(Box(start, top + TALL * number + 2, end - start, TALL - 4, "grid", opacity=0.7))
    below = axes.axis(drawing, scale, top, bottom, "number", "difference of r, or of accuracy as a share", 0.0)
    for number, test in enumerate(tests):
        y = top + TALL * (number + 0.5)
        cut = axes.fitted([labels[number]], room - 8)[0]
        axes.label(drawing, 0, y + 2.8, labels[number], cut)
        spot = axes.Spot(_estimate(test.number, test.cells), labels[number], kind="number", digits=4)
        drawing.add(*axes.spot(scale, y, spot))
        drawing.words(WIDTH, y + 2.6, spot.short, size=axes.SMALL, anchor="end")
    return axes.close(drawing, below)


def _short(test: Primary) -> str:
    split, _, dimension = test.outcome.partition(" ")
    if split in SPLIT_HEADS and dimension in DIMENSIONS:
        return f"r of {DIMENSIONS[dimension]}, {SPLIT_HEADS[split]}"
    return dict(COSTS).get(test.outcome, test.outcome)


def arms(analysis: Analysis, split: str) -> Drawing:
    """Draw every arm's r for valence, arousal and dominance on one split."""
    tables = [(d, table) for d in DIMENSIONS if (table := _table(analysis, f"{split} {d}"))]
    drawing, top = axes.page(
        WIDTH,
        f"Prediction of people's ratings, {SPLIT_HEADS[split]}",
        "Mean over both perspectives of Pearson's r with people's means, 95 % intervals; n: trained models. "
        f"The floors, {' and '.join(FLOORS)}, are in the tables.",
        f"Rows of arms with r of {', '.join(DIMENSIONS[d] for d, _ in tables)}.",
    )
    names = [n for n in dict.fromkeys(arm.name for _, table in tables for arm in table.arms) if n not in FLOORS]
    panels = [Panel(DIMENSIONS[d], "number") for d, _ in tables]
    made = [Row(name, tuple(_place(table.arm(name)) for _, table in tables)) for name in names]
    return axes.close(drawing, rows(drawing, top, [Block("", tuple(made))], panels))


def _place(arm: Arm | None) -> Place | None:
    if arm is None:
        return None
    ink = "s1" if arm.name == TREATMENT else "s0"
    return Place((axes.Spot(_estimate(arm.number, arm.cells), arm.name, ink=ink, kind="number", digits=3),))


def contrasts(analysis: Analysis) -> Drawing:
    """Draw the difference between the treatment and four arms, in points, for the outcomes of every kind."""
    tables = [(label, table) for name, label in COSTS if (table := _table(analysis, name))]
    drawing, top = axes.page(
        WIDTH,
        f"What {TREATMENT} gains or costs",
        f"Difference {TREATMENT} − arm, 95 % intervals, uncorrected. Hollow: the outcome is not testable.",
        "Rows of outcomes with the treatment's differences to other arms.",
    )
    compared = [name for name in COMPARED if any(table.arm(name) for _, table in tables)]
    looks = {name: series(number) for number, name in enumerate(compared)}
    top = axes.legend(
        drawing, 0, top, WIDTH, [axes.Entry(f"− {name}", ink, shape) for name, (ink, shape) in looks.items()]
    )
    shown = [(label, table, _compared(table, compared)) for label, table in tables]
    left, height = 0.27 * WIDTH, 4.5
    ends = [end for _, _, own in shown for arm in own if arm.contrast for end in _ends(arm.contrast.number)]
    scale = axes.placed(axes.domain([*ends, 0.0]), left, WIDTH - 6)
    heights = [height * max(1, len(own)) + 7 for _, _, own in shown]
    name = "difference of r, or of accuracy as a share"
    below = axes.axis(drawing, scale, top, top + sum(heights), "number", name, 0.0)
    y = top
    for (label, table, own), tall in zip(shown, heights, strict=True):
        axes.label(drawing, 0, y + tall / 2 + 2.8, label, axes.fitted([label], left - 8)[0])
        for number, arm in enumerate(own):
            if arm.contrast is not None:
                ink, shape = looks[arm.name]
                spot = axes.Spot(
                    _estimate(arm.contrast.number, arm.cells), f"{label}, − {arm.name}", ink=ink, shape=shape,
                    hollow=bool(table.checked.untestable), kind="number", digits=4,
                )  # fmt: skip
                drawing.add(*axes.spot(scale, y + 5 + height * (number + 0.25), spot, size=2.1))
        y += tall
    return axes.close(drawing, below)


def _compared(table: Table, names: Sequence[str]) -> list[Arm]:
    """Return the arms of a row. The untuned model is far below in ratings, so it stands in other outcomes only."""
    ratings = table.name.split(" ")[0] in SPLIT_HEADS
    return [arm for name in names if (arm := table.arm(name)) and not (ratings and name == "base")]


def _table(analysis: Analysis, name: str) -> Table | None:
    return next((table for table in analysis.tables if table.name == name), None)


def _estimate(number: Number, cells: int) -> Estimate:
    return Estimate(number.value, number.low, number.high, cells, cells)


def _ends(number: Number) -> Sequence[float]:
    return [end for end in (number.low, number.value, number.high) if end is not None and math.isfinite(end)]
