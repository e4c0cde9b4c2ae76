"""Write a study file from runs, and print what the study costs and how precise it will be."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from overtone.cli.studio import _desk
from overtone.errors import EXIT_OK, UsageError

if TYPE_CHECKING:
    from overtone.studio.creation import Plan

PER_STUDY, DEFAULTS = ("raters", "session", "votes"), (20, 12, 3)
SUMMARY = "write a study file from runs, sets or scripts"
EXAMPLES = (
    "overtone studio new study.toml --from runs/monday --design acr --rubric echomind --rubric ves --raters 20",
    "overtone studio new study.toml --from runs/monday runs/friday --design ab --pay-per-hour '12 GBP'",
    "overtone studio new heard.toml --from clips --design label --of clips",
    *_desk.EXAMPLES,
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    from overtone import registry

    flag = parser.add_argument
    flag("study", metavar="STUDY.toml", type=Path, help="study file to write")
    flag(
        "--from", dest="sources", metavar="FOLDER", nargs="+", type=Path, default=[],
        help="runs with audio; with --of clips also built sets",
    )  # fmt: skip
    known = registry.builtins("designs")
    flag(
        "--design", metavar="NAME", default="acr",
        help=f"design of the study: {', '.join(known)} (default: acr); 'overtone list designs' explains them",
    )  # fmt: skip
    flag(
        "--rubric", metavar="NAME", action="append", default=[],
        help="rubric whose questions are asked; repeatable (default: echomind for acr, pair-voice for ab)",
    )  # fmt: skip
    flag("--of", choices=("replies", "clips"), default="replies",
         help="design label: label the replies or the user's clips (default: replies)")  # fmt: skip
    flag(
        "--reference", choices=("reply", "clip"), default="reply",
        help="design mushra: the benchmark's spoken reply, or the clip that a codec was given (default: reply)",
    )  # fmt: skip
    flag("--one-question", action="store_true", help="each person answers only one of the questions (default: all)")
    flag("--title", default="", help="title that raters see (default: A listening test)")
    flag("--raters", metavar="N", type=int, help="number of people expected (default: 20; record, review: 2)")
    flag("--session", metavar="N", type=int, help="screens per person (default: 12; review: 40)")
    flag("--votes", metavar="N", type=int, help="answers wanted per screen (default: 3; record: 1, review: 2)")
    flag(
        "--limit",
        metavar="N",
        type=int,
        default=0,
        help="number of replies, pairs or clips in the study (default: all)",
    )
    flag("--seed", metavar="N", type=int, default=0, help="random seed of the assignment (default: 0)")
    flag(
        "--show", metavar="TEXT", action="append", default=[], choices=("cue", "topic", "words", "reply"),
        help="text that raters see: cue, topic, words (of the user) or reply; repeatable (default: none)",
    )  # fmt: skip
    _desk.add(parser)
    flag("--pay-per-hour", metavar="AMOUNT", help="wage, e.g. '12 GBP', to print the pay per person (default: none)")


def main(args: argparse.Namespace) -> int:
    """Write the study file."""
    from overtone.paths import shown, user_path
    from overtone.studio import precision
    from overtone.studio.creation import create
    from overtone.text import count

    for name, default in zip(PER_STUDY, _desk.DEFAULTS.get(args.design, DEFAULTS), strict=True):
        if getattr(args, name) is None:
            setattr(args, name, default)
        if not 1 <= getattr(args, name) <= 100_000:
            raise UsageError(f"--{name} must be from 1 to 100000")
    if args.limit < 0:
        raise UsageError("--limit must be 0 or more")
    if args.design in _desk.DESKS:
        return _desk.main(args)
    if not args.sources:
        raise UsageError("--from is missing; name runs with audio, e.g. --from runs/monday")
    wage = precision.pay(args.pay_per_hour) if args.pay_per_hour is not None else None
    plan = create(
        user_path(args.study), [user_path(source) for source in args.sources], design=args.design,
        rubric_names=args.rubric, raters=args.raters, title=args.title, session=args.session, votes=args.votes,
        limit=args.limit, seed=args.seed, shows=args.show, of=args.of, reference=args.reference,
        one_question=args.one_question,
    )  # fmt: skip
    systems = ", ".join(map(shown, plan.systems))
    things = count(plan.units, "reply" if plan.noun == "replies" else plan.noun.removesuffix("s"), plan.noun)
    print(f"{things} of {count(plan.groups, 'script')}; {plan.compared}: {systems}")
    give = f"{count(plan.people, 'person gives', 'people give')} every one {count(args.votes, 'answer')}"
    print(f"{give}; a session takes about {plan.minutes:.0f} minutes")
    if wage:
        each, total = wage.of(plan.minutes), wage.of(plan.minutes * args.raters)
        print(f"pay: {each} per person, {total} for {count(args.raters, 'person', 'people')}")
    for line in _precision(plan, args.raters):
        print(line)
    for note in plan.notes:
        print(f"note: {shown(note)}")
    print(f"Written: {shown(str(args.study))}")
    return EXIT_OK


def _precision(plan: Plan, raters: int) -> list[str]:
    """Return the expected half-width of a difference, and the assumptions behind it."""
    if plan.half_width is None or plan.spread is None or plan.sample is None:
        return []
    from overtone.text import count

    of, parts = plan.sample, plan.spread
    unit = "points of the scale" if parts.unit == "points" else parts.unit
    return [
        f"With {count(raters, 'person', 'people')}, expect the difference between two {plan.compared} to have a 95 % "
        f"interval of about ± {plan.half_width:.2g} ({unit}).",
        f"  assumed spread of an answer: scripts {parts.item:.2g}, people {parts.rater:.2g}, rest {parts.error:.2g}; "
        f"each of the {plan.compared} has {count(of.items, 'script')}, {count(of.raters, 'person', 'people')} and "
        f"{count(round(of.answers), 'answer')}",
    ]
