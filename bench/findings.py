"""Make runs of made-up models with known abilities, and measure how long the findings of ten full ones take.

`python -m bench.findings make DIR --runs N --scripts S [--seed K] [--once]` writes run folders.
`python -m bench.findings [--runs 10] [--once] [--folder DIR]` measures: every step in a process of its own, with the
seconds of the step (and of opening the runs before it) and the process's largest memory; then `overtone analyze` from
its start to its end, which may take 20 s and 1 GB over ten runs of 15,996 items. With --once every item is asked once;
otherwise every conversation is held under each prompt and told cue, and part of everything again by transcript: 35,977
requests a run, for which the limit is not meant.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.findings_items import SCRIPTS
from bench.findings_runs import make_runs

SECONDS, MEGABYTES, RUNS = 20.0, 1_000.0, 10
REPORTED = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", nargs="?", choices=("make", "measure", "step"), default="measure")
    parser.add_argument("rest", nargs="*", metavar="DIR", help="where runs are made")
    parser.add_argument("--runs", type=int, default=0)
    parser.add_argument("--scripts", type=int, default=SCRIPTS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--once", action="store_true", help="every item under one condition")
    parser.add_argument("--folder", type=Path, help="runs made before, to be measured again")
    given = parser.parse_args()
    if given.command == "make":
        if len(given.rest) != 1:
            parser.error("make needs one folder")
        made = make_runs(
            Path(given.rest[0]), runs=given.runs or 3, scripts=given.scripts, seed=given.seed, once=given.once
        )
        print(*made, sep="\n")
    elif given.command == "step":
        name, *runs = given.rest
        print(json.dumps(_step(name, [Path(run) for run in runs])))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            folder = given.folder or Path(temporary)
            runs = sorted(p.parent for p in folder.glob("*/run.db"))
            if not runs:
                print("making the runs …", file=sys.stderr)
                runs = make_runs(folder, runs=given.runs or RUNS, scripts=given.scripts, once=given.once)
            measure(runs, Path(temporary))


def measure(runs: Sequence[Path], scratch: Path) -> None:
    print(f"{platform.platform()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print("seconds on the clock (of the processor); a step's are without opening the runs; MB: the most it ever held")
    print(f"{'step':<34}{'opening':>14}{'step':>14}{'MB':>7}")
    for name in STEPS:
        found = json.loads(_run([sys.executable, "-m", "bench.findings", "step", name, *map(str, runs)]))
        print(f"{found['what']:<34}{found['opening']:>14}{found['step']:>14}{found['megabytes']:>7.0f}")
    some = list(map(str, runs[:REPORTED]))
    page = scratch / "report.html"
    _whole(f"overtone report, {len(some)} runs", ["report", *some, "-o", str(page)])
    print(f"{'':<34}the page has {page.stat().st_size / 1e6:.1f} MB")
    seconds, megabytes = _whole(f"overtone analyze, {len(runs)} runs", ["analyze", *map(str, runs)])
    if len(runs) >= RUNS and (seconds > SECONDS or megabytes > MEGABYTES):
        sys.exit(f"slower than {SECONDS:g} s or larger than {MEGABYTES:g} MB")


def _whole(what: str, arguments: Sequence[str]) -> tuple[float, float]:
    """A command of overtone from its start to its end."""
    code = (
        "import resource, subprocess, sys, time; began = time.perf_counter();"
        "subprocess.run([sys.executable, '-m', 'overtone', *sys.argv[1:]], stdout=subprocess.DEVNULL, check=True);"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN);"
        "print(time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)"
    )
    seconds, processor, megabytes = map(float, _run([sys.executable, "-c", code, *arguments]).split())
    print(f"{what:<34}{'':>14}{_both(seconds, processor):>14}{megabytes:>7.0f}", flush=True)
    return seconds, megabytes


def _both(seconds: float, processor: float) -> str:
    return f"{seconds:.1f} ({processor:.1f})"


def _run(command: Sequence[str]) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


# ── steps, each in a process of its own ─────────────────────────────────────────────────────────────────────────────


def _nothing(readings: list[Any]) -> None:
    """opening, light"""


def _findings(*names: str) -> Callable[[list[Any]], None]:
    def found(readings: list[Any]) -> None:
        from overtone.findings.analysis import compute_findings

        compute_findings(readings, names)

    found.__doc__ = f"finding: {', '.join(names)}" if names else "all findings and their sentences"
    return found


def _tables(readings: list[Any]) -> None:
    """all findings, sentences and tables"""
    from overtone.findings.analysis import compute_findings
    from overtone.findings.finding_tables import tables_of

    for finding in compute_findings(readings):
        tables_of(finding)


def _under(readings: list[Any]) -> None:
    """all findings, and the cases under each"""
    from overtone.findings.analysis import cases_by_key, compute_findings

    for finding in compute_findings(readings):
        for _ in cases_by_key(readings, finding):
            pass


NAMES = ("funnel", "sensitivity", "text-only", "levels", "prompts", "source", "upper", "leaderboard")
STEPS: dict[str, Callable[[list[Any]], None]] = {
    "open": _nothing,
    **{name: _findings(name) for name in NAMES},
    "findings": _findings(),
    "tables": _tables,
    "under": _under,
}


def _step(name: str, runs: Sequence[Path]) -> dict[str, float | str]:
    from overtone.results.load import open_run

    began, used = time.perf_counter(), time.process_time()
    readings = [open_run(run, light=True) for run in runs]
    opened, open_used = time.perf_counter(), time.process_time()
    STEPS[name](readings)
    return {
        "what": STEPS[name].__doc__ or name,
        "opening": _both(opened - began, open_used - used),
        "step": _both(time.perf_counter() - opened, time.process_time() - open_used),
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


if __name__ == "__main__":
    main()
