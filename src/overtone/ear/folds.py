"""Folds of speakers: a speaker's clips are all in one fold, and each class's speakers are spread over the folds."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def folds_of(
    speakers: Sequence[str], classes: Sequence[str], corpora: Sequence[str], most: int, seed: int
) -> NDArray[np.intp]:
    """Return the fold of each row, at most `most` folds.

    Speakers whose classes are rare are placed first, each into the fold with the fewest speakers of these classes and
    of its corpus. So a class with two speakers or more is never in one fold alone, if there are two folds.
    """
    own: dict[str, set[str]] = defaultdict(set)
    home: dict[str, str] = {}
    rows: Counter[str] = Counter(speakers)
    for speaker, name, corpus in zip(speakers, classes, corpora, strict=True):
        own[speaker].add(name)
        home[speaker] = corpus
    count = min(most, len(own))
    rarity = Counter(name for names in own.values() for name in names)
    shuffled = np.random.default_rng(seed).permutation(sorted(own)).tolist()
    placed: dict[str, int] = {}
    held = [Counter[str]() for _ in range(count)]  # speakers per class and corpus
    sizes = [0] * count
    for speaker in sorted(shuffled, key=lambda one: min(rarity[name] for name in own[one])):
        rarest = min(own[speaker], key=lambda name: (rarity[name], name))
        same = [sum(fold[name] for name in own[speaker]) for fold in held]
        load = [(fold[rarest], fold[home[speaker]], same[k], sizes[k]) for k, fold in enumerate(held)]
        at = load.index(min(load))
        placed[speaker] = at
        held[at].update([*own[speaker], home[speaker]])
        sizes[at] += rows[speaker]
    return np.array([placed[speaker] for speaker in speakers], np.intp)
