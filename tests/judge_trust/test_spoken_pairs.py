"""SpeakBench, 497 pairs of real spoken replies: people's preferences and a judge's verdicts, as the docs show them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec
import pytest

from overtone.cli import main

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("OVERTONE_SHARED", ROOT.parent / "shared")) / "data" / "speakbench"
PAGE = (ROOT / "docs" / "how-to" / "validate-a-judge.md").read_text(encoding="utf-8")
pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(
        not DATA.is_dir(), reason="no SpeakBench; set OVERTONE_SHARED to the folder that holds data/speakbench"
    ),
]


@pytest.fixture
def printed(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "200")
    command = ["judge", "validate", f"recorded:{DATA / 'judge.csv'}", "--labels", str(DATA / "people.csv")]
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    return capsys.readouterr().out


def test_the_page_shows_what_the_command_prints(printed: str) -> None:
    shown = re.search(r"```text\n(.*?)```", PAGE, re.S)
    assert shown
    for line in shown[1].splitlines():
        assert line.removesuffix(" […]") in printed
    for number in ("41.4 %", "36.2 %", "90.1 %", "50.3 %", "50.7 %"):
        assert number in printed and number in PAGE


def test_one_label_per_pair_gives_no_ceiling_and_intervals_by_instruction(printed: str, tmp_path: Path) -> None:
    found = msgspec.json.decode((tmp_path / "out" / "validation.json").read_bytes())
    [preference] = found["dimensions"]
    assert (found["units"], found["groups"], preference["ceiling"]) == (497, 81, None)
    assert preference["agreement"]["exact"]["value"] == pytest.approx(294 / 497)
    assert preference["agreement"]["kappa"]["groups"] == 81
    assert "No ceiling" in printed and "No ceiling" in (tmp_path / "out" / "validation.html").read_text()
