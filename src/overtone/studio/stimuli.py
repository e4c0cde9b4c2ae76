"""Synthesised sounds of a study: counted tones, calibration noise, and the two headphone tests.

Woods et al. 2017 (Attention, Perception & Psychophysics 79): the listener names the quietest of three 200 Hz tones. One
of the others is in antiphase, so that loudspeakers cancel it. Milne et al. 2020 (Behavior Research Methods 53): one of
three noises has a pitch that arises only if each ear hears its own channel.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import itertools
from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from overtone.studio.replies import TARGET_DB
from overtone.studio.sounds import flac

RATE = 48_000
TRIALS = 6
INTERVALS = 3
Test = Literal["woods", "huggins"]
NEEDED: dict[Test, int] = {"woods": 5, "huggins": 6}  # right trials to pass
_ORDERS = tuple(itertools.permutations(("plain", "quiet", "antiphase")))
HUGGINS_BAND = (564, 636)  # Hz
_GAP = np.zeros((RATE // 2, 2))
_SEED = 20170202

Wave = npt.NDArray[np.float64]


class Trial(Struct, frozen=True):
    """One trial: the sound's name, and which interval is right (1, 2, 3)."""

    name: str
    right: int


def trials(test: Test, key: bytes, attempt: int) -> tuple[Trial, ...]:
    """Return the trials of a person's attempt. They are drawn with `key`, so the same attempt always has the same
    trials."""
    drawn = hmac.digest(key, f"{test}/{attempt}".encode(), "sha256")
    if test == "woods":
        chosen = [drawn[number] % len(_ORDERS) for number in range(TRIALS)]
        return tuple(Trial(f"woods-{one}", _ORDERS[one].index("quiet") + 1) for one in chosen)
    return tuple(Trial(f"huggins-{drawn[n] % INTERVALS}-{n}", drawn[n] % INTERVALS + 1) for n in range(TRIALS))


def score(asked: Sequence[Trial], answers: Sequence[int]) -> int:
    """Return the number of right answers."""
    return sum(trial.right == answer for trial, answer in zip(asked, answers, strict=True))


def trial_seconds() -> float:
    """Return the length of a trial of either test: three intervals of a second, and two pauses."""
    return INTERVALS + 2 * len(_GAP) / RATE


def sound(name: str) -> bytes:
    """Return a sound as FLAC by its name: calibration, tones-N, woods-N or huggins-INTERVAL-N. Raises KeyError."""
    kind, *numbers = name.split("-")
    match kind, [int(number) for number in numbers]:
        case "calibration", []:
            return flac(calibration().astype(np.float32), RATE)
        case "tones", [count]:
            return flac(tones(count).astype(np.float32), RATE)
        case "woods", [order]:
            return flac(woods(order).astype(np.float32), RATE)
        case "huggins", [interval, number]:
            return flac(huggins(interval, number).astype(np.float32), RATE)
    raise KeyError(name)


def tones(count: int) -> Wave:
    """Return some tones in a row, with half a second of silence around them."""
    one = _tone(660, 0.25, 0.02)
    pause = np.zeros(round(0.35 * RATE))
    parts = [np.zeros(RATE // 2), *itertools.chain.from_iterable([one, pause] for _ in range(count))]
    return np.concatenate([*parts, np.zeros(RATE // 4)])


@functools.cache
def tones_seconds(count: int) -> float:
    """Return the length of some tones."""
    return len(tones(count)) / RATE


def calibration(seconds: float = 10.0) -> Wave:
    """Return noise with roughly the spectrum of speech, at the level of the study's sounds. It can be looped."""
    size = round(seconds * RATE)
    frequencies = np.fft.rfftfreq(size, 1 / RATE)
    shape = 1 / np.sqrt(1 + (frequencies / 500) ** 2)
    shape *= (frequencies > 80) & (frequencies < 12_000)
    phases = np.random.default_rng(_SEED).uniform(0, 2 * np.pi, len(frequencies))
    wave: Wave = np.fft.irfft(shape * np.exp(1j * phases), size)
    wave *= 10 ** (TARGET_DB / 20) / np.sqrt(np.mean(wave**2))
    return wave


def woods(order: int) -> Wave:
    """Return a trial of Woods' test in one of six orders: a plain tone, one 6 dB quieter, one in antiphase."""
    tone = _tone(200, 1.0, 0.1)
    kinds = {"plain": (1.0, 1.0), "quiet": (0.5, 0.5), "antiphase": (1.0, -1.0)}
    sides = [kinds[kind] for kind in _ORDERS[order]]
    return _intervals([np.column_stack([tone * left, tone * right]) for left, right in sides])


def huggins(interval: int, number: int) -> Wave:
    """Return a trial of Milne's test: three noises. The one at `interval` (from 0) has Huggins' pitch."""
    random = np.random.default_rng([_SEED, interval, number])
    return _intervals([_noise(random, pitch=place == interval) for place in range(INTERVALS)])


def _noise(random: np.random.Generator, pitch: bool) -> Wave:
    """Return a second of noise, the same in both ears. With `pitch`, 600 Hz ± 6 % are in antiphase in the right one."""
    left = random.standard_normal(RATE)
    spectrum = np.fft.rfft(left)
    if pitch:
        spectrum[HUGGINS_BAND[0] : HUGGINS_BAND[1] + 1] *= -1  # one step of the spectrum is 1 Hz
    right = np.fft.irfft(spectrum, RATE)
    ramp = _ramp(RATE, 0.03)
    return np.column_stack([left, right]) * ramp[:, None] * 10 ** (TARGET_DB / 20)


def _intervals(parts: Sequence[Wave]) -> Wave:
    first, second, third = parts
    return np.concatenate([first, _GAP, second, _GAP, third])


def _tone(frequency: float, seconds: float, ramp: float) -> Wave:
    time = np.arange(round(seconds * RATE)) / RATE
    level = 10 ** (TARGET_DB / 20) * np.sqrt(2)
    wave: Wave = level * np.sin(2 * np.pi * frequency * time) * _ramp(len(time), ramp)
    return wave


def _ramp(size: int, seconds: float) -> Wave:
    """Return a gain that rises from 0 and falls to 0 with a raised cosine."""
    edge = round(seconds * RATE)
    rise = 0.5 - 0.5 * np.cos(np.pi * np.arange(edge) / edge)
    return np.concatenate([rise, np.ones(size - 2 * edge), rise[::-1]])


def name_key(secret: bytes, *parts: str) -> str:
    """Return an identifier that tells a reader nothing: 32 hexadecimal digits."""
    return hmac.new(secret, "\0".join(parts).encode(), hashlib.sha256).hexdigest()[:32]
