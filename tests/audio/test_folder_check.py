"""A folder check finds each fault once, says what to do, and trusts no name in it."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest

from overtone import audio
from overtone.errors import DataError

from .wavs import pack, tone, wav


def put(root: Path, name: str, data: bytes) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def sound(hz: float = 220.0, rate: int = 16000, level: float = 0.5) -> bytes:
    return audio.encode_wav(tone(0.3, rate, hz, level), rate)


def codes(root: Path) -> set[tuple[str, str, str]]:
    return {(f.severity, f.code, f.path) for f in audio.check_folder(root)}


def test_a_clean_folder_has_no_findings(tmp_path: Path) -> None:
    put(tmp_path, "a.wav", sound(200))
    put(tmp_path, "deep/er/b.wav", sound(300))
    assert audio.check_folder(tmp_path) == []


@pytest.mark.parametrize(
    ("data", "severity", "code"),
    [
        (b"", "error", "empty"),
        (wav(b""), "error", "empty"),
        (b"no sound at all", "error", "foreign"),
        (sound()[:30], "error", "truncated"),
        (sound()[:3000], "error", "truncated"),
        (wav(bytes(8000)), "error", "silent"),
        (audio.encode_wav(np.clip(tone(level=3.0), -1, 1), 16000), "warning", "clipped"),
        (sound(rate=4000), "error", "wrong-rate"),
        (wav(pack(tone(), 16, False), claim=0xFFFFFFFF), "info", "streaming-header"),
        (wav(pack(np.array([np.nan], np.float32), 32, True), bits=32, code=3), "error", "not-finite"),
        (wav(bytes(2 * 1000 * 601), rate=1000), "error", "too-long"),
    ],
)
def test_each_fault_has_its_code(tmp_path: Path, data: bytes, severity: str, code: str) -> None:
    put(tmp_path, "x.wav", data)
    assert codes(tmp_path) == {(severity, code, "x.wav")}


def test_mixed_rates_are_a_note_and_the_same_sound_twice_a_warning(tmp_path: Path) -> None:
    put(tmp_path, "a.wav", sound())
    put(tmp_path, "b.wav", wav(sound()[44:], claim=0))  # another header, the same samples
    put(tmp_path, "c.wav", sound(rate=24000))
    found = {f.code: f for f in audio.check_folder(tmp_path)}
    assert found["duplicate"].path == "b.wav" and "a.wav" in found["duplicate"].text
    assert found["mixed-rates"].severity == "info" and "24000 Hz × 1" in found["mixed-rates"].text


def echomind(root: Path) -> None:
    """A small folder in EchoMind's layout, whole."""
    script = {"case_id": "id_1"}
    for n, style in enumerate(("target", "neutral")):
        script[f"{style}_audio_info"] = {  # type: ignore[assignment]
            f"{style}_input_audio_file": f"sad/id_1 {style}.wav",
            f"{style}_response_audio_file": f"sad/id_1 {style} response.wav",
        }
        put(root, f"data_synthesis/audio/sad/id_1 {style}.wav", sound(200 + 10 * n))
        put(root, f"audio_response/sad/id_1 {style} response.wav", sound(300 + 10 * n))
    put(root, "data_synthesis/script_info_synthesis.json", msgspec.json.encode([script]))
    question = {"question_id": "q1", "audio_dir": "sad", "audio_name": "id_1 target.wav"}
    put(root, "data_synthesis/MCQ/understanding.json", msgspec.json.encode([question]))


def test_a_whole_benchmark_folder_is_clean_and_so_is_its_data_half(tmp_path: Path) -> None:
    echomind(tmp_path)
    assert codes(tmp_path) == set()
    assert codes(tmp_path / "data_synthesis") == set()


def test_what_the_labels_name_must_be_there_and_what_is_there_be_named(tmp_path: Path) -> None:
    echomind(tmp_path)
    (tmp_path / "data_synthesis/audio/sad/id_1 target.wav").unlink()
    (tmp_path / "audio_response/sad/id_1 neutral response.wav").rename(
        tmp_path / "audio_response/id_1 neutral response.wav"
    )
    put(tmp_path, "data_synthesis/audio/sad/stray.wav", sound(900))
    assert codes(tmp_path) == {
        ("error", "missing", "data_synthesis/audio/sad/id_1 target.wav"),  # once, though two files name it
        ("warning", "misplaced", "audio_response/sad/id_1 neutral response.wav"),
        ("warning", "unlabelled", "data_synthesis/audio/sad/stray.wav"),
    }


