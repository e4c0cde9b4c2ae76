"""Fit a part of Overtone to recordings that you have: hearing (emotion, sex, age, nonverbal sounds)."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from overtone.errors import EXIT_OK
from overtone.paths import shown, user_path
from overtone.processes import usable_cores

EXAMPLES = (
    "overtone fit hearing --corpus ravdess:RAVDESS --corpus nonverbal:NONVERBAL --out ear.npz",
    "overtone fit hearing --corpus table:MY_RECORDINGS --out mine.npz",
)
_HEARING = (
    "Fit an ear to people's recordings: it learns which emotion, sex, age group and nonverbal sound a voice has. The "
    "report gives its recall on speakers and corpora left out of the fit. Use the ear with cascade?hear=ear.npz and "
    "--metric emoalign?predictor=ear.npz. To resume a fit that was stopped, run the same command again."
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands and their flags."""
    parts = parser.add_subparsers(dest="what", metavar="WHAT", required=True, title="parts")
    hearing = parts.add_parser(
        "hearing", help="fit an ear to people's recordings", description=_HEARING, allow_abbrev=False
    )
    flag = hearing.add_argument
    flag(
        "--corpus",
        metavar="KIND:DIR",
        action="append",
        default=[],
        help="corpus of recordings, such as ravdess:DIR, nonverbal:DIR or table:DIR (your own labels.csv); repeatable",
    )
    flag("--out", metavar="FILE.npz", type=Path, required=True, help="file of the ear; its report ends in .json")
    flag("--features", metavar="FILE", type=Path, help="file that keeps the clips' features between fits "
                                                       "(default: beside --out)")  # fmt: skip
    flag("--folds", metavar="N", type=int, default=6, help="folds of speakers for the test (default: 6)")
    flag("--seed", metavar="N", type=int, default=0, help="seed of the folds and intervals (default: 0)")
    flag("--jobs", metavar="N", type=int, help="processes (default: one per core)")


def main(args: argparse.Namespace) -> int:
    """Fit, and print the report."""
    from overtone.cli._progress import Line
    from overtone.ear.ear_table import lines
    from overtone.ear.make_ear import Settings, check, make

    settings = Settings(
        corpora=tuple(args.corpus),
        out=user_path(args.out),
        features=None if args.features is None else user_path(args.features),
        folds=args.folds,
        seed=args.seed,
        jobs=usable_cores() if args.jobs is None else args.jobs,
    )
    check(settings)
    began = time.monotonic()
    state = ["reading the corpora"]

    def progress(what: str, done: int, total: int) -> None:
        unit = "clips" if what == "listening" else "fits"
        state[0] = f"{what}: {done} of {total} {unit} · {time.monotonic() - began:.0f} s"

    line = Line(lambda: state[0])
    try:
        made = make(settings, progress)
    finally:
        line.stop()
    for note in made.notes:
        print(f"note: {shown(note)}")
    for text in lines(made):
        print(shown(text) if text else "")
    print(f"\n{made.version} after {time.monotonic() - began:.0f} s: {shown(str(settings.out))} "
          f"(report: {shown(str(made.report))}; features: {shown(str(made.features))})")  # fmt: skip
    return EXIT_OK
