"""The results of a study: means and leads of systems, agreement of raters, severity, people against judges.

`study_results` computes what the owner's page and `studio status` show, from the answers that the store has. Only
usable sessions count; each mean is also given over all sessions. Means come from crossed effects of raters and scripts;
intervals of agreement are bootstraps over scripts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct

from overtone.errors import OvertoneError
from overtone.results import significance
from overtone.results.load import open_run
from overtone.results.people_scores import JudgeRow, few_raters, judge_rows
from overtone.runs.people_labels import LabelStudy, Question
from overtone.stats import agreement as krippendorff
from overtone.stats import kappa
from overtone.stats.cluster import Interval
from overtone.stats.crossed import SystemMeans, system_means
from overtone.stats.minimums import DIFFERENCE, PEOPLE
from overtone.stats.votes_needed import MOST, Decision, votes_needed
from overtone.studio import designs
from overtone.studio.designs import label
from overtone.studio.labels.given import Given, counted, sessions
from overtone.studio.labels.rows import CANNOT_TELL, Draft, drafts, label_study, of_screen
from overtone.studio.study import Study
from overtone.text import count, number, percent

DRAWS = 500
CUE = f"{label.HEARD}_"  # begins the keys of questions about single cues
NAMED = 5  # severe raters in a sentence
SEED = 20_273
LEAD = {"A": 1.0, "B": -1.0, "both_good": 0.0, "both_bad": 0.0}


class Number(Struct, frozen=True):
    """A number with its 95 % interval; None where it cannot be computed."""

    value: float | None
    low: float | None = None
    high: float | None = None


class SystemRow(Struct, frozen=True):
    """People's mean of one system in one question. `everyone` includes unusable sessions."""

    system: str
    mean: Number
    everyone: Number
    answers: int


class GapRow(Struct, frozen=True):
    """The first system minus the second; in votes on pairs, the lead of the first as a share. `decision` says how
    many more votes or scripts would decide."""

    first: str
    second: str
    gap: Number
    p: float | None
    decision: Decision
    shares: dict[str, float] = {}  # of a study of pairs: value → share
    acceptable: tuple[float, float] | None = None
    conclusion: str = ""  # in words
    caution: str = ""  # if so few people answered that the interval does not hold for others


class Ceiling(Struct, frozen=True):
    """How well one person agrees with the others: with the mean (scale) or the most frequent answer (choice) of the
    other people. A judge with a higher κ agrees with people better than one of them does."""

    exact: float | None
    kappa: float | None
    ratings: int


class SeverityRow(Struct, frozen=True):
    """How much higher or lower a person rates than the average person."""

    rater: str
    answers: int
    value: float
    error: float


class QuestionRow(Struct, frozen=True):
    """Everything about one question. `level` is the scale for Krippendorff's α: nominal, ordinal or interval."""

    key: str
    label: str
    level: str
    raters: int
    answers: int
    units: int
    alpha: Number
    percent: float | None  # share of agreeing pairs of answers
    ceiling: Ceiling
    repeated: float | None  # share of repeated screens with the same answer
    systems: list[SystemRow]
    gaps: list[GapRow]
    severities: list[SeverityRow]
    spread: dict[str, float]  # standard deviation between raters, between scripts, and of the rest


class Confused(Struct, frozen=True):
    """How often people heard each cue in clips of one intended cue."""

    intended: str
    heard: dict[str, int]
    answers: int


class StudyResults(Struct, frozen=True):
    """The results of a study so far."""

    study: str
    design: str
    sessions: int
    usable: int
    questions: list[QuestionRow]
    judges: list[tuple[str, JudgeRow]]  # run, and its judge against people
    confusion: list[Confused]
    notes: list[str]


def study_results(study: Study, given: Sequence[Given], *, draws: int = DRAWS, judges: bool = True) -> StudyResults:
    """Return the results of a study. `judges` reads the runs for the scores of judges (after a sync)."""
    if designs.find(study.design).layout in ("record", "review"):
        return StudyResults(study.title, study.design, 0, 0, [], [], [], [])
    described = label_study(study)
    made = _by_question(study, described, given)
    repeated = _repeated(study, given)
    rows = [
        _question(key, question, made[key], repeated.get(key), draws)
        for key, question in described.questions.items()
        if made[key] and _level(question)
    ]
    by_session = sessions(given)
    notes: list[str] = []
    return StudyResults(
        study.title, study.design, len(by_session), sum(by_session.values()), rows,
        _judges(study, notes) if judges else [], _confusion(given), notes,
    )  # fmt: skip


