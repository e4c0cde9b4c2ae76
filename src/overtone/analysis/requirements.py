"""Does a run hold what is required of it? Thresholds by value, and "no worse than before" by a paired test.

A threshold holds by the value; what its interval says stands beside it. With a baseline a bare threshold says little:
`no worse` holds where the one-sided 95 % bound of the paired difference lies above minus the margin. A required measure
without a margin fails against the baseline only where it is worse beyond chance.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct

from overtone.analysis import named
from overtone.analysis.compare import DRAWS, SEED, share, values
from overtone.analysis.corpus import corpus_wer
from overtone.analysis.judged import by_status, judges_of
from overtone.analysis.measures import Estimate, Measure, of_task
from overtone.analysis.reading import Answer, Reading
from overtone.analysis.unlike import Unlike, unlike
from overtone.errors import UsageError
from overtone.stats import paired

ONE_SIDED = 0.95
SIGNATURE = (
    f"check|v1|cluster:script|no-worse:one-sided-{ONE_SIDED}|test:sign-flips|draws:{DRAWS}|seed:{SEED}|basis:headline"
)
WER_CORPUS = "wer_corpus"
NO_WORSE = "no-worse"  # in a key
_OPS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_REQUIREMENT = re.compile(r"\s*([A-Za-z][\w.@-]*)\s*(>=|<=|>|<)\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*")
_MARGIN = re.compile(r"\s*([A-Za-z][\w.@-]*)\s*:\s*((?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*")

State = Literal["holds", "fails", "unknown"]


class Requirement(Struct, frozen=True):
    """`name op number`."""

    name: str
    op: str
    number: float

    def __str__(self) -> str:
        return f"{self.name} {self.op} {self.number:g}"


class Margin(Struct, frozen=True):
    """No worse than the baseline by `margin` or more, in the measure's own unit; None: not worse beyond chance."""

    name: str
    margin: float | None

    def __str__(self) -> str:
        return f"{self.name} not worse" + ("" if self.margin is None else f" by {self.margin:g}")


class Checked(Struct, frozen=True):
    """What became of one requirement under one condition. `found` is the value, or the difference to the baseline
    (run − baseline); `said` is the whole in words, what the interval says included."""

    key: str
    required: str
    condition: str
    state: State
    found: Estimate
    said: str
    p: float | None = None  # against a baseline: one-sided, of "worse by the margin or more"; two-sided without margin


class Check(Struct, frozen=True):
    """All of them."""

    run: str
    baseline: str
    rows: tuple[Checked, ...]
    notes: tuple[str, ...]
    signature: str = SIGNATURE

    @property
    def state(self) -> State:
        states = {row.state for row in self.rows}
        return "fails" if "fails" in states else "unknown" if "unknown" in states else "holds"


# ── reading what is required ────────────────────────────────────────────────────────────────────────────────────────


def parse_requirement(text: str) -> Requirement:
    """`voice_accuracy >= 0.60` as a record."""
    found = _REQUIREMENT.fullmatch(text)
    if not found:
        raise UsageError(
            f'not a requirement: {text!r}; write NAME, one of >= > <= <, and a number, like "voice_accuracy >= 0.60"'
        )
    return Requirement(found[1], found[2], _finite(text, found[3]))


def parse_margin(text: str) -> Margin:
    """`c4:0.1` as a record."""
    found = _MARGIN.fullmatch(text)
    if not found or _finite(text, found[2]) <= 0:
        raise UsageError(f"not a margin: {text!r}; write NAME:MARGIN with a margin above 0, like c4:0.1")
    return Margin(found[1], _finite(text, found[2]))


