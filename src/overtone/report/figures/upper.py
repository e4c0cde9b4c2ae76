"""Told the cue: replies without it, told it, and told a wrong one, by measure; and the gain cue by cue, sorted."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from overtone.analysis import named
from overtone.analysis.findings import Finding
from overtone.analysis.measures import Estimate
from overtone.analysis.upper import MEASURES, SIGNATURE, Upper, UpperRow
from overtone.report.drawing import Drawing, Line, Scale, width_of, wrapped
from overtone.report.figures import NothingToDraw, Source
from overtone.report.figures import _rows as grid
from overtone.report.figures._axes import (
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
)  # fmt: skip

RATED = (named.C1, named.C4, "cspeechrel_implicit", named.VES)
MANY = 3  # runs from which only the measures that matter most are shown
LOOKS = {"base": ("quiet", "circle", True), "right": ("s0", "circle", False), "wrong": ("s1", "diamond", True)}
ROW = 9.5
NARROWEST, GAP = 62.0, 10.0  # of one run's column of cues, and between two


def draw(source: Source, width: float) -> Drawing:
    found = source.findings("upper")
    shown = [(f, row) for f in found for row in _overall(f)]
    if not shown:
        why = "; ".join(dict.fromkeys(note.rstrip(".") for f in found for note in f.notes))
        raise NothingToDraw(
            f"no reply was asked for with and without the cue told, and scored ({why}): ask with `overtone run … "
            "--prompt enhance,oracle,oracle-false`, into the same --out"
        )
    wrong = any(row.wrong is not None for _, row in shown)
    drawing, y = page(
        width,
        "Told the cue in words: what perfect hearing would give",
        "The same clips without the cue told, with it, and with a wrong one. A gain that a wrong cue gives as well is "
        "for mentioning something, not for hearing it.",
    )
    entries = [Entry("not told", *LOOKS["base"][:2], hollow=True), Entry("told the cue, and the gain", "s0")]
    if wrong:
        entries.append(Entry("told a wrong cue, and its difference", "s1", "diamond", hollow=True))
    y = legend(drawing, 0, y, width, entries)
    y = _measures(drawing, y, shown, source)
    lead = _lead(shown)
    y = _cues(drawing, y + 4, found, lead, source)
    drawing.text = " ".join(s.text for f in found for s in f.sentences[:1])
    notes = [f"{_who(f, source)}: {note}" for f in found for note in f.notes]
    if any(row.basis == "unvalidated" for _, row in shown):
        notes.append("Over cues that are not validated, where there are no others.")
    return close(drawing, y, [*_of_cues(found, lead), *notes], SIGNATURE)


def _of_cues(found: Sequence[Finding], lead: str) -> list[str]:
    rows = [row for f in found for row in _by_cue(f, lead).values()]
    counts = [row.gain.scored for row in rows]
    span = (
        f"{min(counts):,} to {max(counts):,}" if counts and min(counts) < max(counts) else f"{max(counts, default=0):,}"
    )
    of = f"; of a cue {span}" if counts else ""
    notes = [f"Lines are 95 % intervals by script; n: replies{of}."]
    if any(row.gain.low is None for row in rows):
        notes.append("A value without a line is of too few scripts to have an interval.")
    if any(row.basis == "unvalidated" for row in rows):
        notes.append("° The cue is not validated.")
    return notes


def _who(finding: Finding, source: Source) -> str:
    return " + ".join(dict.fromkeys(source.labels[n] for n in finding.runs))


def _overall(finding: Finding) -> list[UpperRow]:
    assert isinstance(finding.found, Upper)
    rows = [row for row in finding.found.rows if row.by == "overall" and row.gain.value is not None]
    return [row for row in rows if row.basis != "unvalidated"] or rows


def _lead(shown: Sequence[tuple[Finding, UpperRow]]) -> str:
    """The measure that cues are sorted by: C4 where a judge gave it."""
    names = {row.measure for _, row in shown}
    return next((n for n in MEASURES if n in names), "")


# ── measure by measure ──────────────────────────────────────────────────────────────────────────────────────────────


def _measures(drawing: Drawing, y: float, shown: Sequence[tuple[Finding, UpperRow]], source: Source) -> float:
    models = list(dict.fromkeys(f.runs for f, _ in shown))
    names = [n for n in MEASURES if any(row.measure == n for _, row in shown)]
    if len(models) > (MANY if drawing.width >= grid.WIDE else 1):
        names = [n for n in names if n in (named.C4, named.VES)] or names[:2]
    rated = [n for n in names if n in RATED]
    kinds: list[tuple[Kind, Kind, str, list[str]]] = [("number", "number", "rating, 1 to 5", rated)] if rated else []
    if percent := [n for n in names if named.is_percent(n)]:
        kinds.append(("percent", "points", "percent", percent))
    kinds += [("number", "number", named.short(n), [n]) for n in names if n not in rated and n not in percent]
    made: list[grid.Group] = []
    for kind, gap, unit, measures in kinds:
        blocks = []
        for heads in [measures] if len(models) == 1 else [[measure] for measure in measures]:
            rows = [
                _row(named.short(row.measure) if len(models) == 1 else _who(f, source), f, row, source, kind, gap)
                for f, row in shown
                if row.measure in heads
            ]
            blocks.append(grid.Block("" if len(models) == 1 else named.short(heads[0]), tuple(rows)))
        panels = [
            grid.Panel("Replies", kind, unit, number="told the cue"),
            grid.Panel(
                "Less those not told", gap, "points" if gap == "points" else "difference", zero=0.0, number="gain"
            ),
        ]
        made.append((blocks, panels))
    return grid.groups(drawing, y, made) + 8


def _row(label: str, finding: Finding, row: UpperRow, source: Source, kind: Kind, gap: Kind) -> grid.Row:
    key = finding.prefix + row.key
    who = f"{_who(finding, source)}, {named.short(row.measure)}"
    base = Spot(row.base, f"{who}, not told the cue", key, *LOOKS["base"], kind)
    right = Spot(row.right, f"{who}, told the cue", key, *LOOKS["right"], kind)
    spots = [base, right]
    if row.wrong is not None:
        spots.append(Spot(row.wrong, f"{who}, told a wrong cue", key, *LOOKS["wrong"], kind))
    gains = _gains(finding, row, who, gap)
    return grid.Row(label, (grid.Place(tuple(spots), written=right), grid.Place(tuple(gains), written=gains[0])))


def _gains(finding: Finding, row: UpperRow, who: str, kind: Kind) -> list[Spot]:
    key = finding.prefix + row.key
    gains = [Spot(row.gain, f"{who}, gain when told the cue", key, *LOOKS["right"], kind)]
    if row.survives is not None:
        gains.append(Spot(row.survives, f"{who}, difference when told a wrong cue", key, *LOOKS["wrong"], kind))
    return gains


# ── cue by cue ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _by_cue(finding: Finding, measure: str) -> dict[str, UpperRow]:
    assert isinstance(finding.found, Upper)
    rows = [r for r in finding.found.rows if r.by == "cue" and r.measure == measure and r.gain.value is not None]
    return {
        r.name: r for r in sorted(rows, key=lambda r: r.basis != "unvalidated")
    }  # validated ones come last, and stay


def _cues(drawing: Drawing, y: float, found: Sequence[Finding], measure: str, source: Source) -> float:
    """A column for each run, cues sorted by their gain over all runs; as many columns as fit, then below each other."""
    columns = [(f, rows) for f in found if (rows := _by_cue(f, measure))]
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
    kind: Kind = "points" if named.is_percent(measure) else "number"
    every = [s.estimate for f, rows in columns for row in rows.values() for s in _gains(f, row, "", kind)]
    scale = domain(_reach(every), 0.0)
    title = f"{named.short(measure)} cue by cue: difference from not told"
    for line in wrapped(title, drawing.width, SMALL, bold=True):
        y += 8.5
        drawing.words(0, y, line, size=SMALL, bold=True)
    y += 5
    labels = fitted([_who(f, source) for f, _ in columns], room, 1.13 * SMALL)  # bold
    for start in range(0, len(columns), across):
        band = list(zip(columns, labels, strict=True))[start : start + across]
        top = y + (12 if len(columns) > 1 else 3)
        bottom = top + ROW * len(names)
        below = bottom
        for number, ((finding, rows), cut) in enumerate(band):
            x = left + number * (room + GAP)
            if len(columns) > 1:
                label(drawing, x, y + 8, _who(finding, source), cut, size=SMALL, bold=True)
            here = placed(scale, x + 3, x + room - 3)
            below = max(below, axis(drawing, here, top, bottom, kind, zero=0.0))
            for at, name in enumerate(names):
                if name in rows:
                    who = f"{_who(finding, source)}, {name}, {named.short(measure)}"
                    _cue(drawing, here, top + ROW * (at + 0.5), _gains(finding, rows[name], who, kind))
        for at, text in enumerate(fitted(texts, left - 6, SMALL)):
            drawing.words(0, top + ROW * (at + 0.5) + 2.5, text, size=SMALL)
        y = below + 6
    return y - 6


def _reach(estimates: Sequence[Estimate]) -> list[Estimate | float | None]:
    """What the axis has to hold: every value, and the ends of intervals where they are not far named."""
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
    """An interval as far as the axis reaches."""
    ends = tuple((min(max(x, scale.start), scale.end), y) for x, y in line.points)
    return msgspec.structs.replace(line, points=ends)