def test_paths_that_leave_the_folder_are_errors(tmp_path: Path) -> None:
    root = tmp_path / "root"
    echomind(root)
    put(tmp_path, "secret.wav", sound(1000))
    (root / "link.wav").symlink_to(tmp_path / "secret.wav")
    (root / "up").symlink_to(tmp_path)
    questions = [{"audio_dir": "../../..", "audio_name": "secret.wav"}, {"audio_dir": "/etc", "audio_name": "passwd"}]
    put(root, "data_synthesis/MCQ/reasoning.json", msgspec.json.encode(questions))
    found = [f for f in audio.check_folder(root) if f.severity == "error"]
    assert {f.code for f in found} == {"escapes"}
    assert len(found) == 4


def test_json_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    put(tmp_path, "script_info_x.json", b"[{")
    put(tmp_path, "MCQ/reasoning.json", b'{"not": "a list"}')
    put(tmp_path, "MCQ/deep.json", b"[" * 100_000)
    put(tmp_path, "MCQ/odd.json", b'[null, 3, {"audio_name": 4}, {"audio_dir": 1, "audio_name": "x.wav"}]')
    assert codes(tmp_path) == {
        ("error", "unreadable", "script_info_x.json"),
        ("error", "unreadable", "MCQ/reasoning.json"),
        ("error", "unreadable", "MCQ/deep.json"),
        ("error", "missing", "audio/x.wav"),
    }


def test_a_table_labels_sounds_too(tmp_path: Path) -> None:
    put(tmp_path, "a.wav", sound(200))
    put(tmp_path, "b.wav", sound(300))
    put(tmp_path, "labels.csv", b'file,label\n"audio/a.wav",happy\n')
    assert codes(tmp_path) == {("warning", "unlabelled", "b.wav")}


def test_hostile_names_are_reported_and_can_be_written_as_json(tmp_path: Path) -> None:
    for name in (b"a\x1b[31m.wav", b"[red]b.wav", b"\xff\xfe.wav"):
        with open(os.path.join(os.fsencode(tmp_path), name), "wb"):  # noqa: PTH118, PTH123 - a name that is no text
            pass
    found = audio.check_folder(tmp_path)
    assert [f.code for f in found] == ["empty"] * 3
    assert len(msgspec.json.decode(msgspec.json.encode(found))) == 3


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not a folder"):
        audio.check_folder(tmp_path / "none")


def test_four_hundred_files_take_less_than_six_seconds(tmp_path: Path) -> None:
    clip = np.random.default_rng(5).normal(0, 0.1, 24000 * 5).astype(np.float32)
    for n in range(400):
        put(tmp_path, f"{n}.wav", audio.encode_wav(np.roll(clip, n), 24000))
    began = time.perf_counter()
    assert audio.check_folder(tmp_path) == []
    assert time.perf_counter() - began < 6.0


def built(root: Path, names: tuple[str, ...]) -> None:
    """Sounds of different pitch, and the manifest that a build writes beside them."""
    for n, name in enumerate(names):
        put(root, name, sound(200 + 20 * n))
    clips = [{"path": n, "sha256": hashlib.sha256((root / n).read_bytes()).hexdigest(), "voice": "a"} for n in names]
    put(root, "manifest.json", msgspec.json.encode({"name": "open", "clips": clips}))


def test_a_changed_an_exchanged_and_a_missing_file_of_a_built_set_are_errors(tmp_path: Path) -> None:
    built(tmp_path, ("a.wav", "b.wav", "c.wav", "d.wav", "e.wav", "left_out/f.wav"))
    assert codes(tmp_path) == set()
    first, second = (tmp_path / "a.wav").read_bytes(), (tmp_path / "b.wav").read_bytes()
    put(tmp_path, "a.wav", second)
    put(tmp_path, "b.wav", first)
    flipped = bytearray((tmp_path / "c.wav").read_bytes())
    flipped[1000] ^= 1
    put(tmp_path, "c.wav", bytes(flipped))
    (tmp_path / "d.wav").unlink()
    (tmp_path / "left_out/f.wav").unlink()  # nothing is asked of it
    changed = {("error", "changed", name) for name in ("a.wav", "b.wav", "c.wav")}
    assert codes(tmp_path) == {*changed, ("error", "missing", "d.wav")}
    texts = {f.path: f.text for f in audio.check_folder(tmp_path)}
    assert "it holds the sound of b.wav" in texts["a.wav"] and "SHA-256" in texts["c.wav"]


@pytest.mark.parametrize("content", [b"[]", b"{", b'{"clips": 3}', b'{"name": "mine", "files": []}'])
def test_a_manifest_of_another_form_lists_nothing(tmp_path: Path, content: bytes) -> None:
    put(tmp_path, "a.wav", sound())
    put(tmp_path, "manifest.json", content)
    assert codes(tmp_path) == set()
