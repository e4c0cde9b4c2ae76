"""Ways a judge can be wrong that agreement does not show: each a number, its interval, what it should be, a sentence.

Functions of arrays, nothing of files or models. Where an audit cannot be made, its finding has no value and says why.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from overtone.judge_trust.people_agreement import DRAWS, known
from overtone.stats import agreement as krippendorff
from overtone.stats import bootstrap, cluster, correlation
from overtone.stats.cluster import Interval
from overtone.stats.minimums import JUDGE_FAULT, shortfall

Array = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]


class Finding(Struct, frozen=True):
    """What one audit found. `ideal` is what a judge without the fault would have."""

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
        """Whether the interval leaves the ideal out; None where there is too little data to say."""
        if self.ideal is None or self.low is None or self.high is None or self.groups < JUDGE_FAULT.least:
            return None
        return not self.low <= self.ideal <= self.high


def unmeasured(audit: str, dimension: str, why: str) -> Finding:
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
    """Of pairs asked in both orders. `first`: of every decided verdict, 1 where the reply shown first won. `turned`: of
    every pair of verdicts, 1 where it changed with the order; `reversed_` of them from one reply to the other."""
    flips = cluster.proportion(turned, turned_groups)
    text = f"{_percent(flips)} of the verdicts change when the two replies change places; ideally none would."
    parts = {"from one to the other": reversed_ / len(turned)}
    turns = _finding("verdicts that turn", dimension, flips, 0.0, text, parts)
    if not first.size:
        return [unmeasured("position bias", dimension, "no verdict prefers one of the two"), turns]
    share = cluster.proportion(first, groups)
    said = _by(share, 0.5, "the reply shown first wins too often", "the reply shown second wins too often",
               "no preference for a place is shown")  # fmt: skip
    return [_finding("position bias", dimension, share, 0.5, f"First place wins {_percent(share)}; {said}."), turns]


def first_place(judge: Array, people: Array, groups: Sequence[str], dimension: str) -> Finding:
    """Of pairs asked in one order only: how much more often the judge takes the first than people do (1 A, 0 B, ½)."""
    gap = cluster.mean(judge - people, groups)
    parts = {"first wins with the judge": float(judge.mean()), "first wins with people": float(people.mean())}
    said = _by(gap, 0.0, "it takes the first more often than people", "it takes the second more often than people",
               "no preference for a place is shown")  # fmt: skip
    text = (
        f"Asked in one order only: the first wins {100 * float(judge.mean()):.1f} % with the judge, "
        f"{100 * float(people.mean()):.1f} % with people; {said}."
    )
    return _finding("position bias", dimension, gap, 0.0, text, parts)


def length_of_replies(
    scores: Array, lengths: Array, people: Array, groups: Sequence[str], dimension: str, *, seed: int
) -> Finding:
    """The rank correlation of a judge's score with the reply's length once people's score is held fixed."""
    found = bootstrap.clustered(
        lambda rows: correlation.partial(scores[rows], lengths[rows], people[rows], ranked=True),
        groups,
        seed=seed,
        draws=DRAWS,
    )
    if math.isnan(found.value):
        return unmeasured("length bias", dimension, "scores, lengths or people's scores do not vary")
    said = _by(found, 0.0, "longer replies score higher than people's scores explain",
               "shorter replies score higher than people's scores explain", "no effect of length is shown")  # fmt: skip
    parts = {
        "judge with length": known(correlation.spearman(scores, lengths)),
        "people with length": known(correlation.spearman(people, lengths)),
    }
    text = f"Score and length go together with {_signed(found.value)} where people say the same; {said}."
    return _finding("length bias", dimension, found, 0.0, text, parts)


