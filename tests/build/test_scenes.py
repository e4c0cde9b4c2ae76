"""Scenes: one for every environment cue, told apart by sound, varied, repeatable, quick; music that differs by mood."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import numpy as np
import pytest

from overtone.build.scenes import MOODS, SCENES, scene
from overtone.build.script import MANNERS
from overtone.cues import CUES
from overtone.errors import UsageError

RATE = 24_000


def _made(slug: str, seed: int, seconds: float = 2.0, rate: int = RATE, manner: str = "") -> np.ndarray:
    return scene(slug, int(seconds * rate), rate, np.random.default_rng([seed, 4]), manner)


def _db(x: np.ndarray) -> float:
    return float(10 * np.log10(np.mean(x * x) + 1e-12))


def test_every_environment_cue_has_a_scene_and_every_mood_is_one_that_scripts_name() -> None:
    assert set(SCENES) == {c.slug for c in CUES if c.dimension == "environment"}
    assert tuple(MOODS) == MANNERS["music"]


@pytest.mark.parametrize("slug", sorted(SCENES))
def test_a_scene_has_its_length_its_level_and_no_click_at_any_rate(slug: str) -> None:
    for rate, n in ((24_000, 30_011), (16_000, 9_000)):
        x = scene(slug, n, rate, np.random.default_rng(3))
        assert x.shape == (n,) and np.isfinite(x).all()
        assert abs(_db(x)) < 0.01
        assert abs(float(x.mean())) < 0.05


@pytest.mark.parametrize("slug", sorted(SCENES))
def test_the_same_seed_gives_the_same_scene_and_another_seed_another(slug: str) -> None:
    assert np.array_equal(_made(slug, 1, 1.0), _made(slug, 1, 1.0))
    assert abs(float(np.corrcoef(_made(slug, 1, 1.0), _made(slug, 2, 1.0))[0, 1])) < 0.5


@pytest.mark.parametrize("slug", sorted(SCENES))
def test_a_scene_is_heard_within_its_first_second(slug: str) -> None:
    for seed in range(4):
        x = _made(slug, seed, 4.0)
        assert _db(x[:RATE]) > -12, seed


def _print(x: np.ndarray) -> np.ndarray:
    """Levels of half octaves, how they swing, and how they change from frame to frame."""
    frames = np.lib.stride_tricks.sliding_window_view(x, 1024)[::512] * np.hanning(1024)
    power = np.abs(np.fft.rfft(frames, axis=1)) ** 2
    edges = np.searchsorted(np.fft.rfftfreq(1024, 1 / RATE), 60 * 2 ** np.arange(0, 7.6, 0.5))
    db = 10 * np.log10(np.stack([power[:, a : max(b, a + 1)].sum(1) for a, b in itertools.pairwise(edges)], 1) + 1e-3)
    return np.concatenate([db.mean(0), 2 * db.std(0), 2 * np.abs(np.diff(db, axis=0)).mean(0)])


def test_unheard_scenes_are_named_by_a_linear_classifier_that_heard_others() -> None:
    prints = {s: np.array([_print(_made(s, k, 2.0)) for k in range(9)]) for s in SCENES}
    names = list(SCENES)
    known = np.concatenate([prints[s][:6] for s in names])
    centre, scale = known.mean(0), known.std(0)
    means = np.array([((prints[s][:6] - centre) / scale).mean(0) for s in names])
    within = np.concatenate([(prints[s][:6] - centre) / scale - means[i] for i, s in enumerate(names)])
    cov = within.T @ within / len(within)
    weights = np.linalg.solve(0.7 * cov + 0.3 * np.diag(np.diag(cov)), means.T)
    right = {}
    for i, slug in enumerate(names):
        z = (prints[slug][6:] - centre) / scale
        scores = z @ weights - 0.5 * (means * weights.T).sum(1)
        right[slug] = float(np.mean(scores.argmax(1) == i))
    assert np.mean(list(right.values())) > 0.85, right


@pytest.mark.parametrize("slug", ["rain", "wind", "thunder", "waves", "car", "alarm", "honking", "dog", "applause"])
def test_no_two_of_a_scene_sound_alike(slug: str) -> None:
    prints = np.array([_print(_made(slug, k)) for k in range(8)])[:, :15]
    assert float(prints.std(0).mean()) > 1.5  # dB, over the levels of the half octaves


def test_a_hundred_seconds_of_scenes_take_one_core_about_a_second() -> None:
    for slug in SCENES:
        _made(slug, 0, 1.0)
    began = time.process_time()
    for slug in SCENES:
        _made(slug, 5, 4.0)
    assert 4.0 * len(SCENES) / (time.process_time() - began) > 40  # 110 to 180 with a core of one's own


def test_a_misspelt_scene_or_mood_is_named_with_the_nearest() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(UsageError, match="did you mean 'thunder'"):
        scene("thundr", 100, RATE, rng)
    with pytest.raises(UsageError, match="did you mean 'exciting'"):
        scene("music", 100, RATE, rng, "excting")
    with pytest.raises(UsageError, match="only music"):
        scene("rain", 100, RATE, rng, "sad")


# ── moods ───────────────────────────────────────────────────────────────────────────────────────────────────────────

# How well each note of the octave fits a major and a minor key (Krumhansl & Kessler 1982).
MAJOR = np.array([6.35, 2.23, 3.48, 2.33, 4.38, 4.09, 2.52, 5.19, 2.39, 3.66, 2.29, 2.88])
MINOR = np.array([6.33, 2.68, 3.52, 5.38, 2.60, 3.53, 2.54, 4.75, 3.98, 2.69, 3.34, 3.17])


def _major(x: np.ndarray) -> float:
    """How much better the best major key fits the notes heard than the best minor one."""
    frames = np.lib.stride_tricks.sliding_window_view(x, 8192)[::4096] * np.hanning(8192)
    hertz = np.fft.rfftfreq(8192, 1 / RATE)
    keep = (hertz > 100) & (hertz < 1500)
    heard = np.abs(np.fft.rfft(frames, axis=1))[:, keep].sum(0)
    note = np.round(12 * np.log2(hertz[keep] / 440)).astype(int) % 12
    chroma = np.bincount(note, heard, 12)

    def best(key: np.ndarray) -> float:
        return max(float(np.corrcoef(np.roll(key, k), chroma)[0, 1]) for k in range(12))

    return best(MAJOR) - best(MINOR)


def _onsets(x: np.ndarray) -> float:
    """Notes and beats a second: peaks of the rise in the spectrum."""
    frames = np.lib.stride_tricks.sliding_window_view(x, 1024)[::240] * np.hanning(1024)
    power = np.abs(np.fft.rfft(frames, axis=1))
    rise = np.convolve(np.maximum(power[4:] - power[:-4], 0).sum(1), np.hanning(7), "same")
    bar = 0.35 * np.percentile(rise, 98)
    tops = [i for i in range(5, rise.size - 5) if rise[i] == rise[i - 5 : i + 6].max() and rise[i] > bar]
    return len(tops) / (x.size / RATE)


def _centroid(x: np.ndarray) -> float:
    power = np.abs(np.fft.rfft(x)) ** 2
    return float(np.average(np.fft.rfftfreq(x.size, 1 / RATE), weights=power))


def _dynamics(x: np.ndarray) -> float:
    """dB between the loud and the quiet moments."""
    level = np.sqrt((x[: x.size // 240 * 240].reshape(-1, 240) ** 2).mean(1))
    return float(np.ptp(20 * np.log10(np.percentile(level, (10, 90)) + 1e-3)))


@pytest.fixture(scope="module")
def moods() -> Callable[[Callable[[np.ndarray], float]], dict[str, float]]:
    played = {mood: [_made("music", k, 8.0, manner=mood) for k in range(4)] for mood in MOODS}
    return lambda measure: {mood: float(np.median([measure(x) for x in made])) for mood, made in played.items()}


Moods = Callable[[Callable[[np.ndarray], float]], dict[str, float]]


def test_happy_funny_and_exciting_music_is_major_and_sad_and_angry_is_not(moods: Moods) -> None:
    major = moods(_major)
    assert min(major["happy"], major["funny"], major["exciting"]) > 0.05
    assert max(major["sad"], major["angry"]) < 0.0


def test_sad_music_is_slow_and_exciting_and_angry_music_quick(moods: Moods) -> None:
    onsets = moods(_onsets)
    assert onsets["sad"] < 0.6 * min(onsets["happy"], onsets["funny"])
    assert min(onsets["exciting"], onsets["angry"]) > 1.2 * max(onsets["happy"], onsets["funny"])


def test_sad_music_is_dull_and_exciting_and_angry_music_bright(moods: Moods) -> None:
    bright = moods(_centroid)
    assert 1.5 * bright["sad"] < min(v for mood, v in bright.items() if mood != "sad")
    assert min(bright["exciting"], bright["angry"]) > 1.1 * bright["happy"]


def test_funny_music_stops_and_starts_while_sad_and_angry_music_is_level(moods: Moods) -> None:
    swing = moods(_dynamics)
    assert swing["funny"] > 25 > 1.3 * max(swing["happy"], swing["exciting"])
    assert max(swing["sad"], swing["angry"]) < min(swing["happy"], swing["exciting"])
