"""Build a set of scripts: Overtone-Open, or your own file."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.cli.build._options import add_speaking, names, options_of, positive, print_rest, progress, spread_as_asked
from overtone.errors import EXIT_OK
from overtone.paths import shown

OPEN = """examples:
  overtone build open --out data/open
  overtone build open --out data/part --only whisper,rain --per-cue 2 --voice flite
"""
FILE = """examples:
  overtone build scripts.jsonl --out data/mine --licence CC-BY-4.0
  overtone build scripts.jsonl --out data/mine --reviews reviews --release
"""


def add(parser: argparse.ArgumentParser, name: str) -> None:
    flag = parser.add_argument_group("what is built").add_argument
    add_speaking(parser)
    flag("--only", metavar="CUE,…", type=names, default=(), help="cues whose scripts are built (default: all)")
    flag("--per-cue", metavar="N", type=positive, help="first N scripts of each cue (default: all)")
    flag("--solver", metavar="SPEC", action="append", default=[], help="model for the leak test; repeatable")
    flag("--ratings", metavar="CSV", type=Path, help="ratings of listeners: listener,clip,heard")
    flag("--reviews", metavar="DIR", type=Path, help="review sheets; only accepted scripts are built")
    flag("--release", action="store_true", help="refuse unless all gates pass and the licences agree")
    if name == "FILE":
        flag("--licence", metavar="ID", default="", help="licence of your texts, e.g. CC-BY-4.0")
    parser.epilog = FILE if name == "FILE" else OPEN


def main(args: argparse.Namespace) -> int:
    from overtone.build.builder import build
    from overtone.build.datasheet import counts_table
    from overtone.build.licence import UNKNOWN
    from overtone.build.voices import cast

    solvers = []
    if args.solver:
        from overtone.leak_solver import model_solver

        solvers = [model_solver(spec) for spec in args.solver]
    options = options_of(args)
    with spread_as_asked(args):
        built = build(
            args.set,
            args.out,
            options=options,
            only=args.only,
            per_cue=args.per_cue,
            jobs=args.jobs,
            gates=not args.no_gates,
            release=args.release,
            licence=getattr(args, "licence", "") or UNKNOWN,
            solvers=solvers,
            ratings=args.ratings,
            reviews=args.reviews,
            progress=progress(),
        )
    print(f"{built.scripts} scripts: {built.made} sounds made, {built.kept} kept.\n")
    for engine in cast(options.voices).engines.values():
        for line in getattr(engine, "report", list)():
            print(line)
    print(counts_table(built.clips, built.questions), end="\n\n")
    print_rest(built, args)
    print(f"Next: overtone data check {shown(str(args.out))}")
    return EXIT_OK