def length_in_pairs(judge: Array, people: Array, groups: Sequence[str], dimension: str) -> Finding:
    """`judge`, `people`: 1 where the longer reply was preferred, 0 the shorter, ½ a tie; pairs of equal length are out.

    The number is how much more often the judge takes the longer one than people do, on the same pairs.
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
    said = _by(gap, 0.0, "the judge takes the longer reply more often than people do",
               "the judge takes the shorter reply more often than people do",
               "the judge takes the longer reply about as often as people do")  # fmt: skip
    text = (
        f"The longer reply wins {100 * float(judge.mean()):.1f} % with the judge and "
        f"{100 * float(people.mean()):.1f} % with people; {said}."
    )
    return _finding("length bias", dimension, gap, 0.0, text, parts)


def self_preference(
    residuals: Array, own: npt.NDArray[np.bool_], groups: Sequence[str], dimension: str, family: str, *, seed: int
) -> Finding:
    """Judge − people on replies of the judge's own family minus the same on others'. Pairs: `own` are all rows, and a
    residual is how much more the judge sides with its family than people do."""
    name = "self-preference"
    if not own.any():
        return unmeasured(name, dimension, f"no reply is named as the work of its own family ({family or 'unknown'})")
    if own.all():
        found = cluster.mean(residuals, groups)
    else:
        found = bootstrap.clustered(lambda rows: _gap(residuals[rows], own[rows]), groups, seed=seed, draws=DRAWS)
    said = _by(found, 0.0, "it favours its own", "it is harder on its own", "no favour for its own is shown")
    text = f"Compared with people it gives replies of its own family ({family}) {_signed(found.value)}; {said}."
    return _finding(name, dimension, found, 0.0, text, {"replies of its own": float(own.sum())})


def polarisation(judge: Array, people: Array, groups: Sequence[str], people_groups: Sequence[str],
                 ends: tuple[float, float], dimension: str, *, seed: int) -> Finding:  # fmt: skip
    """How much more often the judge uses the ends of the scale than single people do. Rows are single ratings."""
    values = np.concatenate([judge, people])
    extreme = ((values == ends[0]) | (values == ends[1])).astype(np.float64)
    by_judge = np.arange(values.size) < judge.size
    found = bootstrap.clustered(
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
    said = _by(found, 0.0, "it is more extreme than people", "it keeps more to the middle than people",
               "no difference is shown")  # fmt: skip
    used = f"in {100 * shares[0]:.1f} % of its scores, people in {100 * shares[1]:.1f} %"
    text = f"It uses an end of the scale {used}; {said}."
    return _finding("polarisation", dimension, found, 0.0, text, parts)


def entropy(values: Array, steps: int) -> float | None:
    """How evenly the steps of a scale are used: 0 one of them alone, 1 all alike."""
    if not values.size or steps < 2:
        return None
    shares = np.unique(values, return_counts=True)[1] / values.size
    return abs(float(-(shares * np.log(shares)).sum() / math.log(steps)))


def ties(judge: Array, people: Array, groups: Sequence[str], dimension: str) -> Finding:
    """`judge`, `people`: 1 A, 0 B, ½ a tie, on the same pairs. The number is its rate of ties minus people's."""
    gap = cluster.mean((judge == 0.5).astype(np.float64) - (people == 0.5), groups)
    decided = (judge != 0.5) & (people != 0.5)
    parts = {
        "ties, judge": float((judge == 0.5).mean()),
        "ties, people": float((people == 0.5).mean()),
        "agreement with ties": float((judge == people).mean()),
        "agreement without ties": _mean((judge == people)[decided].astype(np.float64)),
        "pairs without ties": float(decided.sum()),
    }
    said = _by(gap, 0.0, "it says tie too often", "it avoids ties", "no difference is shown")
    without = parts["agreement without ties"]
    text = (
        f"It says tie in {100 * float((judge == 0.5).mean()):.1f} % of the pairs, people in "
        f"{100 * float((people == 0.5).mean()):.1f} %; {said}. It agrees with people in "
        f"{100 * float((judge == people).mean()):.1f} %"
        + (f", {100 * without:.1f} % where neither says tie." if without is not None else ".")
    )
    return _finding("ties", dimension, gap, 0.0, text, parts)


