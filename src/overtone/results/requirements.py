"""Requirements that a user types: thresholds and margins, validated against the scale of their measure.

A number is typed in the measure's own unit. Shares and similarities run from 0 to 1 and are shown in percent: `60%` and
`0.6` mean the same, and `60` is rejected because it would mean 6,000 %. Times are in seconds: `0.8`, `0.8s` or `800ms`.
"""

from __future__ import annotations

import math
import re
from typing import Literal

from msgspec import Struct

from overtone.errors import UsageError
from overtone.results.measures import Estimate
from overtone.scores import ScoreInfo
from overtone.text import as_given, number

_NUMBER = r"((?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(%|s|ms|)"
_REQUIREMENT = re.compile(rf"\s*([A-Za-z][\w.@-]*)\s*(>=|<=|>|<)\s*([-+]?){_NUMBER}\s*")
_MARGIN = re.compile(rf"\s*([A-Za-z][\w.@-]*)\s*:\s*{_NUMBER}\s*")
_SHARE = re.compile(rf"\s*{_NUMBER}\s*")

UNITS = {"": ("", 1), "%": ("percent", 100), "s": ("seconds", 1), "ms": ("seconds", 1000)}  # scale, parts of one
_WORDS = {"percent": "in percent", "seconds": "in seconds"}

State = Literal["holds", "fails", "undecided"]


class Requirement(Struct, frozen=True):
    """A threshold as it was typed, `name op number unit`; `unit` is one of UNITS."""

    name: str
    op: str
    number: float
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.name} {self.op} {self.number:g}{self.unit}"


class Margin(Struct, frozen=True):
    """A margin as it was typed: the run may be worse than the baseline by less than `number`."""

    name: str
    number: float
    unit: str = ""

    def __str__(self) -> str:
        return f"{self.name}:{self.number:g}{self.unit}"


class Checked(Struct, frozen=True):
    """The outcome of one requirement under one condition. `value` is the number that was checked: a value, or the
    difference to the baseline (run − baseline). `text` explains the outcome; `brief`, if it is set, is the same without
    the name of the `test`."""

    key: str
    required: str
    condition: str
    state: State
    value: Estimate
    text: str
    p: float | None = None  # only with a baseline: one-sided for a margin, else two-sided and corrected
    brief: str = ""
    test: str = ""


# ── reading what was typed ──────────────────────────────────────────────────────────────────────────────────────────


def parse_requirement(text: str) -> Requirement:
    """Read `voice_accuracy >= 60%` or `voice_accuracy >= 0.60`. Raises UsageError."""
    match = _REQUIREMENT.fullmatch(text)
    if not match:
        raise UsageError(
            f'not a requirement: {text!r}; write NAME, one of >= > <= <, and a number, like "voice_accuracy >= 60%"'
        )
    name, op, sign, number, unit = match.groups()
    return Requirement(name, op, _finite(text, sign + number), unit)


def parse_margin(text: str) -> Margin:
    """Read `voice_accuracy:5%` or `c4:0.1`. Raises UsageError."""
    match = _MARGIN.fullmatch(text)
    if not match or _finite(text, match[2]) <= 0:
        raise UsageError(
            f"not a margin: {text!r}; write NAME:MARGIN with a margin above 0, like c4:0.1 or voice_accuracy:5%"
        )
    return Margin(match[1], _finite(text, match[2]), match[3])


def parse_share(text: str, flag: str) -> float:
    """Read `1%` or `0.01` as a share from 0 to 1. Raises UsageError that names the flag."""
    match = _SHARE.fullmatch(text)
    if match and match[2] in ("", "%") and 0 <= (number := _finite(text, match[1]) / UNITS[match[2]][1]) <= 1:
        return number
    raise UsageError(f"{flag} takes a share from 0% to 100%, like 1% or 0.01, not {text!r}")


def parse_most(text: str, flag: str) -> float:
    """Read the largest allowed share of missing replies. Raises UsageError for 100 %, which could never fail."""
    share = parse_share(text, flag)
    if share >= 1:
        hint = "" if "%" in text else "; for 1 percent write 1%"
        raise UsageError(f"{flag} {text}: this is 100 %, so the check could never fail{hint}")
    return share


