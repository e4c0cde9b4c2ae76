"""Every measurement the documents quote, one after the other: `make bench`, or `python -m bench`."""

from __future__ import annotations

import subprocess
import sys

for name in (
    "startup",
    "wer",
    "metrics",
    "bertscore",
    "arena",
    "arena_draws",
    "scoring",
    "pipeline",
    "throughput",
    "studio",
):
    print(f"\n── bench.{name}", flush=True)
    subprocess.run([sys.executable, "-m", f"bench.{name}"], check=True)
