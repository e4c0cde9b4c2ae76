"""The figure of the upper bound: replies with and without the cue in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from overtone.display import value_rows as grid
from overtone.display.axes import (  # fmt: skip
    SMALL,
    Entry,
    Kind,
    Spot,
    axis,
    close,
    domain,
    fitted,
    label,
    legend,
    page,
    placed,
    spot,
)
from overtone.display.drawing import Drawing, Line, Scale, width_of, wrapped
from overtone.findings.figure_source import FigureSource, NothingToDraw, axes_by_scale
from overtone.findings.finding import FindingResult
from overtone.findings.upper.compute import MEASURES, SIGNATURE, Upper, UpperRow
from overtone.results import measure_names
from overtone.results.measures import Estimate

RATED = (measure_names.C1, measure_names.C4, "cspeechrel_implicit", measure_names.VES)
MANY = 3  # with more runs, only C4 and VES are shown
LOOKS = {"base": ("quiet", "circle", True), "right": ("s0", "circle", False), "wrong": ("s1", "diamond", True)}
ROW = 9.5
NARROWEST, GAP = 62.0, 10.0  # the least width of a column of cues, and the gap between two columns, in points


def draw(source: FigureSource, width: float) -> Drawing:
    """Draw replies with no cue stated, the true cue stated and a wrong cue stated, and the sorted gain by cue."""
    results = source.results_of("upper", Upper)
    shown = [(f, row) for f in results for row in _overall(f)]
    if not shown:
        why = "; ".join(dict.fromkeys(note.rstrip(".") for f in results for note in f.data.notes))
        raise NothingToDraw(
            f"no reply has scores with and without the cue stated ({why}): run with `overtone run … --prompt "
            "enhance,oracle,oracle-false`, into the same --out"
        )
    wrong = any(row.wrong is not None for _, row in shown)
    drawing, y = page(
        width,
        "With the cue stated in words: what perfect hearing would give",
        "The same clips without the cue, with the cue stated, and with a wrong one. A gain that a wrong cue also gives "
        "rewards its mention, not hearing.",
    )
    entries = [Entry("cue not stated", *LOOKS["base"][:2], hollow=True), Entry("cue stated, and the gain", "s0")]
    if wrong:
        entries.append(Entry("wrong cue stated, and its difference", "s1", "diamond", hollow=True))
    y = legend(drawing, 0, y, width, entries)
    y = _measures(drawing, y, shown, source)
    lead = _lead(shown)
    y = _cues(drawing, y + 4, results, lead, source)
    drawing.text = " ".join(s.text for f in results for s in f.sentences[:1])
    notes = [f"{source.label(f)}: {note}" for f in results for note in f.data.notes]
    if any(row.basis == "unvalidated" for _, row in shown):
        notes.append("Over unvalidated cues if a run has no others.")
    return close(drawing, y, [*_cue_notes(results, lead), *notes], SIGNATURE)


def _cue_notes(results: Sequence[FindingResult[Upper]], lead: str) -> list[str]:
    rows = [row for f in results for row in _by_cue(f, lead).values()]
    counts = [row.gain.scored for row in rows]
    span = (
        f"{min(counts):,} to {max(counts):,}" if counts and min(counts) < max(counts) else f"{max(counts, default=0):,}"
    )
    per_cue = f", {span} per cue" if counts else ""
    notes = [f"Lines are 95 % intervals, clustered by script; n: replies{per_cue}."]
    if any(row.gain.low is None for row in rows):
        notes.append("A value without a line has too few scripts for an interval.")
    if any(row.basis == "unvalidated" for row in rows):
        notes.append("° The cue is not validated.")
    return notes


def _overall(result: FindingResult[Upper]) -> list[UpperRow]:
    rows = [row for row in result.data.rows if row.by == "overall" and row.gain.value is not None]
    return [row for row in rows if row.basis != "unvalidated"] or rows


def _lead(shown: Sequence[tuple[FindingResult[Upper], UpperRow]]) -> str:
    """Return the measure whose gain is shown by cue: C4 if a judge rated it, otherwise the first measure shown."""
    names = {row.measure for _, row in shown}
    return next((n for n in MEASURES if n in names), "")


# ── measure by measure ──────────────────────────────────────────────────────────────────────────────────────────────


def _measures(
    drawing: Drawing, y: float, shown: Sequence[tuple[FindingResult[Upper], UpperRow]], source: FigureSource
) -> float:
    models = list(dict.fromkeys(f.runs for f, _ in shown))
    names = [n for n in MEASURES if any(row.measure == n for _, row in shown)]
    if len(models) > (MANY if drawing.width >= grid.WIDE else 1):
        names = [n for n in names if n in (measure_names.C4, measure_names.VES)] or names[:2]
    made: list[grid.Group] = []
    for kind, gap, unit, measures in axes_by_scale(names, RATED):
        blocks = []
        for heads in [measures] if len(models) == 1 else [[measure] for measure in measures]:
            rows = [
                _row(
                    measure_names.short(row.measure) if len(models) == 1 else source.label(f), f, row, source, kind, gap
                )
                for f, row in shown
                if row.measure in heads
            ]
            blocks.append(grid.Block("" if len(models) == 1 else measure_names.short(heads[0]), tuple(rows)))
        panels = [
            grid.Panel("Replies", kind, unit, number="cue stated"),
            grid.Panel(
                "Minus cue not stated", gap, "points" if gap == "points" else "difference", zero=0.0, number="gain"
            ),
        ]
        made.append((blocks, panels))
    return grid.groups(drawing, y, made) + 8


def _row(
    label: str, result: FindingResult[Upper], row: UpperRow, source: FigureSource, kind: Kind, gap: Kind
) -> grid.Row:
    key = result.prefix + row.key
    who = f"{source.label(result)}, {measure_names.short(row.measure)}"
    base = Spot(row.base, f"{who}, cue not stated", key, *LOOKS["base"], kind)
    right = Spot(row.right, f"{who}, cue stated", key, *LOOKS["right"], kind)
    spots = [base, right]
    if row.wrong is not None:
        spots.append(Spot(row.wrong, f"{who}, wrong cue stated", key, *LOOKS["wrong"], kind))
    gains = _gains(result, row, who, gap)
    return grid.Row(label, (grid.Place(tuple(spots), written=right), grid.Place(tuple(gains), written=gains[0])))


def _gains(result: FindingResult[Upper], row: UpperRow, who: str, kind: Kind) -> list[Spot]:
    key = result.prefix + row.key
    gains = [Spot(row.gain, f"{who}, gain from the stated cue", key, *LOOKS["right"], kind)]
    if row.survives is not None:
        gains.append(Spot(row.survives, f"{who}, difference with a wrong cue stated", key, *LOOKS["wrong"], kind))
    return gains


# ── cue by cue ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _by_cue(result: FindingResult[Upper], measure: str) -> dict[str, UpperRow]:
    rows = [r for r in result.data.rows if r.by == "cue" and r.measure == measure and r.gain.value is not None]
    return {
        r.name: r for r in sorted(rows, key=lambda r: r.basis != "unvalidated")
    }  # rows over validated cues come last and replace the others


def _cues(
    drawing: Drawing, y: float, results: Sequence[FindingResult[Upper]], measure: str, source: FigureSource
) -> float:
    """Draw a column for each run, with the cues sorted by their gain over all runs. Columns wrap to further lines."""
    columns = [(f, rows) for f in results if (rows := _by_cue(f, measure))]
    gains: dict[str, list[float]] = {}
    for _, rows in columns:
        for name, row in rows.items():
            gains.setdefault(name, []).append(row.gain.value or 0.0)
    if len(gains) < 2:
        return y - 4
    names = sorted(gains, key=lambda n: (-sum(gains[n]) / len(gains[n]), n))
    unsure = {name for _, rows in columns for name, row in rows.items() if row.basis == "unvalidated"}
    texts = [name + (" °" if name in unsure else "") for name in names]
    left = min(max(width_of(t, SMALL) for t in texts) + 6, 0.3 * drawing.width)
    most = max(1, int((drawing.width - left + GAP) // (NARROWEST + GAP)))
    across = math.ceil(len(columns) / math.ceil(len(columns) / most))
    room = (drawing.width - left - GAP * (across - 1)) / across
    kind: Kind = "points" if measure_names.is_percent(measure) else "number"
    every = [s.estimate for f, rows in columns for row in rows.values() for s in _gains(f, row, "", kind)]
    scale = domain(_reach(every), 0.0)
    title = f"{measure_names.short(measure)} by cue: difference from cue not stated"
    for line in wrapped(title, drawing.width, SMALL, bold=True):
        y += 8.5
        drawing.words(0, y, line, size=SMALL, bold=True)
    y += 5
    labels = fitted([source.label(f) for f, _ in columns], room, 1.13 * SMALL)  # bold
    for start in range(0, len(columns), across):
        band = list(zip(columns, labels, strict=True))[start : start + across]
        top = y + (12 if len(columns) > 1 else 3)
        bottom = top + ROW * len(names)
        below = bottom
        for number, ((result, rows), cut) in enumerate(band):
            x = left + number * (room + GAP)
            if len(columns) > 1:
                label(drawing, x, y + 8, source.label(result), cut, size=SMALL, bold=True)
            here = placed(scale, x + 3, x + room - 3)
            below = max(below, axis(drawing, here, top, bottom, kind, zero=0.0))
            for at, name in enumerate(names):
                if name in rows:
                    who = f"{source.label(result)}, {name}, {measure_names.short(measure)}"
                    _cue(drawing, here, top + ROW * (at + 0.5), _gains(result, rows[name], who, kind))
        for at, text in enumerate(fitted(texts, left - 6, SMALL)):
            drawing.words(0, top + ROW * (at + 0.5) + 2.5, text, size=SMALL)
        y = below + 6
    return y - 6


def _reach(estimates: Sequence[Estimate]) -> list[Estimate | float | None]:
    """Return the numbers that the axis must cover: every value, and the ends of intervals, cut at half the range
    beyond the values."""
    values = [e.value for e in estimates if e.value is not None]
    span = (max(values) - min(values)) or 1.0
    low, high = min(values) - span / 2, max(values) + span / 2
    ends = [x for e in estimates for x in (e.low, e.high) if x is not None]
    return [*values, *(min(max(x, low), high) for x in ends)]


def _cue(drawing: Drawing, scale: Scale, y: float, spots: Sequence[Spot]) -> None:
    for number, one in enumerate(spots):
        at = y + (0.0 if len(spots) == 1 else (-1.8, 1.8)[number])
        for mark in spot(scale, at, one, size=2.0):
            drawing.add(_cut(mark, scale) if isinstance(mark, Line) else mark)


def _cut(line: Line, scale: Scale) -> Line:
    """Cut an interval at the ends of the axis."""
    ends = tuple((min(max(x, scale.start), scale.end), y) for x, y in line.points)
    return msgspec.structs.replace(line, points=ends)
