"""The flags and the summary of `overtone studio new` for the recording desk and the review desk."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.errors import EXIT_OK, UsageError

DESKS = ("record", "review")
DEFAULTS = {"record": (2, 12, 1), "review": (2, 40, 2)}  # design → people, screens per person, answers per screen
EXAMPLES = (
    "overtone studio new record.toml --design record --scripts open --licence CC-BY-4.0",
    "overtone studio new round2.toml --design review --scripts scripts.jsonl --round 2 --after round1.toml",
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the flags that only desks have."""
    flag = parser.add_argument_group("recording and reviewing (--design record, review)").add_argument
    flag(
        "--scripts", metavar="SCRIPTS", nargs="+", default=[],
        help="scripts to record or review: a set (open), a .jsonl or .toml file, or a run (record only)",
    )  # fmt: skip
    flag("--licence", metavar="ID", default="CC-BY-4.0",
         help="record: licence under which speakers may allow publication (default: CC-BY-4.0)")  # fmt: skip
    flag("--examples", metavar="SET", type=Path,
         help="record: built set whose clips speakers can hear as examples (default: none)")  # fmt: skip
    flag("--subject", choices=("scripts", "questions", "clips"), default="scripts",
         help="review: what is reviewed; clips are those of the set in --from (default: scripts)")  # fmt: skip
    flag("--round", metavar="N", type=int, default=1, help="review: 1, 2 or 3 (default: 1)")
    flag("--after", metavar="STUDY.toml", type=Path, nargs="+", default=[],
         help="review: studies of the earlier rounds, whose verdicts reviewers see (default: none)")  # fmt: skip


def main(args: argparse.Namespace) -> int:
    """Write the study file of a desk, and print how much work it is."""
    from overtone.paths import shown, user_path
    from overtone.studio.desk_creation import create_desk
    from overtone.text import count

    clips = args.design == "review" and args.subject == "clips"
    given = [str(user_path(one)) for one in args.sources] if clips else args.scripts
    if not given:
        what = "--from SET, the folder of a built set" if clips else "--scripts open, or a file of scripts"
        raise UsageError(f"the design {args.design} needs {what}")
    if args.rubric:
        raise UsageError(f"the design {args.design} takes no rubric; leave --rubric out")
    plan = create_desk(
        user_path(args.study), given, design=args.design, people=args.raters, title=args.title, session=args.session,
        votes=args.votes, limit=args.limit, seed=args.seed, licence=args.licence,
        examples=user_path(args.examples) if args.examples else None, subject=args.subject,
        round=args.round, earlier=[user_path(one) for one in args.after],
    )  # fmt: skip
    done = "recorded" if args.design == "record" else "reviewed"
    noun = args.subject if args.design == "review" else "scripts"
    needed = f"{count(plan.people, 'person', 'people')} {'is' if plan.people == 1 else 'are'} needed"
    print(f"{count(plan.units, noun.removesuffix('s'))}, each {done} by {args.votes}; {needed}")
    print(f"a session of {min(args.session, plan.units)} takes about {plan.minutes:.0f} minutes")
    for note in plan.notes:
        print(f"note: {note}")
    print(f"Written: {shown(str(args.study))}")
    if args.design == "record":
        print("Microphones work at https addresses, and in a browser on this machine: see 'Put a study on the web' in "
              "the documentation")  # fmt: skip
    return EXIT_OK
