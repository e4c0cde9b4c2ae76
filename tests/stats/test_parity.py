"""The same numbers as scipy, statsmodels and scikit-learn give; theirs are stored by make_expected.py."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from overtone.stats import beta, binomial, correlation, kappa, multiplicity, paired, power, rank, votes
from tests.stats.reference import clustered_means, mcnemar

EXPECTED: dict[str, Any] = json.loads(Path(__file__).with_name("expected.json").read_text())


@pytest.mark.parametrize("row", EXPECTED["pairs"], ids=lambda row: f"{len(row['a'])} rows")
def test_correlations_and_kappas_are_theirs(row: dict[str, Any]) -> None:
    a, b = row["a"], row["b"]
    for measure in ("pearson", "spearman", "kendall"):
        assert getattr(correlation, measure)(a, b) == pytest.approx(row[measure], abs=1e-12)
    assert correlation.partial(a, b, row["c"]) == pytest.approx(row["partial"], abs=1e-10)
    if "scale" in row:
        assert kappa.confusion(a, b, row["scale"]).tolist() == row["confusion"]
        for weights in (None, "linear", "quadratic"):
            assert kappa.cohen(a, b, weights) == pytest.approx(row[f"cohen_{weights}"], abs=1e-12)  # type: ignore[arg-type]


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
    found = clustered_means(x, range(len(x)), seed=0, draws=100_000, method=method)
    assert (found.low, found.high) == pytest.approx(row[method], abs=0.03 * found.error)


@pytest.mark.parametrize("row", EXPECTED["betas"], ids=lambda row: str(row["of"]))
def test_the_incomplete_beta_and_its_laws_are_theirs(row: dict[str, Any]) -> None:
    of = row["of"]
    if "incomplete" in row:
        assert beta.incomplete(*of) == pytest.approx(row["incomplete"], rel=1e-10, abs=1e-300)
    else:
        assert beta.student_cdf(*of) == pytest.approx(row["student"], rel=1e-11)


@pytest.mark.parametrize("row", EXPECTED["adjusted"], ids=lambda row: f"{len(row['p'])} tests")
def test_adjusted_p_values_are_theirs(row: dict[str, Any]) -> None:
    assert multiplicity.holm(row["p"]) == pytest.approx(row["holm"], abs=1e-14)


@pytest.mark.parametrize("row", EXPECTED["flips"], ids=lambda row: f"{len(row['a'])} rows")
@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_exact_sign_flips_are_theirs(row: dict[str, Any], alternative: Any) -> None:
    found = paired.permutation(row["a"], row["b"], range(len(row["a"])), seed=0, alternative=alternative)
    assert found.p == pytest.approx(row[alternative], abs=1e-12)


@pytest.mark.parametrize("row", EXPECTED["mcnemars"], ids=lambda row: str(row["table"]))
def test_mcnemars_p_values_are_theirs(row: dict[str, Any]) -> None:
    (both, only_a), (only_b, neither) = row["table"]
    a = [1.0] * (both + only_a) + [0.0] * (only_b + neither)
    b = [1.0] * both + [0.0] * only_a + [1.0] * only_b + [0.0] * neither
    assert mcnemar(a, b) == pytest.approx(row["p"], rel=1e-9)


@pytest.mark.parametrize("row", EXPECTED["powers"], ids=lambda row: str(row["of"]))
def test_power_is_close_to_the_noncentral_one(row: dict[str, Any]) -> None:
    effect, rows = row["of"]
    assert power.mean_power(effect, 1.0, rows) == pytest.approx(row["power"], abs=0.01)


@pytest.mark.parametrize("row", EXPECTED["davidsons"], ids=lambda row: f"{len(row['a'])} votes")
def test_ratings_with_ties_are_at_the_top_a_general_optimiser_finds(row: dict[str, Any]) -> None:
    cast = votes.votes(row["a"], row["b"], [("A", "tie", "B")[o] for o in row["outcome"]])
    found = rank.bradley_terry(cast)
    ours = [found.of(player).rating.value for player in range(len(row["ratings"]))]
    assert ours == pytest.approx(row["ratings"], abs=1e-5)
    assert math.log(found.tie) == pytest.approx(row["log_tie"], abs=1e-5)
    height = sum(math.log(found.chance(a, b)[o]) for a, b, o in zip(row["a"], row["b"], row["outcome"], strict=True))
    assert height >= row["height"] - 1e-9


def test_covariates_and_their_clustered_errors_are_those_of_a_logistic_regression() -> None:
    row = EXPECTED["logits"][0]
    cast = votes.votes(row["a"], row["b"], ["A" if won else "B" for won in row["won"]])
    found = rank.bradley_terry(cast, covariates={"longer": row["longer"]}, side=True, clusters=row["clusters"])
    clusters = len(set(row["clusters"]))
    ours = [found.difference(player, 4) for player in range(4)] + [found.covariates[c] for c in ("longer", "side")]
    correction = math.sqrt(clusters / (clusters - 1))
    assert [x.value for x in ours] == pytest.approx(row["values"], rel=1e-6)
    assert [x.error for x in ours] == pytest.approx([correction * e for e in row["errors"]], rel=1e-6)
