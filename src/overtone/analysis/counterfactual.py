"""Same words, another delivery: does the answer change when the voice does, rightly so, and stay when nothing did?

Sensitivity is told from one question asked about several clips of a script whose right answers differ. Somebody who
does not hear the voice answers both clips alike, or changes at random: then the two right answers in place are as
frequent as the two in each other's place, so `direction`, the difference of both, is 0 whatever the habits. "Nothing
changed" is measured: the same clip asked again, and the clip's second rendering in another voice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from overtone.analysis import said, significance
from overtone.analysis.cases_under import Under, unique
from overtone.analysis.counterfactual_pairs import RENDERING, REPEAT, About, Moved, Still, gather
from overtone.analysis.measures import Estimate, estimate, from_comparison, status
from overtone.analysis.parts import Detection, detection, false_cues
from overtone.analysis.reading import Answer, Reading
from overtone.analysis.said import Sentence
from overtone.analysis.style import StyleRow, by_size, square_of, style_rows
from overtone.stats import paired
from overtone.stats.minimums import DIFFERENCE, RATE

SEED = 11
DRAWS = 4000
SIGNATURE = (
    f"counterfactual|v3|pairs:right answers differ|unread:neither changed nor stayed|test:sign-flips by script"
    f"|draws:{DRAWS}|seed:{SEED}|adjust:holm, overall rows together, of a breakdown by level"
)
NOTHING = {REPEAT: "the same clip asked again", RENDERING: "the clip rendered again in another voice"}


class SensitivityRow(Struct, frozen=True):
    """Pairs of clips of one script, one question, right answers that differ. Of these pairs the share answered
    differently (`changed`), rightly on both (`sensitivity`), and with each other's answers (`swapped`)."""

    key: str
    condition: str
    basis: str
    level: str
    by: str  # overall, dimension, pair
    name: str
    changed: Estimate
    sensitivity: Estimate
    chance: float | None  # of sensitivity, for blind guessing
    swapped: Estimate
    direction: Estimate  # sensitivity − swapped
    p: float | None  # of "the direction is 0"
    adjusted: float | None = None  # corrected for all `tests` tests of its family
    tests: int = 0


class SpecificityRow(Struct, frozen=True):
    """The share of questions whose answer stays where nothing changed, and by how much the answers to the same
    questions change more often where the voice did (`excess`)."""

    key: str
    condition: str
    basis: str
    level: str
    by: str
    name: str
    nothing: str  # of NOTHING: what was measured
    stays: Estimate
    excess: Estimate
    p: float | None
    adjusted: float | None = None
    tests: int = 0


Row = TypeVar("Row", SensitivityRow, SpecificityRow)


class FalseCueRow(Struct, frozen=True):
    """Is a cue told from none? d′ and what stands beside it."""

    key: str
    condition: str
    detection: Detection


class ReplyRow(Struct, frozen=True):
    """Do the replies to one script's clips follow the voice?"""

    key: str
    condition: str
    style: StyleRow


class Counterfactual(Struct, frozen=True):
    run: str
    signature: str
    sensitivity: list[SensitivityRow]
    specificity: list[SpecificityRow]
    false_cues: list[FalseCueRow]
    replies: list[ReplyRow]
    notes: list[str]


def counterfactual(reading: Reading) -> Counterfactual:
    """Everything a run tells of it, under each condition."""
    conditions = _by_condition(reading)
    found = {name: gather(answers) for name, answers in conditions.items()}
    return Counterfactual(
        run=reading.name,
        signature=SIGNATURE,
        sensitivity=_adjusted([_sensitivity(p) for name, g in found.items() for p in _moved_parts(name, g.moved)]),
        specificity=_adjusted([_specificity(p) for name, g in found.items() for p in _still_parts(name, g.still)]),
        false_cues=[
            FalseCueRow(_key(name, row.basis, "false-cue"), name, row)
            for name, answers in conditions.items()
            for row in detection(answers)
        ],
        replies=[
            ReplyRow(_key(name, row.basis, f"replies/{row.styles}"), name, row)
            for name, answers in conditions.items()
            for row in style_rows(answers)
        ],
        notes=[f"{name}: {note}" for name, g in found.items() for note in g.notes],
    )


