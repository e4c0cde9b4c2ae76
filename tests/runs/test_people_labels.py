"""People's labels in a run's store: replaced as a whole, read beside replies, removed to the last byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from overtone.errors import StoreError
from overtone.results.load import open_run
from overtone.runs.export_rows import export
from overtone.runs.integrity import verify
from overtone.runs.people_labels import (
    Changes,
    Label,
    LabelStudy,
    Question,
    Seen,
    Value,
    read_labels,
    read_studies,
    write_labels,
)
from overtone.runs.store import Store
from tests.arena.helpers import make_run

STUDY = LabelStudy(
    id="abcdefghijkl", title="How it sounds", design="acr",
    questions={"warmth": Question(label="Warmth", low=1, high=5)}, systems=("monday",),
)  # fmt: skip


def label(ask: int, rater: str, value: Value = 4, *, usable: bool = True, side: str = "") -> Label:
    seen = Seen(order=ask, group=f"synthesis/s{ask}", style="target", side=side)
    about = {"study": STUDY.id, "unit": f"u{ask}", "dimension": "warmth", "at": "2026-11-18"}
    return Label(ask=ask, rater=rater, value=value, usable=usable, seen=seen, **about)


def write(run: Path, labels: list[Label]) -> Changes:
    with Store.create(run) as store:
        return write_labels(store, STUDY, labels)


def read(run: Path) -> list[Label]:
    with Store.read(run) as store:
        return list(read_labels(store))


def test_labels_come_back_as_they_were_written(tmp_path: Path) -> None:
    run = make_run(tmp_path / "monday", 1.0)
    given = [
        label(1, "r1"),
        label(2, "r1", ["sad", "tired"]),
        label(2, "r2", 2.5, usable=False),
        label(3, "r2", "A", side="A"),
    ]
    assert write(run, given) == Changes(added=4)
    assert read(run) == given
    assert [one.kind for one in read(run)] == ["reply", "reply", "reply", "pair"]
    with Store.read(run) as store:
        assert read_studies(store) == {STUDY.id: STUDY}
    assert verify(run).damage == []


def test_the_same_labels_twice_are_the_same_labels_once(tmp_path: Path) -> None:
    run = make_run(tmp_path / "monday", 1.0)
    write(run, [label(1, "r1")])
    assert not write(run, [label(1, "r1")]).any
    assert write(run, [label(1, "r1", 5), label(2, "r1")]) == Changes(added=1, changed=1)
    assert len(read(run)) == 2


def test_a_study_leaves_the_labels_of_another_study_alone(tmp_path: Path) -> None:
    run = make_run(tmp_path / "monday", 1.0)
    write(run, [label(1, "r1")])
    with Store.create(run) as store:
        write_labels(store, LabelStudy(id="other", title="", design="acr", questions={}), [])
    assert len(read(run)) == 1


def bytes_of(run: Path) -> bytes:
    return b"".join(path.read_bytes() for path in run.rglob("*") if path.is_file())


def test_a_removed_rater_leaves_no_byte_in_the_runs_files(tmp_path: Path) -> None:
    run = make_run(tmp_path / "monday", 1.0)
    names = [f"rater{number:03}x" for number in range(60)]
    write(run, [label(ask, name) for ask in range(1, 19) for name in names])
    assert b"rater007x" in bytes_of(run)
    with Store.create(run) as store:
        kept = [one for one in read_labels(store) if one.rater != "rater007x"]
        assert write_labels(store, STUDY, kept).removed == 18
        assert b"rater007x" not in bytes_of(run)  # also while the run is open, in its write-ahead log
    assert b"rater007x" not in bytes_of(run) and b"rater008x" in bytes_of(run)
    assert verify(run).damage == []


def test_a_reader_that_keeps_removed_labels_in_the_log_is_reported(tmp_path: Path) -> None:
    run = make_run(tmp_path / "monday", 1.0)
    write(run, [label(1, "secret01"), label(1, "r2")])
    with Store.create(run) as writer:
        with Store.read(run) as reader:
            reader.db.execute("BEGIN")
            assert reader.db.execute("SELECT count(*) FROM labels").fetchone()[0] == 2
            changes = write_labels(writer, STUDY, [label(1, "r2")])
        assert "another process is reading the run" in changes.leftover
        assert write_labels(writer, STUDY, [label(1, "r2")]).leftover == ""
    assert b"secret01" not in bytes_of(run)


def test_answers_of_a_reading_carry_what_people_said(tmp_path: Path) -> None:
    run = make_run(tmp_path / "monday", 1.0)
    write(run, [label(2, "r1"), label(2, "r2", 3)])
    for light in (False, True):
        reading = open_run(run, light=light)
        assert {a.ask: len(a.labels) for a in reading.answers if a.labels} == {2: 2}
        assert reading.studies[STUDY.id].questions["warmth"].number(3) == 3


def test_an_export_has_means_and_counts_without_raters(tmp_path: Path) -> None:
    run = make_run(tmp_path / "monday", 1.0)
    write(run, [label(2, "rater001", 3), label(2, "rater002", 4), label(2, "rater003", 1, usable=False)])
    with Store.read(run) as store:
        assert export(store, "jsonl", tmp_path / "out.jsonl") == 18
        assert export(store, "csv", tmp_path / "out.csv") == 18
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert lines[1]["people"] == {"warmth": {"mean": 3.5, "answers": 2}} and lines[0]["people"] == {}
    assert "warmth 3.5 (2)" in (tmp_path / "out.csv").read_text()
    assert "rater00" not in (tmp_path / "out.jsonl").read_text()


def test_labels_of_asks_that_are_missing_are_damage(tmp_path: Path) -> None:
    run = make_run(tmp_path / "monday", 1.0)
    write(run, [label(999, "r1")])
    assert "labels of asks that are missing" in verify(run).damage[0]


def test_labels_of_the_wrong_type_are_refused(tmp_path: Path) -> None:
    run = make_run(tmp_path / "monday", 1.0)
    with Store.create(run) as store:
        store.db.execute("INSERT INTO labels VALUES (1, 's', 'u', 'r', 'd', '{}', 1, '', '{}')")
    with pytest.raises(StoreError, match="data that Overtone did not write"):
        read(run)
