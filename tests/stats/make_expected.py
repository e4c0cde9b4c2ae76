"""Writes expected.json: what scipy, statsmodels and scikit-learn say, so that tests need none.

python -m venv /tmp/reference && /tmp/reference/bin/pip install scipy statsmodels scikit-learn
/tmp/reference/bin/python tests/stats/make_expected.py
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import scipy
import scipy.optimize
import scipy.special
import scipy.stats
import sklearn
import statsmodels
import statsmodels.api
from sklearn.metrics import cohen_kappa_score, confusion_matrix
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower


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


def betas(rng: np.random.Generator) -> list[dict[str, object]]:
    found = []
    for a, b in [(0.5, 0.5), (2, 3), (0.5, 40), (150, 7.5), (900, 1100), (20_000, 30_000)]:
        for x in (0.02, a / (a + b), 0.93):
            found.append({"of": [a, b, x], "incomplete": float(scipy.special.betainc(a, b, x))})
    for df in (1, 3, 7.5, 60, 5000):
        for t in (-8.0, -1.3, 0.001, 2.5):
            found.append({"of": [t, df], "student": float(scipy.stats.t.cdf(t, df))})
    return found


def adjusted(rng: np.random.Generator) -> list[dict[str, object]]:
    found = []
    for size in (1, 5, 30):
        p = (rng.random(size) ** 3).round(6)
        p[: size // 5] = p[-1]  # some alike
        row: dict[str, object] = {"p": p.tolist()}
        row["holm"] = multipletests(p, method="holm")[1].tolist()
        found.append(row)
    return found


def flips(rng: np.random.Generator) -> list[dict[str, object]]:
    found = []
    for size in (5, 12):
        a, b = rng.normal(0.4, 1, size).round(4), rng.normal(size=size).round(4)
        row: dict[str, object] = {"a": a.tolist(), "b": b.tolist()}
        for alternative in ("two-sided", "greater", "less"):
            done = scipy.stats.permutation_test(
                (a, b), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=np.inf,
                alternative=alternative,
            )  # fmt: skip
            row[alternative] = float(done.pvalue)
        found.append(row)
    return found


def mcnemars() -> list[dict[str, object]]:
    tables = [[[10, 4], [11, 7]], [[3, 0], [5, 2]], [[200, 60], [31, 100]]]
    return [{"table": table, "p": float(mcnemar(table, exact=True).pvalue)} for table in tables]


def powers() -> list[dict[str, object]]:
    found = []
    for effect, rows in [(0.5, 20), (0.3, 50), (0.1, 800), (0.05, 800)]:
        value = TTestPower().power(effect, rows, 0.05, alternative="two-sided")
        found.append({"of": [effect, rows], "power": float(value)})
    return found


def davidsons(rng: np.random.Generator) -> list[dict[str, object]]:
    """Bradley–Terry with ties, by a general optimiser on the likelihood as it is written."""
    found = []
    for players, cast in [(4, 60), (9, 400)]:
        strength = rng.normal(size=players)
        a = rng.integers(players, size=cast)
        b = (a + rng.integers(1, players, size=cast)) % players
        logits = np.stack([strength[a], (strength[a] + strength[b]) / 2 - 0.3, strength[b]], axis=1)
        outcome = (logits + rng.gumbel(size=logits.shape)).argmax(1)

        def cost(x: np.ndarray, a: np.ndarray = a, b: np.ndarray = b, outcome: np.ndarray = outcome) -> float:
            theta = np.append(x[:-1], 0.0)
            parts = np.stack([theta[a], (theta[a] + theta[b]) / 2 + x[-1], theta[b]], axis=1)
            seen = parts[np.arange(a.size), outcome] - scipy.special.logsumexp(parts, axis=1)
            return -float(seen.sum())

        done = scipy.optimize.minimize(cost, np.zeros(players), method="BFGS", options={"gtol": 1e-5})
        done = scipy.optimize.minimize(
            cost, done.x, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 100_000}
        )
        theta = np.append(done.x[:-1], 0.0)
        found.append(
            {
                "a": a.tolist(),
                "b": b.tolist(),
                "outcome": outcome.tolist(),
                "ratings": (theta - theta.mean()).tolist(),
                "log_tie": float(done.x[-1]),
                "height": -float(done.fun),
            }
        )
    return found


def logits(rng: np.random.Generator) -> list[dict[str, object]]:
    """Bradley–Terry without ties but with covariates is a logistic regression; errors by cluster."""
    players, cast = 5, 300
    strength = rng.normal(size=players)
    a = rng.integers(players, size=cast)
    b = (a + rng.integers(1, players, size=cast)) % players
    longer = rng.normal(size=cast).round(4)
    clusters = rng.integers(40, size=cast)
    chance = 1 / (1 + np.exp(-(strength[a] - strength[b] + 0.5 * longer + 0.2)))
    won = (rng.random(cast) < chance).astype(float)
    design = np.zeros((cast, players + 2))
    at = np.arange(cast)
    design[at, a] += 1
    design[at, b] -= 1
    design[:, players], design[:, players + 1] = longer, 1
    model = statsmodels.api.Logit(won, np.delete(design, players - 1, axis=1))
    done = model.fit(
        disp=0, tol=1e-12, cov_type="cluster", cov_kwds={"groups": clusters, "use_correction": False}, method="newton"
    )
    return [
        {
            "a": a.tolist(),
            "b": b.tolist(),
            "won": won.tolist(),
            "longer": longer.tolist(),
            "clusters": clusters.tolist(),
            "values": done.params.tolist(),  # players 0 to 3 against 4, longer, side
            "errors": done.bse.tolist(),  # without the correction for the number of clusters
        }
    ]


def main() -> None:
    warnings.simplefilter("error")
    rng = np.random.default_rng(20)
    found = {
        "made_with": {m.__name__: m.__version__ for m in (np, scipy, sklearn, statsmodels)},
        "pairs": pairs(rng),
        "binomials": binomials(),
        "bootstraps": bootstraps(rng),
        "betas": betas(rng),
        "adjusted": adjusted(rng),
        "flips": flips(rng),
        "mcnemars": mcnemars(),
        "powers": powers(),
        "davidsons": davidsons(rng),
        "logits": logits(rng),
    }
    Path(__file__).with_name("expected.json").write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
