"""Compare two runs on the items both were asked: paired differences with intervals, p-values, and what flipped."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.cli._findings import add_source
from overtone.errors import EXIT_OK, UsageError

NAME_OTHERS = "compare other measures, named with --metric"
LOOK_ANYWAY = "look at the numbers anyway with --force"


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("first", metavar="A", type=Path, help="a run's folder")
    parser.add_argument("second", metavar="B", type=Path, help="the run whose gain over A is asked for")
    parser.add_argument(
        "--metric",
        metavar="NAME",
        action="append",
        help="voice_accuracy, wer, c4, c4@JUDGE, bertscore, …; repeatable (the headline's and every judged dimension)",
    )
    parser.add_argument(
        "--condition", metavar="NAME", action="append", help="only this one, e.g. enhance/audio; repeatable (all)"
    )
    add_source(parser)
    parser.add_argument("--force", action="store_true", help="compare runs that do not compare, and say what differs")
    parser.add_argument("--behind", metavar="KEY", help="name the cases under a row; --format json has the rows' keys")
    parser.add_argument("--format", choices=("table", "markdown", "json"), default="table", help="(table)")


def main(args: argparse.Namespace) -> int:
    import msgspec

    from overtone.analysis.compare import behind, compare, sentences
    from overtone.analysis.reading import open_run
    from overtone.analysis.standing import check_source, over_headline
    from overtone.analysis.unlike import refuse
    from overtone.paths import shown
    from overtone.report.compared import markdown, print_comparison

    readings = [open_run(folder, light=True) for folder in (args.first, args.second)]
    check_source(readings, args.source)
    first, second = over_headline(readings, args.source)
    found = compare(first, second, args.metric or (), args.condition or ())
    if not found.shared:
        asked = [", ".join(sorted({a.condition for a in r.answers})) or "nothing" for r in (first, second)]
        raise UsageError(f"the runs share no item under one condition: A was asked {asked[0]}; B {asked[1]}")
    if not args.force:
        refuse(found.unlike, NAME_OTHERS, LOOK_ANYWAY)
    if args.behind:
        cases = behind(first, second, args.behind)
        if not cases:
            raise UsageError(f"no row of this comparison has cases under {args.behind!r}; --format json shows the keys")
        print("\n".join(map(shown, cases)))
    elif args.format == "json":
        told = {**msgspec.to_builtins(found), "sentences": msgspec.to_builtins(sentences(found))}
        print(msgspec.json.format(msgspec.json.encode(told)).decode())
    elif args.format == "markdown":
        print(markdown(found), end="")
    else:
        print_comparison(found)
    return EXIT_OK