def _finite(text: str, number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise UsageError(f"{text!r}: {number} is too large a number")
    return value


# ── checking ────────────────────────────────────────────────────────────────────────────────────────────────────────


def check(
    run: Reading,
    requirements: Sequence[Requirement],
    margins: Sequence[Margin] = (),
    baseline: Reading | None = None,
    conditions: Sequence[str] = (),
) -> Check:
    """Check every requirement under every condition that has the measure, over the headline's items.

    With a baseline the runs must compare in these measures: ask `differences` before. A wrong name is a UsageError.
    """
    if margins and baseline is None:
        raise UsageError("--no-worse needs a run to be no worse than: give --baseline RUN")
    margins = against(requirements, margins) if baseline is not None else margins
    rows = [row for one in requirements for row in _threshold(run, one, conditions)]
    notes: list[str] = [f"{r.name}: {note}" for r in (run, baseline) if r is not None for note in r.notes]
    if baseline is not None:
        found = [(one, named.find_one(one.name, [run, baseline])) for one in margins]
        rows += [row for one, measure in found for row in _no_worse(run, baseline, one, measure, conditions)]
        notes += unlike(baseline, run, [m for _, m in found], share(baseline, run, conditions)[0])[1]
        for _, measure in found:
            if left := named.judges_left_out(measure, [run, baseline]):
                notes.append(f"{measure.label}: {', '.join(left)} judged only one of the runs and is left out")
    return Check(run.name, baseline.name if baseline else "", tuple(rows), tuple(notes))


def against(requirements: Sequence[Requirement], margins: Sequence[Margin]) -> list[Margin]:
    """What is asked of a run beside its baseline: the margins, and of every other required measure to be no worse."""
    known = {one.name for one in margins}
    others = dict.fromkeys(one.name for one in requirements if one.name not in known and one.name != WER_CORPUS)
    return [*margins, *(Margin(name, None) for name in others)]


def differences(
    run: Reading,
    baseline: Reading,
    requirements: Sequence[Requirement],
    margins: Sequence[Margin],
    conditions: Sequence[str] = (),
) -> list[Unlike]:
    """What makes the run and its baseline incomparable in what is asked."""
    measures = [named.find_one(one.name, [run, baseline]) for one in against(requirements, margins)]
    return unlike(baseline, run, measures, share(baseline, run, conditions)[0])[0]


def _asked(run: Reading, conditions: Sequence[str]) -> dict[str, list[Answer]]:
    """The core's answers by condition."""
    found: dict[str, list[Answer]] = {}
    for answer in run.answers:
        if not answer.item.part and (not conditions or answer.condition in conditions):
            found.setdefault(answer.condition, []).append(answer)
    return found


def _head(answers: list[Answer]) -> tuple[str, list[Answer]]:
    """What the headline stands over: validated or unmarked cues; where there are none, all, and a word on it."""
    parts = by_status(answers)
    basis, found = parts[0] if parts else ("", [])
    return " (over cues that are not validated)" if basis == "unvalidated" else "", found


def _threshold(run: Reading, required: Requirement, conditions: Sequence[str]) -> list[Checked]:
    measure = None if required.name == WER_CORPUS else named.find_one(required.name, [run])
    rows = []
    for condition, answers in _asked(run, conditions).items():
        mine = [a for a in answers if (measure.belongs(a.item) if measure else a.item.task == "transcribe")]
        if not mine:
            continue
        over, head = _head(mine)
        found = measure.estimate(head) if measure else corpus_wer(head)
        rows.append(_held(required, condition, found, over, _why_not(run, measure)))
    if not rows:
        nothing = Estimate(None, None, None, 0, 0)
        rows.append(_held(required, "", nothing, "", _why_not(run, measure)))
    return rows


def _why_not(run: Reading, measure: Measure | None) -> str:
    """Why a measure can have no value in this run."""
    key, at, label = measure.name.partition("@") if measure else ("", "", "")
    if measure is None or measure.scores:
        return "no reply has a score of it; 'overtone score RUN' computes what can be computed here"
    judges = judges_of(named.TYPED.get(key, key), run.signatures)
    if at and judges:
        return f"no judge called {label} scored it; it was scored by {', '.join(judges)}"
    return "no judge scored it; 'overtone score RUN --judge SPEC' asks one"


def _held(required: Requirement, condition: str, found: Estimate, over: str, why: str) -> Checked:
    key = "/".join(filter(None, ("check", condition, required.name, f"{required.op}{required.number:g}")))
    if found.value is None:
        return Checked(key, str(required), condition, "unknown", found, f"cannot be told: {why}")
    test = _OPS[required.op]
    holds = test(found.value, required.number)
    said = [f"{required.name} is {found.value:.4g}{over}"]
    if found.low is not None and found.high is not None:
        ends = test(found.low, required.number), test(found.high, required.number)
        word = "lies on its side" if all(ends) else "includes the other side" if any(ends) else "lies on the other side"
        said.append(f"its 95 % interval, {found.low:.4g} to {found.high:.4g}, {word}")
    if found.missing:
        said.append(f"{found.scored:,} of {found.asked:,} scored")
        bounds = [x for x in (found.best, found.worst) if x is not None]
        if any(test(x, required.number) != holds for x in bounds):
            said.append("the missing ones could turn it")
    return Checked(key, str(required), condition, "holds" if holds else "fails", found, "; ".join(said))


def _no_worse(
    run: Reading, baseline: Reading, required: Margin, measure: Measure, conditions: Sequence[str]
) -> list[Checked]:
    if measure.about.better == "neither":
        if required.margin is None:
            return []
        raise UsageError(f"{required.name}: neither more nor less of it is better, so nothing is worse")
    pairs = [(b, r) for b, r in share(baseline, run, conditions)[0] if measure.belongs(b.item)]
    rows = []
    for condition in dict.fromkeys(b.condition for b, _ in pairs):
        other = {b.ask: r for b, r in pairs if b.condition == condition}
        over, head = _head([b for b, _ in pairs if b.condition == condition])
        before, after, scripts = values(measure, [(b, other[b.ask]) for b in head])
        rows.append(_shown_no_worse(required, measure, condition, over, len(head), before, after, scripts))
    if not rows:
        why = "the runs share no such item" if measure.scores else _why_not(run, measure)
        rows.append(_unknown(required, "", 0, why))
    return rows


def _unknown(required: Margin, condition: str, asked: int, why: str) -> Checked:
    nothing = Estimate(None, None, None, 0, asked)
    return Checked(_key(required, condition), str(required), condition, "unknown", nothing, f"cannot be told: {why}")


def _key(required: Margin, condition: str) -> str:
    margin = "" if required.margin is None else f":{required.margin:g}"
    return "/".join(filter(None, ("check", condition, required.name, f"{NO_WORSE}{margin}")))


def _shown_no_worse(
    required: Margin,
    measure: Measure,
    condition: str,
    over: str,
    asked: int,
    before: list[float],
    after: list[float],
    scripts: list[str],
) -> Checked:
    """The paired test of one condition, of gains: where less is better the sides are swapped, and back for display."""
    if not before:
        return _unknown(required, condition, asked, "no shared item has a score in both runs")
    gain, loss = (before, after) if measure.about.better == "lower" else (after, before)
    sign = -1.0 if measure.about.better == "lower" else 1.0
    margin = required.margin
    if margin is None:
        tested = paired.permutation(gain, loss, scripts, seed=SEED, draws=DRAWS)
        holds = not tested.high < 0
    else:
        level = 2 * ONE_SIDED - 1  # the lower end of this interval is the one-sided bound
        tested = paired.permutation(
            gain, loss, scripts, seed=SEED, draws=DRAWS, level=level, null=-margin, alternative="greater"
        )
        holds = tested.low > -margin + 1e-12
    low, high = (x if math.isfinite(x) else None for x in sorted(sign * x for x in (tested.low, tested.high)))
    found = Estimate(sign * tested.value, low, high, len(before), asked, scripts=tested.clusters)
    behind = f"{len(before):,} pairs of {tested.clusters:,} scripts{over}"
    by = f"the difference to the baseline is {_signed(sign * tested.value)}"
    if low is None or high is None:
        said = f"{by} in {behind}: too few scripts to show anything"
    elif margin is None:
        word = "not shown to be worse" if holds else "worse beyond chance"
        said = f"{by}, 95 % interval {_signed(low)} to {_signed(high)}: {word} ({behind})"
    else:
        bound = f"with 95 % confidence {'at most' if sign < 0 else 'at least'} {_signed(sign * tested.low)}"
        said = f"{by}, {bound}: {'within' if holds else 'not within'} the margin of {margin:g} ({behind})"
    return Checked(
        _key(required, condition), str(required), condition, "holds" if holds else "fails", found, said, tested.p
    )


def _signed(x: float) -> str:
    return "0" if abs(x) < 1e-12 else f"{x:+.4g}".replace("-", "−")


def sentences(found: Check) -> list[str]:
    """One sentence for every requirement."""
    word = {"holds": "holds", "fails": "fails", "unknown": "is open"}
    return [
        f"{row.required}{f' ({row.condition})' if row.condition else ''} {word[row.state]}: {row.said}."
        for row in found.rows
    ]


def behind(run: Reading, key: str, baseline: Reading | None = None) -> list[str]:
    """The cases under a row of a check, in the run's order; empty for an unknown key."""
    head, *parts = key.split("/")
    if head != "check" or len(parts) < 4:
        return []
    condition, name, kind = "/".join(parts[:2]), parts[2], parts[3]
    readings = [run] if baseline is None else [run, baseline]
    measure = None if name == WER_CORPUS else named.find_one(name, readings)
    belongs = measure.belongs if measure else of_task("transcribe")
    read = measure.read if measure else lambda a: a.value("wer")
    mine = [a for a in _asked(run, [condition]).get(condition, []) if belongs(a.item) and read(a) is not None]
    if kind.startswith(NO_WORSE) and baseline is not None:
        both = {r.ask for b, r in share(baseline, run, [condition])[0] if read(b) is not None}
        mine = [a for a in mine if a.ask in both]
    return list(dict.fromkeys(a.item.case for a in _head(mine)[1]))
