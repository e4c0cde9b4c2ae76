"""Show the help of a command, or of all."""

from __future__ import annotations

import argparse

from overtone.errors import EXIT_OK, UsageError

EXAMPLES = ("overtone help", "overtone help run")


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("command", metavar="COMMAND", nargs="*", help="command, or command and subcommand")


def main(args: argparse.Namespace) -> int:
    from overtone import registry
    from overtone.cli._main import command_list, command_parser
    from overtone.spec import suggest

    commands = registry.builtins("cli")
    if not args.command:
        print(command_list(commands))
        return EXIT_OK
    name, *inner = args.command
    if name not in commands:
        raise UsageError(f"unknown command {name!r}{suggest(name, commands)}; 'overtone help' lists all")
    command_parser(name).parse_args([*inner, "--help"])
    return EXIT_OK
