"""A judge's mean corrected by a few human labels: prediction-powered inference for a mean, with clusters.

A judge scored every row, people only some. The corrected mean is the people's mean on their rows, moved by the distance
of the judge's mean over all rows from the judge's mean on those rows:

    value = mean(human, labelled) + λ · (mean(judge, all) − mean(judge, labelled))

With λ = 1 this is the judge's mean plus its mean error; with λ = 0 the people's mean alone. λ is estimated so that the
variance is smallest, within 0 and 1 (PPI++: Angelopoulos, Duchi and Zrnic 2023). So a useless judge costs almost
nothing and a good one narrows the interval. No λ biases the value if the labelled clusters were picked at random.

How the interval is computed, and why its coverage is right:
- The rows' influences are added up within a cluster, over its labelled and unlabelled rows, before they are squared.
  Labels that are part of the run, and partly labelled clusters, need no special case.
- λ is fitted to the same clusters, which makes their residuals a little too small. So each cluster's residual uses
  the λ of all others (a delete-one jackknife of λ): nothing is fitted to the cluster it is tested on.
- A judge that errs rarely may have no error among the labels yet, and the plain variance would then claim certainty.
  So one labelled cluster is imagined, as far off as the farthest seen, and at least by the smallest step between two
  human scores. With 200 labels that widens an interval by about 2 %, with 20 by about 12 %.
- Student's quantile has (labelled clusters − 1) degrees of freedom, because labels are the scarce part.
`bench/coverage.py` measures the coverage; docs/how-to/calibration.md shows it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from overtone.stats import cluster
from overtone.stats.cluster import Interval, Labels, Numbers

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Corrected:
    """The corrected mean, with the means of the judge alone and of the people alone.

    `weight` is λ: how much of the judge was used. `judge_only` is the judge's mean over all rows; its interval does not
    include the judge's own error. `human_only` is the mean of the labels.
    """

    value: float
    low: float
    high: float
    error: float
    judge_only: Interval
    human_only: Interval
    weight: float
    rows: int
    labelled: int
    clusters: int
    labelled_clusters: int


def mean(
    judge: Numbers,
    judge_clusters: Labels,
    labelled_judge: Numbers,
    labelled_human: Numbers,
    labelled_clusters: Labels,
    *,
    level: float = 0.95,
    scale: tuple[float, float] | None = None,
) -> Corrected:
    """Estimate the mean human score over all rows, from the judge's score of every row and people's scores of some.

    `judge` has the judge's score of ALL rows over which the mean is taken. If the labelled rows belong to the run,
    `judge` includes them too, under the same cluster labels. (Labels from elsewhere are fine if they represent the same
    kind of rows.) Raises ValueError if there are fewer than two labelled clusters or no rows, if a number is not
    finite, or if a label is outside `scale`.
    """
    everything, human = _finite(judge, "judge scores"), _finite(labelled_human, "human labels")
    seen = _finite(labelled_judge, "judge scores of labelled rows")
    if len(judge_clusters) != everything.size:
        raise ValueError(f"{everything.size} judge scores but {len(judge_clusters)} cluster labels")
    if human.size != seen.size or len(labelled_clusters) != human.size:
        raise ValueError(
            f"{human.size} human labels, {seen.size} judge scores of the same rows and {len(labelled_clusters)} "
            "cluster labels do not match; give all three for every labelled row"
        )
    if scale is not None and human.size and not (scale[0] <= human.min() and human.max() <= scale[1]):
        raise ValueError(
            f"a human label is outside {scale[0]:g} to {scale[1]:g} ({human.min():g} to {human.max():g} occur); "
            "use the judge's scale, or leave such rows out"
        )
    if everything.size == 0:
        raise ValueError("no row has a score from the judge; score the run with the judge first")
    ids, count = cluster.codes([*judge_clusters, *labelled_clusters])
    of_all, of_labelled = ids[: everything.size], ids[everything.size :]
    known = np.unique(of_labelled).size
    if known < 2:
        raise ValueError(
            f"labels in {known} {'cluster' if known == 1 else 'clusters'}: the spread of the judge's error cannot be "
            "seen; label rows of at least two clusters (200 make the interval dependable)"
        )
    totals = Totals(
        rows=np.bincount(of_all, minlength=count).astype(np.float64),
        judge=np.bincount(of_all, weights=everything, minlength=count).astype(np.float64),
        labelled=np.bincount(of_labelled, minlength=count).astype(np.float64),
        labelled_judge=np.bincount(of_labelled, weights=seen, minlength=count).astype(np.float64),
        human=np.bincount(of_labelled, weights=human, minlength=count).astype(np.float64),
    )
    value, error, weight = (float(number) for number in solve(totals, _step(human, everything)))
    half = cluster.student_quantile(0.5 + level / 2, known - 1) * error
    return Corrected(
        value=value,
        low=value - half,
        high=value + half,
        error=error,
        judge_only=cluster.mean(everything, judge_clusters, level=level),
        human_only=cluster.mean(human, labelled_clusters, level=level),
        weight=weight,
        rows=everything.size,
        labelled=human.size,
        clusters=np.unique(of_all).size,
        labelled_clusters=known,
    )


@dataclass(frozen=True)
class Totals:
    """The sums of each cluster; the last axis is clusters, those before it are separate problems of the same kind.

    `rows` and `judge` count and sum all rows, `labelled`, `labelled_judge` and `human` the labelled ones.
    """

    rows: Array
    judge: Array
    labelled: Array
    labelled_judge: Array
    human: Array


def solve(totals: Totals, step: float) -> tuple[Array, Array, Array]:
    """Return the value, standard error and λ of every problem in `totals`; `step` is the smallest step of the human
    scale.
    """
    rows, labelled = _sum(totals.rows), _sum(totals.labelled)
    of_judge, of_seen = _sum(totals.judge) / rows, _sum(totals.labelled_judge) / labelled
    of_human = _sum(totals.human) / labelled
    # each cluster's influence on the human mean, and on the judge's mean on labelled rows against that on all rows
    human = (totals.human - totals.labelled * of_human) / labelled
    on_labelled = (totals.labelled_judge - totals.labelled * of_seen) / labelled
    on_all = (totals.judge - totals.rows * of_judge) / rows
    judge = on_labelled - on_all
    products, squares = human * judge, judge * judge
    all_products, all_squares = _sum(products), _sum(squares)
    nothing = 1e-12 * _sum(on_labelled**2 + on_all**2)  # rounding, if every row is labelled
    weight = _fitted(all_products, all_squares, nothing)
    value = of_human - weight * (of_seen - of_judge)

    residual = human - _fitted(all_products - products, all_squares - squares, nothing) * judge
    known = totals.labelled > 0
    many = known.sum(-1)
    others = (~known & (totals.rows > 0)).sum(-1)
    variance = many / (many - 1) * (residual**2).sum(-1, where=known)
    variance += (residual**2).sum(-1, where=~known) * (many + others) / (many + others - 1)
    farthest = np.abs(residual).max(-1, where=known, initial=0.0)
    variance += np.maximum(farthest, step / labelled[..., 0]) ** 2
    return value[..., 0], np.sqrt(variance), weight[..., 0]


def _fitted(products: Array, squares: Array, nothing: Array) -> Array:
    """Fit λ by least squares, within 0 and 1; 0 if the judge does not vary, or if every row is labelled."""
    slope = np.divide(products, squares, out=np.zeros_like(products), where=squares > nothing)
    return np.asarray(np.clip(slope, 0.0, 1.0))


def _sum(x: Array) -> Array:
    return np.asarray(x.sum(-1, keepdims=True))


def _step(human: Array, judge: Array) -> float:
    """Return the smallest step between two human scores, or between two judge scores if all labels are the same."""
    for scores in (human, judge):
        steps = np.diff(np.unique(scores))
        if steps.size:
            return float(steps.min())
    return 0.0


def _finite(values: Numbers, what: str) -> Array:
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or not np.isfinite(x).all():
        raise ValueError(f"the {what} include a number that is not finite; leave such rows out")
    return x
