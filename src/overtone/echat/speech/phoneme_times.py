"""Which phoneme the assistant's voice says when: plain speech with its phonemes, and the same after a delivery.

espeak-ng reports where each phoneme begins, so nothing has to be guessed from the audio.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overtone import audio
from overtone.build import delivery
from overtone.build.recipes import Recipe
from overtone.build.voices import REPLY_VOICE
from overtone.build.voices.espeak import GAP, split_voice
from overtone.embedded.espeak_voice import Phoneme, speak_phonemes
from overtone.errors import UsageError

PACE = 165  # words per minute
PAUSE = "_"
GAP_SECONDS = 0.01 * GAP  # pause between words
SWALLOWED = 0.4  # espeak-ng gives an l after some vowels no time of its own: the last part of the vowel is an l
LONGEST_SWALLOWED = 0.08  # seconds
VOICELESS = frozenset(("p", "t", "k", "s", "f", "h", "S", "T", "tS", "t2", ";", "?", "C", "x", "X", PAUSE))

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Spoken:
    """Plain speech at delivery.RATE, and its phonemes: their names, and where each begins in seconds."""

    samples: NDArray[np.float64]
    names: tuple[str, ...]
    starts: Array

    def phoneme_at(self, seconds: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
        """Return the index of the phoneme at each of some moments."""
        return np.clip(np.searchsorted(self.starts, seconds, side="right") - 1, 0, len(self.names) - 1)


def spoken(text: str) -> Spoken:
    """Speak a text without an emotion. Raises UsageError if there is nothing to say."""
    voice, size, pitch = split_voice(REPLY_VOICE)
    samples, rate, phonemes = speak_phonemes(text, voice=voice, rate_wpm=round(PACE / size), pitch=pitch, gap=GAP)
    if not samples.size:
        raise UsageError(f"nothing to say in {text!r}")
    sound = audio.resample(samples, round(rate * size), delivery.RATE).astype(np.float64)
    first, last = delivery.trimmed_span(sound)
    names, at = _joined(phonemes, len(samples), rate)
    return Spoken(sound[first:last], names, at / (rate * size) - first / delivery.RATE)


def _joined(phonemes: tuple[Phoneme, ...], samples: int, rate: int) -> tuple[tuple[str, ...], Array]:
    """Return the names and first samples of phonemes that take time. Neighbouring pauses are joined."""
    names, starts = [PAUSE], [0.0]
    ends = [*(p.at for p in phonemes[1:]), samples]
    for phoneme, end in zip(phonemes, ends, strict=True):
        name, at = phoneme.name.rstrip(":!") if phoneme.name.startswith(PAUSE) else phoneme.name, float(phoneme.at)
        if name == names[-1] == PAUSE:
            continue
        if end <= at:
            if name == PAUSE:
                continue
            at -= min(SWALLOWED * (at - starts[-1]), LONGEST_SWALLOWED * rate)
        names.append(name)
        starts.append(at)
    return tuple(names), np.array(starts)


def outline(speech: Spoken) -> delivery.Voiced:
    """Return what a delivery's timing depends on, from the waveform: where the voice is, and how loud. No sound can be
    made of it, but it takes a twentieth of the time of `delivery.analyse`."""
    hop = round(delivery.FRAME * delivery.RATE)
    width = 4 * hop
    count = len(speech.samples) // hop + 1
    padded = np.pad(speech.samples, (width // 2, width))
    frames = np.lib.stride_tricks.sliding_window_view(padded, width)[::hop][:count]
    power = np.square(frames * np.hanning(width)).sum(1)
    voiced = np.array([name.lstrip("',") not in VOICELESS for name in speech.names])
    spoken_at = voiced[speech.phoneme_at(delivery.FRAME * np.arange(count))]
    return delivery.Voiced(np.where(spoken_at, 120.0, 0.0), power[:, None], np.zeros((count, 1)))


def delivered(speech: Spoken, recipe: Recipe, shape: delivery.Voiced) -> NDArray[np.int64]:
    """Return the index of the phoneme every 5 ms after a delivery, -1 in pauses that the recipe adds. `shape` is the
    plain speech, analysed or in outline."""
    at, held = delivery.timing(shape, recipe)
    return np.where(held, -1, speech.phoneme_at(delivery.FRAME * at))


def runs(index: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the phonemes and their numbers of 10 ms frames, at least one each, from one index every 5 ms."""
    starts = np.flatnonzero(np.r_[True, np.diff(index) != 0])
    ends = np.round(np.r_[starts[1:], len(index)] / 2).astype(np.int64)
    firsts = np.zeros(len(starts), np.int64)
    for number in range(1, len(starts)):
        firsts[number] = max(ends[number - 1], firsts[number - 1] + 1)
    frames = np.diff(np.r_[firsts, max(int(ends[-1]), int(firsts[-1]) + 1)])
    return index[starts], frames
