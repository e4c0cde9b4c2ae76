"""Write an HTML report of one or more runs: tables, findings, failures, and every case with audio players."""

from __future__ import annotations

import argparse
import sys

from overtone.cli._findings import add_heard, add_source

EXAMPLES = ("overtone report runs/monday", "overtone report runs/monday runs/friday -o report.html --embed-audio")


def add(parser: argparse.ArgumentParser) -> None:
    flag = parser.add_argument
    flag("runs", nargs="+", metavar="RUN", help="folder of a run; several are shown side by side")
    flag(
        "-o",
        "--output",
        metavar="FILE.html",
        help="output file (default: RUN/report.html; ./report.html for several runs)",
    )
    flag(
        "--embed-audio",
        action="store_true",
        help="embed the clips and spoken replies, so that the file is self-contained (up to 200 MiB of audio)",
    )
    flag(
        "--data",
        metavar="DIR",
        action="append",
        default=[],
        help="further folder from which --embed-audio may take clips; repeatable (default: the working directory only)",
    )
    flag(
        "--calibrated",
        metavar="LABELS",
        help="labels of some replies by people, or a study (.toml); the report then also shows the judges' means "
        "corrected by them",
    )
    flag("--arena", metavar="DIR", help="folder of an 'overtone arena' whose standings are shown too")

    add_source(parser)
    add_heard(parser)


def main(args: argparse.Namespace) -> int:
    from pathlib import Path

    from overtone.cli import _labels
    from overtone.errors import EXIT_OK
    from overtone.paths import shown, user_path
    from overtone.report.page import write_report

    runs = [Path(run) for run in args.runs]
    default = runs[0] / "report.html" if len(runs) == 1 else Path("report.html")
    labels = _labels.of_runs(Path(args.calibrated)) if args.calibrated else None
    arena = Path(args.arena) if args.arena else None
    out = write_report(
        runs,
        Path(args.output) if args.output else default,
        args.embed_audio,
        labels,
        arena,
        source=args.source,
        heard=args.heard,
        data=[user_path(folder) for folder in args.data],
        warn=lambda text: print(f"overtone: {shown(text)}", file=sys.stderr),
    )
    print(shown(str(out)))
    return EXIT_OK
