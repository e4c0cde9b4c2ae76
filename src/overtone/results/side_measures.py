"""Measures outside a benchmark's headline: false cues, words against voice, dialogues, controls, wrong answers.

Every table is computed twice: over validated and over unvalidated cues. `basis` names the group of cues; it is empty if
the benchmark does not mark cues as validated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from overtone.results import corpus_scores
from overtone.results.load import Answer
from overtone.results.measures import (
    Estimate,
    Measure,
    chosen,
    estimate,
    from_interval,
    meant,
    picked,
    status,
    table_measures,
    within,
)
from overtone.schema import STYLES
from overtone.scores import CHOICE, Declared, ScoreInfo, undeclared
from overtone.stats.detection import detect

UNREAD = "unreadable"  # a reply that names none of the options
READINGS = ("target", "alternative", "words", "harmful", "nothing", "", UNREAD)
CONFLICT_CLIPS = {"target": "conflict", "alternative": "congruent"}  # style in a conflict script → kind of clip


class Detection(Struct, frozen=True):
    """Answers to one question about clips with a cue and about neutral clips; one option is "nothing special".

    A hit is an answer that names any cue for a clip with a cue; a false alarm is an answer that names any cue for a
    neutral clip. An unreadable reply is wrong in both cases. `identification` is the share of clips with a cue for
    which the answer names the clip's own cue.
    """

    basis: str
    hit: Estimate
    false_alarm: Estimate
    d_prime: Estimate
    criterion: Estimate
    identification: Estimate
    chance: float | None  # expected identification by guessing
    unread: int


class ConflictRow(Struct, frozen=True):
    """Clips whose words and voice contradict each other (`conflict`), or their twins whose words and voice agree.

    `measures` has `words`, `voice` and `agreement`, the accuracy on the question about each of them; `dominance`, the
    share of questions about the voice that were answered with the content of the words; and the usual measures of
    transcripts and replies.
    """

    basis: str
    clip: str  # conflict or congruent
    measures: dict[str, Estimate]


class DialogueRow(Struct, frozen=True):
    """Replies to one turn of all dialogues of a variant: changed, steady, or the difference changed − steady."""

    basis: str
    variant: str
    turn: int  # from 1
    measures: dict[str, Estimate]


class Control(Struct, frozen=True):
    """How often one question gets the same answer about two clips.

    `same` compares a clip with its second rendering in another voice, for which the right answer is the same. `moved`
    compares the clip with a clip that has another cue, for which the right answer differs.
    """

    same: Estimate
    moved: Estimate


class WrongRow(Struct, frozen=True):
    """Reasoning questions about clips of one style: counts of the wrong options that were chosen, by reading."""

    style: str
    answered: int
    wrong: int
    readings: dict[str, int]  # keys are READINGS


def by_basis(answers: Iterable[Answer], of: Callable[[Answer], str]) -> list[tuple[str, list[Answer]]]:
    """Split answers by basis: first answers about validated or unmarked cues, then answers about unvalidated cues."""
    sure: list[Answer] = []
    unsure: list[Answer] = []
    for answer in answers:
        (unsure if of(answer) == "unvalidated" else sure).append(answer)
    basis = "validated" if any(a.item.status == "validated" for a in sure) else ""
    return [(name, own) for name, own in ((basis, sure), ("unvalidated", unsure)) if own]


def of_script(answers: list[Answer]) -> Callable[[Answer], str]:
    """Return a function for `by_basis` that keeps scripts together: if one clip of a script has an unvalidated cue, all
    its clips are unvalidated."""
    unsure = {a.item.group for a in answers if a.item.status == "unvalidated"}
    return lambda answer: "unvalidated" if answer.item.group in unsure else answer.item.status


# ── false cues ──────────────────────────────────────────────────────────────────────────────────────────────────────


def detection(answers: Iterable[Answer]) -> list[Detection]:
    """Compute hits and false alarms for each basis."""
    return [_detection(basis, asked) for basis, asked in false_cues(answers)]


def false_cues(answers: Iterable[Answer]) -> list[tuple[str, list[Answer]]]:
    """Return (basis, answers) for the questions about false cues. A neutral clip has the same basis as the clips with a
    cue that it is compared with."""
    asked = [a for a in answers if a.item.part == "false-cue" and a.item.gold]
    of_question = {(a.item.group, a.item.category): a.item.status for a in asked if a.item.cue}
    of_script = {a.item.group: a.item.status for a in asked if a.item.cue}

    def paired(answer: Answer) -> str:
        item = answer.item
        if item.cue:
            return item.status
        return of_question.get((item.group, item.category), of_script.get(item.group, ""))

    return by_basis(asked, paired)


def _detection(basis: str, asked: list[Answer]) -> Detection:
    rows = [(something, bool(a.item.cue), a.item.group) for a in asked if (something := _named_a_cue(a)) is not None]
    detected = detect([row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows])
    cued = [a for a in asked if a.item.cue]
    plain = [a for a in asked if not a.item.cue]
    shares = [1 / len(a.item.options) for a in cued if a.item.options]
    return Detection(
        basis=basis,
        hit=_share(cued, _named_a_cue),
        false_alarm=_share(plain, _named_a_cue, good=0.0),
        d_prime=from_interval(detected.d_prime, detected.d_prime.low, detected.d_prime.high, len(asked)),
        criterion=from_interval(detected.criterion, detected.criterion.low, detected.criterion.high, len(asked)),
        identification=_share(cued, lambda a: a.value(CHOICE)),
        chance=sum(shares) / len(shares) if shares else None,
        unread=sum(status(a) not in ("", "parsed") for a in asked if a.answered),
    )


def _named_a_cue(answer: Answer) -> float | None:
    if answer.value(CHOICE) is None:
        return None
    if not chosen(answer):
        return 0.0 if answer.item.cue else 1.0
    return float(picked(answer) != "nothing")


def _share(answers: Iterable[Answer], read: Callable[[Answer], float | None], good: float = 1.0) -> Estimate:
    rows = [(read(a), a.item.group) for a in answers]
    return estimate(rows, kind="proportion", good=good, bad=1.0 - good)


# ── words against voice ─────────────────────────────────────────────────────────────────────────────────────────────


def conflict(answers: Iterable[Answer], declared: Declared) -> list[ConflictRow]:
    """Compare clips whose words and voice conflict with their congruent twins."""
    asked = [a for a in answers if a.item.part == "conflict" and a.item.style in CONFLICT_CLIPS]
    usual = table_measures(declared)
    rows = []
    for basis, on_basis in by_basis(asked, of_script(asked)):
        for style, clip in CONFLICT_CLIPS.items():
            measures = _conflict([a for a in on_basis if a.item.style == style], usual)
            if measures:
                rows.append(ConflictRow(basis, clip, measures))
    return rows


def _conflict(answers: list[Answer], usual: Sequence[Measure]) -> dict[str, Estimate]:
    measures: dict[str, Estimate] = {}
    for about in ("words", "voice", "agreement"):
        chosen_ones = [a for a in answers if a.item.category == f"conflict-{about}" and a.item.gold]
        measures[about] = _share(chosen_ones, lambda a: a.value(CHOICE))
    voice = [a for a in answers if a.item.category == "conflict-voice" and a.item.gold]
    measures["dominance"] = _share(voice, _followed_the_words, good=0.0)
    plain = [a for a in answers if not a.item.category.startswith("conflict")]
    measures |= {m.name: m.estimate(plain) for m in usual}
    return {name: e for name, e in measures.items() if e.asked}


def _followed_the_words(answer: Answer) -> float | None:
    """Return 1 if the answer about the voice repeats the content of the words, else 0; None without a score."""
    if answer.value(CHOICE) is None:
        return None
    return float(picked(answer) == "words")


# ── dialogues ───────────────────────────────────────────────────────────────────────────────────────────────────────


def dialogue(answers: Iterable[Answer], declared: Declared) -> list[DialogueRow]:
    """Return rows for each turn and variant, and for the difference changed − steady, paired by dialogue."""
    rows: list[DialogueRow] = []
    talks = [a for a in answers if a.item.part == "dialogue"]
    for basis, asked in by_basis(talks, of_script(talks)):
        names = {m for a in asked for scores in (a.scores, *a.earlier.values()) for m in scores}
        metrics = {m: declared.get(m) or undeclared(m) for m in sorted(names)}
        turns = max(len(a.item.turns) for a in asked)
        for variant in sorted({a.item.style for a in asked}):
            for turn in range(turns):
                replies = [a for a in asked if a.item.style == variant]
                measures = {m: corpus_scores.over(m, replies, info, turn) for m, info in metrics.items()}
                rows.append(DialogueRow(basis, variant, turn + 1, measures))
        gaps = {  # a corpus score is not a mean, so it has no mean difference
            m: _gap(m, asked, info, turns - 1) for m, info in metrics.items() if not info.corpus
        }
        if any(e.scored for e in gaps.values()):
            rows.append(DialogueRow(basis, "changed − steady", turns, gaps))
    return rows


def at_turn(answer: Answer, metric: str, turn: int) -> float | None:
    """Return a metric's value for the reply to one turn of a dialogue."""
    return answer.value(metric, None if turn == len(answer.item.turns) - 1 else turn)


