"""DistillMOS: predicted overall quality of the reply's voice, by a small network distilled from a large one.

1 to 5, higher is better. The value is the mean over windows of 7.68 s that start at most a second apart; shorter sounds
are padded.
"""

from __future__ import annotations

from overtone.metrics._quality import Quality, predicted

VERSION = 1
ON_REQUEST = True
SCORES = {"distillmos": predicted("DistillMOS", 41)}
NAMES = tuple(SCORES)


def load() -> Quality:
    return Quality("distillmos", VERSION, 16_000, NAMES)
