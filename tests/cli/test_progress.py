"""The line of progress: what it says, and that it moves while nothing is reported."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from overtone.cli import _progress
from overtone.cli._progress import Display
from overtone.scoring import score_run
from tests.report.fake_run import make_run


def test_scoring_reports_each_metric_from_none_to_all_of_its_replies(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", scripts=4, failures=False)
    seen: dict[str, list[tuple[int, int]]] = {}
    score_run(run, on_progress=lambda name, done, total: seen.setdefault(name, []).append((done, total)))
    assert "wer" in seen and "choice" in seen
    for name, steps in seen.items():
        totals = {total for _, total in steps}
        assert len(totals) == 1, name
        assert steps[0][0] == 0 and steps[-1] == (totals.pop(),) * 2, name
        assert [done for done, _ in steps] == sorted(done for done, _ in steps), name


def test_the_line_names_the_metric_its_replies_and_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now)
    display = Display(quiet=True)
    display.scoring("prosody", 0, 115)
    now += 3
    assert display._scored_line() == "scoring prosody 0/115 · 3 s"
    now += 3
    display.scoring("prosody", 40, 115)
    assert display._scored_line() == "scoring prosody 40/115 · 11 s left"
    display.scoring("judge gpt-4o", 0, 0)
    now += 75
    assert display._scored_line() == "scoring with judge gpt-4o · 1:15"


def test_the_line_moves_while_a_slow_metric_reports_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(_progress, "PLAIN_EVERY", 0.05)
    with Display() as display:
        display.scoring("prosody", 0, 115)
        time.sleep(0.4)
    assert capsys.readouterr().err.count("scoring prosody 0/115") >= 2


def test_a_quiet_command_shows_no_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(_progress, "PLAIN_EVERY", 0.05)
    with Display(quiet=True) as display:
        display.scoring("prosody", 0, 115)
        time.sleep(0.15)
    assert capsys.readouterr().err == ""
