"""Judges' means in a run, put right by people's labels of some replies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from overtone.errors import DataError
from overtone.judge_trust.calibration import FEW, calibrated_means
from overtone.results.load import Answer, Reading
from overtone.runs.store import ANSWERED
from overtone.schema import Item, Score

TRUTH = np.random.default_rng(5).integers(1, 6, 400).astype(float)
METRIC = "cspeechrel@scripted"


def reading(conditions: Sequence[str] = ("enhance/audio",), shift: float = 0.8, repeats: int = 1) -> Reading:
    """A run of 400 scripts, whose judge is 0.8 too kind."""
    answers: list[Answer] = []
    for condition in conditions:
        for number, worth in enumerate(TRUTH):
            for repeat in range(repeats):
                item = Item(f"i{number}", "b", 3, "converse", "conversation", f"c{number}", f"s{number}", "target", ())
                scores = {METRIC: Score(METRIC, f"{METRIC}|v1", min(5.0, worth + shift))}
                answer = Answer(len(answers), item, condition, repeat, ANSWERED, scores=scores, item_id=item.id)
                answers.append(answer)
    return Reading(Path("run"), {}, [], answers, {METRIC: ""}, [], len(TRUTH), lambda sha: Path(sha))


def labels(folder: Path, numbers: Sequence[int], name: str = "i", extra: str = "", cell: str = "") -> Path:
    lines = [f"id,cspeechrel{extra}", *(f"{name}{n},{TRUTH[n]:g}{cell}" for n in numbers)]
    (folder / "labels.csv").write_text("\n".join(lines))
    return folder / "labels.csv"


def test_a_kind_judge_is_put_right_and_the_interval_holds_the_truth(tmp_path: Path) -> None:
    picked = np.random.default_rng(0).permutation(400)[:220].tolist()
    for name in ("i", "c"):  # by item, and by case
        (found,) = calibrated_means(reading(), labels(tmp_path, picked, name))
        assert (found.metric, found.dimension, found.judge) == (METRIC, "cspeechrel", "scripted")
        c = found.corrected
        assert c.judge_only.value > TRUTH.mean() + 0.4
        assert c.low < TRUTH.mean() < c.high
        assert c.high - c.low < c.human_only.high - c.human_only.low
        assert (c.rows, c.labelled, found.note) == (400, 220, "")


def test_few_labels_are_said_to_be_few(tmp_path: Path) -> None:
    (found,) = calibrated_means(reading(), labels(tmp_path, range(30)))
    assert f"below {FEW}" in found.note


def test_a_label_says_which_reply_it_is_of(tmp_path: Path) -> None:
    two = reading(("basic/audio", "enhance/audio"))
    with pytest.raises(DataError, match="line 2: i0 was answered 2 times"):
        calibrated_means(two, labels(tmp_path, range(30)))
    (found,) = calibrated_means(two, labels(tmp_path, range(30), extra=",condition", cell=",basic/audio"))
    assert found.condition == "basic/audio"
    repeated = labels(tmp_path, range(30), extra=",repeat", cell=",1")
    assert calibrated_means(reading(repeats=2), repeated)[0].corrected.labelled == 30


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("id,warm\ni1,3\n", "no dimension is in both"),
        ("id,cspeechrel\nx1,3\nx2,4\n", "no id of .* is an item or a case"),
        ("id,cspeechrel\ni1,3\n", "labels in 1 cluster"),
        ("id,cspeechrel\ni1,3\nc1,4\n", "line 3: labels the same reply as line 2"),
        ("id,cspeechrel\ni1,A\ni2,B\n", "line 2: cspeechrel is 'A'; a mean needs numbers"),
    ],
)
def test_labels_that_cannot_be_used_are_an_error(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(DataError, match=problem):
        calibrated_means(reading(), tmp_path / "labels.csv")


def test_a_run_without_judges_is_told_to_be_judged(tmp_path: Path) -> None:
    plain = reading()
    for answer in plain.answers:
        answer.scores.clear()
    with pytest.raises(DataError, match="has no judge's scores"):
        calibrated_means(plain, labels(tmp_path, range(30)))
