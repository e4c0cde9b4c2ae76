"""Adaptive pairs: places go to the pairs that votes have not decided yet."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from overtone.stats.votes import TIE, A, Votes, votes
from overtone.studio import adaptive, contents
from overtone.studio.store import Store
from tests.studio.helpers import new_study
from tests.studio.store.helpers import arrive

SYSTEMS = ["|".join(pair) for pair in combinations("abcd", 2)]
WORTH = {"a": 3.0, "b": 0.1, "c": 0.0, "d": -3.0}


def cast(count: int, seed: int = 0) -> Votes:
    """Votes of people for whom a is clearly best, d clearly worst, and b and c are close."""
    rng = np.random.default_rng(seed)
    pairs = [SYSTEMS[at].split("|") for at in rng.integers(len(SYSTEMS), size=count)]
    better = [rng.random() < 1 / (1 + np.exp(WORTH[b] - WORTH[a])) for a, b in pairs]
    return votes([a for a, _ in pairs], [b for _, b in pairs], ["A" if wins else "B" for wins in better])


def test_the_pair_that_is_not_decided_gets_most_places() -> None:
    chosen = Counter(adaptive.most_informative(SYSTEMS, cast(600), 24))
    assert chosen["b|c"] >= 12


def test_each_fourth_place_goes_to_the_pair_with_the_fewest_votes() -> None:
    before = votes(["a", "b", "a", "b"] * 9, ["b", "c", "c", "d"] * 9, ["A", "B", "tie", "A"] * 9)
    chosen = adaptive.most_informative(SYSTEMS, before, 8)
    assert {chosen[3], chosen[7]} == {"a|d", "c|d"}  # which never met


def test_without_votes_no_pair_is_preferred() -> None:
    assert adaptive.most_informative(SYSTEMS, votes([], [], []), 12) == []


def test_a_study_chooses_pairs_from_its_own_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaptive, "FRESH_SECONDS", 0.0)
    study = new_study(tmp_path, "--design", "ab", names=("good", "bad", "fair"))
    with Store.open(study) as store:
        store.freeze(contents.read(study).units, sides=2)
        wanted = adaptive.duels(study, store)
        assert wanted(6) == []
        label = arrive(store).label
        for slot in store.sessions.enter(label):
            systems = store.units()[slot.unit].system.split("|") if slot.unit else []
            good = "good" in systems and "AB"[(systems.index("good") == 0) == slot.swap]
            store.answers.add(label, slot.id, slot.id, {"better": good or "both_bad"}, plays={}, ms=1, done=True)
        tally = adaptive.cast(study, store)
        assert len(tally) == 6 and set(map(str, tally.players)) == {"good", "bad", "fair"}
        winners = [
            a if won == A else b for a, b, won in zip(tally.a, tally.b, tally.outcome, strict=True) if won != TIE
        ]
        assert {str(tally.players[one]) for one in winners} == {"good"}
        assert len(wanted(6)) == 6
        store.sessions.duels = lambda count: ["bad|fair"] * count
        real = [slot for slot in store.sessions.enter(arrive(store).label) if slot.kind == "real"]
        assert Counter(store.units()[slot.unit].system for slot in real).most_common(1)[0][0] == "bad|fair"
