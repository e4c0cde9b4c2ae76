"""Build a set for EChat-eval's questions: queries with all their labels in one recording."""

from __future__ import annotations

import argparse

from overtone.cli.build._options import add_speaking, names, options_of, positive, print_rest, progress, spread_as_asked
from overtone.errors import EXIT_OK
from overtone.paths import shown

EXAMPLES = """examples:
  overtone build echat-eval --out data/echat-eval
  overtone build echat-eval --out data/part --only emotion --per-category 5
"""


def add(parser: argparse.ArgumentParser, name: str) -> None:
    flag = parser.add_argument_group("what is built").add_argument
    add_speaking(parser)
    flag(
        "--only", metavar="CATEGORY,…", type=names, default=(), help="categories to build, e.g. emotion (default: all)"
    )
    flag("--per-category", metavar="N", type=positive, help="first N sentences of each category (default: all)")
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> int:
    from overtone.build import echat_eval_set

    with spread_as_asked(args):
        built = echat_eval_set.build(
            args.out,
            options=options_of(args),
            only=args.only,
            per_category=args.per_category,
            jobs=args.jobs,
            gates=not args.no_gates,
            progress=progress(),
        )
    print(f"{built.made} sounds made, {built.kept} kept.")
    print("\n".join(built.lines), end="\n\n")
    print_rest(built, args)
    print(f"Next: overtone run echat-eval --data {shown(str(args.out))} --model cascade")
    return EXIT_OK
