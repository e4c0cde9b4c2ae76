"""Scoring a run's spoken replies: metrics reach the stored audio and the benchmark's reference audio."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from overtone.audio import encode_wav
from overtone.embedded import recogniser
from overtone.results.load import Answer, open_run
from overtone.runs.store import Store
from overtone.scoring import score_run
from tests.runs.helpers import run
from tests.servers import OpenAIServer


def spoken(folder: Path) -> list[Answer]:
    return [a for a in open_run(folder).answers if a.item.task == "converse"]


@pytest.fixture
def folder(small: Path, tmp_path: Path) -> Path:
    with OpenAIServer() as server:
        run(small, server.base_url, tmp_path / "run", levels="3", prompt="zero", keys={"speech": "yes"})
    return tmp_path / "run"


def test_a_replys_stored_audio_is_measured(folder: Path) -> None:
    score_run(folder)
    found = [a.scores["expressiveness"] for a in spoken(folder)]
    assert found and {s.reason for s in found} == {"too few syllables in the reply's audio"}, "tones"
    assert all(s.detail["f0_hz"] and s.detail["level_dbfs"] for s in found), "what can be measured of them is"
    assert {a.scores["prosody_fit"].reason for a in spoken(folder)} == {"no reference audio"}


def test_reference_audio_is_found_in_the_benchmarks_folder(folder: Path, small: Path) -> None:
    sound = 0.3 * np.sin(2 * np.pi * 300 * np.arange(8_000) / 16_000)
    (small / "said.wav").write_bytes(encode_wav(sound.astype(np.float32), 16_000))
    with Store.create(folder) as store:
        for item in list(store.items()):
            body = msgspec.json.encode(msgspec.structs.replace(item, reference_audio="said.wav"))
            store.db.execute("UPDATE items SET body = ? WHERE id = ?", (body, item.id))
    score_run(folder)
    fits = [a.scores["prosody_fit"] for a in spoken(folder)]
    assert fits and all(s.value is not None and 0.5 < s.value <= 1.0 and "pitch_st" in s.detail for s in fits)


def test_replies_that_hold_a_value_are_not_transcribed_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[int] = []

    def transcribe(samples: np.ndarray, rate: int) -> str:
        heard.append(rate)
        return "some words"

    monkeypatch.setattr(recogniser, "transcribe", transcribe)
    score_run(folder, metrics=["consistency"])
    first = len(heard)
    assert first == len(spoken(folder)) > 2
    score_run(folder, again=False, metrics=["consistency"])
    assert len(heard) - first <= 1, "one reply tells the signature"


def test_a_run_without_audio_is_unscored_with_the_reason(small: Path, tmp_path: Path) -> None:
    with OpenAIServer(speech=False) as server:
        run(small, server.base_url, tmp_path / "run", levels="3", prompt="zero", keys={"speech": "no"})
    score_run(tmp_path / "run")
    reasons = {
        s.reason
        for a in spoken(tmp_path / "run")
        for n, s in a.scores.items()
        if n in ("expressiveness", "consistency_wer")
    }
    assert reasons == {"the reply has no audio"}
