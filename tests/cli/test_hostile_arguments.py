"""Names that no file, program or home folder can have, at every place of every command that takes a text."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import data
from overtone import registry
from overtone.cli._main import command_parser, main
from overtone.errors import UsageError
from overtone.paths import user_path
from overtone.runs.settings import read_run_file
from overtone.spec import parse_spec
from tests.report.fake_run import make_run

LONG = "x" * 5000
TEXTS = (
    LONG,
    "~nosuchuser/x",
    "a\0b",
    "\udcff",
    "",
    "/dev/null/x",
    "command:~nosuchuser",
    f"command:{LONG}",
    "command:cat?args=%00",
    "worker:x.py?python=~nosuchuser/python",
    "nisqa?weights=~nosuchuser/a",
)
LONG_WORK = {"demo", "serve", "setup", "talk", "train"}  # would start servers and installations


def parsers(parser: argparse.ArgumentParser, words: list[str]) -> Iterator[tuple[argparse.ArgumentParser, list[str]]]:
    """A command's parser, or those of its subcommands, each with the words that lead to it."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from parsers(inner, [*words, name])
            return
    yield parser, words


def line(parser: argparse.ArgumentParser, words: list[str], one: argparse.Action, text: str) -> list[str]:
    """A command line with `text` at one place and something usual at the others."""
    for action in parser._actions:
        usual = "run" if action.dest in ("run", "runs", "first", "second") else "echomind"
        if action.choices:
            usual = str(next(iter(action.choices)))
        if not action.option_strings and (action is one or action.nargs not in ("?", "*")):
            words = [*words, text if action is one else usual]
        elif action.option_strings and (action is one or action.required):
            words = [*words, f"{action.option_strings[-1]}={text if action is one else usual}"]
    if words[0] == "build" and any(action.dest == "only" != one.dest for action in parser._actions):
        words += ["--only=nothing"]  # which no set has: nothing is built
    if words[0] in ("run", "plan"):
        words += [w for w in ("--model=replay:run", "--data=small") if w.split("=")[0] not in " ".join(words)]
    return words


@pytest.mark.parametrize("command", sorted(registry.builtins("cli").keys() - LONG_WORK))
def test_an_impossible_name_is_an_error_wherever_it_is_given(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    make_run(Path("run"), scripts=2)
    data.make(Path("small"), scripts=1, questions=1, seconds=0.2)
    for parser, words in parsers(command_parser(command), [command]):
        for action in parser._actions:
            if action.nargs == 0 or action.choices or action.type in (int, float):
                continue
            for text in TEXTS:
                code = main(line(parser, words, action, text))  # raises what would be a traceback
                said = capsys.readouterr()
                assert code in (0, 1, 2, 3, 4), (action.dest, text[:40])
                assert len(said.err) < 4 * len(LONG), "a long name is not repeated again and again"


def test_a_home_folder_that_is_not_there_and_a_name_that_is_too_long_are_errors() -> None:
    with pytest.raises(UsageError, match="~nosuchuser: there is no such home folder"):
        user_path("~nosuchuser")
    with pytest.raises(UsageError, match="the name is too long for a file"):
        user_path(LONG)
    with pytest.raises(UsageError, match="cannot contain a NUL character"):
        user_path("a\0b")
    assert user_path("~") == Path.home() and user_path("no/such/file") == Path("no/such/file")


@pytest.mark.parametrize("text", ["command:a\0b", "command:cat?args=%00", "openai:m?%00=x", "replay:\0"])
def test_a_spec_with_a_nul_is_an_error(text: str) -> None:
    with pytest.raises(UsageError, match="NUL"):
        parse_spec(text)


@pytest.mark.parametrize("lines", ['data = "a\\u0000b"', 'plugins = ["x\\u0000.py"]', 'report = "\\u0000.html"'])
def test_a_run_file_with_a_nul_is_an_error(lines: str, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(f"[run]\n{lines}\n")
    with pytest.raises(UsageError, match="NUL"):
        read_run_file(tmp_path / "run.toml")
