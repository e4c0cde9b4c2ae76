"""The figure of sensitivity: answers to one script in several deliveries."""

from __future__ import annotations

from collections.abc import Sequence

from overtone.display import axes as axes
from overtone.display.axes import Entry, Spot
from overtone.display.drawing import Drawing, series
from overtone.display.value_rows import Panel, Place, blocks, groups
from overtone.findings.figure_source import FigureSource, NothingToDraw
from overtone.findings.finding import FindingResult
from overtone.findings.sensitivity.answer_pairs import RENDERING, REPEAT
from overtone.findings.sensitivity.compute import NOTHING as KINDS
from overtone.findings.sensitivity.compute import Counterfactual, FalseCueRow, ReplyRow, SensitivityRow, SpecificityRow
from overtone.results.measures import Estimate
from overtone.results.wording import headline

TITLE = "Same words, another voice"
NOTHING = (
    "these runs have no questions on several deliveries of a script with known correct answers: run a benchmark that "
    "has them ('overtone run open') with --levels 1,2 and all --styles, then 'overtone score RUN'"
)
ANSWERS = (
    Panel("Answers that change", "percent", "% of pairs of answers", 0.0, number="difference"),
    Panel("Correct on both clips minus swapped", "points", "points", zero=0.0, number="points"),
)
CUES = (
    Panel(
        "Clips on which a cue is named: with a cue ●, without ○",
        "percent",
        "% of clips",
        0.0,
        1.0,
        number="with one, %",
    ),
    Panel("Detection of cues", "number", "d′", zero=0.0, number="d′"),
)
REPLIES = (
    Panel("Replies nearest to their own references", "percent", "% of scripts", 0.0, 1.0, number="%"),
    Panel("Similarity to the own reference minus the others", "number", "style sensitivity", zero=0.0),
)
LEGEND = {
    "": Entry("another voice", "ink"),
    RENDERING: Entry("nothing changed: a second rendering", "ink", hollow=True),
    REPEAT: Entry("nothing changed: asked again", "quiet", "cross"),
    "chance": Entry("blind guessing", "quiet", "dashed"),
}


def draw(source: FigureSource, width: float) -> Drawing:
    """Draw how often answers change with the voice, how often correctly, and how often a cue is named.

    The last share is drawn for clips with a cue and for clips without one.
    """
    results = source.results_of("sensitivity", Counterfactual)
    answers = _answers(source, results)
    cued = [(f.runs[0], _cue(source, f, row)) for f in results if (row := _false_cue(source, f)) is not None]
    replies = _replies(source, results)
    if not answers and not cued and not replies:
        raise NothingToDraw(NOTHING)
    drawing, y = axes.page(width, TITLE, source.with_name("lines are 95 % intervals, clustered by script."))
    y = axes.legend(drawing, 0, y, width, [LEGEND[name] for name in _shown(results, answers, replies)])
    several = ((answers, ANSWERS), ([("False cues", cued)] if cued else [], CUES), (replies, REPLIES))
    y = groups(drawing, y, [(blocks(width, source.labels, shown), panels) for shown, panels in several if shown])
    drawing.text = " ".join(s.text for f in results for s in f.sentences)
    signatures = dict.fromkeys(f.data.signature for f in results)
    return axes.close(drawing, y, _notes(answers, cued), " · ".join(signatures))


Parts = list[tuple[str, list[tuple[int, tuple[Place | None, ...]]]]]


def _shown(results: Sequence[FindingResult[Counterfactual]], answers: Parts, replies: Parts) -> list[str]:
    """Return the legend entries of the marks that the figure draws."""
    still = {row.nothing for result in results for row in result.data.specificity if row.stays.scored}
    kinds = ["", *(kind for kind in (RENDERING, REPEAT) if kind in still)] if answers else []
    guessed = any(place and place.chance is not None for _, runs in replies for _, places in runs for place in places)
    return [*kinds, *(["chance"] if guessed else [])]


def _answers(source: FigureSource, results: Sequence[FindingResult[Counterfactual]]) -> Parts:
    condition = f"task/{source.settings.input}"
    parts: Parts = []
    for level in ("understanding", "reasoning"):
        of_runs: list[tuple[int, tuple[Place | None, ...]]] = []
        for result in results:
            moved, still = result.data.sensitivity, result.data.specificity
            mine = [r for r in moved if (r.condition, r.level) == (condition, level) and r.sensitivity.scored]
            for row in headline(mine)[:1]:
                same = [r for r in still if (r.condition, r.level, r.basis) == (condition, level, row.basis)]
                kept = {r.nothing: r for r in reversed(same) if r.by == "overall" and r.stays.scored}
                of_runs.append((result.runs[0], _places(source, result, row, kept)))
        if of_runs:
            parts.append((level.capitalize(), of_runs))
    return parts


