"""Real votes through the same import: a crowd's on 59 language models, and a model judge's on the same pairs."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from overtone.arena import ballots
from overtone.arena.electorate_agreement import DRAWS
from overtone.arena.standings import START, standings
from overtone.stats import rank, votes

CROWD = Path(os.environ.get("OVERTONE_SHARED", Path(__file__).parents[3] / "shared")) / "data" / "llmfao"
pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not CROWD.is_dir(), reason="no vote data; set OVERTONE_SHARED to the folder that holds data/"),
]


def test_a_crowd_and_a_judge_are_ranked_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("overtone.arena.electorate_agreement.DRAWS", DRAWS // 10)
    people = ballots.read(CROWD / "crowd-comparisons.csv", None, {})
    pairs = {pair.id: pair for pair in people.pairs}
    judge = ballots.read(CROWD / "gpt4-crowd-comparisons.csv", None, pairs, kind="judge")
    assert (len(people.votes), len(pairs), len(judge.votes), judge.pairs) == (8931, 2139, 2139, [])
    found = standings([*people.votes, *judge.votes], pairs)
    crowd, robot = found.electorates
    assert (crowd.raters, robot.raters, len(crowd.places)) == (124, 1, 59)
    with (CROWD / "crowd-comparisons.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    words = {"left": "A", "right": "B", "tie": "tie"}
    cast = votes.votes([r["left"] for r in rows], [r["right"] for r in rows], [words[r["winner"]] for r in rows])
    direct = rank.bradley_terry(cast, clusters=[row["prompt"] for row in rows])
    for place in crowd.places:
        expected = START + rank.POINTS * direct.of(place.run).rating.value
        assert place.rating and place.rating.value == pytest.approx(expected)
    (agreement,) = found.agreements
    assert agreement.tau.value == pytest.approx(0.54, abs=0.005)
    assert agreement.tau.low is not None and 0.2 < agreement.tau.low < agreement.tau.value
    assert agreement.same.scored == 1660 and agreement.same.value == pytest.approx(0.661, abs=0.001)
