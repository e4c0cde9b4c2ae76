"""A figure of the user's own, in one file."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone.cli import main
from tests.conftest import REPOSITORY
from tests.results.small import Maker, item

PLUGIN = str(REPOSITORY / "examples" / "my_figure.py")


def test_it_is_listed_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Maker(tmp_path / "run")
    run.answered(item("c", "converse", level=3), "three words here", condition="enhance/audio")
    folder = str(run.done())
    assert main(["list", "figures", "--plugin", PLUGIN]) == 0
    assert "my-figure" in (listed := capsys.readouterr().out) and "1 added" in listed
    assert main(["figure", "my-figure", folder, "--plugin", PLUGIN, "-o", str(tmp_path / "x.svg")]) == 0
    assert "3.0 words" in (tmp_path / "x.svg").read_text()


def test_it_says_what_to_run_without_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Maker(tmp_path / "run")
    run.transcript(item("t", "transcribe"), 1, 4)
    out = str(tmp_path / "x.svg")
    assert main(["figure", "my-figure", str(run.done()), "--plugin", PLUGIN, "-o", out]) == 2
    assert "--levels 3" in capsys.readouterr().err
