"""How alike raters' numbers are: the intraclass correlations of Shrout and Fleiss, with intervals from Fisher's F.

Which one depends on the raters. ICC1: every unit was rated by other people. ICC2: the same people rated every unit and
stand for others like them; a rater who is always a point higher counts as disagreement. ICC3: these people are all that
matter, and such an offset does not count. The forms with k are for the mean of all k ratings instead of one rating.
Intervals after McGraw and Wong (1996); they take the ratings to be spread normally.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from overtone.stats.beta import f_quantile, f_tail

Kind = Literal["ICC1", "ICC2", "ICC3", "ICC1k", "ICC2k", "ICC3k"]
Array = npt.NDArray[np.float64]

_NONE = 1e-9  # a share this small is rounding

KINDS: tuple[Kind, ...] = ("ICC1", "ICC2", "ICC3", "ICC1k", "ICC2k", "ICC3k")


@dataclass(frozen=True)
class Intraclass:
    """The correlation and its interval; `f` and `p` test that units do not differ. NaN where no rating differs.

    Below 0 the raters disagree more than chance would; the mean of k such ratings may then be −∞.
    """

    value: float
    low: float
    high: float
    f: float
    p: float
    units: int
    raters: int


def icc(ratings: Sequence[Sequence[float]] | Array, kind: Kind = "ICC2", *, level: float = 0.95) -> Intraclass:
    """The intraclass correlation of a full table; rows are raters, columns are units, as for Krippendorff's α.

    Raises ValueError where a rating is missing (leave the unit out, or use Krippendorff's α), or with fewer than two
    raters or units.
    """
    table = np.asarray(ratings, dtype=np.float64)
    if kind not in KINDS:
        raise ValueError(f"no intraclass correlation is called {kind!r}; known: {', '.join(KINDS)}")
    if table.ndim != 2 or min(table.shape) < 2:
        raise ValueError("needs at least two raters (rows) and two units (columns)")
    if not np.isfinite(table).all():
        raise ValueError("a rating is missing; leave the unit out, or use Krippendorff's alpha")
    if not 0 < level < 1:
        raise ValueError(f"a level lies between 0 and 1, not {level}")
    k, n = table.shape
    units, raters, error, within = _mean_squares(table)
    if units == error == within == 0:
        return Intraclass(math.nan, math.nan, math.nan, math.nan, math.nan, n, k)
    noise, df2 = (within, n * (k - 1)) if kind.startswith("ICC1") else (error, (n - 1) * (k - 1))
    f = units / noise if noise > 0 else math.inf
    p = f_tail(f, n - 1, df2)
    tail = 0.5 + level / 2
    if kind.startswith("ICC2"):
        total = units + (k - 1) * error + k * (raters - error) / n  # of all variances: tiny tables may estimate none
        value = (units - error) / total if total > _NONE * (units + raters + error) else math.nan
        low, high = _two_way_random(value, units, raters, error, n, k, tail)
    else:
        value = _one(f, k)
        low, high = _one(f / f_quantile(tail, n - 1, df2), k), _one(f * f_quantile(tail, df2, n - 1), k)
    if kind.endswith("k"):
        value, low, high = (_averaged(x, k) for x in (value, low, high))
    return Intraclass(value, low, high, f, p, n, k)


def _mean_squares(table: Array) -> tuple[float, float, float, float]:
    """Of units, of raters, of what is left of both, and within units."""
    k, n = table.shape
    centre = table.mean()
    of_units, of_raters = table.mean(0) - centre, table.mean(1) - centre
    left = table - centre - of_units[None, :] - of_raters[:, None]
    nothing = 1e-24 * max(float((table**2).sum()), 1e-300)  # what rounding leaves

    def mean(squares: float, df: int) -> float:
        return squares / df if squares > nothing else 0.0

    units, raters, error = k * float(of_units @ of_units), n * float(of_raters @ of_raters), float((left**2).sum())
    return (
        mean(units, n - 1),
        mean(raters, k - 1),
        mean(error, (n - 1) * (k - 1)),
        mean(raters + error, n * (k - 1)),
    )


def _one(f: float, k: int) -> float:
    """The correlation of single ratings from F: (F − 1) ÷ (F + k − 1), also where F is infinite."""
    return (1 - 1 / f) / (1 + (k - 1) / f) if f > 0 else -1 / (k - 1)


def _averaged(single: float, k: int) -> float:
    """Spearman and Brown: the mean of k ratings."""
    below = 1 + (k - 1) * single
    return -math.inf if below <= _NONE else k * single / below


def _two_way_random(
    value: float, units: float, raters: float, error: float, n: int, k: int, tail: float
) -> tuple[float, float]:
    if error == 0 and raters == 0:
        return 1.0, 1.0
    if math.isnan(value):
        return math.nan, math.nan
    # the degrees of freedom of raters and rest together, after Satterthwaite, multiplied through by error²; the true
    # correlation is not below 0, and there the formula would not hold
    rho = max(value, 0.0)
    own, left = k * rho * raters, (n * (1 + (k - 1) * rho) - k * rho) * error
    df = (k - 1) * (n - 1) * (own + left) ** 2 / ((n - 1) * own**2 + left**2) if error else float(k - 1)
    rest = k * raters + (k * n - k - n) * error
    lower, upper = f_quantile(tail, n - 1, df), f_quantile(tail, df, n - 1)
    return n * (units - lower * error) / (lower * rest + n * units), n * (upper * units - error) / (
        rest + n * upper * units
    )
