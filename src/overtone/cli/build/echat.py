"""Build spoken exchanges to train a model on, or pack records that the user has."""

from __future__ import annotations

import argparse
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from overtone.cli.build._options import add_making, add_out, names, positive, progress, spread_as_asked
from overtone.errors import EXIT_OK, DataError, UsageError
from overtone.paths import shown

if TYPE_CHECKING:
    from overtone.echat.making.make import Built

EXAMPLES = """examples:
  overtone build echat --out data/echat --pack data/echat/pack
  overtone build echat --records EChat-200K/data.list --out data/echat-200k
"""
_SHOWN = 8


def add(parser: argparse.ArgumentParser, name: str) -> None:
    add_out(parser)
    flag = parser.add_argument_group("what is built").add_argument
    flag("--only", metavar="PART,…", type=names, default=(), help="parts to build (default: all)")
    flag("--count", metavar="N", type=positive, help="exchanges in train; the other parts scale with it")
    flag("--texts-from", metavar="DIR", type=Path, help="complete a folder that was begun elsewhere")
    flag("--hear-again", action="store_true", help="repeat checks and replies that are already known")
    flag = add_packs(parser).add_argument
    flag("--shards", action="store_true", help="also write tar shards")
    flag("--reply-audio", action="store_true", help="keep the audio of replies beside their tokens")
    flag("--speech", metavar="SPEC", default="", help="tokens of the replies: units2 or s3:FOLDER (default: units2)")
    add_making(parser)
    records = parser.add_argument_group("records that you have")
    records.add_argument(
        "--records", metavar="PATH", type=Path, help="build nothing: pack these records (EChat-200K) into --out"
    )
    records.add_argument("--each-turn", action="store_true", help="one record for each turn of a dialogue")
    parser.epilog = EXAMPLES


def add_packs(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the flags of packs. Return their group."""
    group = parser.add_argument_group("what is written")
    group.add_argument("--pack", metavar="DIR", type=Path, help="also write each part as a pack, which training reads")
    group.add_argument("--pack-only", action="store_true", help="write packs (in OUT/pack) and no sound files")
    return group


def pack_of(args: argparse.Namespace) -> str:
    """Return the folder of the packs, or "" if none are wanted."""
    return str(args.pack or (args.out / "pack" if args.pack_only else ""))


def main(args: argparse.Namespace) -> int:
    if args.records is not None:
        return _pack(args)
    if args.each_turn:
        raise UsageError("--each-turn goes with --records; leave it out")
    from overtone.echat.making.compose import SIZES
    from overtone.echat.making.make import build
    from overtone.echat.making.write import Outputs

    pack = pack_of(args)
    with spread_as_asked(args):
        built = build(
            args.out,
            seed=args.seed,
            count=args.count or SIZES["train"],
            only=args.only,
            jobs=args.jobs,
            gates=not args.no_gates,
            again=args.hear_again,
            outputs=Outputs(not args.pack_only, pack, args.shards, args.reply_audio),
            start=args.texts_from,
            speech=args.speech or "units2",
            progress=progress(),
        )
    _print(built, args.out, pack)
    return EXIT_OK


def _pack(args: argparse.Namespace) -> int:
    """Convert existing records, in any container, to packs that training reads."""
    from overtone.echat.data import containers
    from overtone.echat.data.exchange_records import prefixes

    for flag in ("count", "pack", "pack_only", "shards", "reply_audio", "texts_from", "hear_again", "speech", "only",
                 "no_gates", "jobs", "seed", "ray", "ray_address"):  # fmt: skip
        if getattr(args, flag):
            raise UsageError(f"--{flag.replace('_', '-')} is for building; leave it out with --records")
    out: Path = args.out
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{shown(str(out))} already exists; give another --out")
    records = containers.read(args.records)
    first = next(records, None)  # before anything is written
    if first is None:
        raise DataError(f"{shown(str(args.records))}: contains no records; give a list or a folder that does")
    every = chain([first], records)
    count = containers.pack((r for record in every for r in (prefixes(record) if args.each_turn else [record])), out)
    print(f"{count} records")
    print(f"Next: overtone train echat --preset full --data {shown(str(out))} --out RUN")
    return EXIT_OK


def _print(built: Built, out: Path, pack: str) -> None:
    for part, count in built.parts.items():
        print(f"{part:<7} {count:>6} records")
    report = built.gates
    print(f"evaluation sets: {report['evaluation sets']['dropped']} texts dropped")
    if report["ran"]:
        for gate, row in report["gates"].items():
            print(f"gate {gate:<16} {row['checked']:>6} checked, {row['failed']:>4} failed")
        if built.recalled:
            print(f"{built.recalled} stored verdicts were reused (--hear-again repeats the checks)")
        print(f"{report['left_out']} queries left out, {report['spoken_again']} spoken again by the next speaker")
        for finding in report["findings"][:_SHOWN]:
            print(f"  {finding['query']}: {shown(finding['reason'])}")
        if len(report["findings"]) > _SHOWN:
            print(f"  and {len(report['findings']) - _SHOWN} more in {shown(str(out / 'gates.json'))}")
    else:
        print("no gate was run")
    for warning in built.warnings:
        print(f"note: {shown(warning)}")
    if built.clips:
        print(f"{built.clips} clips in {built.making_seconds:.0f} s: {built.speed:.1f} per second")
    if built.replies:
        print(f"{built.replies} replies and sentences spoken")
    if pack:
        from overtone.echat.making.compose import HEARD
        from overtone.echat.making.write import ALOUD

        packs = [f"--data {shown(f'{pack}/{part}')}" for part in ("train", *HEARD, ALOUD) if part in built.parts]
        if packs:
            print(f"Next: overtone train echat --preset mini {' '.join(packs)} --out RUN")
        else:
            print("None of these parts is for training; run the same command with --only train to add one")
    else:
        print(f"Training reads packs; run the same command with --pack {shown(str(out / 'pack'))} to write them")
