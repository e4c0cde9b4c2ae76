"""The opinions of people about replies: means and differences per question, votes on pairs, and judges against people.

A study's labels stand in each of its runs. A pair is a label of both its runs, and counts once here. Differences and
leads come from crossed effects of raters and scripts, so they hold for other people and other scripts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from overtone.results import significance
from overtone.results.case_names import KeyedCases, unique
from overtone.results.judge_scores import Dimension, replies_of
from overtone.results.load import Answer, Reading
from overtone.results.measures import Estimate, from_interval
from overtone.results.people_scores import (
    CANNOT_TELL,
    JudgeRow,
    Opinion,
    heard,
    judge_rows,
    mean,
    names,
    opinions,
    questions,
    rater_note,
)
from overtone.results.wording import Sentence, shortfall
from overtone.runs.people_labels import Label, LabelStudy, Value
from overtone.stats.crossed import system_means
from overtone.stats.minimums import DIFFERENCE, PEOPLE
from overtone.stats.votes_needed import MOST, Decision, votes_needed
from overtone.text import by_kind, interval, number

SIGNATURE = (
    "people|v1|sessions:usable|mean:crossed rater and script effects|interval:two-way sandwich|"
    "alpha:ordinal, bootstrap by script, 1000"
)
TEST = "two-sided t test clustered by rater and by script"
LEAD = {"A": 1.0, "B": -1.0, "both_good": 0.0, "both_bad": 0.0}
SAME = "same"  # CMOS: neither reply is better


class MeanRow(Struct, frozen=True):
    """People's mean of one run under one condition in one question. `everyone` includes unusable sessions."""

    key: str
    study: str
    dimension: Dimension
    run: int
    condition: str
    mean: Estimate
    everyone: Estimate
    raters: int
    votes: int


class GapRow(Struct, frozen=True):
    """The first run minus the second, in one question of one study; raters and scripts that both share cancel."""

    key: str
    study: str
    dimension: Dimension
    runs: tuple[str, str]
    condition: str
    gap: Estimate
    decision: Decision
    raters: int
    p: float | None
    adjusted: float | None = None
    tests: int = 0


class PairRow(Struct, frozen=True):
    """Votes between two runs. `lead` is the share for the first minus the share for the second. A reply is acceptable
    if it was chosen, or both were good; "cannot tell" is missing in all shares.

    In CMOS (`graded`), the lead is a mean on the scale from −3 to 3, and the shares are A, B and same.
    """

    key: str
    study: str
    dimension: str
    runs: tuple[str, str]
    condition: str
    lead: Estimate
    shares: dict[str, float]  # A, B, both_good, both_bad
    acceptable: tuple[float, float] | None
    cannot_tell: int
    votes: int
    everyone: float  # the lead with unusable sessions
    decision: Decision
    raters: int
    p: float | None
    graded: bool = False
    adjusted: float | None = None
    tests: int = 0


class JudgedRow(Struct, frozen=True):
    """A judge of one run against people."""

    key: str
    run: int
    row: JudgeRow


class HeardRow(Struct, frozen=True):
    """The cues that people heard in the replies or clips of one intended cue; `of` says which of the two."""

    key: str
    study: str
    run: int
    of: str
    intended: str
    heard: dict[str, int]
    answers: int


class People(Struct, frozen=True):
    """The opinions of people about all runs together."""

    means: list[MeanRow]
    gaps: list[GapRow]
    pairs: list[PairRow]
    judges: list[JudgedRow]
    heard: list[HeardRow]
    notes: list[str]
    signature: str = SIGNATURE


def people(readings: Sequence[Reading]) -> People:
    """Compute what people say about these runs."""
    means, gaps = [], []
    for study, dimension, condition, by_run in _rated(readings):
        means += [_mean_row(study, dimension, condition, run, own) for run, own in by_run.items()]
        gaps += _gap_rows(study, dimension, condition, {readings[n].name: own for n, own in by_run.items()})
    pairs = [_pair_row(*found) for found in _voted(readings)]
    judges = [
        JudgedRow(f"people/{row.study}/{row.dimension.key}/judge/{n + 1}/{row.judge}", n, row)
        for n, reading in enumerate(readings)
        for row in judge_rows(reading)
    ]
    return People(
        means,
        significance.adjust(gaps, [(row.study, row.condition) for row in gaps]),
        significance.adjust(pairs, [(row.study, row.condition) for row in pairs]),
        judges,
        [row for row, _ in _heard_rows(readings)],
        [],
    )


