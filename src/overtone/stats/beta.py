"""The regularised incomplete beta function, and what follows from it: Student's t and Fisher's F, with real degrees."""

from __future__ import annotations

import math

_TINY = 1e-300
_CLOSE = 1e-15
_STEPS = 20_000  # of the continued fraction: it needs about the root of the larger parameter


def incomplete(a: float, b: float, x: float) -> float:
    """I_x(a, b), the chance that a beta variable lies below x, by Lentz's continued fraction; for a, b > 0."""
    if not (a > 0 and b > 0 and 0 <= x <= 1):
        raise ValueError(f"needs a, b > 0 and x between 0 and 1, not a={a}, b={b}, x={x}")
    if x in (0.0, 1.0):
        return float(x)
    if x > (a + 1) / (a + b + 2):  # the fraction is quick on the other side
        return 1 - _lower(b, a, 1 - x)
    return _lower(a, b, x)


def student_cdf(t: float, df: float) -> float:
    """The chance that Student's t with `df` degrees of freedom is at most `t`; infinite degrees are the normal's."""
    if not df > 0:
        raise ValueError(f"degrees of freedom are above 0, not {df}")
    if math.isinf(df):
        return 0.5 * math.erfc(-t / math.sqrt(2))
    if math.isinf(t):
        return float(t > 0)
    beyond = 0.5 * _student_tails(t, df)
    return 1 - beyond if t > 0 else beyond


def f_cdf(f: float, df1: float, df2: float) -> float:
    """The chance that Fisher's F is at most `f`."""
    if f <= 0:
        return 0.0
    if math.isinf(f):
        return 1.0
    return incomplete(df1 / 2, df2 / 2, df1 * f / (df1 * f + df2))


def f_tail(f: float, df1: float, df2: float) -> float:
    """The chance that Fisher's F is at least `f`: exact also where it is tiny."""
    if f <= 0:
        return 1.0
    if math.isinf(f):
        return 0.0
    return incomplete(df2 / 2, df1 / 2, df2 / (df1 * f + df2))


def f_quantile(p: float, df1: float, df2: float) -> float:
    """The value that Fisher's F stays below with chance `p`, by halving."""
    if not 0 < p < 1:
        raise ValueError(f"a quantile's p lies between 0 and 1, not {p}")
    low, high = 0.0, 1.0
    while f_cdf(high, df1, df2) < p:
        low, high = high, high * 2
        if math.isinf(high):
            raise ValueError(f"F's quantile at {p} with {df1} and {df2} degrees of freedom is out of range")
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if f_cdf(middle, df1, df2) < p else (low, middle)
    return (low + high) / 2


def _student_tails(t: float, df: float) -> float:
    """The chance beyond ±t."""
    square = t * t
    # written from the side that keeps its digits: near 0 the distance from 1, far out the tail itself
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
    raise ArithmeticError(f"the incomplete beta function did not settle at a={a}, b={b}, x={x}")
