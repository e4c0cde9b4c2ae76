"""How often intervals hold the truth, tests raise false alarms and designs find what they promise, by simulation.

`python -m bench.stats` prints a Markdown table; `--replicates N` makes it quicker, `--only WORD` picks rows. `low` is
what coverage (or a promised power) must reach; a row below it fails the run. The rows:
paired tests on 20 or 60 clusters of 1 to 3 alike rows, normal or skewed;
Bradley–Terry ratings of 6 players from 300 votes, independent or by raters with tastes; power of paired designs.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from overtone.stats import binomial, cluster, paired, power, rank, votes
from overtone.stats.votes import Votes

Array = npt.NDArray[np.float64]
Trial = Callable[[np.random.Generator], bool]

STRENGTH = np.array([1.0, 0.5, 0.2, 0.0, -0.4, -1.3])


def paired_rows(rng: np.random.Generator, clusters: int, skewed: bool) -> tuple[Array, list[int]]:
    """Differences of mean 0.3, alike within clusters of 1 to 3 rows."""

    def noise(size: int) -> Array:
        return rng.exponential(size=size) - 1 if skewed else rng.normal(size=size)

    labels = np.repeat(np.arange(clusters), rng.integers(1, 4, clusters))
    return 0.3 + noise(clusters)[labels] + noise(labels.size), labels.tolist()


def paired_trial(clusters: int, skewed: bool) -> Trial:
    def trial(rng: np.random.Generator) -> bool:
        a, labels = paired_rows(rng, clusters, skewed)
        found = paired.permutation(a, np.zeros(a.size), labels, seed=int(rng.integers(2**31)), draws=1000)
        return found.low <= 0.3 <= found.high

    return trial


def cast(rng: np.random.Generator, count: int, tie: float) -> Votes:
    a = rng.integers(STRENGTH.size, size=count)
    b = (a + rng.integers(1, STRENGTH.size, size=count)) % STRENGTH.size
    half = (STRENGTH[a] - STRENGTH[b]) / 2
    parts = np.stack([np.exp(half), np.full(count, tie), np.exp(-half)], axis=1)
    outcome = (rng.random((count, 1)) > parts.cumsum(1) / parts.sum(1, keepdims=True)).sum(1)
    return votes.votes(a.tolist(), b.tolist(), [("A", "tie", "B")[o] for o in outcome])


def rank_trial(count: int) -> Trial:
    centre = float(STRENGTH.mean())

    def trial(rng: np.random.Generator) -> bool:
        best = rank.bradley_terry(cast(rng, count, 0.6)).of(0).rating
        return bool(best.low <= STRENGTH[0] - centre <= best.high)

    return trial


def tastes(rng: np.random.Generator, raters: int, each: int) -> Votes:
    """Votes of raters each of whom likes the first of three players more or less than others do."""
    taste = np.repeat(rng.normal(0, 1.2, raters), each)
    a = rng.integers(3, size=taste.size)
    b = (a + rng.integers(1, 3, size=taste.size)) % 3
    own = taste * ((a == 0).astype(float) - (b == 0))
    chance = 1 / (1 + np.exp(-((b - a) / 2 + own)))
    return votes.votes(a.tolist(), b.tolist(), np.where(rng.random(taste.size) < chance, "A", "B").tolist())


def taste_trial(raters: int, *, known: bool) -> Trial:
    """Whether the interval holds what a million raters would say; `known`: whether it is told who voted."""
    truth = rank.bradley_terry(tastes(np.random.default_rng(1), 1_000_000, 1)).difference(0, 2).value

    def trial(rng: np.random.Generator) -> bool:
        given = tastes(rng, raters, 8)
        who = (np.arange(raters * 8) // 8).tolist() if known else None
        found = rank.bradley_terry(given, clusters=who).difference(0, 2)
        return found.low <= truth <= found.high

    return trial


def mean_power_trial(clusters: int, per_cluster: int, alike: float) -> Trial:
    low, difference = 0.0, 8.0  # by bisection, the difference that is detected with a power of 0.8
    for _ in range(60):
        middle = (low + difference) / 2
        short = power.mean_power(middle, 1.0, clusters, per_cluster=per_cluster, alike=alike) < 0.8
        low, difference = (middle, difference) if short else (low, middle)
    labels = np.repeat(np.arange(clusters), per_cluster).tolist()

    def trial(rng: np.random.Generator) -> bool:
        shared = rng.normal(size=clusters).repeat(per_cluster)
        x = difference + math.sqrt(alike) * shared + math.sqrt(1 - alike) * rng.normal(size=shared.size)
        return cluster.mean(x, labels).low > 0

    return trial


def proportion_power_trial(rate_a: float, rate_b: float, alike: float) -> Trial:
    only_a, only_b = power.discordant(rate_a, rate_b, alike)
    rows = power.proportion_size(only_a, only_b).rows

    def trial(rng: np.random.Generator) -> bool:
        a, b, _ = rng.multinomial(rows, [only_a, only_b, 1 - only_a - only_b])
        return 2 * binomial.at_least(max(a, b), a + b, 0.5) <= 0.05

    return trial


def trials() -> dict[str, tuple[Callable[[], Trial], float | None]]:
    """Every row: how its trial is made, and the least share that must succeed (None: shown, not required)."""
    rows: dict[str, tuple[Callable[[], Trial], float | None]] = {}
    for skewed in (False, True):
        for clusters in (20, 60):
            least = 0.945 if not skewed else 0.91 if clusters == 60 else None
            name = f"paired permutation, {clusters} clusters, {'skewed' if skewed else 'normal'}"
            rows[name] = (lambda c=clusters, s=skewed: paired_trial(c, s)), least  # type: ignore[misc]
    rows["Bradley–Terry, 300 votes"] = (lambda: rank_trial(300)), 0.94
    rows["Bradley–Terry, 1,000 votes"] = (lambda: rank_trial(1000)), 0.945
    rows["Bradley–Terry, 30 raters with tastes"] = (lambda: taste_trial(30, known=True)), 0.935
    rows["Bradley–Terry, 100 raters with tastes"] = (lambda: taste_trial(100, known=True)), 0.94
    rows["the same, raters not told"] = (lambda: taste_trial(100, known=False)), None
    for clusters, per_cluster, alike in ((10, 1, 0.0), (20, 1, 0.0), (50, 3, 0.4), (300, 3, 0.8)):
        name = f"power 0.8 of a mean, {clusters} clusters of {per_cluster}, alike {alike:g}"
        rows[name] = (
            lambda c=clusters, p=per_cluster, r=alike: mean_power_trial(c, p, r),  # type: ignore[misc]
            0.78 if clusters >= 20 else None,
        )
    for rate_a, rate_b, alike in ((0.62, 0.55, 0.4), (0.60, 0.57, 0.6), (0.9, 0.8, 0.2)):
        name = f"power 0.8 of McNemar's test, {rate_a:g} against {rate_b:g}, alike {alike:g}"
        rows[name] = (lambda a=rate_a, b=rate_b, r=alike: proportion_power_trial(a, b, r)), 0.76  # type: ignore[misc]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicates", type=int, default=10_000)
    parser.add_argument("--only", default="", help="rows whose name holds this")
    args = parser.parse_args()
    short = []
    print("| what | share | at least | seconds |\n|---|---|---|---|")
    for name, (make, least) in trials().items():
        if args.only not in name:
            continue
        trial, rng, start = make(), np.random.default_rng(0), time.perf_counter()
        share = sum(trial(rng) for _ in range(args.replicates)) / args.replicates
        wanted = "" if least is None else f"{100 * least:g} %"
        print(f"| {name} | {100 * share:.1f} % | {wanted} | {time.perf_counter() - start:.0f} |", flush=True)
        if least is not None and share < least - 3 * math.sqrt(least * (1 - least) / args.replicates):
            short.append(f"{name}: {100 * share:.2f} %")
    if short:
        sys.exit("fell short:\n" + "\n".join(short))


if __name__ == "__main__":
    main()
