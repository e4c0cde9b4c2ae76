"""Look up the names of cases by their position in a table, fast enough for many overlapping selections."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

KeyedCases = tuple[str, list[str]]  # the key of a number, and the cases that were counted


class Names:
    """The name of the case in each row of a table. Several rows may have the same case."""

    def __init__(self, cases: Sequence[str]) -> None:
        self._cases = np.empty(len(cases), dtype=object)
        self._cases[:] = cases
        self._once = len(set(cases)) == len(cases)

    def of(self, rows: npt.NDArray[np.intp] | Sequence[int]) -> list[str]:
        """Return the cases of these rows without duplicates, in the order of the rows."""
        cases: list[str] = self._cases[rows if len(rows) else np.empty(0, dtype=np.intp)].tolist()
        return cases if self._once else unique(cases)


def unique(cases: Iterable[str]) -> list[str]:
    """Return each case once, in the order of its first occurrence."""
    return list(dict.fromkeys(cases))
