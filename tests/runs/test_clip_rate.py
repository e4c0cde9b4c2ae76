"""At which rate clips are sent: their own, unless the model's SPEC, its worker, or an earlier start of the run says."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

import pytest

from overtone.audio import load_sound
from overtone.cli import main
from overtone.errors import UsageError
from overtone.report.page import write_report
from overtone.runs.sent_clips import EARLIER, sent_rates
from overtone.runs.store import Store
from overtone.spec import parse_spec
from tests.models.test_worker_process import ECHO
from tests.servers import OpenAIServer, tone

from .helpers import run


def rate_of(wav: bytes) -> int:
    return int.from_bytes(wav[24:28], "little")


@pytest.fixture
def high(small: Path) -> Path:
    """The small benchmark with clips of 48 kHz."""
    for place, clip in enumerate(sorted(small.rglob("*.wav"))):
        clip.write_bytes(tone(place, 0.2, 48_000))
    return small


def asked_clip(data: Path, out: Path) -> Path:
    """The one clip that a run has sent."""
    with Store.read(out) as store:
        (path,) = store.clips()
    return data / path


def stored(out: Path) -> str:
    with Store.read(out) as store:
        return store.meta()["clips"]


def test_a_clip_of_48_khz_goes_out_as_its_very_bytes(high: Path, tmp_path: Path) -> None:
    with OpenAIServer(keep_audio=True) as server:
        run(high, server.base_url, tmp_path / "run", limit=1)
        assert server.asked[0].wavs[0] == asked_clip(high, tmp_path / "run").read_bytes()
    assert stored(tmp_path / "run") == "sent at their own rate"


def test_audio_rate_resamples_what_is_sent_and_the_run_and_the_report_tell(
    high: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    with OpenAIServer(keep_audio=True) as server:
        spec = f"openai:any?base_url={server.base_url}&audio_rate=16000"
        words = ["echomind", "--data", str(high), "--model", spec, "--out", str(out), "--input", "audio,silence"]
        assert main(["plan", *words]) == 0
        assert "clips are resampled to 16000 Hz (audio_rate of the model's SPEC)" in capsys.readouterr().out
        assert main(["run", *words]) == 0
        assert {rate_of(wav) for asked in server.asked for wav in asked.wavs} == {16_000}
    assert "clips are resampled to 16000 Hz" in capsys.readouterr().err
    assert stored(out) == "resampled to 16000 Hz (audio_rate of the model's SPEC)"
    write_report([out], tmp_path / "report.html")
    assert "resampled to 16000 Hz (audio_rate of the model" in (tmp_path / "report.html").read_text("utf-8")


def test_a_worker_gets_the_rate_it_declares_and_the_run_tells(high: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ["echomind", "--data", str(high), "--model", f"worker:{ECHO}?python={sys.executable}", "--limit", "1"]
    assert main(["run", *words, "--out", str(out), "-q"]) == 0
    assert stored(out) == "resampled to 16000 Hz (declared by the model)"


def test_a_run_that_was_started_with_resampled_clips_is_resumed_with_the_same_bytes(high: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with OpenAIServer(keep_audio=True) as server:
        run(high, server.base_url, out, limit=1)
        clip = asked_clip(high, out)
        earlier = load_sound(clip, max_rate=24_000)
        with sqlite3.connect(out / "run.db") as db:  # as an earlier version stored it
            db.execute("DELETE FROM meta WHERE key = 'clips'")
            db.execute("UPDATE clips SET sha256 = ?", (earlier.sha256,))
        db.close()
        clip.touch()  # so that its bytes are compared
        for limit in (2, 3):
            assert run(high, server.base_url, out, limit=limit).answered == 1
            assert rate_of(server.asked[-1].wavs[0]) == 24_000
            assert stored(out) == EARLIER


@pytest.mark.parametrize("told", ["fast", "100", "1000000"])
def test_a_rate_that_is_none_is_refused(told: str) -> None:
    with pytest.raises(UsageError, match="audio_rate must be"):
        parse_spec(f"openai:any?audio_rate={told}").typed_audio_rate()


def test_clips_of_a_model_that_resamples_itself_are_compared_as_they_were_read() -> None:
    assert sent_rates({"clips": "resampled to 16000 Hz (declared by the model)"}) == (None, None)
    assert sent_rates({"clips": "resampled to 16000 Hz (audio_rate of the model's SPEC)"}) == (16_000, None)
