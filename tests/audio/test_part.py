"""A part of a long file, and one of its channels."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import soundfile

from overtone import audio
from overtone.errors import AudioError

RATE = 8_000


@pytest.fixture
def stereo(tmp_path: Path) -> Path:
    """Ten seconds: the second in which a sample lies on the left, its negative on the right."""
    seconds = np.repeat(np.arange(10) / 100, RATE).astype(np.float32)
    path = tmp_path / "stereo.wav"
    soundfile.write(path, np.stack([seconds, -seconds], axis=1), RATE, subtype="PCM_24")
    return path


def test_a_part_is_of_the_asked_times_and_channel(stereo: Path) -> None:
    left, rate = audio.read_part(stereo, 2.5, 4.0, channel=0)
    assert rate == RATE and len(left) == 12_000
    assert left[:4_000] == pytest.approx(0.02, abs=1e-6) and left[4_000:] == pytest.approx(0.03, abs=1e-6)
    assert audio.read_part(stereo, 2.5, 4.0, channel=1)[0] == pytest.approx(-left, abs=1e-6)
    assert audio.read_part(stereo, 2.5, 4.0)[0] == pytest.approx(0, abs=1e-6)
    assert len(audio.read_part(stereo, 9.0)[0]) == RATE
    assert len(audio.read_part(stereo, 9.0, 10.05)[0]) == RATE  # a table rounds its times


def test_a_part_of_a_file_above_the_limit_of_whole_files_is_read(tmp_path: Path) -> None:
    path = tmp_path / "long.flac"
    soundfile.write(path, np.zeros(int(RATE * (audio.MAX_SECONDS + 20)), np.float32), RATE)
    with pytest.raises(AudioError, match="too long"):
        audio.read(path)
    assert len(audio.read_part(path, audio.MAX_SECONDS + 10, audio.MAX_SECONDS + 11)[0]) == RATE
    with pytest.raises(AudioError, match="too long"):
        audio.read_part(path)


@pytest.mark.parametrize(
    ("start", "end", "channel", "why"),
    [
        (1.0, 1.0, 0, "no sound between 1 and 1"),
        (-1.0, 1.0, 0, "no sound between -1 and 1"),
        (9.0, 11.0, 0, "it ends before 11.00 s"),
        (20.0, 21.0, 0, "it ends before 21.00 s"),
        (0.0, 1.0, 2, "it has 2 channels, and channel 3 is wanted"),
    ],
)
def test_a_part_that_the_file_lacks_is_an_error(stereo: Path, start: float, end: float, channel: int, why: str) -> None:
    with pytest.raises(AudioError, match=why):
        audio.read_part(stereo, start, end, channel=channel)


def test_what_is_no_sound_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "text.wav").write_text("not a sound at all")
    os.mkfifo(tmp_path / "pipe.wav")
    for name, why in (
        ("text.wav", "not a sound file"),
        ("pipe.wav", "not a regular file"),
        ("none.wav", "no such file"),
    ):
        with pytest.raises(AudioError, match=why):
            audio.read_part(tmp_path / name, 0.0, 1.0)
    (tmp_path / "cut.wav").write_bytes(b"RIFF\0\0\0\0WAVEfmt ")
    with pytest.raises(AudioError, match=r"cut\.wav: it is damaged or truncated"):
        audio.read_part(tmp_path / "cut.wav", 0.0, 1.0)
