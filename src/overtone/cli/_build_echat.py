"""What `overtone build echat` and `overtone build echat-real` add to the command: their flags, and what they print."""

from __future__ import annotations

import argparse
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from overtone.errors import EXIT_OK, DataError, UsageError
from overtone.paths import shown

if TYPE_CHECKING:
    from overtone.build.pool import Tell
    from overtone.echat.making.make import Built

NAMES = ("echat", "echat-real")
_SHOWN = 8


def add(parser: argparse.ArgumentParser) -> None:
    """Flags of these two sets."""
    of = parser.add_argument_group("echat and echat-real, the training data")
    of.add_argument("--count", metavar="N", type=int, help="exchanges in train; the other parts shrink with it")
    of.add_argument("--pack", metavar="DIR", type=Path, help="also write each part as a pack, which training reads")
    of.add_argument("--pack-only", action="store_true", help="packs (in OUT/pack) and no sound files")
    of.add_argument("--shards", action="store_true", help="also write tar shards")
    of.add_argument("--reply-audio", action="store_true", help="keep the sounds of replies, not their tokens alone")
    of.add_argument("--texts-from", metavar="DIR", type=Path, help="complete a folder that was begun elsewhere")
    of.add_argument("--hear-again", action="store_true", help="hear and say also what is known from before")
    of.add_argument("--speech", metavar="SPEC", default="", help="tokens of the replies: units, or s3:FOLDER (units)")
    of.add_argument("--records", metavar="PATH", type=Path,
                    help="build nothing: OUT becomes a pack of records you have (EChat-200K)")  # fmt: skip
    of.add_argument("--each-turn", action="store_true", help="of --records: every turn of a dialogue is to be answered")
    of.add_argument("--data", metavar="DIR", type=Path, help="of echat-real: the folder of your corpora")
    of.add_argument("--open-only", action="store_true", help="of echat-real: only what an open licence covers")


def refuse(args: argparse.Namespace, whose: str, *flags: str) -> None:
    """Flags that would be ignored."""
    for flag in flags:
        value = getattr(args, flag)
        if value is not None and value is not False and value not in ("", []):
            raise UsageError(f"--{flag.replace('_', '-')} is of {whose}; leave it out for {args.name!r}")


def main(args: argparse.Namespace, only: tuple[str, ...], tell: Tell) -> int:
    """Build one of the two."""
    if args.count is not None and args.count < 1:
        raise UsageError("--count must be at least 1")
    pack = str(args.pack or (args.out / "pack" if args.pack_only else ""))
    if args.name == "echat-real":
        from overtone.echat.making.real import build as build_real

        refuse(args, "echat", "records", "each_turn", "speech", "hear_again", "count", "shards", "reply_audio",
               "texts_from", "only", "no_gates")  # fmt: skip
        if args.data is None:
            raise UsageError("say where your corpora lie: --data DIR")
        wavs = not args.pack_only
        made = build_real(args.out, args.data, open_only=args.open_only, pack=pack, wavs=wavs, seed=args.seed)
        for name, (count, licence) in made.corpora.items():
            print(f"{name}: {count} records, {licence}")
        for warning in made.warnings:
            print(f"note: {shown(warning)}")
        return EXIT_OK
    refuse(args, "echat-real", "data", "open_only")
    if args.records is not None:
        return _pack(args)
    if args.each_turn:
        raise UsageError("--each-turn goes with --records; leave it out")
    from overtone.echat.making.compose import SIZES
    from overtone.echat.making.make import build
    from overtone.echat.making.write import Outputs

    built = build(
        args.out,
        seed=args.seed,
        count=args.count or SIZES["train"],
        only=only,
        jobs=args.jobs,
        gates=not args.no_gates,
        again=args.hear_again,
        outputs=Outputs(not args.pack_only, pack, args.shards, args.reply_audio),
        start=args.texts_from,
        speech=args.speech or "units",
        progress=tell,
    )
    _print(built, args.out, pack)
    return EXIT_OK


def _pack(args: argparse.Namespace) -> int:
    """Records that lie elsewhere, in any container, as training reads them."""
    from overtone.echat.data import containers
    from overtone.echat.data.records import prefixes

    for flag in ("count", "pack", "pack_only", "shards", "reply_audio", "texts_from", "hear_again", "speech", "only",
                 "no_gates", "jobs", "seed"):  # fmt: skip
        if getattr(args, flag):
            raise UsageError(f"--{flag.replace('_', '-')} is for building; leave it out with --records")
    out: Path = args.out
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{shown(str(out))} is there already; give another --out")
    records = containers.read(args.records)
    first = next(records, None)  # before anything is written
    if first is None:
        raise DataError(f"{shown(str(args.records))}: holds no record; give a list or a folder that does")
    every = chain([first], records)
    count = containers.pack((r for record in every for r in (prefixes(record) if args.each_turn else [record])), out)
    print(f"{count} records")
    print(f"Next: overtone train echat --preset full --data {shown(str(out))} --out RUN")
    return EXIT_OK


def _print(built: Built, out: Path, pack: str) -> None:
    for part, count in built.parts.items():
        print(f"{part:<7} {count:>6} records")
    told = built.gates
    print(f"evaluation sets: {told['evaluation sets']['dropped']} texts dropped")
    if told["ran"]:
        for gate, row in told["gates"].items():
            print(f"gate {gate:<16} {row['checked']:>6} checked, {row['failed']:>4} failed")
        if built.recalled:
            print(f"{built.recalled} verdicts were known and not asked for again (--hear-again does)")
        print(f"{told['left_out']} queries left out, {told['spoken_again']} spoken again by the next speaker")
        for finding in told["findings"][:_SHOWN]:
            print(f"  {finding['query']}: {shown(finding['reason'])}")
        if len(told["findings"]) > _SHOWN:
            print(f"  and {len(told['findings']) - _SHOWN} more in {shown(str(out / 'gates.json'))}")
    else:
        print("no gate was run")
    for warning in built.warnings:
        print(f"note: {shown(warning)}")
    if built.clips:
        print(f"{built.clips} clips in {built.making_seconds:.0f} s: {built.speed:.1f} a second")
    if built.replies:
        print(f"{built.replies} replies and sentences spoken")
    if pack:
        from overtone.echat.making.compose import HEARD
        from overtone.echat.making.write import ALOUD

        packs = [f"--data {shown(f'{pack}/{part}')}" for part in ("train", *HEARD, ALOUD) if part in built.parts]
        if packs:
            print(f"Next: overtone train echat --preset mini {' '.join(packs)} --out RUN")
        else:
            print("None of these parts is to learn from; the same command with --only train adds one that is")
    else:
        print(f"Training reads packs; for one: the same command with --pack {shown(str(out / 'pack'))}")
