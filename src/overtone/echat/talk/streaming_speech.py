"""Decode speech tokens while they arrive, without clicks.

Each block of new codes is decoded together with the codes before it. The new audio is scaled to the level of the audio
already sent, shifted by less than one pitch period to where both match best, and cross-faded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overtone.echat.speech import SpeechTokens

RATE = 24_000  # sample rate of the output
BEFORE = 1.2  # seconds of earlier codes that are decoded again with new ones
AHEAD = 0.16  # seconds of codes held back until more arrive
FADE = 0.02  # seconds
_SHIFT = 0.007  # seconds; longer than a pitch period
_LOUD = 1e-3  # root mean square below which levels are not compared
_CHANGE = 2.0  # maximum change of the level

Floats = NDArray[np.float32]


class StreamingSpeech:
    """The speech of one streamed reply. `more` takes codes and returns finished audio; `rest` returns the remainder."""

    def __init__(self, tokens: SpeechTokens, emotion: str = "neutral") -> None:
        self.tokens, self.emotion = tokens, emotion
        self.codes: list[int] = []
        self._given = 0  # codes whose audio was sent
        self._gain = 1.0
        self._sent = np.zeros(0, np.float32)  # the end of the sent audio, to match its level
        self._next = np.zeros(0, np.float32)  # the decoded audio that would have followed it
        self._resampler: Any = None

    def more(self, codes: Iterable[int]) -> Floats:
        """Add codes, and return the audio that is finished."""
        self.codes += codes
        if not self.codes:
            return self._give(0, last=False)
        left = np.cumsum(self._seconds()[::-1])[::-1]  # from the beginning of each code to the end
        return self._give(int((left > AHEAD + 1e-6).sum()), last=False)

    def rest(self) -> Floats:
        """Return the remaining audio."""
        return self._give(len(self.codes), last=True)

    def _seconds(self) -> NDArray[np.float64]:
        return self.tokens.seconds(np.array(self.codes, np.int64))

    def _give(self, until: int, *, last: bool) -> Floats:
        out = self._piece(until) if until > self._given else np.zeros(0, np.float32)
        return self._at_rate(out, last)

    def _piece(self, until: int) -> Floats:
        seconds = self._seconds()
        first = int((np.cumsum(seconds[: self._given][::-1]) > BEFORE + 1e-6).sum())
        sound, self._rate = self.tokens.decode(np.array(self.codes[first:], np.int64), self.emotion)
        ends = np.round(np.r_[0, np.cumsum(seconds)] * self._rate).astype(int)  # the first sample of each code
        at, size = int(ends[self._given] - ends[first]), int(ends[until] - ends[self._given])
        fade = round(FADE * self._rate)
        if self._given:
            self._gain = _gain(self._sent, sound[:at], self._gain)
            at += _shift(self._next, sound, at, round(_SHIFT * self._rate))
        sound = np.pad(sound * np.float32(self._gain), (0, max(0, at + size + fade - len(sound))))
        out = sound[at : at + size].copy()
        n = min(len(self._next), size)
        slope = np.sin(np.linspace(0, np.pi / 2, n, dtype=np.float32)) ** 2
        out[:n] = self._next[:n] * (1 - slope) + out[:n] * slope
        self._next = sound[at + size : at + size + fade]
        self._sent = np.concatenate([self._sent, out])[-round(BEFORE * self._rate) :]
        self._given = until
        return np.clip(out, -1, 1)

    def _at_rate(self, sound: Floats, last: bool) -> Floats:
        if getattr(self, "_rate", RATE) == RATE:
            return sound
        if self._resampler is None:
            import soxr

            self._resampler = soxr.ResampleStream(self._rate, RATE, 1, dtype="float32")
        return np.asarray(self._resampler.resample_chunk(sound, last=last), np.float32)


def _gain(sent: Floats, again: Floats, before: float) -> float:
    """Return the gain that brings audio of the same codes, decoded again, to the level of the sent audio."""
    n = min(len(sent), len(again))
    was, now = (float(np.sqrt(np.mean(np.square(x[len(x) - n :])))) for x in (sent, again))
    if min(was, now) < _LOUD:
        return before
    return float(np.clip(was / now, 1 / _CHANGE, _CHANGE))


def _shift(wanted: Floats, sound: Floats, at: int, most: int) -> int:
    """Return the shift from `at`, up to `most` samples either way, at which the audio best continues `wanted`."""
    first = max(0, at - most)
    room = sound[first : at + most + len(wanted)]
    if not len(wanted) or len(room) < len(wanted) or float(np.abs(wanted).max()) < _LOUD:
        return 0
    views = np.lib.stride_tricks.sliding_window_view(room, len(wanted))  # (shifts, samples)
    like = views @ wanted / (np.sqrt(np.square(views).sum(1)) + 1e-6)
    return int(like.argmax()) + first - at
