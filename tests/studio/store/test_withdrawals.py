"""Withdrawal, closing, takes and backups, on both databases."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from overtone.errors import StoreError, UsageError
from overtone.studio.store import Refusal, Store
from tests.postgres_server import program
from tests.studio.store.helpers import arrive, finish, make_study, open_study, rate

WAV = b"RIFF" + bytes(2000)


@pytest.fixture
def store(tmp_path: Path, database: str) -> Iterator[Store]:
    with open_study(make_study(tmp_path, database)) as opened:
        yield opened


def record(store: Store, label: str, key: str, wav: bytes = WAV) -> str:
    slot = store.sessions.enter(label)[0]
    about = {"settings": {"sampleRate": 48000}, "checks": {"peak": 0.5}, "verdict": "good", "seconds": 1.0}
    return store.takes.add(label, slot.id, key, wav, part="angry", **about).id  # type: ignore[arg-type]


def files(store: Store) -> list[Path]:
    return [path for path in store.takes.folder.rglob("*") if path.is_file()]


def test_a_take_is_stored_once_and_kept_or_discarded(store: Store) -> None:
    label = arrive(store).label
    first, again = record(store, label, "k1"), record(store, label, "k1")
    second = record(store, label, "k2", WAV + b"!")
    assert first == again != second and len(files(store)) == 2
    assert store.takes.decide(label, first, True).kept
    assert store.takes.decide(label, second, True).kept
    assert [take.id for take in store.takes.all()] == [second] and len(store.takes.all(kept=None)) == 2
    assert store.takes.path(store.takes.get(label, second)).read_bytes() == WAV + b"!"
    store.takes.delete(label, first)
    assert len(files(store)) == 1 and store.status().takes == 1


def test_a_take_of_another_person_is_refused_and_a_changed_file_is_noticed(store: Store) -> None:
    label, other = arrive(store).label, arrive(store).label
    take = record(store, label, "k1")
    for attempt in (store.takes.get, store.takes.delete, lambda *a: store.takes.decide(*a, True)):
        with pytest.raises(Refusal, match="not part of your session"):
            attempt(other, take)
    path = store.takes.path(store.takes.get(label, take))
    path.write_bytes(b"other")
    with pytest.raises(StoreError, match="has changed"):
        store.takes.path(store.takes.get(label, take))


def test_withdrawal_removes_each_byte_and_leaves_a_count(store: Store, tmp_path: Path) -> None:
    label, other = arrive(store).label, arrive(store).label
    places = store.sessions.enter(label)
    for place in places:
        rate(store, label, place, "the-answer-of-somebody")
    store.people.set_up(label, {"output": "a-very-special-headphone"}, 1.0)
    record(store, label, "k1", b"only-mine" + WAV)
    record(store, label, "k2", b"shared" + WAV)
    record(store, other, "k1", b"shared" + WAV)
    store.log.exported("csv", "/home/owner/answers.csv")
    done = store.withdrawals.withdraw(label)
    assert (done.answers, done.takes, done.exports) == (10, 2, ("/home/owner/answers.csv",))
    assert store.withdrawals.withdraw(label) == done and store.withdrawals.all() == [done]
    assert [path.read_bytes()[:6] for path in files(store)] == [b"shared"]
    held = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    held += store._database.read(lambda c: repr([c.rows(f"SELECT * FROM {table}") for table in c.tables()]).encode())
    assert b"the-answer-of-somebody" not in held and b"special-headphone" not in held and b"only-mine" not in held
    assert store.sessions.step(label) == "withdrawn" and store.status().answers == 0
    with pytest.raises(Refusal, match="withdrawn"):
        rate(store, label, places[0])


def test_exports_that_still_contain_withdrawn_people_are_named_until_they_are_made_again(store: Store) -> None:
    first, second = arrive(store).label, arrive(store).label
    store.log.exported("csv", "old.csv")
    store.withdrawals.withdraw(first)
    store.log.exported("csv", "new.csv")
    store.withdrawals.withdraw(second)
    assert store.withdrawals.left_in() == {"old.csv": [first, second], "new.csv": [second]}
    store.log.exported("csv", "old.csv")
    assert store.withdrawals.left_in() == {"new.csv": [second]}


def test_a_withdrawn_persons_places_go_to_others(store: Store) -> None:
    label = arrive(store).label
    finish(store, label)
    assert store.status().missing == 102
    store.withdrawals.withdraw(label)
    assert store.status().missing == 108


def test_the_platforms_id_of_a_withdrawn_person_is_kept_until_closing(store: Store) -> None:
    invited = store.people.join("prolific", "p1")
    store.withdrawals.withdraw(invited.label)
    again = store.people.join("prolific", "p1")
    assert again.label == invited.label and store.sessions.step(again.label) == "withdrawn"


def test_closing_releases_open_places_and_withdrawal_stays_possible(store: Store) -> None:
    label, late = arrive(store).label, arrive(store).label
    finish(store, label)
    store.sessions.enter(late)
    status = store.close_study()
    assert (status.state, status.answers, status.reserved) == ("closed", 6, 0)
    assert store.sessions.step(label) == "done" and store.sessions.step(late) == "closed"
    assert store.withdrawals.withdraw(label).answers == 10
    assert store.close_study().answers == 0


def test_a_restored_backup_has_all_answers_but_those_of_people_who_withdrew_since(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stays, leaves = arrive(store).label, arrive(store).label
    for label in (stays, leaves):
        finish(store, label)
        record(store, label, "k", label.encode() + WAV)
    kept = [one for one in store.answers.all() if one.person == stays]
    backup = tmp_path / "backup.db"
    store.backup(backup)
    assert backup.stat().st_mode & 0o077 == 0
    with pytest.raises(UsageError, match="exists"):
        store.backup(backup)
    store.withdrawals.withdraw(leaves)
    store.close()
    monkeypatch.setenv("PATH", f"{Path(program('pg_restore') or '/').parent}:{os.environ['PATH']}")
    subprocess.run(store.how_to_restore(backup), shell=True, check=True, capture_output=True)
    with Store.open(store.study) as restored:
        assert restored.answers.all() == kept
        assert [one.label for one in restored.withdrawals.all()] == [leaves]
        assert [take.person for take in restored.takes.all(kept=None)] == [stays]
        assert restored.sessions.step(leaves) == "withdrawn"


def test_the_list_of_withdrawn_people_is_completed_from_the_database(store: Store) -> None:
    label = arrive(store).label
    store.withdrawals.withdraw(label)
    store.withdrawals.path.unlink()
    assert store.withdrawals.replay() == 0 and label in store.withdrawals.path.read_text()


def test_a_damaged_list_of_withdrawn_people_is_refused(store: Store) -> None:
    store.withdrawals.path.write_text("# comment\nrm -rf\n")
    with pytest.raises(StoreError, match="not a pseudonym"):
        Store.open(store.study)


def test_files_of_deleted_takes_are_deleted_at_the_next_start_if_the_process_was_killed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    label = arrive(store).label
    record(store, label, "k1")
    monkeypatch.setattr(type(store.takes), "sweep", lambda self: None)
    store.withdrawals.withdraw(label)
    assert len(files(store)) == 1
    monkeypatch.undo()
    with Store.open(store.study):
        assert files(store) == []


def test_a_take_whose_row_was_never_stored_is_deleted_at_the_next_start(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    label = arrive(store).label
    kept = record(store, label, "k1")

    def killed(*args: object, **options: object) -> None:
        raise SystemExit  # between the file and the row

    monkeypatch.setattr("overtone.studio.store.stored_takes.first_time", killed)
    with pytest.raises(SystemExit):
        record(store, label, "k2", b"lost" + WAV)
    monkeypatch.undo()
    assert len(files(store)) == 2
    with Store.open(store.study) as again:
        assert [path.read_bytes() for path in files(again)] == [WAV]
        assert [take.id for take in again.takes.all(kept=None)] == [kept]


def test_a_refused_take_leaves_no_file(store: Store) -> None:
    label = arrive(store).label
    slot = store.sessions.enter(label)[0]
    store.close_study()
    about = {"settings": {}, "checks": {}, "verdict": "good", "seconds": 1.0}
    with pytest.raises(Refusal, match="closed"):
        store.takes.add(label, slot.id, "k", WAV, **about)  # type: ignore[arg-type]
    assert files(store) == []


def test_a_sound_that_was_cut_off_by_a_kill_is_deleted_with_its_take(store: Store) -> None:
    label = arrive(store).label
    record(store, label, "k1")
    (path,) = files(store)
    (path.parent / f".{path.name}.99.abc.part").write_bytes(WAV[:100])
    store.withdrawals.withdraw(label)
    assert files(store) == []
