"""Reading: every shape of WAV and the usual other formats become mono float32; every fault has its own words."""

from __future__ import annotations

import io
import os
import struct
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from overtone import audio
from overtone.errors import AudioError

from .wavs import pack, tone, wav

X = tone()


@pytest.mark.parametrize("extensible", [False, True])
@pytest.mark.parametrize("channels", [1, 2, 6])
@pytest.mark.parametrize(("bits", "code"), [(8, 1), (16, 1), (24, 1), (32, 1), (32, 3), (64, 3)])
def test_every_common_wav_form_gives_the_mean_of_its_channels(
    bits: int, code: int, channels: int, extensible: bool
) -> None:
    gains = np.linspace(0.2, 1.0, channels, dtype=np.float32)
    body = pack((X[:, None] * gains).reshape(-1), bits, code == 3)
    samples, rate = audio.decode(wav(body, bits=bits, code=code, channels=channels, extensible=extensible))
    assert rate == 16000
    assert samples.dtype == np.float32
    assert samples.shape == X.shape
    np.testing.assert_allclose(samples, X * gains.mean(), atol=0.01 if bits == 8 else 1e-4)


@pytest.mark.parametrize("bits", [8, 16, 24, 32])
def test_our_reader_agrees_with_libsndfile(bits: int) -> None:
    data = wav(pack(X, bits, False), bits=bits)
    theirs, _ = soundfile.read(io.BytesIO(data), dtype="float32")
    np.testing.assert_allclose(audio.decode(data)[0], theirs, atol=1e-7)


@pytest.mark.parametrize("claim", [0, 0xFFFFFFFF, 0x7FFFFFFF, 0xFFFFFFFF - 36])
def test_the_data_size_of_a_stream_is_clamped_to_the_file(claim: int) -> None:
    body = pack(X, 16, False)
    samples, _ = audio.decode(wav(body + b"\x01", claim=claim))  # an odd trailing byte is no sample
    assert len(samples) == len(X)


def test_chunks_before_and_after_the_data_are_not_samples() -> None:
    body = pack(X, 16, False)
    info = b"LIST" + struct.pack("<I", 5) + b"INFOx\0"  # odd sizes are padded
    samples, _ = audio.decode(wav(body, before=info, after=info))
    assert len(samples) == len(X)


def test_a_data_size_of_zero_before_another_chunk_is_no_stream() -> None:
    with pytest.raises(AudioError, match="data chunk is empty"):
        audio.decode(wav(b"", after=b"LIST" + struct.pack("<I", 4) + b"INFO"))


@pytest.mark.parametrize("kind", ["flac", "mp3", "ogg", "opus", "mulaw"])
def test_other_formats_are_read_through_libsndfile(kind: str) -> None:
    held = io.BytesIO()
    stereo = np.stack([X, X], axis=1)
    form = {"ogg": ("OGG", "VORBIS"), "opus": ("OGG", "OPUS"), "mulaw": ("WAV", "ULAW")}.get(kind, (kind.upper(), None))
    soundfile.write(held, stereo, 16000, format=form[0], subtype=form[1])
    samples, rate = audio.decode(held.getvalue())
    assert rate in (16000, 48000)
    assert len(samples) / rate == pytest.approx(0.5, abs=0.08)
    assert np.sqrt(np.mean(samples**2)) == pytest.approx(np.sqrt(np.mean(X**2)), rel=0.1)


