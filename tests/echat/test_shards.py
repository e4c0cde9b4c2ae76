"""Shards: a key is there once, nothing that a record holds is lost, and what has changed is read anew."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest

from overtone import audio
from overtone.echat.data import containers, shards
from overtone.echat.data.exchange_records import Record
from overtone.errors import DataError

DEEP = b"[" * 100_000 + b"]" * 100_000


def wav(level: float) -> bytes:
    return audio.encode_wav(np.full(1600, level, np.float32), 16_000)


def tar(path: Path, *members: tuple[str, bytes]) -> Path:
    with tarfile.open(path, "w") as file:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            file.addfile(info, io.BytesIO(data))
    return path


@pytest.fixture
def thrice(tmp_path: Path) -> list[Record]:
    """Two records of one key, another between them, each with a sound of its own."""
    for number, name in enumerate("abc", start=1):
        (tmp_path / f"{name}.wav").write_bytes(wav(number / 10))
    return [Record(key, key, f"{name}.wav", home=str(tmp_path)) for key, name in (("k", "a"), ("m", "c"), ("k", "b"))]


@pytest.mark.parametrize("write", [containers.write_shards, containers.write_combine])
def test_a_key_is_written_once_to_a_tar(write, thrice: list[Record], tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"_000000\.tar: duplicate key 'k'; give each record its own"):
        write(tmp_path / "out", thrice)
    assert not list((tmp_path / "out").rglob("*.tar"))
    write(tmp_path / "out", thrice, per_shard=2)  # in two tars it is
    levels = [containers.open_audio(record).max() for record in containers.read(tmp_path / "out")]
    assert levels == pytest.approx([0.1, 0.3, 0.2], abs=1e-3)


def test_a_key_that_comes_again_is_told(tmp_path: Path) -> None:
    path = tar(tmp_path / "x.tar", ("k.txt", b"1"), ("k.wav", wav(0.1)), ("m.txt", b"2"), ("k.wav", wav(0.2)))
    with pytest.raises(DataError, match=r"x\.tar at byte \d+: duplicate key 'k'"):
        list(containers.read(path))
    with pytest.raises(DataError, match=r"x\.tar: duplicate member k\.wav"):
        shards.member(path, "k.wav")


def test_keys_that_begin_like_a_sounds_are_kept(tmp_path: Path) -> None:
    rest = {"wav_len": 3, "waveform": "saw", "wav_0": "x", "wavs": [1]}
    [path] = containers.write_shards(tmp_path, [Record("k", "yes", rest=rest)])
    [record] = containers.read(path)
    assert record.rest == rest


def test_the_half_of_a_record_in_a_cut_shard_is_not_read(thrice: list[Record], tmp_path: Path) -> None:
    [path] = containers.write_shards(tmp_path / "s", thrice[:2])
    with tarfile.open(path) as file:
        sound = file.getmember("m.wav")
    path.write_bytes(path.read_bytes()[: sound.offset_data + 100])
    records = containers.read(path)
    assert next(records).key == "k"
    with pytest.raises(DataError, match="incomplete or damaged after byte"):
        next(records)


def test_a_shard_written_anew_at_the_same_size_is_read_anew(tmp_path: Path) -> None:
    path = tar(tmp_path / "x.tar", ("a.wav", b"one"), ("b.wav", b"two"))
    assert shards.member(path, "b.wav") == b"two"
    tar(path, ("b.wav", b"new"), ("a.wav", b"old"))
    os.utime(path, ns=(1, 1))  # two writes may fall into one tick of the clock
    assert shards.member(path, "b.wav") == b"new"


def test_an_extra_nested_too_deeply_is_told(tmp_path: Path) -> None:
    path = tar(tmp_path / "x.tar", ("k.txt", b"yes"), ("k.extra", DEEP))
    with pytest.raises(DataError, match=r"x\.tar at byte 0 \(k\): unreadable text"):
        list(containers.read(path))
