"""Build a benchmark from scripts: spoken, delivered, set in scenes, with questions and a manifest."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from overtone.errors import EXIT_OK, UsageError

if TYPE_CHECKING:
    from overtone.build.make import Built


def add(parser: argparse.ArgumentParser) -> None:
    """The set's name and the flags."""
    parser.add_argument("name", metavar="SET", help="which scripts, e.g. starter (39 scripts, one per cue)")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, required=True, help="where to put it; built again, it is resumed"
    )
    parser.add_argument("--only", metavar="CUE,…", default="", help="only the scripts of these cues")
    parser.add_argument("--jobs", metavar="N", type=int, default=None, help="processes (default: one per core)")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of all randomness (default: 0)")


def main(args: argparse.Namespace) -> int:
    """Build, with a line of progress on stderr and the counts on stdout."""
    from overtone.build.make import build

    if args.jobs is not None and args.jobs < 1:
        raise UsageError("--jobs must be at least 1")
    terminal = sys.stderr.isatty()

    def progress(done: int, total: int, cue: str) -> None:
        if terminal:
            print(
                f"\r{done}/{total} scripts · {cue:<12}", end="\n" if done == total else "", file=sys.stderr, flush=True
            )
        elif done % 10 == 0 or done == total:
            print(f"{done}/{total} scripts", file=sys.stderr, flush=True)

    only = tuple(filter(None, (cue.strip() for cue in args.only.split(","))))
    built = build(args.name, args.out, only=only, jobs=args.jobs, seed=args.seed, progress=progress)
    _print(built, args.out)
    return EXIT_OK


def _print(built: Built, out: Path) -> None:
    from overtone.build.questions import positions
    from overtone.paths import shown

    print(f"{built.scripts} scripts: {built.made} sounds made, {built.kept} kept.")
    carried: dict[str, int] = {}
    for clip in built.clips:
        if not clip.manner:
            carried[clip.cue or "neutral"] = carried.get(clip.cue or "neutral", 0) + 1
    print(f"{sum(carried.values())} clips by cue: " + ", ".join(f"{cue} {n}" for cue, n in sorted(carried.items())))
    print(f"{len(built.questions)} questions, and how often each letter is right:")
    for category, letters in positions(built.questions).items():
        print(f"  {category:<16} {sum(letters.values()):>3}   " + "  ".join(f"{k} {n}" for k, n in letters.items()))
    if built.made:
        print(f"{built.sound_seconds:.0f} s of sound in {built.wall_seconds:.1f} s: {built.speed:.0f} × real time.")
    print(f"Next: overtone data check {shown(str(out))}")