def sentences(results: StudyResults) -> list[str]:
    """Return the results in plain words: agreement, systems, differences, severe raters."""
    lines = []
    for row in results.questions:
        if row.key.startswith(CUE):  # one of many; what was heard is listed below
            continue
        if row.alpha.value is not None:
            agreed = row.ceiling.kappa
            others = f"; one against the others κ {number(agreed)}" if agreed is not None else ""
            between = f"between {count(row.raters, 'rater')} on {count(row.units, 'unit')}"
            lines.append(f"{row.label}: α {_with_ends(row.alpha)} {between}{others}")
        means = ", ".join(f"{one.system} {_with_ends(one.mean)}" for one in row.systems)
        if means:
            caution = f"; {few_raters(row.raters)}" if row.raters < PEOPLE.least else ""
            lines.append(f"{row.label}: {means}{caution}")
        lines += [f"{row.label}: {_gap_sentence(gap)}" for gap in row.gaps]
        severe = sorted((one for one in row.severities if _is_severe(one)), key=lambda one: -abs(one.value))
        if severe:
            named = ", ".join(f"{one.rater} {number(one.value)}" for one in severe[:NAMED])
            more = f" and {len(severe) - NAMED} more" if len(severe) > NAMED else ""
            lines.append(f"{row.label}: raters far from the average: {named}{more}")
    for run, judged in results.judges:
        lines.append(
            f"{run}: {judged.judge} against people on {judged.dimension.label}: α {number(judged.alpha.value)} on "
            f"{judged.replies:,} replies"
        )
    for one in results.confusion:
        heard = ", ".join(f"{cue} {n}" for cue, n in list(one.heard.items())[:NAMED])
        lines.append(f"intended {one.intended}: people heard {heard} ({count(one.answers, 'answer')})")
    return [*lines, *results.notes]


def _is_severe(one: SeverityRow) -> bool:
    return one.error > 0 and abs(one.value) > 3 * one.error


def _gap_sentence(gap: GapRow) -> str:
    both = f"; acceptable {percent(gap.acceptable[0])} and {percent(gap.acceptable[1])}" if gap.acceptable else ""
    caution = f"; {gap.caution}" if gap.caution else ""
    return f"{gap.first} − {gap.second}: {_with_ends(gap.gap)}, {gap.conclusion}{caution}{both}"


def _conclusion(p: float | None, decision: Decision) -> str:
    """Return whether a difference is significant, and what would decide if it is not."""
    if p is None:
        return "not tested: too few answers"
    if significance.significant(p):
        return f"significant ({significance.p_value(p)})"
    more = {
        "decided": "",  # at the level itself
        "votes": f"; about {count(decision.more, 'more vote')} would decide, if the estimate is right",
        "scripts": f"; more votes cannot decide, about {count(decision.more, 'more script')} would",
        "people": "; more people are needed: these differ too much from each other",
        "close": f"; too close: {MOST:.0f} times as many answers would not decide",
        "few": f"; too few scripts have answers about both to say what would decide: {DIFFERENCE.least} are needed",
    }[decision.verdict]
    return f"no significant difference ({significance.p_value(p)}){more}"


def _with_ends(found: Number) -> str:
    ends = f" ({number(found.low)} to {number(found.high)})" if found.low is not None else ""
    return f"{number(found.value)}{ends}"


class Rated(Struct, frozen=True):
    """One answer to one question: its unit, system (or pair of systems), rater, script and number."""

    unit: str
    system: str
    rater: str
    script: str
    value: float  # for α; in pairs a code per choice; NaN: missing ("cannot tell")
    lead: float  # for means; NaN: missing
    usable: bool
    answer: str


def _by_question(study: Study, described: LabelStudy, given: Sequence[Given]) -> dict[str, list[Rated]]:
    """Return question → answers. A pair counts once, with both systems."""
    codes = {
        key: {choice: float(at) for at, choice in enumerate(question.choices) if choice != CANNOT_TELL}
        for key, question in described.questions.items()
    }
    made: dict[str, list[Rated]] = {key: [] for key in described.questions}
    for rows in drafts(study, given).values():
        for draft in rows:
            if draft.seen.side != "B" and not isinstance(draft.value, list):
                question = described.questions[draft.dimension]
                made[draft.dimension].append(_rated(draft, question, codes[draft.dimension]))
    return made


