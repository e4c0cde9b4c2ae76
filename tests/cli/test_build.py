"""`overtone build SET`: each set has the flags that apply to it, a help page with examples, and errors that help."""

from __future__ import annotations

import shlex

import pytest

from overtone.cli import main
from overtone.cli._main import command_parser
from overtone.cli._plugins import leaves

Capture = pytest.CaptureFixture[str]
SETS = ("open", "aeq", "dream", "echat-eval", "echat", "echat-real", "review", "mine.jsonl")
FLAGS = {leaf.prog.split()[-1]: set(leaf._option_string_actions) for leaf in leaves(command_parser("build"))}


def test_each_set_has_the_flags_that_apply_to_it() -> None:
    assert {"--meld", "--tones"} <= FLAGS["aeq"] and not {"--meld", "--tones"} & FLAGS["open"]
    assert {"--round", "--reviewers"} <= FLAGS["review"] and "--out" not in FLAGS["review"]
    assert FLAGS["FILE"] - FLAGS["open"] == {"--licence"} and not FLAGS["open"] - FLAGS["FILE"]
    assert "--voice" not in FLAGS["echat"] | FLAGS["echat-real"] and "--data" in FLAGS["echat-real"]


@pytest.mark.parametrize("name", SETS)
def test_the_help_of_each_set_ends_with_commands_that_parse(name: str, capsys: Capture) -> None:
    assert main(["build", name, "--help"]) == 0
    _, _, examples = capsys.readouterr().out.partition("\nexample")
    commands = [shlex.split(line) for line in examples.splitlines()[1:] if line.strip()]
    assert commands and all(words[:2] == ["overtone", "build"] for words in commands)
    for words in commands:
        command_parser("build").parse_args(words[2:])


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["opne", "--out", "x"], "did you mean 'open'"),
        (["mine.csv", "--out", "x"], "invalid choice: 'mine.csv'"),
        (["open", "--out", "x", "--per-ceu", "2"], "overtone build open: unrecognized arguments: --per-ceu 2; did you"),
        (["aeq", "--out", "x", "--per-setting", "0"], "--per-setting: must be at least 1"),
        (["open", "--out", "x", "--only", ","], "--only: name at least one"),
        (["nowhere.jsonl", "--out", "x"], "nowhere.jsonl"),
    ],
)
def test_a_mistake_is_one_clear_line(words: list[str], complaint: str, capsys: Capture) -> None:
    assert main(["build", *words]) == 2
    assert complaint in capsys.readouterr().err
