"""The measures of a run: the replies that count for each measure, their mean, and the effect of missing replies.

A reply that cannot be read as a choice is the model's fault and counts as wrong. A reply that does not exist (a failed
or pending request) or could not be scored is missing: it affects only the best and worst bounds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
from msgspec import Struct

from overtone.results.load import Answer, reader
from overtone.schema import Item
from overtone.scores import CHOICE, CHOICE_STRICT, UNORDERED, Declared, MeasureInfo, ScoreInfo
from overtone.stats import cluster, paired
from overtone.stats.minimums import DIFFERENCE

NO_SPREAD = "no interval: the few scripts all agree, so their spread is unknown"
FROM_SCALE = "all scripts agree: the interval comes from the scale and the number of scripts"
_FLAT = 1e-12  # an interval narrower than this is rounding noise
TIE = 1e-6  # share of a scale: smaller differences count as 0, e.g. those of embeddings between batches


class Estimate(Struct, frozen=True):
    """A number with its 95 % interval clustered by script, the numbers of replies scored and asked, and bounds.

    `best` and `worst` are the values if every missing reply had been as good, or as bad, as possible. `note` is a
    remark that must be shown with the number.
    """

    value: float | None
    low: float | None
    high: float | None
    scored: int
    asked: int
    best: float | None = None
    worst: float | None = None
    scripts: int = 0
    note: str = ""

    @property
    def missing(self) -> int:
        return self.asked - self.scored


def estimate(
    rows: Sequence[tuple[float | None, str]],
    *,
    kind: Literal["mean", "proportion"] = "mean",
    good: float | None = None,
    bad: float | None = None,
    ends: tuple[float, float] | None = None,
) -> Estimate:
    """Compute the mean over rows (value, script). Rows without a value (None) affect only the bounds.

    `good` and `bad` are the best and worst possible values of a row without a value. The interval is cut at `ends` or,
    without these, at `good` and `bad`.
    """
    values = [value for value, _ in rows if value is not None]
    groups = [group for value, group in rows if value is not None]
    shares = kind == "proportion" and (not values or (min(values) >= 0 and max(values) <= 1))  # else: foreign values
    interval = (cluster.proportion if shares else cluster.mean)(values, groups)
    missing = len(rows) - len(values)
    best, worst = _bound(values, missing, good, rows), _bound(values, missing, bad, rows)
    made = from_interval(interval, interval.low, interval.high, len(rows), best, worst)
    ends = ends or _ends(values, good, bad)
    return within(made if good is None or bad is None else from_scale(made, good, bad), *ends)


def _ends(values: Sequence[float], good: float | None, bad: float | None) -> tuple[float, float]:
    """Return the possible range: the scale, extended to the values seen, because a similarity can be below zero."""
    if good is None or bad is None:
        return -math.inf, math.inf
    return min(good, bad, *values), max(good, bad, *values)


def from_scale(e: Estimate, one: float, other: float) -> Estimate:
    """Replace an interval of width 0, which arises if all scripts agree, with an interval derived from the ends of
    the scale.

    The spread cannot be estimated in this case, so each script counts as one yes-or-no observation with no "yes". The
    upper end of the Wilson interval for 0 is the largest share of scripts that may have another value, at either end of
    the scale. Other estimates are returned unchanged. Do not use this for differences: the same difference on every
    script is a finding.
    """
    if e.value is None or e.scripts < 2 or not (e.note == NO_SPREAD or _flat(e.low, e.high, e.value)):
        return e
    z = cluster.student_quantile(0.975, e.scripts - 1)
    share = z**2 / (e.scripts + z**2)
    low, high = min(one, other, e.value), max(one, other, e.value)
    ends = (e.value - share * (e.value - low), e.value + share * (high - e.value))
    return msgspec.structs.replace(e, low=ends[0], high=ends[1], note=FROM_SCALE)


def _flat(low: float | None, high: float | None, value: float) -> bool:
    """Return whether an interval is no wider than rounding noise."""
    return low is not None and high is not None and high - low <= _FLAT * max(1.0, abs(value))


def on_scale(e: Estimate, low: float, high: float) -> Estimate:
    """Cut the interval of a value (not of a difference) at the ends of the scale. If both ends are finite, also
    apply `from_scale`."""
    return within(from_scale(e, low, high) if math.isfinite(low) and math.isfinite(high) else e, low, high)


def within(e: Estimate, low: float, high: float) -> Estimate:
    """Cut the interval at the ends of the possible range. The true value lies in this range, so the cut interval covers
    the true value as often as the full interval does."""
    if e.low is None or e.high is None or (low <= e.low and e.high <= high):
        return e
    return msgspec.structs.replace(e, low=max(e.low, low), high=min(e.high, high))


def _bound(values: list[float], missing: int, filled: float | None, rows: Sequence[object]) -> float | None:
    return None if filled is None or not rows else (math.fsum(values) + missing * filled) / len(rows)


def from_interval(
    interval: cluster.Interval,
    low: float,
    high: float,
    asked: int,
    best: float | None = None,
    worst: float | None = None,
) -> Estimate:
    """Convert an interval of `stats` to an estimate with the ends `low` and `high`. An interval of width 0 from fewer
    scripts than a difference needs is uninformative: it is dropped, and the note says why."""
    value, low_, high_ = _or_none(interval.value), _or_none(low), _or_none(high)
    if interval.clusters < DIFFERENCE.least and _flat(low_, high_, interval.value):
        return Estimate(value, None, None, interval.rows, asked, best, worst, interval.clusters, NO_SPREAD)
    return Estimate(value, low_, high_, interval.rows, asked, best, worst, interval.clusters)


def from_comparison(test: paired.Comparison, asked: int) -> tuple[Estimate, float | None]:
    """Convert a paired test to an estimate and its p-value. An unbounded end is dropped, and the note says why."""
    low, high = (x if math.isfinite(x) else math.nan for x in (test.low, test.high))
    open_ended = test.rows > 0 and math.isnan(low + high)
    note = f"{test.clusters} scripts are too few for an interval" if open_ended else ""
    made = Estimate(
        _or_none(test.value), _or_none(low), _or_none(high), test.rows, asked, scripts=test.clusters, note=note
    )
    return made, _or_none(test.p)


def _or_none(x: float) -> float | None:
    return None if math.isnan(x) else x


# ── the measures ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Measure:
    """A measure with one number per reply: `belongs` selects the items, and `read` returns the number. `scores` names
    the scores that `read` uses. Callers must leave out the parts that a benchmark keeps separate."""

    name: str
    label: str
    task: str
    level: int
    belongs: Callable[[Item], bool]
    read: Callable[[Answer], float | None]
    scores: tuple[str, ...]
    about: ScoreInfo
    kind: Literal["mean", "proportion"] = "mean"
    every: bool = False  # counts every ask, also in separate parts and with unvalidated cues
    declared: MeasureInfo | None = None  # a metric's declaration; None for judged dimensions and operations

    @property
    def headline(self) -> bool:
        """Whether a metric declares this as a headline measure."""
        return self.declared is not None and self.declared.headline

    @property
    def order(self) -> int:
        return self.declared.order if self.declared else UNORDERED

    @property
    def right_or_wrong(self) -> bool:
        """Whether a reply is either right or wrong. False for a judge's yes or no, which may be a mean of verdicts."""
        yes_is_right = self.kind == "proportion" and self.about.better == "higher" and bool(self.scores)
        return yes_is_right and not any("@" in score for score in self.scores)

    @property
    def good(self) -> float | None:
        """The best possible score of a missing reply; None if the score is unbounded."""
        return self.about.low if self.about.better == "lower" else self.about.high

    @property
    def bad(self) -> float | None:
        """The worst possible score of a missing reply. Error rates are unbounded, but a missing transcript is at worst
        all wrong."""
        if self.about.better != "lower":
            return self.about.low
        return 1.0 if self.about.high is None and self.about.scale == "percent" else self.about.high

    def ends(self, values: Sequence[float]) -> tuple[float, float]:
        """Return the limits that an interval of a mean of these values must not exceed."""
        return self.about.ends(values)

    def estimate(self, answers: Iterable[Answer]) -> Estimate:
        rows = [(self.read(a), a.item.group) for a in answers if self.belongs(a.item)]
        ends = self.ends([value for value, _ in rows if value is not None])
        return estimate(rows, kind=self.kind, good=self.good, bad=self.bad, ends=ends)

    def side(self, rows: Sequence[tuple[float | None, str]], kind: Literal["mean", "proportion"] = "mean") -> Estimate:
        """Estimate one side of a comparison over rows (value, script). Values may be left out on purpose, so missing
        values have no bounds."""
        known = [value for value, _ in rows if value is not None]
        made = estimate(rows, kind=kind)
        if self.good is not None and self.bad is not None:
            made = from_scale(made, self.good, self.bad)
        return within(made, *self.ends(known))

    def gap(self, rows: Iterable[tuple[float | None, float | None, str]]) -> Estimate:
        """Estimate the mean of here − there over rows (here, there, script), without rows that lack a value."""
        rows = list(rows)
        apart = [(None if a is None or b is None else a - b, group) for a, b, group in rows]
        return self.bounded(estimate(apart), [x for a, b, _ in rows for x in (a, b) if x is not None])

    def tested(
        self, rows: Iterable[tuple[float | None, float | None, str]], *, seed: int, draws: int
    ) -> tuple[Estimate, float | None]:
        """Estimate the same mean as `gap` by flipping the signs of whole scripts. Return it with the p-value."""
        rows = list(rows)
        both = [(a, b, group) for a, b, group in rows if a is not None and b is not None]
        first, second = [a for a, *_ in both], [b for _, b, _ in both]
        test = paired.permutation(first, second, [group for *_, group in both], seed=seed, draws=draws)
        gap, p = from_comparison(test, len(rows))
        return self.bounded(gap, [*first, *second]), p

    def bounded(self, gap: Estimate, values: Sequence[float]) -> Estimate:
        """Limit the interval of a difference to ± the length of the scale. `values` are the values on both sides."""
        low, high = self.ends(values)
        return within(gap, low - high, high - low)