def lexical_shortcut(judge: Array, people: Array, groups: Sequence[str], dimension: str) -> Finding:
    """`judge`, `people`: of every two subjects with the same words and another voice, the second's score minus the
    first's. The number is how far the judge's scores move apart, less how far people's do."""
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
        "moves with people": known(correlation.pearson(judge, people)),
    }
    moved = f"With the same words and another voice its score moves by {parts['moves, judge']:.2f}, people's by "
    if same == 1.0 and np.abs(people).max() > 0:
        said = "Its scores are determined by the words alone: it does not judge the voice"
    else:
        said = _by(gap, 0.0, "it moves more than people's", "it holds to the words more than people do",
                   "about as much").capitalize()  # fmt: skip
    return _finding(name, dimension, gap, 0.0, f"{moved}{parts['moves, people']:.2f}. {said}.", parts)


def halo(judge: Array, people: Array, groups: Sequence[str], *, seed: int) -> Finding:
    """(dimensions, units) each: the mean correlation between the judge's dimensions minus that between people's."""
    name = "halo"
    if len(judge) < 2 or judge.shape[1] < 3:
        return unmeasured(name, "", "fewer than two scales were judged and rated on the same units")
    found = bootstrap.clustered(
        lambda rows: between(judge[:, rows]) - between(people[:, rows]), groups, seed=seed, draws=DRAWS
    )
    if math.isnan(found.value):
        return unmeasured(name, "", "a scale does not vary")
    of_judge, of_people = between(judge), between(people)
    said = _by(found, 0.0, "one impression colours all its scores", "its scores are less alike than people's",
               "no halo beyond people's is shown")  # fmt: skip
    text = f"Its scales go together with {of_judge:.2f}, people's with {of_people:.2f}; {said}."
    return _finding(name, "", found, 0.0, text, {"judge": of_judge, "people": of_people})


def between(scores: Array) -> float:
    """The mean Spearman correlation over all pairs of dimensions that vary; NaN where none does."""
    found = [correlation.spearman(scores[i], scores[j]) for i in range(len(scores)) for j in range(i + 1, len(scores))]
    values = [x for x in found if not math.isnan(x)]
    return float(np.mean(values)) if values else math.nan


def repeatability(draws: Array, groups: Sequence[str], dimension: str, *, ordered: bool) -> Finding:
    """(repeats, units), NaN where missing: the share of equal answers among two to the same request."""
    name = "repeatability"
    equal, apart, owners = [], [], []
    for unit in range(draws.shape[1]):
        given = draws[~np.isnan(draws[:, unit]), unit]
        for i in range(len(given)):
            for j in range(i + 1, len(given)):
                equal.append(float(given[i] == given[j]))
                apart.append(abs(float(given[i] - given[j])))
                owners.append(groups[unit])
    if not equal:
        return unmeasured(name, dimension, "nothing was asked twice; give --repeats 3")
    share = cluster.proportion(equal, owners)
    parts = {
        "mean difference": float(np.mean(apart)),
        "alpha": known(krippendorff.alpha(draws, "ordinal" if ordered else "nominal")),
    }
    text = f"Asked again, it says the same in {_percent(share)}; on average it moves by {parts['mean difference']:.2f}."
    return _finding(name, dimension, share, 1.0, text, parts)


def _gap(values: Array, first: npt.NDArray[np.bool_]) -> float:
    return float(values[first].mean() - values[~first].mean()) if first.any() and not first.all() else math.nan


def _mean(values: Array) -> float | None:
    return float(values.mean()) if values.size else None


def _signed(x: float) -> str:
    return f"{round(x, 2) + 0.0:+.2f}".replace("-", "−")


def _percent(share: Interval) -> str:
    return f"{100 * share.value:.1f} %"


def _by(found: Interval, ideal: float, above: str, below: str, neither: str) -> str:
    """Which sentence the interval allows."""
    return above if found.low > ideal else below if found.high < ideal else neither


def _finding(
    audit: str,
    dimension: str,
    found: Interval,
    ideal: float,
    sentence: str,
    parts: Mapping[str, float | None] | None = None,
) -> Finding:
    numbers = known(found.value), known(found.low), known(found.high)
    if found.clusters < JUDGE_FAULT.least:
        subject = f"{audit}, {dimension}" if dimension else audit
        sentence = shortfall(JUDGE_FAULT, [(subject, found.clusters)])
    return Finding(audit, dimension, *numbers, ideal, found.rows, found.clusters, sentence, dict(parts or {}))
