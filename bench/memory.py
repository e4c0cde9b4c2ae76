"""The most memory that this process has used, for benchmarks and tests that start a process to measure it."""

from __future__ import annotations

import re
import resource
from pathlib import Path


def peak() -> float:
    """The highest resident memory so far in megabytes (10⁶ bytes).

    Linux counts it for the program alone. `ru_maxrss`, read elsewhere, can also contain the process that started it.
    """
    status = Path("/proc/self/status")
    if status.exists() and (found := re.search(r"VmHWM:\s+(\d+) kB", status.read_text())):
        return int(found[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