def is_choice(level: int) -> Callable[[Item], bool]:
    """Return a function that returns whether an item is a question of this level with a right answer."""
    return lambda item: item.task == "choose" and item.level == level and bool(item.gold)


def measure_of(score: str, info: ScoreInfo, read_as: MeasureInfo) -> Measure:
    """Return the measure that reads `score` as the declaration `read_as` describes."""
    return Measure(
        name=read_as.name,
        label=read_as.label,
        task=read_as.task,
        level=read_as.level,
        belongs=info.rule(read_as),
        read=reader([score]),
        scores=(score,),
        about=info,
        kind="proportion" if info.reduce == "share" else "mean",
        declared=read_as,
    )


def declared_measures(declared: Declared) -> list[Measure]:
    """Return every measure that has a value for each single reply, headline measures first."""
    measures = [
        measure_of(score, info, read_as)
        for score, info in declared.items()
        for read_as in info.read_as(score)
        if not read_as.corpus
    ]
    return sorted(measures, key=lambda m: (not m.headline, m.order))


def table_measures(declared: Declared) -> list[Measure]:
    """Return the measures that the tables of hearing, cues and styles show."""
    return [m for m in declared_measures(declared) if m.headline or (m.declared and m.declared.column)]


def choice_measure(declared: Declared, level: int) -> str:
    """Return the name of the measure "accuracy on the questions of a level"; "" if no metric declares it."""
    measures = declared[CHOICE].measures if CHOICE in declared else ()
    return next((m.name for m in measures if m.level == level), "")


