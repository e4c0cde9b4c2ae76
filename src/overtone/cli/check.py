"""Hold a run to requirements, and to an earlier run: an exit code for a build server, with Markdown and JUnit."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.errors import EXIT_FAILURES, EXIT_OK, EXIT_REQUIREMENT, UsageError

EXITS = {"holds": EXIT_OK, "fails": EXIT_REQUIREMENT, "unknown": EXIT_FAILURES}
WAY_OUT = "score both runs alike, or choose a baseline that was asked the same"


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", type=Path, help="a run's folder")
    parser.add_argument("--baseline", metavar="RUN", type=Path, help="an earlier run of the same benchmark")
    parser.add_argument(
        "--require", metavar='"NAME >= X"', action="append", help='e.g. "voice_accuracy >= 0.60"; repeatable'
    )
    parser.add_argument(
        "--no-worse",
        metavar="NAME:MARGIN",
        action="append",
        help="shown to be worse than the baseline by less than this, e.g. c4:0.1; repeatable",
    )
    parser.add_argument(
        "--condition", metavar="NAME", action="append", help="only this one, e.g. enhance/audio; repeatable (all)"
    )
    parser.add_argument("--markdown", metavar="FILE", type=Path, help="write a short summary")
    parser.add_argument("--junit", metavar="FILE", type=Path, help="write JUnit XML")


def main(args: argparse.Namespace) -> int:
    from overtone.analysis.reading import open_run
    from overtone.analysis.requirements import check, differences, parse_margin, parse_requirement
    from overtone.analysis.unlike import refuse
    from overtone.report.checked import junit, lines, markdown

    requirements = [parse_requirement(text) for text in args.require or ()]
    margins = [parse_margin(text) for text in args.no_worse or ()]
    if not requirements and not margins:
        raise UsageError(
            'nothing is required; give --require "NAME >= X", or --baseline RUN with --no-worse NAME:MARGIN'
        )
    if margins and args.baseline is None:
        raise UsageError("--no-worse needs a run to be no worse than: give --baseline RUN")
    run = open_run(args.run, light=True)
    baseline = open_run(args.baseline, light=True) if args.baseline else None
    conditions = args.condition or ()
    known = {a.condition for a in run.answers}
    for name in conditions:
        if name not in known:
            raise UsageError(f"{run.folder} was not asked under {name!r}; it has {', '.join(sorted(known))}")
    if baseline is not None:
        refuse(differences(run, baseline, requirements, margins, conditions), WAY_OUT)
    found = check(run, requirements, margins, baseline, conditions)
    if args.markdown:
        args.markdown.write_text(markdown(found), encoding="utf-8")
    if args.junit:
        args.junit.write_bytes(junit(found))
    print("\n".join(lines(found)))
    return EXITS[found.state]
