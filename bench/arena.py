"""Time the ranking of 60 models by 9,000 votes (at most 5 s) and its variants, and bootstrap draws of a mean.

`python -m bench.arena`; fails where the limit is not kept. Votes are drawn from the model itself.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from overtone.stats import bootstrap, rank, votes
from overtone.stats.votes import Votes

PLAYERS, CAST, LIMIT = 60, 9_000, 5.0
ITEMS, MEANS, MEANS_LIMIT = 3_000, 10_000, 1.5


def cast(seed: int = 0) -> Votes:
    """Votes between players of normal strength, about a quarter of them ties."""
    rng = np.random.default_rng(seed)
    strength = rng.normal(0, 0.7, PLAYERS)
    a = rng.integers(PLAYERS, size=CAST)
    b = (a + rng.integers(1, PLAYERS, size=CAST)) % PLAYERS
    half = (strength[a] - strength[b]) / 2
    parts = np.stack([np.exp(half), np.full(CAST, 0.7), np.exp(-half)], axis=1)
    outcome = (rng.random((CAST, 1)) > parts.cumsum(1) / parts.sum(1, keepdims=True)).sum(1)
    return votes.votes(a.tolist(), b.tolist(), [("A", "tie", "B")[o] for o in outcome])


def seconds(call: Callable[[], object], rounds: int = 3) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    given = cast()
    raters = (np.arange(CAST) % 100).tolist()
    length = np.random.default_rng(1).normal(size=CAST)
    ways: dict[str, Callable[[], object]] = {
        "ranking": lambda: rank.bradley_terry(given),
        "ties as halves": lambda: rank.bradley_terry(given, ties="half"),
        "100 raters": lambda: rank.bradley_terry(given, clusters=raters),
        "side": lambda: rank.bradley_terry(given, side=True),
        "a covariate": lambda: rank.bradley_terry(given, covariates={"length": length}),
    }
    took = {name: seconds(way) for name, way in ways.items()}
    for name, time_taken in took.items():
        print(f"{name}: {time_taken:.2f} s")
    x = np.random.default_rng(2).random(ITEMS)
    means = seconds(lambda: [times @ x for times in bootstrap.resamples(ITEMS, seed=0, draws=MEANS)])
    print(f"{MEANS:,} bootstraps of {ITEMS:,} items: {means:.2f} s")
    if took["ranking"] > LIMIT or means > MEANS_LIMIT:
        sys.exit(f"slower than {LIMIT:g} s for the ranking or {MEANS_LIMIT:g} s for the means")


if __name__ == "__main__":
    main()
