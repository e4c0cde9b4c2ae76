"""Log runs to an experiment tracker: headline numbers, tables and the report."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.errors import EXIT_OK

TRACKERS = ("wandb", "mlflow")
EXAMPLES = (
    "overtone log wandb runs/monday --project speech",
    "overtone log mlflow runs/monday runs/friday --to http://localhost:5000",
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    flag = parser.add_argument
    flag("tracker", choices=TRACKERS, help="wandb (Weights & Biases) or mlflow")
    flag("runs", metavar="RUN", type=Path, nargs="+", help="folder of a run; repeating a run updates it")
    flag("--project", metavar="NAME", default="overtone", help="project or experiment (default: overtone)")
    flag("--to", metavar="ADDRESS", default="",
         help="mlflow: address of a server, or a folder (default: mlruns); wandb: folder of its files")  # fmt: skip
    flag("--offline", action="store_true", help="write files only and send nothing ('wandb sync' sends them later)")
    flag("--no-report", action="store_true", help="leave out the HTML report, which contains every reply")


def main(args: argparse.Namespace) -> int:
    """Log each run, and print where it is."""
    from overtone.paths import shown
    from overtone.report.trackers import log_run

    for run in args.runs:
        where = log_run(
            run, args.tracker, project=args.project, to=args.to, offline=args.offline, report=not args.no_report
        )
        print(shown(f"{run} → {where}"))
    return EXIT_OK