def _gap(metric: str, asked: list[Answer], info: ScoreInfo, turn: int) -> Estimate:
    steady = {(a.item.group, a.repeat): at_turn(a, metric, turn) for a in asked if a.item.style == "steady"}
    rows: list[tuple[float | None, str]] = []
    seen: list[float] = []
    for answer in asked:
        key = (answer.item.group, answer.repeat)
        if answer.item.style == "changed" and key in steady:
            here, there = at_turn(answer, metric, turn), steady[key]
            rows.append((None if here is None or there is None else here - there, answer.item.group))
            seen += [value for value in (here, there) if value is not None]
    low, high = info.ends(seen)
    return within(estimate(rows), low - high, high - low)


# ── controls ────────────────────────────────────────────────────────────────────────────────────────────────────────


def control(answers: Iterable[Answer]) -> Control | None:
    """Compute how often answers stay if only the speaker's voice changes; None if no control clip has a question."""
    same: list[tuple[float | None, str]] = []
    moved: list[tuple[float | None, str]] = []
    for answer, twin, other in control_clips(answers):
        same.append((agree(answer, twin), answer.item.group))
        if other is not None:
            moved.append((agree(twin, other), answer.item.group))
    if not same:
        return None
    return Control(
        same=estimate(same, kind="proportion", good=1.0, bad=0.0),
        moved=estimate(moved, kind="proportion", good=0.0, bad=1.0),
    )


