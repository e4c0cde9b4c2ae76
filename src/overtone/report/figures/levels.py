"""Correlation matrix: how far hearing, reasoning and replying go together, within models and between them."""

from __future__ import annotations

from collections.abc import Sequence

from overtone.analysis import said
from overtone.analysis.levels import SIGNATURE, LevelRow, Levels
from overtone.analysis.outcomes import label
from overtone.report.drawing import INKS, Box, Drawing, Line, Scale, Words, on, shortened, width_of
from overtone.report.figures import NothingToDraw, Source
from overtone.report.figures import _axes as axes
from overtone.report.figures._axes import SMALL, Spot

TITLE = "Which levels go together"
WITHIN, BETWEEN = ("case", "within"), ("model", "between")
NOTHING = (
    "the runs have fewer than two measures in common cases: ask more levels ('overtone run … --levels 1,2,3'), score "
    "and judge the replies"
)
NAMED = {"cctxfit": "C1: context fit", "cspeechrel": "C4: speech relevance", "ves": "VES: vocal empathy"}


def draw(source: Source, width: float) -> Drawing:
    benchmarks = list(dict.fromkeys(reading.benchmark for reading in source.readings))
    if len(benchmarks) > 1:
        raise NothingToDraw(
            f"levels do not average over benchmarks ({', '.join(benchmarks)}); give runs of one of them"
        )
    finding = source.findings("levels")[0]
    found = finding.found
    assert isinstance(found, Levels)
    bases = dict.fromkeys(row.basis for row in found.rows)
    basis = next((b for b in bases if b != "unvalidated"), next(iter(bases), ""))
    rows = {(row.level, row.scope, frozenset((row.first, row.second))): row for row in found.rows if row.basis == basis}
    names = [n for n in found.measures if any(n in pair for *_, pair in rows)]
    if len(names) < 2:
        raise NothingToDraw(NOTHING)
    models = len(set(source.labels))
    between = any(
        row.scope == "between" and row.level == "model" and row.pearson.value is not None for row in rows.values()
    )
    drawing, y = axes.page(width, TITLE, _subtitle(basis, between))
    labels = [label(name) for name in names]
    room = min(max(width_of(text) for text in labels), width * 0.32)
    cell = min(46.0, (width - room - 6) / (len(names) + 0.6))
    tall = max(14.0, min(cell, 26.0))
    cut = axes.fitted(labels, room)
    steep = cell < 34
    short = [shortened(text, 84, SMALL, middle=True) for text in labels]
    y += max(width_of(text, SMALL) for text in short) * (1.0 if steep else 0.643) + (3 if steep else SMALL)
    left = room + 6
    for n, text in enumerate(short):
        x = left + (n + 0.5) * cell + (2.5 if steep else 0)
        drawing.add(Words(x, y - 3, text, size=SMALL, turn=-90.0 if steep else -40.0, title=labels[n]))
    texts = [_r(row.pearson.value) for row in rows.values() if row.pearson.value is not None]
    size = next((x for x in (SMALL, 6.5, 6.0, 5.5) if all(width_of(t, x, bold=True) <= cell for t in texts)), 5.0)
    for i, first in enumerate(names):
        axes.label(drawing, room, y + i * tall + tall / 2 + 2.8, labels[i], cut[i], anchor="end")
        for j, second in enumerate(names):
            box = (left + j * cell, y + i * tall, cell, tall)
            if i == j:
                drawing.add(Box(*box, fill="grid"))
                continue
            if i < j and not between:
                continue
            level, scope = WITHIN if i > j else BETWEEN
            _cell(drawing, box, rows.get((level, scope, frozenset((first, second)))), size)
    bottom = y + len(names) * tall
    y = _scale(drawing, left, bottom + 8, min(len(names) * cell, 150.0))
    drawing.text = " ".join(sentence.text for sentence in finding.sentences)
    return axes.close(drawing, y, _notes(found, between, models), SIGNATURE)


