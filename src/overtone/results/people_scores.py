"""People's answers about replies, beside the judges' scores: means per question, votes on pairs, judges against people.

Only labels of usable sessions count; `everyone` is the same number over all sessions. Intervals of people's means
respect raters and scripts (`stats.crossed`): they hold for other people and other scripts. Those of a judge against
people respect scripts only: they hold for these people.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from overtone.results.judge_scores import Dimension, by_status, judge_names, judges_of, replies_of
from overtone.results.load import Answer, Reading
from overtone.results.measures import Estimate, from_interval, within
from overtone.runs.people_labels import Label, LabelStudy, Question
from overtone.stats import agreement, cluster, correlation, kappa
from overtone.stats.crossed import system_means
from overtone.stats.minimums import PEOPLE
from overtone.text import count

DRAWS = 1000
SEED = 20_271
CANNOT_TELL = "cannot_tell"


class Opinion(Struct, frozen=True):
    """A label as a number, with the answer that it is about."""

    value: float
    label: Label
    answer: Answer


class PeopleRow(Struct, frozen=True):
    """People's mean answer to one question of one study, over one basis of clips."""

    basis: str
    study: str
    title: str
    dimension: Dimension
    headline: Estimate
    everyone: Estimate  # with unusable sessions
    styles: dict[str, Estimate]
    raters: int
    votes: int


class JudgeRow(Struct, frozen=True):
    """A judge against people on the replies that both rated: the mean of people is compared with the judge's score.

    `bias` is the judge's mean minus people's. `ceiling` is α of the raters with each other: the agreement of two single
    people. The mean of several people has less noise than one person, so a judge can exceed it.
    """

    study: str
    title: str
    dimension: Dimension
    judge: str
    alpha: Estimate
    exact: float | None
    spearman: float | None
    ceiling: float | None  # α between people
    bias: Estimate
    replies: int
    raters: int


def has_labels(answers: Iterable[Answer]) -> bool:
    """Return whether people labelled one of these replies."""
    return any(answer.labels for answer in answers)


def dimension_of(key: str, question: Question) -> Dimension | None:
    """Return a question as the dimension of a rubric; None for a question whose answers have no order."""
    numbers = list(question.values.values())
    low = question.low if question.low is not None else min(numbers, default=None)
    high = question.high if question.high is not None else max(numbers, default=None)
    if low is None or high is None:
        return None
    return Dimension(key, question.label, low, high, question.better, rubric=question.rubric)


def opinions(answers: Iterable[Answer], study: LabelStudy, dimension: str, *, unusable: bool = False) -> list[Opinion]:
    """Return people's numeric answers to one question about single replies; pairs are left out."""
    question = study.questions[dimension]
    found = []
    for answer in answers:
        for label in answer.labels:
            if label.study == study.id and label.dimension == dimension and label.kind == "reply":
                value = question.number(label.value)
                if value is not None and (label.usable or unusable):
                    found.append(Opinion(value, label, answer))
    return found


def questions(answers: Iterable[Answer], studies: Mapping[str, LabelStudy]) -> Iterator[tuple[LabelStudy, Dimension]]:
    """Yield every study and question about single replies that these answers have labels for."""
    asked = {(label.study, label.dimension) for a in answers for label in a.labels if label.kind == "reply"}
    for study in studies.values():
        for key, question in study.questions.items():
            dimension = dimension_of(key, question)
            if (study.id, key) in asked and dimension is not None and not question.cue:
                yield study, dimension


def people_rows(answers: Iterable[Answer], studies: Mapping[str, LabelStudy]) -> list[PeopleRow]:
    """Return people's means of every question, over the same replies as the judges' means."""
    asked = replies_of(answers)
    if not has_labels(asked):
        return []
    rows = []
    for basis, replies in by_status(asked):
        for study, dimension in questions(replies, studies):
            usable = opinions(replies, study, dimension.key)
            everyone = opinions(replies, study, dimension.key, unusable=True)
            styles = dict.fromkeys(one.answer.item.style for one in usable)
            rows.append(
                PeopleRow(
                    basis, study.id, study.title, dimension, mean(usable, dimension), mean(everyone, dimension),
                    {s: mean([o for o in usable if o.answer.item.style == s], dimension) for s in styles},
                    len({one.label.rater for one in usable}), len(usable),
                )
            )  # fmt: skip
    return rows


def mean(given: Sequence[Opinion], dimension: Dimension) -> Estimate:
    """Return people's mean with an interval that respects raters and scripts; n counts replies."""
    if not given:
        return Estimate(None, None, None, 0, 0)
    columns = [one.value for one in given], [""] * len(given), *names(given)
    interval = system_means(*columns).of("")
    replies = len({one.answer.ask for one in given})
    made = from_interval(interval, interval.low, interval.high, replies)
    made = Estimate(made.value, made.low, made.high, replies, replies, scripts=made.scripts, note=rater_note(given))
    return made if dimension.low is None or dimension.high is None else within(made, dimension.low, dimension.high)


def names(given: Sequence[Opinion]) -> tuple[list[str], list[str]]:
    """Return the raters and the scripts of opinions."""
    return [one.label.rater for one in given], [one.answer.item.group for one in given]


def rater_note(given: Sequence[Opinion]) -> str:
    """Return a note if the interval says little about other people, because few took part."""
    return few_raters(len({one.label.rater for one in given}))


def few_raters(raters: int) -> str:
    """Return a note if fewer people rated than an interval for other people needs, or ""."""
    if raters >= PEOPLE.least:
        return ""
    if raters == 1:
        return "one person rated: the interval does not hold for other people"
    return f"only {raters} people rated: the interval may not hold for other people"


# ── judges against people ───────────────────────────────────────────────────────────────────────────────────────────


