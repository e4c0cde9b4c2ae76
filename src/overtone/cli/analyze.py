"""Say what runs found: the funnel, sensitivity, levels, prompts, sources, upper bound, in sentences and tables."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.cli._findings import add_choices, read
from overtone.errors import EXIT_OK


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", metavar="RUN", nargs="+", type=Path, help="a run's folder; several are told together")
    parser.add_argument(
        "--finding", metavar="NAME", action="append", default=[],
        help="funnel, sensitivity, text-only, levels, prompts, source, upper or leaderboard; repeatable (all)",
    )  # fmt: skip
    parser.add_argument("--format", choices=("table", "markdown", "json"), default="table", help="(table)")
    parser.add_argument("--behind", metavar="KEY", help="name the cases under a number; --format json has the keys")
    add_choices(parser)


def main(args: argparse.Namespace) -> int:
    from overtone.analysis.findings import check_names
    from overtone.paths import shown
    from overtone.report import analyzed

    names = check_names(args.finding)
    readings, settings, told = read(args)
    if args.behind:
        for case in analyzed.behind(readings, args.behind, settings, told):
            print(shown(case))
        return EXIT_OK
    found = analyzed.analyze(readings, names, settings, told)
    if args.format == "json":
        print(analyzed.to_json(found))
    elif args.format == "markdown":
        print(analyzed.to_markdown(found, args.by), end="")
    else:
        analyzed.print_findings(found, args.by)
    return EXIT_OK
