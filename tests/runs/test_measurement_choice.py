"""Which of several measurements of one metric is shown: the last one asked for that has values."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import pytest

from overtone.metrics import Answered, semsim
from overtone.report.score_tables import result_tables
from overtone.report.table_formats import markdown
from overtone.results.load import open_run
from overtone.results.summary import summarise_reading
from overtone.runs.export_rows import export
from overtone.runs.measurement_choice import History, Measurement, read_history, record, select_measurements
from overtone.runs.store import Store
from overtone.schema import Item, Score
from overtone.scoring import score_run
from tests.results.small import Maker, item


def measurements(**values: int) -> list[Measurement]:
    return [Measurement("m", number, name, count) for number, (name, count) in enumerate(values.items(), 1)]


def shown(values: dict[str, int], history: list[tuple[str, bool]]) -> str:
    return select_measurements(measurements(**values), {"m": history}).shown["m"]


def test_a_measurement_without_values_never_hides_one_with_values() -> None:
    assert shown({"scored": 3, "zz_missing": 0}, [("scored", True), ("zz_missing", True)]) == "scored"
    assert shown({"aa_missing": 0, "scored": 3}, []) == "scored"


def test_among_measurements_with_values_the_last_one_asked_for_is_shown() -> None:
    assert shown({"b": 9, "a": 1}, [("b", True), ("a", True)]) == "a"
    assert shown({"a": 1, "b": 9}, [("b", True), ("a", True)]) == "a"


def test_a_measurement_computed_in_passing_does_not_replace_one_asked_for_by_name() -> None:
    assert shown({"default": 9, "named": 5}, [("named", True), ("default", False)]) == "named"
    assert shown({"v1": 9, "v2": 5}, [("v1", False), ("v2", False)]) == "v2"


def test_where_the_run_does_not_say_what_was_asked_the_last_one_stored_is_shown() -> None:
    assert shown({"z": 3, "a": 3}, []) == "a"


def test_where_no_measurement_has_values_the_last_one_asked_for_gives_the_reasons() -> None:
    assert shown({"a": 0, "b": 0}, [("b", False), ("a", False)]) == "a"


def test_asking_again_by_name_brings_an_older_measurement_back() -> None:
    history: History = {}
    assert [record(history, "m", *asked) for asked in (("a", True), ("b", True), ("a", True))] == [True] * 3
    assert history == {"m": [("b", True), ("a", True)]}
    assert not record(history, "m", "a", False)
    assert not record(history, "m", "b", False)
    assert history == {"m": [("b", True), ("a", True)]}


def test_a_strangers_history_is_not_trusted() -> None:
    assert read_history({"measurements": "[" * 9}) == {}
    assert read_history({"measurements": '{"m": 3}'}) == {}


# ── the same selection everywhere ───────────────────────────────────────────────────────────────────────────────────

DEFAULT, BY_HAND, MISSING = "bertscore|v1|model:zz", "bertscore|v1|model:aa", "bertscore|v1|zzz:missing"


def judged_twice(folder: Path) -> Path:
    """A run with BERTScore computed in passing, then by a model named by hand, then in passing without a model."""
    run = Maker(folder)
    run.answered(item("t1", "converse", level=3, category="conversation"), "A reply.", condition="enhance/audio")
    folder = run.done()
    with Store.create(folder) as store:
        store.add_scores([(1, Score("bertscore", DEFAULT, 0.25))], named=False)
    with Store.create(folder) as store:
        store.add_scores([(1, Score("bertscore", BY_HAND, 0.75))])
    with Store.create(folder) as store:
        store.add_scores([(1, Score("bertscore", MISSING, None, "no model here"))], named=False)
    return folder


def test_tables_and_exports_show_the_same_measurement(tmp_path: Path) -> None:
    folder = judged_twice(tmp_path / "run")
    reading = open_run(folder)
    (condition,) = summarise_reading(reading).conditions
    assert condition.conversation is not None
    assert condition.conversation.measures["bertscore"].value == 0.75
    with Store.read(folder) as store:
        export(store, "csv", tmp_path / "rows.csv")
    (row,) = csv.DictReader((tmp_path / "rows.csv").open())
    assert (row["score_bertscore"], row["signatures"]) == ("0.75", BY_HAND)
    assert reading.signatures["bertscore"] == BY_HAND


def test_the_note_of_the_table_says_what_is_shown_and_what_is_not(tmp_path: Path) -> None:
    reading = open_run(judged_twice(tmp_path / "run"))
    (note,) = reading.notes
    assert f"asked for last: {BY_HAND} (1 value). Not shown: {DEFAULT} (1 value)." in note
    assert MISSING not in note
    page = markdown(result_tables("results", [reading]), ["run"])
    assert "bertscore was measured in 2 ways" in page
    assert "measured in" not in markdown(result_tables("results", [open_run(plain(tmp_path / "other"))]), ["run"])


class Likeness:
    """A metric whose model is an option, as BERTScore's is; without the model its rows have no value."""

    name, version = "semsim", 1

    def __init__(self, model: str = "zz-default") -> None:
        self.model = model

    def applies(self, one: Item) -> bool:
        return one.task == "converse"

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        value = None if self.model == "missing" else len(self.model) / 10
        return [
            [Score("semsim", f"semsim|v1|model:{self.model}", value, "" if value else "no model")] for _ in answered
        ]


def test_scoring_again_keeps_the_measurement_that_was_asked_for_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = plain(tmp_path / "run")
    loaded = {"model": "zz-default"}

    def load(*, model: str = "") -> Likeness:
        return Likeness(model or loaded["model"])

    monkeypatch.setattr(semsim, "load", load)

    def likeness() -> str:
        return open_run(folder).signatures["semsim"].rpartition(":")[2]

    loaded["model"] = "missing"
    score_run(folder)
    assert likeness() == "missing"
    loaded["model"] = "default"  # the user installs what was missing, as we advise
    score_run(folder)
    assert likeness() == "default"
    score_run(folder, metrics=["semsim?model=by-hand"])
    assert likeness() == "by-hand"
    score_run(folder)
    assert likeness() == "by-hand"
    score_run(folder, again=False)
    assert likeness() == "by-hand"
    score_run(folder, metrics=["semsim"])
    assert likeness() == "default"


def plain(folder: Path) -> Path:
    run = Maker(folder)
    score = Score("bertscore", DEFAULT, 0.5)
    run.answered(item("t1", "converse", level=3, category="conversation"), "A reply.", score, condition="enhance/audio")
    return run.done()
