"""Completion scripts: bash completes for real; zsh and fish accept theirs."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from overtone import registry
from overtone.cli._completion import places, script
from overtone.cli._main import TASKS, command_list

ASK = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_overtone
echo "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["ru"], ["run"]),
        (["run", "echom"], ["echomind"]),
        (["run", "echomind", "--mo"], ["--model"]),
        (["run", "echomind", "--model", "op"], ["openai"]),
        (["run", "echomind", "--asr", ""], ["target", "all"]),
        (["run", "echomind", "--data", ""], []),
        (["build", "open", "--per"], ["--per-cue"]),
        (["data", "f"], ["fetch"]),
        (["judge", "show", "pair-"], ["pair-voice"]),
        (["list", "met"], ["metrics"]),
        (["completion", "z"], ["zsh"]),
        (["help", "com"], ["compare", "completion"]),
    ],
)
def test_bash_completes_commands_flags_choices_and_plug_ins(
    typed: list[str], expected: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "overtone.bash"
    file.write_text(script("bash"))
    done = subprocess.run(
        ["bash", "-c", ASK, "bash", str(file), "overtone", *typed], capture_output=True, text=True, check=True
    )
    assert (done.stdout.split(), done.stderr) == (expected, "")


def test_the_command_can_be_sourced_in_bash(tmp_path: Path) -> None:
    line = f"source <({shlex.quote(sys.executable)} -m overtone completion bash); complete -p overtone"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    assert "-F _overtone overtone" in done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_valid_in_its_shell(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"the shell {shell} is not installed; apt install {shell}")
    file = tmp_path / f"overtone.{shell}"
    file.write_text(script(shell))
    subprocess.run([shell, "-n", str(file)], check=True)


def test_fish_completes_a_flag_and_a_subcommand(tmp_path: Path) -> None:
    if shutil.which("fish") is None:
        pytest.skip("the shell fish is not installed; apt install fish")
    file = tmp_path / "overtone.fish"
    file.write_text(script("fish"))
    line = f"source {file}; complete -C 'overtone run --mod'; complete -C 'overtone build ech'"
    home = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run(["fish", "-c", line], capture_output=True, text=True, check=True, env=home)
    assert [row.partition("\t")[0] for row in done.stdout.splitlines()] == [
        "--model",
        "echat",
        "echat-eval",
        "echat-real",
    ]


def test_every_command_has_a_task_and_a_place() -> None:
    commands = registry.builtins("cli")
    assert sorted(name for names in TASKS.values() for name in names) == sorted(commands)
    assert set(commands) <= set(places())
    assert "\nother:" not in command_list(commands)


@pytest.mark.parametrize("columns", [80, 120])
def test_the_list_of_commands_fits_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    page = command_list(registry.builtins("cli"))
    assert max(map(len, page.splitlines())) <= columns
