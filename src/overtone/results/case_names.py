"""Look up the names of cases by position, fast enough for the many overlapping selections of one table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

KeyedCases = tuple[str, list[str]]  # the key of a number, and the cases that were counted


class Names:
    """The case of each row of a table. A case may be in several rows and is named once."""

    def __init__(self, cases: Sequence[str]) -> None:
        self._cases = np.empty(len(cases), dtype=object)
        self._cases[:] = cases
        self._once = len(set(cases)) == len(cases)

    def of(self, rows: npt.NDArray[np.intp] | Sequence[int]) -> list[str]:
        """Return the cases of these rows, in their order."""
        cases: list[str] = self._cases[rows if len(rows) else np.empty(0, dtype=np.intp)].tolist()
        return cases if self._once else unique(cases)


def unique(cases: Iterable[str]) -> list[str]:
    """Return each case once, in the order of its first occurrence."""
    return list(dict.fromkeys(cases))
