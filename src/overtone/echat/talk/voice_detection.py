"""Detection of speech by its level, for the server's side of a realtime session: when a turn begins and ends."""

from __future__ import annotations

import numpy as np

FRAME = 0.02  # seconds
BEGIN = 3  # loud frames in a row that begin a turn
QUIETEST, SPAN = -60.0, 40.0  # dBFS of a threshold of 0, and the decibels from there to a threshold of 1


class VoiceDetection:
    """Decides frame by frame. `add` returns the changes: ("started" or "stopped", the sample at which)."""

    def __init__(self, rate: int, threshold: float, silence_ms: int) -> None:
        self._size = round(FRAME * rate)
        self._level = 10.0 ** ((QUIETEST + SPAN * threshold) / 10.0)
        self._silence = max(1, round(silence_ms / 1000 / FRAME))
        self._rest = b""
        self._samples = 0
        self._loud = self._quiet = 0
        self.speaking = False

    def add(self, pcm: bytes) -> list[tuple[str, int]]:
        """Take in more sound."""
        self._rest += pcm
        changes: list[tuple[str, int]] = []
        step = self._size * 2
        while len(self._rest) >= step:
            frame, self._rest = self._rest[:step], self._rest[step:]
            self._samples += self._size
            power = float(np.mean(np.square(np.frombuffer(frame, "<i2").astype(np.float32) / 32_768.0)))
            loud = power > self._level
            self._loud, self._quiet = (self._loud + 1, 0) if loud else (0, self._quiet + 1)
            if not self.speaking and self._loud >= BEGIN:
                self.speaking = True
                changes.append(("started", self._samples - BEGIN * self._size))
            elif self.speaking and self._quiet >= self._silence:
                self.speaking = False
                changes.append(("stopped", self._samples))
        return changes
