"""Print findings about runs (funnel, sensitivity, levels, prompts and more) as sentences and tables."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.cli._findings import add_choices, read
from overtone.errors import EXIT_OK

EXAMPLES = ("overtone analyze runs/monday", "overtone analyze runs/monday runs/friday --finding funnel --by category")


def add(parser: argparse.ArgumentParser) -> None:
    from overtone import registry

    flag = parser.add_argument
    names = ", ".join(registry.listing("findings"))
    flag("runs", metavar="RUN", nargs="+", type=Path, help="folder of a run; several are shown together")
    flag("--finding", metavar="NAME", action="append", default=[], help=f"finding: {names}; repeatable (default: all)")
    flag("--format", choices=("table", "markdown", "json"), default="table", help="output format (default: table)")
    flag("--behind", metavar="KEY", help="list the cases behind a number; --format json shows the keys")
    add_choices(parser)


def main(args: argparse.Namespace) -> int:
    from overtone.findings.analysis import cases_behind
    from overtone.findings.lookup import check_names
    from overtone.paths import shown as printable
    from overtone.report import findings_text

    names = check_names(args.finding)
    readings, settings, shown = read(args)
    if args.behind:
        behind = findings_text.cases_in_tables if args.behind.startswith("where=") else cases_behind
        for case in behind(readings, args.behind, settings, shown):
            print(printable(case))
        return EXIT_OK
    analysis = findings_text.analyze(readings, names, settings, shown)
    if args.format == "json":
        print(findings_text.to_json(analysis))
    elif args.format == "markdown":
        print(findings_text.to_markdown(analysis, args.by), end="")
    else:
        findings_text.print_findings(analysis, args.by)
    return EXIT_OK
