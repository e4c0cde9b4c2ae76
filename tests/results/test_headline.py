"""A benchmark's own headline tables: means, custom reductions by group, and what is missing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from overtone import registry
from overtone.results.column_values import Scored
from overtone.results.corpus_scores import over
from overtone.results.headline import cases_by_key, number, suite_tables
from overtone.results.load import Answer, open_run
from overtone.runs.store import ANSWERED
from overtone.schema import Score
from overtone.scores import known
from overtone.suite import Column, Facts, Headline, Right, Suite
from tests.results.small import Maker, item

FACTS = Facts("Toy", "none", "choose", "audio", "text", "one", "accuracy", "made here", "none", "all")


ALL_RIGHT = Right(replies=False, groups=True, share=True)


SUITE = Suite(
    FACTS,
    headlines=(
        Headline(
            "main",
            "Main",
            (
                Column("acc", "Accuracy", "accuracy"),
                Column("sad", "Sad alone", "accuracy", only={"cue": ("sad",)}, scale=100, kind="number"),
                Column("groups", "Whole groups", "accuracy", reduce=ALL_RIGHT),
                Column("rating", "Rating", "rating", kind="number"),
            ),
            differences="Main, differences",
        ),
        Headline("by-cue", "By cue", (Column("acc", "Accuracy", "accuracy"),), rows="cue"),
    ),
)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    module = ModuleType("toy_benchmark")
    module.SUITE = SUITE  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "toy_benchmark", module)
    monkeypatch.setitem(registry._plugins["benchmarks"], "toy", module)
    yield


def test_a_headline_is_made_of_the_replies_that_count(toy: None, tmp_path: Path) -> None:
    made = Maker(tmp_path / "run")
    for script, letters in (("s1", "AA"), ("s2", "AB"), ("s3", "AA")):
        for n, letter in enumerate(letters):
            made.choice(item(f"{script}/{n}", "choose", script=script, cue="sad" if n else "happy"), letter)
    made.failed(item("s4/0", "choose", script="s4", cue="happy"))
    made.store.commit()
    main, by_cue = suite_tables(open_run(tmp_path / "run"))
    accuracy, sad, groups, rating = main.rows[0].cells
    assert accuracy is not None and accuracy.value == pytest.approx(5 / 6)
    assert (accuracy.scored, accuracy.asked) == (6, 7)
    assert sad is not None and sad.value == pytest.approx(100 * 2 / 3)
    assert groups is not None and groups.value == pytest.approx(2 / 4) and groups.scripts == 4
    assert groups.low is not None and groups.high is not None and 0 <= groups.low < 0.5 < groups.high <= 1
    assert rating is not None and rating.value is None and rating.scored == 0
    assert {row.name: row.cells[0].value for row in by_cue.rows if row.cells[0]} == {
        "happy": pytest.approx(1.0),
        "sad": pytest.approx(2 / 3),
    }
    cases = dict(cases_by_key(open_run(tmp_path / "run")))
    assert cases["suite/by-cue/task/audio/sad/acc"] == [f"synthesis/s{n}/target" for n in (1, 2, 3)]
    assert len(cases["suite/main/task/audio/acc"]) == 3 and cases["suite/main/task/audio/rating"] == []


@pytest.mark.parametrize("light", [False, True])
def test_conditions_are_compared_item_by_item(toy: None, tmp_path: Path, light: bool) -> None:
    made = Maker(tmp_path / "run")
    for n, (heard, read) in enumerate(((1.0, 0.0), (1.0, 1.0), (0.0, 0.0), (1.0, 1.0))):
        one = item(f"s{n}/0", "choose", script=f"s{n}")
        for condition, value in (("task/audio", heard), ("task/transcript", read)):
            made.answered(one, "A", Score("accuracy", "accuracy|v1", value), condition=condition)
    made.store.commit()
    tables = suite_tables(open_run(tmp_path / "run", light=light))
    (row,) = next(table for table in tables if table.headline.key == "main-differences").rows
    assert row.cells[0] is not None and row.cells[0].value == 0.25


def test_a_group_that_is_drawn_twice_counts_as_two(toy: None, tmp_path: Path) -> None:
    """Four groups, two all right: every draw is a number of quarters, also where one group comes again."""
    made = Maker(tmp_path / "run")
    for n, letters in enumerate(("AA", "AA", "AB", "BB")):
        for k, letter in enumerate(letters):
            made.choice(item(f"{n}/{k}", "choose", script=f"s{n}"), letter)
    made.store.commit()
    groups = suite_tables(open_run(tmp_path / "run"))[0].rows[0].cells[2]
    assert groups is not None and groups.value == 0.5
    assert groups.low is not None and groups.high is not None
    assert (groups.low * 4) % 1 == pytest.approx(0) and (groups.high * 4) % 1 == pytest.approx(0)


def test_a_dimension_is_the_mean_of_the_judges(toy: None, tmp_path: Path) -> None:
    made = Maker(tmp_path / "run")
    for n, (a, b) in enumerate(((4.0, 2.0), (5.0, 5.0))):
        scores = [Score(f"rating@{judge}", f"rating|v1|judge:{judge}", x) for judge, x in (("a", a), ("b", b))]
        made.answered(item(f"r{n}", "converse", level=3, script=f"s{n}"), "Yes.", *scores)
    made.store.commit()
    rating = suite_tables(open_run(tmp_path / "run"))[0].rows[0].cells[3]
    assert rating is not None and rating.value == pytest.approx(4.0)


def test_an_interval_does_not_leave_the_scale_of_its_rubric_or_the_ends_a_column_names() -> None:
    replies = [
        Scored(item(f"s{n}/0", "choose", script=f"s{n}"), "task/audio", 0, {"rating": 5.0 - 2 * (n == 0), "x": 0.0 + n})
        for n in range(8)
    ]
    rating = Column("r", "Rating", "rating", kind="number")
    free, bound = number(rating, replies), number(rating, replies, {"rating": (1.0, 5.0)})
    assert free is not None and free.value == 4.75 and free.high is not None and free.high > 5
    assert bound is not None and (bound.value, bound.low, bound.high) == (4.75, free.low, 5.0)
    scaled = number(msgspec.structs.replace(rating, scale=0.25, offset=-1.0), replies, {"rating": (1.0, 5.0)})
    assert scaled is not None and (scaled.value, scaled.high) == (pytest.approx(3.75 / 4), 1.0)
    named = number(Column("x", "X", "x", kind="number", ends=(2.0, 4.0)), replies)
    assert named is not None and (named.low, named.value, named.high) == (2.0, 3.5, 4.0)
    below = number(Column("x", "X", "x", kind="number", ends=(4.0, 9.0)), replies)
    assert below is not None and below.low == below.value == 3.5, "never above what was found"


def test_a_benchmark_without_a_suite_has_no_tables(tmp_path: Path) -> None:
    made = Maker(tmp_path / "run")
    made.choice(item("q", "choose", benchmark="nothing-known"), "A")
    made.store.commit()
    assert suite_tables(open_run(tmp_path / "run")) == []


def test_in_a_balanced_mean_each_category_counts_once_whatever_its_size_and_scale() -> None:
    column = Column("all", "All", kind="number", balance={"a": ("one", 20.0), "b": ("two", 100.0), "c": ("one", 20.0)})
    values = {"a": ("one", [1.0, 2.0, 3.0, 4.0]), "b": ("two", [1.0, 0.0]), "d": ("one", [9.0])}
    rows = []
    for category, (name, found) in values.items():
        for n, value in enumerate(found):
            made = item(f"{category}{n}", "converse", script=f"{category}{n}")
            one = msgspec.structs.replace(made, category=category)
            rows.append(Scored(one, "zero/audio", 0, {name: value, "other": 7.0}))
    mean = number(column, rows)
    assert mean is not None and mean.value == pytest.approx((20 * 2.5 + 100 * 0.5) / 2), "d is none of its categories"
    assert (mean.scored, mean.asked, mean.scripts) == (6, 7, 7)
    assert mean.low is not None and mean.high is not None and mean.low < mean.value < mean.high
    nothing = number(column, [Scored(one, "zero/audio", 0, {})])
    assert nothing is not None and nothing.value is None


def test_groups_that_are_all_alike_have_no_interval_of_no_width() -> None:
    column = Column("groups", "Whole groups", "accuracy", reduce=ALL_RIGHT)
    wrong = [Scored(item(f"q{n}", "choose", script=f"s{n}"), "task/audio", 0, {"accuracy": 0.0}) for n in range(2)]
    found = number(column, wrong)
    assert found is not None and (found.value, found.low, found.high) == (0.0, None, None)
    assert "no interval" in found.note
    right = [Scored(item(f"r{n}", "choose", script=f"r{n}"), "task/audio", 0, {"accuracy": 1.0}) for n in range(2)]
    mixed = number(column, wrong + right)
    assert mixed is not None and mixed.low is not None and mixed.high is not None and mixed.low < mixed.high


def test_the_error_rate_of_words_to_be_said_does_not_fall_below_zero_and_has_a_label() -> None:
    answers = []
    for n, value in enumerate((0.0, 0.1, 10.0)):
        scores = {"uro_wer": Score("uro_wer", "uro_wer|v3", value)}
        answers.append(Answer(n, item(f"q{n}", "converse", script=f"s{n}"), "task/audio", 0, ANSWERED, scores=scores))
    found = over("uro_wer", answers, known("uro-bench")["uro_wer"])
    assert found.low == 0.0 and found.value is not None and found.high is not None and found.high > found.value
    assert {name for name in known("uro-bench") if name.startswith("uro_")} == {"uro_wer", "uro_repeat", "uro_emotion"}
    assert not [
        about.label for name, about in known("uro-bench").items() if name.startswith("uro_") and "_" in about.label
    ]
