"""Means of systems under crossed effects of raters and scripts, against planted values and balanced formulas."""

from __future__ import annotations

import numpy as np
import pytest

from overtone.stats import cluster
from overtone.stats.crossed import components, system_means
from overtone.stats.votes_needed import votes_needed


def planted(seed: int, raters: int, scripts: int, means: dict[str, float], *, share: float = 0.5):  # type: ignore[no-untyped-def]
    """Ratings y = system + rater (sd 0.6) + script (sd 0.5) + reply (sd 0.3) + noise (sd 0.7), a share of all cells."""
    rng = np.random.default_rng(seed)
    rater_effect, script_effect = rng.normal(0, 0.6, raters), rng.normal(0, 0.5, scripts)
    rows = []
    for system, mean in means.items():
        reply = rng.normal(0, 0.3, scripts)
        for r in range(raters):
            for s in range(scripts):
                if rng.random() < share:
                    y = mean + rater_effect[r] + script_effect[s] + reply[s] + rng.normal(0, 0.7)
                    rows.append((y, system, f"r{r}", f"s{s}"))
    return [list(column) for column in zip(*rows, strict=True)], rater_effect


def test_variances_of_a_balanced_table_are_those_of_the_analysis_of_variance() -> None:
    rng = np.random.default_rng(1)
    table = rng.normal(0, 1, (8, 1)) + rng.normal(0, 2, (1, 12)) + rng.normal(0, 0.5, (8, 12))
    rows, columns = table.mean(1), table.mean(0)
    rest = ((table - rows[:, None] - columns + table.mean()) ** 2).sum() / (7 * 11)
    expected = 12 * rows.var(ddof=1), 8 * columns.var(ddof=1)
    found = components(table.ravel(), np.repeat(np.arange(8), 12), np.tile(np.arange(12), 8))
    assert found.rest == pytest.approx(rest)
    assert found.raters == pytest.approx((expected[0] - rest) / 12)
    assert found.scripts == pytest.approx((expected[1] - rest) / 8)


def test_with_one_rating_per_rater_the_interval_is_the_clustered_one() -> None:
    values = [3.0, 4, 2, 5, 4, 1, 3, 5]
    scripts = ["a", "a", "b", "b", "c", "c", "d", "d"]
    made = system_means(values, ["x"] * 8, ["one"] * 8, scripts).of("x")
    expected = cluster.mean(values, scripts)
    assert (made.value, made.error, made.low) == pytest.approx((expected.value, expected.error, expected.low))


def test_a_strict_rater_of_one_system_does_not_count_against_it() -> None:
    rows = [(4.0 - 2 * (r == 0), s, f"r{r}", f"s{i}") for i in range(12) for r in range(4) for s in "ab"]
    rows = [row for row in rows if not (row[1] == "b" and row[2] == "r0")]  # the strict rater rated system a only
    made = system_means(*map(list, zip(*rows, strict=True)))  # type: ignore[arg-type]
    assert np.mean([row[0] for row in rows if row[1] == "a"]) == pytest.approx(3.5)
    assert abs(made.difference("a", "b").value) < 0.01
    strict = next(one for one in made.severities if one.rater == "r0")
    assert strict.value == min(one.value for one in made.severities) < -1


def test_planted_means_and_severities_are_found() -> None:
    (values, systems, raters, scripts), effects = planted(7, 30, 60, {"a": 3.0, "b": 3.4, "c": 3.4})
    made = system_means(values, systems, raters, scripts)
    assert made.difference("b", "a").low > 0 and made.difference("b", "c").low < 0 < made.difference("b", "c").high
    found = {one.rater: one.value for one in made.severities}
    assert np.corrcoef([found[f"r{r}"] for r in range(30)], effects)[0, 1] > 0.95
    assert made.components.raters == pytest.approx(0.36, rel=0.6)


