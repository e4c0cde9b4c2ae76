"""Open a study over the demo's runs, with nothing to configure."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.cli.studio import serve_study
from overtone.errors import UsageError
from overtone.paths import shown, user_path

SUMMARY = "open a study over the runs of 'overtone demo', with nothing to configure"
EXAMPLES = ("overtone studio demo", "overtone studio demo --runs demo --design acr")
RUNS = ("acoustic", "deaf")  # as 'overtone demo' leaves them
FOLDERS = ("demo", "demo-quick")
TITLE = "Which assistant hears how you speak?"
RATERS = 5


def add(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument(
        "--runs", metavar="DIR", type=Path, help="output folder of the demo (default: demo, demo-quick)"
    )
    parser.add_argument("--design", choices=("ab", "acr"), default="ab", help="ab or acr (default: ab)")
    serve_study.add_network(parser)
    parser.set_defaults(db="")


def main(args: argparse.Namespace) -> int:
    """Write the study file if it is missing, open a public link, and serve."""
    from overtone.studio import study
    from overtone.studio.creation import create
    from overtone.studio.store import Store

    folder = demo_folder(user_path(args.runs) if args.runs else None)
    args.study = folder / f"study-{args.design}.toml"
    if not args.study.exists():
        create(
            args.study, [folder / run for run in RUNS], design=args.design, rubric_names=[], raters=RATERS, title=TITLE
        )
        print(f"Written: {shown(str(args.study))}")
    found = study.read(args.study)
    with Store.open(found) as store:
        store.log.add("public", sources=["public"])
    return serve_study.serve(args, found, public=True)


def demo_folder(given: Path | None) -> Path:
    """Return the folder of the demo. Raises UsageError, with the command that makes it, if there is none."""
    for folder in [given] if given else [Path(name) for name in FOLDERS]:
        if all((folder / run).is_dir() for run in RUNS):
            return folder
    where = shown(str(given)) if given else " and ".join(FOLDERS)
    raise UsageError(f"{where}: there are no runs of the demo; make them first (minutes): overtone demo --quick")
