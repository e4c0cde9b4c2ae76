"""Build records to train on from corpora of recordings that the user has."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.cli.build._options import add_out
from overtone.cli.build.echat import add_packs, pack_of
from overtone.errors import EXIT_OK
from overtone.paths import shown

EXAMPLES = """examples:
  overtone build echat-real --data corpora --out data/real --pack-only
  overtone build echat-real --corpus ravdess:RAVDESS --corpus meld:MELD.Raw --out data/real
"""


def add(parser: argparse.ArgumentParser, name: str) -> None:
    add_out(parser)
    parser.add_argument("--data", metavar="DIR", type=Path, help="folder with your corpora in or below it")
    parser.add_argument(
        "--corpus",
        metavar="KIND:DIR",
        action="append",
        default=[],
        help="one corpus; 'overtone list corpora' lists the kinds; repeatable",
    )
    flag = parser.add_argument_group("what is built").add_argument
    flag("--open-only", action="store_true", help="use only recordings with an open licence")
    flag("--seed", metavar="N", type=int, default=0, help="seed of all randomness (default: 0)")
    add_packs(parser)
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> int:
    from overtone.echat.making.real_set import build

    made = build(
        args.out,
        args.data,
        args.corpus,
        open_only=args.open_only,
        pack=pack_of(args),
        wavs=not args.pack_only,
        seed=args.seed,
    )
    for name, (count, licence) in made.corpora.items():
        print(f"{name}: {count} records, {licence}")
    for warning in made.warnings:
        print(f"note: {shown(warning)}")
    return EXIT_OK
