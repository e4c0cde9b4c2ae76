"""A clip's length is read off its header where the header can be trusted, and found by decoding where it cannot."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest
import soundfile

from overtone import audio
from overtone.audio import _sound
from overtone.errors import AudioError


def put(path: Path, rate: int = 16_000, seconds: float = 0.5, channels: int = 1, **more: str) -> Path:
    samples = np.zeros((round(rate * seconds), channels), np.float32)
    soundfile.write(path, samples, rate, **more)
    return path


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.wav", {"subtype": "PCM_16"}), ("a.wav", {"subtype": "PCM_24"}), ("a.wav", {"subtype": "PCM_U8"})],
)
def test_a_plain_wav_is_not_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: dict[str, str]
) -> None:
    monkeypatch.setattr(_sound, "load_sound", lambda *a, **k: pytest.fail("it was decoded"))
    assert audio.probe(put(tmp_path / name, 22_050, 1.25, 2, **kind)) == pytest.approx(1.25, abs=1e-4)


@pytest.mark.parametrize(("name", "kind"), [("a.flac", {}), ("a.wav", {"subtype": "FLOAT"}), ("a.ogg", {})])
def test_other_files_are_decoded(tmp_path: Path, name: str, kind: dict[str, str]) -> None:
    assert audio.probe(put(tmp_path / name, **kind)) == pytest.approx(0.5, abs=1e-3)


def test_a_cut_file_is_refused_and_the_header_of_a_stream_is_not_believed(tmp_path: Path) -> None:
    path = put(tmp_path / "a.wav", seconds=1.0)
    whole = path.read_bytes()
    path.write_bytes(whole[: 44 + 16_000])  # half the samples
    with pytest.raises(AudioError, match="truncated: 16000 of the 32000 bytes"):
        audio.probe(path)
    path.write_bytes(whole[:40] + b"\xff\xff\xff\xff" + whole[44:])  # streamed
    assert audio.probe(path) == pytest.approx(1.0)


@pytest.mark.parametrize("data", [None, b"", b"RIFF\x00\x00\x00\x00WAVEfmt ", b"not a sound"])
def test_what_cannot_be_read_is_the_error_that_decoding_gives(tmp_path: Path, data: bytes | None) -> None:
    path = tmp_path / "a.wav"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(AudioError) as decoded:
        audio.load_sound(path, name="clip 7")
    with pytest.raises(AudioError, match=re.escape(str(decoded.value))):
        audio.probe(path, name="clip 7")


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.wav")
    with pytest.raises(AudioError, match="not a regular file"):
        audio.probe(tmp_path / "a.wav")


def test_a_clip_that_is_too_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AudioError, match="too long"):
        audio.probe(put(tmp_path / "a.wav", 1_000, audio.MAX_SECONDS + 1))