def _subtitle(basis: str, between: bool) -> str:
    upper = " Above: r between models." if between else ""
    unsure = " Cues not validated." if basis == "unvalidated" else ""
    return (
        f"Below the diagonal: Pearson’s r from case to case within a model.{upper} Bold: the 95 % interval excludes 0. "
        f"Grey: without an interval. Hatched: cannot be told.{unsure}"
    )


def _cell(drawing: Drawing, box: tuple[float, float, float, float], row: LevelRow | None, size: float) -> None:
    x, y, width, height = box
    if row is None or row.pearson.value is None:
        why = "" if row is None else _spot(row).title
        axes.hatched(drawing, Box(x, y, width, height, "paper", "grid", key=row.key if row else "", title=why))
        return
    one = _spot(row)
    value, low, high = row.pearson.value, row.pearson.low, row.pearson.high
    known = low is not None and high is not None
    fill = shade(value) if known else "paper"
    ink = on(fill) if known else "quiet"
    drawing.add(Box(x, y, width, height, fill, "paper" if known else "grid", key=one.key, title=one.title))
    ends = f"{_r(low)} to {_r(high)}" if low is not None and high is not None else ""
    roomy = height >= 20 and width_of(ends, 5.5) <= width - 2
    base = y + height / 2 + (-0.5 if roomy and ends else 2.6)
    bold = said.tells(row.pearson)
    drawing.add(Words(x + width / 2, base, _r(value), ink, size, "middle", bold, key=one.key, title=one.title))
    if roomy:
        drawing.add(Words(x + width / 2, base + 7.5, ends, ink, 5.5, "middle", key=one.key, title=one.title))
    elif low is not None and high is not None:  # no room for numbers: a line from −1 to 1
        place = Scale(-1, 1, x + 1, x + width - 1)
        at = y + height - 2.5
        drawing.add(Line(((place(low), at), (place(high), at)), ink, 0.9, key=one.key, title=one.title))


def _spot(row: LevelRow) -> Spot:
    where = {"within": "from case to case within a model", "between": f"between {row.models} models"}[row.scope]
    name = f"{label(row.first)} and {label(row.second)}, {where}, ρ {said.plain(row.spearman)}, r"
    return Spot(row.pearson, name, row.key, kind="number")


def _r(value: float) -> str:
    """A correlation as papers write it: `.31`, `−.05`."""
    text = f"{round(value, 2) + 0.0:.2f}".replace("-", "−")
    return text.replace("0.", ".", 1) if "0." in text else text


def shade(r: float) -> str:
    """From blue (−1) over white (0) to orange (1): two hues that any eye tells apart."""
    end = INKS["s1"] if r > 0 else INKS["s0"]
    share = min(1.0, abs(r))
    mixed = (round(255 + share * (int(end[i : i + 2], 16) - 255)) for i in (1, 3, 5))
    return "#" + "".join(f"{x:02x}" for x in mixed)


def _scale(drawing: Drawing, x: float, y: float, room: float) -> float:
    """The colours from −1 to 1."""
    steps = 21
    for n in range(steps):
        drawing.add(Box(x + n * room / steps, y, room / steps + 0.1, 6, shade(-1 + 2 * n / (steps - 1))))
    drawing.add(Box(x, y, room, 6, "", "grid"))
    for value, text in ((-1, "−1"), (0, "0"), (1, "1")):
        place = x + (value + 1) / 2 * room
        drawing.words(place, y + 13.5, text, size=SMALL - 0.5, ink="quiet", anchor="middle")
    return y + 15


def _notes(found: Levels, between: bool, models: int) -> list[str]:
    notes = list(found.notes)
    if not between:
        notes.append(f"Between models: needs at least three, here {models}.")
    told: Sequence[str] = sorted({c for c in found.conditions if c})
    if told:
        notes.append(f"Replies of {', '.join(told)}.")
    named = [NAMED[name] for name in found.measures if name in NAMED]
    return [*notes, f"{'; '.join(named)}, as judges rate them."] if named else notes
