"""Write the report of a study: the verdict, every outcome with its intervals, pictures, and the jobs that are left."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.errors import EXIT_OK
from overtone.paths import shown, user_path

EXAMPLES = """examples:
  overtone study report STUDY -o page.html
  overtone study report experiments/perspectives/results -o page.html
"""


def add(parser: argparse.ArgumentParser) -> None:
    flag = parser.add_argument
    flag("folder", metavar="STUDY", type=Path, help="folder of a study, or of packed results")
    flag("-o", "--output", metavar="FILE.html", type=Path, help="output file (default: STUDY/report.html)")
    flag("--key", metavar="FILE", type=Path,
         help="answer key of the results (default: STUDY/key.npz, and without one STUDY/analysis.json)")  # fmt: skip
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> int:
    """Write the page and analysis.json, and print the verdict."""
    from overtone.studies.perspectives import report_tables, study_report

    folder = user_path(args.folder)
    analysis = study_report.analysis_of(folder, args.key and user_path(args.key))
    out = study_report.write_report(analysis, user_path(args.output) if args.output else folder / study_report.REPORT)
    print(shown(report_tables.answer(analysis)))
    print(shown(report_tables.state(analysis)))
    print(shown(str(out)))
    return EXIT_OK
