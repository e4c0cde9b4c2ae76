"""Turn scripts into a benchmark: clips in any voice, questions, gates and a manifest."""

from __future__ import annotations

import argparse

from overtone.cli.build import aeq, dream, echat, echat_eval, echat_real, review, scripts

NOTES = "'overtone build SET --help' lists the flags of a set."
EXAMPLES = ("overtone build open --out data/open", "overtone build scripts.jsonl --out data/mine")
_FILES = (".jsonl", ".toml")


class _Sets(dict[str, argparse.ArgumentParser]):
    """The parser of each set. A file of the user's own scripts, in place of a set's name, has the parser of FILE."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or str(name).endswith(_FILES)

    def __missing__(self, name: str) -> argparse.ArgumentParser:
        return self["FILE"]


def add(parser: argparse.ArgumentParser) -> None:
    sets = parser.add_subparsers(dest="set", metavar="SET", required=True, title="sets")
    sets.choices = sets._name_parser_map = _Sets()
    for name, module, summary in (
        ("open", scripts, "Overtone-Open: 468 scripts, with conflicts, dialogues and controls"),
        ("aeq", aeq, "utterances that vary in their context or their tone, for AEQ-Bench's questions"),
        ("echat-eval", echat_eval, "queries with all their labels in one recording, for EChat-eval's questions"),
        ("dream", dream, "DREAM's dialogues spoken, one voice per speaker"),
        ("echat", echat, "spoken exchanges to train a model on"),
        ("echat-real", echat_real, "training data from corpora of recordings that you have"),
        ("review", review, "sheets for reviewers of scripts, and a summary of the completed sheets"),
        ("FILE", scripts, "your own scripts, a .jsonl or .toml file"),
    ):
        made = sets.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        module.add(made, name)
        made.set_defaults(build=module.main)


def main(args: argparse.Namespace) -> int:
    """Build the set. Progress goes to stderr as one line, the counts go to stdout."""
    return int(args.build(args))
