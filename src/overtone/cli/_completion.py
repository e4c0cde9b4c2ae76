"""Completion scripts for shells, generated from the parsers of all commands and the names of the plug-ins.

A table lists the words that may follow the words before the cursor. The scripts look words up in this table in the
shell's own language, so that completing a word does not start Python.
"""

from __future__ import annotations

import argparse
import shlex
from typing import NamedTuple

from overtone import registry
from overtone.cli._main import command_parser

ROOMS = {  # argument → the room whose names it takes
    "--model": "models",
    "--judge": "models",
    "--reader": "models",
    "--solver": "models",
    "--metric": "metrics",
    "--voice": "voices",
    "--rubric": "rubrics",
    "--finding": "findings",
    "BENCHMARK|FILE.toml": "benchmarks",
    "BENCHMARK": "benchmarks",
    "RUBRIC": "rubrics",
}


class Place(NamedTuple):
    """The words that may follow a command: its flags with their help, its positional words, and the values of its
    flags."""

    flags: dict[str, str]
    words: dict[str, str]
    values: dict[str, list[str]]
    takes_value: list[str]  # flags that are followed by a value


def script(shell: str) -> str:
    """Return the script for bash, zsh or fish."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](places())


def places() -> dict[str, Place]:
    """Return the words that may follow each command and subcommand. The keys are "", "run", "build open", …"""
    commands = registry.builtins("cli")
    first = {"--help": "show the commands", "--version": "print the version"}
    found = {"": Place(first, {name: _first_sentence(line) for name, line in commands.items()}, {}, [])}
    for name in commands:
        _collect(command_parser(name), name, found)
    found["help"] = found["help"]._replace(words=dict(found[""].words))
    return found


def _collect(parser: argparse.ArgumentParser, path: str, found: dict[str, Place]) -> None:
    place = found[path] = Place({}, {}, {}, [])
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, inner in action.choices.items():
                if name != "FILE":
                    place.words[name] = helps.get(name, "")
                    _collect(inner, f"{path} {name}", found)
            continue
        choices = _choices(action)
        for flag in action.option_strings:
            place.flags[flag] = "" if action.help in (None, argparse.SUPPRESS) else str(action.help).replace("%%", "%")
            if action.nargs != 0:
                place.takes_value.append(flag)
            if choices:
                place.values[flag] = choices
        if not action.option_strings:
            place.words.update(dict.fromkeys(choices, ""))


def _choices(action: argparse.Action) -> list[str]:
    if action.choices:
        return [str(choice) for choice in action.choices]
    for key in (*action.option_strings, str(action.metavar)):
        if key in ROOMS:
            return list(registry.listing(ROOMS[key]))
    return []


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].rstrip(".")


# ── bash and zsh ────────────────────────────────────────────────────────────────────────────────────────────────────


def _table(found: dict[str, Place]) -> list[str]:
    """Return the branches of a `case` over the command's words, and over the flag before the cursor."""
    lines = []
    for path, place in found.items():
        lines += [
            f"    {shlex.quote(path)})",
            f"      flags={shlex.quote(' '.join(place.flags))}",
            f"      names={shlex.quote(' '.join(place.words))}",
            '      case "$previous" in',
        ]
        for flag in place.takes_value:
            lines.append(f"        {flag}) flags=; names={shlex.quote(' '.join(place.values.get(flag, [])))} ;;")
        lines += ["      esac ;;"]
    return lines


_BASH = """# Completion of overtone in bash.
_overtone() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} place= flags= names= candidates
  local first=${COMP_WORDS[1]} second=${COMP_WORDS[2]}
  (( COMP_CWORD > 1 )) && place=$first
  (( COMP_CWORD > 2 )) && case "$first $second" in
    @INNER@) place="$first $second" ;;
  esac
  case "$place" in
@TABLE@
  esac
  candidates=$names
  [[ $current == -* ]] && candidates=$flags
  COMPREPLY=($(compgen -W "$candidates" -- "$current"))
}
complete -o default -F _overtone overtone
"""

_ZSH = """#compdef overtone
# Completion of overtone in zsh.
_overtone() {
  local current=${words[CURRENT]} previous=${words[CURRENT-1]} place= flags= names= first=${words[2]} second=${words[3]}
  local -a candidates
  local typed=$CURRENT
  (( typed > 2 )) && place=$first
  (( typed > 3 )) && case "$first $second" in
    @INNER@) place="$first $second" ;;
  esac
  case "$place" in
@TABLE@
  esac
  if [[ $current == -* ]]; then candidates=(${=flags}); else candidates=(${=names}); fi
  if (( $#candidates )); then compadd -- $candidates; else _files; fi
}
compdef _overtone overtone
"""


def _filled(template: str, found: dict[str, Place]) -> str:
    inner = "|".join(f'"{path}"' for path in found if " " in path)
    return template.replace("@INNER@", inner).replace("@TABLE@", "\n".join(_table(found)))


def _bash(found: dict[str, Place]) -> str:
    return _filled(_BASH, found)


def _zsh(found: dict[str, Place]) -> str:
    return _filled(_ZSH, found)


# ── fish ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _fish(found: dict[str, Place]) -> str:
    lines = ["# Completion of overtone in fish.", "complete -c overtone -e"]
    for path, place in found.items():
        when = _fish_condition(path, place, found)
        for word, text in place.words.items():
            lines.append(f"complete -c overtone -n {_quoted(when)} -a {_quoted(word)} -d {_quoted(text)}")
        for flag, text in place.flags.items():
            name = f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
            values = f" -x -a {_quoted(' '.join(place.values[flag]))}" if flag in place.values else ""
            value = values or (" -r" if flag in place.takes_value else "")
            lines.append(f"complete -c overtone -n {_quoted(when)} {name}{value} -d {_quoted(text)}")
    return "\n".join(lines) + "\n"


def _fish_condition(path: str, place: Place, found: dict[str, Place]) -> str:
    if not path:
        return "__fish_use_subcommand"
    command, _, inner = path.partition(" ")
    condition = f"__fish_seen_subcommand_from {command}"
    subcommands = " ".join(other.partition(" ")[2] for other in found if other.startswith(f"{command} "))
    if inner:
        return f"{condition}; and __fish_seen_subcommand_from {inner}"
    return f"{condition}; and not __fish_seen_subcommand_from {subcommands}" if subcommands else condition


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
