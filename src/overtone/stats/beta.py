"""The regularised incomplete beta function, and the distributions computed from it: Student's t and Fisher's F.

Degrees of freedom may be any real number above 0.
"""

from __future__ import annotations

import math

_TINY = 1e-300
_CLOSE = 1e-15
_STEPS = 20_000  # most steps of the continued fraction, which needs about √(larger parameter)


def incomplete(a: float, b: float, x: float) -> float:
    """Return I_x(a, b), the probability that a beta variable is below x, by Lentz's continued fraction."""
    if not (a > 0 and b > 0 and 0 <= x <= 1):
        raise ValueError(f"needs a, b > 0 and x between 0 and 1, not a={a}, b={b}, x={x}")
    if x in (0.0, 1.0):
        return float(x)
    if x > (a + 1) / (a + b + 2):  # the fraction converges faster on the other side
        return 1 - _lower(b, a, 1 - x)
    return _lower(a, b, x)


def student_cdf(t: float, df: float) -> float:
    """Return the probability that Student's t with `df` degrees of freedom is at most `t`; `df` may be infinite
    (normal).
    """
    if not df > 0:
        raise ValueError(f"degrees of freedom must be above 0, not {df}")
    if math.isinf(df):
        return 0.5 * math.erfc(-t / math.sqrt(2))
    if math.isinf(t):
        return float(t > 0)
    beyond = 0.5 * _student_tails(t, df)
    return 1 - beyond if t > 0 else beyond


def _student_tails(t: float, df: float) -> float:
    """Return the probability that |t| is larger than this."""
    square = t * t
    # use the form that keeps its precision: near 0 the distance from 1, far out the tail itself
    if square < df:
        return 1 - incomplete(0.5, df / 2, square / (df + square))
    return incomplete(df / 2, 0.5, df / (df + square))


def _lower(a: float, b: float, x: float) -> float:
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > _TINY else _TINY)
    fraction = d
    for m in range(1, _STEPS):
        for top in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + top * d
            d = 1 / (d if abs(d) > _TINY else _TINY)
            c = 1 + top / c
            c = c if abs(c) > _TINY else _TINY
            change = d * c
            fraction *= change
        if abs(change - 1) < _CLOSE:
            return front * fraction
    raise ArithmeticError(f"the incomplete beta function did not converge at a={a}, b={b}, x={x}")
