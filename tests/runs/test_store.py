"""The store by itself: full disks, read-only folders, two writers, foreign files, hostile names, killed writers."""

from __future__ import annotations

import csv
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from overtone.errors import StoreError
from overtone.runs.export_rows import export
from overtone.runs.store import Store
from overtone.schema import Clip, Item, Reply, Score, Turn
from tests.servers import tone


def item(number: int, **changes: object) -> Item:
    fields: dict[str, object] = {
        "id": f"b/s/asr/id_{number}/target",
        "benchmark": "b",
        "level": 1,
        "task": "transcribe",
        "category": "asr",
        "case": f"s/id_{number}/target",
        "group": f"s/id_{number}",
        "style": "target",
        "turns": (Turn(Clip(f"a/{number}.wav"), "hello"),),
    }
    return Item(**{**fields, **changes})  # type: ignore[arg-type]


def filled(folder: Path, count: int = 3) -> Store:
    store = Store.create(folder)
    store.plan([(item(n), ("task/audio",)) for n in range(count)], 1)
    store.commit()
    return store


def answer(store: Store, text: str = "hi", audio: bytes | None = None) -> None:
    (ask, *_) = store.open_asks(0, 1)
    store.add_reply(ask, 0, Reply(text, audio), sent=b"[]", latency=0.1, attempts=1)


def test_a_second_writer_is_told_who_holds_the_run(tmp_path: Path) -> None:
    with filled(tmp_path / "run"), pytest.raises(StoreError, match=f"another process .pid {os.getpid()}"):
        Store.create(tmp_path / "run")


def test_a_reader_sees_what_is_committed_while_a_writer_goes_on(tmp_path: Path) -> None:
    with filled(tmp_path / "run") as store:
        answer(store)
        with Store.read(tmp_path / "run") as reader:
            assert reader.counts()["answered"] == 0
        store.commit()
        with Store.read(tmp_path / "run") as reader:
            assert reader.counts()["answered"] == 1


def test_a_full_disk_is_a_clear_error_and_keeps_what_was_committed(tmp_path: Path) -> None:
    store = filled(tmp_path / "run", 200)
    answer(store, "kept")
    store.commit()
    pages = store.db.execute("PRAGMA page_count").fetchone()[0]
    store.db.execute(f"PRAGMA max_page_count={pages + 2}")
    with pytest.raises(StoreError, match="disk is full; free some space"):
        for _ in range(100):
            answer(store, "x" * 3000)
            store.commit()
    store.db.execute("PRAGMA max_page_count=1000000")
    store.close()
    with Store.create(tmp_path / "run") as again:
        assert next(again.replies()).text == "kept"
        assert again.db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        answer(again, "goes on")


def test_no_room_for_a_sound_is_a_clear_error_and_leaves_no_half_of_it(tmp_path: Path) -> None:
    program = """
import resource, sys, signal
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.runs.test_store import filled, answer
from overtone.errors import StoreError
store = filled(Path(sys.argv[1]))
answer(store, "kept"); store.commit()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    answer(store, "loud", bytes(400_000))
except StoreError as error:
    print(error)
store.close()
"""
    repository = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "run"), str(repository)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "the disk is full" in done.stdout, done.stderr
    assert not list((tmp_path / "run" / "audio").glob("*/*"))
    with Store.read(tmp_path / "run") as store:
        assert [reply.text for reply in store.replies()] == ["kept"]


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StoreError, match=r"cannot write to .*choose another --out"):
        Store.create(tmp_path / "file" / "run")


def test_a_read_only_database_is_a_clear_error(tmp_path: Path) -> None:
    filled(tmp_path / "run").close()
    program = """
import importlib.resources, os, sys
from pathlib import Path
from overtone.errors import StoreError
from overtone.runs.store import Store
folder = Path(sys.argv[1])
os.chmod(folder / "run.db", 0o444); os.chmod(folder, 0o555); os.chmod(folder / "lock", 0o666)
if os.getuid() == 0:
    try:
        os.chown(folder, 65534, 65534); os.setgid(65534); os.setuid(65534)
    except OSError:  # a container that knows no other user
        sys.exit(77)
with Store.read(folder) as store:
    print("read", store.counts()["pending"])
try:
    Store.create(folder)
except StoreError as error:
    print(error)
"""
    for parent in (tmp_path, *tmp_path.parents):  # the unprivileged child must be able to reach the folder
        if parent.stat().st_uid == os.getuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o011)
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "run")], capture_output=True, text=True, check=False, cwd="/"
    )
    (tmp_path / "run").chmod(0o755)
    if done.returncode == 77:
        pytest.skip("root cannot give up its rights in this container; run 'pytest' as another user")
    assert "read 3" in done.stdout, done.stderr
    assert "read-only; choose another --out" in done.stdout or "cannot write to" in done.stdout, (
        done.stdout + done.stderr
    )


