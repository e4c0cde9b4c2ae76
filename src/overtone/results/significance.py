"""The rule by which sentences call a difference significant; see `docs/reference/findings/significance.md`.

If a table has p-values, a difference is significant if its p-value is at most 0.05 after Holm's correction over its
family, and the sentence names p, the test and the number of tests. If a table has only intervals, the sentence says
whether the interval includes 0 and does not mention significance. Sentences and tables read the same fields of a row.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from overtone.results.measures import Estimate
from overtone.stats import multiplicity
from overtone.text import NONE, number

LEVEL = 0.05
_ROUNDING = 1e-12  # rounding error of products of p-values
TEST = "two-sided paired test clustered by script"


def holm_by_family(p_values: Sequence[float | None], families: Sequence[Hashable]) -> list[tuple[float | None, int]]:
    """Return (Holm's corrected p-value, number of tests in its family) for each p-value, in input order.

    A missing p-value means that the test was not made: it stays missing and does not count as a test.
    """
    members: dict[Hashable, list[int]] = {}
    for place, (p, family) in enumerate(zip(p_values, families, strict=True)):
        if p is not None:
            members.setdefault(family, []).append(place)
    corrected: list[tuple[float | None, int]] = [(None, len(members.get(family, ()))) for family in families]
    for places in members.values():
        for place, p in zip(places, multiplicity.holm([p_values[i] or 0.0 for i in places]), strict=True):
            corrected[place] = float(p), len(places)
    return corrected


Row = TypeVar("Row", bound=Struct)


def adjust(rows: Sequence[Row], families: Sequence[Hashable]) -> list[Row]:
    """Fill in `adjusted`, Holm's corrected p-value, and `tests`, the number of tests in the family, in each row."""
    corrected = holm_by_family([row.p for row in rows], families)  # type: ignore[attr-defined]
    return [
        replace(row, adjusted=adjusted, tests=tests) for row, (adjusted, tests) in zip(rows, corrected, strict=True)
    ]


def significant(adjusted: float | None) -> bool:
    """Return whether a corrected p-value is significant; a missing one is not."""
    return adjusted is not None and adjusted <= LEVEL + _ROUNDING


def least_scripts(tests: int) -> int:
    """Return the least number of scripts with which a test in a family of `tests` tests can find any difference.

    With fewer scripts, no pattern of signs is rare enough after the correction, unless the other tests are significant.
    """
    return 1 + math.ceil(math.log2(max(1, tests) / LEVEL))


def p_number(p: float | None) -> str:
    """Format a p-value as in tables, `0.012` or `< 0.001`, with enough digits to show that it is above LEVEL."""
    if p is None:
        return NONE
    if p < 0.001:
        return "< 0.001"
    digits = 3
    while p > LEVEL + _ROUNDING and float(f"{p:.{digits}f}") <= LEVEL:
        digits += 1
    return number(p, digits)


def p_value(p: float | None) -> str:
    """Format a p-value for a sentence: `p = 0.012`, `p < 0.001`."""
    written = p_number(p)
    return f"p {written}" if written.startswith("<") else f"p = {written}"


def family_of(tests: int, family: str = "tests") -> str:
    """Return the number of tests in a family as text: `3 headline tests`."""
    return f"{tests:,} {family if tests != 1 else family.replace('tests', 'test', 1)}"


def tested_by(adjusted: float | None, tests: int, family: str = "tests") -> str:
    """Return a text with the corrected p-value, the name of the test and the number of tests in the correction."""
    return f"{p_value(adjusted)}, {method_of(tests, family)}"


def method_of(tests: int, family: str = "tests") -> str:
    """Return the name of the test and of its correction."""
    return f"{TEST}, Holm correction over {family_of(tests, family)}"


def by_test(e: Estimate, adjusted: float | None, tests: int) -> str:
    """Return the words that follow a difference in a sentence: whether it is significant, and by which test and
    correction."""
    if adjusted is None:
        return ", which was not tested"
    if significant(adjusted):
        return f", which is statistically significant ({tested_by(adjusted, tests)})"
    if e.scripts < least_scripts(tests):
        return f"; not enough data to test it: {too_few(e.scripts, tests)}"
    text = f", which is not statistically significant ({tested_by(adjusted, tests)})"
    if excludes(e):
        text += "; the 95 % interval applies to this row alone, so it can exclude 0 although the corrected test is not "
        text += "significant"
    return text


def too_few(scripts: int, tests: int, family: str = "tests") -> str:
    """Return the reason why a test cannot find a difference with fewer scripts than `least_scripts`."""
    have = f"{scripts:,} script{'s are' if scripts != 1 else ' is'} too few"
    need = f"need{'' if tests != 1 else 's'} at least {least_scripts(tests)}"
    return f"{have}, {family_of(tests, family)} {need}"


def excludes(e: Estimate, null: float = 0.0) -> bool:
    """Return whether there is a 95 % interval and `null` lies outside it."""
    return e.low is not None and e.high is not None and not e.low <= null <= e.high


def by_interval(e: Estimate, of: str = "this row alone", null: str = "0") -> str:
    """Return the words that follow a number in a table without p-values: whether its 95 % interval includes 0. The
    text calls the 0 `null`."""
    if e.low is None or e.high is None:
        return ""
    return f"; the 95 % interval of {of} {'excludes' if excludes(e) else 'includes'} {null}"
