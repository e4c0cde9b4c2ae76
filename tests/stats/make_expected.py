"""Writes expected.json: what scipy, statsmodels and scikit-learn say of small random inputs, so that tests need none.

python -m venv /tmp/reference && /tmp/reference/bin/pip install scipy statsmodels scikit-learn
/tmp/reference/bin/python tests/stats/make_expected.py
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import scipy
import scipy.stats
import sklearn
import statsmodels
from sklearn.metrics import cohen_kappa_score, confusion_matrix
from statsmodels.stats.inter_rater import fleiss_kappa


def rounded(x: float) -> float | None:
    return None if np.isnan(x) else float(f"{x:.15g}")


def pairs(rng: np.random.Generator) -> list[dict[str, object]]:
    found = []
    for rows, kinds in [(8, 2), (20, 5), (50, 3), (150, 5), (40, 0)]:
        if kinds:
            a = rng.integers(1, kinds + 1, rows).astype(float)
            b = np.where(rng.random(rows) < 0.5, a, rng.integers(1, kinds + 1, rows)).astype(float)
        else:
            a = rng.normal(size=rows).round(6)
            b = (0.5 * a + rng.normal(size=rows)).round(6)
        c = (0.3 * a + rng.normal(size=rows)).round(6)
        left = [side - np.polyval(np.polyfit(c, side, 1), c) for side in (a, b)]
        row: dict[str, object] = {
            "a": a.tolist(),
            "b": b.tolist(),
            "c": c.tolist(),
            "ranks": scipy.stats.rankdata(b).tolist(),
            "pearson": rounded(scipy.stats.pearsonr(a, b)[0]),
            "spearman": rounded(scipy.stats.spearmanr(a, b)[0]),
            "kendall": rounded(scipy.stats.kendalltau(a, b)[0]),
            "partial": rounded(scipy.stats.pearsonr(*left)[0]),
        }
        if kinds:
            scale = list(range(1, kinds + 1))
            row["scale"] = scale
            row["confusion"] = confusion_matrix(a, b, labels=scale).tolist()
            for weights in (None, "linear", "quadratic"):
                row[f"cohen_{weights}"] = rounded(cohen_kappa_score(a, b, labels=scale, weights=weights))
        found.append(row)
    return found


def tables(rng: np.random.Generator) -> list[dict[str, object]]:
    found = []
    for units, raters, kinds in [(10, 2, 2), (30, 5, 4), (12, 14, 5)]:
        counts = np.stack([rng.multinomial(raters, rng.dirichlet(np.ones(kinds))) for _ in range(units)])
        found.append({"counts": counts.tolist(), "fleiss": rounded(fleiss_kappa(counts))})
    return found


def binomials() -> list[dict[str, object]]:
    found = []
    for successes, trials, chance in [(0, 10, 0.5), (10, 10, 0.5), (7, 20, 0.25), (61, 96, 0.5), (300, 1000, 0.25)]:
        test = scipy.stats.binomtest(successes, trials, chance, alternative="greater")
        other = scipy.stats.binomtest(successes, trials, chance, alternative="less")
        edges = scipy.stats.binomtest(successes, trials).proportion_ci(0.95, method="exact")
        found.append(
            {
                "of": [successes, trials, chance],
                "at_least": test.pvalue,
                "at_most": other.pvalue,
                "interval": [edges.low, edges.high],
            }
        )
    return found


def bootstraps(rng: np.random.Generator) -> list[dict[str, object]]:
    found = []
    for rows in (12, 40):
        x = rng.exponential(size=rows).round(6)
        row: dict[str, object] = {"values": x.tolist()}
        for method in ("percentile", "bca"):
            done = scipy.stats.bootstrap((x,), np.mean, n_resamples=200_000, method=method, rng=1, batch=10_000)
            row[method] = [float(f"{edge:.6g}") for edge in done.confidence_interval]
        found.append(row)
    return found


def main() -> None:
    warnings.simplefilter("error")
    rng = np.random.default_rng(20)
    found = {
        "made_with": {m.__name__: m.__version__ for m in (np, scipy, sklearn, statsmodels)},
        "pairs": pairs(rng),
        "tables": tables(rng),
        "binomials": binomials(),
        "bootstraps": bootstraps(rng),
    }
    Path(__file__).with_name("expected.json").write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