# ── accuracy in full ────────────────────────────────────────────────────────────────────────────────────────────────


class Accuracy(Struct, frozen=True):
    """Multiple-choice accuracy, computed in several ways. `questions` is the headline: right ÷ answered."""

    questions: Estimate
    tasks: Estimate  # each task counts the same
    strict: Estimate  # by the strict extractor
    of_parsed: Estimate  # right ÷ parsed
    corrected: Estimate  # (accuracy − chance) ÷ (1 − chance)
    chance: float | None
    right: int
    parsed: int
    statuses: dict[str, int]  # status of reading an answer (see `status`) → count

    @property
    def extraction_failures(self) -> float | None:
        """The share of answered questions whose reply could not be read as one of the options."""
        return None if not self.questions.scored else 1 - self.parsed / self.questions.scored


def status(answer: Answer) -> str:
    """Return "parsed" if the reply was read as a choice, otherwise the reason why not; "" without a score."""
    score = answer.scores.get(CHOICE)
    if score is None or score.value is None:
        return ""
    return str(score.detail.get("status") or ("parsed" if score.value else "unknown"))


def chosen(answer: Answer) -> str:
    """Return the letter that the lenient extractor read from a reply; "" if it is not one of the options."""
    score = answer.scores.get(CHOICE)
    if score is None or not answer.answered:
        return ""
    letter = score.detail.get("answer")
    return letter if isinstance(letter, str) and any(o.letter == letter for o in answer.item.options) else ""


