"""Let people rate replies in a browser. A study is one TOML file; answers become labels of the runs."""

from __future__ import annotations

import argparse

from overtone.cli.studio import (
    backup,
    close,
    demo_study,
    export_answers,
    import_annotations,
    invite,
    new,
    serve_study,
    status,
    sync_labels,
)

NOTES = "'overtone studio COMMAND --help' lists the flags of a command."
COMMANDS = {  # name → a module with SUMMARY, EXAMPLES, `add` and `main`
    "new": new,
    "serve": serve_study,
    "invite": invite,
    "status": status,
    "sync": sync_labels,
    "export": export_answers,
    "import": import_annotations,
    "backup": backup,
    "close": close,
    "demo": demo_study,
}
EXAMPLES = tuple(example for module in COMMANDS.values() for example in module.EXAMPLES)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the commands and their flags."""
    commands = parser.add_subparsers(dest="action", metavar="COMMAND", required=True, title="commands")
    for name, module in COMMANDS.items():
        made = commands.add_parser(
            name,
            help=module.SUMMARY,
            description=f"{module.SUMMARY[0].upper()}{module.SUMMARY[1:]}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        module.add(made)
        made.set_defaults(studio_main=module.main)


def main(args: argparse.Namespace) -> int:
    """Run the chosen command and return its exit code."""
    return int(args.studio_main(args))
