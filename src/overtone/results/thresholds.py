"""Check a run against thresholds, one row for each condition, and against the limit on missing replies.

The value alone decides whether a threshold holds; its interval is only shown. Quality is measured over the headline's
items. Replies, failures, retries, latency and cost are measured over all asks.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence

from overtone.results import measure_names, operations
from overtone.results.corpus_scores import TRANSCRIPTS, WER_CORPUS, corpus_wer
from overtone.results.judge_scores import by_status, judges_of
from overtone.results.load import Answer, Reading
from overtone.results.measures import Estimate, Measure
from overtone.results.requirements import Checked, Requirement, State, amount, limit, threshold_on
from overtone.scores import ScoreInfo, built_in

MISSING = 0.01  # default: largest allowed share of a condition's asks without a reply
NOTHING = Estimate(None, None, None, 0, 0)
_TASKS = {"choose": "question", "transcribe": "transcription", "converse": "conversation"}
_OPS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


def asks(run: Reading, conditions: Sequence[str], *, core: bool = True) -> dict[str, list[Answer]]:
    """Return condition → answers, from the benchmark's core or, if `core` is false, from the whole benchmark."""
    by_condition: dict[str, list[Answer]] = {}
    for answer in run.answers:
        if not (core and answer.item.part) and (not conditions or answer.condition in conditions):
            by_condition.setdefault(answer.condition, []).append(answer)
    return by_condition


def headline_asks(answers: list[Answer], measure: Measure | None = None) -> tuple[str, list[Answer]]:
    """Return a remark and the answers that count: answers about validated or unmarked cues. If there are none, all
    answers count, and the remark says so. For a measure that counts every ask, all answers count."""
    if measure is not None and measure.every:
        return "", answers
    parts = by_status(answers)
    basis, own = parts[0] if parts else ("", [])
    return " over cues that are not validated" if basis == "unvalidated" else "", own


def missing(run: Reading, conditions: Sequence[str], most: float) -> Checked:
    """Check that in every condition at most the share `most` of the asks has no reply."""
    about = ScoreInfo("Missing replies", better="lower")
    asked = asks(run, conditions, core=False)
    every = [a for answers in asked.values() for a in answers]
    lost = sum(not a.answered for a in every)
    parts = [f"{lost:,} of {len(every):,} requests have no reply"]
    for condition, answers in asked.items():
        failed, without = sum(a.failed for a in answers), sum(not a.answered for a in answers)
        if without > most * len(answers):
            counts = f"{without:,} of {len(answers):,}: {failed:,} failed, {without - failed:,} pending"
            parts.append(f"{amount(without / len(answers), about)} under {condition} ({counts})")
    state: State = "fails" if len(parts) > 1 else "holds"
    if lost:
        parts.append("the same 'overtone run' command retries them")
    share = Estimate(lost / len(every) if every else None, None, None, len(every), len(every))
    return Checked("check/missing", f"missing replies <= {limit(most, about)}", "", state, share, "; ".join(parts))


def threshold_rows(run: Reading, required: Requirement, conditions: Sequence[str]) -> list[Checked]:
    """Check one threshold under every condition. Raises UsageError for an unknown name or an invalid number."""
    name = required.name
    if name in operations.TOTALS:
        return _totals(run, required, conditions)
    measure = None if name == WER_CORPUS else measure_names.find_one(name, [run])
    about = built_in()[TRANSCRIPTS] if measure is None else measure.about
    number = threshold_on(required, about)
    asked = asks(run, conditions, core=measure is None or not measure.every)
    rows = []
    for condition, answers in asked.items():
        mine = [a for a in answers if (measure.belongs(a.item) if measure else a.item.task == "transcribe")]
        if not mine:
            continue
        over, head = headline_asks(mine, measure)
        value = measure.estimate(head) if measure else corpus_wer(head)
        possible = _possible(measure, head) if measure else [value.best, value.worst]
        why = why_unscored(run, measure, mine)
        rows.append(_row(required, about, number, condition, value, possible, over, why))
    every = [a for answers in asked.values() for a in answers]
    return rows or [_row(required, about, number, "", NOTHING, [], "", why_unscored(run, measure, every))]


