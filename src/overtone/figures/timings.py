"""When replies came: the median and the 95th percentile of each timing, a row for each run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from overtone.display import value_rows as grid
from overtone.display.axes import Entry, Spot, close, legend, page
from overtone.display.drawing import Drawing
from overtone.findings.figure_source import FigureSource, NothingToDraw
from overtone.results.timings import FACTOR, LABELS, NO_TIMINGS, SIGNATURE, WITHIN, TimingRow, timing_rows

LOOKS = (("half of the replies within", "s0", "circle"), ("95 % within", "s1", "diamond"))
Shown = Sequence[tuple[int, TimingRow]]  # position of the run, and its row


def draw(source: FigureSource, width: float) -> Drawing:
    """Draw the median and the 95th percentile of each timing of streamed replies."""
    shown = [(n, row) for n, run in enumerate(source.readings) for row in _of(source, n, timing_rows(run))]
    if not shown:
        raise NothingToDraw(NO_TIMINGS)
    drawing, y = page(
        width,
        "When replies came",
        source.with_name("seconds until half and until 95 % of the replies had come this far. Lower is faster."),
    )
    y = legend(drawing, 0, y, width, [Entry(*look) for look in LOOKS])
    seconds = [(n, row) for n, row in shown if row.name != FACTOR]
    factor = [(n, row) for n, row in shown if row.name == FACTOR]
    groups = [
        (_blocks(source, width, seconds), [grid.Panel("Timings", "number", "seconds", low=0.0, number="median")]),
        (
            _blocks(source, width, factor),
            [grid.Panel("Pace of the reply", "number", "seconds per second of sound", zero=1.0, number="median")],
        ),
    ]
    y = grid.groups(drawing, y, [group for group in groups if group[0]])
    drawing.text = " ".join(_sentence(source, n, row) for n, row in shown)
    return close(drawing, y, _notes(shown), SIGNATURE)


def _of(source: FigureSource, run: int, rows: Iterable[TimingRow]) -> list[TimingRow]:
    """Return the rows of the condition whose replies represent a run, or of its first condition with timings."""
    every = list(rows)
    conditions = [row.condition for row in every]
    condition = source.conditions[run] if source.conditions[run] in conditions else next(iter(conditions), "")
    return [row for row in every if row.condition == condition]


def _blocks(source: FigureSource, width: float, shown: Shown) -> list[grid.Block]:
    def spot(n: int, row: TimingRow, at: int) -> Spot:
        name = f"{source.labels[n]}, {row.label.lower()}, {LOOKS[at][0]}"
        return Spot(row.percentiles[at], name, "", LOOKS[at][1], LOOKS[at][2], kind="number")

    parts = [
        (
            label,
            [
                (n, (grid.Place(tuple(spot(n, row, at) for at in range(len(LOOKS))), joined=True),))
                for n, row in shown
                if row.name == name
            ],
        )
        for name, label in LABELS.items()
    ]
    return grid.blocks(width, source.labels, [part for part in parts if part[1]])


def _sentence(source: FigureSource, run: int, row: TimingRow) -> str:
    middle, slow = (estimate.value for estimate in row.percentiles)
    return f"{source.labels[run]}, {row.label.lower()}: median {middle:.2f}, 95 % within {slow:.2f}."


def _notes(shown: Shown) -> list[str]:
    starts: dict[str, list[str]] = {}
    for _, row in shown:
        if row.name != FACTOR:
            starts.setdefault(row.measured_from, []).append(row.label.lower())
    measured = [
        f"{', '.join(dict.fromkeys(names))}: {start if start == WITHIN else f'from {start}'}"
        for start, names in starts.items()
    ]
    text = "; ".join(measured)
    conditions = ", ".join(dict.fromkeys(row.condition for _, row in shown))
    return [
        f"{text[:1].upper()}{text[1:]}.",
        f"Coloured lines are 95 % intervals of the percentile; n: replies that streamed, under {conditions}.",
    ]
