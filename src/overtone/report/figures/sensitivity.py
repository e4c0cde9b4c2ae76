"""Same words, another voice: do answers change when the voice does, rightly so, and is a cue told from none?"""

from __future__ import annotations

from collections.abc import Sequence

from overtone.analysis import said
from overtone.analysis.counterfactual import NOTHING as KINDS
from overtone.analysis.counterfactual import Counterfactual, FalseCueRow, ReplyRow, SensitivityRow, SpecificityRow
from overtone.analysis.counterfactual_pairs import RENDERING, REPEAT
from overtone.analysis.findings import Finding
from overtone.analysis.measures import Estimate
from overtone.report.drawing import Drawing, series
from overtone.report.figures import NothingToDraw, Source
from overtone.report.figures import _axes as axes
from overtone.report.figures._axes import Entry, Spot
from overtone.report.figures._rows import Panel, Place, blocks, groups

TITLE = "Same words, another voice"
NOTHING = (
    "no script of these runs was asked about in several deliveries whose right answers are known: run a benchmark that "
    "has them ('overtone run open') with --levels 1,2 and all --styles, then 'overtone score RUN'"
)
ANSWERS = (
    Panel("Answers that change", "percent", "% of pairs of answers", 0.0, number="difference"),
    Panel("Right on both clips less the wrong way round", "points", "points", zero=0.0, number="points"),
)
CUES = (
    Panel("A cue is named: there is one ●, none ○", "percent", "% of clips", 0.0, 1.0, number="with one, %"),
    Panel("A cue is told from none", "number", "d′", zero=0.0, number="d′"),
)
REPLIES = (
    Panel("Replies that go to their own references", "percent", "% of scripts", 0.0, 1.0, number="%"),
    Panel("Likeness to the own reference less the others", "number", "style sensitivity", zero=0.0),
)
LEGEND = {
    "": Entry("another voice", "ink"),
    RENDERING: Entry("nothing changed: a second rendering", "ink", hollow=True),
    REPEAT: Entry("nothing changed: asked again", "quiet", "cross"),
    "chance": Entry("blind guessing", "quiet", "dashed"),
}


def draw(source: Source, width: float) -> Drawing:
    found = source.findings("sensitivity")
    answers = _answers(source, found)
    cued = [(f.runs[0], _cue(source, f, row)) for f in found if (row := _false_cue(source, f)) is not None]
    replies = _replies(source, found)
    if not answers and not cued and not replies:
        raise NothingToDraw(NOTHING)
    drawing, y = axes.page(width, TITLE, source.told("lines are 95 % intervals, clustered by script."))
    y = axes.legend(drawing, 0, y, width, [LEGEND[name] for name in _shown(found, answers, replies)])
    several = ((answers, ANSWERS), ([("False cues", cued)] if cued else [], CUES), (replies, REPLIES))
    y = groups(drawing, y, [(blocks(width, source.labels, shown), panels) for shown, panels in several if shown])
    drawing.text = " ".join(s.text for f in found for s in f.sentences)
    signatures = dict.fromkeys(_moved(f).signature for f in found)
    return axes.close(drawing, y, _notes(answers, cued), " · ".join(signatures))


Parts = list[tuple[str, list[tuple[int, tuple[Place | None, ...]]]]]


def _shown(found: Sequence[Finding], answers: Parts, replies: Parts) -> list[str]:
    """What the legend has to tell."""
    still = {row.nothing for finding in found for row in _moved(finding).specificity if row.stays.scored}
    kinds = ["", *(kind for kind in (RENDERING, REPEAT) if kind in still)] if answers else []
    guessed = any(place and place.chance is not None for _, runs in replies for _, places in runs for place in places)
    return [*kinds, *(["chance"] if guessed else [])]


def _moved(finding: Finding) -> Counterfactual:
    assert isinstance(finding.found, Counterfactual)
    return finding.found


def _answers(source: Source, found: Sequence[Finding]) -> Parts:
    condition = f"task/{source.settings.input}"
    parts: Parts = []
    for level in ("understanding", "reasoning"):
        of_runs: list[tuple[int, tuple[Place | None, ...]]] = []
        for finding in found:
            moved, still = _moved(finding).sensitivity, _moved(finding).specificity
            mine = [r for r in moved if (r.condition, r.level) == (condition, level) and r.sensitivity.scored]
            for row in said.headline(mine)[:1]:
                same = [r for r in still if (r.condition, r.level, r.basis) == (condition, level, row.basis)]
                kept = {r.nothing: r for r in reversed(same) if r.by == "overall" and r.stays.scored}
                of_runs.append((finding.runs[0], _places(source, finding, row, kept)))
        if of_runs:
            parts.append((level.capitalize(), of_runs))
    return parts


