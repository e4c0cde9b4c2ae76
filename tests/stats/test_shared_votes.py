"""Rankings of real votes: 8,931 of a crowd on 59 language models, and the scores a reference program gives them."""

from __future__ import annotations

import csv
import math
import os
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from overtone.stats import agreement, correlation, elo, rank, rater_habits, votes, winrate
from overtone.stats.votes import Votes

DATA = Path(os.environ.get("OVERTONE_SHARED", Path(__file__).parents[3] / "shared")) / "data"
GOLDEN, CROWD = DATA / "evalica_golden", DATA / "llmfao"
pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(
        not (GOLDEN.is_dir() and CROWD.is_dir()),
        reason="no vote data; set OVERTONE_SHARED to the folder that holds data/",
    ),
]
WORDS = {"left": "A", "right": "B", "tie": "tie"}


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def cast(rows: list[dict[str, str]]) -> Votes:
    return votes.votes([r["left"] for r in rows], [r["right"] for r in rows], [WORDS[r["winner"]] for r in rows])


@pytest.mark.parametrize("name", ["simple", "food", "llmfao"])
def test_scores_are_those_of_the_reference(name: str) -> None:
    golden: dict[str, dict[Any, float]] = defaultdict(dict)
    for row in read(GOLDEN / f"{name}-golden.csv"):
        golden[row["algorithm"]][row["item"]] = float(row["score"])
    found = cast(read(GOLDEN / f"{name}.csv"))
    halved = {r.player: math.exp(r.rating.value) for r in rank.bradley_terry(found, ties="half").rated}
    total = sum(halved.values())
    assert {player: strength / total for player, strength in halved.items()} == pytest.approx(golden["bradley_terry"])
    # Newman's method is Davidson's model with ties at half of our scale; strengths have another centre
    centre = sum(map(math.log, golden["newman"].values())) / len(golden["newman"])
    davidson = {r.player: r.rating.value for r in rank.bradley_terry(found).rated}
    expected = {player: math.log(score) - centre for player, score in golden["newman"].items()}
    assert davidson == pytest.approx(expected, abs=1e-9)
    assert elo.elo(found) == pytest.approx(golden["elo"], rel=1e-12)
    counted = {player: rate.value * rate.rows for player, rate in winrate.win_rates(found, ties="half").items()}
    assert counted == pytest.approx(golden["counting"])


def test_the_model_judge_agrees_with_the_crowd_as_often_as_was_found() -> None:
    crowd: dict[str, Counter[str]] = defaultdict(Counter)
    for row in read(CROWD / "crowd-comparisons.csv"):
        crowd[row["id"]][row["winner"]] += 1
    judged = read(CROWD / "gpt4-crowd-comparisons.csv")

    # where two answers lead, the one that was given first counts
    both = [(row["winner"], crowd[row["id"]].most_common(1)[0][0]) for row in judged]
    assert len(both) == 2139
    assert sum(a == b for a, b in both) / len(both) == pytest.approx(0.435, abs=0.0005)
    decided = [(a, b) for a, b in both if "tie" not in (a, b)]
    assert sum(a == b for a, b in decided) / len(decided) == pytest.approx(0.711, abs=0.0005)


def test_the_crowd_and_the_judge_rank_59_models_alike_but_not_the_same() -> None:
    rows = read(CROWD / "crowd-comparisons.csv")
    crowd = rank.bradley_terry(cast(rows), clusters=[row["prompt"] for row in rows])
    judge = rank.bradley_terry(cast(read(CROWD / "gpt4-crowd-comparisons.csv")), prior=0.5)
    assert len(crowd.rated) == 59 and crowd.rated[0].player == "GPT 4"
    names = list(crowd.players)
    together = correlation.kendall(
        [crowd.of(name).rating.value for name in names], [judge.of(name).rating.value for name in names]
    )
    assert 0.4 < together < 0.9
    assert crowd.of("GPT 4").places[0] == 1 and crowd.of("GPT 4").places[1] < 15


def test_the_crowd_leans_to_the_left_and_raters_differ() -> None:
    rows = read(CROWD / "crowd-comparisons.csv")
    found = rank.bradley_terry(cast(rows), clusters=[row["worker"] for row in rows], side=True)
    assert found.clusters == 124
    assert found.covariates["side"].low > 0
    who = rater_habits.rater_effects(cast(rows), found, [row["worker"] for row in rows])
    busy = [r for r in who if r.votes >= 50]
    assert len(busy) > 30 and max(r.ties.value / r.ties.error for r in busy) > 5


def test_alpha_of_the_reference_codings_is_the_published_one() -> None:
    with (GOLDEN / "codings.csv").open(newline="") as file:
        table = [[float(x) if x else None for x in row] for row in csv.reader(file)]
    assert agreement.alpha(table, "nominal") == pytest.approx(0.743, abs=0.0005)
