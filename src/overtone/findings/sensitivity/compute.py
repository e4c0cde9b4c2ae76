"""Same words, another delivery: do answers change correctly with the voice, and stay when nothing changed?

Sensitivity is measured with one question about two clips of a script whose correct answers differ. A model that does
not hear the voice gives the same answer to both clips, or changes it at random. Then both answers are correct as often
as they are swapped, so the difference of these two shares, `direction`, is 0 for any preference of the model. For the
case "nothing changed", the question is repeated about the same clip, or about a second rendering in another voice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct

from overtone.findings.sensitivity.answer_pairs import RENDERING, REPEAT, About, Moved, Still, gather
from overtone.results import significance
from overtone.results.case_names import KeyedCases, unique
from overtone.results.load import Answer, Reading
from overtone.results.measures import Estimate, estimate, from_comparison, status
from overtone.results.side_measures import Detection, detection, false_cues
from overtone.results.style_following import StyleRow, by_size, square_of, style_rows
from overtone.results.wording import Sentence, headline, shortfall
from overtone.stats import paired
from overtone.stats.minimums import DIFFERENCE, RATE
from overtone.text import percent, plain, points, rate

SEED = 11
DRAWS = 4000
SIGNATURE = (
    f"counterfactual|v3|pairs:right answers differ|unread:neither changed nor stayed|test:sign-flips by script"
    f"|draws:{DRAWS}|seed:{SEED}|adjust:holm, overall rows together, of a breakdown by level"
)
NOTHING = {REPEAT: "the same clip asked again", RENDERING: "a second rendering of the clip in another voice"}


class SensitivityRow(Struct, frozen=True):
    """Pairs of clips of one script, with one question whose correct answers differ between the clips.

    `changed` is the share of pairs with different answers, `sensitivity` the share with both answers correct, and
    `swapped` the share in which each clip got the correct answer of the other.
    """

    key: str
    condition: str
    basis: str
    level: str
    by: str  # overall, dimension, pair
    name: str
    changed: Estimate
    sensitivity: Estimate
    chance: float | None  # the sensitivity of blind guessing
    swapped: Estimate
    direction: Estimate  # sensitivity − swapped
    p: float | None  # for the null hypothesis that `direction` is 0
    adjusted: float | None = None  # `p` corrected for all `tests` tests of its family
    tests: int = 0


class SpecificityRow(Struct, frozen=True):
    """Answers to one question when nothing changed. `stays` is the share of unchanged answers. `excess` is the share of
    answers that change with the voice minus the share that change when nothing did, over the same questions."""

    key: str
    condition: str
    basis: str
    level: str
    by: str
    name: str
    nothing: str  # a key of NOTHING
    stays: Estimate
    excess: Estimate
    p: float | None
    adjusted: float | None = None
    tests: int = 0


Row = TypeVar("Row", SensitivityRow, SpecificityRow)


class FalseCueRow(Struct, frozen=True):
    """Whether the model detects a cue: d′, hits and false alarms."""

    key: str
    condition: str
    detection: Detection


class ReplyRow(Struct, frozen=True):
    """Whether the replies to the clips of a script follow the voice."""

    key: str
    condition: str
    style: StyleRow


class Counterfactual(Struct, frozen=True):
    """The sensitivity of one run, under each condition."""

    run: str
    signature: str
    sensitivity: list[SensitivityRow]
    specificity: list[SpecificityRow]
    false_cues: list[FalseCueRow]
    replies: list[ReplyRow]
    notes: list[str]


def counterfactual(reading: Reading) -> Counterfactual:
    """Compute all four parts for a run, under each condition."""
    conditions = _by_condition(reading)
    gathered = {name: gather(answers) for name, answers in conditions.items()}
    return Counterfactual(
        run=reading.name,
        signature=SIGNATURE,
        sensitivity=_adjusted([_sensitivity(p) for name, g in gathered.items() for p in _moved_parts(name, g.moved)]),
        specificity=_adjusted([_specificity(p) for name, g in gathered.items() for p in _still_parts(name, g.still)]),
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
        notes=[f"{name}: {note}" for name, g in gathered.items() for note in g.notes],
    )


def cases_by_key(reading: Reading) -> Iterator[KeyedCases]:
    """Yield the key of every number with the cases that the number counts; a pair of clips counts as two cases.

    The suffixes `changed`, `right`, `swapped` and `stays` select the pairs with this outcome. `excess` selects the
    pairs that this number compares, and `hit` and `false-alarm` the clips with and without a cue. `unread` selects the
    answers that name no option, and `left-out` the scripts that lack a reply or a score.
    """
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
            key, scored = _key(name, basis, "false-cue"), [a for a in asked if a.value("accuracy") is not None]
            yield key, unique(a.item.case for a in scored)
            yield f"{key}/hit", unique(a.item.case for a in scored if a.item.cue)
            yield f"{key}/false-alarm", unique(a.item.case for a in scored if not a.item.cue)
            yield f"{key}/unread", unique(a.item.case for a in scored if status(a) not in ("", "parsed"))
        for basis, size, scripts in by_size(answers):
            key = _key(name, basis, f"replies/{size}")
            for suffix, whole in (("", True), ("/left-out", False)):
                squares = [replies for _, replies in scripts if (square_of(replies) is not None) is whole]
                yield key + suffix, unique(a.item.case for replies in squares for a in replies.values())


def _both(rows: Iterable[Moved] | Iterable[Still]) -> list[str]:
    return unique(case for row in rows for case in row.about.cases)


def sentences(data: Counterfactual) -> list[Sentence]:
    """Return sentences on the overall rows: answers by level, false cues, and replies."""
    lines = []
    few: list[tuple[str, int]] = []  # subjects with too few scripts for a sentence
    for row in headline(data.sensitivity):
        if row.sensitivity.value is None:
            continue
        if row.sensitivity.scripts < RATE.least:
            few.append((f"{row.condition}, {row.level}, answers that move", row.sensitivity.scripts))
            continue
        chance = "" if row.chance is None else f" (blind guessing: {percent(row.chance)})"
        text = (
            f"{row.condition}, {row.level}: if the voice changes the correct answer, {rate(row.changed)} of "
            f"{row.sensitivity.scored} pairs of answers change. {rate(row.sensitivity)} are correct on both clips"
            f"{chance}, {rate(row.swapped)} are swapped: a difference of "
            f"{points(row.direction)}{significance.by_test(row.direction, row.adjusted, row.tests)}."
        )
        lines.append(Sentence(text, row.key, row.condition))
    for still in headline(data.specificity):
        if still.stays.value is None:
            continue
        if still.stays.scripts < RATE.least:
            few.append((f"{still.condition}, {still.level}, {NOTHING[still.nothing]}", still.stays.scripts))
            continue
        stays = rate(still.stays)
        line = f"{still.condition}, {still.level}: {stays} of answers stay for {NOTHING[still.nothing]}"
        if still.excess.value is not None and still.excess.scripts >= DIFFERENCE.least:
            line += (
                "; if the voice changes, answers to the same questions change more often by "
                f"{points(still.excess)}{significance.by_test(still.excess, still.adjusted, still.tests)}"
            )
        lines.append(Sentence(f"{line}.", still.key, still.condition))
    for cue in data.false_cues:
        detected = cue.detection
        if detected.d_prime.value is not None and detected.basis != "unvalidated":
            scripts = min(detected.hit.scripts, detected.false_alarm.scripts)
            if scripts < RATE.least:
                few.append((f"{cue.condition}, false cues", scripts))
                continue
            text = (
                f"{cue.condition}, false cues: the model names a cue on {rate(detected.hit)} of clips with one and on "
                f"{rate(detected.false_alarm)} of those without, d′ = {plain(detected.d_prime)}"
                f"{significance.by_interval(detected.d_prime, null='0, which is guessing')}."
            )
            lines.append(Sentence(text, cue.key, cue.condition))
    for reply in data.replies:
        style = reply.style
        if style.sensitivity.value is not None and style.basis != "unvalidated":
            if style.assignment.scripts < RATE.least:
                few.append((f"{reply.condition}, replies to {style.styles} deliveries", style.assignment.scripts))
                continue
            text = (
                f"{reply.condition}: replies to {style.styles} deliveries of one script are nearest to their own "
                f"references in {rate(style.assignment)} of {style.squares} cases (chance {percent(style.chance)}), "
                f"sensitivity {plain(style.sensitivity, 3)}{significance.by_interval(style.sensitivity)}."
            )
            lines.append(Sentence(text, reply.key, reply.condition))
    return [*lines, *shortfall(RATE, few)]


# ── numbers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


Compared = TypeVar("Compared", Moved, Still)


class _Part(NamedTuple, Generic[Compared]):
    """A group of comparisons and its key. The first six fields are also the first six of the group's row."""

    key: str
    condition: str
    basis: str
    level: str
    by: str
    name: str
    rows: list[Compared]


