"""Build parts of the open sets, run the embedded models on them, and write one report, all offline."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from overtone.errors import EXIT_OK

# The embedded language model answers about 1.5 questions per second on two cores. To finish within minutes, the demo
# builds one script per cue, without the gates, and asks all questions about the target clip only. It adds what the
# findings compare: the voice of the alternative clip and a reply to it, the words alone, other prompts, a false cue.
# Without these flags the commands cover everything.
FLAGS = ("--parts", "core")
DEAF, ACOUSTIC = "cascade?max_tokens=32", "cascade?hear=acoustic&max_tokens=32"
ALL = (*FLAGS, "--styles", "target", "--prompt", "enhance")
TOLD = (*FLAGS, "--levels", "3", "--styles", "target", "--prompt", "basic,oracle,oracle-false")
MOVED = (*FLAGS, "--levels", "1,3", "--styles", "target,alternative", "--prompt", "enhance")
WORDS = (*FLAGS, "--levels", "1", "--styles", "target", "--input", "transcript")
SETS = (  # built, where to, flags
    ("open", "clips", ("--per-cue", "1", "--no-gates")),
    ("aeq", "aeq-clips", ("--per-setting", "1", "--no-gates")),
    ("echat-eval", "echat-clips", ("--per-category", "1", "--no-gates")),
)
RUNS: tuple[
    tuple[str, str, str, str, str, tuple[str, ...]], ...
] = (  # phase, benchmark, its clips, folder, SPEC, flags
    ("deaf", "open", "clips", "deaf", DEAF, ALL),
    ("… told the cue", "open", "clips", "deaf", DEAF, TOLD),
    ("… another voice", "open", "clips", "deaf", DEAF, MOVED),
    ("acoustic", "open", "clips", "acoustic", ACOUSTIC, ALL),
    ("… another voice", "open", "clips", "acoustic", ACOUSTIC, MOVED),
    ("… words alone", "open", "clips", "acoustic", ACOUSTIC, WORDS),
    ("aeq", "aeq", "aeq-clips", "aeq", ACOUSTIC, ("--input", "audio,context")),
    ("echat-eval", "echat-eval", "echat-clips", "echat-eval", ACOUSTIC, ()),
)
EXAMPLES = ("overtone demo --out demo",)


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="DIR", type=Path, default=Path("demo"), help="output folder (default: demo)")


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

    for name, clips, part in SETS:
        if (code := phase(f"{name} clips", "build", name, *part, "--out", str(out / clips))) != EXIT_OK:
            return code
    for name, benchmark, clips, folder, spec, flags in RUNS:
        where = ("--data", str(out / clips), "--out", str(out / folder))
        if (code := phase(name, "run", benchmark, *where, "--model", spec, *flags)) != EXIT_OK:
            return code
    report = out / "report.html"
    folders = dict.fromkeys(str(out / folder) for *_, folder, _, _ in RUNS)
    code = phase("report", "report", *folders, "-o", str(report))
    print(f"\n{'phase':<16} seconds")
    for name, seconds in [*took, ("total", sum(s for _, s in took))]:
        print(f"{name:<16} {seconds:7.1f}")
    print(f"\nopen {report}")
    return code
