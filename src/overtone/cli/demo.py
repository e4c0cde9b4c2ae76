"""Build a part of Overtone-Open, run the embedded models over all levels, and write a report: everything offline."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from overtone.errors import EXIT_OK

CLIPS = "clips"
# The embedded language model answers some 1.5 questions a second on two cores: to stay within minutes, the demo builds
# one script per cue, without the gates, and asks everything about its target clip only. What the findings compare is
# asked as well: the alternative clip's voice and a reply to it, the words alone, another prompt, and a wrong cue told.
# Without these flags the commands do all.
BUILD = ("--per-cue", "1", "--no-gates")
FLAGS = ("--parts", "core")
DEAF, ACOUSTIC = "cascade?max_tokens=32", "cascade?hear=acoustic&max_tokens=32"
ALL = ("--styles", "target", "--prompt", "enhance")
TOLD = ("--levels", "3", "--styles", "target", "--prompt", "basic,oracle,oracle-false")
MOVED = ("--levels", "1,3", "--styles", "target,alternative", "--prompt", "enhance")
WORDS = ("--levels", "1", "--styles", "target", "--input", "transcript")
RUNS = (  # phase, folder, SPEC, flags
    ("deaf", "deaf", DEAF, ALL),
    ("… told the cue", "deaf", DEAF, TOLD),
    ("… another voice", "deaf", DEAF, MOVED),
    ("acoustic", "acoustic", ACOUSTIC, ALL),
    ("… another voice", "acoustic", ACOUSTIC, MOVED),
    ("… words alone", "acoustic", ACOUSTIC, WORDS),
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
    print(f"\n{'phase':<16} seconds")
    for name, seconds in [*took, ("in all", sum(s for _, s in took))]:
        print(f"{name:<16} {seconds:7.1f}")
    print(f"\nopen {report}")
    return code
