"""The solver: many problems at once are each alone, any start leads to the same top, and where none is it says so."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from overtone.stats import davidson, votes


def _problem(rng: np.random.Generator, count: int = 200, covariates: int = 0) -> tuple[davidson.Cells, votes.Votes]:
    strength = np.array([1.0, 0.3, 0.0, -0.5, -0.8])
    a = rng.integers(5, size=count)
    b = (a + rng.integers(1, 5, size=count)) % 5
    half = (strength[a] - strength[b]) / 2
    parts = np.stack([np.exp(half), np.full(count, 0.6), np.exp(-half)], axis=1)
    outcome = (rng.random((count, 1)) > parts.cumsum(1) / parts.sum(1, keepdims=True)).sum(1)
    cast = votes.votes(a.tolist(), b.tolist(), [("A", "tie", "B")[o] for o in outcome])
    x = rng.standard_cauchy((count, covariates))  # a few votes lie far out
    x /= np.sqrt((x**2).mean(0))
    return davidson.cells(cast, x, tied=True), cast


def test_problems_solved_together_are_those_solved_alone() -> None:
    rng = np.random.default_rng(0)
    cells, cast = _problem(rng, covariates=1)
    seen = np.stack([davidson.counts(cells, rng.integers(0, 3, len(cast)).astype(float)) for _ in range(7)])
    start = np.zeros((7, cells.parameters))
    together, done = davidson.solve(cells, seen, start, prior=0, steps=100)
    assert done.all()
    for one, found in zip(seen, together, strict=True):
        alone, _ = davidson.solve(cells, one[None], start[:1], prior=0, steps=100)
        assert alone[0] == pytest.approx(found, abs=1e-9)
        assert davidson.climb(cells, one[None], found[None], 0).slope == pytest.approx(0, abs=1e-8)


def test_any_start_leads_to_the_same_top(monkeypatch: pytest.MonkeyPatch) -> None:
    heights: list[float] = []
    climb = davidson.climb

    def watched(*given: Any) -> davidson.Point:
        found = climb(*given)
        heights.append(float(found.height[0]))
        return found

    monkeypatch.setattr(davidson, "climb", watched)
    falls = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        cells, _ = _problem(rng, covariates=1)
        seen = davidson.counts(cells)[None]
        start = rng.normal(0, 3, (1, cells.parameters))
        start[:, :5] -= start[:, :5].mean()
        near, _ = davidson.solve(cells, seen, np.zeros_like(start), prior=0, steps=100)
        heights.clear()
        far, done = davidson.solve(cells, seen, start, prior=0, steps=100)
        assert done[0] and far == pytest.approx(near, abs=1e-7)
        falls += sum(later < earlier - 1e-6 for earlier, later in itertools.pairwise(heights))
    assert falls  # some steps went too far, and were taken back


def test_a_slope_and_a_curvature_are_those_of_the_height() -> None:
    rng = np.random.default_rng(1)
    cells, _ = _problem(rng, count=60, covariates=2)
    seen = davidson.counts(cells)[None]
    at = rng.normal(0, 0.5, (1, cells.parameters))
    here = davidson.climb(cells, seen, at, prior=0.7)
    for i in range(cells.parameters):
        beside = np.zeros_like(at)
        beside[0, i] = 1e-5
        up, down = (davidson.climb(cells, seen, at + sign * beside, prior=0.7) for sign in (1, -1))
        assert (up.height - down.height) / 2e-5 == pytest.approx(here.slope[:, i], abs=1e-5)
        assert (down.slope - up.slope) / 2e-5 == pytest.approx(here.curvature[:, i], abs=1e-5)


def test_a_draw_without_somebody_or_with_groups_apart_has_no_answer() -> None:
    cells, cast = _problem(np.random.default_rng(2))
    full, _ = davidson.solve(cells, davidson.counts(cells)[None], np.zeros((1, cells.parameters)), prior=0, steps=100)
    place = {player: at for at, player in enumerate(cast.players)}
    one, two = place[0], place[1]
    alone = ((cast.a != one) & (cast.b != one)).astype(float)
    pair = np.isin(cast.a, (one, two)) == np.isin(cast.b, (one, two))
    for weights in (alone, pair.astype(float)):
        _, done = davidson.solve(cells, davidson.counts(cells, weights)[None], full, prior=0, steps=40)
        assert not done[0]
        _, done = davidson.solve(cells, davidson.counts(cells, weights)[None], full, prior=0.5, steps=40)
        assert done[0]