def control_clips(answers: Iterable[Answer]) -> Iterator[tuple[Answer, Answer, Answer | None]]:
    """Yield each answer about a control clip, with the answers to the same question about the original clip and about
    a clip with another cue (None if there isn't one)."""
    asked = [a for a in answers if a.item.task == "choose" and a.item.gold]
    known = {_question(a, a.item.style): a for a in asked if a.item.part in ("", "control", "conflict")}
    for answer in (a for a in asked if a.item.style == "control"):
        twin_style, other_style = ("target", "alternative") if answer.item.cue else ("neutral", "target")
        twin = known.get(_question(answer, twin_style))
        if twin is not None:
            yield answer, twin, known.get(_question(answer, other_style))


def _question(answer: Answer, style: str) -> tuple[str, int, str, str, int]:
    item = answer.item
    return item.group, item.level, item.category, style, answer.repeat


def agree(one: Answer, other: Answer) -> float | None:
    """Return 1 if both answers chose the same reading, in any order of options, else 0; None if one has no score. An
    unreadable reply never agrees."""
    if one.value(CHOICE) is None or other.value(CHOICE) is None:
        return None
    first, second = (meant(a) for a in (one, other))
    return float(bool(first) and first == second)


# ── wrong answers ───────────────────────────────────────────────────────────────────────────────────────────────────


def wrong(answers: Iterable[Answer]) -> list[WrongRow]:
    """Return counts of the wrong options that were chosen, for questions whose options have a provenance."""
    asked = [
        a
        for a in answers
        if a.item.task == "choose" and a.item.level == 2 and a.item.gold and any(o.provenance for o in a.item.options)
    ]
    rows = []
    for style in STYLES:
        scored = [a for a in asked if a.item.style == style and a.value(CHOICE) is not None]
        missed = [a for a in scored if a.value(CHOICE) != 1]
        counts = Counter(picked(a) if chosen(a) else UNREAD for a in missed)
        if scored:
            rows.append(WrongRow(style, len(scored), len(missed), {r: counts[r] for r in READINGS if counts[r]}))
    return rows
