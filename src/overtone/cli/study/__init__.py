"""Run an experiment that a study file fixed beforehand: all jobs, then the analysis."""

from __future__ import annotations

import argparse

from overtone.cli.study import page, perspectives

NOTES = "'overtone study NAME --help' lists the flags of a command."
EXAMPLES = (
    "overtone study perspectives --data EMOBANK --dream DREAM --open OPEN --out STUDY",
    "overtone study report STUDY -o page.html",
)
COMMANDS = {  # name → a module with `add` and `main`, and a summary
    "perspectives": (perspectives, "tune a language model on two perspectives, all arms and outcomes"),
    "report": (page, "write a page with the verdict and all numbers of a study"),
}


def add(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="name", metavar="NAME", required=True, title="commands")
    for name, (module, summary) in COMMANDS.items():
        made = commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        module.add(made)
        made.set_defaults(study_main=module.main)


def main(args: argparse.Namespace) -> int:
    """Run the command of a study and return its exit code."""
    return int(args.study_main(args))
