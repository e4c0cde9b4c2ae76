"""The same numbers as scipy, statsmodels and scikit-learn give; theirs are stored by make_expected.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from overtone.stats import binomial, bootstrap, correlation, kappa

EXPECTED: dict[str, Any] = json.loads(Path(__file__).with_name("expected.json").read_text())


@pytest.mark.parametrize("row", EXPECTED["pairs"], ids=lambda row: f"{len(row['a'])} rows")
def test_correlations_and_kappas_are_theirs(row: dict[str, Any]) -> None:
    a, b = row["a"], row["b"]
    assert correlation.ranks(b).tolist() == row["ranks"]
    for measure in ("pearson", "spearman", "kendall"):
        assert getattr(correlation, measure)(a, b) == pytest.approx(row[measure], abs=1e-12)
    assert correlation.partial(a, b, row["c"]) == pytest.approx(row["partial"], abs=1e-10)
    if "scale" in row:
        assert kappa.confusion(a, b, row["scale"]).tolist() == row["confusion"]
        for weights in (None, "linear", "quadratic"):
            assert kappa.cohen(a, b, weights) == pytest.approx(row[f"cohen_{weights}"], abs=1e-12)  # type: ignore[arg-type]


@pytest.mark.parametrize("row", EXPECTED["tables"], ids=lambda row: f"{len(row['counts'])} units")
def test_fleiss_kappa_is_theirs(row: dict[str, Any]) -> None:
    assert kappa.fleiss(row["counts"]) == pytest.approx(row["fleiss"], abs=1e-12)


@pytest.mark.parametrize("row", EXPECTED["binomials"], ids=lambda row: str(row["of"]))
def test_binomial_tails_and_intervals_are_theirs(row: dict[str, Any]) -> None:
    successes, trials, chance = row["of"]
    assert binomial.at_least(successes, trials, chance) == pytest.approx(row["at_least"], rel=1e-9)
    assert binomial.at_most(successes, trials, chance) == pytest.approx(row["at_most"], rel=1e-9)
    assert binomial.exact_interval(successes, trials) == pytest.approx(row["interval"], abs=1e-9)


@pytest.mark.parametrize("row", EXPECTED["bootstraps"], ids=lambda row: f"{len(row['values'])} values")
@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_bootstrap_intervals_are_theirs_but_for_the_luck_of_the_draws(row: dict[str, Any], method: Any) -> None:
    x = row["values"]
    found = bootstrap.clustered_means(x, range(len(x)), seed=0, draws=100_000, method=method)
    assert (found.low, found.high) == pytest.approx(row[method], abs=0.03 * found.error)
