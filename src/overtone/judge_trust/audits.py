"""Audits for faults of a judge that its agreement with people does not show, such as a preference for long replies.

The functions take arrays and return findings: a value, its interval, the ideal value and a sentence. If an audit is not
possible, its finding has no value and says why.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from overtone.judge_trust.people_agreement import DRAWS, finite, measure
from overtone.stats import agreement as krippendorff
from overtone.stats import bootstrap, cluster, correlation
from overtone.stats.cluster import Interval
from overtone.stats.minimums import JUDGE_FAULT, shortfall
from overtone.text import number, percent

Array = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]


class Finding(Struct, frozen=True):
    """The result of one audit. `ideal` is the value that a judge without the fault would have."""

    audit: str
    dimension: str
    value: float | None
    low: float | None
    high: float | None
    ideal: float | None
    rows: int
    groups: int
    sentence: str
    parts: dict[str, float | None] = {}

    @property
    def off(self) -> bool | None:
        """Whether the interval excludes the ideal; None if there is not enough data."""
        if self.ideal is None or self.low is None or self.high is None or self.groups < JUDGE_FAULT.least:
            return None
        return not self.low <= self.ideal <= self.high


def unmeasured(audit: str, dimension: str, why: str) -> Finding:
    """Return the finding of an audit that is not possible."""
    return Finding(audit, dimension, None, None, None, None, 0, 0, f"Not measured: {why}.")


def position(
    first: Array,
    groups: Sequence[str],
    dimension: str,
    *,
    turned: Array,
    turned_groups: Sequence[str],
    reversed_: int = 0,
) -> list[Finding]:
    """Measure position bias in pairs that were asked in both orders.

    `first` has one value per verdict that is not a tie: 1 if the reply shown first won, else 0. `turned` has one value
    per pair: 1 if the verdict changed with the order, else 0. `reversed_` is the number of changes from one reply to
    the other.
    """
    changed = cluster.proportion(turned, turned_groups)
    text = f"{percent(changed.value, 1)} of the verdicts change when the two replies are swapped; ideally none would."
    parts = {"from one to the other": reversed_ / len(turned)}
    turns = _finding("verdicts that turn", dimension, changed, 0.0, text, parts)
    if not first.size:
        return [unmeasured("position bias", dimension, "no verdict prefers one of the two"), turns]
    share = cluster.proportion(first, groups)
    result = _by(
        share, 0.5, "it wins too often", "the reply shown second wins too often", "no position bias is detected"
    )
    text = f"The reply shown first wins {percent(share.value, 1)}: {result}."
    return [_finding("position bias", dimension, share, 0.5, text), turns]


def first_place(judge: Array, people: Array, groups: Sequence[str], dimension: str) -> Finding:
    """Measure position bias in pairs asked in one order: the judge's share of votes for the first reply minus people's
    share.

    `judge` and `people` have 1 for A, 0 for B and ½ for a tie.
    """
    gap = cluster.mean(judge - people, groups)
    parts = {"first wins with the judge": float(judge.mean()), "first wins with people": float(people.mean())}
    result = _by(gap, 0.0, "the judge prefers the first more often than people",
                 "the judge prefers the second more often than people", "no position bias is detected")  # fmt: skip
    shares = f"{percent(judge.mean(), 1)} with the judge and {percent(people.mean(), 1)} with people"
    text = f"The pairs were asked in one order only. The first reply wins {shares}: {result}."
    return _finding("position bias", dimension, gap, 0.0, text, parts)


def length_of_replies(
    scores: Array, lengths: Array, people: Array, groups: Sequence[str], dimension: str, *, seed: int
) -> Finding:
    """Measure the partial rank correlation of a judge's score with the reply's length, given people's score."""
    partial = bootstrap.clustered(
        lambda rows: correlation.partial(scores[rows], lengths[rows], people[rows], ranked=True),
        groups,
        seed=seed,
        draws=DRAWS,
    )
    if math.isnan(partial.value):
        return unmeasured("length bias", dimension, "scores, lengths or people's scores do not vary")
    result = _by(partial, 0.0, "longer replies score higher than people's scores explain",
                 "shorter replies score higher than people's scores explain", "no length bias is detected")  # fmt: skip
    parts = {
        "judge with length": finite(correlation.spearman(scores, lengths)),
        "people with length": finite(correlation.spearman(people, lengths)),
    }
    value = number(partial.value, sign=True)
    text = f"The correlation of score and length, with people's scores held fixed, is {value}: {result}."
    return _finding("length bias", dimension, partial, 0.0, text, parts)


