"""Format numbers for people. Sentences, tables, figures and messages use only these functions.

The minus sign is U+2212 (−), a zero has no sign, thousands have commas, and a missing number is a dash. The `kind` of
a number sets its format: "percent" and "points" (a difference of percentages) are shares times 100.
"""

from __future__ import annotations

from typing import Protocol

NONE = "–"


class Ranged(Protocol):
    """A number with an interval, such as an Estimate."""

    @property
    def value(self) -> float | None: ...

    @property
    def low(self) -> float | None: ...

    @property
    def high(self) -> float | None: ...


# ── bare numbers ────────────────────────────────────────────────────────────────────────────────────────────────────
def number(x: float | None, digits: int = 2, *, sign: bool = False) -> str:
    """Format a number like `−0.31`, with `digits` decimals; with `sign`, a positive number gets a plus."""
    if x is None:
        return NONE
    rounded = round(x, digits)
    mark = "−" if rounded < 0 else "+" if sign and rounded > 0 else ""
    return f"{mark}{abs(rounded):,.{digits}f}"


def percent(share: float | None, digits: int = 0) -> str:
    """Format a share as `61 %`."""
    return NONE if share is None else f"{number(100 * share, digits)} %"


def by_kind(x: float | None, kind: str, digits: int = 2, *, sign: bool = False) -> str:
    """Format a number for a table cell, without its unit. Percentages and points get one decimal."""
    if kind == "number":
        return number(x, digits, sign=sign)
    return number(None if x is None else 100 * x, 1, sign=sign)


def as_given(x: float | None) -> str:
    """Format a number with all its digits, such as one that the user typed: `62.5`, `−3`."""
    return NONE if x is None else f"{x:.10g}".replace("-", "−")


def seconds(x: float | None) -> str:
    """Format a duration like `0.52 s`."""
    return NONE if x is None else f"{number(x)} s"


def count(n: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, like `1 script` or `1,137 scripts`. `plural` is for nouns that take no s."""
    return f"{n:,} {noun if n == 1 else plural or f'{noun}s'}"


def cut(text: str, most: int, hint: str = "") -> str:
    """Cut a text after `most` characters. The result ends with the whole length of the text and `hint`."""
    return text if len(text) <= most else f"{text[:most]}… [cut: {len(text):,} characters{hint}]"


# ── numbers with intervals ──────────────────────────────────────────────────────────────────────────────────────────
def value_of(e: Ranged | None, kind: str, digits: int = 2) -> str:
    """Format the value of an estimate."""
    return NONE if e is None else by_kind(e.value, kind, digits)


def interval(e: Ranged | None, kind: str = "percent", digits: int = 2) -> str:
    """Format the interval of an estimate as `61.2 to 70.9`; "" if it has none."""
    if e is None or e.low is None or e.high is None:
        return ""
    return f"{by_kind(e.low, kind, digits)} to {by_kind(e.high, kind, digits)}"


def rate(e: Ranged) -> str:
    """Format a rate for use in a sentence: `61 % (52 to 70)`."""
    return with_interval(e, " %", 100.0, 0)


def points(e: Ranged) -> str:
    """Format a difference of two rates for use in a sentence: `−5 points (−12 to 3)`."""
    unit = " point" if e.value is not None and abs(round(100 * e.value)) == 1 else " points"
    return with_interval(e, unit, 100.0, 0)


def plain(e: Ranged, digits: int = 2) -> str:
    """Format a number that is not a rate for use in a sentence: `0.31 (0.12 to 0.50)`."""
    return with_interval(e, "", 1.0, digits)


def with_interval(e: Ranged, unit: str, scale: float, digits: int) -> str:
    """Format a number times `scale` with its unit and its interval."""
    if e.value is None:
        return "unknown"
    value = f"{number(e.value * scale, digits)}{unit}"
    if e.low is None or e.high is None:
        return f"{value} (no interval)"
    return f"{value} ({number(e.low * scale, digits)} to {number(e.high * scale, digits)})"
