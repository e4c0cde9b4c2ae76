"""Speech tokens spoken while they come: sound goes out as soon as what follows can change it little, without a click.

Each stretch of new codes is decoded together with those before it. Its sound is brought to the level of what was given
out already, moved by less than a period of the voice to where the two agree best, and faded into it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overtone.echat.speech import SpeechTokens

RATE = 24_000  # of the sound that is given out
BEFORE = 30  # codes decoded again before the new ones: 1.2 seconds
AHEAD = 4  # codes held back until more have come
FADE = 0.02  # seconds
_SHIFT = 0.007  # seconds; a period of the voice is shorter
_LOUD = 1e-3  # root mean square below which levels are not compared
_CHANGE = 2.0  # of the level, at most

Floats = NDArray[np.float32]


class Aloud:
    """One reply on its way. `more` takes codes and gives the sound that is sure; `rest` gives what is left."""

    def __init__(self, tokens: SpeechTokens, emotion: str = "neutral") -> None:
        self.tokens, self.emotion = tokens, emotion
        self.codes: list[int] = []
        self._given = 0  # codes whose sound went out
        self._gain = 1.0
        self._told = np.zeros(0, np.float32)  # the end of what went out, for its level
        self._next = np.zeros(0, np.float32)  # what would have followed it
        self._resampler: Any = None

    def more(self, codes: Iterable[int]) -> Floats:
        self.codes += codes
        return self._give(len(self.codes) - AHEAD, last=False)

    def rest(self) -> Floats:
        return self._give(len(self.codes), last=True)

    def _give(self, until: int, *, last: bool) -> Floats:
        out = self._piece(until) if until > self._given else np.zeros(0, np.float32)
        return self._at_rate(out, last)

    def _piece(self, until: int) -> Floats:
        first = max(0, self._given - BEFORE)
        sound, self._rate = self.tokens.decode(np.array(self.codes[first:], np.int64), self.emotion)
        per = self._rate / self.tokens.rate
        at, size = round((self._given - first) * per), round(until * per) - round(self._given * per)
        fade = round(FADE * self._rate)
        if self._given:
            self._gain = _gain(self._told, sound[:at], self._gain)
            at += _shift(self._next, sound, at, round(_SHIFT * self._rate))
        sound = np.pad(sound * np.float32(self._gain), (0, max(0, at + size + fade - len(sound))))
        out = sound[at : at + size].copy()
        n = min(len(self._next), size)
        slope = np.sin(np.linspace(0, np.pi / 2, n, dtype=np.float32)) ** 2
        out[:n] = self._next[:n] * (1 - slope) + out[:n] * slope
        self._next = sound[at + size : at + size + fade]
        self._told = np.concatenate([self._told, out])[-round(BEFORE * per) :]
        self._given = until
        return np.clip(out, -1, 1)

    def _at_rate(self, sound: Floats, last: bool) -> Floats:
        if getattr(self, "_rate", RATE) == RATE:
            return sound
        if self._resampler is None:
            import soxr

            self._resampler = soxr.ResampleStream(self._rate, RATE, 1, dtype="float32")
        return np.asarray(self._resampler.resample_chunk(sound, last=last), np.float32)


def _gain(told: Floats, again: Floats, before: float) -> float:
    """What brings the second to the level of the first: the same codes, decoded with others after them."""
    n = min(len(told), len(again))
    was, now = (float(np.sqrt(np.mean(np.square(x[len(x) - n :])))) for x in (told, again))
    if min(was, now) < _LOUD:
        return before
    return float(np.clip(was / now, 1 / _CHANGE, _CHANGE))


def _shift(wanted: Floats, sound: Floats, at: int, most: int) -> int:
    """How far from `at`, up to `most` samples either way, the sound goes on most like what is wanted."""
    first = max(0, at - most)
    room = sound[first : at + most + len(wanted)]
    if not len(wanted) or len(room) < len(wanted) or float(np.abs(wanted).max()) < _LOUD:
        return 0
    views = np.lib.stride_tricks.sliding_window_view(room, len(wanted))  # (shifts, samples)
    like = views @ wanted / (np.sqrt(np.square(views).sum(1)) + 1e-6)
    return int(like.argmax()) + first - at