def length_in_pairs(judge: Array, people: Array, groups: Sequence[str], dimension: str) -> Finding:
    """Measure how much more often the judge prefers the longer reply than people do, on the same pairs.

    `judge` and `people` have 1 for the longer reply, 0 for the shorter and ½ for a tie, without pairs of equal length.
    """
    if not judge.size:
        return unmeasured("length bias", dimension, "no two replies differ in length")
    gap = cluster.mean(judge - people, groups)
    ties, shorter = people == 0.5, people == 0.0
    decided = judge != 0.5
    parts = {
        "longer wins with the judge": float(judge.mean()),
        "longer wins with people": float(people.mean()),
        "longer wins where people say tie": _mean(judge[ties & decided]),
        "longer wins where people prefer the shorter": _mean(judge[shorter]),
    }
    result = _by(gap, 0.0, "the judge prefers the longer reply more often than people",
                 "the judge prefers the shorter reply more often", "no length bias is detected")  # fmt: skip
    shares = f"{percent(judge.mean(), 1)} with the judge and {percent(people.mean(), 1)} with people"
    text = f"The longer reply wins {shares}: {result}."
    return _finding("length bias", dimension, gap, 0.0, text, parts)


def self_preference(
    residuals: Array, own: npt.NDArray[np.bool_], groups: Sequence[str], dimension: str, family: str, *, seed: int
) -> Finding:
    """Measure the mean of (judge − people) on replies of the judge's own model family minus that on other replies.

    For pairs, all rows are `own`, and a residual is the judge's preference for its own family minus people's.
    """
    name = "self-preference"
    if not own.any():
        return unmeasured(name, dimension, f"no reply is known to be by the judge's family ({family or 'unknown'})")
    if own.all():
        gap = cluster.mean(residuals, groups)
    else:
        gap = bootstrap.clustered(lambda rows: _gap(residuals[rows], own[rows]), groups, seed=seed, draws=DRAWS)
    result = _by(gap, 0.0, "it favours its family", "it disfavours its family", "no self-preference is detected")
    value = number(gap.value, sign=True)
    text = f"Compared with people, the judge rates replies of its own model family ({family}) by {value}: {result}."
    return _finding(name, dimension, gap, 0.0, text, {"replies of its own": float(own.sum())})


def polarisation(judge: Array, people: Array, groups: Sequence[str], people_groups: Sequence[str],
                 ends: tuple[float, float], dimension: str, *, seed: int) -> Finding:  # fmt: skip
    """Measure how much more often the judge uses the ends of the scale than people do. Rows are single ratings."""
    values = np.concatenate([judge, people])
    extreme = ((values == ends[0]) | (values == ends[1])).astype(np.float64)
    by_judge = np.arange(values.size) < judge.size
    gap = bootstrap.clustered(
        lambda rows: _gap(extreme[rows], by_judge[rows]), [*groups, *people_groups], seed=seed, draws=DRAWS
    )
    steps = int(ends[1] - ends[0]) + 1
    shares = float(extreme[by_judge].mean()), float(extreme[~by_judge].mean())
    parts = {
        "ends, judge": shares[0],
        "ends, people": shares[1],
        "entropy, judge": entropy(judge, steps),
        "entropy, people": entropy(people, steps),
    }
    result = _by(gap, 0.0, "the judge is more extreme", "the judge is less extreme", "no difference is detected")
    used = f"in {percent(shares[0], 1)} of its scores, people in {percent(shares[1], 1)}"
    text = f"The judge uses an end of the scale {used}: {result}."
    return _finding("polarisation", dimension, gap, 0.0, text, parts)


def entropy(values: Array, steps: int) -> float | None:
    """Return the normalised entropy of a scale's use: 0 if only one step is used, 1 if all are used equally often."""
    if not values.size or steps < 2:
        return None
    shares = np.unique(values, return_counts=True)[1] / values.size
    return abs(float(-(shares * np.log(shares)).sum() / math.log(steps)))


def ties(judge: Array, people: Array, groups: Sequence[str], dimension: str) -> Finding:
    """Measure the judge's rate of ties minus people's, on the same pairs (1 for A, 0 for B, ½ for a tie)."""
    gap = cluster.mean((judge == 0.5).astype(np.float64) - (people == 0.5), groups)
    decided = (judge != 0.5) & (people != 0.5)
    parts = {
        "ties, judge": float((judge == 0.5).mean()),
        "ties, people": float((people == 0.5).mean()),
        "agreement with ties": float((judge == people).mean()),
        "agreement without ties": _mean((judge == people)[decided].astype(np.float64)),
        "pairs without ties": float(decided.sum()),
    }
    result = _by(gap, 0.0, "the judge has too many ties", "the judge avoids ties", "no difference is detected")
    without = parts["agreement without ties"]
    text = (
        f"The judge says tie in {percent(parts['ties, judge'], 1)} of the pairs and people in "
        f"{percent(parts['ties, people'], 1)}: {result}. It agrees with people on "
        f"{percent(parts['agreement with ties'], 1)} of the pairs"
        + (f", and on {percent(without, 1)} of those without ties." if without is not None else ".")
    )
    return _finding("ties", dimension, gap, 0.0, text, parts)


