"""Turn scripts into a benchmark: clips in any voice, their questions, every gate passed, a manifest of the making."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overtone.cli import _build_echat
from overtone.cli._build_echat import refuse
from overtone.cli._options import add_insecure_flag
from overtone.errors import EXIT_OK, UsageError
from overtone.paths import shown

if TYPE_CHECKING:
    from overtone.build import aeq, echat_eval
    from overtone.build.make import Built
    from overtone.build.plan import Options
    from overtone.build.spoken import Said

_GROUPED = ("aeq", "echat-eval")  # sets whose texts are no scripts
_SHOWN = 12  # findings of the gates; gates.json has all


def add(parser: argparse.ArgumentParser) -> None:
    """The set's name and the flags."""
    parser.add_argument(
        "name",
        metavar="SET",
        help="open, aeq, echat-eval or echat (texts that come with Overtone), echat-real (your corpora), a file of "
        "your own (.jsonl, .toml), or: review",
    )
    parser.add_argument("scripts", metavar="SCRIPTS", nargs="?", help="of review: the set or file that is reviewed")
    parser.add_argument("--out", metavar="DIR", type=Path, help="where to put it; built again, it is resumed")
    parser.add_argument(
        "--voice", metavar="SPEC", action="append", default=[],
        help="espeak (default), flite, festival, openai:MODEL, command:…, recordings:DIR; several join into one cast",
    )  # fmt: skip
    add_insecure_flag(parser)
    parser.add_argument("--sounds", metavar="DIR", default="", help="real sounds in ESC-50, FSD50K or AudioCaps layout")
    parser.add_argument(
        "--only", metavar="CUE,…", default="",
        help="only the scripts of these cues (aeq: context or tone; echat-eval: its categories; echat: parts)",
    )  # fmt: skip
    parser.add_argument("--per-cue", metavar="N", type=int, help="only the first N scripts of each cue, or of --only's")
    parser.add_argument("--meld", metavar="DIR", type=Path, help="of aeq: contexts from MELD's tables, not our texts")
    parser.add_argument("--clips", metavar="DIR", type=Path, help="of aeq --meld: its recordings, dia<D>_utt<U>.wav")
    parser.add_argument(
        "--tones", metavar="CSV", type=Path,
        help="of aeq: your recordings: a table (file, words, tone, speaker), or EmoV-DB's folder",
    )  # fmt: skip
    parser.add_argument("--recognise", action="store_true", help="write down what is heard of clips, gates or not")
    parser.add_argument("--strength", metavar="X", type=float, help="of the deliveries, 0 to 1.5 (1)")
    parser.add_argument("--snr", metavar="DB", type=float, help="of the voice over its scene (10)")
    parser.add_argument("--room", metavar="KIND", default="", help="let it sound in a room: small, hall, street, car")
    parser.add_argument("--jobs", metavar="N", type=int, default=None, help="processes (default: one per core)")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of all randomness (default: 0)")
    parser.add_argument("--no-gates", action="store_true", help="leave nothing out and check nothing")
    parser.add_argument("--solver", metavar="SPEC", action="append", default=[], help="a model for the leak test")
    parser.add_argument("--ratings", metavar="CSV", type=Path, help="what listeners heard: listener,clip,heard")
    parser.add_argument("--licence", metavar="ID", default="", help="of your own texts, e.g. CC-BY-4.0")
    parser.add_argument("--release", action="store_true", help="refuse unless all gates pass and the licences agree")
    parser.add_argument("--reviews", metavar="DIR", type=Path, help="review sheets; only accepted scripts are built")
    parser.add_argument("--round", metavar="N", type=int, help="of review: write the sheets of round 1, 2 or 3")
    parser.add_argument("--reviewers", metavar="NAME,…", default="", help="of review: who is to fill them")
    _build_echat.add(parser)


