"""Hints for the commonest mistakes: each says what to type instead."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from overtone import errors
from overtone.cli import main
from tests.report.fake_run import make_run
from tests.servers import OpenAIServer


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        (["--model", "gpt-4o"], "openai:gpt-4o"),
        (["--model", "gemini-2.5-flash"], "gemini:gemini-2.5-flash"),
        (["--model", "Qwen/Qwen2-Audio"], "openai:Qwen/Qwen2-Audio?base_url=http://localhost:8000/v1"),
        (["--model", "openai:x?base_url=localhost:8000/v1"], "write http://localhost:8000/v1"),
        (["--model", "openai:x?base_url=localhost:8000"], "write http://localhost:8000/v1"),
        (["--model", "openai:x?base_url=api.example.com/"], "write https://api.example.com/v1"),
        (["--model", "openai:x?base_url=10.0.0.7:8000/v1"], "write http://10.0.0.7:8000/v1"),
        (["--model", "openai:x?base_url=api.example.com/v1"], "write https://api.example.com/v1"),
        (["--model", "cascade", "--asr", "tarjet"], "did you mean 'target'"),
        (["--model", "cascade", "--prompt", "enhanced"], "did you mean 'enhance'"),
        (["--model", "cascade", "--styles", "natural"], "did you mean 'neutral'"),
        (["--model", "cascade", "--input", "sound,transcripts"], "transcript"),
    ],
)
def test_a_mistake_in_run_is_answered_with_what_to_type(
    small: Path, given: list[str], hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "echomind", "--data", str(small), "--out", str(tmp_path / "run"), *given]) == 2
    assert hint in capsys.readouterr().err


def test_a_url_that_may_hold_a_password_is_not_repeated(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = "openai:x?base_url=anna:hunter2@localhost:8000"
    assert main(["run", "echomind", "--data", str(small), "--model", model]) == 2
    assert "hunter2" not in capsys.readouterr().err


def test_a_server_that_needs_v1_is_named_with_it(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with OpenAIServer() as server:
        bare = server.base_url.removesuffix("/v1")
        model = f"openai:any?base_url={bare}"
        assert main(["run", "echomind", "--data", str(small), "--model", model, "--out", str(tmp_path / "run")]) != 0
    assert f"base_url={server.base_url}" in capsys.readouterr().err.replace("\n", " ")


def test_a_case_without_its_prefix_is_answered_with_its_full_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(make_run(tmp_path / "run", scripts=2, failures=False))
    for part in ("id_0", "id_0/target", "target/"):
        assert main(["case", run, part]) == 2
        assert "did you mean 'synthesis/id_0/" in capsys.readouterr().err
    assert main(["case", run, "nothing-like-it"]) == 2
    assert "did you mean" not in capsys.readouterr().err


def test_the_line_that_installs_an_extra_works_in_a_clone_and_for_an_installed_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "src" / "overtone"
    monkeypatch.setattr(errors, "__file__", str(package / "errors.py"))
    assert errors.install_line("train") == f"{sys.executable} -m pip install 'overtone[train]'"
    (tmp_path / "pyproject.toml").write_text("")
    assert errors.install_line("train", "other") == f"other -m pip install -e '{tmp_path}[train]'"
