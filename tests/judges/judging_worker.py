"""A worker program that judges by what it hears: a louder reply gets the better mark. It runs without Overtone."""

from __future__ import annotations

import array
import io
import json
import sys
import wave
from typing import Any

import protocol


class LoudnessJudge:
    """Answers the question on vocal empathy from the peak of the last sound it was given."""

    def load(self, options: dict[str, Any]) -> dict[str, Any]:
        return {"rate": 16000, "speech": False, "class": "LoudnessJudge"}

    def generate(self, items: list[protocol.Item]) -> list[protocol.Answer]:
        return [self._one(item) for item in items]

    def recover(self) -> None:
        """Nothing is held."""

    def _one(self, item: protocol.Item) -> protocol.Answer:
        with wave.open(io.BytesIO(item.sounds[-1])) as file:
            samples = array.array("h", file.readframes(file.getnframes()))
        peak = max(map(abs, samples), default=0) / 32767
        verdict = {"ves_reason": f"peak {peak:.2f}, {len(item.sounds)} sound", "ves": 5 if peak > 0.2 else 2}
        return protocol.Answer(json.dumps(verdict))


if __name__ == "__main__":
    sys.exit(protocol.serve(LoudnessJudge()))
