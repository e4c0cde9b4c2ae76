"""These tests borrow torch from the workers' environment, as those of echat do. The study's toy data is made here."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.perspectives.design import Bank, Data, Questions
from tests.echat import conftest as _borrowed  # noqa: F401 - puts torch on the path

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
def data(bank: Bank) -> Data:
    """A vocabulary of 64: digits are 1 to 10, the space is 11, words begin at 16."""
    rng = np.random.default_rng(1)

    def words(low: int, high: int) -> list[int]:
        return rng.integers(16, 64, rng.integers(low, high)).tolist()

    questions = Questions(
        {"words": [words(8, 20) for _ in range(12)], "none": [words(3, 6) for _ in range(12)]},
        [[words(1, 5) for _ in range(3 if i % 2 else 4)] for i in range(12)],
        [i % 3 for i in range(12)],
        [{"cluster": f"d{i // 2}", "level": 2} for i in range(12)],
    )
    return Data(
        sha256="toy",
        bank=bank,
        heads={"reader": [12, 20], "writer": [13, 20], "merged": [14, 20]},
        tails=[words(4, 20) for _ in range(60)],
        digits=list(range(1, 11)),
        space=11,
        replies=[(words(3, 5), words(2, 6)) for _ in range(5)],
        questions=dict.fromkeys(("open", "dream", "dream-train"), questions),
        windows=[rng.integers(16, 64, 12).tolist() for _ in range(3)],
    )
