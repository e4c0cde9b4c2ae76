"""What the prompt does: each prompt's numbers by run, and the best one chosen fairly beside the flattering choice."""

from __future__ import annotations

from overtone.analysis import named
from overtone.analysis.findings import Finding
from overtone.analysis.measures import Estimate
from overtone.analysis.prompts import SIGNATURE, Choice, PromptRow, Prompts
from overtone.report.drawing import SIZE, Drawing, shortened, width_of
from overtone.report.figures import NothingToDraw, Source
from overtone.report.figures import _rows as grid
from overtone.report.figures._axes import Entry, Spot, close, legend, page

LEAD = (named.C4, named.VES)
ELSE = ("reply_semsim", "style_margin", "emoalign_reference", named.C1)  # where nobody judged


def draw(source: Source, width: float) -> Drawing:
    found = source.findings("prompts")
    measures = _measures(found)
    if not any(len({row.prompt for row in _rows(f)}) > 1 for f in found):
        raise NothingToDraw(
            "no run has replies under several prompts: ask with `overtone run … --prompt zero,basic,enhance`, into the "
            "same --out"
        )
    if not measures:
        raise NothingToDraw("no reply of these runs is scored: overtone score RUN, or with --judge SPEC for C4 and VES")
    chosen = any(isinstance(f.found, Prompts) and f.found.choices for f in found)
    best = (
        "; below, over the replies that every prompt has, the best prompt as half of the scripts choose it for the "
        "other half (fair) and as all choose it for themselves (in sample)"
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
    blocks = [block for f in found if (block := _block(f, source.labels[f.runs[0]], measures, width)).rows]
    panels = []
    for name in measures:
        percent = named.is_percent(name)
        unit = "percent" if percent else "rating, 1 to 5" if name in (*LEAD, named.C1) else ""
        panels.append(grid.Panel(named.short(name), "percent" if percent else "number", unit))
    y = grid.rows(drawing, y, blocks, panels)
    drawing.text = " ".join(s.text for f in found for s in f.sentences[:1])
    notes = [f"{source.labels[f.runs[0]]}: {note}" for f in found for note in f.notes]
    if any(row.basis == "unvalidated" for f in found for row in _rows(f)):
        notes.append("Over cues that are not validated, where a run has no others.")
    return close(drawing, y, notes, SIGNATURE)


def _rows(finding: Finding) -> list[PromptRow]:
    """Of validated or unmarked cues; of the others where there are no such."""
    assert isinstance(finding.found, Prompts)
    rows = finding.found.rows
    return [row for row in rows if row.basis != "unvalidated"] or rows


def _measures(found: list[Finding]) -> list[str]:
    """At most two: what judges said, or what else was scored."""
    scored = {n for f in found for row in _rows(f) for n, e in row.measures.items() if e.value is not None}
    lead = [n for n in LEAD if n in scored]
    return (lead or [n for n in ELSE if n in scored])[:2]


def _block(finding: Finding, label: str, measures: list[str], width: float) -> grid.Block:
    assert isinstance(finding.found, Prompts)
    found = _rows(finding)
    rows = []
    for row in found:
        spots = [_spot(row.measures.get(n), f"{label}, {row.prompt}", n, finding.prefix + row.key) for n in measures]
        if any(spots):
            rows.append(grid.Row(row.prompt, tuple(None if s is None else grid.Place((s,)) for s in spots)))
    choices = [c for c in finding.found.choices if not found or c.basis == found[0].basis]
    if not choices:
        return grid.Block(label, tuple(rows))
    for text, flattering in (("best, fair", False), ("best, in sample", True)):
        places = [_best(choices[0], n, flattering, label, finding.prefix) for n in measures]
        if any(places):
            rows.append(grid.Row(text, tuple(places)))
    told = _optimism(choices[0], measures, short=width < grid.WIDE)
    room = width - width_of(told, SIZE, bold=True)
    return grid.Block(shortened(label, room, SIZE, bold=True, middle=True) + told, tuple(rows))


def _spot(e: Estimate | None, who: str, measure: str, key: str) -> Spot | None:
    if e is None or e.value is None:
        return None
    kind = "percent" if named.is_percent(measure) else "number"
    return Spot(e, f"{who}, {named.short(measure)}", f"{key}/{measure}", kind=kind)  # type: ignore[arg-type]


def _best(choice: Choice, measure: str, flattering: bool, label: str, prefix: str) -> grid.Place | None:
    e = (choice.in_sample if flattering else choice.fair).get(measure)
    if e is None or e.value is None:
        return None
    chosen = choice.overall if flattering else " and ".join(dict.fromkeys(choice.halves))
    who = f"{label}, best prompt by {', '.join(map(named.short, choice.by))} ({chosen}), "
    who += f"{'in sample' if flattering else 'fair'}, {named.short(measure)}"
    kind = "percent" if named.is_percent(measure) else "number"
    ink = "s1" if flattering else "s2"
    return grid.Place((Spot(e, who, f"{prefix}{choice.key}/{measure}", ink, "diamond", flattering, kind),))  # type: ignore[arg-type]


def _optimism(choice: Choice, measures: list[str], short: bool) -> str:
    """What choosing in sample flatters by, for the heading of a run."""
    known = {n: e for n in measures if (e := choice.optimism.get(n)) is not None and e.value is not None}
    if short:
        return f"; optimism {', '.join(_gap(n, e) for n, e in known.items())}" if known else ""
    picked = " or ".join(dict.fromkeys(choice.halves))
    gaps = ", ".join(f"{named.short(n)} {_gap(n, e)}" for n, e in known.items())
    return f": best {picked}" + (f"; optimism of the in-sample choice {gaps}" if gaps else "")


def _gap(measure: str, e: Estimate) -> str:
    scale, digits = (100.0, 1) if named.is_percent(measure) else (1.0, 2)
    text = f"{scale * (e.value or 0.0):+.{digits}f}"
    return (text if text.strip("+-0.") else text.lstrip("+-")).replace("-", "−")
