"""Exports, imports and the paragraph on methods, from a real store with scripted raters."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from overtone.cli import main
from overtone.errors import DataError
from overtone.judge_trust import labels as label_files
from overtone.runs.people_labels import read_labels
from overtone.runs.store import Store as RunStore
from overtone.studio import answer_export, contents, designs, label_studio, study
from overtone.studio.answer_export import content, export, rows_text
from overtone.studio.fields import AnyField, Choice, Scale, Slider, Tags, Value
from overtone.studio.importing import import_annotations
from overtone.studio.labels import Given
from overtone.studio.labels.collect import collect, frozen_units, sync_study
from overtone.studio.methods import methods
from overtone.studio.session_quality import TRAP_FIELD
from overtone.studio.store import Store
from overtone.studio.study import Study
from tests.studio.helpers import new_study
from tests.studio.labels.helpers import bytes_of, simulate, units_of


def value_of(field: AnyField, number: int) -> Value:
    match field:
        case Scale():
            return field.low + number % (field.high - field.low + 1)
        case Choice():
            return list(field.options)[number % len(field.options)]
        case Slider():
            return field.low
        case Tags():
            return [next(iter(field.options))]
    return "text"


def answered(made: Study, people: int = 3, careless: int = 1) -> Store:
    """A store in which everybody finished a session; the first ones fail all traps."""
    asked = contents.read(made)
    store = Store.open(made)
    store.freeze(asked.units, sides=len(asked.design.sides))
    for number in range(people):
        label = store.people.invite(1)[0].label
        store.people.consent(label, made.consent_sha, True, {})
        store.people.set_up(label, {"output": "headphones"}, 0.0)
        for at, slot in enumerate(store.sessions.enter(label)):
            plays = dict.fromkeys(("reply", "A", "B"), 1)
            values: dict[str, Value] = {field.key: value_of(field, at + number) for field in asked.fields}
            if slot.kind == "trap":
                values = {TRAP_FIELD: str(slot.target + (number < careless))}
            elif slot.kind == "gold":
                right = asked.design.gold(asked.fields, asked.rubrics, slot.target)
                values |= {key: options[0] for key, options in right.items()}
            store.answers.add(label, slot.id, f"{slot.id}.all", values, plays=plays, ms=60_000, done=True)
    return store


@pytest.fixture
def made(tmp_path: Path) -> Study:
    text_of = new_study(tmp_path, scripts=12)
    path = text_of.path
    path.write_text(path.read_text().replace("headphones = true", "headphones = false"))
    return study.read(path)


def test_the_csv_is_a_label_file(made: Study, tmp_path: Path) -> None:
    with answered(made) as store:
        done = export(made, store, "csv", tmp_path / "out.csv")
        assert [event.detail["what"] for event in store.log.events("exported")] == ["csv"]
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == done.rows and {row["usable"] for row in rows} == {"0", "1"}
    assert {"rater", "id", "condition", "dimension", "value", "unit", "at"} <= rows[0].keys()
    read = label_files.read(tmp_path / "out.csv")
    assert len(read.ratings) == sum(row["usable"] == "1" for row in rows)
    assert {unit.systems["reply"] for unit in read.units.values()} == {"monday", "friday"}


def test_a_remark_does_not_become_a_formula(made: Study) -> None:
    with answered(made) as store:
        (screen, *_) = [one for one in collect(made, store) if one.kind == "real"]
        for sign in "=+-@":
            key = f"remark-{ord(sign)}"
            store.answers.add(screen.rater, screen.slot, key, {"remark": f"\t{sign}cmd|' /C calc'!A0"}, plays={}, ms=1)
            table = rows_text(made, store, "csv").decode()
            rows = list(csv.DictReader(table.splitlines(keepends=True)))
            assert f"'\t{sign}cmd|' /C calc'!A0" in {row["remark"] for row in rows}


@pytest.mark.parametrize("download", [True, False])
def test_who_withdraws_during_an_export_is_named_with_it(
    made: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, download: bool
) -> None:
    with answered(made) as store:
        label = store.people.all("rater")[0].label

        def slowly(*given: Any) -> Any:
            store.withdrawals.withdraw(label)
            return content(*given)

        monkeypatch.setattr(answer_export, "content", slowly)
        if download:
            rows_text(made, store, "csv")
        else:
            export(made, store, "csv", tmp_path / "out.csv")
        assert list(store.withdrawals.left_in().values()) == [[label]]


def test_json_lines_have_every_screen_as_it_was(made: Study) -> None:
    with answered(made) as store:
        lines = [json.loads(line) for line in rows_text(made, store, "jsonl").splitlines()]
        assert len(lines) == len(collect(made, store))
        assert store.log.events("exported")[0].detail["place"] == "download by the owner"
    assert all(line["values"] and line["replies"][0]["sound"] for line in lines)
    assert {tuple(line["failed"]) for line in lines if not line["usable"]} == {("trap",)}


def test_label_studio_annotations_come_back_once(made: Study, tmp_path: Path) -> None:
    with answered(made) as store:
        export(made, store, "label-studio", tmp_path / "tasks.json")
        before = len(collect(made, store))
        tasks = json.loads((tmp_path / "tasks.json").read_text())
        assert import_annotations(made, store, tmp_path / "tasks.json").new == 0  # its own answers
        for task in tasks:  # somebody annotates the tasks there
            (first, *_) = task["annotations"]
            task["annotations"] = [{**first, "meta": {}, "completed_by": {"id": 7, "email": "ann@example.org"}}]
        (tmp_path / "annotated.json").write_text(json.dumps(tasks))
        done = import_annotations(made, store, tmp_path / "annotated.json")
        assert (done.people, done.new) == (1, len(tasks))
        assert import_annotations(made, store, tmp_path / "annotated.json").new == 0
        given = collect(made, store)
        imported = [one for one in given if one.source == "label-studio"]
        assert len(given) == before + len(tasks) and len({one.rater for one in imported}) == 1
        assert all(one.usable for one in imported)
        by_unit = {task["data"][label_studio.UNIT]: task for task in tasks}
        key = next(iter(imported[0].values))
        told = {r["from_name"]: r["value"] for r in by_unit[imported[0].unit.id]["annotations"][0]["result"]}
        assert told[key] == {"rating": imported[0].values[key]}
        sync_study(made, store)
    assert b"ann@example.org" not in bytes_of(tmp_path / "monday")
    with RunStore.read(tmp_path / "monday") as run:
        assert imported[0].rater in {label.rater for label in read_labels(run)}
    database = b"".join(path.read_bytes() for path in tmp_path.glob("study.db*"))
    assert b"ann@example.org" not in database


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda task: task["data"].pop(label_studio.UNIT), "has no overtone_unit"),
        (lambda task: task["annotations"][0]["result"][0].update(from_name="nonsense"), "has no question"),
        (lambda task: task["annotations"][0]["result"][0]["value"].update(rating=9), "whole number from 1 to 5"),
        (lambda task: task["annotations"][0]["result"].clear(), "has no answer to"),
        (lambda task: task.update(annotations=[3]), "no list of results"),
    ],
)
def test_annotations_that_do_not_fit_are_refused_whole(made: Study, tmp_path: Path, change, message: str) -> None:  # type: ignore[no-untyped-def]
    with answered(made, people=1) as store:
        tasks = json.loads(content(made, collect(made, store), "label-studio")[0])
        for task in tasks:
            task["annotations"][0]["meta"] = {}
        change(tasks[-1])
        (tmp_path / "bad.json").write_text(json.dumps(tasks))
        with pytest.raises(DataError, match=message):
            import_annotations(made, store, tmp_path / "bad.json")
        assert len(store.people.all()) == 1


def test_every_control_survives_label_studio(tmp_path: Path) -> None:
    for design in ("ab", "cmos", "label", "mushra", "transcribe"):
        folder = tmp_path / design
        folder.mkdir()
        flags = ["--design", design] + (["--reference", "clip"] if design == "mushra" else [])
        try:
            made = new_study(folder, *flags, scripts=9)
        except (SystemExit, AssertionError):
            continue  # MUSHRA needs replies as long as their clips
        asked = contents.read(made)
        with answered(made, people=1, careless=0) as store:
            given = collect(made, store)
            tasks = label_studio.tasks(made, given)
            path = folder / "tasks.json"
            path.write_text(json.dumps(tasks))
            back = label_studio.read(path, made, frozen_units(store))
            assert [one.values for one in back] == [one.values for one in given if one.kind == "real"]
        assert asked.design == designs.find(design)


def test_a_withdrawal_is_named_with_the_copies_that_were_made(
    made: Study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with answered(made) as store:
        gone = collect(made, store)[0].rater
    capsys.readouterr()
    assert main(["studio", "export", str(made.path), "-o", str(tmp_path / "a.csv")]) == 0
    assert main(["studio", "sync", str(made.path)]) == 0
    assert gone.encode() in bytes_of(tmp_path / "monday", tmp_path / "friday")
    with Store.open(made) as store:
        withdrawal = store.withdrawals.withdraw(gone)
    assert str(tmp_path / "a.csv") in withdrawal.exports
    assert str((tmp_path / "monday").resolve()) in withdrawal.exports
    capsys.readouterr()
    assert main(["studio", "sync", str(made.path)]) == 0
    assert gone in capsys.readouterr().out
    assert gone.encode() not in bytes_of(tmp_path / "monday", tmp_path / "friday")
    with Store.open(made) as store:
        assert store.withdrawals.left_in() == {str(tmp_path / "a.csv"): [gone]}  # the runs are without that person
    assert main(["studio", "export", str(made.path), "-o", str(tmp_path / "b.csv")]) == 0
    printed = capsys.readouterr().out
    assert gone in printed and str(tmp_path / "a.csv") in printed
    assert gone not in (tmp_path / "b.csv").read_text()
    assert main(["studio", "export", str(made.path), "--withdrawn"]) == 0
    assert capsys.readouterr().out.split() == [gone]


def test_the_paragraph_on_methods_comes_from_the_data(made: Study, capsys: pytest.CaptureFixture[str]) -> None:
    with answered(made, people=4) as store:
        text = methods(made, collect(made, store), units=list(frozen_units(store).values()))
    for part in (
        "rubric echomind", "4 people took part", "invited by link", "1 of 4 sessions was left out",
        "1 missed a trapping question", "one reply played backwards", "Krippendorff’s α",
        "One gain was applied", "Headphones were not tested", "Williams square", "clustered by rater and by script",
    ):  # fmt: skip
        assert part in text, part
    capsys.readouterr()
    assert main(["studio", "export", str(made.path), "--methods"]) == 0
    assert capsys.readouterr().out == text


def test_methods_name_every_design_and_answers_of_nobody(tmp_path: Path) -> None:
    made = new_study(tmp_path, "--design", "ab")
    assert "Nobody has answered yet" in methods(made, [])
    text = methods(made, simulate(made, {"monday": 3, "friday": 4}, raters=5))
    assert "both good, both bad and cannot tell" in text and "All 5 sessions were usable" in text


def test_methods_name_why_sessions_were_left_out_and_nothing_else(tmp_path: Path) -> None:
    made = new_study(tmp_path, "--design", "ab")
    given = simulate(made, {"monday": 3, "friday": 4}, raters=5)
    failed = {given[0].rater: ("trap", "unfinished"), given[-1].rater: ("unfinished",)}
    rows = [
        msgspec.structs.replace(one, failed=failed.get(one.rater, ()), usable="trap" not in failed.get(one.rater, ()))
        for one in given
    ]
    text = methods(made, rows)
    assert "1 of 5 sessions was left out" in text and "(1 missed a trapping question; a session can" in text
    assert "finished" not in text and "least certain" not in text
    assert "least certain were asked about more often" in methods(msgspec.structs.replace(made, adaptive=True), rows)


def test_methods_count_the_answers_of_all_units_not_the_settings(tmp_path: Path) -> None:
    made = msgspec.structs.replace(new_study(tmp_path), overlap=2)
    units = units_of(made)[:10]
    good = [Given(rater="ann", unit=unit, values={}) for unit in units[:7]]
    bad = [Given(rater="bob", unit=unit, values={}, usable=False) for unit in units[3:9]]
    text = methods(made, [*good, *bad], units=units)
    assert "The study has 10 units" in text and "everybody" not in text
    assert "4 of 10 units were rated by both people." in text
    assert "Usable sessions gave 7 answers to 10 units (0.7 per unit on average)." in text
    third = methods(made, [*good, *bad, Given(rater="eve", unit=units[3], values={})], units=units)
    assert "4 of 10 units were rated by two people or more, and 1 by all 3." in third


def test_an_export_needs_a_file(made: Study, capsys: pytest.CaptureFixture[str]) -> None:
    with answered(made, people=1):
        pass
    assert main(["studio", "export", str(made.path)]) == 2
    assert "-o FILE" in capsys.readouterr().err


def test_the_status_says_how_people_agree_and_what_would_decide(
    made: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    with answered(made, people=6, careless=1):
        pass
    capsys.readouterr()
    assert main(["studio", "status", str(made.path)]) == 0
    printed = capsys.readouterr().out
    assert "between 5 raters" in printed and "monday − friday" in printed
    assert main(["studio", "status", str(made.path), "--json"]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert results["usable"] == 5 and results["questions"][0]["gaps"]
