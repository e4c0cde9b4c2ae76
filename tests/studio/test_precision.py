"""The predicted precision is that of crossed items and raters; the assumed variances are those of measured data."""

from __future__ import annotations

import csv
import json
import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pytest

from overtone.errors import UsageError
from overtone.stats.cluster import student_quantile
from overtone.stats.crossed import system_means
from overtone.studio import designs, precision
from overtone.studio.designs import Spread
from overtone.studio.study_results import LEAD
from tests.needs import REPOSITORY, SHARED
from tests.studio.designs.helpers import fields_of, run_of, study_of, units_of

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
ITEMS, RATERS, EACH = 24, 12, 8  # every rater hears both systems on EACH items


def simulated_difference(spread: Spread, rng: np.random.Generator) -> float:
    """The difference of two systems' mean ratings by raters who hear both, each on items of a random subset."""
    item = rng.normal(0, 2.0, ITEMS)  # of an item for every system: it cancels
    severity = rng.normal(0, 1.0, RATERS)  # of a rater for every system: it cancels too
    of_item = rng.normal(0, spread.item, (2, ITEMS))
    of_rater = rng.normal(0, spread.rater, (2, RATERS))
    order = np.concatenate([rng.permutation(ITEMS) for _ in range(RATERS * EACH // ITEMS)]).reshape(RATERS, EACH)
    means = []
    for system in range(2):
        answers = [
            item[i] + severity[r] + of_item[system, i] + of_rater[system, r] + rng.normal(0, spread.error)
            for r in range(RATERS)
            for i in order[r]
        ]
        means.append(float(np.mean(answers)))
    return means[0] - means[1]


@pytest.mark.parametrize(
    "spread",
    [Spread(0.6, 0.3, 0.85, 4, "points"), Spread(0.1, 0.1, 1.2, 4, "points"), Spread(1.0, 0.5, 0.2, 4, "points")],
)
def test_the_half_width_is_that_of_simulated_studies(spread: Spread) -> None:
    rng = np.random.default_rng(0)
    spreads = np.std([simulated_difference(spread, rng) for _ in range(600)])
    expected = precision.half_width(spread, items=ITEMS, raters=RATERS, answers=RATERS * EACH)
    assert expected == pytest.approx(student_quantile(0.975, RATERS - 1) * spreads, rel=0.1)


@pytest.mark.parametrize(("raters", "scripts"), [(10, 40), (20, 40), (20, 12)])
def test_the_half_width_of_pairs_is_that_of_the_lead_in_the_results(raters: int, scripts: int) -> None:
    """Simulate votes worth 1, 0 and −1, as results count them, whose parts vary as assumed."""
    rng, spread, widths = np.random.default_rng(3), assumed("ab"), []
    assert spread.span == max(LEAD.values()) - min(LEAD.values())
    for _ in range(60):
        of_script, of_rater = rng.normal(0, spread.item, scripts), rng.normal(0, spread.rater, raters)
        cast = [(r, int(s)) for r in range(raters) for s in rng.permutation(scripts)[:12]]
        values = [of_script[s] + of_rater[r] + rng.normal(0, spread.error) for r, s in cast]
        found = system_means(values, [""] * len(cast), [str(r) for r, _ in cast], [str(s) for _, s in cast]).of("")
        widths.append((found.high - found.low) / 2)
    expected = precision.half_width(spread, items=scripts, raters=raters, answers=raters * 12)
    assert expected == pytest.approx(float(np.mean(widths)), rel=0.12)


def test_more_votes_a_clip_lower_only_the_error() -> None:
    spread = Spread(0.6, 0.3, 0.85, 4, "points")
    few = precision.half_width(spread, items=80, raters=20, answers=240)
    many = precision.half_width(spread, items=24, raters=20, answers=240)
    endless = precision.half_width(spread, items=24, raters=20, answers=1e9)
    assert few < endless < many


def test_a_design_whose_answer_is_a_difference_has_one_mean() -> None:
    paired, single = (Spread(0.3, 0.1, 0.3, 1, "votes", paired=paired) for paired in (True, False))
    one, two = (precision.half_width(one, items=10, raters=10, answers=30) for one in (paired, single))
    assert two == pytest.approx(one * math.sqrt(2))


def test_a_scale_of_another_width_has_another_spread() -> None:
    of_aeq = Spread(0.6, 0.3, 0.85, 4, "points").on(2)
    assert (of_aeq.item, of_aeq.rater, of_aeq.error, of_aeq.span) == (0.3, 0.15, 0.425, 2)
    assert precision.span(fields_of(study_of("acr", "run", rubrics=("ves",)))) == 4
    assert precision.span(fields_of(study_of("cmos", "a", "b"))) == 6


def test_the_sample_of_a_system_follows_from_people_and_votes() -> None:
    units = units_of(study_of("acr", "a", "b"), run_of("a", 30), run_of("b", 30))
    assert precision.sample(units, raters=20, session=12, votes=3) == precision.Sample(30, 20, 90)
    assert precision.sample(units, raters=2, session=5, votes=3) == precision.Sample(5, 2, 5)


@pytest.mark.parametrize(("text", "said"), [("12", "2.00"), ("9.50 GBP", "1.58 GBP"), ("9€", "1.50 €")])
def test_pay_is_computed_from_minutes(text: str, said: str) -> None:
    assert precision.pay(text).of(10) == said


@pytest.mark.parametrize("text", ["", "GBP", "-3", "0", "nan", "1 2"])
def test_a_wage_that_is_not_an_amount_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--pay-per-hour must be an amount"):
        precision.pay(text)


# ── where the assumed variances come from ─────────────────────────────────────────────────────────────────────────────
def assumed(name: str) -> Spread:
    spread = designs.find(name).spread
    assert spread is not None
    return spread


@pytest.mark.shared
def test_ratings_of_empathetic_replies_vary_as_assumed() -> None:
    """iEval: 240 people rate four bots on two situations each, on "understood" and "responded", from 1 to 5."""
    tasks = json.loads((SHARED / "data/ieval/ieval_data.json").read_text())
    bots = ("Pink", "Purple", "Yellow", "Green")
    for key in ("EU", "ER"):
        parts = _crossed(
            np.array([[[t[v][b][key] for b in bots] for v in ("positive", "negative")] for t in tasks], float)
        )
        assert math.sqrt(parts["rater×system"]) == pytest.approx(assumed("acr").rater, abs=0.03)
        rest = math.hypot(assumed("acr").item, assumed("acr").error)  # each chat was rated once: not separable here
        assert math.sqrt(parts["rest"]) == pytest.approx(rest, abs=0.05)


@pytest.mark.shared
def test_a_third_of_the_variance_within_a_system_belongs_to_the_item() -> None:
    """EmoBank: about five people rate each sentence from 1 to 5; item ÷ (item + rest) of valence is a third."""
    ratings: dict[str, list[float]] = defaultdict(list)
    with (SHARED / "data/emobank/individual_reader_ratings.csv").open() as file:
        for row in csv.DictReader(file):
            ratings[row["id"]].append(float(row["V"]))
    between, within = _nested([values for values in ratings.values() if len(values) > 1])
    spread = assumed("acr")
    assert between / (between + within) == pytest.approx(spread.item**2 / (spread.item**2 + spread.error**2), abs=0.03)


@pytest.mark.shared
def test_votes_between_replies_vary_as_assumed() -> None:
    """LLMFAO (crowd) and PandaLM (trained annotators): the assumed parts lie between those of the two."""
    worth = {"left": 1.0, "right": -1.0, "tie": 0.0}
    votes: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    with (SHARED / "data/llmfao/crowd-comparisons.csv").open() as file:
        for row in csv.DictReader(file):
            votes[row["prompt"], row["left"], row["right"]].append(worth[row["winner"]])
    crowd = _nested([values for values in votes.values() if len(values) > 1])
    chosen = {0: 0.0, 1: 1.0, 2: -1.0}
    pairs = json.loads((SHARED / "data/pandalm/testset-v1.json").read_text())
    trained = _nested([[chosen[int(pair[f"annotator{n}"])] for n in (1, 2, 3)] for pair in pairs])
    spread = assumed("ab")
    assert math.sqrt(crowd[0]) < spread.item < math.sqrt(trained[0])
    assert math.sqrt(trained[1]) < spread.error < math.sqrt(crowd[1])


def _crossed(ratings: Array) -> dict[str, float]:
    """Variance parts of ratings by rater, situation and system, each cell once, without the systems' own means."""
    centred = ratings - ratings.mean(axis=0)
    raters, situations, systems = ratings.shape

    def covariance(one: Array, other: Array) -> float:
        return float((one * other).sum() / (raters - 1))

    pairs = [(a, b) for a in range(systems) for b in range(systems) if a != b]
    rater = float(np.mean([covariance(centred[:, 0, a], centred[:, 1, b]) for a, b in pairs]))
    both = float(np.mean([covariance(centred[:, 0, a], centred[:, 1, a]) for a in range(systems)]))
    same = float(np.mean([covariance(centred[:, s, a], centred[:, s, b]) for s in range(situations) for a, b in pairs]))
    total = float((centred**2).sum() / (raters - 1) / situations / systems)
    return {"rater×system": both - rater, "rest": total - both - (same - rater)}


def _nested(groups: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Variance between groups, and within them."""
    within = sum(float(np.var(g) * len(g)) for g in groups) / sum(len(g) - 1 for g in groups)
    means = [float(np.mean(g)) for g in groups]
    return float(np.var(means, ddof=1)) - within * float(np.mean([1 / len(g) for g in groups])), within


# ── the tables of the documents ───────────────────────────────────────────────────────────────────────────────────────
PAGE = (REPOSITORY / "docs/explanation/listening-tests.md").read_text(encoding="utf-8")
DESIGNS = ("acr", "ab", "cmos", "mushra", "label", "transcribe")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("| \n").split("|")]


@pytest.mark.parametrize("name", DESIGNS)
def test_the_half_widths_of_the_documents_are_ours(name: str) -> None:
    spread = assumed(name)
    row, parts = (cells(line) for line in PAGE.splitlines() if line.startswith(f"| `{name}` |"))
    shown = [float(cell) for cell in row[2:]]
    for people, width in zip((10, 20, 50, 200), shown, strict=True):
        answers = people * 12 / (1 if spread.paired else 2)
        assert float(f"{precision.half_width(spread, items=40, raters=people, answers=answers):.2g}") == width
    assert [float(cell) for cell in parts[1:4]] == [spread.item, spread.rater, spread.error]


def test_the_votes_of_the_documents_are_ours() -> None:
    rows = [cells(line) for line in PAGE.split("| scripts | votes per clip |")[1].splitlines()[2:6]]
    assert [int(row[0]) * int(row[1]) for row in rows] == [240] * 4
    for scripts, _, width in rows:
        expected = precision.half_width(assumed("acr"), items=int(scripts), raters=20, answers=240)
        assert f"{expected:.2f}" == width
