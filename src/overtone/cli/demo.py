"""Build a part of Overtone-Open, run the embedded models over all levels, and write a report: everything offline."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from overtone.errors import EXIT_OK

CLIPS = "clips"
# The embedded language model answers some 1.5 questions a second on two cores: to stay within minutes, the demo builds
# one script per cue, without the gates, and asks about its target clip; of the alternative one it wants a reply alone,
# so that two replies to the same words can be compared. Without these flags the commands do all.
BUILD = ("--per-cue", "1", "--no-gates")
FLAGS = ("--parts", "core")
TARGET = ("--styles", "target")
REPLIES = ("--levels", "3", "--styles", "target,alternative", "--prompt", "enhance")
RUNS = (  # phase, folder, SPEC, flags
    ("deaf", "deaf", "cascade?max_tokens=32", (*TARGET, "--prompt", "enhance,oracle")),
    ("… replies", "deaf", "cascade?max_tokens=32", REPLIES),
    ("acoustic", "acoustic", "cascade?hear=acoustic&max_tokens=32", (*TARGET, "--prompt", "enhance")),
    ("… replies", "acoustic", "cascade?hear=acoustic&max_tokens=32", REPLIES),
)


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="DIR", type=Path, default=Path("demo"), help="where to (demo)")


def main(args: argparse.Namespace) -> int:
    from overtone.cli import main as overtone

    out: Path = args.out
    took: list[tuple[str, float]] = []

    def phase(name: str, *words: str) -> int:
        print(f"\n── {name}: overtone {' '.join(words)}", flush=True)
        began = time.perf_counter()
        code = overtone(words)
        took.append((name, time.perf_counter() - began))
        return code

    code = phase("clips", "build", "open", *BUILD, "--out", str(out / CLIPS))
    for name, folder, spec, flags in RUNS:
        if code != EXIT_OK:
            return code
        where = ("--data", str(out / CLIPS), "--out", str(out / folder))
        code = phase(name, "run", "open", *where, "--model", spec, *FLAGS, *flags)
    if code != EXIT_OK:
        return code
    report = out / "report.html"
    folders = dict.fromkeys(str(out / folder) for _, folder, _, _ in RUNS)
    code = phase("report", "report", *folders, "-o", str(report))
    print("\nphase      seconds")
    for name, seconds in [*took, ("in all", sum(s for _, s in took))]:
        print(f"{name:<10} {seconds:7.1f}")
    print(f"\nopen {report}")
    return code
