"""Build a set for AEQ-Bench's questions: utterances that vary in their context or their tone."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.cli.build._options import add_speaking, names, options_of, positive, print_rest, progress, spread_as_asked
from overtone.errors import EXIT_OK
from overtone.paths import shown

EXAMPLES = """examples:
  overtone build aeq --out data/aeq
  overtone build aeq --tones labels.csv --licence CC-BY-4.0 --out data/mine
"""


def add(parser: argparse.ArgumentParser, name: str) -> None:
    flag = parser.add_argument_group("what is built").add_argument
    add_speaking(parser)
    flag("--only", metavar="SETTING", type=names, default=(), help="setting to build, context or tone (default: both)")
    flag("--per-setting", metavar="N", type=positive, help="first N groups of each setting (default: all)")
    flag("--meld", metavar="DIR", type=Path, help="MELD's tables, whose contexts replace our texts")
    flag("--clips", metavar="DIR", type=Path, help="MELD's recordings, dia<D>_utt<U>.wav (needs --meld)")
    flag(
        "--tones",
        metavar="CSV",
        type=Path,
        help="your recordings: a table (file, words, tone, speaker), or EmoV-DB's folder",
    )
    flag("--licence", metavar="ID", default="", help="licence of your texts and recordings")
    flag("--recognise", action="store_true", help="store a transcript of each clip, even without gates")
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> int:
    from overtone.build import aeq_set
    from overtone.build.licence import UNKNOWN

    with spread_as_asked(args):
        built = aeq_set.build(
            args.out,
            options=options_of(args),
            only=args.only,
            per_setting=args.per_setting,
            meld=args.meld,
            clips=args.clips,
            tones=args.tones,
            licence=args.licence or UNKNOWN,
            jobs=args.jobs,
            gates=not args.no_gates,
            recognise=args.recognise,
            progress=progress(),
        )
    print(f"{built.made} sounds made, {built.kept} kept.")
    print("\n".join(built.lines), end="\n\n")
    print_rest(built, args)
    print(f"Next: overtone run aeq --data {shown(str(args.out))} --model cascade")
    return EXIT_OK