def test_what_is_no_run_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is not a run"):
        Store.read(tmp_path)
    (tmp_path / "run.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(StoreError, match="damaged or not a database"):
        Store.read(tmp_path)


def test_another_version_of_the_store_is_refused(tmp_path: Path) -> None:
    filled(tmp_path / "run").close()
    db = sqlite3.connect(tmp_path / "run" / "run.db")
    db.execute("PRAGMA user_version=99")
    db.close()
    with pytest.raises(StoreError, match="store version 99, but this version of Overtone reads versions up to 8"):
        Store.read(tmp_path / "run")


@pytest.mark.parametrize("name", ["../../etc/passwd", "", "G" * 64, "a" * 63, "a" * 64 + "/x", "<script>"])
def test_a_sound_is_only_found_by_a_plain_hex_name(tmp_path: Path, name: str) -> None:
    with filled(tmp_path / "run") as store, pytest.raises(StoreError, match="is not the name of a stored sound"):
        store.audio_path(name)


def test_a_changed_item_is_refused_with_the_difference(tmp_path: Path) -> None:
    with filled(tmp_path / "run") as store, pytest.raises(StoreError, match="gold: '' → 'B'"):
        store.plan([(item(0, gold="B"), ("task/audio",))], 1)


def test_what_a_killed_writer_left_behind_is_swept(tmp_path: Path) -> None:
    store = filled(tmp_path / "run")
    answer(store, "kept", tone(1))
    store.commit()
    folder = tmp_path / "run" / "audio" / "ab"
    folder.mkdir(exist_ok=True)
    (folder / ("ab" + "0" * 62 + ".wav")).write_bytes(tone(2))
    (folder / ("ab" + "1" * 62 + ".part")).write_bytes(b"half")
    store.db.close()  # as if killed: the store is not closed
    assert store._lock is not None
    store._lock.close()
    with Store.create(tmp_path / "run") as again:
        kept = [reply.audio for reply in again.replies()]
    assert [path.stem for path in (tmp_path / "run" / "audio").glob("*/*")] == kept


def test_a_score_without_a_value_can_be_kept_from_taking_one_away(tmp_path: Path) -> None:
    with filled(tmp_path / "run") as store:
        answer(store)
        for value, reason in ((None, "away"), (4.0, ""), (None, "away again")):
            store.add_scores([(1, Score("ves@j", "ves@j|v1", value, reason))], keep_values=True)
        assert [(s.value, s.reason) for _, s in store.scores()] == [(4.0, "")]
        store.add_scores([(1, Score("ves@j", "ves@j|v1", None, "taken back"))])
        assert [(s.value, s.reason) for _, s in store.scores()] == [(None, "taken back")]


def test_scores_of_two_signatures_live_side_by_side(tmp_path: Path) -> None:
    with filled(tmp_path / "run") as store:
        answer(store)
        store.add_scores([(1, Score("wer", "wer|v1", 0.5)), (1, Score("wer", "wer|v2", 0.25, detail={"hits": 1}))])
        store.add_scores([(1, Score("wer", "wer|v2", 0.75))])
        store.commit()
        assert [(s.signature, s.value) for _, s in store.scores(every=True)] == [("wer|v1", 0.5), ("wer|v2", 0.75)]
        assert store.scored("wer|v1") == {1}
        assert store.scored("wer|v9") == set()


def test_the_earlier_turns_of_a_dialogue_are_kept_and_only_the_rest_is_open(tmp_path: Path) -> None:
    two = item(7, turns=(Turn(Clip("a.wav"), "one"), Turn(Clip("b.wav"), "two")))
    with Store.create(tmp_path / "run") as store:
        store.plan([(two, ("zero/audio",))], 1)
        (ask,) = store.open_asks(0, 10)
        store.add_reply(ask, 0, Reply("first"), sent=b"[]", latency=0.1, attempts=1)
        store.commit()
        (ask,) = store.open_asks(0, 10)
        assert [reply.text for reply in ask.replies] == ["first"]
        store.add_reply(ask, 1, Reply("second"), sent=b"[]", latency=0.1, attempts=1)
        assert store.open_asks(0, 10) == []
        assert [(r.key.turn, r.text) for ask in store.answered() for r in ask.replies] == [(0, "first"), (1, "second")]


def test_exports_escape_control_characters_and_the_line_ends_of_unicode(tmp_path: Path) -> None:
    text = "a\0b\x1b[31mc\x85d\u2028e\u2029f\tg\nh"
    with filled(tmp_path / "run", 1) as store:
        (ask,) = store.open_asks(0, 9)
        store.add_reply(ask, 0, Reply(text), sent=b"[]", latency=0.1, attempts=1)
    with Store.read(tmp_path / "run") as store:
        assert export(store, "jsonl", tmp_path / "x.jsonl") == 1
        assert export(store, "csv", tmp_path / "x.csv") == 1
    (line,) = (tmp_path / "x.jsonl").read_text("utf-8").splitlines()
    assert msgspec.json.decode(line)["text"] == text
    with (tmp_path / "x.csv").open(newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert row["text"] == "a\\x00b\\x1b[31mc\\x85d\u2028e\u2029f\tg\nh"