def cases_by_key(readings: Sequence[Reading]) -> Iterator[KeyedCases]:
    """Yield the key of every row with the cases that people labelled."""
    for study, dimension, condition, by_run in _rated(readings):
        for run, own in by_run.items():
            yield _mean_key(study, dimension, condition, run), unique(one.answer.item.case for one in own)
        for a, b in itertools.combinations(by_run, 2):
            key = _gap_key(study, dimension, condition, (readings[a].name, readings[b].name))
            yield key, unique(one.answer.item.case for one in (*by_run[a], *by_run[b]))
    for study, question, condition, runs, votes in _voted(readings):
        yield _pair_key(study, question, condition, runs), unique(answer.item.case for _, answer in votes)
    for heard_row, cases in _heard_rows(readings):
        yield heard_row.key, cases
    for n, reading in enumerate(readings):
        for row in judge_rows(reading):
            study = reading.studies[row.study]
            own = opinions(replies_of(reading.answers), study, row.dimension.key)
            score = f"{row.dimension.key}@{row.judge}"
            cases = unique(one.answer.item.case for one in own if one.answer.value(score) is not None)
            yield f"people/{row.study}/{row.dimension.key}/judge/{n + 1}/{row.judge}", cases


# ── ratings ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _rated(
    readings: Sequence[Reading],
) -> Iterator[tuple[LabelStudy, Dimension, str, dict[int, list[Opinion]]]]:
    """Yield (study, question, condition, run → opinions of all sessions) for questions about single replies."""
    found: dict[tuple[str, str, str], tuple[LabelStudy, Dimension, dict[int, list[Opinion]]]] = {}
    for run, reading in enumerate(readings):
        asked = replies_of(reading.answers)
        for study, dimension in questions(asked, reading.studies):
            for one in opinions(asked, study, dimension.key, unusable=True):
                key = study.id, dimension.key, one.answer.condition
                found.setdefault(key, (study, dimension, {}))[2].setdefault(run, []).append(one)
    for (_, _, condition), (study, dimension, by_run) in found.items():
        yield study, dimension, condition, by_run


def _usable(given: Iterable[Opinion]) -> list[Opinion]:
    return [one for one in given if one.label.usable]


def _mean_key(study: LabelStudy, dimension: Dimension, condition: str, run: int) -> str:
    return f"people/{study.id}/{dimension.key}/{condition}/{run + 1}"


def _mean_row(study: LabelStudy, dimension: Dimension, condition: str, run: int, own: list[Opinion]) -> MeanRow:
    usable = _usable(own)
    return MeanRow(
        _mean_key(study, dimension, condition, run), study.title, dimension, run, condition,
        mean(usable, dimension), mean(own, dimension), len({one.label.rater for one in usable}), len(usable),
    )  # fmt: skip


def _gap_key(study: LabelStudy, dimension: Dimension, condition: str, runs: tuple[str, str]) -> str:
    return f"people/{study.id}/{dimension.key}/{condition}/{'~'.join(runs)}"


def _gap_rows(
    study: LabelStudy, dimension: Dimension, condition: str, by_run: Mapping[str, list[Opinion]]
) -> list[GapRow]:
    usable = {run: own for run, given in by_run.items() if (own := _usable(given))}
    if len(usable) < 2:
        return []
    rows = [(one.value, run, one) for run, own in usable.items() for one in own]
    raters, scripts = names([one for *_, one in rows])
    fitted = system_means([value for value, *_ in rows], [run for _, run, _ in rows], raters, scripts)
    made = []
    for a, b in itertools.combinations(usable, 2):
        both = [(*usable[a],), (*usable[b],)]
        gap = fitted.difference(a, b)
        decision = votes_needed(
            [one.value for side in both for one in side],
            [one.answer.item.group for side in both for one in side],
            [sign for sign, side in zip((1, -1), both, strict=True) for _ in side],
            p=(p := fitted.p_value(a, b)),
        )
        every = [*both[0], *both[1]]
        e = replace(from_interval(gap, gap.low, gap.high, gap.rows), note=rater_note(every))
        made.append(
            GapRow(
                _gap_key(study, dimension, condition, (a, b)), study.title, dimension, (a, b), condition, e, decision,
                len({one.label.rater for one in every}), p,
            )
        )  # fmt: skip
    return made


# ── votes ───────────────────────────────────────────────────────────────────────────────────────────────────────────

Votes = list[tuple[Label, Answer]]