def _finite(text: str, number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise UsageError(f"{text!r}: {number} is too large a number")
    return value


# ── on a measure's scale ────────────────────────────────────────────────────────────────────────────────────────────


def threshold_on(required: Requirement, about: ScoreInfo) -> float:
    """Return a threshold in the measure's own unit. Raises UsageError if it is outside the scale, and if every value of
    the scale would meet it."""
    value = _in_unit(required, about)
    low, high = about.low, about.high
    if (low is not None and value < low) or (high is not None and value > high):
        raise UsageError(f"{str(required)!r}: {limit(value, about)} is outside the scale of {_scale(required, about)}")
    if value == {">=": low, "<=": high}.get(required.op):
        raise UsageError(
            f"{str(required)!r}: every value of {_scale(required, about)} meets this, "
            f"so the check could never fail{_percent_hint(required, about)}"
        )
    return value


def margin_on(required: Margin, about: ScoreInfo) -> float:
    """Return a margin in the measure's own unit. Raises UsageError if it covers the whole scale."""
    value = _in_unit(required, about)
    closed = about.low is not None and about.high is not None
    if (closed or about.scale == "percent") and value >= about.length:
        raise UsageError(
            f"{str(required)!r}: a margin of {limit(value, about)} covers all of {_scale(required, about)}, "
            f"so the check could never fail{_percent_hint(required, about)}"
        )
    return value


def _in_unit(required: Requirement | Margin, about: ScoreInfo) -> float:
    name, number = required.name, required.number
    scale, parts = UNITS[required.unit]
    if scale not in ("", about.scale):
        seconds = " of seconds (2 or 2s) or milliseconds (800ms)"
        numbers = seconds if about.scale == "seconds" else _between(about)
        raise UsageError(f"{str(required)!r}: {name} is not measured {_WORDS[scale]}; write a number{numbers}")
    if not required.unit and about.scale == "percent" and abs(number) > 1:
        hint = _percent_hint(required, about)
        raise UsageError(f"{str(required)!r}: {name} is a share from 0 to 1, and {number:g} is not{hint}")
    return number / parts


def _percent_hint(required: Requirement | Margin, about: ScoreInfo) -> str:
    bare = about.scale == "percent" and not required.unit and required.number >= 1
    return f"; for {required.number:g} percent write {required.number:g}%" if bare else ""


def _scale(required: Requirement | Margin, about: ScoreInfo) -> str:
    return f"{required.name}{_between(about)}"


def _between(about: ScoreInfo) -> str:
    low, high = (None if x is None else limit(x, about) for x in (about.low, about.high))
    if low is None or high is None:
        return f" (from {low})" if low is not None else f" (up to {high})" if high is not None else ""
    return f" ({low} to {high})"


# ── in the unit of the tables ───────────────────────────────────────────────────────────────────────────────────────


def limit(x: float, about: ScoreInfo) -> str:
    """Format a threshold or a margin with its unit and as many digits as were typed: `62.5 %`, `3.4`, `2 s`."""
    return _with_unit(as_given(100 * x if about.scale == "percent" else x), about)


def amount(x: float, about: ScoreInfo, beside: float | None = None) -> str:
    """Format a value with its unit and as many digits as in tables: `61.2 %`, `3.41`, `1.20 s`, `$0.0312`.

    If the value differs from `beside`, it gets enough digits to show the difference.
    """
    parts = 100 if about.scale == "percent" else 1
    digits = {"percent": 1, "seconds": 2, "usd": 2 if x >= 1 else 4}.get(about.scale, about.digits)
    if beside is not None and x != beside:
        while digits < 12 and float(f"{parts * x:.{digits}f}") == float(f"{parts * beside:.12g}"):
            digits += 1
    return _with_unit(number(parts * x, digits), about)


def _with_unit(text: str, about: ScoreInfo) -> str:
    return {"percent": f"{text} %", "seconds": f"{text} s", "usd": f"${text}"}.get(about.scale, text)
