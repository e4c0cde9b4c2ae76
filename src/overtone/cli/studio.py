"""Let people rate replies in a browser. A study is one TOML file; answers become labels of the runs."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.errors import EXIT_OK, UsageError

EXAMPLES = (
    "overtone studio new study.toml --from runs/monday --design acr --rubric echomind --raters 20",
    "overtone studio new study.toml --from runs/monday runs/friday --design ab",
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands and their flags."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_new(actions.add_parser("new", help="write a study file from runs"))


def _add_new(parser: argparse.ArgumentParser) -> None:
    from overtone import registry

    flag = parser.add_argument
    flag("study", metavar="STUDY.toml", type=Path, help="study file to write")
    flag("--from", dest="runs", metavar="RUN", nargs="+", type=Path, required=True, help="folders of runs with audio")
    flag(
        "--design",
        choices=tuple(registry.builtins("designs")),
        default="acr",
        help="design of the study: acr (rate each reply) or ab (choose between two) (default: acr)",
    )
    flag(
        "--rubric", metavar="NAME", action="append", default=[],
        help="rubric whose questions are asked; repeatable (default: echomind for acr, pair-voice for ab)",
    )  # fmt: skip
    flag("--title", default="", help="title that raters see (default: A listening test)")
    flag("--raters", metavar="N", type=int, default=20, help="number of people expected (default: 20)")
    flag("--session", metavar="N", type=int, default=12, help="replies or pairs per person (default: 12)")
    flag("--votes", metavar="N", type=int, default=3, help="answers wanted per reply or pair (default: 3)")
    flag("--limit", metavar="N", type=int, default=0, help="use N replies or pairs (default: all)")
    flag("--seed", metavar="N", type=int, default=0, help="random seed of the assignment (default: 0)")
    flag(
        "--show", metavar="TEXT", action="append", default=[], choices=("cue", "topic", "words", "reply"),
        help="text that raters see: cue, topic, words (of the user) or reply; repeatable (default: none)",
    )  # fmt: skip


def main(args: argparse.Namespace) -> int:
    """Run the chosen subcommand."""
    return {"new": _new}[args.action](args)


def _new(args: argparse.Namespace) -> int:
    from overtone.paths import shown, user_path
    from overtone.studio.creation import create

    for name in ("raters", "session", "votes"):
        if not 1 <= getattr(args, name) <= 100_000:
            raise UsageError(f"--{name} must be from 1 to 100000")
    if args.limit < 0:
        raise UsageError("--limit must be 0 or more")
    plan = create(
        user_path(args.study), [user_path(run) for run in args.runs], design=args.design, rubric_names=args.rubric,
        raters=args.raters, title=args.title, session=args.session, votes=args.votes, limit=args.limit,
        seed=args.seed, shows=args.show,
    )  # fmt: skip
    what = "pairs" if args.design == "ab" else "replies"
    print(f"{plan.units} {what} of {plan.groups} scripts; systems: {', '.join(map(shown, plan.systems))}")
    print(f"{plan.people} people give every one {args.votes} answers; a session takes about {plan.minutes:.0f} minutes")
    unit = "points" if args.design == "acr" else "of the votes"
    print(f"with {args.raters} people, expect ± {plan.half_width:.2f} {unit} (95 %) for a difference between systems")
    for note in plan.notes:
        print(f"note: {shown(note)}")
    print(f"Written: {shown(str(args.study))}")
    return EXIT_OK