def _voted(readings: Sequence[Reading]) -> Iterator[tuple[LabelStudy, str, str, tuple[str, str], Votes]]:
    """Yield (study, question, condition, runs, votes of all sessions) for pairs; a vote is in both runs, and counts
    once."""
    found: dict[tuple[str, str, str, tuple[str, str]], dict[tuple[str, str], tuple[Label, Answer]]] = {}
    studies: dict[str, LabelStudy] = {}
    for reading in readings:
        for answer in replies_of(reading.answers):
            for label in answer.labels:
                study = reading.studies.get(label.study)
                if study is None or label.kind != "pair" or isinstance(label.value, list):
                    continue
                studies[study.id] = study
                own, other = study.system, label.seen.other
                runs = (own, other) if label.seen.side == "A" else (other, own)
                votes = found.setdefault((study.id, label.dimension, answer.condition, runs), {})
                votes.setdefault((label.unit, label.rater), (label, answer))
    for (study_id, dimension, condition, runs), votes in found.items():
        yield studies[study_id], dimension, condition, runs, list(votes.values())


def _pair_key(study: LabelStudy, dimension: str, condition: str, runs: tuple[str, str]) -> str:
    return f"people/{study.id}/{dimension}/{condition}/votes/{'~'.join(runs)}"


def _lead(value: Value) -> float | None:
    """Return how much the first run leads in one vote; None for a missing one. CMOS says how much better B is."""
    if isinstance(value, str):
        return LEAD.get(value)
    return None if isinstance(value, list) else -float(value)


def _side(value: Value) -> str:
    """Return the share that a vote belongs to."""
    lead = _lead(value) or 0.0
    return str(value) if isinstance(value, str) else "A" if lead > 0 else "B" if lead < 0 else SAME


def _pair_row(study: LabelStudy, dimension: str, condition: str, runs: tuple[str, str], votes: Votes) -> PairRow:
    told = [(label, answer, lead) for label, answer in votes if (lead := _lead(label.value)) is not None]
    usable = [one for one in told if one[0].usable]
    graded = any(not isinstance(label.value, str) for label, *_ in told)
    sides = [_side(label.value) for label, *_ in usable]
    kinds = ("A", "B", SAME) if graded else tuple(LEAD)
    shares = {kind: sides.count(kind) / max(1, len(sides)) for kind in kinds}
    values = [lead for *_, lead in usable]
    scripts = [answer.item.group for _, answer, _ in usable]
    raters = [label.rater for label, *_ in usable]
    e, p = Estimate(None, None, None, 0, 0), None
    if usable:
        fitted = system_means(values, [""] * len(values), raters, scripts)
        found, most = fitted.of(""), 3.0 if graded else 1.0
        e = from_interval(found, max(found.low, -most), min(found.high, most), len(votes))
        e = replace(e, note=rater_note([Opinion(0, label, answer) for label, answer, _ in usable]))
        p = fitted.p_value("")
    return PairRow(
        _pair_key(study, dimension, condition, runs), study.title, study.questions[dimension].label, runs, condition,
        e, shares, None if graded else (shares["A"] + shares["both_good"], shares["B"] + shares["both_good"]),
        sum(label.value == CANNOT_TELL and label.usable for label, _ in votes), len(usable),
        _mean_lead(told), votes_needed(values, scripts, [1] * len(values), p=p),
        len(set(raters)), p, graded,
    )  # fmt: skip


def _mean_lead(told: Sequence[tuple[Label, Answer, float]]) -> float:
    """Return the mean lead, fitted like that of the usable sessions."""
    if not told:
        return 0.0
    raters, scripts = [label.rater for label, *_ in told], [answer.item.group for _, answer, _ in told]
    return system_means([lead for *_, lead in told], [""] * len(told), raters, scripts).of("").value


# ── what was heard ──────────────────────────────────────────────────────────────────────────────────────────────────


def _heard_rows(readings: Sequence[Reading]) -> Iterator[tuple[HeardRow, list[str]]]:
    """Yield the cues that people heard, by intended cue, with the cases. A neutral clip intends no cue."""
    for run, reading in enumerate(readings):
        for study in reading.studies.values():
            grouped: dict[tuple[str, str], list[Answer]] = {}
            for answer in reading.answers:
                for kind in {label.kind for label in answer.labels if label.study == study.id}:
                    grouped.setdefault((kind, answer.item.cue or "none"), []).append(answer)
            for (of, intended), answers in sorted(grouped.items()):
                rows = [heard([label for label in a.labels if label.kind == of], study) for a in answers]
                counts: dict[str, int] = {}
                for one, _, _ in rows:
                    for cue, n in one.items():
                        counts[cue] = counts.get(cue, 0) + n
                if people := sum(n for _, n, _ in rows):
                    ranked = dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))
                    key = f"people/{study.id}/heard/{run + 1}/{of}/{intended}"
                    row = HeardRow(key, study.title, run, of, intended, ranked, people)
                    yield row, unique(answer.item.case for answer in answers)


