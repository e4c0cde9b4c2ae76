"""A voice that hums each word as a tone: `my-voice?high=300` sets the woman's pitch in Hz. For trying out a build."""

from __future__ import annotations

import numpy as np

from overtone.audio import Samples
from overtone.build.voices import PACE, SCALE, How, Speaker, Synthesiser
from overtone.errors import UsageError
from overtone.spec import Spec

ROOM = "voices"
RATE = 16_000


class Hum(Synthesiser):
    """Two speakers. `Synthesiser` holds what voices share whose speakers can say anything."""

    licence = "CC0-1.0"  # of what it says: the licence of a set is derived from it

    def __init__(self, spec: Spec) -> None:
        unknown = spec.options.keys() - {"high"}
        if spec.name or unknown or not spec.options.get("high", "220").isdecimal():
            raise UsageError(f"{spec}: write my-voice or my-voice?high=HZ")
        self.pitches = {"low": 110.0, "high": float(spec.options.get("high", "220"))}
        self._speakers = (
            Speaker(str(spec), "low", "male", SCALE["male"]),
            Speaker(str(spec), "high", "female", SCALE["female"]),
        )

    def identity(self) -> str:
        """Return engine and version. A clip is made again if this changes."""
        return f"my-voice 1 ({self.pitches['low']:.0f}, {self.pitches['high']:.0f} Hz)"

    def speak(self, words: str, speaker: Speaker, how: How, *, pace: int = PACE) -> tuple[Samples, int]:
        """Return mono samples and their rate: one tone for each word, one gap after each tone."""
        return self._hum(words, self.pitches[speaker.name], pace), RATE

    def speak_reply(self, text: str, style: str, file: str) -> tuple[Samples, int]:
        """Return a reference reply. Returning None would leave it to the embedded voice."""
        return self._hum(text, self.pitches["low"], PACE), RATE

    def _hum(self, words: str, pitch: float, pace: int) -> Samples:
        seconds = np.arange(int(RATE * 60 / pace * 0.8)) / RATE
        tone = sum(np.sin(2 * np.pi * pitch * n * seconds) / n for n in (1, 2, 3, 4)) * 0.1 * np.hanning(len(seconds))
        gap = np.zeros(len(seconds) // 4)
        return np.concatenate([part for _ in words.split() for part in (tone, gap)]).astype(np.float32)


def load(spec: Spec) -> Hum:
    return Hum(spec)
