"""Compare two runs on their shared items: paired differences, intervals, p-values and changed answers."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.cli._findings import add_heard, add_source
from overtone.errors import EXIT_OK, UsageError

NAME_OTHERS = "compare other measures, named with --metric"
LOOK_ANYWAY = "look at the numbers anyway with --force"
EXAMPLES = (
    "overtone compare runs/monday runs/friday",
    "overtone compare runs/monday runs/friday --metric voice_accuracy --format markdown",
)


def add(parser: argparse.ArgumentParser) -> None:
    flag = parser.add_argument
    flag("first", metavar="A", type=Path, help="folder of the first run")
    flag("second", metavar="B", type=Path, help="folder of the second run; differences are B − A")
    group = parser.add_argument_group("what is compared")
    flag = group.add_argument
    flag(
        "--metric",
        metavar="NAME",
        action="append",
        help="measure: voice_accuracy, wer, c4, c4@JUDGE, bertscore, …; repeatable (default: the headline measures and "
        "all judged dimensions)",
    )
    flag(
        "--condition",
        metavar="NAME",
        action="append",
        help="condition to compare, e.g. enhance/audio; repeatable (default: all)",
    )
    add_source(group)
    add_heard(group)
    flag("--force", action="store_true", help="compare runs that are not comparable, and list how they differ")
    flag = parser.add_argument_group("output").add_argument
    flag("--behind", metavar="KEY", help="list the cases behind a row; --format json shows the keys")
    flag("--format", choices=("table", "markdown", "json"), default="table", help="output format (default: table)")


def main(args: argparse.Namespace) -> int:
    import msgspec

    from overtone.paths import shown
    from overtone.report.comparison_tables import markdown, print_comparison
    from overtone.results.comparability import refuse
    from overtone.results.comparison import behind, compare
    from overtone.results.comparison_text import sentences
    from overtone.results.headline_condition import check_source, over_headline
    from overtone.results.heard_items import check_left, mark_heard
    from overtone.results.load import open_run

    readings = [open_run(folder, light=True) for folder in (args.first, args.second)]
    check_source(readings, args.source)
    mark_heard(readings, args.heard)
    first, second = headline = over_headline(readings, args.source)
    check_left(headline)
    comparison = compare(first, second, args.metric or (), args.condition or ())
    if not comparison.shared:
        asked = [", ".join(sorted({a.condition for a in r.answers})) or "nothing" for r in (first, second)]
        raise UsageError(f"the runs share no item in any condition: A has {asked[0]}; B has {asked[1]}")
    if not args.force:
        refuse(comparison.unlike, NAME_OTHERS, LOOK_ANYWAY)
    if args.behind:
        cases = behind(first, second, args.behind)
        if not cases:
            raise UsageError(f"this comparison has no row with the key {args.behind!r}; --format json shows the keys")
        print("\n".join(map(shown, cases)))
    elif args.format == "json":
        content = {**msgspec.to_builtins(comparison), "sentences": msgspec.to_builtins(sentences(comparison))}
        print(msgspec.json.format(msgspec.json.encode(content)).decode())
    elif args.format == "markdown":
        print(markdown(comparison), end="")
    else:
        print_comparison(comparison)
    return EXIT_OK
