"""Write the report of one or several runs: one HTML file with tables, failures and every case, with players."""

from __future__ import annotations

import argparse
import sys

from overtone.cli._findings import add_source


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="a run's folder; several are shown side by side")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE.html",
        help="where to write it (default: RUN/report.html; ./report.html for several runs)",
    )
    parser.add_argument(
        "--embed-audio",
        action="store_true",
        help="put the clips and spoken replies into the file, so that it can be sent on alone (up to 200 MiB of sound)",
    )
    parser.add_argument(
        "--data",
        metavar="DIR",
        action="append",
        default=[],
        help="with --embed-audio: embed clips from this folder too, not only from the working directory; repeatable",
    )
    parser.add_argument(
        "--calibrated",
        metavar="LABELS",
        help="people's labels of some of the replies: judges' means are shown corrected by them",
    )
    parser.add_argument("--arena", metavar="DIR", help="the folder of an 'overtone arena': its standings are shown too")

    add_source(parser)


def main(args: argparse.Namespace) -> int:
    from pathlib import Path

    from overtone.errors import EXIT_OK
    from overtone.paths import shown, user_path
    from overtone.report.html import write_report

    runs = [Path(run) for run in args.runs]
    default = runs[0] / "report.html" if len(runs) == 1 else Path("report.html")
    labels = Path(args.calibrated) if args.calibrated else None
    arena = Path(args.arena) if args.arena else None
    out = write_report(
        runs,
        Path(args.output) if args.output else default,
        args.embed_audio,
        labels,
        arena,
        source=args.source,
        data=[user_path(folder) for folder in args.data],
        warn=lambda text: print(f"overtone: {shown(text)}", file=sys.stderr),
    )
    print(shown(str(out)))
    return EXIT_OK
