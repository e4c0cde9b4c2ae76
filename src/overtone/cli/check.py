"""Hold a run to requirements, and to an earlier run: an exit code for a build server, with Markdown and JUnit."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.cli._findings import add_source
from overtone.errors import EXIT_FAILURES, EXIT_OK, EXIT_REQUIREMENT, UsageError

EXITS = {"holds": EXIT_OK, "fails": EXIT_REQUIREMENT, "undecided": EXIT_FAILURES}
WAY_OUT = "choose a baseline that was asked and scored like the run"
EXAMPLES = """examples:
  overtone check runs/friday --baseline runs/monday
  overtone check runs/friday --require "voice_accuracy >= 60%" --require "latency_p95 <= 2s" --max-missing 2%
"""


def add(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLES
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("run", metavar="RUN", type=Path, help="a run's folder")
    parser.add_argument("more", nargs="*", help=argparse.SUPPRESS)  # to name --baseline where a second run is given
    parser.add_argument(
        "--baseline",
        metavar="RUN",
        type=Path,
        help="an earlier run of the same benchmark: no headline measure, and no other measure that --require names, "
        "may be significantly worse than in it",
    )
    parser.add_argument(
        "--require",
        metavar='"NAME >= X"',
        action="append",
        help='a threshold, e.g. "voice_accuracy >= 60%%", "failures <= 1%%", "latency_p95 <= 2s"; repeatable',
    )
    parser.add_argument(
        "--no-worse",
        metavar="NAME:MARGIN",
        action="append",
        help="one-sided margin test in place of the measure's test of significance: shown to be worse than the "
        "baseline by less than the margin, e.g. c4:0.1 or voice_accuracy:5%%; repeatable, one margin a measure",
    )
    parser.add_argument(
        "--max-missing",
        metavar="SHARE",
        help="largest share of asks without a reply in a condition (default: 1%%)",
    )
    parser.add_argument(
        "--condition", metavar="NAME", action="append", help="only this one, e.g. enhance/audio; repeatable (all)"
    )
    add_source(parser)
    parser.add_argument("--markdown", metavar="FILE", type=Path, help="write a short summary")
    parser.add_argument("--junit", metavar="FILE", type=Path, help="write JUnit XML")


def main(args: argparse.Namespace) -> int:
    from overtone.analysis.check import check
    from overtone.analysis.reading import open_run
    from overtone.analysis.requirements import parse_margin, parse_most, parse_requirement
    from overtone.analysis.standing import check_source, over_headline
    from overtone.analysis.thresholds import MISSING
    from overtone.analysis.unlike import refuse
    from overtone.paths import write_whole
    from overtone.report.checked import junit, lines, markdown

    if args.more:
        raise UsageError(
            f"check takes one run, and was given {1 + len(args.more)}; to hold it against an earlier run, name that "
            "with --baseline RUN, or look at both with 'overtone compare A B'"
        )
    requirements = [parse_requirement(text) for text in args.require or ()]
    margins = [parse_margin(text) for text in args.no_worse or ()]
    most_missing = MISSING if args.max_missing is None else parse_most(args.max_missing, "--max-missing")
    if margins and args.baseline is None:
        raise UsageError("--no-worse needs a run to compare with: give --baseline RUN")
    if not (requirements or args.baseline or args.max_missing):
        raise UsageError('nothing is required; give --baseline RUN, --require "NAME >= X" or --max-missing SHARE')
    readings = [open_run(folder, light=True) for folder in (args.run, args.baseline) if folder]
    check_source(readings, args.source)
    run, *others = over_headline(readings, args.source)
    baseline = others[0] if others else None
    conditions = args.condition or ()
    known = {a.condition for a in run.answers}
    for name in conditions:
        if name not in known:
            raise UsageError(f"{run.folder} was not asked under {name!r}; it has {', '.join(sorted(known))}")
    found = check(run, requirements, margins, baseline, conditions, most_missing)
    refuse(found.unlike, always=WAY_OUT)
    for file in filter(None, (args.markdown, args.junit)):
        if not file.parent.is_dir():
            raise UsageError(f"cannot write {file}: No such file or directory; make its folder first")
    if args.markdown:
        write_whole(args.markdown, markdown(found).encode())
    if args.junit:
        write_whole(args.junit, junit(found))
    print("\n".join(lines(found)))
    return EXITS[found.state]