def main(args: argparse.Namespace) -> int:
    """Build, with a line of progress on stderr and the counts on stdout."""
    if args.name == "review":
        return _review(args)
    if args.scripts:
        raise UsageError(f"one set at a time: {args.name!r} and {args.scripts!r} were given")
    if args.out is None:
        raise UsageError("say where to put it: --out DIR")
    for flag, value in (("--jobs", args.jobs), ("--per-cue", args.per_cue)):
        if value is not None and value < 1:
            raise UsageError(f"{flag} must be at least 1")
    only = tuple(filter(None, (cue.strip() for cue in args.only.split(","))))
    if args.name in _build_echat.NAMES:
        refuse(args, "sets that are asked", "voice", "sounds", "room", "per_cue", "meld", "clips", "tones", "recognise",
               "strength", "snr", "licence")  # fmt: skip
        refuse(args, "sets of scripts", "release", "solver", "ratings", "reviews", "round", "reviewers")
        return _build_echat.main(args, only, progress())
    refuse(args, "echat and echat-real", "count", "pack", "pack_only", "shards", "reply_audio", "texts_from", "data",
           "records", "each_turn", "speech", "hear_again", "open_only")  # fmt: skip
    from overtone.build.licence import UNKNOWN
    from overtone.build.plan import Options

    args.licence = args.licence or UNKNOWN
    plain = Options()
    strength = plain.strength if args.strength is None else args.strength
    snr = plain.snr if args.snr is None else args.snr
    options = Options(tuple(args.voice) or plain.voices, args.sounds, strength, args.room, snr, args.seed)
    if args.name in _GROUPED:
        return _grouped(args, options, only)
    refuse(args, "aeq", "meld", "clips", "tones", "recognise")
    from overtone.build.make import build

    solvers = []
    if args.solver:
        from overtone.solving import model_solver

        solvers = [model_solver(spec) for spec in args.solver]
    built = build(
        args.name,
        args.out,
        options=options,
        only=only,
        per_cue=args.per_cue,
        jobs=args.jobs,
        gates=not args.no_gates,
        release=args.release,
        licence=args.licence,
        solvers=solvers,
        ratings=args.ratings,
        reviews=args.reviews,
        progress=progress(),
    )
    _print(built, args.out, args.sounds)
    return EXIT_OK


def _grouped(args: argparse.Namespace, options: Options, only: tuple[str, ...]) -> int:
    """Build a set whose texts are no scripts."""
    refuse(args, "sets of scripts", "release", "solver", "ratings", "reviews", "round", "reviewers")
    shared: dict[str, Any] = {
        "options": options, "only": only, "jobs": args.jobs, "gates": not args.no_gates, "progress": progress()
    }  # fmt: skip
    built: aeq.Built | echat_eval.Built
    if args.name == "aeq":
        from overtone.build import aeq

        built = aeq.build(
            args.out, **shared, per_setting=args.per_cue, meld=args.meld, clips=args.clips, tones=args.tones,
            licence=args.licence, recognise=args.recognise,
        )  # fmt: skip
    else:
        from overtone.build import echat_eval

        refuse(args, "aeq", "meld", "clips", "tones", "recognise")
        built = echat_eval.build(args.out, **shared, per_category=args.per_cue)
    print(f"{built.made} sounds made, {built.kept} kept.")
    print("\n".join(built.lines), end="\n\n")
    _print_rest(built, args.out, args.sounds)
    print(f"Next: overtone run {args.name} --data {shown(str(args.out))} --model cascade")
    return EXIT_OK


