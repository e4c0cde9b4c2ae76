"""Labels in the runs: written once, removed with a withdrawal, and never written into another run."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from overtone.runs.integrity import verify
from overtone.runs.people_labels import Label, read_labels, read_studies
from overtone.runs.store import Store
from overtone.studio import study as studies
from overtone.studio.labels import Given, sync
from overtone.studio.labels.rows import label_study
from overtone.studio.study import Study
from tests.studio.helpers import new_study, spoken_runs
from tests.studio.labels.helpers import bytes_of, simulate

Rated = tuple[Study, list[Given]]


@pytest.fixture
def rated(tmp_path: Path) -> Rated:
    made = new_study(tmp_path)
    return made, simulate(made, {"monday": 3.0, "friday": 4.0}, raters=4)


def labels_in(run: Path) -> list[Label]:
    with Store.read(run) as store:
        return list(read_labels(store))


def problems(study: Study, given: list[Given], wait: float = 0.0) -> dict[str, str]:
    return {one.run: one.problem for one in sync(study, given, wait=wait)}


def test_every_answer_becomes_a_label_of_the_reply_that_was_heard(rated: Rated, tmp_path: Path) -> None:
    made, given = rated
    done = sync(made, given)
    assert [one.problem for one in done] == ["", ""]
    questions = label_study(made).questions
    assert done[0].labels == 18 * 4 * len(questions) and done[0].raters == 4
    assert "288 new" in done[0].sentence or f"{done[0].labels:,} new" in done[0].sentence
    with Store.read(tmp_path / "monday") as store:
        asks = {ask.id: ask for ask, _ in store.asks()}
        assert read_studies(store)[made.id].questions == questions
    by_key = {(g.rater, g.unit.id): g for g in given}
    for label in labels_in(tmp_path / "monday"):
        answer = by_key[label.rater, label.unit]
        assert asks[label.ask].item.id == answer.unit.replies[0].item
        assert label.value == answer.values[label.dimension] and label.usable
        assert label.at == "2025-11-18" and label.seen.group == answer.unit.group
    assert verify(tmp_path / "monday").damage == []


def test_syncing_twice_is_syncing_once(rated: Rated, tmp_path: Path) -> None:
    made, given = rated
    sync(made, given)
    before = bytes_of(tmp_path / "monday", tmp_path / "friday")
    again = sync(made, given)
    assert not any(one.changes.any for one in again) and "unchanged" in again[0].sentence
    assert bytes_of(tmp_path / "monday", tmp_path / "friday") == before


def test_a_changed_answer_and_a_changed_verdict_replace_the_old_ones(rated: Rated, tmp_path: Path) -> None:
    made, given = rated
    sync(made, given)
    changed = [msgspec.structs.replace(g, usable=False) if g.rater == given[0].rater else g for g in given]
    done = sync(made, changed)
    assert done[0].changes.changed == 18 * len(label_study(made).questions) and not done[0].changes.added
    assert {label.usable for label in labels_in(tmp_path / "monday") if label.rater == given[0].rater} == {False}


def test_a_withdrawal_leaves_no_byte_of_the_person_in_the_runs(rated: Rated, tmp_path: Path) -> None:
    made, given = rated
    sync(made, given)
    gone = given[0].rater
    runs = tmp_path / "monday", tmp_path / "friday"
    assert gone.encode() in bytes_of(*runs)
    done = sync(made, [g for g in given if g.rater != gone])
    assert all(one.changes.removed == 18 * len(label_study(made).questions) for one in done)
    assert gone.encode() not in bytes_of(*runs) and given[-1].rater.encode() in bytes_of(*runs)


def test_a_run_restored_from_a_copy_loses_withdrawn_people_at_the_next_sync(rated: Rated, tmp_path: Path) -> None:
    made, given = rated
    sync(made, given)
    shutil.copytree(tmp_path / "monday", tmp_path / "backup")
    left = [g for g in given if g.rater != given[0].rater]
    sync(made, left)
    shutil.rmtree(tmp_path / "monday")
    shutil.copytree(tmp_path / "backup", tmp_path / "monday")
    assert given[0].rater.encode() in bytes_of(tmp_path / "monday")
    sync(made, left)
    assert given[0].rater.encode() not in bytes_of(tmp_path / "monday")


def test_without_any_answer_the_study_leaves_no_trace(rated: Rated, tmp_path: Path) -> None:
    made, given = rated
    sync(made, given)
    sync(made, [])
    assert made.id.encode() not in bytes_of(tmp_path / "monday", tmp_path / "friday")


def test_a_run_that_is_being_written_is_reported_and_the_others_are_written(rated: Rated, tmp_path: Path) -> None:
    made, given = rated
    told: list[str] = []
    with Store.create(tmp_path / "monday"):
        done = sync(made, given, wait=0.3, tell=told.append)
    assert "being written by another process" in done[0].problem and "sync again" in done[0].problem
    assert "choose another --out" not in done[0].problem
    assert "waiting up to 0.3 s" in told[0] and len(told) == 1
    assert done[1].problem == "" and labels_in(tmp_path / "friday") and not labels_in(tmp_path / "monday")
    assert problems(made, given) == {"monday": "", "friday": ""}


def test_a_moved_run_is_named_with_what_to_do(rated: Rated, tmp_path: Path) -> None:
    made, given = rated
    (tmp_path / "monday").rename(tmp_path / "elsewhere")
    said = problems(made, given)
    assert "no run at" in said["monday"] and "[[source]]" in said["monday"] and said["friday"] == ""
    assert not (tmp_path / "monday").exists()  # no new run is made there
    text = made.path.read_text().replace('path = "monday"', 'path = "elsewhere"')
    made.path.write_text(text)
    assert problems(studies.read(made.path), given)["monday"] == "" and labels_in(tmp_path / "elsewhere")


def test_another_run_of_the_same_name_gets_no_label(rated: Rated, tmp_path: Path) -> None:
    made, given = rated
    shutil.rmtree(tmp_path / "monday")
    (tmp_path / "other").mkdir()
    other = spoken_runs(tmp_path / "other", "x", "monday")[1]  # the same requests, other sounds
    shutil.copytree(other, tmp_path / "monday")
    assert "has another reply to toy/s" in problems(made, given)["monday"]
    assert labels_in(tmp_path / "monday") == []


def test_a_pair_is_a_label_of_both_runs_from_the_units_side(tmp_path: Path) -> None:
    made = new_study(tmp_path, "--design", "ab")
    given = simulate(made, {"monday": 3.0, "friday": 4.5}, raters=6, noise=0.1)
    assert all(one.problem == "" for one in sync(made, given))
    first, second = labels_in(tmp_path / "monday"), labels_in(tmp_path / "friday")
    assert {label.seen.side for label in first} == {"A"} and {label.seen.side for label in second} == {"B"}
    assert {label.seen.other for label in first} == {"friday"}
    key = {(label.unit, label.rater): label.value for label in second}
    assert all(key[label.unit, label.rater] == label.value for label in first)
    counts = [[label.value for label in first].count(value) for value in ("A", "B")]
    assert counts[1] > 3 * counts[0]  # friday is B, whatever the order on the screen
    assert {label.value for label in first} & {"both_good", "both_bad"}


def test_cannot_tell_is_kept_and_has_no_number(tmp_path: Path) -> None:
    made = new_study(tmp_path, "--design", "ab")
    given = simulate(made, {"monday": 3.0, "friday": 3.0}, raters=8, careless=8)
    sync(made, given)
    labels = labels_in(tmp_path / "monday")
    unsure = [label for label in labels if label.value == "cannot_tell"]
    question = label_study(made).questions[labels[0].dimension]
    assert unsure and question.number("cannot_tell") is None and question.number("both_bad") == 0.5
    assert not any(label.usable for label in labels)
