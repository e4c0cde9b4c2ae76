"""A rebuild is the same set when it measures the same, whatever its bytes; what moved further is named."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from overtone import audio
from overtone.build.rebuild import TOLERANCES, compare, rebuild_and_compare
from overtone.errors import DataError

RATE = 24_000
Change = Callable[[np.ndarray], np.ndarray]


def voice(f0: float, seconds: float = 2.0) -> np.ndarray:
    """Pulses through two resonances, with a syllable's rise and fall: something to measure."""
    t = np.arange(int(seconds * RATE)) / RATE
    tone = sum(np.sin(2 * np.pi * f0 * k * t) / k**1.2 for k in range(1, 40) if f0 * k < 9000)
    x = np.asarray(tone) * (0.25 + 0.75 * np.abs(np.sin(2 * np.pi * 1.7 * t)))
    return np.asarray(0.05 * x / np.sqrt((x**2).mean()))


def write_set(folder: Path, clips: dict[str, np.ndarray]) -> Path:
    made = []
    for name, x in clips.items():
        data = audio.encode_wav(x, RATE)
        path = folder / "data_synthesis" / "audio" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        made.append(
            {
                "path": f"data_synthesis/audio/{name}", "sha256": hashlib.sha256(data).hexdigest(),
                "seconds": len(x) / RATE, "case_id": name, "style": "target", "cue": "sad", "a later field": 1,
            }
        )  # fmt: skip
    (folder / "manifest.json").write_bytes(msgspec.json.encode({"name": "open", "licence": "x", "clips": made}))
    return folder


def tilted(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.convolve(x, [1.0, -0.7], "same"))


def test_other_rounding_is_no_difference(tmp_path: Path) -> None:
    x, noise = voice(120.0), np.random.default_rng(1).normal(0, 2 / 32768, 2 * RATE)
    one = write_set(tmp_path / "one", {"a.wav": x})
    two = write_set(tmp_path / "two", {"a.wav": x + noise})
    assert (one / "data_synthesis/audio/a.wav").read_bytes() != (two / "data_synthesis/audio/a.wav").read_bytes()
    assert compare(one, two, words=False) == []


@pytest.mark.parametrize(
    ("measure", "change"),
    [
        ("duration", lambda x: x[: int(0.95 * len(x))]),
        ("level", lambda x: 1.12 * x),
        ("pitch", lambda x: voice(126.0)),
        ("spectrum", tilted),
    ],
)
def test_what_moved_further_is_named(tmp_path: Path, measure: str, change: Change) -> None:
    one = write_set(tmp_path / "one", {"a.wav": voice(120.0)})
    two = write_set(tmp_path / "two", {"a.wav": change(voice(120.0))})
    found = [f for f in compare(one, two, words=False) if f.reason.startswith(f"its {measure} ")]
    assert len(found) == 1 and found[0].bound == TOLERANCES[measure].most
    assert found[0].value is not None and found[0].value > TOLERANCES[measure].most
    assert found[0].subject == "data_synthesis/audio/a.wav"


def test_clips_that_only_one_of_the_two_has_are_named(tmp_path: Path) -> None:
    one = write_set(tmp_path / "one", {"a.wav": voice(120.0), "b.wav": voice(130.0)})
    two = write_set(tmp_path / "two", {"a.wav": voice(120.0), "c.wav": voice(130.0)})
    assert {(f.subject[-5:], "rebuild only" in f.reason) for f in compare(one, two, words=False)} == {
        ("b.wav", False),
        ("c.wav", True),
    }


def test_a_folder_that_is_no_set_is_refused(tmp_path: Path) -> None:
    one = write_set(tmp_path / "one", {"a.wav": voice(120.0)})
    with pytest.raises(DataError, match="cannot be read"):
        compare(one, tmp_path)
    (tmp_path / "manifest.json").write_text('{"clips": 3}')
    with pytest.raises(DataError, match="not a manifest"):
        compare(one, tmp_path)


def test_a_manifest_cannot_lead_outside_its_folder(tmp_path: Path) -> None:
    one = write_set(tmp_path / "one", {"a.wav": voice(120.0)})
    told = (one / "manifest.json").read_text().replace("data_synthesis/audio/a.wav", "../secret.wav")
    (one / "manifest.json").write_text(told)
    with pytest.raises(DataError, match="leaves its folder"):
        compare(one, one)


@pytest.mark.local
def test_a_set_made_again_is_the_same_and_a_changed_clip_is_found(tmp_path: Path) -> None:
    from overtone.build.builder import build

    out = tmp_path / "set"
    build("open", out, only=("slow",), per_cue=1, jobs=1, gates=False)
    assert rebuild_and_compare(out, 1, tmp_path / "again") == []
    path = next((out / "data_synthesis" / "audio").rglob("*_target.wav"))
    samples, rate = audio.read(path)
    path.write_bytes(audio.encode_wav(audio.resample(samples, rate, int(rate * 1.1)), rate))
    found = rebuild_and_compare(out, None, tmp_path / "third")
    assert {f.subject.rpartition("/")[2] for f in found} == {path.name}
    assert {"duration", "pitch"} <= {f.reason.split()[1] for f in found}
