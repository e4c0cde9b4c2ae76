"""Takes for tests: tones, and speech of the embedded voice."""

from __future__ import annotations

import functools

import numpy as np

from overtone import audio

RATE = 48_000


def tone(
    seconds: float = 2.0, *, level: float = 0.2, noise: float = 1e-4, edge: float = 0.4, rate: int = RATE
) -> bytes:
    """A 440 Hz tone whose level moves like speech, with a little noise around it."""
    at = np.arange(int(seconds * rate)) / rate
    voice = level * np.sin(2 * np.pi * 440 * at) * (0.6 + 0.4 * np.sin(2 * np.pi * 4 * at))
    quiet = np.zeros(int(edge * rate))
    noisy = np.concatenate([quiet, voice, quiet]) + np.random.default_rng(1).normal(0, noise, len(at) + 2 * len(quiet))
    return audio.encode_wav(noisy.astype(np.float32), rate)


@functools.cache
def spoken(words: str, name: str = "en-us+sandro", *, edge: float = 0.4, rate: int = RATE) -> bytes:
    """The words, spoken by a speaker of the default cast."""
    from overtone.build.voices import How, cast

    speakers = cast(("espeak",))
    speaker = next(one for one in speakers.speakers() if one.name == name)
    samples, own = speakers.engine(speaker).speak(words, speaker, How("", "neutral"))
    quiet = np.zeros(int(edge * rate), np.float32)
    voiced = np.concatenate([quiet, audio.resample(samples, own, rate) * 0.5, quiet])
    voiced += np.random.default_rng(1).normal(0, 1e-4, len(voiced)).astype(np.float32)
    return audio.encode_wav(voiced, rate)
