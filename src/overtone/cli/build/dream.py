"""Build the spoken form of DREAM: one recording per dialogue, one voice per speaker."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.cli.build._options import add_making, add_out, add_voices, positive, print_rest, progress, spread_as_asked
from overtone.errors import EXIT_OK
from overtone.paths import shown

EXAMPLES = """examples:
  overtone build dream --data data/dream --out data/dream-spoken
  overtone build dream --data data/dream --out data/dream-dev --split dev --limit 50
"""


def add(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument(
        "--data", metavar="DIR", type=Path, required=True, help="folder with DREAM's files, e.g. test.json"
    )
    add_out(parser)
    flag = parser.add_argument_group("what is built").add_argument
    flag("--split", metavar="NAME", default="test", help="train, dev or test (default: test)")
    flag("--limit", metavar="N", type=positive, help="first N dialogues of the split (default: all)")
    add_voices(parser)
    add_making(parser)
    parser.set_defaults(sounds="")
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> int:
    from overtone.build.dream import spoken_set
    from overtone.build.sound_plan import Options

    options = Options(voices=tuple(args.voice) or Options().voices, room=args.room, seed=args.seed)
    with spread_as_asked(args):
        built = spoken_set.build(
            args.out,
            args.data,
            split=args.split,
            limit=args.limit,
            options=options,
            jobs=args.jobs,
            gates=not args.no_gates,
            progress=progress(),
        )
    print(f"{built.made} dialogues spoken, {built.kept} kept from an earlier build.")
    print("\n".join(built.lines), end="\n\n")
    print_rest(built, args)
    print(f"Next: overtone run dream --data {shown(str(args.out))} --model cascade --input audio,transcript")
    return EXIT_OK
