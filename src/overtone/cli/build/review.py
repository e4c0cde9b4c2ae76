"""Write the sheets of a review round, or summarise the completed ones."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.cli.build._options import SHOWN, names
from overtone.errors import EXIT_OK, UsageError
from overtone.paths import shown

EXAMPLES = """examples:
  overtone build review open --reviewers anna,ben --round 2 --reviews reviews
  overtone build review open --reviews reviews
"""


def add(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument(
        "scripts", metavar="SCRIPTS", help="set or file that is reviewed: open, or a .jsonl or .toml file"
    )
    parser.add_argument(
        "--reviews", metavar="DIR", type=Path, help="folder of the sheets (default: the set's own, or reviews)"
    )
    parser.add_argument("--round", metavar="N", type=int, help="write the sheets of round 1, 2 or 3")
    parser.add_argument(
        "--reviewers", metavar="NAME,…", type=names, default=(), help="names of the reviewers (needs --round)"
    )
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> int:
    from overtone.build import review_sheets as review
    from overtone.build.manifest import write
    from overtone.build.script import HERE, read_collection, sets
    from overtone.paths import shown_lines

    scripts = read_collection(args.scripts).everything
    folder: Path = args.reviews or (HERE / args.scripts / "reviews" if args.scripts in sets() else Path("reviews"))
    if args.round is not None:
        sheets = review.sheet(scripts, args.round, list(args.reviewers))
        if existing := [name for name in sheets if (folder / name).exists()]:
            raise UsageError(f"{shown(str(folder / existing[0]))} already exists; complete it, or move it away")
        for name, data in sheets.items():
            write(folder / name, data)
            print(f"{shown(str(folder / name))}: {len(scripts)} scripts; fill in the columns verdict and note")
        print(f"verdict is {', '.join(review.VERDICTS)}; then: overtone build review {shown(args.scripts)}")
        return EXIT_OK
    if not folder.is_dir():
        raise UsageError(f"no sheets in {shown(str(folder))}; start with --round 1 --reviewers NAME,NAME")
    decision = review.decide(scripts, review.read_reviews(folder))
    print("\n".join(map(shown_lines, review.summary(decision))))
    missing = review.missing(scripts, folder)
    for line in missing[:SHOWN]:
        print(f"missing: {shown(line)}")
    if len(missing) > SHOWN:
        print(f"missing: and {len(missing) - SHOWN} more")
    return EXIT_OK
