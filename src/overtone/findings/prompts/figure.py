"""The figure of prompts."""

from __future__ import annotations

from overtone.display import value_rows as grid
from overtone.display.axes import Entry, Spot, close, legend, page
from overtone.display.drawing import SIZE, Drawing, shortened, width_of
from overtone.findings.figure_source import FigureSource, NothingToDraw
from overtone.findings.finding import FindingResult
from overtone.findings.prompts.compute import SIGNATURE, Choice, PromptRow, Prompts
from overtone.results import measure_names
from overtone.results.measures import Estimate
from overtone.text import by_kind

LEAD = (measure_names.C4, measure_names.VES)
ELSE = ("reply_semsim", "style_margin", "emoalign_reference", measure_names.C1)  # without a judge


def draw(source: FigureSource, width: float) -> Drawing:
    """Draw the numbers of each prompt, and the best prompt chosen on held-out scripts beside the best one in-sample."""
    results = source.results_of("prompts", Prompts)
    measures = _measures(results)
    if not any(len({row.prompt for row in _rows(f)}) > 1 for f in results):
        raise NothingToDraw(
            "no run has replies under several prompts: run with `overtone run … --prompt zero,basic,enhance`, into the "
            "same --out"
        )
    if not measures:
        raise NothingToDraw("no reply of these runs is scored: overtone score RUN, or with --judge SPEC for C4 and VES")
    chosen = any(f.data.choices for f in results)
    best = (
        ". Below, over the replies that every prompt has: the best prompt as half of the scripts choose it for the "
        "other half (fair), and as all choose it for themselves (in sample)"
    )
    drawing, y = page(
        width, "How much the prompt matters", f"Each prompt over all its replies{best if chosen else ''}."
    )
    if chosen:
        y = legend(
            drawing, 0, y, width,
            [
                Entry("under one prompt"), Entry("best prompt, fair", "s2", "diamond"),
                Entry("best prompt, in sample", "s1", "diamond", hollow=True),
            ],
        )  # fmt: skip
    blocks = [block for f in results if (block := _block(f, source.labels[f.runs[0]], measures, width)).rows]
    panels = []
    for name in measures:
        percent = measure_names.is_percent(name)
        unit = "percent" if percent else "rating, 1 to 5" if name in (*LEAD, measure_names.C1) else ""
        panels.append(grid.Panel(measure_names.short(name), "percent" if percent else "number", unit))
    y = grid.rows(drawing, y, blocks, panels)
    drawing.text = " ".join(s.text for f in results for s in f.sentences[:1])
    notes = [f"{source.labels[f.runs[0]]}: {note}" for f in results for note in f.data.notes]
    if any(row.basis == "unvalidated" for f in results for row in _rows(f)):
        notes.append("Over unvalidated cues if a run has no others.")
    return close(drawing, y, notes, SIGNATURE)


def _rows(result: FindingResult[Prompts]) -> list[PromptRow]:
    """Return the rows over validated or unmarked cues; if there are none, the rows over unvalidated cues."""
    rows = result.data.rows
    return [row for row in rows if row.basis != "unvalidated"] or rows


def _measures(results: list[FindingResult[Prompts]]) -> list[str]:
    """Return at most two measures: judged measures if there are any, otherwise measures without a judge."""
    scored = {n for f in results for row in _rows(f) for n, e in row.measures.items() if e.value is not None}
    lead = [n for n in LEAD if n in scored]
    return (lead or [n for n in ELSE if n in scored])[:2]


def _block(result: FindingResult[Prompts], label: str, measures: list[str], width: float) -> grid.Block:
    own = _rows(result)
    rows = []
    for row in own:
        spots = [_spot(row.measures.get(n), f"{label}, {row.prompt}", n, result.prefix + row.key) for n in measures]
        if any(spots):
            rows.append(grid.Row(row.prompt, tuple(None if s is None else grid.Place((s,)) for s in spots)))
    choices = [c for c in result.data.choices if not own or c.basis == own[0].basis]
    if not choices:
        return grid.Block(label, tuple(rows))
    for text, in_sample in (("best, fair", False), ("best, in sample", True)):
        places = [_best(choices[0], n, in_sample, label, result.prefix) for n in measures]
        if any(places):
            rows.append(grid.Row(text, tuple(places)))
    optimism = _optimism(choices[0], measures, short=width < grid.WIDE)
    room = width - width_of(optimism, SIZE, bold=True)
    return grid.Block(shortened(label, room, SIZE, bold=True, middle=True) + optimism, tuple(rows))


def _spot(e: Estimate | None, who: str, measure: str, key: str) -> Spot | None:
    if e is None or e.value is None:
        return None
    kind = "percent" if measure_names.is_percent(measure) else "number"
    return Spot(e, f"{who}, {measure_names.short(measure)}", f"{key}/{measure}", kind=kind)  # type: ignore[arg-type]


def _best(choice: Choice, measure: str, in_sample: bool, label: str, prefix: str) -> grid.Place | None:
    e = (choice.in_sample if in_sample else choice.fair).get(measure)
    if e is None or e.value is None:
        return None
    chosen = choice.overall if in_sample else " and ".join(dict.fromkeys(choice.halves))
    who = f"{label}, best prompt by {', '.join(map(measure_names.short, choice.by))} ({chosen}), "
    who += f"{'in sample' if in_sample else 'fair'}, {measure_names.short(measure)}"
    kind = "percent" if measure_names.is_percent(measure) else "number"
    ink = "s1" if in_sample else "s2"
    return grid.Place((Spot(e, who, f"{prefix}{choice.key}/{measure}", ink, "diamond", in_sample, kind),))  # type: ignore[arg-type]


def _optimism(choice: Choice, measures: list[str], short: bool) -> str:
    """Return the optimism of the in-sample choice as text, for the heading of a run."""
    known = {n: e for n in measures if (e := choice.optimism.get(n)) is not None and e.value is not None}
    if short:
        return f"; optimism {', '.join(_gap(n, e) for n, e in known.items())}" if known else ""
    picked = " or ".join(dict.fromkeys(choice.halves))
    gaps = ", ".join(f"{measure_names.short(n)} {_gap(n, e)}" for n, e in known.items())
    return f": best {picked}" + (f"; optimism of the in-sample choice {gaps}" if gaps else "")


def _gap(measure: str, e: Estimate) -> str:
    return by_kind(e.value, "points" if measure_names.is_percent(measure) else "number", sign=True)