def _places(
    source: Source, finding: Finding, row: SensitivityRow, still: dict[str, SpecificityRow]
) -> tuple[Place, Place]:
    number = finding.runs[0]
    ink, shape = series(number)
    key, name = finding.prefix + row.key, f"{source.labels[number]}, {row.level}"
    spots = [Spot(row.changed, f"{name}, answers that change with the voice", key, ink, shape)]
    apart = None
    for kind, words in KINDS.items():
        if (other := still.get(kind)) is not None:
            told = f"{name}, answers that do not stay: {words}"
            look = (ink, shape, True) if kind == RENDERING else ("quiet", "cross", False)
            spots.append(Spot(_rest(other.stays), told, finding.prefix + other.key, *look))
            more = f"{name}, how much more often answers to the same questions change with the voice ({words} beside)"
            if apart is None or apart.estimate.value is None:
                apart = Spot(other.excess, more, f"{finding.prefix}{other.key}/excess", kind="points")
    missing = Spot(Estimate(None, None, None, row.changed.scored, row.changed.asked), f"{name}, difference", key)
    direction = f"{name}, right on both clips less the wrong way round"
    return (
        Place(tuple(spots), apart or missing),
        Place((Spot(row.direction, direction, key, ink, shape, kind="points"),)),
    )


def _rest(e: Estimate) -> Estimate:
    """What is left of a rate."""

    def less(x: float | None) -> float | None:
        return None if x is None else 1 - x

    return Estimate(less(e.value), less(e.high), less(e.low), e.scored, e.asked, scripts=e.scripts, note=e.note)


def _false_cue(source: Source, finding: Finding) -> FalseCueRow | None:
    condition = f"task/{source.settings.input}"
    mine = [r for r in _moved(finding).false_cues if r.condition == condition and r.detection.hit.scored]
    return min(mine, key=lambda r: r.detection.basis == "unvalidated", default=None)


def _cue(source: Source, finding: Finding, row: FalseCueRow) -> tuple[Place, Place]:
    number = finding.runs[0]
    ink, shape = series(number)
    key, name = finding.prefix + row.key, source.labels[number]
    told = row.detection
    hit = Spot(told.hit, f"{name}, a cue named on clips with one", f"{key}/hit", ink, shape)
    alarm = Spot(
        told.false_alarm, f"{name}, a cue named on clips without one", f"{key}/false-alarm", ink, shape, hollow=True
    )
    return Place((hit, alarm)), Place((Spot(told.d_prime, f"{name}, d′", key, ink, shape, kind="number"),))


def _replies(source: Source, found: Sequence[Finding]) -> Parts:
    of_size: dict[int, list[tuple[int, tuple[Place | None, ...]]]] = {}
    for finding in found:
        condition = source.conditions[finding.runs[0]]
        mine = [r for r in _moved(finding).replies if r.condition == condition and r.style.squares]
        sure = [r for r in mine if r.style.basis != "unvalidated"] or mine
        for row in sure:
            of_size.setdefault(row.style.styles, []).append((finding.runs[0], _reply(source, finding, row)))
    return [(f"Replies to {size} deliveries", of_runs) for size, of_runs in sorted(of_size.items(), reverse=True)]


def _reply(source: Source, finding: Finding, row: ReplyRow) -> tuple[Place, Place]:
    number = finding.runs[0]
    ink, shape = series(number)
    key, name = finding.prefix + row.key, f"{source.labels[number]}, {row.condition}"
    style = row.style
    own = Spot(style.assignment, f"{name}, replies that go to their own references", key, ink, shape)
    more = Spot(style.sensitivity, f"{name}, style sensitivity", key, ink, shape, kind="number", digits=3)
    return Place((own,), chance=style.chance), Place((more,))


def _notes(answers: Parts, cued: Sequence[object]) -> list[str]:
    notes = []
    spots = [p.spots for _, of_runs in answers for _, places in of_runs for p in places[:1] if p is not None]
    if any(len(few) == 1 for few in spots):
        notes.append(
            "Where ○ is missing, “nothing changed” was not measured: ask twice with --repeats 2, or use a set that has "
            "control clips."
        )
    if answers and not cued:
        notes.append("No false-cue questions were asked: there is no d′.")
    return notes
