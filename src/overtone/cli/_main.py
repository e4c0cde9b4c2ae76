"""Finds the command that is called, imports it alone, and turns errors into one line and an exit code."""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
from collections.abc import Sequence

from overtone import registry
from overtone.errors import EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, OvertoneError
from overtone.paths import SHOWN, shown, shown_lines
from overtone.safety import insecure
from overtone.spec import suggest
from overtone.version import __version__


class _Parser(argparse.ArgumentParser):
    """argparse, with the nearest flag named when one is misspelt."""

    def error(self, message: str) -> None:  # type: ignore[override]
        known = [flag for action in self._actions for flag in action.option_strings]
        if message.startswith("unrecognized arguments: "):
            message += suggest(message.removeprefix("unrecognized arguments: ").split()[0], known)
        self.print_usage(sys.stderr)
        print(f"{self.prog}: {message}", file=sys.stderr)
        raise SystemExit(EXIT_USAGE)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code. Every error a user can act on is one line, without a traceback."""
    words = list(sys.argv[1:] if argv is None else argv)
    if argv is None:
        _make_streams_usable()
    commands = registry.builtins("cli")
    try:
        if not words or words[0] in ("-h", "--help", "help"):
            print(_help(commands))
            return EXIT_OK if words else EXIT_USAGE
        if words[0] in ("--version", "-V"):
            print(f"overtone {__version__}")
            return EXIT_OK
        if any("\0" in word for word in words):  # no shell can give one, a program that calls us can
            print("overtone: an argument holds a NUL character; leave it out", file=sys.stderr)
            return EXIT_USAGE
        if words[0] not in commands:
            print(f"overtone: unknown command {words[0]!r}{suggest(words[0], commands)}", file=sys.stderr)
            print(_help(commands), file=sys.stderr)
            return EXIT_USAGE
        module = registry.find("cli", words[0])
        parser = _Parser(prog=f"overtone {words[0]}", description=commands[words[0]], allow_abbrev=False)
        module.add(parser)
        args = parser.parse_args(words[1:])
        with insecure(getattr(args, "insecure", False)):
            return int(module.main(args))
    except OvertoneError as error:
        print(f"overtone: {shown_lines(str(error))}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("overtone: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output went away: no traceback at shutdown
        return EXIT_OK
    except OSError as error:  # a full disk under our output, a name longer than the file system takes, …
        name = shown(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else ""
        if error.errno == errno.ENAMETOOLONG:
            print(f"overtone: {name[:SHOWN]}…: the name is too long for a file; use a shorter one", file=sys.stderr)
        else:
            print(f"overtone: {error.strerror or error}{f': {name}' if name else ''}", file=sys.stderr)
        return EXIT_USAGE
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else EXIT_USAGE


def _make_streams_usable() -> None:
    """A closed stream becomes one that goes nowhere, so that no file of ours takes its number and no print fails; a
    character that a terminal's encoding lacks is written out."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number: this one
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _help(commands: dict[str, str]) -> str:
    width = max(map(len, commands))
    rows = "\n".join(f"  {name:<{width}}  {line}" for name, line in commands.items())
    return (
        "usage: overtone COMMAND …\n\n"
        "Measure whether a speech language model hears how something is said, and answers to it.\n\n"
        f"{rows}\n\n'overtone COMMAND --help' tells more; --version prints the version."
    )