def _rated(draft: Draft, question: Question, codes: Mapping[str, float]) -> Rated:
    pair = draft.seen.side == "A"
    number = question.number(draft.value)
    lead = math.nan if number is None else number
    if pair:
        lead = LEAD.get(draft.value, math.nan) if isinstance(draft.value, str) else -float(draft.value)  # type: ignore[arg-type]
    code = codes.get(str(draft.value), math.nan) if isinstance(draft.value, str) else float(draft.value)  # type: ignore[arg-type]
    ordered = _level(question) != "nominal" and number is not None
    system = f"{draft.run}|{draft.seen.other}" if pair else draft.run
    return Rated(
        draft.unit + ("" if pair else f"/{draft.run}"), system, draft.rater, draft.seen.group,
        number if ordered and number is not None else code, lead, draft.usable, str(draft.value),
    )  # fmt: skip


def _level(question: Question) -> krippendorff.Level | None:
    """Return the scale of a question for α: sliders interval, scales and ordered choices ordinal, choices nominal; None
    for free lists."""
    if question.low is not None:
        whole = question.high is not None and question.high - question.low <= 10
        return "ordinal" if whole else "interval"
    if not question.choices:
        return None
    steps = set(question.values.values())
    ordered = question.better != "neither" and len(steps) == len(question.choices) > 2
    return "ordinal" if ordered else "nominal" if question.values or len(question.choices) > 1 else None


def _question(key: str, question: Question, rated: Sequence[Rated], repeated: float | None, draws: int) -> QuestionRow:
    level = _level(question) or "nominal"
    usable = [one for one in rated if one.usable and not math.isnan(one.value)]
    ratings, scripts = _table(usable)
    found = krippendorff.agreement(ratings, level, seed=SEED, draws=draws, clusters=scripts)
    systems, gaps, severities, spread = _systems(rated)
    return QuestionRow(
        key, question.label, level, len({one.rater for one in usable}), len(usable), len({one.unit for one in usable}),
        Number(_known(found.alpha), _known(found.low), _known(found.high)), _known(found.percent),
        _ceiling(ratings, level), repeated, systems, gaps, severities, spread,
    )  # fmt: skip


def _table(rated: Sequence[Rated]) -> tuple[np.ndarray[tuple[int, int], np.dtype[np.float64]], list[str]]:
    """Return ratings (raters, units) with NaN for missing ones, and each unit's script."""
    raters = {name: at for at, name in enumerate(dict.fromkeys(one.rater for one in rated))}
    units = {name: at for at, name in enumerate(dict.fromkeys(one.unit for one in rated))}
    scripts = {one.unit: one.script for one in rated}
    table = np.full((len(raters), len(units)), math.nan)
    for one in rated:
        table[raters[one.rater], units[one.unit]] = one.value
    return table, [scripts[unit] for unit in units]


def _systems(
    rated: Sequence[Rated],
) -> tuple[list[SystemRow], list[GapRow], list[SeverityRow], dict[str, float]]:
    told = [one for one in rated if not math.isnan(one.lead)]
    usable = [one for one in told if one.usable]
    if not usable:
        return [], [], [], {}
    fitted, everyone = (
        system_means(
            [o.lead for o in rows], [o.system for o in rows], [o.rater for o in rows], [o.script for o in rows]
        )
        for rows in (usable, told)
    )
    names = list(dict.fromkeys(one.system for one in usable))
    pairs = any("|" in name for name in names)
    rows = [
        SystemRow(name, _number(fitted.of(name)), _number(everyone.of(name)), sum(one.system == name for one in usable))
        for name in names
    ]
    gaps = [_pair_gap(name, [o for o in rated if o.usable and o.system == name]) for name in names] if pairs else [
        _system_gap(a, b, fitted, usable) for a, b in itertools.combinations(names, 2)
    ]  # fmt: skip
    severities = [SeverityRow(str(s.rater), s.ratings, s.value, s.error) for s in fitted.severities]
    parts = fitted.components
    spread = {"raters": parts.raters**0.5, "scripts": parts.scripts**0.5, "rest": parts.rest**0.5}
    return rows if not pairs else [], gaps, severities if not pairs else [], spread


def _pair_gap(system: str, rated: Sequence[Rated]) -> GapRow:
    first, _, second = system.partition("|")
    told = [one for one in rated if not math.isnan(one.lead)]
    values = [one.lead for one in told]
    raters, scripts = [one.rater for one in told], [one.script for one in told]
    fitted = system_means(values, [""] * len(values), raters, scripts)
    words = [one.answer for one in told] if all(one.answer in LEAD for one in told) else []
    shares = {value: words.count(value) / len(words) for value in LEAD} if words else {}
    acceptable = (shares["A"] + shares["both_good"], shares["B"] + shares["both_good"]) if shares else None
    p = fitted.p_value("")
    decision = votes_needed(values, scripts, [1] * len(values), p=p)
    return GapRow(
        first, second, _number(fitted.of("")), p, decision, shares, acceptable, _conclusion(p, decision),
        few_raters(len(set(raters))),
    )  # fmt: skip


