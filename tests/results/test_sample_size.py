"""How many scripts a difference needs: by hand, measured in runs, and held against simulated comparisons."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from overtone.errors import UsageError
from overtone.results.sample_size import Need, needs, sentences
from tests.results.pairs import answers, asked, opened, talks
from tests.results.small import Maker
from tests.stats.reference import mcnemar

Z = 1.959964, 0.841621  # of 97.5 % and 80 %


def by_name(found: list[Need]) -> dict[str, Need]:
    return {need.measure: need for need in found}


def test_without_a_run_the_stated_assumptions_give_the_textbook_size() -> None:
    found = by_name(needs(0.03, 0.8))
    # rates of 0.485 and 0.515 that correlate by 0.5: McNemar's sample size after Connor
    both = 0.485 * 0.515 + 0.5 * 0.485 * 0.515
    either = 0.485 + 0.515 - 2 * both
    wanted = (Z[0] * math.sqrt(either) + Z[1] * math.sqrt(either - 0.03**2)) ** 2 / 0.03**2
    assert found["voice_accuracy"].scripts == math.ceil(wanted) == 2184
    # a spread of 1 each, correlated by 0.5, is a spread of 1 between: (1.96 + 0.84)² ÷ 0.12², and a little for Student
    assert found["c4"].difference == pytest.approx(0.12)
    assert (sum(Z) / 0.12) ** 2 <= found["c4"].scripts <= (sum(Z) / 0.12) ** 2 + 4
    assert all(need.have == 0 and need.finds is None for need in found.values())


def test_items_of_one_script_are_worth_less_than_as_many_scripts() -> None:
    one = [asked(number) for number in range(10)]
    four = [asked(100 * part + number, group=f"synthesis/s{number}") for number in range(10) for part in range(4)]
    single, quadruple = needs(0.05, 0.8, (), one)[0], needs(0.05, 0.8, (), four)[0]
    assert (single.per_script, quadruple.per_script) == (1, 4)
    assert single.items < quadruple.items
    assert single.scripts / 4 < quadruple.scripts < single.scripts
    assert quadruple.scripts == pytest.approx(single.scripts / 4 * (1 + 3 * 0.1), abs=1)
    assert (single.have, quadruple.have) == (10, 10)


def test_what_the_scripts_there_are_find_is_what_would_need_so_many() -> None:
    items = [asked(number) for number in range(300)]
    (need,) = needs(0.03, 0.8, (), items)
    assert need.finds is not None
    assert needs(need.finds, 0.8, (), items)[0].scripts == pytest.approx(300, abs=1)
    assert "are too few" in sentences([need], 0.8)[0]
    assert "suffice" in sentences(needs(0.2, 0.8, (), items), 0.8)[0]


def test_smaller_differences_and_more_power_need_more() -> None:
    sizes = [needs(difference, 0.8)[0].scripts for difference in (0.1, 0.05, 0.02)]
    assert sizes == sorted(sizes)
    assert needs(0.05, 0.9)[0].scripts > needs(0.05, 0.8)[0].scripts


def test_two_runs_tell_how_often_only_one_is_right(tmp_path: Path) -> None:
    first = [True] * 50 + [False] * 50
    second = [True] * 45 + [False] * 5 + [True] * 5 + [False] * 45
    a, b = opened(answers(tmp_path / "a", first), answers(tmp_path / "b", second))
    (need,) = needs(0.04, 0.8, [a, b])
    assert "only one right on 10.0 % of 100 pairs" in need.basis
    wanted = (Z[0] * math.sqrt(0.1) + Z[1] * math.sqrt(0.1 - 0.04**2)) ** 2 / 0.04**2
    assert need.scripts == math.ceil(wanted)
    (alone,) = needs(0.04, 0.8, [a])
    assert "rate 0.50" in alone.basis
    assert "assumed" in alone.basis


def test_two_runs_tell_the_spread_of_differences(tmp_path: Path) -> None:
    a, b = opened(talks(tmp_path / "a", [3.0] * 40), talks(tmp_path / "b", [2.5, 3.5] * 20))
    (need,) = needs(0.05, 0.8, [a, b])
    spread = 0.5 * math.sqrt(40 / 39)
    assert need.difference == pytest.approx(0.2)
    assert (sum(Z) * spread / 0.2) ** 2 <= need.scripts <= (sum(Z) * spread / 0.2) ** 2 + 4


def test_rows_that_go_together_are_seen_in_a_run(tmp_path: Path) -> None:
    maker = Maker(tmp_path / "a")
    for script in range(30):
        for part in range(4):
            maker.choice(asked(100 * script + part, group=f"synthesis/s{script}"), "A" if script % 2 else "B")
    (run,) = opened(maker.done())
    (need,) = needs(0.05, 0.8, [run])
    assert "items of a script 1.00" in need.basis
    assert need.items == 4 * need.scripts
    assert need.scripts == pytest.approx(needs(0.05, 0.8)[0].scripts, abs=2)  # four copies are one item


def test_the_sizes_are_those_the_comparison_needs() -> None:
    """As many scripts as planned, two models that differ as planned: the test finds it about as often as said."""
    need = needs(0.15, 0.8)[0]
    both = 0.425 * 0.575 * 1.5
    only = 0.425 - both, 0.575 - both
    rng = np.random.default_rng(5)
    found = 0
    for _ in range(300):
        draw = rng.choice(3, size=need.scripts, p=[*only, 1 - sum(only)])
        a, b = (draw == 0).astype(float), (draw == 1).astype(float)
        found += mcnemar(b, a) <= 0.05
    assert 0.70 <= found / 300 <= 0.86


def test_runs_without_scores_or_spread_and_wrong_numbers_are_clear_errors(tmp_path: Path) -> None:
    (nothing,) = opened(answers(tmp_path / "a", [None, None]))
    with pytest.raises(UsageError, match="nothing to plan"):
        needs(0.03, 0.8, [nothing])
    same, again = opened(talks(tmp_path / "b", [3.0] * 5), talks(tmp_path / "c", [3.0] * 5))
    with pytest.raises(UsageError, match="nothing to plan"):
        needs(0.03, 0.8, [same, again])
    for difference, power in ((0.0, 0.8), (1.0, 0.8), (-0.1, 0.8), (math.nan, 0.8), (0.1, 0.01), (0.1, 1.0)):
        with pytest.raises(UsageError):
            needs(difference, power)
    with pytest.raises(UsageError, match="one run, or two"):
        needs(0.03, 0.8, [same, same, same])
    with pytest.raises(UsageError, match="detects such a small difference"):
        needs(1e-9, 0.8)


@pytest.mark.parametrize("right", [[True] * 12, [False] * 12, [True] * 11 + [False]])
def test_a_rate_at_the_end_of_the_scale_still_has_a_size(tmp_path: Path, right: list[bool]) -> None:
    (run,) = opened(answers(tmp_path / "a", right))
    assert needs(0.05, 0.8, [run])[0].scripts > 2
