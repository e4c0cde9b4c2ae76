"""Invite people to a study: a link for each, or one public link. Links are shown once; only their hashes are stored."""

from __future__ import annotations

import argparse
import csv
import sys

from overtone.cli.studio import _study
from overtone.errors import EXIT_OK, UsageError
from overtone.paths import shown

SUMMARY = "make links for people"
EXAMPLES = (
    "overtone studio invite study.toml --people 20 --csv",
    "overtone studio invite study.toml --public --prolific --base-url https://study.example.org",
    "overtone studio invite study.toml --revoke k3f9a2c1",
)
DEFAULT = f"http://{_study.HOST}:{_study.PORT}"  # where `overtone studio serve` listens
MOST = 10_000
PROLIFIC = "PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    _study.add(parser)
    flag = parser.add_argument
    flag("--people", metavar="N", type=int, default=0, help="number of links to make")
    flag("--role", choices=("rater", "speaker", "reviewer"), default="rater",
         help="role: rater, speaker or reviewer (default: rater)")  # fmt: skip
    flag("--base-url", metavar="URL", default="",
         help="address of the server as people see it (default: where the study was last served)")  # fmt: skip
    flag("--csv", action="store_true", help="print a table: label, link")
    flag("--revoke", metavar="LABEL", help="make a person's link invalid; answers stay")
    flag = parser.add_argument_group("without personal links").add_argument
    flag("--public", action="store_true", help="print a public link, for people without an invitation")
    flag("--prolific", action="store_true", help="public link for people sent by Prolific")
    flag("--mturk", action="store_true", help="public link for people sent by Mechanical Turk")
    flag("--no-public", action="store_true", help="end the public link; invited people can still take part")


def main(args: argparse.Namespace) -> int:
    """Make links."""
    _check(args)
    study, store = _study.open_store(args, create=True)
    with store:
        base = (args.base_url or store.address() or DEFAULT).rstrip("/")
        if args.revoke:
            store.people.revoke(args.revoke)
            print(f"the link of {shown(args.revoke)} is no longer valid; answers given are kept")
        if args.no_public:
            store.log.add("public", sources=[])
            print("only invited people can take part now")
        if args.public:
            source = "prolific" if args.prolific else "mturk" if args.mturk else "public"
            store.log.add("public", sources=[source])
            print("\n".join(_public(source, base, study.recruitment.completion_code)))
        if args.people:
            links = [(one.label, f"{base}/#{one.token}") for one in store.people.invite(args.people, args.role)]
            _print(links, args.csv)
        if (args.people or args.public) and not args.base_url:
            where = "the study was last served there" if store.address() else "the study was never served"
            print(
                f"The links lead to {shown(base)} ({where}). Choose another address with --base-url.", file=sys.stderr
            )
    return EXIT_OK


def _check(args: argparse.Namespace) -> None:
    if not (args.people or args.public or args.revoke or args.no_public):
        raise UsageError("say what to make: --people N, --public, or --revoke LABEL")
    if not 0 <= args.people <= MOST:
        raise UsageError(f"--people must be from 1 to {MOST}")
    if (args.prolific or args.mturk) and not args.public:
        raise UsageError("--prolific and --mturk belong to --public")
    if args.prolific and args.mturk:
        raise UsageError("choose one of --prolific and --mturk")
    if args.public and args.no_public:
        raise UsageError("choose one of --public and --no-public")
    if args.base_url and not args.base_url.startswith(("http://", "https://")):
        raise UsageError(f"--base-url {shown(args.base_url)} must begin with https:// or http://")


def _public(source: str, base: str, code: str) -> list[str]:
    if source == "prolific":
        lines = [f"{base}/join?{PROLIFIC}", "Enter this address in Prolific as the study's URL."]
    elif source == "mturk":
        lines = [f"{base}/mturk", "Use this address as ExternalURL of an ExternalQuestion."]
    else:
        return [f"{base}/join", "Everyone with this address can take part, more than once."]
    if not code:
        lines.append(
            "The study file has no completion_code in [recruitment]; people could not prove that they finished."
        )
    return lines


def _print(links: list[tuple[str, str]], as_csv: bool) -> None:
    if as_csv:
        table = csv.writer(sys.stdout, lineterminator="\n")
        table.writerows([("label", "link"), *links])
        return
    for label, link in links:
        print(f"{label}  {link}")
    print("Send each link to one person, and keep none: the study stores only their hashes.")