def _system_gap(first: str, second: str, fitted: SystemMeans, usable: Sequence[Rated]) -> GapRow:
    both = [one for one in usable if one.system in (first, second)]
    p = fitted.p_value(first, second)
    sides = [1 if one.system == first else -1 for one in both]
    decision = votes_needed([one.lead for one in both], [one.script for one in both], sides, p=p)
    people = min(len({one.rater for one in both if one.system == name}) for name in (first, second))
    return GapRow(
        first, second, _number(fitted.difference(first, second)), p, decision, conclusion=_conclusion(p, decision),
        caution=few_raters(people),
    )  # fmt: skip


def _ceiling(ratings: np.ndarray[tuple[int, int], np.dtype[np.float64]], level: str) -> Ceiling:
    """Compare every rating with the other people's ratings of the same unit."""
    own, others = [], []
    for unit in np.flatnonzero((~np.isnan(ratings)).sum(0) >= 2):
        column = ratings[:, unit]
        for rater in np.flatnonzero(~np.isnan(column)):
            rest = np.delete(column, rater)
            settled = _settled(rest[~np.isnan(rest)], level)
            if not math.isnan(settled):
                own.append(float(column[rater]))
                others.append(settled)
    exact, agreed = kappa.exact(own, others), kappa.cohen(own, others, None if level == "nominal" else "quadratic")
    return Ceiling(_known(exact), _known(agreed), len(own))


def _settled(values: np.ndarray[tuple[int], np.dtype[np.float64]], level: str) -> float:
    """Reduce several ratings to one: the most frequent choice (NaN: undecided), or the step nearest to the mean."""
    if level != "nominal":
        return float(np.floor(values.mean() + 0.5 + 1e-9))
    kinds, often = np.unique(values, return_counts=True)
    return float(kinds[often.argmax()]) if (often == often.max()).sum() == 1 else math.nan


def _repeated(study: Study, given: Sequence[Given]) -> dict[str, float]:
    """Return question → share of repeated answers that are the same as the first time."""
    repeats = [one for one in given if one.kind == "repeat" and one.usable]
    units = {(one.rater, one.unit.id) for one in repeats}
    once = [one for one in given if one.kind == "real" and (one.rater, one.unit.id) in units]
    first = {_place(draft): draft.value for one in once for draft in of_screen(study, one)}
    same: dict[str, list[bool]] = {}
    for draft in (draft for one in repeats for draft in of_screen(study, one)):
        if draft.seen.side != "B" and (value := first.get(_place(draft))) is not None:
            same.setdefault(draft.dimension, []).append(value == draft.value)
    return {key: sum(found) / len(found) for key, found in same.items()}


def _place(draft: Draft) -> tuple[str, ...]:
    return draft.rater, draft.unit, draft.run, draft.dimension, draft.seen.side


def _confusion(given: Sequence[Given]) -> list[Confused]:
    """Return what people heard by the intended cue, for studies that ask for cues."""
    found: dict[str, tuple[dict[str, int], int]] = {}
    for one in counted(given):
        heard = one.values.get("heard")
        if not isinstance(heard, list):
            continue
        texts = one.unit.replies[0].texts if one.unit.replies else one.unit.texts
        intended = one.unit.cells.get("cue") or texts.get("cue", "") or "none"
        counts, n = found.get(intended, ({}, 0))
        for cue in heard:
            counts[cue] = counts.get(cue, 0) + 1
        found[intended] = counts, n + 1
    return [
        Confused(intended, dict(sorted(counts.items(), key=lambda entry: -entry[1])), n)
        for intended, (counts, n) in sorted(found.items())
    ]


def _judges(study: Study, notes: list[str]) -> list[tuple[str, JudgeRow]]:
    """Return every judge of the runs against the labels that the runs hold."""
    found = []
    for source in study.sources:
        folder: Path = study.folder(source)
        if source.kind != "run":
            continue
        try:
            rows = judge_rows(open_run(folder, light=True))
        except OvertoneError as error:
            notes.append(f"{source.name}: judges could not be compared with people: {error}")
            continue
        found += [(source.name, row) for row in rows if row.study == study.id]
    return found


def _number(found: Interval) -> Number:
    return Number(_known(found.value), _known(found.low), _known(found.high))


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
