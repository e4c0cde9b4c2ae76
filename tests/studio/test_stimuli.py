"""The sounds that a study makes: counted tones, calibration noise, and the headphone tests."""

from __future__ import annotations

import io

import numpy as np
import pytest
import soundfile

from overtone.studio import stimuli
from overtone.studio.replies import TARGET_DB


def intervals(wave: stimuli.Wave) -> list[stimuli.Wave]:
    """The three intervals of a trial."""
    step = round(1.5 * stimuli.RATE)
    return [wave[at * step : at * step + stimuli.RATE] for at in range(3)]


@pytest.mark.parametrize("count", [1, 3, 5])
def test_a_trap_has_as_many_tones_as_its_name_says(count: int) -> None:
    samples, rate = soundfile.read(io.BytesIO(stimuli.sound(f"tones-{count}")))
    frames = np.abs(samples[: len(samples) // 480 * 480]).reshape(-1, 480).max(axis=1) > 0.01
    assert rate == stimuli.RATE and int(np.sum(np.diff(frames.astype(int)) == 1)) == count


def test_calibration_noise_has_the_level_of_the_sounds_and_loops_without_a_click() -> None:
    wave = stimuli.calibration()
    assert 10 * np.log10(np.mean(wave**2)) == pytest.approx(TARGET_DB, abs=0.01)
    assert abs(wave[-1] - wave[0]) < 6 * np.std(np.diff(wave))


@pytest.mark.parametrize("order", range(6))
def test_one_tone_is_quieter_and_another_one_in_antiphase(order: int) -> None:
    parts = intervals(stimuli.woods(order))
    levels = [float(np.sqrt(np.mean(part**2))) for part in parts]
    quiet = int(np.argmin(levels))
    mixed = [float(np.sqrt(np.mean(part.sum(axis=1) ** 2))) for part in parts]  # what loudspeakers do
    assert 20 * np.log10(levels[quiet] / max(levels)) == pytest.approx(-6.02, abs=0.01)
    assert min(mixed) < 1e-9 and int(np.argmin(mixed)) != quiet
    (trial,) = {
        one for seed in range(40) for one in stimuli.trials("woods", bytes([seed]), 0) if one.name == f"woods-{order}"
    }
    assert trial.right == quiet + 1


def test_huggins_pitch_is_in_the_difference_of_the_ears_alone() -> None:
    wave = stimuli.huggins(1, 0)
    for place, part in enumerate(intervals(wave)):
        left, right = (np.abs(np.fft.rfft(part[:, side])) ** 2 for side in (0, 1))
        difference = np.abs(np.fft.rfft(part[:, 0] - part[:, 1])) ** 2
        hz = np.fft.rfftfreq(len(part), 1 / stimuli.RATE)
        band, rest = (hz > 570) & (hz < 630), (hz > 1_000) & (hz < 4_000)
        assert left[band].mean() == pytest.approx(right[band].mean(), rel=0.15)  # one ear hears plain noise
        assert bool(difference[band].mean() > 3 * left[band].mean()) is (place == 1)
        assert difference[rest].mean() < 1e-3 * left[rest].mean()


def test_trials_are_the_same_for_one_attempt_and_differ_between_people() -> None:
    for test in stimuli.NEEDED:
        first = stimuli.trials(test, b"a person", 0)
        assert first == stimuli.trials(test, b"a person", 0) and len(first) == stimuli.TRIALS
        assert len({stimuli.trials(test, bytes([n]), 0) for n in range(20)}) > 15
        assert first != stimuli.trials(test, b"a person", 1)
        rights = [one.right for n in range(200) for one in stimuli.trials(test, bytes([n]), 0)]
        assert all(rights.count(place) > 300 for place in (1, 2, 3))
        assert stimuli.score(first, [one.right for one in first]) == 6
        for one in first:
            assert stimuli.sound(one.name).startswith(b"fLaC")


@pytest.mark.parametrize("name", ["", "woods", "woods-1-2", "noise", "tones-"])
def test_an_unknown_sound_is_refused(name: str) -> None:
    with pytest.raises((KeyError, ValueError)):
        stimuli.sound(name)
