"""Older stores: read as they are, upgraded by a writer in one step, with a copy of the older file kept."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from overtone.cli._main import main
from overtone.errors import StoreError
from overtone.runs.people_labels import read_labels, read_studies
from overtone.runs.store import VERSION, Store
from tests.runs.old_store import as_version_1, as_version_2, as_version_4
from tests.runs.test_store import answer, filled


def version_of(path: Path) -> int:
    db = sqlite3.connect(path)
    found = int(db.execute("PRAGMA user_version").fetchone()[0])
    db.close()
    return found


@pytest.fixture
def old(tmp_path: Path) -> Path:
    filled(tmp_path / "run").close()
    as_version_1(tmp_path / "run")
    return tmp_path / "run"


def test_the_next_writer_upgrades_an_older_run_and_keeps_a_copy_of_it(old: Path) -> None:
    with Store.create(old) as store:
        answer(store)
    assert version_of(old / "run.db") == VERSION
    assert version_of(old / "run.db.v1.bak") == 1
    with Store.read(old) as store:
        assert store.counts() == {"pending": 2, "answered": 1, "failed": 0}
    (old / "run.db").unlink()
    (old / "run.db.v1.bak").rename(old / "run.db")
    with Store.read(old) as store:
        assert store.counts() == {"pending": 3, "answered": 0, "failed": 0}


def test_migrate_says_which_runs_it_upgraded(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", str(old)]) == 0
    assert f"upgraded to version {VERSION}; the older file is {old / 'run.db.v1.bak'}" in capsys.readouterr().out
    kept = (old / "run.db.v1.bak").read_bytes()
    assert main(["migrate", str(old)]) == 0
    assert f"has version {VERSION} already" in capsys.readouterr().out
    assert (old / "run.db.v1.bak").read_bytes() == kept


def test_a_run_of_version_2_is_read_and_upgraded(tmp_path: Path) -> None:
    filled(tmp_path / "run").close()
    as_version_2(tmp_path / "run")
    kept = (tmp_path / "run" / "run.db").read_bytes()
    with Store.read(tmp_path / "run") as store:
        assert store.counts()["pending"] == 3 and store.suite() is None
    assert (tmp_path / "run" / "run.db").read_bytes() == kept
    with Store.create(tmp_path / "run") as store:
        answer(store)
    assert version_of(tmp_path / "run" / "run.db") == VERSION
    assert version_of(tmp_path / "run" / "run.db.v2.bak") == 2
    with Store.read(tmp_path / "run") as store:
        assert store.counts()["answered"] == 1


def test_a_run_without_the_table_of_labels_is_read_and_upgraded(tmp_path: Path) -> None:
    filled(tmp_path / "run").close()
    as_version_4(tmp_path / "run")
    with Store.read(tmp_path / "run") as store:
        assert list(read_labels(store)) == [] and read_studies(store) == {}
    assert version_of(tmp_path / "run" / "run.db") == 4
    Store.create(tmp_path / "run").close()
    assert version_of(tmp_path / "run" / "run.db") == VERSION


def test_migrate_makes_no_run_of_another_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", str(tmp_path)]) == 2
    assert "is not a run" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_an_upgrade_that_fails_leaves_the_older_run_whole(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("overtone.runs.upgrade.schema", lambda version: "CREATE TABLE one (x); nonsense;")
    with pytest.raises(StoreError):
        Store.create(old)
    monkeypatch.undo()
    assert version_of(old / "run.db") == 1
    with Store.read(old) as store:
        assert store.counts()["pending"] == 3


def test_a_link_in_place_of_the_copy_is_not_written_through(old: Path, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("mine")
    for name in ("run.db.v1.bak", "run.db.v1.bak.part"):
        (old / name).symlink_to(tmp_path / "other")
    Store.create(old).close()
    assert (tmp_path / "other").read_text() == "mine"
    assert version_of(old / "run.db.v1.bak") == 1


def test_tables_that_version_1_does_not_have_are_refused_in_it(old: Path) -> None:
    db = sqlite3.connect(old / "run.db")
    db.execute("CREATE VIEW declarations AS SELECT key AS score, value AS body FROM meta")
    db.close()
    with pytest.raises(StoreError, match=r"contains data that Overtone did not write \(declarations\)"):
        Store.read(old)
