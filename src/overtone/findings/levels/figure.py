"""The figure of levels: correlation matrices."""

from __future__ import annotations

from collections.abc import Sequence

from overtone.display import axes as axes
from overtone.display.axes import SMALL, Spot
from overtone.display.drawing import INKS, Box, Drawing, Words, on, width_of, wrapped
from overtone.findings.figure_source import FigureSource, NothingToDraw
from overtone.findings.levels.compute import SIGNATURE, LevelRow, Levels
from overtone.results.measure_names import C1, C4, VES, short
from overtone.results.significance import excludes
from overtone.text import number, plain

TITLE = "How the levels correlate"
WITHIN, BETWEEN = ("case", "within"), ("model", "between")
NOTHING = (
    "the runs have fewer than two measures on the same cases: run more levels ('overtone run … --levels 1,2,3'), then "
    "score and judge the replies"
)
TALL, NARROWEST = 26.0, 33.0  # the height and the least width of a cell, in points
CHIEF = ("voice_accuracy", "reasoning_accuracy", C4, VES, C1, "style_margin", "reply_semsim", "semsim")
NAMED = {C1: "C1: context fit", C4: "C4: speech relevance", VES: "VES: vocal empathy"}

Rows = dict[tuple[str, str, frozenset[str]], LevelRow]


def draw(source: FigureSource, width: float) -> Drawing:
    """Draw how hearing, reasoning and replying correlate, within models and between them."""
    benchmarks = list(dict.fromkeys(reading.benchmark for reading in source.readings))
    if len(benchmarks) > 1:
        raise NothingToDraw(
            f"levels cannot be averaged over benchmarks ({', '.join(benchmarks)}); give runs of one of them"
        )
    result = source.results_of("levels", Levels)[0]
    data = result.data
    bases = dict.fromkeys(row.basis for row in data.rows)
    basis = next((b for b in bases if b != "unvalidated"), next(iter(bases), ""))
    rows: Rows = {
        (row.level, row.scope, frozenset((row.first, row.second))): row for row in data.rows if row.basis == basis
    }
    names = [n for n in data.measures if any(n in pair for *_, pair in rows)]
    if len(names) < 2:
        raise NothingToDraw(NOTHING)
    models = len({reading.meta.get("model", "") or reading.name for reading in source.readings})
    between = any((r.level, r.scope) == BETWEEN and r.pearson.value is not None for r in rows.values())
    drawing, y = axes.page(width, TITLE, source.with_name(_subtitle(basis, between)))
    drawing.text = " ".join(sentence.text for sentence in result.sentences)
    kept = _kept(names, width)
    y = _matrix(drawing, y, kept, rows, between)
    notes = _notes(data, kept, between, models)
    if left := [short(name) for name in names if name not in kept]:
        notes.append(f"Left out for lack of space: {', '.join(left)}.")
    return axes.close(drawing, y, notes, SIGNATURE)


def _kept(names: Sequence[str], width: float) -> list[str]:
    """Drop measures, those outside CHIEF first, until each cell is wide enough for a number and its interval."""
    most = int((width - _side(names)) / NARROWEST)
    chief = sorted(names, key=lambda name: CHIEF.index(name) if name in CHIEF else len(CHIEF))
    return [name for name in names if name in chief[: max(2, most)]]


def _side(names: Sequence[str]) -> float:
    """Return the width of the labels beside the matrix if each word has its own line."""
    return max(width_of(word) for name in names for word in short(name).split()) + 6


def _matrix(drawing: Drawing, y: float, names: Sequence[str], rows: Rows, between: bool) -> float:
    """Draw the labels, cells and colour scale of a matrix, and return the y position below it."""
    labels = [short(name) for name in names]
    room = drawing.width - _side(names)
    wide = width_of(labels[-1], SMALL) * 0.766 if drawing.width > 340 else 0.0
    cell = min(46.0, (room - max(0.0, wide - 20)) / len(names))
    upright = drawing.width <= 340
    left = drawing.width - room
    if room - cell * len(names) > 60:  # enough room for labels on one line
        left = max(width_of(text) for text in labels) + 6
    y += max(width_of(text, SMALL) for text in labels) * (1.0 if upright else 0.643) + (3 if upright else SMALL)
    for n, text in enumerate(labels):
        x = left + (n + 0.5) * cell + (2.5 if upright else 0)
        drawing.words(x, y - 3, text, size=SMALL, turn=-90.0 if upright else -40.0)
    for i, first in enumerate(names):
        lines = wrapped(labels[i], left - 5)
        for n, line in enumerate(lines):
            base = y + i * TALL + TALL / 2 + 2.8 + (n - (len(lines) - 1) / 2) * 9
            drawing.words(left - 6, base, line, anchor="end")
        for j, second in enumerate(names):
            box = Box(left + j * cell, y + i * TALL, cell, TALL, "grid")
            if i == j:
                drawing.add(box)
            elif i > j or between:
                _cell(drawing, box, rows.get((*(WITHIN if i > j else BETWEEN), frozenset((first, second)))))
    return _scale(drawing, left, y + len(names) * TALL + 8, min(len(names) * cell, 150.0))


