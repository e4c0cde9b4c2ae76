"""`overtone plan --detect`: how many cases a difference needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone.cli import main
from tests.results.pairs import answers


def test_a_difference_needs_so_many_scripts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--detect", "3%"]) == 0
    percent = capsys.readouterr().out
    assert main(["plan", "--detect", "0.03"]) == 0
    out = capsys.readouterr().out
    assert out == percent
    assert "3.0 points    2,184" in out
    assert "assumed: rate 0.5" in out
    a = str(answers(tmp_path / "a", [True, False] * 20))
    b = str(answers(tmp_path / "b", [True, True, False, False] * 10))
    assert main(["plan", "--detect", "0.1", "--power", "0.9", "--from", a, "--from", b]) == 0
    out = capsys.readouterr().out
    assert "only one right on 50.0 % of 40 pairs" in out
    assert "40 ✗" in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "name a benchmark or a run file"),
        (["--power", "0.9"], "add --detect X"),
        (["--detect", "3"], "from 0% to 100%"),
        (["--detect", "0"], "between 0 and 1"),
        (["--detect", "0.03", "--power", "2"], "--power must be between"),
        (["--detect", "0.03", "--from", "nowhere"], "is not a run"),
        (["nosuch", "--data", ".", "--detect", "0.03"], "nosuch"),
    ],
)
def test_wrong_words_are_clear_errors(capsys: pytest.CaptureFixture[str], words: list[str], told: str) -> None:
    assert main(["plan", *words]) == 2
    assert told in capsys.readouterr().err
