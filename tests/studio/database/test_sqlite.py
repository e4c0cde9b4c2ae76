"""SQLite files that cannot be used: what is wrong is said, and nothing is overwritten."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from overtone.errors import OvertoneError, StoreError, UsageError
from overtone.studio.database import Unavailable, open_database, sqlite
from tests.studio.store.helpers import arrive, finish, make_study, open_study, rate

STUDY = "abcdefabcdef"


def test_each_commit_is_synced_and_the_file_is_private(tmp_path: Path) -> None:
    database = sqlite.SqliteDatabase(tmp_path / "s.db", create=True)
    pragma = {
        name: database.write(lambda c, n=name: c.rows(f"PRAGMA {n}")[0][0]) for name in ("synchronous", "journal_mode")
    }
    assert pragma == {"synchronous": 2, "journal_mode": "wal"}  # 2 is FULL
    assert (tmp_path / "s.db").stat().st_mode & 0o077 == 0
    database.close()


def test_a_file_of_another_program_is_refused_and_not_changed(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE photos (name)")
    other.close()
    before = (tmp_path / "other.db").read_bytes()
    with pytest.raises(StoreError, match="another program"):
        open_database("sqlite:other.db", STUDY, folder=tmp_path)
    assert (tmp_path / "other.db").read_bytes() == before


@pytest.mark.parametrize(
    "content", [b"this is a text and no database " * 99, b"SQLite format 3\0" + b"\x10\0" + b"x" * 9000]
)
def test_a_damaged_file_is_refused_and_not_changed(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.db").write_bytes(content)
    with pytest.raises(StoreError, match=r"is damaged or not a database; restore it from a backup"):
        open_database("sqlite:bad.db", STUDY, folder=tmp_path)
    assert (tmp_path / "bad.db").read_bytes() == content


def test_damage_while_the_study_runs_is_reported(tmp_path: Path) -> None:
    with open_study(make_study(tmp_path, "sqlite:study.db")) as store:
        finish(store, arrive(store).label)
    path = tmp_path / "study.db"
    path.write_bytes(path.read_bytes()[:4096] + b"\xff" * (path.stat().st_size - 4096))
    with pytest.raises(StoreError, match="is damaged"):
        open_study(store.study)


def test_a_folder_is_not_a_database(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError, match="folder"):
        open_database("sqlite:folder", STUDY, folder=tmp_path)


def test_a_database_that_another_program_locks_is_named_and_answers_continue_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.1)
    with open_study(make_study(tmp_path, "sqlite:study.db")) as store:
        label = arrive(store).label
        slot = store.sessions.enter(label)[0]
        other = sqlite3.connect(tmp_path / "study.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable, match="another program keeps the database locked"):
            rate(store, label, slot)
        assert store.status().state == "open"  # reading continues
        other.execute("ROLLBACK")
        assert rate(store, label, slot)
        other.close()


@pytest.mark.parametrize("replaced", [True, False])
def test_a_database_that_is_deleted_or_replaced_takes_no_more_answers(tmp_path: Path, replaced: bool) -> None:
    with open_study(make_study(tmp_path, "sqlite:study.db")) as store:
        label = arrive(store).label
        slot = store.sessions.enter(label)[0]
        (tmp_path / "study.db").rename(tmp_path / "moved.db")
        if replaced:
            (tmp_path / "study.db").write_bytes(b"")
        with pytest.raises(Unavailable, match="was deleted, moved or replaced"):
            rate(store, label, slot)
        (tmp_path / "moved.db").replace(tmp_path / "study.db")
        assert rate(store, label, slot)


@pytest.mark.parametrize("url", ["mysql://root@localhost/x", "sqlite:", "study.db", "http://example.org"])
def test_another_kind_of_database_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(UsageError, match="a database is sqlite:FILE or postgresql"):
        open_database(url, STUDY, folder=tmp_path)


def test_a_closed_study_is_reported_as_an_error_and_not_opened_again(tmp_path: Path) -> None:
    store = open_study(make_study(tmp_path, "sqlite:study.db"))
    store.close()
    store.close()
    for attempt in (store.status, lambda: store.people.invite(1)):
        with pytest.raises(OvertoneError):
            attempt()


def test_what_a_reader_keeps_in_the_log_is_erased_by_a_write_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "ERASE_SECONDS", 0.05)

    def held() -> bytes:
        return b"".join(path.read_bytes() for path in tmp_path.glob("study.db*"))

    with open_study(make_study(tmp_path, "sqlite:study.db")) as store:
        label, other = arrive(store).label, arrive(store).label
        places = store.sessions.enter(label)
        rate(store, label, places[0], "the-answer-of-somebody")
        reader = sqlite3.connect(tmp_path / "study.db", isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM answer").fetchone()
        store.withdrawals.withdraw(label)
        assert b"the-answer-of-somebody" in held()  # the reader still sees the study as it was
        reader.execute("COMMIT")
        rate(store, other, store.sessions.enter(other)[0])
        assert b"the-answer-of-somebody" not in held()
        reader.close()
