"""EmoAlign over a run: perfect agreement, agreement by chance, unknowns, and groups by condition and style."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from overtone.results.emotion_alignment import Aligned, alignment
from overtone.results.failure_ledger import make_ledger
from overtone.results.load import Answer
from overtone.runs.store import ANSWERED, FAILED
from overtone.schema import Score
from overtone.scores import built_in
from overtone.stats import kappa
from tests.results.small import item

METRIC = "emoalign_reference"


def answer(number: int, reply: str, wanted: str, *, style: str = "target", condition: str = "task/audio") -> Answer:
    of = item(f"i{number}", "converse", level=3, category="conversation", script=f"s{number // 3}", style=style)
    value = float(reply == wanted and reply not in ("unknown", "other"))
    detail: dict[str, float | int | str | None] = {"reply": reply, "wanted": wanted}
    return Answer(number, of, condition, 0, ANSWERED, scores={METRIC: Score(METRIC, "x|v1", value, detail=detail)})


def grouped(answers: Sequence[Answer]) -> dict[str, list[Answer]]:
    return {name: [a for a in answers if a.condition == name] for name in {a.condition for a in answers}}


def whole(answers: Sequence[Answer]) -> Aligned:
    found = alignment(grouped(answers), METRIC)
    assert found is not None and found.metric == METRIC
    return next(row for row in found.rows if not row.style)


def test_perfect_agreement_is_one_and_kappa_one() -> None:
    labels = ["happy", "sad", "neutral", "angry"] * 15
    row = whole([answer(n, label, label) for n, label in enumerate(labels)])
    assert row.rate.value == row.kappa.value == 1
    assert row.chance.value == pytest.approx(0.25)
    assert row.reply_unknown.value == row.wanted_unknown.value == 0
    assert row.replies == row.wanted == {"angry": 15, "happy": 15, "neutral": 15, "sad": 15}


def test_a_model_that_does_not_look_has_a_rate_at_chance_and_kappa_near_zero() -> None:
    rng = np.random.default_rng(3)
    shares = [0.7, 0.2, 0.1]
    replies, wanted = (rng.choice(["neutral", "sad", "happy"], 3000, p=shares).tolist() for _ in range(2))
    row = whole([answer(n, a, b) for n, (a, b) in enumerate(zip(replies, wanted, strict=True))])
    assert row.rate.value == pytest.approx(0.54, abs=0.03)
    assert row.chance.value == pytest.approx(0.54, abs=0.03)
    assert row.kappa.low < 0 < row.kappa.high and abs(row.kappa.value) < 0.04
    assert row.kappa.value == pytest.approx(kappa.cohen(replies, wanted))
    assert row.kappa.clusters == 1000


def test_always_neutral_gains_nothing_from_neutral_references() -> None:
    wanted = ["neutral"] * 40 + ["happy"] * 20
    row = whole([answer(n, "neutral", label) for n, label in enumerate(wanted)])
    assert row.rate.value == row.chance.value == pytest.approx(2 / 3)
    assert row.kappa.value == pytest.approx(0)


def test_unknown_never_matches_neither_in_the_rate_nor_by_chance() -> None:
    pairs = [("unknown", "unknown"), ("other", "other"), ("happy", "happy"), ("sad", "unknown")] * 6
    row = whole([answer(n, *pair) for n, pair in enumerate(pairs)])
    assert row.rate.value == pytest.approx(0.25)
    assert row.chance.value == pytest.approx(0.25 * 0.25)  # only happy can agree
    assert row.reply_unknown.value == pytest.approx(0.5)
    assert row.wanted_unknown.value == pytest.approx(0.75)


def test_rows_are_per_condition_and_style_and_unscored_replies_are_counted() -> None:
    answers = [answer(n, "sad", "sad", style=style) for n, style in enumerate(["target", "neutral"] * 4)]
    answers += [answer(20 + n, "sad", "happy", condition="zero/audio") for n in range(3)]
    lost = answer(30, "", "")
    lost.scores[METRIC] = Score(METRIC, "x|v1", None, "the reply has no audio")
    failed = answer(31, "sad", "sad")
    failed.state = FAILED
    found = alignment(grouped([*answers, lost, failed]), METRIC)
    assert found is not None
    keys = [(row.condition, row.style) for row in found.rows]
    expected = [("task/audio", ""), ("task/audio", "neutral"), ("task/audio", "target")]
    assert keys == [*expected, ("zero/audio", ""), ("zero/audio", "target")]
    assert found.rows[0].unscored == 1 and found.rows[0].rate.rows == 8
    assert found.rows[3].rate.value == 0


def test_a_run_without_the_metric_has_no_alignment_and_one_without_values_has_no_numbers() -> None:
    assert alignment(grouped([answer(0, "sad", "sad")]), "emoalign_profile") is None
    lost = answer(0, "", "")
    lost.scores[METRIC] = Score(METRIC, "x|v1", None, "no reference audio")
    row = whole([lost])
    assert math.isnan(row.rate.value) and row.unscored == 1


@pytest.mark.parametrize("detail", [{}, {"reply": "sad"}, {"reply": "sad", "wanted": None}, {"reply": 1, "wanted": 2}])
def test_a_score_without_its_details_counts_as_unscored(detail: dict[str, float | int | str | None]) -> None:
    whole_ones = [answer(n, "sad", "sad") for n in range(6)]
    foreign = answer(6, "sad", "happy")
    foreign.scores[METRIC] = Score(METRIC, "x|v1", 1.0, detail=detail)
    row = whole([*whole_ones, foreign])
    assert (row.rate.value, row.rate.rows, row.unscored) == (1.0, 6, 1)
    alone = whole([foreign])
    assert math.isnan(alone.rate.value) and alone.unscored == 1
    (entry,) = make_ledger([foreign], built_in()).rows
    assert entry.kind == "unscored" and entry.reason.startswith(f"{METRIC}: its detail lacks ")