# ── in words ────────────────────────────────────────────────────────────────────────────────────────────────────────


def sentences(data: People) -> list[Sentence]:
    """Return a sentence on every difference, on every pair of runs that people voted on, and on every judge."""
    few: list[tuple[str, int]] = []
    lines = []
    for gap in data.gaps:
        what = f"{gap.dimension.label}, {gap.runs[0]} against {gap.runs[1]}"
        if gap.raters < PEOPLE.least:
            few.append((what, gap.raters))
        elif gap.gap.value is not None:
            lines.append(Sentence(_gap_sentence(gap), gap.key, gap.condition))
    for pair in data.pairs:
        if pair.raters < PEOPLE.least:
            few.append((f"votes on {pair.runs[0]} against {pair.runs[1]}", pair.raters))
        elif pair.lead.value is not None:
            lines.append(Sentence(_pair_sentence(pair), pair.key, pair.condition))
    for judged in data.judges:
        if judged.row.raters < PEOPLE.least:
            few.append((f"{judged.row.judge} on {judged.row.dimension.label}", judged.row.raters))
        elif judged.row.alpha.value is not None:
            lines.append(Sentence(_judge_sentence(judged.row), judged.key))
    return [*lines, *shortfall(PEOPLE, few)]


def _gap_sentence(row: GapRow) -> str:
    kind = "points" if row.dimension.share else "number"
    gap, ends = by_kind(row.gap.value, kind), interval(row.gap, kind)
    head = f"People, {row.dimension.label} ({row.raters} raters): {row.runs[0]} minus {row.runs[1]} is {gap} ({ends})"
    tested = _tested(row.gap, row)
    return f"{head}{tested}{_more(row.decision, significance.significant(row.adjusted))}."


def _pair_sentence(row: PairRow) -> str:
    shares = {name: by_kind(share, "percent") for name, share in row.shares.items()}
    first, second = row.runs
    both = (
        f"the two are the same in {shares[SAME]} %"
        if row.graded
        else f"both are good in {shares['both_good']} % and both bad in {shares['both_bad']} %"
    )
    head = (
        f"Of {row.votes:,} votes by {row.raters} people, {shares['A']} % prefer {first} and {shares['B']} % {second}; "
        f"{both}"
    )
    kind: Literal["number", "points"] = "number" if row.graded else "points"
    unit = "on the scale from −3 to 3" if row.graded else "points"
    lead = f". {first} minus {second} is {by_kind(row.lead.value, kind)} {unit} ({interval(row.lead, kind)})"
    tested = _tested(row.lead, row)
    return f"{head}{lead}{tested}{_more(row.decision, significance.significant(row.adjusted))}."


def _tested(e: Estimate, row: GapRow | PairRow) -> str:
    return significance.by_test(e, row.adjusted, row.tests).replace(significance.TEST, TEST)


def _more(decision: Decision, significant: bool) -> str:
    """Return how many more votes or scripts would decide."""
    if significant or decision.verdict == "decided":
        return ""
    if decision.verdict == "votes":
        return f". About {decision.more:,} more votes on the same scripts would decide, if the estimate is right"
    if decision.verdict == "scripts":
        return f". More votes on the same scripts cannot decide; about {decision.more:,} more scripts would"
    if decision.verdict == "people":
        return ". More people are needed to decide: these differ too much from each other"
    if decision.verdict == "few":
        return f". Too few scripts have answers about both to say what would decide: {DIFFERENCE.least} are needed"
    return f". The two are too close: {MOST:.0f} times as many answers would not decide"


def _judge_sentence(row: JudgeRow) -> str:
    ends = interval(row.alpha, "number")
    ceiling = f"; between people it is {number(row.ceiling)}" if row.ceiling is not None else ""
    bias = row.bias.value or 0.0
    by = by_kind(abs(bias), "points" if row.dimension.share else "number").removeprefix("+")
    return (
        f"Judge {row.judge} against people on {row.dimension.label}: Krippendorff’s α {number(row.alpha.value)}"
        f"{f' ({ends})' if ends else ''} on {row.replies:,} replies{ceiling}; the judge’s mean is {by} "
        f"{'above' if bias >= 0 else 'below'} people’s."
    )
