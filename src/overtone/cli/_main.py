"""The entry point: imports only the called command, and turns errors into one line and an exit code."""

from __future__ import annotations

import argparse
import errno
import io
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from overtone import registry
from overtone.cli import _plugins
from overtone.errors import EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, OvertoneError
from overtone.paths import SHOWN, shown, shown_lines
from overtone.safety import insecure
from overtone.spec import suggest
from overtone.version import __version__

PURPOSE = "Measure whether a speech language model hears how something is said and responds to it."
MORE = "'overtone help COMMAND' shows the flags and examples of a command; --version prints the version."
TASKS = {  # what a user wants to do → commands
    "run": ("run", "plan", "merge", "score", "demo", "data", "setup"),
    "judge": ("judge", "measure"),
    "find out": ("report", "analyze", "table", "figure", "compare", "check", "case", "log"),
    "build": ("build",),
    "train": ("train", "fit", "study", "evaluate", "serve", "export"),
    "people": ("studio", "talk", "arena"),
    "housekeeping": ("list", "trust", "verify", "migrate", "completion", "help"),
}


class _Formatter(argparse.HelpFormatter):
    """A help formatter that wraps text but keeps its line breaks and its indented lines, which are examples."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(line if line.startswith(" ") else textwrap.fill(line, width) for line in text.splitlines())


class _Parser(argparse.ArgumentParser):
    """An argument parser that suggests the nearest flag for an unknown one."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Reject unknown flags in the parser of the subcommand, so that its own flags are suggested."""
        known, extra = super().parse_known_args(args, namespace)
        if extra:
            self.error(f"unrecognized arguments: {' '.join(extra)}")
        return known, extra

    def error(self, message: str) -> None:  # type: ignore[override]
        flags = [flag for action in self._actions for flag in action.option_strings]
        choices = [str(choice) for action in self._actions for choice in action.choices or ()]
        if message.startswith("unrecognized arguments: "):
            message += suggest(message.removeprefix("unrecognized arguments: ").split()[0], flags)
        elif chosen := re.search(r"invalid choice: '(.*?)'", message):
            message += suggest(chosen[1], choices)
        self.print_usage(sys.stderr)
        print(f"{self.prog}: {message}", file=sys.stderr)
        raise SystemExit(EXIT_USAGE)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Expected errors are printed as one line, without a traceback."""
    words = list(sys.argv[1:] if argv is None else argv)
    if argv is None:
        _make_streams_usable()
    commands = registry.builtins("cli")
    try:
        if not words or words[0] in ("-h", "--help"):
            print(command_list(commands))
            return EXIT_OK if words else EXIT_USAGE
        if words[0] in ("--version", "-V"):
            print(f"overtone {__version__}")
            return EXIT_OK
        if any("\0" in word for word in words):  # a shell cannot pass one, but a calling program can
            print("overtone: an argument contains a NUL character; remove it", file=sys.stderr)
            return EXIT_USAGE
        if words[0] not in commands:
            print(f"overtone: unknown command {words[0]!r}{suggest(words[0], commands)}", file=sys.stderr)
            print("'overtone help' lists the commands", file=sys.stderr)
            return EXIT_USAGE
        args = command_parser(words[0]).parse_args(words[1:])
        _plugins.load_named(args)
        with insecure(getattr(args, "insecure", False)):
            return int(registry.find("cli", words[0]).main(args))
    except OvertoneError as error:
        print(f"overtone: {shown_lines(str(error))}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("overtone: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # the reader of the output has closed it; avoid a traceback at shutdown
        return EXIT_OK
    except OSError as error:  # a full disk, a name too long for the file system, …
        name = shown(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else ""
        if error.errno == errno.ENAMETOOLONG:
            print(f"overtone: {name[:SHOWN]}…: the file name is too long; use a shorter one", file=sys.stderr)
        else:
            print(f"overtone: {error.strerror or error}{f': {name}' if name else ''}", file=sys.stderr)
        return EXIT_USAGE
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else EXIT_USAGE


def command_parser(name: str) -> argparse.ArgumentParser:
    """Return the parser of a command, with the flags that every command has and the command's examples."""
    parser = _Parser(prog=f"overtone {name}", description=registry.builtins("cli")[name], allow_abbrev=False)
    command = registry.find("cli", name)
    command.add(parser)
    _plugins.add_flag(parser)
    for each in {parser, *_plugins.leaves(parser)}:
        _add_examples(each, command)
    return parser


def _add_examples(parser: argparse.ArgumentParser, command: Any) -> None:
    """End the help of a command or subcommand with the command's NOTES and those of its EXAMPLES that call it.

    A subcommand that sets its own epilog keeps it."""
    examples = [f"  {line}" for line in getattr(command, "EXAMPLES", ()) if f"{line} ".startswith(f"{parser.prog} ")]
    if examples and parser.epilog is None:
        notes = [command.NOTES, ""] if hasattr(command, "NOTES") else []
        parser.formatter_class = _Formatter
        parser.epilog = "\n".join([*notes, "examples:" if len(examples) > 1 else "example:", *examples])


def _make_streams_usable() -> None:
    """Redirect closed standard streams to the null device, and escape characters that an encoding lacks.

    Otherwise a file could get the descriptor of a closed stream, and printing could fail."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free descriptor is this one
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def command_list(commands: Mapping[str, str]) -> str:
    """Return the help of `overtone`: its commands by task, each with the first sentence of its description."""
    width = max(map(len, commands))
    columns = min(shutil.get_terminal_size().columns, 120)
    named = {name for names in TASKS.values() for name in names}
    rest = tuple(name for name in commands if name not in named)
    lines = []
    for task, names in {**TASKS, "other": rest}.items():
        present = [name for name in names if name in commands]
        lines += ["", f"{task}:"] if present else []
        for name in present:
            first = re.split(r"(?<=\.) ", commands[name])[0]
            lines += textwrap.wrap(
                first, columns, initial_indent=f"  {name:<{width}}  ", subsequent_indent=" " * (width + 4)
            )
    return "\n".join(
        [
            "usage: overtone COMMAND …",
            "",
            *textwrap.wrap(PURPOSE, columns),
            *lines,
            "",
            "examples:",
            "  overtone demo --out demo",
            "  overtone run echomind --data data/echomind --model openai:gpt-4o-audio-preview",
            "",
            *textwrap.wrap(MORE, columns),
        ]
    )
