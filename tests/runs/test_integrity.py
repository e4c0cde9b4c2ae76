"""Damage to a run folder: `overtone verify` names it, and no command answers it with a traceback."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from overtone.audio import load_sound
from overtone.cli._main import main
from overtone.runs import store as stores
from overtone.runs.integrity import verify
from overtone.runs.sent_clips import OWN_RATE
from overtone.runs.store import Store
from overtone.schema import Reply
from tests.report.fake_run import make_run, tone


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undamaged run with its data: 190 replies, 8 sounds, one clip."""
    folder = tmp_path_factory.mktemp("whole")
    root = folder / "data"
    root.mkdir()
    (root / "clip.wav").write_bytes(tone(440))
    sound = load_sound(root / "clip.wav")
    make_run(folder / "run", root=None)
    with Store.create(folder / "run") as store:
        store.set_meta({"root": str(root), "clips": OWN_RATE})
        store.add_clip("clip.wav", sound.sha256, 1, 1, sound.seconds)
    return folder


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole / "run", tmp_path / "run"))


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_whole_run_is_fine_and_stays_as_it_is(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files_of(run)
    assert main(["verify", str(run)]) == 0
    said = capsys.readouterr().out
    assert "is fine" in said and "1 clips checked" in said and "damaged" not in said
    assert files_of(run) == before


def test_a_folder_without_a_run_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", str(tmp_path)]) == 2
    assert "is not a run" in capsys.readouterr().err


def test_sounds_that_are_missing_or_changed_are_named(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second, *_ = sorted((run / "audio").glob("??/*.wav"))
    first.unlink()
    second.write_bytes(second.read_bytes()[:-1])
    assert main(["verify", str(run)]) == 1
    said = capsys.readouterr().out
    assert f"1 stored sound of replies is missing: audio/{first.parent.name}/{first.name}" in said
    assert f"1 stored sound of replies is changed or unreadable: audio/{second.parent.name}/{second.name}" in said
    assert said.count("restore it from a copy") == 2


def test_a_clip_that_changed_is_damage_and_one_that_is_gone_is_a_note(run: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with Store.create(run) as store:
        store.set_meta({"root": str(data)})
    found = verify(run)
    assert not found.damage and "1 of 1 clip could not be found" in found.notes[0]
    (data / "clip.wav").write_bytes(tone(441))
    (sentence,) = verify(run).damage
    assert "1 clip" in sentence and "not what was sent: clip.wav" in sentence


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("UPDATE replies SET text = x'ff' WHERE ask = 5", "run.db contains data that Overtone did not write"),
        ("UPDATE items SET body = '{}' WHERE seq = 3", "run.db contains data that Overtone did not write"),
        ("DELETE FROM items WHERE seq = 3", "asks of items that are missing"),
        ("DELETE FROM signatures WHERE id = 1", "a score without a signature"),
        ("DELETE FROM replies WHERE ask = 5", "1 asks that are marked as answered but have no reply"),
        ("INSERT INTO failures VALUES (99999, 0, 'x', '', 1, 0)", "1 failures of asks that are missing"),
        ("CREATE VIEW v AS SELECT 1", "run.db contains data that Overtone did not write (v)"),
        ("PRAGMA user_version = 9", "store version 9"),
    ],
)
def test_rows_that_cannot_be_are_named(run: Path, sql: str, words: str) -> None:
    db = sqlite3.connect(run / "run.db")
    db.execute(sql)
    db.commit()
    db.close()
    assert any(words in sentence for sentence in verify(run).damage), verify(run).damage


def damage(path: Path, seed: int) -> None:
    """Overwrite a whole page with noise, and a few bytes of another, but for the file's header."""
    rng = np.random.default_rng(seed)
    data = bytearray(path.read_bytes())
    size = int.from_bytes(data[16:18], "big")
    pages = len(data) // size
    one, other = (int(page) for page in rng.integers(1, pages, 2))
    data[one * size : (one + 1) * size] = rng.bytes(size)
    data[other * size + 100 : other * size + 140] = rng.bytes(40)
    path.write_bytes(data)


COMMANDS = ("case", "export", "report", "analyze", "table headline", "check", "score", "judge agreement", "verify")


def damage_schema(path: Path) -> None:
    """Spoil the statement that made a table: SQLite's message quotes it, and is then no UTF-8 itself."""
    data = path.read_bytes()
    path.write_bytes(data.replace(b"CREATE TABLE meta", b"CREATE TAB\xa0\xebmeta"))


@pytest.mark.parametrize("seed", range(-1, 5))
def test_damaged_pages_are_errors_and_no_tracebacks(run: Path, seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    damage(run / "run.db", seed) if seed >= 0 else damage_schema(run / "run.db")
    codes = {}
    for command in COMMANDS:
        words = command.split()
        codes[command] = main([*words, str(run)])  # raises what would be a traceback
        said = capsys.readouterr()
        assert codes[command] in (0, 1, 2, 3), command
        assert codes[command] == 0 or said.err or said.out, command
    assert codes["verify"] == 1
    assert "'overtone verify' says where" not in said.out, "verify is the last of the commands"
    assert main(["compare", str(run), str(run)]) in (0, 2)


def test_damaged_verdicts_are_named(run: Path) -> None:
    (run / "verdicts.db").write_bytes(b"not a database" * 100)
    (sentence,) = verify(run).damage
    assert sentence.startswith("verdicts.db is damaged")


def test_with_fsync_a_sound_and_its_folder_are_synced_before_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.results.small import item

    events: list[str] = []
    monkeypatch.setattr(stores, "to_disk", lambda path: events.append(path.name))
    for fsync in (True, False):
        with Store.create(tmp_path / f"run{fsync}", fsync=fsync) as store:
            store.plan([(item(f"i{n}", "converse"), ["zero/audio"]) for n in range(2)], 1)
            store.commit()
            events.clear()
            store.db.set_trace_callback(lambda sql: events.append(sql) if sql.startswith("COMMIT") else None)
            for ask in store.open_asks(0, 2):
                store.add_reply(ask, 0, Reply("Yes.", tone(300)), sent=b"[]", latency=1.0, attempts=1)
                store.commit()
            store.db.set_trace_callback(None)
        kept = next((tmp_path / f"run{fsync}" / "audio").glob("??/*.wav"))
        synced = [kept.with_suffix(".part").name, kept.name, kept.parent.name, "audio"] if fsync else []
        assert events == [*synced, "COMMIT", "COMMIT"], "the second reply has the same sound"


def test_a_sound_that_lost_its_bytes_is_written_again(tmp_path: Path) -> None:
    from tests.results.small import item

    with Store.create(tmp_path / "run") as store:
        store.plan([(item(f"i{n}", "converse"), ["zero/audio"]) for n in range(2)], 1)
        for ask in store.open_asks(0, 2):
            store.add_reply(ask, 0, Reply("Yes.", tone(300)), sent=b"[]", latency=1.0, attempts=1)
            (kept,) = (tmp_path / "run" / "audio").glob("??/*.wav")
            assert kept.read_bytes() == tone(300)
            kept.write_bytes(b"")
