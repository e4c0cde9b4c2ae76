"""PostgreSQL: refused logins, lost servers, and studies that share a database."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from overtone.errors import MissingExtra, StoreError, UsageError
from overtone.studio.database import Unavailable, open_database, postgresql
from overtone.studio.store import Store
from tests.needs import REPOSITORY
from tests.postgres_server import GUARDED, Server, end_forgotten
from tests.studio.store.helpers import arrive, finish, make_study, open_study, rate

STUDY = "abcdefabcdef"
pytestmark = pytest.mark.postgres


@pytest.mark.parametrize(
    "url", ["postgresql://me:s3cret@db/x", "postgresql://me@db/x?password=s3cret", "postgres://:s3cret@/x"]
)
def test_a_password_in_the_url_is_refused_without_repeating_it(tmp_path: Path, url: str) -> None:
    with pytest.raises(UsageError, match=r"PGPASSWORD or into ~/\.pgpass") as refused:
        open_database(url, STUDY, folder=tmp_path)
    assert "s3cret" not in str(refused.value)


def test_without_the_driver_the_line_that_installs_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[studio\]"):
        open_database("postgresql://me@db/x", STUDY, folder=tmp_path)


def test_a_refused_password_says_where_to_put_it(
    tmp_path: Path, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.url_for(GUARDED[0])
    monkeypatch.delenv("PGPASSWORD", raising=False)
    with pytest.raises(StoreError, match="set PGPASSWORD"):
        open_database(url, STUDY, folder=tmp_path)
    monkeypatch.setenv("PGPASSWORD", "a wrong password")
    with pytest.raises(StoreError, match="set PGPASSWORD") as refused:
        open_database(url, STUDY, folder=tmp_path)
    assert "a wrong password" not in str(refused.value)
    monkeypatch.setenv("PGPASSWORD", GUARDED[1])
    with pytest.raises(StoreError, match="GRANT CREATE ON DATABASE"):
        open_database(url, STUDY, folder=tmp_path)
    postgres.sql(f"GRANT CREATE ON DATABASE overtone TO {GUARDED[0]}")
    with open_study(make_study(tmp_path, url)) as store:
        finish(store, arrive(store).label)
        store.backup(tmp_path / "dump")
        assert store.status().answers == 6 and GUARDED[1] not in store.where


def test_a_missing_database_and_server_are_named(
    tmp_path: Path, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql, "PAUSES", (0.01,))
    with pytest.raises(StoreError, match="createdb"):
        open_database(postgres.url_for(database="missing"), STUDY, folder=tmp_path)
    with pytest.raises(StoreError, match="cannot be reached; start it"):
        open_database(f"postgresql://me@/x?host={tmp_path}", STUDY, folder=tmp_path)


def test_studies_share_a_database_without_seeing_each_other(tmp_path: Path, postgres: Server) -> None:
    with (
        open_study(make_study(tmp_path / "a", postgres.url)) as one,
        open_study(make_study(tmp_path, postgres.url)) as two,
    ):
        one.people.invite(3)
        assert (one.status().people["invited"], two.status().people["invited"]) == (3, 0)


def test_a_schema_of_another_program_is_refused(tmp_path: Path, postgres: Server) -> None:
    study = make_study(tmp_path, postgres.url)
    postgres.sql(f'CREATE SCHEMA "overtone_{study.id}"')
    postgres.sql(f'CREATE TABLE "overtone_{study.id}".photos (name TEXT)')
    with pytest.raises(StoreError, match="another program"):
        Store.open(study)


def test_two_servers_that_start_at_once_create_the_tables_once(tmp_path: Path, postgres: Server) -> None:
    study = make_study(tmp_path, postgres.url)
    opened: list[Store] = []
    threads = [threading.Thread(target=lambda: opened.append(open_study(study))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 6 and {len(store.units()) for store in opened} == {36}
    for store in opened:
        store.close()


def test_lost_connections_are_replaced_without_an_error(tmp_path: Path, postgres: Server) -> None:
    with open_study(make_study(tmp_path, postgres.url)) as store:
        label = arrive(store).label
        for slot in store.sessions.enter(label):
            postgres.sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'overtone studio'"
            )
            assert rate(store, label, slot)
        assert len(store.answers.history()) == 10


def test_a_server_that_is_gone_is_reported_and_answers_continue_when_it_is_back(
    tmp_path: Path, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_study(make_study(tmp_path, postgres.url)) as store:
        label = arrive(store).label
        first, second, third = store.sessions.enter(label)[:3]
        rate(store, label, first)
        postgres.stop()
        with monkeypatch.context() as short:
            short.setattr(postgresql, "PAUSES", (0.01, 0.02))
            with pytest.raises(Unavailable, match=r"cannot be reached; start it.*Stored answers are safe"):
                rate(store, label, second)
        back = threading.Thread(target=lambda: (time.sleep(0.2), postgres.start()))
        back.start()
        assert rate(store, label, third)  # waits until the server is back
        back.join()
        assert rate(store, label, second)
        assert len(store.answers.history()) == 3


class Lost(Exception):
    """An error like the one of a connection that breaks."""


def break_after_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lose the connection once after the server has committed, and before its answer arrives."""
    import psycopg

    execute = psycopg.Connection.execute
    broken = []

    def broken_once(self: Any, query: Any, *values: Any) -> Any:
        result = execute(self, query, *values)
        if query == "COMMIT" and not broken:
            broken.append(True)
            self.close()
            raise psycopg.OperationalError("the connection is lost")
        return result

    monkeypatch.setattr(psycopg.Connection, "execute", broken_once)


def test_an_answer_whose_commit_was_not_confirmed_is_stored_once(
    tmp_path: Path, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_study(make_study(tmp_path, postgres.url)) as store:
        label = arrive(store).label
        slot = store.sessions.enter(label)[0]
        break_after_commit(monkeypatch)
        rate(store, label, slot)
        assert len(store.answers.history()) == 1


def test_an_invitation_whose_commit_was_not_confirmed_is_not_repeated(
    tmp_path: Path, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_study(make_study(tmp_path, postgres.url)) as store:
        break_after_commit(monkeypatch)
        with pytest.raises(Unavailable, match="not known whether the last change was stored"):
            store.people.invite(1)
        assert len(store.people.all()) == 1


def test_a_lock_that_is_held_elsewhere_delays_and_does_not_break_answers(tmp_path: Path, postgres: Server) -> None:
    import psycopg

    with open_study(make_study(tmp_path, postgres.url)) as store, psycopg.connect(postgres.url) as other:
        label = arrive(store).label
        slot = store.sessions.enter(label)[0]
        other.execute(f'SELECT * FROM "overtone_{store.study.id}".person FOR UPDATE'.encode())
        free = threading.Timer(0.3, other.rollback)
        free.start()
        assert rate(store, label, slot)
        free.join()


def test_servers_of_killed_tests_are_ended_by_the_next_ones() -> None:
    code = "import os; from tests.postgres_server import Server; print(Server().folder, flush=True); os._exit(9)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=REPOSITORY)
    folder = Path(done.stdout.strip())
    assert (folder / "data/postmaster.pid").exists(), done.stderr
    end_forgotten()
    assert not folder.exists()
