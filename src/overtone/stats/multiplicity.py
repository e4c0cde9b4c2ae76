"""Corrections for many tests at once. They increase p-values, so that many tests do not produce false findings.

`holm` keeps the chance of even one false alarm in the family below the level, for any dependence between the tests.
`benjamini_hochberg` keeps the expected share of false alarms among the findings below the level, for tests that are
independent or positively dependent. NaN marks a missing test: it stays NaN and does not count as a test.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from overtone.stats.cluster import Numbers

Array = npt.NDArray[np.float64]


def holm(p: Numbers) -> Array:
    """Return Holm's adjusted p-values, in input order. A test is significant if its p-value is at most the level."""
    values = np.asarray(p, dtype=np.float64)
    known = np.flatnonzero(~np.isnan(values))
    if values.ndim != 1 or ((values[known] < 0) | (values[known] > 1)).any():
        raise ValueError("a p-value must be between 0 and 1")
    order = known[np.argsort(values[known], kind="stable")]
    steps = np.maximum.accumulate(values[order] * np.arange(known.size, 0, -1))
    adjusted = np.full(values.size, np.nan)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted
