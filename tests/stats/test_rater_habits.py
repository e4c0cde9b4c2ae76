"""Raters' habits: a careful one, a guesser, a contrarian, one who always says A and one who always ties."""

from __future__ import annotations

import numpy as np
import pytest

from overtone.stats import rank, rater_habits, votes

NAMES = ("A", "tie", "B")


def _cast(rng: np.random.Generator, kinds: list[str], each: int) -> tuple[votes.Votes, list[str]]:
    strength = np.array([1.5, 0.5, -0.5, -1.5])
    rows = []
    for kind in kinds:
        for _ in range(each):
            a, b = rng.choice(4, size=2, replace=False).tolist()
            d = {"careful": 1, "guesser": 0, "contrarian": -1}.get(kind, 1) * (strength[a] - strength[b])
            parts = np.exp([d / 2, -0.5, -d / 2])
            winner = {"always A": "A", "always tie": "tie"}.get(kind, NAMES[rng.choice(3, p=parts / parts.sum())])
            rows.append((a, b, winner, kind))
    return votes.votes([r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows]), [r[3] for r in rows]


def test_each_habit_shows_where_it_should() -> None:
    kinds = [*[f"normal {i}" for i in range(40)], "careful", "guesser", "contrarian", "always A", "always tie"]
    cast, who = _cast(np.random.default_rng(0), kinds, 80)
    found = {r.rater: r for r in rater_habits.rater_effects(cast, rank.bradley_terry(cast), who)}
    assert list(found) == kinds and found["careful"].votes == 80

    def far(effect: rater_habits.Effect, centre: float) -> float:
        return (effect.value - centre) / effect.error

    assert abs(far(found["careful"].sharpness, 1)) < 3 and abs(far(found["careful"].side, 0)) < 3
    assert abs(far(found["guesser"].sharpness, 0)) < 3
    assert far(found["contrarian"].sharpness, 1) < -6
    assert far(found["always A"].side, 0) > 6 and far(found["always A"].ties, 0) < -3
    assert far(found["always tie"].ties, 0) > 10
    normal = [far(found[f"normal {i}"].side, 0) for i in range(40)]
    assert np.std(normal) == pytest.approx(1, abs=0.35)


def test_every_vote_needs_its_rater() -> None:
    cast, _ = _cast(np.random.default_rng(1), ["normal"], 100)
    with pytest.raises(ValueError, match="100 votes but 1 raters"):
        rater_habits.rater_effects(cast, rank.bradley_terry(cast), ["me"])
