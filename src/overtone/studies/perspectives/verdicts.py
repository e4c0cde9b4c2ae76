"""The verdict on an estimate: improves, worse, equivalent within the margin, undecided, or not testable."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .estimates import Estimate

IMPROVES, WORSE, EQUIVALENT = "improves", "worse", "equivalent"
UNDECIDED, NOT_TESTABLE = "undecided", "not testable"
MOST_SEEDS = 100


@dataclass(frozen=True)
class Verdict:
    """One of the five kinds, and the words for it."""

    kind: str
    text: str


def verdict(
    e: Estimate, p: float, margin: float, tests: dict[str, Any], untestable: str = "", higher_is_better: bool = True
) -> Verdict:
    """Judge a difference. `p` is corrected where the test is one of a family; `untestable` is `Check.text`.

    An outcome that is not testable has no other verdict. Without a margin nothing is equivalent.
    """
    if untestable:
        return Verdict(NOT_TESTABLE, untestable)
    if e.seeds < 2:
        return Verdict(UNDECIDED, "undecided with one seed: the spread over seeds is unknown")
    if p < tests["alpha"]:
        kind = IMPROVES if (e.value > 0) == higher_is_better else WORSE
        return Verdict(kind, kind)
    low, high = e.interval(tests["equivalence"])
    if margin and -margin < low and high < margin:
        return Verdict(EQUIVALENT, f"equivalent within ±{margin:g}")
    if not margin:
        return Verdict(UNDECIDED, "no significant difference; no margin was set")
    return Verdict(UNDECIDED, f"undecided with {e.seeds} seeds; {_more_seeds(e, margin)}")


def _more_seeds(e: Estimate, margin: float) -> str:
    """Say how many more seeds would decide if the estimate and both variances stayed as they are."""
    items = max(0.0, e.error**2 - e.seed_variance)
    for n in range(e.seeds + 1, MOST_SEEDS + 1):
        error = math.sqrt(items + e.seed_variance * e.seeds / n)
        if abs(e.value) + 1.7 * error < margin or abs(e.value) > 2.5 * error:
            return f"about {n - e.seeds} more would decide, if the estimate stays"
    return "more seeds alone would not decide"
