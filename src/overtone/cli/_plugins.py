"""Plug-ins on the command line: the flag `--plugin FILE`, and plug-in files given in place of names."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from overtone import registry
from overtone.errors import UsageError

WITHOUT = (  # commands that use no plug-in
    "build echat",
    "build review",
    "completion",
    "demo",
    "evaluate",
    "help",
    "serve",
    "setup",
    "study perspectives",
    "study report",
    "study simulate",
    "train",
    "trust",
    "verify",
)
ROOMS = {  # argument → the room of the plug-in that it names
    "what": "benchmarks",
    "model": "models",
    "judge": "models",
    "reader": "models",
    "solver": "models",
    "metric": "metrics",
    "voice": "voices",
}
_FILE = re.compile(r"((?:[A-Za-z]:[\\/])?[^:?]*\.py)(?=[:?]|$)")  # before the rest of a SPEC


def add_flag(parser: argparse.ArgumentParser) -> None:
    """Add --plugin to a command or, where it has subcommands, to each of them that may use a plug-in."""
    for leaf in leaves(parser):
        if leaf.prog.removeprefix("overtone ") not in WITHOUT:
            leaf.add_argument(
                "--plugin", metavar="FILE", action="append", help="load a plug-in, a .py file or a rubric; repeatable"
            )


def leaves(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield the parsers of all subcommands, or the parser itself if it has none."""
    inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for action in inner:
        for choice in dict.fromkeys(action.choices.values()):
            yield from leaves(choice)
    if not inner:
        yield parser


def load_named(args: argparse.Namespace) -> None:
    """Load the plug-ins that a command line names. The user typed them, so they are trusted.

    A file in place of a name is replaced by the name of its plug-in; `args.plugin` then lists all files."""
    if not hasattr(args, "plugin"):
        return
    files: list[str] = list(args.plugin or ())
    for file in files:
        registry.load_plugin(Path(file))
    for argument, room in ROOMS.items():
        given = getattr(args, argument, None)
        if isinstance(given, str):
            setattr(args, argument, _name(given, room, files))
        elif isinstance(given, list):
            setattr(args, argument, [_name(text, room, files) if isinstance(text, str) else text for text in given])
    args.plugin = files


def _name(text: str, room: str, files: list[str]) -> str:
    """Return the text; a plug-in's file in it is replaced by the plug-in's name."""
    match = _FILE.match(text)
    if match is None:
        return text
    own_room, name = registry.load_plugin(Path(match[1]))
    if own_room != room:
        noun = registry.ROOMS[room].noun
        raise UsageError(f"{match[1]} is a plug-in of {own_room}, not a {noun}; name it with --plugin {match[1]}")
    if match[1] not in files:
        files.append(match[1])
    return name + text[match.end() :]
