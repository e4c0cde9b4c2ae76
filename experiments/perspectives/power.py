"""Simulate how many seeds the primary family needs, with the spread that the results so far have.

    python -m experiments.perspectives.power --data DIR [--results DIR]

For each primary contrast a study with N seeds is drawn again and again: an effect of the items per group (a genre, or
all scripts) and one of each seed, with the variances observed, and judged as `analyse.py` does. `equivalent` is the
share of studies that show equivalence when there is no difference, `detected` the share that find a difference as large
as the margin at the level that Holm asks of the smallest p. The variances come from two or three seeds and are rough.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np

from overtone.stats.cluster import student_quantile

from . import store
from .analyse import Cell, catalogue, cells, difference, item_variance
from .design import Array, Data, Study

SEEDS = (2, 3, 4, 5, 7, 10)
DRAWS = 4000


def spread(both: dict[tuple[str, int], Cell]) -> tuple[Array, Array]:
    """Return the variance per group that the items cause, and that of a single seed, pooled over the groups."""
    groups: dict[str, list[Cell]] = defaultdict(list)
    for (group, _), cell in sorted(both.items()):
        groups[group].append(cell)
    items = np.array([item_variance(members)[0] for members in groups.values()])
    several = [members for members in groups.values() if len(members) > 1]
    sums = sum(np.var([cell.value for cell in members]) * len(members) for members in several)
    pooled = sums / sum(len(members) - 1 for members in several)
    return items, np.full(len(items), pooled)


def shares(
    items: Array, of_seed: Array, seeds: int, margin: float, alpha: float, level: float, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the share of equivalence under no difference and that of detection under a difference of the margin."""
    groups = len(items)
    values = rng.normal(size=(DRAWS, groups, seeds)) * np.sqrt(of_seed)[:, None]
    values += (rng.normal(size=(DRAWS, groups)) * np.sqrt(items))[..., None]
    variance = values.var(2, ddof=1) / seeds
    total = variance.sum(1) + items.sum()
    df = total**2 / ((variance**2).sum(1) / (seeds - 1) + 1e-30)
    error, estimate = np.sqrt(total) / groups, values.mean((1, 2))
    whole = np.clip(df.astype(int), 1, 1000)
    quantiles = {d: [student_quantile(q, int(d)) for q in ((1 + level) / 2, 1 - alpha / 2)] for d in np.unique(whole)}
    narrow, wide = np.array([quantiles[d] for d in whole]).T
    equivalent = np.abs(estimate) + narrow * error < margin
    detected = estimate + margin > wide * error
    return float(equivalent.mean()), float(detected.mean())


def main() -> None:
    parser = argparse.ArgumentParser(description="Simulate the power of the primary family.")
    parser.add_argument("--data", type=Path, required=True, help="folder with data.json.gz")
    parser.add_argument("--results", type=Path, default=store.RESULTS, help="folder (default: this study's)")
    args = parser.parse_args()
    study, data = Study.read(), Data.read(args.data)
    results = {job: result.arrays for job, result in store.read(args.results, study, data).items()}
    tests = study.settings["tests"]
    outcomes = {outcome.name: outcome for outcome in catalogue(data, tests)}
    for wanted in study.settings["primary"]:
        outcome = outcomes[wanted["outcome"]]
        found = cells(results, outcome)
        items, of_seed = spread(difference(found[wanted["treatment"]], found[wanted["control"]]))
        by_items, by_seed = np.sqrt(items.sum()) / len(items), np.sqrt(of_seed.mean() / len(items))
        print(f"{outcome.name}: {wanted['treatment']} − {wanted['control']}, margin {outcome.margin:g}")
        print(f"  standard deviation by items {by_items:.4f}, of a seed {by_seed:.4f}")
        for seeds in SEEDS:
            alpha = tests["alpha"] / len(study.settings["primary"])
            rng = np.random.default_rng(seeds)
            equal, detected = shares(items, of_seed, seeds, outcome.margin, alpha, tests["equivalence"], rng)
            print(f"  {seeds:3d} seeds: equivalent {equal:.2f}, detected {detected:.2f}")


if __name__ == "__main__":
    main()
