"""`overtone check`: exit codes, the Markdown and the JUnit file, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from overtone.cli import main
from tests.results.pairs import answers, talks

GOOD = [True] * 9 + [False] * 3


def test_the_exit_code_says_held_failed_or_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(answers(tmp_path / "a", GOOD))
    assert main(["check", run, "--require", "voice_accuracy >= 0.60"]) == 0
    assert "✓ voice_accuracy >= 60 % (task/audio) holds: voice_accuracy is 75.0 %" in capsys.readouterr().out
    assert main(["check", run, "--require", "voice_accuracy >= 0.80"]) == 1
    assert "1 fail" in capsys.readouterr().out
    assert main(["check", run, "--require", "c4 >= 3", "--require", "voice_accuracy > 0"]) == 3
    assert "is undecided: not enough data" in capsys.readouterr().out
    assert main(["check", run, "--require", "c4 >= 3", "--require", "voice_accuracy > 1"]) == 1


def test_the_files_hold_what_was_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = 'x\x00\x1b<&"|\n]]>'
    run = str(answers(tmp_path / "a", GOOD, meta={"label": evil}))
    words = ["--require", "voice_accuracy >= 0.6", "--require", "voice_accuracy < 0.6", "--require", "ves > 1"]
    files = ["--markdown", str(tmp_path / "c.md"), "--junit", str(tmp_path / "c.xml")]
    assert main(["check", run, *words, *files]) == 1
    assert "\x1b" not in capsys.readouterr().out
    text = (tmp_path / "c.md").read_text()
    assert len([line for line in text.splitlines() if line.startswith("| ")]) == 5
    assert "<&" not in text
    suite = ElementTree.parse(tmp_path / "c.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("4", "1", "1")
    names = [case.get("name") for case in suite]
    assert names[:3] == ["voice_accuracy >= 60 % (task/audio)", "voice_accuracy < 60 % (task/audio)", "ves > 1"]
    assert names[3:] == ["missing replies <= 1 %"]
    assert [child.tag for case in suite for child in case] == ["system-out", "failure", "error", "system-out"]
    assert suite[0].get("classname") == 'x\\x00\\x1b<&"|\\n]]>'


def test_markdown_names_the_tests_once_below_its_table(tmp_path: Path) -> None:
    base, run = str(talks(tmp_path / "a", [3.0] * 8)), str(talks(tmp_path / "b", [2.9] * 8))
    words = ["--baseline", base, "--require", "c4@j > 2", "--no-worse", "reply_semsim:5%"]
    assert main(["check", run, *words, "--markdown", str(tmp_path / "c.md")]) == 1
    table, below = (tmp_path / "c.md").read_text().split("\n\n- ", 1)
    assert "p = 0.008); 95 % interval −0.10 to −0.10, 8 pairs" in table and "clustered" not in table
    assert below.count("p: two-sided paired test clustered by script, Holm correction over 1 headline test") == 1


def test_a_run_is_held_to_its_baseline_by_the_margin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, run = str(talks(tmp_path / "a", [3.0] * 8)), str(talks(tmp_path / "b", [2.9] * 8))
    assert main(["check", run, "--baseline", base, "--no-worse", "c4:0.2"]) == 0
    assert "within the margin of 0.2" in capsys.readouterr().out
    assert main(["check", run, "--baseline", base, "--no-worse", "c4:0.05"]) == 1
    assert "not within the margin" in capsys.readouterr().out
    assert main(["check", base, "--baseline", run, "--no-worse", "c4:0.05", "--require", "c4 >= 3"]) == 0


def test_a_baseline_that_does_not_compare_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, run = str(answers(tmp_path / "a", GOOD)), str(answers(tmp_path / "b", GOOD, version=2))
    assert main(["check", run, "--baseline", base, "--no-worse", "voice_accuracy:0.1"]) == 2
    assert "accuracy|v1 against accuracy|v2" in capsys.readouterr().err


def test_a_baseline_alone_gates_the_headline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, run = str(talks(tmp_path / "a", [4.0] * 8)), str(talks(tmp_path / "b", [2.0] * 8))
    assert main(["check", run, "--baseline", base]) == 1
    out = capsys.readouterr().out
    assert "✗ c4 not significantly worse (zero/audio) fails: the run is 2.00 lower than the baseline" in out
    assert main(["compare", base, run]) == 0
    clause = "which is worse; the difference is statistically significant (p = 0.008, two-sided paired test"
    assert clause in out and clause in capsys.readouterr().out
    assert main(["check", base, "--baseline", run]) == 0


def test_failed_requests_do_not_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, run = str(answers(tmp_path / "a", [True] * 60)), str(answers(tmp_path / "b", [True] * 42 + [None] * 18))
    assert main(["check", run, "--baseline", base]) == 1
    out = capsys.readouterr().out
    assert "✗ missing replies <= 1 % fails: 18 of 60 requests have no reply; 30.0 % under task/audio" in out
    assert "? voice_accuracy not significantly worse (task/audio) is undecided" in out
    assert main(["check", run, "--baseline", base, "--max-missing", "30%"]) == 3
    assert main(["check", run, "--max-missing", "30%"]) == 0
    assert main(["check", run, "--require", "failures <= 5%", "--max-missing", "99%"]) == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "nothing to check"),
        (["--no-worse", "c4:0.1"], "give --baseline RUN"),
        (["--require", "voice_acuracy >= 0.6"], "did you mean 'voice_accuracy'"),
        (["--require", "voice_accuracy"], "not a requirement"),
        (["--require", "voice_accuracy >= 60"], "for 60 percent write 60%"),
        (["--max-missing", "5"], "--max-missing takes a share"),
        (["--require", "voice_accuracy > 0.5", "--condition", "zero/audio"], "it has task/audio"),
        (["--require", "voice_accuracy > 0.5", "--junit", "/dev/null/x.xml"], "create it first"),
        (["--max-missing", "1"], "for 1 percent write 1%"),
        (["--require", "failures <= 1"], "for 1 percent write 1%"),
        (["other"], "name an earlier run with --baseline RUN"),
    ],
)
def test_wrong_words_are_clear_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    run = str(answers(tmp_path / "a", GOOD))
    assert main(["check", run, *words]) == 2
    assert told in capsys.readouterr().err
