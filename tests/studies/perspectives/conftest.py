"""Toy data of the study: sentences with two label sets, and an answer key."""

from __future__ import annotations

import numpy as np
import pytest

from overtone.rated_sentences import Bank
from overtone.studies.perspectives.answers import Answers, Key

GENRES = ("letters", "blog", "SemEval")


@pytest.fixture(scope="session")
def bank() -> Bank:
    """60 sentences of three genres, with four to six ratings per perspective."""
    rng = np.random.default_rng(0)

    def rated() -> np.ndarray:
        return rng.integers(1, 6, (rng.integers(4, 7), 3)).astype(float)

    ratings = {who: [rated() for _ in range(60)] for who in ("reader", "writer")}
    genres = [GENRES[i % 3] for i in range(60)]
    return Bank(
        ids=[f"s{i}" for i in range(60)],
        documents=[g if g == "SemEval" else f"{g} {i // 12}" for i, g in enumerate(genres)],
        genres=genres,
        splits=["test" if i % 5 == 0 else "train" for i in range(60)],
        means={who: np.array([r.mean(0) for r in values]) for who, values in ratings.items()},
        ratings=ratings,
    )


@pytest.fixture(scope="session")
def key(bank: Bank) -> Key:
    """Twelve questions of three or four options, two to a cluster."""
    rng = np.random.default_rng(1)
    lengths = [rng.integers(1, 5, 3 if i % 2 else 4).tolist() for i in range(12)]
    answers = Answers.of(lengths, [i % 3 for i in range(12)], [f"d{i // 2}" for i in range(12)], [2] * 12)
    return Key.of("toy", bank, dict.fromkeys(("open", "dream"), answers))
