"""Real recordings: every file of the demo folder is read, sent and measured with plausible values."""

from __future__ import annotations

import os
import wave
from collections import Counter
from io import BytesIO
from pathlib import Path

import pytest

from overtone import audio

SHARED = Path(os.environ.get("OVERTONE_SHARED", Path(__file__).parents[3] / "shared"))
DEMO = SHARED / "data" / "echomind_demo"
pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not DEMO.is_dir(), reason="no demo data; set OVERTONE_SHARED to the folder that holds data/"),
]


def test_every_clip_and_reply_is_read_and_sent_with_a_plausible_length() -> None:
    paths = sorted(DEMO.rglob("*.wav"))
    assert len(paths) >= 33
    for path in paths:
        samples, rate = audio.read(path)
        sound = audio.load_sound(path)
        assert 1.0 < len(samples) / rate < 25.0, path.name
        assert sound.seconds == pytest.approx(len(samples) / rate, abs=0.01)
        with wave.open(BytesIO(sound.wav)) as file:
            assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
            assert file.getframerate() == rate, "it keeps its own rate"
            assert file.getnframes() * 2 + 44 == len(sound.wav)


def test_the_demo_folder_has_no_errors_and_streaming_headers_are_notes() -> None:
    found = Counter((f.severity, f.code) for f in audio.check_folder(DEMO))
    assert not [key for key in found if key[0] == "error"]
    assert found["info", "streaming-header"] > 10


def test_real_voices_measure_within_what_voices_do() -> None:
    for path in sorted((DEMO / "data_synthesis").rglob("*.wav")):
        m = audio.measure(*audio.read(path))
        assert m.f0_hz is not None and 70 < m.f0_hz < 400, path.name
        assert m.rate_hz is not None and 1.5 < m.rate_hz < 8.0, path.name
        assert m.snr_db is not None and m.snr_db > 5, path.name
