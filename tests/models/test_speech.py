"""Speech in a reply: whole, repaired where only its header is wrong, or a failure."""

from __future__ import annotations

import base64
import io
import struct
import wave

import numpy as np
import pytest
import soundfile

from overtone.errors import ModelFailure
from overtone.models import _speech
from tests.servers import tone

WAV = tone()


def frames(wav: bytes) -> int:
    with wave.open(io.BytesIO(wav)) as file:
        return file.getnframes()


def test_a_whole_wav_is_left_as_it_is() -> None:
    assert _speech.whole_wav(WAV) is WAV
    with_more = WAV + b"LIST\x04\x00\x00\x00abcd"
    assert _speech.whole_wav(with_more) is with_more


@pytest.mark.parametrize("size", [0, 0x7FFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF - 36])
def test_a_streamed_header_gets_its_true_length(size: int) -> None:
    streamed = WAV[:4] + struct.pack("<I", 0xFFFFFFFF) + WAV[8:40] + struct.pack("<I", size) + WAV[44:]
    assert _speech.whole_wav(streamed) == WAV
    assert _speech.whole_wav(streamed + b"\x00") == WAV, "half a sample at the end goes"


@pytest.mark.parametrize("cut", [13, 30, 43, 44, 46, len(WAV) // 2, len(WAV) - 1])
def test_a_wav_cut_anywhere_is_truncated(cut: int) -> None:
    with pytest.raises(ModelFailure) as failure:
        _speech.whole_wav(WAV[:cut])
    assert (failure.value.reason, failure.value.retry) == ("truncated_audio", True)


@pytest.mark.parametrize("form", ["FLAC", "OGG", "MP3"])
def test_another_container_becomes_a_wav(form: str) -> None:
    samples = np.sin(np.arange(24_000) / 20) * 0.3
    out = io.BytesIO()
    soundfile.write(out, samples, 24_000, format=form)
    wav = _speech.from_base64(base64.b64encode(out.getvalue()).decode())
    assert wav[:4] == b"RIFF" and abs(frames(wav) - 24_000) < 3000


def test_bytes_of_no_known_kind_are_not_guessed_at() -> None:
    with pytest.raises(ModelFailure) as failure:
        _speech.whole_wav(b"\x01\x02\x03\x04" * 100)
    assert failure.value.reason == "malformed"


def test_a_data_url_is_read() -> None:
    assert _speech.from_base64("data:audio/wav;base64," + base64.b64encode(WAV).decode()) == WAV


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x00\x01\x02"])
def test_pcm_that_ends_inside_a_sample_is_truncated(data: bytes) -> None:
    with pytest.raises(ModelFailure, match="truncated_audio"):
        _speech.pcm_to_wav(data, 24_000)


def test_speech_over_the_limit_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_speech, "MAX_SPEECH_BYTES", 1000)
    with pytest.raises(ModelFailure, match="too_large"):
        _speech.from_base64(base64.b64encode(WAV).decode())