def lexical_shortcut(judge: Array, people: Array, groups: Sequence[str], dimension: str) -> Finding:
    """Measure how much the judge's scores change with the voice, minus how much people's scores change.

    Each value of `judge` and `people` is about two subjects with the same words and different voices: the score of the
    second minus the score of the first.
    """
    name = "lexical shortcut"
    if not judge.size:
        return unmeasured(name, dimension, "no two subjects share their words and differ in the voice")
    gap = cluster.mean(np.abs(judge) - np.abs(people), groups)
    same = float((judge == 0).mean())
    parts = {
        "moves, judge": float(np.abs(judge).mean()),
        "moves, people": float(np.abs(people).mean()),
        "same score, judge": same,
        "same score, people": float((people == 0).mean()),
        "moves with people": finite(correlation.pearson(judge, people)),
    }
    if same == 1.0 and np.abs(people).max() > 0:
        result = "the judge's scores depend on the words alone, not on the voice"
    else:
        result = _by(gap, 0.0, "the judge's scores change more", "the judge's scores depend more on the words",
                     "no difference is detected")  # fmt: skip
    text = (
        f"With the same words in another voice, the judge's score changes by {parts['moves, judge']:.2f} on average "
        f"and people's by {parts['moves, people']:.2f}: {result}."
    )
    return _finding(name, dimension, gap, 0.0, text, parts)


def halo(judge: Array, people: Array, groups: Sequence[str], *, seed: int) -> Finding:
    """Measure the mean correlation between the judge's dimensions minus the mean correlation between people's
    dimensions.

    Both arrays have the shape (dimensions, units).
    """
    name = "halo"
    if len(judge) < 2 or judge.shape[1] < 3:
        return unmeasured(name, "", "fewer than two scales were judged and rated on the same units")
    gap = bootstrap.clustered(
        lambda rows: mean_correlation(judge[:, rows]) - mean_correlation(people[:, rows]),
        groups,
        seed=seed,
        draws=DRAWS,
    )
    if math.isnan(gap.value):
        return unmeasured(name, "", "a scale does not vary")
    of_judge, of_people = mean_correlation(judge), mean_correlation(people)
    result = _by(gap, 0.0, "one impression affects all of the judge's scores",
                 "the judge's dimensions are less correlated", "no halo effect is detected")  # fmt: skip
    values = f"{number(of_judge)} for the judge and {number(of_people)} for people"
    text = f"The mean correlation between dimensions is {values}: {result}."
    return _finding(name, "", gap, 0.0, text, {"judge": of_judge, "people": of_people})


def mean_correlation(scores: Array) -> float:
    """Return the mean Spearman correlation over all pairs of dimensions in which both vary; NaN if there is no such
    pair."""
    pairs = itertools.combinations(scores, 2)
    values = [x for a, b in pairs if not math.isnan(x := correlation.spearman(a, b))]
    return float(np.mean(values)) if values else math.nan


def repeatability(draws: Array, groups: Sequence[str], dimension: str, *, ordered: bool) -> Finding:
    """Measure the share of equal answers to the same request. `draws` is (repeats, units), with NaN for a missing
    answer."""
    name = "repeatability"
    equal, differences, owners = [], [], []
    for unit in range(draws.shape[1]):
        given = draws[~np.isnan(draws[:, unit]), unit]
        for a, b in itertools.combinations(given, 2):
            equal.append(float(a == b))
            differences.append(abs(float(a - b)))
            owners.append(groups[unit])
    if not equal:
        return unmeasured(name, dimension, "nothing was asked twice; use --repeats 3")
    share = cluster.proportion(equal, owners)
    parts = {
        "mean difference": float(np.mean(differences)),
        "alpha": finite(krippendorff.alpha(draws, "ordinal" if ordered else "nominal")),
    }
    text = (
        f"Asked again, the judge gives the same answer in {percent(share.value, 1)} of the cases; the mean difference "
        f"is {parts['mean difference']:.2f}."
    )
    return _finding(name, dimension, share, 1.0, text, parts)


def _gap(values: Array, first: npt.NDArray[np.bool_]) -> float:
    return float(values[first].mean() - values[~first].mean()) if first.any() and not first.all() else math.nan


def _mean(values: Array) -> float | None:
    return float(values.mean()) if values.size else None


def _by(interval: Interval, ideal: float, above: str, below: str, neither: str) -> str:
    """Return the text for an interval above, below or around the ideal."""
    return above if interval.low > ideal else below if interval.high < ideal else neither


def _finding(
    audit: str,
    dimension: str,
    interval: Interval,
    ideal: float,
    sentence: str,
    parts: Mapping[str, float | None] | None = None,
) -> Finding:
    m = measure(interval)
    if m.groups < JUDGE_FAULT.least:
        subject = f"{audit}, {dimension}" if dimension else audit
        sentence = shortfall(JUDGE_FAULT, [(subject, m.groups)])
    return Finding(audit, dimension, m.value, m.low, m.high, ideal, m.rows, m.groups, sentence, dict(parts or {}))
