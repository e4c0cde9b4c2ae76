"""The reference of commands, from the parsers of the command line: one page per command, and an index."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from overtone import registry
from overtone.cli._main import command_parser
from scripts.docs_site.markdown import block, code, plain, table

FOLDER = "reference/commands"
WIDTH = 84  # of a code block on the site


def pages() -> dict[str, str]:
    """Return the pages by path."""
    commands = registry.builtins("cli")
    rows = ([f"[`overtone {name}`]({name}.md)", plain(summary)] for name, summary in commands.items())
    index = (
        "# Commands\n\n"
        "These pages are generated from the command line's own parsers. `overtone COMMAND --help` prints the same.\n"
        "[Exit codes](../failures.md#exit-codes) are the same for all commands.\n\n"
        + table(["command", "what it does"], rows)
    )
    return {f"{FOLDER}/index.md": index} | {f"{FOLDER}/{name}.md": page(name) for name in commands}


def page(name: str) -> str:
    """Return the page of one command."""
    parser = command_parser(name)
    return f"# `overtone {name}`\n\n" + "\n".join(_sections(parser, 1))


def _sections(parser: argparse.ArgumentParser, depth: int) -> Iterator[str]:
    """Yield the parts of a command's page, then those of its subcommands under headings of their own."""
    if parser.description:
        yield plain(parser.description) + "\n"
    yield block(_usage(parser))
    yield from _arguments(parser)
    if parser.epilog:
        yield from _epilog(parser.epilog)
    for name, sub in _subcommands(parser):
        yield f"{'#' * (depth + 1)} `{parser.prog} {name}`\n"
        yield from _sections(sub, depth + 1)


def _formatter(parser: argparse.ArgumentParser) -> argparse.HelpFormatter:
    return parser.formatter_class(prog=parser.prog, width=WIDTH)  # type: ignore[call-arg]


def _usage(parser: argparse.ArgumentParser) -> str:
    formatter = _formatter(parser)
    formatter.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups, prefix="")
    return formatter.format_help()


def _arguments(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield a table of all arguments without a group of their own, then one for each group with a title."""
    usual = [group for group in parser._action_groups if group.title in ("options", "positional arguments")]
    if shown := [action for group in usual for action in _shown(group)]:
        yield _table(parser, shown)
    for group in parser._action_groups:
        if group not in usual and (shown := _shown(group)):
            yield f"**{plain(group.title or '')}**\n"
            yield _table(parser, shown)


def _shown(group: argparse._ArgumentGroup) -> list[argparse.Action]:
    hidden = argparse._HelpAction | argparse._SubParsersAction
    return [a for a in group._group_actions if a.help is not argparse.SUPPRESS and not isinstance(a, hidden)]


def _table(parser: argparse.ArgumentParser, actions: list[argparse.Action]) -> str:
    formatter = _formatter(parser)
    rows = ([code(_invocation(formatter, action)), plain(_help(formatter, action))] for action in actions)
    return table(["argument", "meaning"], rows)


def _invocation(formatter: argparse.HelpFormatter, action: argparse.Action) -> str:
    """Return the flags of an argument with its value, as `-o, --out FILE`."""
    if not action.option_strings:
        return formatter._format_args(action, action.dest)
    flags = ", ".join(action.option_strings)
    if action.nargs == 0:
        return flags
    return f"{flags} {formatter._format_args(action, action.dest.upper())}"


def _help(formatter: argparse.HelpFormatter, action: argparse.Action) -> str:
    text = formatter._expand_help(action) if action.help else ""
    if action.option_strings and action.required:
        text += " (required)"
    if action.choices and not isinstance(action.choices, range) and "{" not in (action.metavar or "{"):
        text += f" (one of: {', '.join(map(str, action.choices))})"
    return text


def _epilog(epilog: str) -> Iterator[str]:
    """Yield the notes at the end of a help text as a paragraph and its examples as a code block."""
    notes, word, examples = epilog.rpartition("example")
    if not word:
        yield plain(epilog) + "\n"
        return
    if notes.strip():
        yield plain(notes.strip()) + "\n"
    lines = [line.strip() for line in examples.partition(":")[2].splitlines() if line.strip()]
    yield block("\n".join(lines), "sh")


def _subcommands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()
