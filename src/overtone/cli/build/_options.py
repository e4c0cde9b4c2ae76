"""The parts that several sets share: the flags of spoken sets, the summary of a build, and its line of progress."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from overtone.cli._run_flags import add_insecure_flag, add_ray_flags
from overtone.paths import shown

if TYPE_CHECKING:
    from overtone.build.sound_plan import Options
    from overtone.build.speak_set import Built

SHOWN = 12  # findings of the gates; gates.json has all


def positive(text: str) -> int:
    """Convert a flag's value to a whole number of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {value}")
    return value


def names(text: str) -> tuple[str, ...]:
    """Convert a flag's value, names separated by commas, to a tuple of at least one name."""
    given = tuple(filter(None, (name.strip() for name in text.split(","))))
    if not given:
        raise argparse.ArgumentTypeError("name at least one")
    return given


def add_out(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", metavar="DIR", type=Path, required=True, help="output folder; the same build is resumed there"
    )


def add_making(parser: argparse.ArgumentParser) -> None:
    """Add the flags of sets that are generated here: the number of processes, the seed, and whether gates run."""
    flag = parser.add_argument_group("how it is made").add_argument
    flag("--jobs", metavar="N", type=positive, help="number of jobs at once (default: one per core)")
    flag("--seed", metavar="N", type=int, default=0, help="seed of all randomness (default: 0)")
    flag("--no-gates", action="store_true", help="check nothing and leave nothing out")
    add_ray_flags(parser, "spread the work")


def spread_as_asked(args: argparse.Namespace) -> contextlib.AbstractContextManager[None]:
    """Return a block whose jobs run on the Ray cluster, if the user asked for one."""
    from overtone.build.voices import cast
    from overtone.cluster.ray_tasks import asked_for, jobs_on_ray

    if not asked_for(args.ray, args.ray_address):
        return contextlib.nullcontext()
    folders = [args.out, *([Path(args.sounds)] if getattr(args, "sounds", "") else [])]
    engines = cast(tuple(args.voice)).engines.values() if getattr(args, "voice", ()) else ()
    variables = [name for engine in engines for name in getattr(engine, "variables", ())]
    return jobs_on_ray(args.ray, args.ray_address, folders, variables)


def add_voices(parser: argparse.ArgumentParser, kinds: str = "command:…") -> argparse._ArgumentGroup:
    """Add the flags of voices and rooms, and return their group. `kinds` ends the list of the kinds of voices."""
    group = parser.add_argument_group("voices and sounds")
    group.add_argument(
        "--voice",
        metavar="SPEC",
        action="append",
        default=[],
        help=f"espeak (default), flite, festival, openai:MODEL, {kinds}; repeat it to mix voices",
    )
    add_insecure_flag(parser)
    group.add_argument("--room", metavar="KIND", default="", help="room to render: small, hall, street, car")
    return group


def add_speaking(parser: argparse.ArgumentParser) -> None:
    """Add the flags of sets that are spoken: voices, rooms, sounds, deliveries."""
    add_out(parser)
    flag = add_voices(parser, "command:…, recordings:DIR, recordings:STUDY.toml").add_argument
    flag("--sounds", metavar="DIR", default="", help="folder of real sounds in ESC-50, FSD50K or AudioCaps layout")
    flag("--strength", metavar="X", type=float, default=1.0, help="delivery strength, 0–1.5 (default: 1)")
    flag("--snr", metavar="DB", type=float, default=10.0, help="level of the voice over its scene (default: 10)")
    add_making(parser)


def options_of(args: argparse.Namespace) -> Options:
    """Return the settings that say how a set is spoken."""
    from overtone.build.sound_plan import Options

    voices = tuple(args.voice) or Options().voices
    return Options(voices, args.sounds, args.strength, args.room, args.snr, args.seed)


def print_rest(built: Built, args: argparse.Namespace) -> None:
    """Print the results of the gates, the licence and the speed."""
    if built.gate_report.ran:
        for gate, (checked, failed) in built.gate_report.counts().items():
            print(f"gate {gate:<16} {checked:>5} checked, {failed:>4} left out")
        for finding in built.gate_report.findings[:SHOWN]:
            print(f"  {shown(finding.subject)}: {shown(finding.reason)}")
        if len(built.gate_report.findings) > SHOWN:
            print(f"  and {len(built.gate_report.findings) - SHOWN} more in {shown(str(args.out / 'gates.json'))}")
        for block in built.gate_report.blocks:
            print(f"not fit for release: {shown(block)}")
    else:
        print("no gate was run")
    if args.sounds:
        from overtone.build.render import library

        sounds = library(args.sounds)
        if sounds is not None and (missing := sounds.missing()):
            print(f"synthesised, because {shown(args.sounds)} has no such sounds: {', '.join(missing)}")
    if built.verdict.conflicts:
        print("licence: none; " + "; ".join(map(shown, built.verdict.conflicts)))
    else:
        print(f"licence: {built.verdict.licence}")
    if built.made:
        print(
            f"{built.sound_seconds:.0f} s of sound in {built.making_seconds:.1f} s: {built.speed:.0f} × real time",
            end="",
        )
        print(f" ({built.sound_seconds / built.wall_seconds:.0f} × with the gates)." if built.gate_report.ran else ".")


def progress() -> Callable[[str, int, int], None]:
    """Return a function that shows progress: a moving line with the time left on a terminal, or plain lines in a
    log."""
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