def _places(
    source: FigureSource, result: FindingResult[Counterfactual], row: SensitivityRow, still: dict[str, SpecificityRow]
) -> tuple[Place, Place]:
    number = result.runs[0]
    ink, shape = series(number)
    key, name = result.prefix + row.key, f"{source.labels[number]}, {row.level}"
    spots = [Spot(row.changed, f"{name}, answers that change with the voice", key, ink, shape)]
    gap = None
    for kind, words in KINDS.items():
        if (other := still.get(kind)) is not None:
            label = f"{name}, answers that do not stay: {words}"
            look = (ink, shape, True) if kind == RENDERING else ("quiet", "cross", False)
            spots.append(Spot(_complement(other.stays), label, result.prefix + other.key, *look))
            more = f"{name}, how much more often answers to the same questions change with the voice ({words})"
            if gap is None or gap.estimate.value is None:
                gap = Spot(other.excess, more, f"{result.prefix}{other.key}/excess", kind="points")
    missing = Spot(Estimate(None, None, None, row.changed.scored, row.changed.asked), f"{name}, difference", key)
    direction = f"{name}, correct on both clips minus swapped"
    return (
        Place(tuple(spots), gap or missing),
        Place((Spot(row.direction, direction, key, ink, shape, kind="points"),)),
    )


def _complement(e: Estimate) -> Estimate:
    """Return 1 minus a rate."""

    def minus(x: float | None) -> float | None:
        return None if x is None else 1 - x

    return Estimate(minus(e.value), minus(e.high), minus(e.low), e.scored, e.asked, scripts=e.scripts, note=e.note)


def _false_cue(source: FigureSource, result: FindingResult[Counterfactual]) -> FalseCueRow | None:
    condition = f"task/{source.settings.input}"
    mine = [r for r in result.data.false_cues if r.condition == condition and r.detection.hit.scored]
    return min(mine, key=lambda r: r.detection.basis == "unvalidated", default=None)


def _cue(source: FigureSource, result: FindingResult[Counterfactual], row: FalseCueRow) -> tuple[Place, Place]:
    number = result.runs[0]
    ink, shape = series(number)
    key, name = result.prefix + row.key, source.labels[number]
    detected = row.detection
    hit = Spot(detected.hit, f"{name}, a cue named on clips with one", f"{key}/hit", ink, shape)
    alarm = Spot(
        detected.false_alarm, f"{name}, a cue named on clips without one", f"{key}/false-alarm", ink, shape, hollow=True
    )
    return Place((hit, alarm)), Place((Spot(detected.d_prime, f"{name}, d′", key, ink, shape, kind="number"),))


def _replies(source: FigureSource, results: Sequence[FindingResult[Counterfactual]]) -> Parts:
    of_size: dict[int, list[tuple[int, tuple[Place | None, ...]]]] = {}
    for result in results:
        condition = source.conditions[result.runs[0]]
        mine = [r for r in result.data.replies if r.condition == condition and r.style.squares]
        sure = [r for r in mine if r.style.basis != "unvalidated"] or mine
        for row in sure:
            of_size.setdefault(row.style.styles, []).append((result.runs[0], _reply(source, result, row)))
    return [(f"Replies to {size} deliveries", of_runs) for size, of_runs in sorted(of_size.items(), reverse=True)]


def _reply(source: FigureSource, result: FindingResult[Counterfactual], row: ReplyRow) -> tuple[Place, Place]:
    number = result.runs[0]
    ink, shape = series(number)
    key, name = result.prefix + row.key, f"{source.labels[number]}, {row.condition}"
    style = row.style
    own = Spot(style.assignment, f"{name}, replies nearest to their own references", key, ink, shape)
    more = Spot(style.sensitivity, f"{name}, style sensitivity", key, ink, shape, kind="number", digits=3)
    return Place((own,), chance=style.chance), Place((more,))


def _notes(answers: Parts, cued: Sequence[object]) -> list[str]:
    notes = []
    spots = [p.spots for _, of_runs in answers for _, places in of_runs for p in places[:1] if p is not None]
    if any(len(few) == 1 for few in spots):
        notes.append(
            "A row without ○ has no measurement of “nothing changed”: run with --repeats 2, or use a set that has "
            "control clips."
        )
    if answers and not cued:
        notes.append("No false-cue questions were asked: there is no d′.")
    return notes
