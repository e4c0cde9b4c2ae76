"""`overtone measure`: files and folders in one call, broken files as rows with a reason, and what is refused."""

from __future__ import annotations

import csv
from pathlib import Path

import msgspec
import numpy as np
import pytest
import soundfile

from overtone.cli import main
from overtone.errors import EXIT_FAILURES, EXIT_OK, EXIT_USAGE
from tests.metrics.test_quality import voice, worker


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Good sounds of three kinds in a folder and one below it, and broken ones among them."""
    sounds = tmp_path / "sounds"
    (sounds / "below").mkdir(parents=True)
    soundfile.write(sounds / "a 8k.wav", voice(1, 8_000), 8_000)
    soundfile.write(sounds / "below" / "stereo.flac", np.stack([voice(1, 48_000)] * 2, axis=1), 48_000)
    soundfile.write(sounds / "c.ogg", voice(1, 16_000), 16_000)
    (sounds / "empty.wav").write_bytes(b"")
    soundfile.write(sounds / "silent.wav", np.zeros(16_000), 16_000)
    (sounds / "cut.flac").write_bytes((sounds / "below" / "stereo.flac").read_bytes()[:100])
    (sounds / "notes.txt").write_text("no sound")
    return sounds


@worker
def test_a_folder_is_rated_in_one_call_and_broken_files_are_rows_with_a_reason(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "out.csv"
    assert main(["measure", str(folder), "--metric", "dnsmos", "-o", str(table)]) == EXIT_FAILURES
    out = capsys.readouterr().out
    with table.open(newline="") as file:
        rows = {Path(row["file"]).name: row for row in csv.DictReader(file)}
    assert list(rows) == ["a 8k.wav", "stereo.flac", "c.ogg", "cut.flac", "empty.wav", "silent.wav"]
    for name in ("a 8k.wav", "stereo.flac", "c.ogg"):
        assert 0.5 < float(rows[name]["dnsmos_ovrl"]) < 5 and not rows[name]["reason"]
        assert f"{float(rows[name]['dnsmos_ovrl']):.3f}" in out
    assert rows["silent.wav"]["reason"] == "the sound is silent" and not rows["silent.wav"]["dnsmos_ovrl"]
    assert "empty" in rows["empty.wav"]["reason"] and rows["cut.flac"]["reason"]
    assert "dnsmos_ovrl|v1|weights:" in out


@worker
def test_several_metrics_write_one_row_a_file_with_signatures(folder: Path, tmp_path: Path) -> None:
    rows = tmp_path / "out.jsonl"
    asked = ["--metric", "dnsmos", "--metric", "distillmos", "-o", str(rows)]
    assert main(["measure", str(folder / "c.ogg"), str(folder / "c.ogg"), *asked]) == EXIT_OK
    (row,) = map(msgspec.json.decode, rows.read_bytes().splitlines())
    assert set(row["values"]) == {"dnsmos_ovrl", "dnsmos_sig", "dnsmos_bak", "dnsmos_p808", "distillmos"}
    assert row["signatures"]["distillmos"].startswith("distillmos|v1|") and row["reasons"] == {}
    assert row["seconds"] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--metric", "dnsmo"], "dnsmos"),
        (["--metric", "wer"], "this metric scores replies"),
        (["--metric", "dnsmos?weights=x"], "unknown option"),
        (["--metric", "nisqa?weights=none.tar"], "there is no file"),
        (["--metric", "dnsmos", "-o", "x.txt"], ".csv or .jsonl"),
    ],
)
def test_what_cannot_be_measured_is_said_before_anything_is_read(
    folder: Path, words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["measure", str(folder), *words]) == EXIT_USAGE
    assert told in capsys.readouterr().err


def test_a_missing_file_and_an_empty_folder_are_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", str(tmp_path / "none.wav"), "--metric", "dnsmos"]) == EXIT_USAGE
    assert "no such file" in capsys.readouterr().err
    assert main(["measure", str(tmp_path), "--metric", "dnsmos"]) == EXIT_USAGE
    assert "no audio files" in capsys.readouterr().err


def test_without_the_measuring_environment_its_setup_is_named(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERTONE_MEASURES", str(tmp_path / "none"))
    assert main(["measure", str(folder), "--metric", "dnsmos"]) == EXIT_USAGE
    assert "overtone setup measures" in capsys.readouterr().err


def test_the_setup_of_the_environment_shows_what_it_would_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from overtone.cli import _measures_setup

    monkeypatch.setenv("OVERTONE_MEASURES", str(tmp_path / "none"))
    assert main(["setup", "measures", "--dry-run"]) == EXIT_OK
    out = capsys.readouterr().out
    pinned = _measures_setup.blocks(_measures_setup.lock())
    assert all(f"would install {name} {version}" in out for name, (version, _) in pinned.items())
    assert not (tmp_path / "none").exists()
    assert pinned["torch"][0] == "2.13.0" and not [name for name in pinned if name.startswith(("nvidia", "triton"))]
    assert all("--hash=sha256:" in block for _, block in pinned.values())
    assert "http" not in _measures_setup.lock().read_text("utf-8").replace("httpcore2", "").replace("httpx2", "")


@worker
def test_a_complete_environment_needs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    from overtone.cli import _measures_setup

    assert main(["setup", "measures"]) == EXIT_OK
    assert "nothing to do" in capsys.readouterr().out
    tested = (
        (Path(_measures_setup.lock()).with_name("requirements-test.txt")).read_text("utf-8").lower().replace("_", "-")
    )
    assert {f"{n}=={v}" for n, (v, _) in _measures_setup.blocks(_measures_setup.lock()).items()} == {
        line
        for line in tested.splitlines()
        if line and not line.startswith(("#", "accelerate", "peft", "psutil", "sentencepiece"))  # for training
    }
