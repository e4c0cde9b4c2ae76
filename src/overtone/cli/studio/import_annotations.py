"""Take annotations of Label Studio into a study."""

from __future__ import annotations

import argparse
from pathlib import Path

from overtone.cli.studio import _study
from overtone.errors import EXIT_OK
from overtone.paths import user_path
from overtone.text import count

SUMMARY = "take annotations that were made in Label Studio into the study"
EXAMPLES = ("overtone studio import study.toml annotated.json",)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    _study.add(parser)
    parser.add_argument("file", metavar="FILE.json", type=Path, help="annotations, exported from Label Studio as JSON")


def main(args: argparse.Namespace) -> int:
    """Import annotations."""
    from overtone.studio.importing import import_annotations

    study, store = _study.open_store(args)
    with store:
        done = import_annotations(study, store, user_path(args.file))
    print(
        f"{count(done.annotations, 'annotation')} by {count(done.people, 'annotator')}: {done.new} new"
        + (f"; {done.known} come from the study itself and are left out" if done.known else "")
    )
    return EXIT_OK
