"""Plug-ins on the command line: --plugin on every command that may use one, and a file in place of a name."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from overtone import figures, registry
from overtone.cli import main
from overtone.cli._main import command_parser
from overtone.cli._plugins import WITHOUT, leaves
from overtone.runs.store import Store
from tests.conftest import REPOSITORY
from tests.docs.conftest import EXAMPLES, clips

__all__ = ["clips"]
Capture = pytest.CaptureFixture[str]
MINE = {name: str(EXAMPLES / f"my_{name}.py") for name in ("benchmark", "model", "metric")}


def test_every_command_and_subcommand_that_may_use_a_plug_in_takes_one() -> None:
    for command in registry.builtins("cli"):
        for leaf in leaves(command_parser(command)):
            assert ("--plugin" in leaf._option_string_actions) == (leaf.prog.removeprefix("overtone ") not in WITHOUT)


def test_files_stand_in_for_the_names_of_a_benchmark_a_model_and_a_metric(
    clips: Path, tmp_path: Path, capsys: Capture
) -> None:
    run = tmp_path / "run"
    words = ["run", MINE["benchmark"], "--data", str(clips), "--out", str(run)]
    given = [*words, "--model", f"{MINE['model']}:longest?polite=no", "--metric", MINE["metric"], "-q"]
    assert main(given) == 0, capsys.readouterr().err
    with Store.read(run) as store:
        about = store.meta()
        assert about["benchmark"] == "my-benchmark"
        assert about["model"] == "my-model:longest?polite=no"
        assert "apologies" in {score.metric for _, score in store.scores()}
    written = tomllib.loads((run / "config.toml").read_text())
    assert sorted(written["run"]["plugins"]) == sorted(MINE.values()), "the run can be repeated from its own file"
    assert main(["run", str(run / "config.toml"), "--trust", "-q"]) == 0


def test_a_plug_in_serves_a_stored_run_and_a_subcommand(clips: Path, tmp_path: Path, capsys: Capture) -> None:
    run, rubric = tmp_path / "run", tmp_path / "kindness.toml"
    words = ["run", MINE["benchmark"], "--data", str(clips), "--model", f"{MINE['model']}:first", "-q"]
    assert main([*words, "--out", str(run)]) == 0
    assert main(["score", str(run), "--plugin", MINE["metric"], "-q"]) == 0
    with Store.read(run) as store:
        assert "apologies" in {score.metric for _, score in store.scores()}
    rubric.write_text(registry.find_rubric("ves").read_text().replace("Vocal empathy", "Kindness"))
    assert main(["judge", "show", "kindness", "--plugin", str(rubric)]) == 0
    assert "Kindness from the reply's sound" in capsys.readouterr().out


def test_the_listing_says_what_is_built_in_and_what_is_added(capsys: Capture) -> None:
    assert main(["list"]) == 0
    shown = capsys.readouterr().out
    assert [line.split()[0] for line in shown.splitlines() if not line.startswith(" ")] == [
        *registry.PLUGIN_ROOMS,
        "prompts",
    ]
    assert "added" not in shown and "[from" not in shown
    assert main(["list", "metrics", "--plugin", MINE["metric"]]) == 0
    shown = capsys.readouterr().out
    assert ", 1 added)" in shown.splitlines()[0]
    assert f"a count per reply. [from {MINE['metric']}]" in shown


def test_the_figures_of_findings_are_listed(capsys: Capture) -> None:
    assert main(["list", "figures"]) == 0
    listed = {line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]}
    assert listed == set(figures.names())


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["list", "--plugin", "nowhere.py"], "nowhere.py does not exist"),
        (["list", "--plugin", "pyproject.toml"], "is not a rubric"),
        (["list", "--plugn=x.py"], "did you mean '--plugin'"),
        (
            ["judge", "show", "ves", "--plugn", "x.py"],
            "overtone judge show: unrecognized arguments: --plugn x.py; did you",
        ),
        (["plan", MINE["metric"], "--model", "cascade"], "is a plug-in of metrics, not a benchmark"),
        (["plan", "nowhere.py", "--model", "cascade"], "nowhere.py does not exist"),
        (["trust", "--plugin", MINE["metric"]], "unrecognized arguments: --plugin"),
    ],
)
def test_a_mistake_is_one_clear_line(
    words: list[str], complaint: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(REPOSITORY)
    assert main(words) == 2
    assert complaint in capsys.readouterr().err


def test_a_program_that_ends_in_py_is_not_a_plug_in(clips: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("raise SystemExit('was run')")
    words = ["plan", MINE["benchmark"], "--data", str(clips), "--model"]
    assert main([*words, f"command:{program}"]) == 0
    assert main([*words, f"worker:{program}?model=x"]) == 0