def progress() -> Callable[[str, int, int], None]:
    """A moving line with the time left on a terminal, a plain line now and then in a log."""
    terminal = sys.stderr.isatty()
    began: dict[str, tuple[float, int]] = {}  # when, and how much an earlier build had done
    drawn = 0.0

    def tell(what: str, done: int, total: int) -> None:
        nonlocal drawn
        now = time.monotonic()
        first, before = began.setdefault(what, (now, done))
        last = done >= total
        if not last and now - drawn < (0.1 if terminal else 10.0):
            return
        drawn = now
        left = (now - first) / (done - before) * (total - done) if done > before else 0.0
        line = f"{what}: {done}/{total}" + (f", {left:.0f} s left" if left else "")
        if terminal:
            bar = "█" * (24 * done // max(total, 1))
            print(f"\r\x1b[K{bar:<24} {line}", end="\n" if last else "", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)

    return tell


def _print(built: Built, out: Path, sounds: str = "") -> None:
    from overtone.build.datasheet import counts_table

    print(f"{built.scripts} scripts: {built.made} sounds made, {built.kept} kept.\n")
    print(counts_table(built.clips, built.questions))
    print()
    _print_rest(built, out, sounds)
    print(f"Next: overtone data check {shown(str(out))}")


def _print_rest(built: Said, out: Path, sounds: str) -> None:
    """What the gates found, the licence and the speed."""
    if built.sifted.ran:
        for gate, (checked, failed) in built.sifted.counts().items():
            print(f"gate {gate:<16} {checked:>5} checked, {failed:>4} left out")
        for finding in built.sifted.findings[:_SHOWN]:
            print(f"  {shown(finding.subject)}: {shown(finding.reason)}")
        if len(built.sifted.findings) > _SHOWN:
            print(f"  and {len(built.sifted.findings) - _SHOWN} more in {shown(str(out / 'gates.json'))}")
        for block in built.sifted.blocks:
            print(f"not fit for release: {shown(block)}")
    else:
        print("no gate was run")
    if sounds:
        from overtone.build.render import library

        found = library(sounds)
        if found is not None and (missing := found.missing()):
            print(f"synthesised, since {shown(sounds)} has none: {', '.join(missing)}")
    if built.verdict.conflicts:
        print("licence: none; " + "; ".join(map(shown, built.verdict.conflicts)))
    else:
        print(f"licence: {built.verdict.licence}")
    if built.made:
        print(
            f"{built.sound_seconds:.0f} s of sound in {built.making_seconds:.1f} s: {built.speed:.0f} × real time",
            end="",
        )
        print(f" ({built.sound_seconds / built.wall_seconds:.0f} × with the gates)." if built.sifted.ran else ".")


def _review(args: argparse.Namespace) -> int:
    """Write the sheets of a round, or say what the filled ones come to."""
    from overtone.build import review
    from overtone.build.manifest import write
    from overtone.build.script import HERE, read_collection, sets
    from overtone.paths import shown_lines

    if not args.scripts:
        raise UsageError("say which scripts are reviewed: overtone build review SCRIPTS.jsonl")
    scripts = read_collection(args.scripts).everything
    folder: Path = args.reviews or (HERE / args.scripts / "reviews" if args.scripts in sets() else Path("reviews"))
    if args.round is not None:
        names = [name for name in map(str.strip, args.reviewers.split(",")) if name]
        sheets = review.sheet(scripts, args.round, names)
        if there := [name for name in sheets if (folder / name).exists()]:
            raise UsageError(f"{shown(str(folder / there[0]))} exists; fill that one, or move it away")
        for name, data in sheets.items():
            write(folder / name, data)
            print(f"{shown(str(folder / name))}: {len(scripts)} scripts; fill the columns verdict and note")
        print(f"verdict is {', '.join(review.VERDICTS)}; then: overtone build review {shown(args.scripts)}")
        return EXIT_OK
    if not folder.is_dir():
        raise UsageError(f"no sheets in {shown(str(folder))}; begin with --round 1 --reviewers NAME,NAME")
    decision = review.decide(scripts, review.read_reviews(folder))
    print("\n".join(map(shown_lines, review.summary(decision))))
    lacking = review.missing(scripts, folder)
    for line in lacking[:_SHOWN]:
        print(f"lacking: {shown(line)}")
    if len(lacking) > _SHOWN:
        print(f"lacking: and {len(lacking) - _SHOWN} more")
    return EXIT_OK
