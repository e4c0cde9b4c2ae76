"""Simulate how many seeds the primary family needs, given the spread of the results so far.

For each primary contrast, many studies with N seeds are simulated. The items of a group (a genre, or all scripts) have
a random effect, and so has each seed, both with the observed variances. Each simulated study is judged like the real
one. `equivalent` is the share of studies that show equivalence if there is no difference. `detected` is the share that
find a difference as large as the margin, at the level that Holm requires of the smallest p.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from overtone.rated_sentences import Array
from overtone.stats.cluster import student_quantile

from .answers import Key
from .design import Study
from .estimates import At, Cell, difference, item_variance
from .outcomes import Results, catalogue, cells

SEEDS = (2, 3, 4, 5, 7, 10)
DRAWS = 4000


def spread(both: dict[At, Cell]) -> tuple[Array, Array]:
    """Return two variances for each group: that caused by the items, and that of a single seed, pooled over the
    groups."""
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
    """Return two shares of simulated studies: those that show equivalence if there is no difference, and those that
    detect a difference as large as the margin."""
    groups = len(items)
    values = rng.normal(size=(DRAWS, groups, seeds)) * np.sqrt(of_seed)[:, None]
    values += (rng.normal(size=(DRAWS, groups)) * np.sqrt(items))[..., None]
    variance = values.var(2, ddof=1) / seeds
    total = variance.sum(1) + items.sum()
    df = total**2 / ((variance**2).sum(1) / (seeds - 1) + 1e-30)
    error, estimate = np.sqrt(total) / groups, values.mean((1, 2))
    whole = np.clip(df, 1, 1000).astype(int)
    quantiles = {d: [student_quantile(q, int(d)) for q in ((1 + level) / 2, 1 - alpha / 2)] for d in np.unique(whole)}
    narrow, wide = np.array([quantiles[d] for d in whole]).T
    equivalent = np.abs(estimate) + narrow * error < margin
    detected = estimate + margin > wide * error
    return float(equivalent.mean()), float(detected.mean())


@dataclass(frozen=True)
class Power:
    """The power of one primary test: shares of simulated studies, by the number of seeds."""

    outcome: str
    treatment: str
    control: str
    margin: float
    by_items: float  # standard deviation of the difference that the items cause
    by_seed: float  # … that a single seed causes
    equivalent: dict[int, float]
    detected: dict[int, float]


def power(results: Results, key: Key, study: Study) -> list[Power]:
    """Simulate the power of every primary test that has at least two seeds."""
    outcomes = {outcome.name: outcome for outcome in catalogue(key, study.tests)}
    primary, tests = study.settings["primary"], study.tests
    out = []
    for wanted in primary:
        outcome = outcomes.get(wanted["outcome"])
        found = cells(results, outcome) if outcome else {}
        both = difference(found.get(wanted["treatment"], {}), found.get(wanted["control"], {}))
        if outcome is None or len({seed for _, seed in both}) < 2:
            continue
        items, of_seed = spread(both)
        shown: dict[int, tuple[float, float]] = {
            n: shares(items, of_seed, n, outcome.margin, tests["alpha"] / len(primary), tests["equivalence"],
                      np.random.default_rng(n))
            for n in SEEDS
        }  # fmt: skip
        out.append(Power(
            **wanted, margin=outcome.margin, by_items=float(np.sqrt(items.sum()) / len(items)),
            by_seed=float(np.sqrt(of_seed.mean() / len(items))),
            equivalent={n: equal for n, (equal, _) in shown.items()},
            detected={n: seen for n, (_, seen) in shown.items()},
        ))  # fmt: skip
    return out