def under(reading: Reading) -> Iterator[Under]:
    """Every number with the cases under it: of a pair of clips both. A row's key stands for what it was counted over;
    with an end it stands for the part that `changed`, was `right`, `swapped`, or `stays`; for what `excess` compares;
    for clips with a cue (`hit`), without (`false-alarm`) and answers that name no option (`unread`); or for scripts
    that lack a reply or a score (`left-out`)."""
    for name, answers in _by_condition(reading).items():
        gathered = gather(answers)
        for moved in _moved_parts(name, gathered.moved):
            pairs = [row for row in moved.rows if row.right is not None]
            yield moved.key, _both(pairs)
            yield f"{moved.key}/changed", _both(row for row in pairs if row.changed == 1)
            yield f"{moved.key}/right", _both(row for row in pairs if row.right == 1)
            yield f"{moved.key}/swapped", _both(row for row in pairs if row.swapped == 1)
        for still in _still_parts(name, gathered.still):
            yield still.key, _both(row for row in still.rows if row.stays is not None)
            yield f"{still.key}/stays", _both(row for row in still.rows if row.stays == 1)
            compared = (row for row in still.rows if row.voice is not None and row.nothing is not None)
            yield f"{still.key}/excess", _both(compared)
        for basis, asked in false_cues(answers):
            key, told = _key(name, basis, "false-cue"), [a for a in asked if a.value("accuracy") is not None]
            yield key, unique(a.item.case for a in told)
            yield f"{key}/hit", unique(a.item.case for a in told if a.item.cue)
            yield f"{key}/false-alarm", unique(a.item.case for a in told if not a.item.cue)
            yield f"{key}/unread", unique(a.item.case for a in told if status(a) not in ("", "parsed"))
        for basis, size, scripts in by_size(answers):
            key = _key(name, basis, f"replies/{size}")
            for end, whole in (("", True), ("/left-out", False)):
                squares = [replies for _, replies in scripts if (square_of(replies) is not None) is whole]
                yield key + end, unique(a.item.case for replies in squares for a in replies.values())


def _both(rows: Iterable[Moved] | Iterable[Still]) -> list[str]:
    return unique(case for row in rows for case in row.about.cases)


def sentences(found: Counterfactual) -> list[Sentence]:
    """What is told overall: of answers for each level, of false cues, and of replies."""
    lines = []
    few: list[tuple[str, int]] = []  # what has too few scripts for a sentence
    for row in said.headline(found.sensitivity):
        if row.sensitivity.value is None:
            continue
        if row.sensitivity.scripts < RATE.least:
            few.append((f"{row.condition}, {row.level}, answers that move", row.sensitivity.scripts))
            continue
        chance = "" if row.chance is None else f" (blind guessing: {100 * row.chance:.0f} %)"
        text = (
            f"{row.condition}, {row.level}: where the voice moves the right answer, {said.percent(row.changed)} of "
            f"{row.sensitivity.scored} pairs of answers change and {said.percent(row.sensitivity)} are right on both "
            f"clips{chance}, against {said.percent(row.swapped)} the wrong way round: a difference of "
            f"{said.points(row.direction)}{significance.by_test(row.direction, row.adjusted, row.tests)}."
        )
        lines.append(Sentence(text, row.key))
    for still in said.headline(found.specificity):
        if still.stays.value is None:
            continue
        if still.stays.scripts < RATE.least:
            few.append((f"{still.condition}, {still.level}, {NOTHING[still.nothing]}", still.stays.scripts))
            continue
        line = (
            f"{still.condition}, {still.level}: {NOTHING[still.nothing]}, {said.percent(still.stays)} of answers stay"
        )
        if still.excess.value is not None and still.excess.scripts >= DIFFERENCE.least:
            line += (
                f"; answers to the same questions change more often where the voice changes by "
                f"{said.points(still.excess)}{significance.by_test(still.excess, still.adjusted, still.tests)}"
            )
        lines.append(Sentence(f"{line}.", still.key))
    for cue in found.false_cues:
        told = cue.detection
        if told.d_prime.value is not None and told.basis != "unvalidated":
            scripts = min(told.hit.scripts, told.false_alarm.scripts)
            if scripts < RATE.least:
                few.append((f"{cue.condition}, false cues", scripts))
                continue
            text = (
                f"{cue.condition}, false cues: a cue is named on {said.percent(told.hit)} of clips with one and on "
                f"{said.percent(told.false_alarm)} of those without, d′ = {said.plain(told.d_prime)}"
                f"{significance.by_interval(told.d_prime, null='0, which is guessing')}."
            )
            lines.append(Sentence(text, cue.key))
    for reply in found.replies:
        style = reply.style
        if style.sensitivity.value is not None and style.basis != "unvalidated":
            if style.assignment.scripts < RATE.least:
                few.append((f"{reply.condition}, replies to {style.styles} deliveries", style.assignment.scripts))
                continue
            text = (
                f"{reply.condition}: replies to {style.styles} deliveries of one script go to their own references in "
                f"{said.percent(style.assignment)} of {style.squares} cases (chance {100 * style.chance:.0f} %), "
                f"sensitivity {said.plain(style.sensitivity, 3)}{significance.by_interval(style.sensitivity)}."
            )
            lines.append(Sentence(text, reply.key))
    return [*lines, *said.shortfall(RATE, few)]


