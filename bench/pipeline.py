"""The harness alone: items per second with a model that answers at once, clips, durable store, scores and tables
included, and the memory that a run of many items and its report take.

    python -m bench.pipeline [--items 20000] [--memory-items 200000] [--inspect PYTHON]
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import data, inspect_peer

RUN = """
import asyncio, sys, time
from pathlib import Path
from bench.memory import peak
from overtone import registry
from overtone.runs.session import Hooks, execute
from overtone.runs.settings import resolve
from overtone.scoring import score_run
registry.load_plugin(Path("bench/null_model.py"))
flags = {"benchmark": "echomind", "data": sys.argv[1], "model": ["null-model"], "levels": "1", "out": sys.argv[2]}
(settings,) = resolve(flags, None, {})
began = time.perf_counter()
outcome = asyncio.run(execute(settings, Hooks()))
asked = time.perf_counter()
score_run(settings.folder, again=False)
scored = time.perf_counter()
from overtone.report.terminal import print_run
print_run(settings.folder)
shown = time.perf_counter()
print(f"RESULT {outcome.answered} {asked - began:.2f} {scored - asked:.2f} {shown - scored:.2f} {peak():.0f}")
"""

REPORT = """
import sys, time
from pathlib import Path
from bench.memory import peak
from overtone.report.page import write_report
began = time.perf_counter()
page = write_report([Path(sys.argv[1])], Path(sys.argv[2]))
print(f"RESULT {time.perf_counter() - began:.2f} {peak():.0f} {page.stat().st_size / 1e6:.0f}")
"""


def measure(folder: Path, items: int) -> tuple[float, ...]:
    """Do a run of this many questions; returns answered, seconds to ask, score and show, and its peak in MB."""
    made = data.make(folder / f"data{items}", scripts=100, questions=items)
    return _child(RUN, made, folder / f"run{items}")


def measure_report(folder: Path, items: int) -> tuple[float, ...]:
    """Report the run that `measure` did; returns seconds, the report's peak in MB and the size of its file in MB."""
    return _child(REPORT, folder / f"run{items}", folder / f"report{items}.html")


def _child(code: str, *arguments: Path) -> tuple[float, ...]:
    words = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    found = re.search(r"RESULT (.+)", done.stdout)
    if not found:
        sys.exit(done.stderr)
    return tuple(float(word) for word in found[1].split())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--memory-items", type=int, default=200_000)
    parser.add_argument("--inspect", metavar="PYTHON", help="an interpreter that has inspect_ai, to measure beside")
    parser.add_argument("--inspect-items", type=int, default=500)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        n, asked, scored, shown, peak = measure(Path(name), args.items)
        whole = n / (asked + scored + shown)
        print(f"{n:.0f} items: asked in {asked:.1f} s, scored in {scored:.1f} s, tables in {shown:.1f} s")
        print(f"run alone {n / asked:.0f} items/s, run + score + tables {whole:.0f} items/s, peak {peak:.0f} MB")
        if args.inspect:
            peer = inspect_peer.rate(args.inspect, items=args.inspect_items, logs=Path(name) / "logs")
            print(
                f"inspect_ai {peer:.0f} items/s on {args.inspect_items} items without clips, ratio {whole / peer:.0f}"
            )
        if args.memory_items:
            n, asked, scored, shown, peak = measure(Path(name), args.memory_items)
            print(f"{n:.0f} items: {n / (asked + scored + shown):.0f} items/s in all")
            print(f"peak memory of the run, from plan to tables: {peak:.0f} MB")
            seconds, peak, size = measure_report(Path(name), args.memory_items)
            print(f"peak memory of its report: {peak:.0f} MB ({size:.0f} MB written in {seconds:.0f} s)")


if __name__ == "__main__":
    main()