def test_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    mean_inside = gap_inside = naive_inside = 0
    for seed in range(150):
        (values, systems, raters, scripts), _ = planted(seed, 15, 20, {"a": 3.0, "b": 3.2}, share=0.3)
        made = system_means(values, systems, raters, scripts)
        mean, gap = made.of("a"), made.difference("b", "a")
        mean_inside += mean.low <= 3.0 <= mean.high
        gap_inside += gap.low <= 0.2 <= gap.high
        own = [v for v, s in zip(values, systems, strict=True) if s == "a"]
        naive = cluster.mean(own, range(len(own)))
        naive_inside += naive.low <= 3.0 <= naive.high
    assert 0.90 <= mean_inside / 150 <= 1 and 0.90 <= gap_inside / 150 <= 1
    assert naive_inside / 150 < 0.75  # what ignoring raters and scripts would claim


def test_two_scripts_are_needed_for_an_interval() -> None:
    made = system_means([1, 2, 3], ["a", "a", "b"], ["r", "q", "r"], ["s", "s", "t"])
    assert np.isnan(made.of("a").low) and made.of("a").clusters == 1


def test_ratings_that_never_vary_have_their_value() -> None:
    made = system_means([4.0] * 6, list("aabbab"), list("rqrqrq"), list("sstuvw"))
    assert made.of("a").value == pytest.approx(4) and made.difference("a", "b").value == pytest.approx(0)


def votes(seed: int, scripts: int, each: int, lead: float, between: float) -> tuple[list[float], list[str], list[int]]:
    rng = np.random.default_rng(seed)
    rows = [
        (lead + gap + rng.normal(0, 1), f"s{s}")
        for s, gap in enumerate(rng.normal(0, between, scripts))
        for _ in range(each)
    ]
    return [v for v, _ in rows], [s for _, s in rows], [1] * len(rows)


def test_the_number_of_votes_that_decide_is_about_right() -> None:
    few = votes(3, 40, 2, 0.2, 0.05)
    decision = votes_needed(*few)
    assert decision.verdict == "votes" and 20 < decision.more < 400
    decided = sum(
        votes_needed(*votes(seed, 40, 2 + 2 * decision.more // 40, 0.2, 0.05)).verdict == "decided"
        for seed in range(40)
    )
    assert decided > 25


def test_a_clear_lead_is_decided_and_equal_systems_stay_open() -> None:
    assert votes_needed(*votes(1, 30, 3, 1.0, 0.1)).verdict == "decided"
    assert votes_needed([1, -1, 1, -1], list("abcd"), [1, 1, 1, 1]).verdict == "few"
    assert votes_needed([1, -1] * 3, list("abcdef"), [1] * 6).verdict == "close"
    assert votes_needed([1.0], ["a"], [1]).verdict == "few"


def test_differences_between_scripts_call_for_scripts_instead_of_votes() -> None:
    assert votes_needed(*votes(6, 12, 20, 0.5, 1.5)).verdict == "scripts"


def test_few_raters_who_differ_leave_a_lead_undecided_however_many_scripts_they_rate() -> None:
    leans = {"ann": 0.9, "bob": -0.1, "cem": 0.6}
    values = [lean + (0.2 if s % 2 else -0.2) for lean in leans.values() for s in range(40)]
    raters, scripts = [name for name in leans for _ in range(40)], [f"s{s}" for s in range(40)] * 3
    fitted = system_means(values, [""] * 120, raters, scripts)
    p = fitted.p_value("")
    assert fitted.of("").low < 0 and p is not None and p > 0.05
    assert votes_needed(values, scripts, [1] * 120).verdict == "decided"  # by scripts alone
    assert votes_needed(values, scripts, [1] * 120, p=p).verdict == "people"
    assert votes_needed(values, scripts, [1] * 120, p=0.01).verdict == "decided"


def test_ratings_of_two_systems_are_compared_within_scripts() -> None:
    values, scripts, sides = [], [], []
    for s in range(20):
        for side, value in ((1, 4.0), (-1, 3.0)):
            values.append(value + s % 3)
            scripts.append(f"s{s}")
            sides.append(side)
    assert votes_needed(values, scripts, sides).verdict == "decided"
