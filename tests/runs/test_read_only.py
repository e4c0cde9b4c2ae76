"""Readers change no byte of a run's folder, whatever state a writer left it in or is leaving it in now."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from overtone.cli._main import main
from overtone.errors import StoreError
from overtone.results.load import open_run
from overtone.runs.read_only import ReadConnection, Rewritten, connect_reader
from overtone.runs.store import Store
from overtone.schema import Reply
from tests.report.fake_run import make_run
from tests.runs.old_store import as_version_1
from tests.runs.test_store import answer, filled

WRITER = """
import sys, time
from pathlib import Path
from overtone.runs.store import Store
store = Store.create(Path(sys.argv[1]))
store.set_meta({"note": "written"})
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "run"
    make_run(folder, root=None, scripts=4)
    return folder


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "run"))


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def read_everything(run: Path, out: Path) -> None:
    """Every command that reads a run and takes no server."""
    case = next(iter(open_run(run).answers)).item.case
    for words in (
        ["verify", str(run)],
        ["case", str(run), case],
        ["table", "results", str(run)],
        ["table", "cues", str(run)],
        ["analyze", str(run)],
        ["compare", str(run), str(run)],
        ["check", str(run), "--require", "voice_accuracy > 0%"],
        ["plan", "--detect", "0.1", "--from", str(run)],
        ["export", str(run), "--format", "jsonl", "--out", str(out / "rows.jsonl")],
        ["report", str(run), "-o", str(out / "report.html")],
    ):
        assert main(words) in (0, 1), words


@pytest.fixture
def writer(run: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(run)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.parametrize("old", [False, True])
def test_no_reading_command_changes_the_folder_of_a_run(
    run: Path, tmp_path: Path, old: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    if old:
        as_version_1(run)
    before = files_of(run)
    read_everything(run, tmp_path)
    assert files_of(run) == before


def test_a_run_that_is_being_written_is_read_up_to_its_last_commit_and_not_changed(
    run: Path, writer: subprocess.Popen[str]
) -> None:
    before = files_of(run)
    assert {"run.db-wal", "run.db-shm"} <= before.keys()
    with Store.read(run) as store:
        assert store.meta()["note"] == "written"
    assert files_of(run) == before


def test_what_a_killed_writer_left_is_read_and_stays_as_it_is(run: Path, writer: subprocess.Popen[str]) -> None:
    writer.kill()
    writer.wait()
    before = files_of(run)
    with Store.read(run) as store, Store.read(run) as second:
        assert store.meta()["note"] == second.meta()["note"] == "written"
    assert files_of(run) == before


def test_a_run_copied_without_the_index_of_its_log_is_read_from_a_copy(
    run: Path, writer: subprocess.Popen[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.kill()
    writer.wait()
    (run / "run.db-shm").unlink()
    before = files_of(run)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    with Store.read(run) as store:
        assert store.meta()["note"] == "written"
        assert list((tmp_path / "temporary").iterdir())
    assert files_of(run) == before
    assert not list((tmp_path / "temporary").iterdir())


def test_a_journal_to_be_rolled_back_is_rolled_back_in_a_copy(tmp_path: Path) -> None:
    filled(tmp_path / "run").close()
    program = """
import os, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA journal_mode=DELETE"); db.execute("PRAGMA cache_size=1"); db.execute("BEGIN IMMEDIATE")
db.executemany("INSERT INTO meta VALUES (?, ?)", [(str(n), "x" * 5000) for n in range(50)])
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "run" / "run.db")], check=False)
    before = files_of(tmp_path / "run")
    assert before["run.db-journal"]
    with Store.read(tmp_path / "run") as store:
        assert "0" not in store.meta() and store.counts()["pending"] == 3
    assert files_of(tmp_path / "run") == before


def test_a_reader_that_stays_open_sees_what_is_written_later(tmp_path: Path) -> None:
    filled(tmp_path / "run").close()
    with Store.read(tmp_path / "run") as reader:
        assert reader.counts()["answered"] == 0
        with Store.create(tmp_path / "run") as writer:
            answer(writer)
            writer.commit()
            assert reader.counts()["answered"] == 1
        assert reader.counts()["answered"] == 1


def _write(folder: Path) -> None:
    with Store.create(folder) as store:
        for ask in store.open_asks(0, 1000):
            store.add_reply(ask, 0, Reply("changed"), sent=b"[]", latency=0.1, attempts=1)


def test_rows_of_two_states_of_a_run_are_never_mixed(tmp_path: Path) -> None:
    filled(tmp_path / "run", 1000).close()
    with Store.read(tmp_path / "run") as reader:
        asks = reader.asks()
        next(asks)
        _write(tmp_path / "run")
        with pytest.raises(Rewritten, match="written by another process while it was read"):
            list(asks)
        assert all(state == 1 for _, state in reader.asks())


def test_a_run_that_is_written_while_it_is_opened_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path / "run", 1000).close()
    monkeypatch.setattr(Store, "failures", _once(lambda: _write(tmp_path / "run"), Store.failures))
    assert all(answer.answered for answer in open_run(tmp_path / "run").answers)


def _once(act: Callable[[], None], then: Callable[..., object]) -> Callable[..., object]:
    acts = [act]

    def called(*given: object) -> object:
        while acts:
            acts.pop()()
        return then(*given)

    return called


def test_a_database_in_the_older_journal_mode_is_read_with_its_locks(tmp_path: Path) -> None:
    filled(tmp_path / "run").close()
    db = sqlite3.connect(tmp_path / "run" / "run.db")
    db.execute("PRAGMA journal_mode=DELETE")
    before = files_of(tmp_path / "run")
    reader = connect_reader(tmp_path / "run" / "run.db")
    assert isinstance(reader, ReadConnection) and not reader.behind
    db.execute("INSERT INTO meta VALUES ('later', 'yes')")
    db.commit()
    assert dict(reader.execute("SELECT key, value FROM meta"))["later"] == "yes"
    reader.close()
    db.close()
    assert files_of(tmp_path / "run").keys() == before.keys()


def test_a_file_that_cannot_be_opened_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot open"):
        connect_reader(tmp_path / "run.db")


def test_an_export_of_an_older_run_is_that_of_the_run_upgraded(run: Path, tmp_path: Path) -> None:
    as_version_1(run)
    rows = []
    for step in ("read", "migrate"):
        if step == "migrate":
            assert main(["migrate", str(run)]) == 0
        assert main(["export", str(run), "--format", "jsonl", "--out", str(tmp_path / step)]) == 0
        rows.append([json.loads(line) for line in (tmp_path / step).read_text().splitlines()])
    assert rows[0] == rows[1]
