"""Write the sheets of a review round, or summarise the completed ones or the studies of a review desk."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from overtone.cli.build._options import SHOWN, names
from overtone.errors import EXIT_OK, UsageError
from overtone.paths import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overtone.build.script import Dialogue, Script
    from overtone.studio.review_verdicts import Desk

EXAMPLES = """examples:
  overtone build review open --reviewers anna,ben --round 2 --reviews reviews
  overtone build review open --reviews reviews
  overtone build review scripts.jsonl --studio round1.toml round2.toml --reviews reviews
"""


def add(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument(
        "scripts", metavar="SCRIPTS", help="set or file that is reviewed: open, or a .jsonl or .toml file"
    )
    flag = parser.add_argument_group("sheets").add_argument
    flag("--reviews", metavar="DIR", type=Path, help="folder of the sheets (default: the set's own, or reviews)")
    flag("--round", metavar="N", type=int, help="write the sheets of round 1, 2 or 3")
    flag("--reviewers", metavar="NAME,…", type=names, default=(), help="names of the reviewers (needs --round)")
    flag = parser.add_argument_group("in a browser").add_argument
    flag(
        "--studio", metavar="STUDY.toml", type=Path, nargs="+", default=[],
        help="review desks of the studio, one per round; with --reviews their verdicts are also written as sheets",
    )  # fmt: skip
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> int:
    from overtone.build import review_sheets as review
    from overtone.build.script import HERE, read_collection, sets
    from overtone.paths import shown_lines

    scripts = read_collection(args.scripts).everything
    if args.studio:
        if args.round is not None or args.reviewers:
            raise UsageError("--studio reads what reviewers said in the browser; leave --round and --reviewers out")
        return _of_desks(args, scripts)
    folder: Path = args.reviews or (HERE / args.scripts / "reviews" if args.scripts in sets() else Path("reviews"))
    if args.round is not None:
        sheets = review.sheet(scripts, args.round, list(args.reviewers))
        _write(folder, sheets, f"{len(scripts)} scripts; fill in the columns verdict and note")
        print(f"verdict is {', '.join(review.VERDICTS)}; then: overtone build review {shown(args.scripts)}")
        return EXIT_OK
    if not folder.is_dir():
        raise UsageError(f"no sheets in {shown(str(folder))}; start with --round 1 --reviewers NAME,NAME")
    decision = review.decide(scripts, review.read_reviews(folder))
    print("\n".join(map(shown_lines, review.summary(decision))))
    _print_some("missing", review.missing(scripts, folder))
    return EXIT_OK


def _of_desks(args: argparse.Namespace, scripts: Sequence[Script | Dialogue]) -> int:
    """Summarise the verdicts of review desks, list what reviewers proposed, and write sheets if a folder is given."""
    from overtone.build import review_sheets as review
    from overtone.paths import shown_lines, user_path
    from overtone.studio import review_verdicts

    desks = review_verdicts.read_all([user_path(path) for path in args.studio])
    reviews = [one for desk in desks for one in desk.reviews]
    subject = desks[0].study.review.subject
    decision = review.decide(scripts if subject == "scripts" else list(desks[0].units.values()), reviews)
    print("\n".join(map(shown_lines, review.summary(decision))))
    for proposal in (one for desk in desks for one in desk.proposals):
        who = f"round {proposal.round}, {proposal.reviewer}"
        print(f"proposed for {shown(proposal.script)} ({who}), {proposal.text}: {shown(proposal.after)}")
    _print_some("missing", [line for desk in desks for line in _missing(desk)])
    if args.reviews is not None:
        if subject != "scripts":
            raise UsageError(f"sheets hold verdicts on scripts; these are on {subject}: leave --reviews out")
        _write(args.reviews, review.filled(reviews), "completed")
    return EXIT_OK


def _missing(desk: Desk) -> list[str]:
    """List what nobody has reviewed in a round."""
    done = {review.script for review in desk.reviews}
    return [f"round {desk.study.review.round}: no verdict on {unit}" for unit in desk.units if unit not in done]


def _write(folder: Path, sheets: dict[str, bytes], what: str) -> None:
    from overtone.build.manifest import write

    if existing := [name for name in sheets if (folder / name).exists()]:
        raise UsageError(f"{shown(str(folder / existing[0]))} already exists; complete it, or move it away")
    for name, data in sheets.items():
        write(folder / name, data)
        print(f"{shown(str(folder / name))}: {what}")


def _print_some(what: str, lines: Sequence[str]) -> None:
    for line in lines[:SHOWN]:
        print(f"{what}: {shown(line)}")
    if len(lines) > SHOWN:
        print(f"{what}: and {len(lines) - SHOWN} more")
