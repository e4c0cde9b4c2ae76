"""These tests borrow torch from the workers' environment, as those of echat do. The study's toy data is made here."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.perspectives.data import Data, Questions
from overtone.rated_sentences import Bank
from tests.echat import conftest as _borrowed  # noqa: F401 - puts torch on the path
from tests.studies.perspectives.conftest import bank  # noqa: F401 - a fixture


@pytest.fixture(scope="session")
def data(bank: Bank) -> Data:  # noqa: F811
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