# ── numbers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


Compared = TypeVar("Compared", Moved, Still)


class _Part(NamedTuple, Generic[Compared]):
    """Some comparisons and the key that names them."""

    key: str
    condition: str
    basis: str
    level: str
    by: str
    name: str
    rows: list[Compared]


def _by_condition(reading: Reading) -> dict[str, list[Answer]]:
    found: dict[str, list[Answer]] = {}
    for answer in reading.answers:
        found.setdefault(answer.condition, []).append(answer)
    return found


def _key(condition: str, basis: str, rest: str) -> str:
    return f"sensitivity/{condition}" + ("/unvalidated" if basis == "unvalidated" else "") + f"/{rest}"


def _moved_parts(condition: str, rows: Sequence[Moved]) -> Iterator[_Part[Moved]]:
    yield from _parts(condition, "sensitivity", rows, (_dimension, _kind))


def _still_parts(condition: str, rows: Sequence[Still]) -> Iterator[_Part[Still]]:
    for nothing in NOTHING:
        measured = [row for row in rows if row.about.kind == nothing]
        yield from _parts(condition, f"specificity/{nothing}", measured, (_dimension,))


def _dimension(about: About) -> tuple[str, str]:
    return "dimension", about.dimension


def _kind(about: About) -> tuple[str, str]:
    return "pair", about.kind


def _parts(
    condition: str, what: str, rows: Sequence[Compared], splits: Sequence[Callable[[About], tuple[str, str]]]
) -> Iterator[_Part[Compared]]:
    """The comparisons of each basis and level: all, then by what splits them, as named in a key."""
    found: dict[tuple[str, str, str, str], list[Compared]] = {}
    for row in rows:
        about: About = row.about
        for by, name in (("overall", ""), *(split(about) for split in splits)):
            if name or by == "overall":
                found.setdefault((about.basis, about.level, by, name), []).append(row)
    for (basis, level, by, name), part in found.items():
        where = f"{level}/{by}/{name}/{what}" if name else f"{level}/{by}/{what}"
        yield _Part(_key(condition, basis, where), condition, basis, level, by, name, part)


def _sensitivity(part: _Part[Moved]) -> SensitivityRow:
    rows = part.rows
    chances = [row.chance for row in rows if row.chance is not None]
    direction, p = _test([(row.right, row.swapped, row.about.group) for row in rows])
    return SensitivityRow(
        key=part.key,
        condition=part.condition,
        basis=part.basis,
        level=part.level,
        by=part.by,
        name=part.name,
        changed=_rate([(row.changed, row.about.group) for row in rows]),
        sensitivity=_rate([(row.right, row.about.group) for row in rows]),
        chance=math.fsum(chances) / len(chances) if chances else None,
        swapped=_rate([(row.swapped, row.about.group) for row in rows], good=0.0),
        direction=direction,
        p=p,
    )


def _specificity(part: _Part[Still]) -> SpecificityRow:
    rows = part.rows
    excess, p = _test([(row.voice, row.nothing, row.about.group) for row in rows])
    return SpecificityRow(
        key=part.key,
        condition=part.condition,
        basis=part.basis,
        level=part.level,
        by=part.by,
        name=part.name,
        nothing=rows[0].about.kind,
        stays=_rate([(row.stays, row.about.group) for row in rows]),
        excess=excess,
        p=p,
    )


def _rate(rows: Sequence[tuple[float | None, str]], good: float = 1.0) -> Estimate:
    return estimate(rows, kind="proportion", good=good, bad=1.0 - good)


def _test(rows: Sequence[tuple[float | None, float | None, str]]) -> tuple[Estimate, float | None]:
    """The mean difference of two shares of the same comparisons, with the interval and p-value of sign flips."""
    both = [(a, b, group) for a, b, group in rows if a is not None and b is not None]
    groups = [group for *_, group in both]
    found = paired.permutation([a for a, *_ in both], [b for _, b, _ in both], groups, seed=SEED, draws=DRAWS)
    return from_comparison(found, len(rows))


def _adjusted(rows: Sequence[Row]) -> list[Row]:
    """The rows with corrected p-values. The overall rows are one family; the rows of a breakdown are one for each
    condition and level, and for each way in which nothing changed."""
    corrected = significance.holm_by_family([row.p for row in rows], [_family(row) for row in rows])
    return [
        msgspec.structs.replace(row, adjusted=adjusted, tests=tests)
        for row, (adjusted, tests) in zip(rows, corrected, strict=True)
    ]


def _family(row: SensitivityRow | SpecificityRow) -> tuple[str, ...]:
    if row.by == "overall":
        return row.basis, row.by
    return row.basis, row.by, row.condition, row.level, row.nothing if isinstance(row, SpecificityRow) else ""