def _by_condition(reading: Reading) -> dict[str, list[Answer]]:
    answers: dict[str, list[Answer]] = {}
    for answer in reading.answers:
        answers.setdefault(answer.condition, []).append(answer)
    return answers


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
    """Yield groups of comparisons for each basis and level: one overall, and one for each value of each split."""
    selections: dict[tuple[str, str, str, str], list[Compared]] = {}
    for row in rows:
        about: About = row.about
        for by, name in (("overall", ""), *(split(about) for split in splits)):
            if name or by == "overall":
                selections.setdefault((about.basis, about.level, by, name), []).append(row)
    for (basis, level, by, name), part in selections.items():
        where = f"{level}/{by}/{name}/{what}" if name else f"{level}/{by}/{what}"
        yield _Part(_key(condition, basis, where), condition, basis, level, by, name, part)


def _sensitivity(part: _Part[Moved]) -> SensitivityRow:
    rows = part.rows
    chances = [row.chance for row in rows if row.chance is not None]
    direction, p = _test([(row.right, row.swapped, row.about.group) for row in rows])
    return SensitivityRow(
        *part[:6],
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
        *part[:6],
        nothing=rows[0].about.kind,
        stays=_rate([(row.stays, row.about.group) for row in rows]),
        excess=excess,
        p=p,
    )


def _rate(rows: Sequence[tuple[float | None, str]], good: float = 1.0) -> Estimate:
    return estimate(rows, kind="proportion", good=good, bad=1.0 - good)


def _test(rows: Sequence[tuple[float | None, float | None, str]]) -> tuple[Estimate, float | None]:
    """Return the mean of first − second over rows (first, second, group), with interval and p-value by sign flips."""
    both = [(a, b, group) for a, b, group in rows if a is not None and b is not None]
    groups = [group for *_, group in both]
    test = paired.permutation([a for a, *_ in both], [b for _, b, _ in both], groups, seed=SEED, draws=DRAWS)
    return from_comparison(test, len(rows))


def _adjusted(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with corrected p-values.

    The overall rows of a basis are one family. In a breakdown, the rows of each condition, level and key of NOTHING are
    one family.
    """
    return significance.adjust(rows, [_family(row) for row in rows])


def _family(row: SensitivityRow | SpecificityRow) -> tuple[str, ...]:
    if row.by == "overall":
        return row.basis, row.by
    return row.basis, row.by, row.condition, row.level, row.nothing if isinstance(row, SpecificityRow) else ""
