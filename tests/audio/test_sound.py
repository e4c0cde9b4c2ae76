"""What is sent to a model is always the same shape of WAV, and unchanged where it already has it."""

from __future__ import annotations

import hashlib
import io
import wave
from pathlib import Path

import numpy as np
import pytest
import soundfile

from overtone import audio
from overtone.errors import AudioError

from .wavs import pack, tone, wav


def facts(data: bytes) -> tuple[int, int, int, int]:
    with wave.open(io.BytesIO(data)) as file:
        return file.getnchannels(), file.getsampwidth(), file.getframerate(), file.getnframes()


def test_a_file_that_is_already_right_passes_byte_for_byte(tmp_path: Path) -> None:
    data = audio.encode_wav(tone(), 16000)
    (tmp_path / "a.wav").write_bytes(data)
    sound = audio.load_sound(tmp_path / "a.wav")
    assert sound.wav == data
    assert sound.sha256 == hashlib.sha256(data).hexdigest()
    assert sound.seconds == 0.5


def test_a_streaming_header_is_made_true_and_the_samples_stay() -> None:
    body = pack(tone(), 16, False)
    sound = audio.load_sound(wav(body + b"\0", claim=0xFFFFFFFF))
    assert facts(sound.wav) == (1, 2, 16000, 8000)
    assert sound.wav[44:] == body
    assert len(sound.wav) == 44 + len(body)


def test_a_riff_size_that_lies_is_made_true() -> None:
    data = bytearray(audio.encode_wav(tone(), 16000))
    data[4:8] = b"\xff\xff\xff\xff"
    assert audio.load_sound(bytes(data)).wav == audio.encode_wav(tone(), 16000)


@pytest.mark.parametrize("rate", [8000, 24000, 44100, 48000, 96000])
def test_a_sound_keeps_its_own_rate_and_a_mono_one_its_very_bytes(rate: int) -> None:
    mono = audio.encode_wav(tone(0.5, rate), rate)
    assert audio.load_sound(mono).wav == mono
    stereo = np.repeat(tone(0.5, rate), 2)
    sound = audio.load_sound(wav(pack(stereo, 16, False), rate=rate, channels=2))
    assert facts(sound.wav)[:3] == (1, 2, rate)
    assert sound.seconds == pytest.approx(0.5, abs=1e-3)


@pytest.mark.parametrize(
    ("own", "limits", "sent"),
    [
        (48000, {"rate": 16000}, 16000),
        (8000, {"rate": 16000}, 16000),
        (48000, {"max_rate": 24000}, 24000),
        (16000, {"max_rate": 24000}, 16000),
    ],
)
def test_a_sound_is_resampled_where_a_rate_is_asked_for(own: int, limits: dict[str, int], sent: int) -> None:
    sound = audio.load_sound(audio.encode_wav(tone(0.5, own), own), **limits)  # type: ignore[arg-type]
    assert facts(sound.wav)[:3] == (1, 2, sent)
    assert sound.seconds == pytest.approx(0.5, abs=1e-3)


def test_a_flac_becomes_a_wav_with_the_same_sixteen_bit_values() -> None:
    held = io.BytesIO()
    soundfile.write(held, tone(), 16000, format="FLAC", subtype="PCM_16")
    want, _ = soundfile.read(io.BytesIO(held.getvalue()), dtype="int16")
    assert np.array_equal(np.frombuffer(audio.load_sound(held.getvalue()).wav[44:], "<i2"), want)


def test_writing_what_was_read_changes_no_value() -> None:
    values = np.array([-32768, -32767, -1, 0, 1, 32766, 32767], "<i2")
    samples, rate = audio.decode(wav(values.tobytes()))
    assert audio.encode_wav(samples, rate)[44:] == values.tobytes()


def test_writing_clips_and_refuses_what_is_not_finite_or_not_mono() -> None:
    assert np.array_equal(np.frombuffer(audio.encode_wav([2.0, -2.0], 16000)[44:], "<i2"), [32767, -32768])
    with pytest.raises(AudioError, match="NaN"):
        audio.encode_wav([np.nan], 16000)
    with pytest.raises(AudioError, match="channels"):
        audio.encode_wav(np.zeros((4, 2)), 16000)


def test_silence_is_as_long_as_asked_and_silent() -> None:
    sound = audio.silence(1.5)
    assert facts(sound.wav) == (1, 2, 16000, 24000)
    assert not any(sound.wav[44:])
    assert sound.seconds == 1.5
    assert facts(audio.silence(0.0).wav)[3] == 1


def test_an_empty_or_missing_file_is_called_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "empty.wav").write_bytes(b"")
    for file in ("empty.wav", "missing.wav"):
        with pytest.raises(AudioError) as caught:
            audio.load_sound(tmp_path / file, name=f"audio/{file}")
        assert str(caught.value).startswith(f"audio/{file}") and str(tmp_path) not in str(caught.value)