def judge_rows(reading: Reading, answers: Sequence[Answer] | None = None) -> list[JudgeRow]:
    """Compare every judge of a run with people, question by question, over all conditions together."""
    asked = replies_of(reading.answers if answers is None else answers)
    found = judge_names(asked, reading.signatures)
    rows = []
    for study, dimension in questions(asked, reading.studies):
        by_reply: dict[int, list[Opinion]] = {}
        for one in opinions(asked, study, dimension.key):
            by_reply.setdefault(one.answer.ask, []).append(one)
        for judge in judges_of(dimension.key, found):
            if (row := _judge_row(study, dimension, judge, by_reply)) is not None:
                rows.append(row)
    return rows


def _judge_row(
    study: LabelStudy, dimension: Dimension, judge: str, by_reply: Mapping[int, Sequence[Opinion]]
) -> JudgeRow | None:
    scored = []
    for given in by_reply.values():
        value = given[0].answer.value(f"{dimension.key}@{judge}")
        if value is not None:
            scored.append((value, float(np.mean([one.value for one in given])), given))
    if not scored:
        return None
    machine, human = (np.array(column) for column in list(zip(*scored, strict=True))[:2])
    groups = [given[0].answer.item.group for *_, given in scored]
    steps = np.floor(human + 0.5 + 1e-9)
    agreed = agreement.agreement(np.stack([machine, steps]), "ordinal", seed=SEED, draws=DRAWS, clusters=groups)
    alpha = cluster.Interval(agreed.alpha, math.nan, agreed.low, agreed.high, len(scored), len(set(groups)))
    gap = cluster.mean(machine - human, groups)
    return JudgeRow(
        study.id, study.title, dimension, judge, from_interval(alpha, alpha.low, alpha.high, len(scored)),
        _known(kappa.exact(machine, steps)), _known(correlation.spearman(machine, human)),
        _known(agreement.alpha(table([given for *_, given in scored]), "ordinal")),
        from_interval(gap, gap.low, gap.high, len(scored)), len(scored),
        len({one.label.rater for *_, given in scored for one in given}),
    )  # fmt: skip


def table(units: Sequence[Sequence[Opinion]]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return ratings (raters, units) with NaN for missing ones."""
    raters = {name: at for at, name in enumerate(dict.fromkeys(o.label.rater for unit in units for o in unit))}
    ratings = np.full((len(raters), len(units)), math.nan)
    for column, unit in enumerate(units):
        for one in unit:
            ratings[raters[one.label.rater], column] = one.value
    return ratings


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


# ── one reply ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Said(Struct, frozen=True):
    """The answers of people about one reply, to one question: counts of each value, never who said it."""

    study: str
    title: str
    dimension: str
    label: str
    counts: dict[str, int]  # value as text → people
    mean: float | None
    unusable: int  # further answers, of unusable sessions
    against: str = (
        ""  # in a pair: the other run; answers are from the side of this run's reply (CMOS: above 0, it is better)
    )


def said(answer: Answer, studies: Mapping[str, LabelStudy]) -> list[Said]:
    """Return what people said about a reply, by study, question and opponent."""
    grouped: dict[tuple[str, str, str], list[Label]] = {}
    for label in answer.labels:
        grouped.setdefault((label.study, label.dimension, label.seen.other), []).append(label)
    found = list(_heard(answer, studies))
    for (name, key, other), labels in grouped.items():
        study = studies.get(name)
        if study is None or key not in study.questions:
            continue
        question = study.questions[key]
        if question.cue:
            continue
        counts: dict[str, int] = {}
        numbers = []
        for label in labels:
            if label.usable:
                for value in label.value if isinstance(label.value, list) else [label.value]:
                    text = _own_side(value, label.seen.side) if other else _text(value)
                    counts[text] = counts.get(text, 0) + 1
                number = question.number(label.value)
                numbers += [number] if number is not None and not other else []
        unusable = sum(not label.usable for label in labels)
        centre = math.fsum(numbers) / len(numbers) if numbers else None
        counts = dict(sorted(counts.items()))
        found.append(Said(name, study.title, key, question.label, counts, centre, unusable, other))
    return found


def heard(labels: Iterable[Label], study: LabelStudy) -> tuple[dict[str, int], int, int]:
    """Return how many people heard each cue, how many people answered, and how many more in unusable sessions."""
    counts: dict[str, int] = {}
    people: tuple[set[str], set[str]] = set(), set()
    for label in labels:
        cue = study.questions[label.dimension].cue if label.dimension in study.questions else ""
        if label.study == study.id and cue:
            people[0 if label.usable else 1].add(label.rater)
            if label.usable and label.value == "yes":
                counts[cue] = counts.get(cue, 0) + 1
    ranked = dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))
    return ranked, len(people[0]), len(people[1])


def _heard(answer: Answer, studies: Mapping[str, LabelStudy]) -> Iterator[Said]:
    """Yield the cues that people heard in a reply or clip, with how many heard each."""
    for study in studies.values():
        counts, people, unusable = heard(answer.labels, study)
        if people or unusable:
            label = next(question.label for question in study.questions.values() if question.cue)
            yield Said(
                study.id, study.title, "heard", f"{label} ({count(people, 'person', 'people')})", counts, None, unusable
            )


def _own_side(value: object, side: str) -> str:
    """Return an answer about a pair from the side of this run's reply."""
    words = {"both_good": "both good", "both_bad": "both bad", CANNOT_TELL: "cannot tell"}
    if value in ("A", "B"):
        return "this one" if value == side else "the other one"
    if isinstance(value, int | float):  # CMOS: how much better B is
        better = value if side == "B" else -value
        return f"{better:+g}".replace("-", "−") if better else "0"
    return words.get(str(value), _text(value))


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
