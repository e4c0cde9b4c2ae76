"""`overtone studio new`: what it writes, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone.cli import main
from overtone.studio import study
from tests.arena.helpers import make_run
from tests.studio.helpers import new_study, spoken_runs


def test_a_study_of_ratings_is_written_with_one_gain_per_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = new_study(tmp_path, "--raters", "7", "--show", "words")
    assert (made.design, made.rubrics, made.raters, made.shows) == ("acr", ("echomind",), 7, ("words",))
    assert [run.name for run in made.sources] == ["monday", "friday"]
    assert [run.path for run in made.sources] == ["monday", "friday"]  # relative to the study file
    assert all(run.gain_db < 0 for run in made.sources)  # the test's tones are louder than the common level
    assert made.session == 6  # nine scripts, less two for training and one for gold
    printed = capsys.readouterr().out
    assert "36 replies of 9 scripts" in printed and "minutes" in printed and "± " in printed


def test_a_study_of_pairs_asks_about_requests_that_both_runs_answered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = new_study(tmp_path, "--design", "ab")
    assert (made.design, made.rubrics) == ("ab", ("pair-voice",))
    assert "18 pairs of 9 scripts; systems: monday|friday" in capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["studio", "new", *words]) == 2
    return capsys.readouterr().err


def test_a_run_without_audio_is_refused_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "mute", 1.0)
    said = refused(capsys, str(tmp_path / "s.toml"), "--from", str(run))
    assert "none of its 18 answered conversations has audio" in said
    assert not (tmp_path / "s.toml").exists()


def test_a_lost_sound_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run,) = spoken_runs(tmp_path, "monday")
    lost = next((run / "audio").rglob("*.wav"))
    lost.unlink()
    said = refused(capsys, str(tmp_path / "s.toml"), "--from", str(run))
    assert lost.name in said and "overtone verify" in said


def test_too_few_scripts_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run,) = spoken_runs(tmp_path, "monday", scripts=3)
    assert "3 different scripts" in refused(capsys, str(tmp_path / "s.toml"), "--from", str(run))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--design", "ab"], "needs at least 2 runs"),
        (["--rubric", "pair"], "acr rates single replies"),
        (["--raters", "0"], "--raters must be from 1"),
    ],
)
def test_flags_that_do_not_fit_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], message: str
) -> None:
    (run,) = spoken_runs(tmp_path, "monday")
    assert message in refused(capsys, str(tmp_path / "s.toml"), "--from", str(run), *flags)


def test_an_existing_study_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = new_study(tmp_path)
    before = made.path.read_bytes()
    assert "exists" in refused(capsys, str(made.path), "--from", str(tmp_path / "monday"))
    assert made.path.read_bytes() == before


def test_a_name_with_quotes_survives_the_file(tmp_path: Path) -> None:
    made = new_study(tmp_path, "--title", 'He said "ä\\" \x7f\t]]')
    assert made.title == 'He said "ä\\" \x7f\t]]'
    assert study.read(made.path) == made
