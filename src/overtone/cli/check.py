"""Check a run against thresholds or an earlier run: exit code, Markdown and JUnit XML for CI."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.cli._findings import add_heard, add_source
from overtone.errors import EXIT_FAILURES, EXIT_OK, EXIT_REQUIREMENT, UsageError

EXITS = {"holds": EXIT_OK, "fails": EXIT_REQUIREMENT, "undecided": EXIT_FAILURES}
WAY_OUT = "choose a baseline that was asked and scored like the run"
EXAMPLES = (
    "overtone check runs/friday --baseline runs/monday",
    'overtone check runs/friday --require "voice_accuracy >= 60%" --require "latency_p95 <= 2s" --max-missing 2%',
)


def add(parser: argparse.ArgumentParser) -> None:
    flag = parser.add_argument
    flag("run", metavar="RUN", type=Path, help="folder of a run")
    flag("more", nargs="*", help=argparse.SUPPRESS)  # a second run gets an error that names --baseline
    flag = parser.add_argument_group("requirements").add_argument
    flag(
        "--baseline",
        metavar="RUN",
        type=Path,
        help="earlier run of the same benchmark; fails if a headline measure, or one that --require names, is "
        "significantly worse than in it",
    )
    flag(
        "--require",
        metavar='"NAME >= X"',
        action="append",
        help='threshold, e.g. "voice_accuracy >= 60%%", "failures <= 1%%", "latency_p95 <= 2s"; repeatable',
    )
    flag(
        "--no-worse",
        metavar="NAME:MARGIN",
        action="append",
        help="non-inferiority test instead of the significance test of this measure: it passes if the measure is shown "
        "to be worse than the baseline by less than the margin, e.g. c4:0.1 or voice_accuracy:5%%; repeatable, once "
        "per measure",
    )
    flag(
        "--max-missing", metavar="SHARE", help="maximum share of requests without a reply per condition (default: 1%%)"
    )
    flag(
        "--condition",
        metavar="NAME",
        action="append",
        help="condition to check, e.g. enhance/audio; repeatable (default: all)",
    )
    add_source(parser)
    add_heard(parser)
    flag = parser.add_argument_group("output").add_argument
    flag("--markdown", metavar="FILE", type=Path, help="write a short summary to this file")
    flag("--junit", metavar="FILE", type=Path, help="write JUnit XML to this file")


def main(args: argparse.Namespace) -> int:
    from overtone.paths import write_whole
    from overtone.report.check_output import junit, lines, markdown
    from overtone.results.checking import check
    from overtone.results.comparability import refuse
    from overtone.results.headline_condition import check_source, over_headline
    from overtone.results.heard_items import check_left, mark_heard
    from overtone.results.load import open_run
    from overtone.results.requirements import parse_margin, parse_most, parse_requirement
    from overtone.results.thresholds import MISSING

    if args.more:
        raise UsageError(
            f"check takes one run, but {1 + len(args.more)} were given; name an earlier run with --baseline RUN, "
            "or compare both with 'overtone compare A B'"
        )
    requirements = [parse_requirement(text) for text in args.require or ()]
    margins = [parse_margin(text) for text in args.no_worse or ()]
    most_missing = MISSING if args.max_missing is None else parse_most(args.max_missing, "--max-missing")
    if margins and args.baseline is None:
        raise UsageError("--no-worse needs a run to compare with: give --baseline RUN")
    if not (requirements or args.baseline or args.max_missing):
        raise UsageError('nothing to check; give --baseline RUN, --require "NAME >= X" or --max-missing SHARE')
    readings = [open_run(folder, light=True) for folder in (args.run, args.baseline) if folder]
    check_source(readings, args.source)
    mark_heard(readings, args.heard)
    run, *others = headline = over_headline(readings, args.source)
    check_left(headline)
    baseline = others[0] if others else None
    conditions = args.condition or ()
    known = {a.condition for a in run.answers}
    for name in conditions:
        if name not in known:
            raise UsageError(f"{run.folder} has no condition {name!r}; it has {', '.join(sorted(known))}")
    outcome = check(run, requirements, margins, baseline, conditions, most_missing)
    refuse(outcome.unlike, always=WAY_OUT)
    for file in filter(None, (args.markdown, args.junit)):
        if not file.parent.is_dir():
            raise UsageError(f"cannot write {file}: its folder does not exist; create it first")
    if args.markdown:
        write_whole(args.markdown, markdown(outcome).encode())
    if args.junit:
        write_whole(args.junit, junit(outcome))
    print("\n".join(lines(outcome)))
    return EXITS[outcome.state]