def picked(answer: Answer) -> str:
    """Return the reading under which the chosen option would be right; "" if no option was chosen, or if the options
    have no readings."""
    letter = chosen(answer)
    return next((o.provenance for o in answer.item.options if o.letter == letter), "") if letter else ""


def meant(answer: Answer) -> str:
    """Return the chosen option in a form that does not depend on the order of options: the reading under which it would
    be right or, without readings, its words; "" if no option was chosen."""
    letter = chosen(answer)
    option = next((o for o in answer.item.options if o.letter == letter), None) if letter else None
    return "" if option is None else option.provenance or option.text or answer.choice or letter


def accuracy(answers: Iterable[Answer], belongs: Callable[[Item], bool]) -> Accuracy | None:
    """Compute the accuracy on the questions for which `belongs` is true; None without such questions."""
    chosen = [a for a in answers if belongs(a.item)]
    if not chosen:
        return None
    headline, strict = (
        estimate([(a.value(metric), a.item.group) for a in chosen], kind="proportion", good=1.0, bad=0.0)
        for metric in (CHOICE, CHOICE_STRICT)
    )
    scored = [a for a in chosen if a.value(CHOICE) is not None]
    parsed = [(a.value(CHOICE), a.item.group) for a in scored if status(a) == "parsed"]
    statuses = Counter(map(status, scored))
    shares = [1 / len(a.item.options) for a in scored if a.item.options]
    chance = math.fsum(shares) / len(shares) if shares else None
    return Accuracy(
        questions=headline,
        tasks=_over_tasks(chosen, scored),
        strict=strict,
        of_parsed=estimate(parsed, kind="proportion"),
        corrected=correct(headline, chance),
        chance=chance,
        right=sum(a.value(CHOICE) == 1 for a in scored),
        parsed=len(parsed),
        statuses=dict(sorted(statuses.items(), key=lambda kv: -kv[1])),
    )


def _over_tasks(chosen: list[Answer], scored: list[Answer]) -> Estimate:
    interval = cluster.mean_of_means(
        [a.value(CHOICE) or 0.0 for a in scored],
        [a.item.category for a in scored],
        [a.item.group for a in scored],
    )
    by_task: dict[str, list[float]] = {}
    for a in scored:
        by_task.setdefault(a.item.category, []).append(a.value(CHOICE) or 0.0)
    asked = Counter(a.item.category for a in chosen)
    right = {task: math.fsum(by_task.get(task, ())) for task in asked}
    missing = {task: count - len(by_task.get(task, ())) for task, count in asked.items()}
    bounds = [
        math.fsum((right[task] + fill * missing[task]) / count for task, count in asked.items()) / len(asked)
        for fill in (1.0, 0.0)
    ]
    return from_interval(interval, max(interval.low, 0.0), min(interval.high, 1.0), len(chosen), bounds[0], bounds[1])


def correct(e: Estimate, chance: float | None) -> Estimate:
    """Correct a rate for blind guessing: (rate − chance) ÷ (1 − chance). Without a known chance, there is no value."""

    def move(x: float | None) -> float | None:
        return None if x is None or chance is None or chance >= 1 else (x - chance) / (1 - chance)

    return Estimate(move(e.value), move(e.low), move(e.high), e.scored, e.asked, move(e.best), move(e.worst), e.scripts)
