"""Only WAV, FLAC, Ogg and MP3 are opened as sounds, by what is in the file and not by its name."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import soundfile

from overtone import audio
from overtone.audio import media_type
from overtone.errors import AudioError

TONE = 0.1 * np.sin(np.arange(8_000) / 5).astype(np.float32)
OPENED = {"WAV": "audio/wav", "WAVEX": "audio/wav", "FLAC": "audio/flac", "OGG": "audio/ogg", "MP3": "audio/mpeg"}


def written(form: str, subtype: str | None = None) -> bytes:
    out = io.BytesIO()
    soundfile.write(out, TONE, 16_000, format=form, subtype=subtype)
    return out.getvalue()


def tagged(data: bytes, size: int = 300, footer: bool = False) -> bytes:
    """The data behind an ID3v2 tag."""
    length = bytes(size >> 7 * place & 127 for place in (3, 2, 1, 0))
    head = b"ID3\x04\x00" + (b"\x10" if footer else b"\x00") + length
    return head + bytes(size) + (b"3DI" + head[3:] if footer else b"") + data


@pytest.mark.parametrize("form", [*OPENED, "OPUS"])
def test_the_four_kinds_are_opened(form: str) -> None:
    data = written("OGG", "OPUS") if form == "OPUS" else written(form)
    assert media_type(io.BytesIO(data)) == OPENED.get(form, "audio/ogg")
    samples, rate = audio.decode(data)
    assert rate == 16_000 and len(samples) >= 8_000


def test_a_tag_before_an_mp3_is_passed_over() -> None:
    data = written("MP3")
    for head in (tagged(data), tagged(data, 0), tagged(tagged(data))):
        assert media_type(io.BytesIO(head)) == "audio/mpeg"
    assert media_type(io.BytesIO(tagged(data, footer=True))) == "audio/mpeg"
    assert len(audio.decode(tagged(data))[0]) >= 8_000


@pytest.mark.parametrize("form", sorted(set(soundfile.available_formats()) - set(OPENED)))
def test_no_other_kind_is_opened(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # one of them leaves a file where it is written
    try:
        data = written(form, "PCM_16")
    except (ValueError, TypeError, soundfile.LibsndfileError):
        data = written(form)
    path = tmp_path / "clip.wav"
    path.write_bytes(data)
    monkeypatch.setattr(soundfile, "SoundFile", lambda *_: pytest.fail("libsndfile has seen it"))
    for hidden in (data, tagged(data)):
        path.write_bytes(hidden)
        for use in (audio.read, audio.load_sound, audio.probe):
            with pytest.raises(AudioError, match="not a sound file in WAV, FLAC, Ogg or MP3"):
                use(path)


@pytest.mark.parametrize(
    "head",
    [
        b"", b"R", b"<html>", b"\x7fELF", b"SQLite format 3\0", b"-----BEGIN OPENSSH", b"FORM\0\0\0\0AIFF",
        b"RIFF\0\0\0\0AVI ", b"RIFX\0\0\0\0WAVE", b"RF64\0\0\0\0WAVE",
        b"\xff\xf1\x50\x80", b"\xff\xff\xff\xff", b"\xff\xfb", b"\xff\xe8\x90\x00",
        b"ID3", b"ID3\x04\0\0", b"ID3\x04\0\0\xff\xff\xff\xff\xff\xfb\x90\0", b"ID3\x04\0\0\x7f\x7f\x7f\x7fxxxx",
        b"ID3\x04\0\0\0\0\0\0" * 40,
    ],
)  # fmt: skip
def test_what_begins_otherwise_is_no_sound(head: bytes) -> None:
    assert media_type(io.BytesIO(head)) == ""