def test_a_wanted_rate_is_given_and_the_tone_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(wav(pack(tone(1.0, 44100, 1000.0), 16, False), rate=44100))
    samples, rate = audio.read(path, rate=16000)
    assert (rate, len(samples)) == (16000, 16000)
    assert np.argmax(np.abs(np.fft.rfft(samples))) == 1000


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "file is empty"),
        (b"hello, this is text", "not a sound"),
        (b"RIFF\x00\x00\x00\x00WAVE", "no data chunk"),
        (wav(b""), "data chunk is empty"),
        (wav(b"\x01"), "data chunk is empty"),
        (wav(pack(X, 16, False))[:30], "cut short"),
        (wav(pack(X, 16, False))[:-2000], "truncated: 14000 of the 16000 bytes"),
        (wav(pack(X, 24, False), bits=24, claim=10**6), "truncated: 24000 of the 1000000 bytes"),
        (wav(pack(X, 16, False), rate=0), "rate is 0"),
        (wav(pack(X, 16, False), rate=7), "7 Hz"),
        (wav(pack(X, 16, False), channels=0), "0 channels"),
        (wav(pack(X, 16, False), channels=60000), "60000 channels"),
        (wav(pack(np.array([0, np.nan], np.float32), 32, True), bits=32, code=3), "NaN or infinite"),
        (wav(pack(np.array([0, np.inf], np.float32), 64, True), bits=64, code=3), "NaN or infinite"),
        (wav(bytes(2 * 1000 * 601), rate=1000), "too long"),
    ],
)
def test_each_fault_is_named_with_its_file(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "bad.wav"
    path.write_bytes(data)
    for use in (audio.read, audio.load_sound):
        with pytest.raises(AudioError, match=words) as caught:
            use(path)
        assert "bad.wav" in str(caught.value)


def test_what_is_missing_or_no_file_is_said_and_a_pipe_does_not_block(tmp_path: Path) -> None:
    with pytest.raises(AudioError, match="no such file"):
        audio.read(tmp_path / "none.wav")
    with pytest.raises(AudioError, match="not a regular file"):
        audio.read(tmp_path)
    os.mkfifo(tmp_path / "pipe.wav")
    with pytest.raises(AudioError, match="not a regular file"):
        audio.read(tmp_path / "pipe.wav")


def test_a_hostile_name_is_escaped_in_the_error() -> None:
    with pytest.raises(AudioError) as caught:
        audio.decode(b"", name="a\x1b]0;x\x07\n.wav")
    assert str(caught.value).isprintable()


def test_a_truncated_flac_is_refused() -> None:
    held = io.BytesIO()
    soundfile.write(held, np.random.default_rng(1).normal(0, 0.1, 160000).astype(np.float32), 16000, format="FLAC")
    with pytest.raises(AudioError):
        audio.decode(held.getvalue()[: len(held.getvalue()) // 2])


def test_a_decompression_bomb_is_refused_before_it_is_decoded() -> None:
    held = io.BytesIO()
    soundfile.write(held, np.zeros(16000 * 900, np.float32), 16000, format="FLAC")
    bomb = held.getvalue()
    assert len(bomb) < 1_000_000
    tracemalloc.start()
    began = time.perf_counter()
    with pytest.raises(AudioError, match="too long"):
        audio.decode(bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5_000_000
    assert time.perf_counter() - began < 1.0


def test_a_flac_that_hides_its_length_is_stopped_at_the_limit() -> None:
    held = io.BytesIO()
    soundfile.write(held, np.zeros(16000 * 60, np.float32), 16000, format="FLAC")
    data = bytearray(held.getvalue())
    data[21] &= 0xF0  # STREAMINFO's 36 bits of total samples: 0 means unknown
    data[22:26] = bytes(4)
    with pytest.raises(AudioError):
        audio.decode(bytes(data), max_seconds=5)


def test_the_byte_limit_holds_for_the_file_and_for_what_it_decodes_to(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(wav(pack(X, 16, False)))
    with pytest.raises(AudioError, match="too large"):
        audio.read(path, max_bytes=1000)
    with pytest.raises(AudioError, match="too large"):
        audio.read(path, max_bytes=len(X) * 3)  # the file fits, its floats do not


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.one_of(
        st.binary(max_size=200),
        st.binary(max_size=120).map(lambda tail: b"RIFF\xff\xff\xff\xffWAVEfmt \x10\x00\x00\x00" + tail),
        st.binary(max_size=80).map(lambda tail: b"fLaC" + tail),
        st.binary(max_size=80).map(lambda tail: b"OggS" + tail),
        st.tuples(st.integers(12, 43), st.binary(min_size=1, max_size=4)).map(
            lambda t: wav(pack(X[:64], 16, False))[: t[0]] + t[1] + wav(pack(X[:64], 16, False))[t[0] + len(t[1]) :]
        ),
        st.integers(0, 170).map(lambda n: wav(pack(X[:64], 16, False))[:n]),
    )
)
def test_no_bytes_raise_anything_but_an_audio_error_or_take_much_memory(data: bytes) -> None:
    for use in (audio.decode, audio.load_sound):
        tracemalloc.start()
        try:
            use(data)
        except AudioError as error:
            assert str(error)
        finally:
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert peak < 20_000_000


def test_reading_a_clip_is_fast(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(audio.encode_wav(tone(3.0), 16000))
    audio.read(path)
    times = []
    for _ in range(100):
        began = time.perf_counter()
        audio.read(path)
        times.append(time.perf_counter() - began)
    assert float(np.median(times)) < 0.001  # 0.1 ms on an idle core; the slack is for a busy machine
