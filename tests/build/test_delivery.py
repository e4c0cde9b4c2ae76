"""Deliveries and scenes keep their promise: a target clip differs from its neutral twin in the direction it names."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from rapidfuzz.distance import Levenshtein

from overtone import audio
from overtone.audio import Measures
from overtone.build.make import Built
from overtone.build.scenes import SCENES, scene
from overtone.build.script import Script
from overtone.cues import CUES
from overtone.embedded import present

pytestmark = pytest.mark.local
Starter = tuple[Path, Built]

# measure, direction, least difference (a factor for Hz and seconds, a difference for dB, shares and semitones)
PROMISES: dict[str, tuple[tuple[str, str, float], ...]] = {
    "child": (("f0_hz", "×>", 1.35), ("centroid_hz", "×>", 1.05)),
    "elderly": (("seconds", "×>", 1.15), ("f0_hz", "×<", 0.93), ("hnr_db", "+<", -0.5)),
    "hoarse": (("hnr_db", "+<", -1.0), ("voiced", "+<", -0.15)),
    "breath": (("seconds", "×>", 1.3), ("voiced", "+<", -0.08)),
    "tired": (("seconds", "×>", 1.1), ("rms_dbfs", "+<", -3), ("f0_hz", "×<", 0.93), ("f0_range_st", "+<", -0.5)),
    "sobbing": (("seconds", "×>", 1.5), ("rms_dbfs", "+<", -4), ("f0_range_st", "+>", 2)),
    "happy": (("f0_hz", "×>", 1.1), ("rms_dbfs", "+>", 2), ("f0_range_st", "+>", 0.5), ("seconds", "×<", 0.97)),
    "sad": (("f0_hz", "×<", 0.95), ("rms_dbfs", "+<", -5), ("seconds", "×>", 1.15), ("tilt_db_oct", "+<", -1)),
    "surprise": (("f0_hz", "×>", 1.2), ("f0_range_st", "+>", 1), ("rms_dbfs", "+>", 1)),
    "angry": (("rms_dbfs", "+>", 3), ("tilt_db_oct", "+>", 1), ("seconds", "×<", 0.92)),
    "fear": (("f0_hz", "×>", 1.15), ("seconds", "×<", 0.9)),
    "disgust": (("f0_hz", "×<", 0.95), ("seconds", "×>", 1.1)),
    "shout": (("rms_dbfs", "+>", 4), ("f0_hz", "×>", 1.25), ("tilt_db_oct", "+>", 1)),
    "whisper": (("voiced", "+<", -0.3), ("rms_dbfs", "+<", -5)),
    "fast": (("seconds", "×<", 0.72), ("rate_hz", "×>", 1.2)),
    "slow": (("seconds", "×>", 1.45), ("rate_hz", "×<", 0.85)),
    "cough": (("seconds", "+>", 1.5),),
    "sigh": (("seconds", "+>", 1.4), ("rms_dbfs", "+<", -1)),
    "laughter": (("seconds", "+>", 2.0), ("f0_hz", "×>", 1.08)),
    "yawn": (("seconds", "+>", 1.9),),
    "moan": (("seconds", "+>", 1.9), ("voiced", "+>", 0.05)),
}


def _path(out: Path, script: Script, style: str) -> Path:
    return out / "data_synthesis/audio" / script.file_name(style)


def _measure(out: Path, script: Script, style: str) -> Measures:
    return audio.measure(*audio.read(_path(out, script, style)))


@pytest.mark.parametrize("slug", sorted(PROMISES))
def test_a_delivery_moves_as_it_promises(starter: Starter, scripts: tuple[Script, ...], slug: str) -> None:
    out, _ = starter
    script = next(s for s in scripts if s.cue == slug)
    target, neutral = _measure(out, script, "target"), _measure(out, script, "neutral")
    for name, how, least in PROMISES[slug]:
        new, old = getattr(target, name), getattr(neutral, name)
        moved = new / old if how[0] == "×" else new - old
        assert moved > least if how[1] == ">" else moved < least, f"{slug} {name}: {old:.2f} → {new:.2f}"


def test_every_cue_is_measured_somewhere_here() -> None:
    scenes = {c.slug for c in CUES if c.dimension == "environment"}
    assert set(PROMISES) | {"male", "female"} | scenes == {c.slug for c in CUES}
    assert set(SCENES) == scenes


@pytest.mark.parametrize("slug", ["male", "female"])
def test_a_mans_voice_is_lower_than_a_womans(starter: Starter, scripts: tuple[Script, ...], slug: str) -> None:
    script = next(s for s in scripts if s.cue == slug)
    pitch = {s: _measure(starter[0], script, s).f0_hz or 0.0 for s in ("target", "alternative")}
    man, woman = ("target", "alternative") if slug == "male" else ("alternative", "target")
    assert pitch[man] < 145 < 160 < pitch[woman]


@pytest.mark.parametrize("slug", sorted(SCENES))
def test_a_scene_lies_ten_decibel_under_the_same_speech(
    starter: Starter, scripts: tuple[Script, ...], slug: str
) -> None:
    script = next(s for s in scripts if s.cue == slug)
    mixed, _ = audio.read(_path(starter[0], script, "target"))
    speech, _ = audio.read(_path(starter[0], script, "neutral"))
    assert len(mixed) == len(speech)
    turned_down = float(mixed @ speech / (speech @ speech))  # 1 unless the mix had to stay under full scale
    background = mixed - turned_down * speech
    ratio = 10 * np.log10(np.sum((turned_down * speech) ** 2) / np.sum(background**2))
    assert 9.0 < ratio < 11.0
    assert -22 < 20 * np.log10(np.sqrt(np.mean(speech**2))) < -19.5  # a peaky voice stops short of full scale


def test_ordinary_shouted_and_sad_clips_have_the_levels_of_recorded_ones(
    starter: Starter, scripts: tuple[Script, ...]
) -> None:
    for slug, style, low, high in (
        ("shout", "target", -22, -20), ("sad", "target", -33, -31), ("sobbing", "target", -33, -30),
        ("happy", "neutral", -27, -25), ("fast", "target", -27, -25), ("whisper", "target", -33, -31),
    ):  # fmt: skip
        script = next(s for s in scripts if s.cue == slug)
        assert low < _measure(starter[0], script, style).rms_dbfs < high, slug


def test_no_sound_is_clipped_or_silent(starter: Starter) -> None:
    for path in starter[0].rglob("*.wav"):
        samples, _ = audio.read(path)
        assert 0.02 < float(np.abs(samples).max()) < 0.999, path.name


def test_scenes_can_be_told_apart_by_sound_alone() -> None:
    """The nearest of sixteen averages, over loudness curve and spectrum, names nearly every unheard scene."""
    rate, n = 24_000, 24_000 * 4
    known = {
        s: np.mean([_print(scene(s, n, rate, np.random.default_rng(k)), rate) for k in (1, 2)], axis=0) for s in SCENES
    }
    right = 0
    for slug in SCENES:
        heard = _print(scene(slug, n, rate, np.random.default_rng(9)), rate)
        right += min(known, key=lambda s: float(np.linalg.norm(known[s] - heard))) == slug
    assert right >= 15


def _print(x: np.ndarray, rate: int) -> np.ndarray:
    frames = np.lib.stride_tricks.sliding_window_view(x, 1024)[::512] * np.hanning(1024)
    power = np.abs(np.fft.rfft(frames, axis=1)) ** 2
    edges = np.searchsorted(np.fft.rfftfreq(1024, 1 / rate), 60 * 2 ** np.arange(0, 7.6, 0.5))
    bands = np.stack([power[:, a : max(b, a + 1)].sum(axis=1) for a, b in itertools.pairwise(edges)], axis=1)
    db = 10 * np.log10(bands + 1e-6)
    return np.concatenate([db.mean(axis=0), 2 * db.std(axis=0)])


def test_the_recogniser_still_understands_the_words(starter: Starter, scripts: tuple[Script, ...]) -> None:
    if not present("moonshine_voice"):
        pytest.skip("the embedded models are not installed")
    from overtone.embedded.recogniser import transcribe

    def words(text: str) -> list[str]:
        return re.findall(r"[a-z']+", text.lower())

    wrong = total = 0
    for script in scripts[::6]:
        for style in script.styles:
            if script.cue_in(style) and script.cue_in(style).slug == "whisper":  # type: ignore[union-attr]
                continue
            heard = transcribe(*audio.read(_path(starter[0], script, style)))
            wrong += Levenshtein.distance(words(script.words), words(heard))
            total += len(words(script.words))
    assert wrong / total < 0.35
