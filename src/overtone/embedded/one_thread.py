"""Limit NumPy's matrix products to one thread, because their last digits depend on how many threads share the work.

Only OpenBLAS, which NumPy's own wheels bring, can be limited. With another library nothing is changed.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

_NAMES = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads")
_lock = threading.Lock()
_inside = 0  # how many threads of this process are in the block now
_before = 0  # the number of threads to restore


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute matrix products in one thread inside this block, in all Python threads of the process."""
    global _inside, _before
    functions = _functions()
    if functions is None:
        yield
        return
    get, put = functions
    with _lock:
        if not _inside:
            _before = get()
            put(1)
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                put(_before)


@functools.cache
def _functions() -> tuple[Any, Any] | None:
    """Return OpenBLAS's functions that get and set the number of threads, or None without OpenBLAS."""
    package = Path(np.__file__).parent
    for path in sorted([*package.parent.glob("numpy.libs/*openblas*"), *package.glob(".dylibs/*openblas*")]):
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        for name in _NAMES:
            if hasattr(library, name.format("set")):
                return getattr(library, name.format("get")), getattr(library, name.format("set"))
    return None
