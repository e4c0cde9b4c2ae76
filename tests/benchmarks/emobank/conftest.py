"""A small EmoBank in the layout of the released files, which a test may damage before it is read."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from tests.needs import SHARED

GENRES = ("letters", "blog", "SemEval")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Thirty sentences of three genres with four ratings each, one more that readers alone rated, and some of 1,1,1."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "emobank"
    folder.mkdir()
    names = [f"s{i}" for i in range(31)]
    genres = [GENRES[i % 3] for i in range(31)]
    meta = [["id", "document", "category", "subcategory"]]
    meta += [
        [n, g if g == "SemEval" else f"{g} {i // 6}", g, " "]
        for i, (n, g) in enumerate(zip(names, genres, strict=False))
    ]
    (folder / "meta.tsv").write_text("".join("\t".join(row) + "\n" for row in meta))
    means: dict[str, np.ndarray] = {}
    feeling = rng.integers(2, 5, (31, 3))
    for who, count in (("reader", 31), ("writer", 30)):
        ratings = np.clip(feeling[:count, None] + rng.integers(-1, 2, (count, 4, 3)), 1, 5)
        ratings[:, 0, 0] = np.maximum(ratings[:, 0, 0], 2)  # a drawn 1, 1, 1 would be dropped
        ratings[:, 1:, 1] = np.maximum(ratings[:, 1:, 1], 2)
        single = [[n, *map(str, r)] for n, rated in zip(names, ratings, strict=False) for r in rated]
        single += [[names[0], "1", "1", "1"]] * 2
        _write(folder / f"individual_{who}_ratings.csv", [["id", "V", "A", "D"], *single])
        means[who] = ratings.mean(1)
        rows = [[n, *(f"{v:.2f}" for v in m), "0", "0", "0", "4"] for n, m in zip(names, means[who], strict=False)]
        _write(folder / f"{who}.csv", [["id", "V", "A", "D", "stdV", "stdA", "stdD", "N"], *rows])
    both = (means["reader"][:30] + means["writer"]) / 2
    splits = ["test" if i % 5 == 0 else "train" for i in range(30)]
    rows = [[n, s, *(f"{v:.2f}" for v in m), f"Sentence {n}."] for n, s, m in zip(names, splits, both, strict=False)]
    _write(folder / "emobank.csv", [["id", "split", "V", "A", "D", "text"], *rows])
    return folder


def _write(path: Path, rows: list[list[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


@pytest.fixture(scope="session")
def released() -> Path:
    return SHARED / "data" / "emobank"
