"""How well a perfect predictor could correlate with EmoBank's means, given how few ratings each mean has."""

from __future__ import annotations

import math

import numpy as np

from overtone.rated_sentences import DIMENSIONS, PERSPECTIVES, Array, Bank


def rater_ceilings(bank: Bank, who: str) -> list[float]:
    """Return √ICC(1,k) of one perspective's means per dimension, from a one-way analysis of variance."""
    return [_root(1 - within / between) for between, within in (_squares(bank, who, d) for d in range(len(DIMENSIONS)))]


def gap_reliability(bank: Bank) -> list[float]:
    """Return, per dimension, the reliability of reader − writer: the share of its variance that is not rating noise.

    A value below 0 means that the noise is larger than the variance.
    """
    found = []
    for d in range(len(DIMENSIONS)):
        reader, writer = (bank.means[who][:, d] for who in PERSPECTIVES)
        noise = sum(
            _squares(bank, who, d)[1] * np.mean([1 / len(rated) for rated in bank.ratings[who]]) for who in PERSPECTIVES
        )
        found.append(float(1 - noise / (reader - writer).var(ddof=1)))
    return found


def gap_ceilings(bank: Bank) -> list[float]:
    """Return, per dimension, the highest correlation that a prediction of reader − writer can have."""
    return [_root(reliability) for reliability in gap_reliability(bank)]


def _root(reliability: float) -> float:
    return math.sqrt(max(0.0, reliability))


def _squares(bank: Bank, who: str, d: int) -> tuple[float, float]:
    """Return the mean squares between and within sentences."""
    ratings: list[Array] = [rated[:, d] for rated in bank.ratings[who]]
    every = np.concatenate(ratings)
    between = sum(len(r) * (r.mean() - every.mean()) ** 2 for r in ratings) / (len(ratings) - 1)
    within = sum(((r - r.mean()) ** 2).sum() for r in ratings) / (len(every) - len(ratings))
    return float(between), float(within)
