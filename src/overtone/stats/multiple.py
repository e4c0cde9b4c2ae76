"""Many questions at once: p-values made larger, so that asking often does not pass for finding something.

`holm` keeps the chance of even one false alarm in the family below the level, whatever the tests have to do with each
other. `benjamini_hochberg` keeps the expected share of false alarms among the findings below it, for tests that are
independent or go together. A NaN is a test that was not made: it stays NaN and does not count.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from overtone.stats.cluster import Numbers

Array = npt.NDArray[np.float64]


def holm(p: Numbers) -> Array:
    """Holm's adjusted p-values, in the order given: a finding at the level if at most the level."""
    values, known, order = _sorted(p)
    steps = np.maximum.accumulate(values[order] * np.arange(known.size, 0, -1))
    return _back(values.size, order, steps)


def benjamini_hochberg(p: Numbers) -> Array:
    """Benjamini and Hochberg's adjusted p-values (false discovery rate), in the order given."""
    values, known, order = _sorted(p)
    steps = values[order] * known.size / np.arange(1, known.size + 1)
    return _back(values.size, order, np.minimum.accumulate(steps[::-1])[::-1])


def _sorted(p: Numbers) -> tuple[Array, npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The p-values, the places of those there are, and these places from the smallest p up."""
    values = np.asarray(p, dtype=np.float64)
    known = np.flatnonzero(~np.isnan(values))
    if values.ndim != 1 or ((values[known] < 0) | (values[known] > 1)).any():
        raise ValueError("a p-value lies between 0 and 1")
    return values, known, known[np.argsort(values[known], kind="stable")]


def _back(size: int, order: npt.NDArray[np.intp], steps: Array) -> Array:
    found = np.full(size, np.nan)
    found[order] = np.minimum(steps, 1.0)
    return found