def _totals(run: Reading, required: Requirement, conditions: Sequence[str]) -> list[Checked]:
    """Check latency under each condition, or the cost of all conditions together."""
    total = operations.TOTALS[required.name]
    number = threshold_on(required, total.about)
    spent = operations.read_spent(run)
    asked = asks(run, conditions, core=False)
    if required.name == operations.COST:
        asked = {"": [a for answers in asked.values() for a in answers]}
    why = operations.why_not(required.name, run)
    rows = []
    for condition, answers in asked.items():
        value = total.estimate(run, spent, answers)
        over = f" ({total.note})" if total.note else ""
        rows.append(_row(required, total.about, number, condition, value, [value.best, value.worst], over, why))
    return rows


def _possible(measure: Measure, answers: Sequence[Answer]) -> list[float | None]:
    """Return the means that would result if every missing value were at one end of the scale, or at the other. If
    the scale has an open end, the extreme observed values are used too."""
    read = [measure.read(a) for a in answers if measure.belongs(a.item)]
    seen = [x for x in read if x is not None]
    if not seen:
        return []
    ends = [x for x in (measure.good, measure.bad) if x is not None]
    fills = ends if len(ends) == 2 else [*ends, min(seen), max(seen)]
    return [(math.fsum(seen) + (len(read) - len(seen)) * fill) / len(read) for fill in fills]


def why_unscored(run: Reading, measure: Measure | None, answers: Sequence[Answer]) -> str:
    """Return the reason why a measure has no value over these answers, and the command that supplies the value. The
    measure None stands for `wer_corpus`."""
    key, at, label = measure.name.partition("@") if measure else ("", "", "")
    scored = measure is None or measure.scores or measure.every
    task = "transcribe" if measure is None else measure.task
    level = 1 if measure is None else measure.level
    mine = [a for a in answers if (a.item.task == task if measure is None or not scored else measure.belongs(a.item))]
    if not mine:
        if task not in _TASKS:
            return "the run has no requests here"
        asks_them = f"'overtone run … --levels {level}' asks them"
        return f"the run has no {_TASKS[task]} of level {level} here; {asks_them}"
    if not any(a.answered for a in mine):
        return f"none of its {len(mine):,} requests has a reply; the same 'overtone run' command retries them"
    if scored:
        named_metric = f" --metric {measure.about.metric}" if measure and measure.about.metric else ""
        return f"no reply has a score of it; 'overtone score RUN{named_metric}' computes it"
    judges = judges_of(measure_names.TYPED.get(key, key), run.signatures)
    if at and judges:
        return f"no judge called {label} scored it; it was scored by {', '.join(judges)}"
    return "no judge scored it; 'overtone score RUN --judge SPEC' asks one"


def _row(
    required: Requirement,
    about: ScoreInfo,
    number: float,
    condition: str,
    value: Estimate,
    possible: Sequence[float | None],
    over: str,
    why: str,
) -> Checked:
    key = "/".join(filter(None, ("check", condition, required.name, f"{required.op}{number:g}")))
    wanted = f"{required.name} {required.op} {limit(number, about)}"
    if value.value is None:
        return Checked(key, wanted, condition, "undecided", value, f"not enough data: {why}")
    test = _OPS[required.op]
    holds = test(value.value, number)
    parts = [f"{required.name} is {amount(value.value, about, number)}{over}"]
    if value.low is not None and value.high is not None:
        ends = test(value.low, number), test(value.high, number)
        word = "all of" if all(ends) else "only part of" if any(ends) else "no part of"
        between = f"{amount(value.low, about)} to {amount(value.high, about)}"
        parts.append(f"{word} its 95 % interval, {between}, meets the threshold")
    state: State = "holds" if holds else "fails"
    if value.missing:
        parts.append(f"{value.scored:,} of {value.asked:,} have a value")
        if any(x is not None and test(x, number) != holds for x in possible):
            parts.append(f"the {value.missing:,} missing ones could change the verdict")
            state = "undecided"
    return Checked(key, wanted, condition, state, value, "; ".join(parts))
