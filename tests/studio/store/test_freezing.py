"""The study in the database: frozen at the first serve, refused if the file asks something else afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from overtone.errors import StoreError, UsageError
from overtone.studio.session_quality import RULES
from overtone.studio.store import Store
from overtone.studio.store.store_records import Flag
from overtone.studio.study import Source
from tests.studio.store.helpers import make_study, make_units, open_study


@pytest.fixture
def store(tmp_path: Path, database: str) -> Iterator[Store]:
    with open_study(make_study(tmp_path, database)) as opened:
        yield opened


def test_units_stay_as_they_were_at_the_first_serve(store: Store) -> None:
    before = store.units()
    assert len(before) == 36 and b'"system":"one"' in before["one-0"].content
    store.freeze(make_units(3), sides=2)
    assert store.units() == before
    with Store.open(store.study) as again:
        assert again.units() == before and again.state() == "open"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"seed": 5}, "seed changed.*0 → 5"),
        ({"rubrics": ("ves",)}, "rubrics changed"),
        ({"sources": (Source(name="other", path="one"),)}, "source changed"),
    ],
)
def test_a_study_file_that_asks_something_else_is_refused_with_what_changed(
    store: Store, change: dict[str, Any], named: str
) -> None:
    with Store.open(replace(store.study, **change)) as changed:
        for attempt in (changed.check, lambda: changed.freeze([], sides=1)):
            with pytest.raises(StoreError, match=named):
                attempt()


def test_texts_sizes_and_moved_runs_may_change(store: Store) -> None:
    moved = (Source(name="one", path="elsewhere/one"),)
    with Store.open(replace(store.study, title="New", votes=5, session=9, sources=moved)) as changed:
        changed.check()


def test_a_database_of_another_study_is_refused(tmp_path: Path) -> None:
    open_study(make_study(tmp_path, "sqlite:study.db")).close()
    with pytest.raises(StoreError, match="belongs to another study"):
        Store.open(make_study(tmp_path, "sqlite:study.db"))


def test_a_newer_and_a_foreign_database_are_refused(store: Store) -> None:
    store._database.write(lambda c: c.run("UPDATE meta SET value = '2' WHERE name = 'version'"))
    with pytest.raises(StoreError, match="newer version of Overtone"):
        Store.open(store.study)
    store._database.write(lambda c: c.run("DROP TABLE meta"))
    with pytest.raises(StoreError, match="another program"):
        Store.open(store.study)


def test_a_database_that_is_not_there_is_refused_where_it_is_only_read(tmp_path: Path, database: str) -> None:
    with pytest.raises(UsageError, match="studio serve"):
        Store.open(make_study(tmp_path, database), create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_secret_is_made_once_for_each_purpose(store: Store) -> None:
    secret = store.secret("sounds")
    assert len(secret) == 32 and store.secret("other") != secret
    with Store.open(store.study) as again:
        assert again.secret("sounds") == secret


def test_events_and_flags_are_stored(store: Store) -> None:
    store.log.add("note", "p", text="hello")
    (event,) = store.log.events("note")
    assert (event.kind, event.person, event.detail) == ("note", "p", {"text": "hello"})
    assert [one.kind for one in store.log.events()] == ["frozen", "note"]
    flag = Flag(person="p", session=1, slot="s", rule="trap", version=RULES["trap"], detail="answered 3, heard 2")
    store.log.set_flags([flag, flag])
    store.log.set_flags([flag])
    assert store.log.flags() == [flag]