def _subtitle(basis: str, between: bool) -> str:
    upper = " Above: r between models." if between else ""
    unsure = " Cues not validated." if basis == "unvalidated" else ""
    return (
        f"below the diagonal: Pearson’s r from case to case within a model.{upper} Bold: the 95 % interval excludes 0. "
        f"Grey: no interval. Hatched: no number.{unsure}"
    )


def _cell(drawing: Drawing, box: Box, row: LevelRow | None) -> None:
    """Draw a correlation with its interval. The cell is grey without an interval and hatched without a value."""
    x, y, width, height = box.x, box.y, box.width, box.height
    if row is None or row.pearson.value is None:
        why = "" if row is None else _spot(row).title
        axes.hatched(drawing, Box(x, y, width, height, "paper", "grid", key=row.key if row else "", title=why))
        return
    one = _spot(row)
    value, low, high = row.pearson.value, row.pearson.low, row.pearson.high
    if low is None or high is None:
        drawing.add(Box(x, y, width, height, "paper", "grid", key=one.key, title=one.title))
        place = (x + width / 2, y + height / 2 + 2.6)
        drawing.add(Words(*place, _r(value), "quiet", SMALL, "middle", key=one.key, title=one.title))
        return
    fill = shade(value)
    ink, base, bold = on(fill), y + height / 2 - 0.5, excludes(row.pearson)
    drawing.add(Box(x, y, width, height, fill, "paper", key=one.key, title=one.title))
    drawing.add(Words(x + width / 2, base, _r(value), ink, SMALL, "middle", bold, key=one.key, title=one.title))
    ends = f"{_r(low)} to {_r(high)}"
    size = next((size for size in (5.5, 5.0) if width_of(ends, size) <= width - 1), 4.5)
    drawing.add(Words(x + width / 2, base + 7.5, ends, ink, size, "middle", key=one.key, title=one.title))


def _spot(row: LevelRow) -> Spot:
    where = {"within": "from case to case within a model", "between": f"between {row.models} models"}[row.scope]
    name = f"{short(row.first)} and {short(row.second)}, {where}, ρ {plain(row.spearman)}, r"
    return Spot(row.pearson, name, row.key, kind="number")


def _r(value: float) -> str:
    """Format a correlation as papers do: `.31`, `−.05`."""
    return number(value).replace("0.", ".", 1)


def shade(r: float) -> str:
    """Return the colour of a correlation, from blue (−1) over white (0) to orange (1).

    People with any colour vision can distinguish these hues.
    """
    end = INKS["s1"] if r > 0 else INKS["s0"]
    share = min(1.0, abs(r))
    mixed = (round(255 + share * (int(end[i : i + 2], 16) - 255)) for i in (1, 3, 5))
    return "#" + "".join(f"{x:02x}" for x in mixed)


def _scale(drawing: Drawing, x: float, y: float, room: float) -> float:
    """Draw the colour scale from −1 to 1."""
    steps = 21
    for n in range(steps):
        drawing.add(Box(x + n * room / steps, y, room / steps + 0.1, 6, shade(-1 + 2 * n / (steps - 1))))
    drawing.add(Box(x, y, room, 6, "", "grid"))
    for value, text in ((-1, "−1"), (0, "0"), (1, "1")):
        place = x + (value + 1) / 2 * room
        drawing.words(place, y + 13.5, text, size=SMALL - 0.5, ink="quiet", anchor="middle")
    return y + 15


def _notes(data: Levels, kept: Sequence[str], between: bool, models: int) -> list[str]:
    notes = list(data.notes)
    if not between:
        notes.append(f"Between models: needs at least three, here {models}.")
    conditions = sorted({c for c in data.conditions if c})
    if conditions:
        notes.append(f"Replies of {', '.join(conditions)}.")
    named = [NAMED[name] for name in kept if name in NAMED]
    return [*notes, f"{'; '.join(named)}, as judges rate them."] if named else notes
