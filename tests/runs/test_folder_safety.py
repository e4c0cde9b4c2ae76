"""A run folder that somebody else sent: nothing outside it is read or written; foreign contents are a clear error."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from overtone.cli import main
from overtone.errors import DataError, StoreError
from overtone.runs.export_rows import export
from overtone.runs.store import Store
from overtone.schema import Score
from tests.runs.test_store import answer, filled
from tests.servers import tone


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A small run with one spoken reply and one score."""
    with filled(tmp_path / "run", 2) as store:
        answer(store, audio=tone())
        store.add_scores([(1, Score("wer", "wer|v1", 0.5))])
    return tmp_path / "run"


def tampered(run: Path, *statements: str) -> Path:
    db = sqlite3.connect(run / "run.db", isolation_level=None)
    for statement in statements:
        db.execute(statement)
    db.close()
    return run


@pytest.mark.parametrize("name", ["lock", "run.log", "config.toml", "run.db", "verdicts.db"])
def test_a_link_in_the_folder_is_never_written_through(run: Path, name: str) -> None:
    precious = run.parent / "precious"
    precious.write_text("mine")
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(precious)
    with pytest.raises(StoreError, match=f"{name} is a link"):
        Store.create(run)
    assert precious.read_text() == "mine"


@pytest.mark.parametrize("name", ["lock", "run.log", "config.toml"])
def test_a_pipe_in_the_folder_does_not_make_a_writer_wait_for_ever(run: Path, name: str) -> None:
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)
    with pytest.raises(StoreError, match="not a plain file"):
        Store.create(run)


@pytest.mark.parametrize("linked", ["audio", "audio/zz"])
def test_sweeping_up_after_a_killed_writer_deletes_nothing_behind_a_link(run: Path, linked: str) -> None:
    mine = run.parent / "mine" / "zz"
    mine.mkdir(parents=True)
    (mine / f"{'a' * 64}.wav").write_text("mine")
    if linked == "audio":
        shutil.rmtree(run / "audio")
    (run / linked).symlink_to(mine.parent if linked == "audio" else mine)
    tampered(run, "UPDATE meta SET value = 'yes' WHERE key = 'open'")
    with pytest.raises(StoreError, match="is a link"):
        Store.create(run)
    assert list(mine.iterdir())


def test_the_sweep_deletes_only_what_is_named_like_a_stored_sound(run: Path) -> None:
    folder = run / "audio" / "zz"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    (folder / f"{'a' * 64}.wav").write_text("left behind")
    tampered(run, "UPDATE meta SET value = 'yes' WHERE key = 'open'")
    Store.create(run).close()
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


def test_an_export_does_not_write_through_a_link(run: Path) -> None:
    precious = run.parent / "precious"
    precious.write_text("mine")
    (run / "replies.jsonl.part").symlink_to(precious)
    with Store.read(run) as store:
        export(store, "jsonl", run / "replies.jsonl")
    assert precious.read_text() == "mine"
    assert (run / "replies.jsonl").stat().st_size > 100


def test_a_reply_whose_sound_is_a_link_to_elsewhere_is_not_played_or_replayed(run: Path) -> None:
    secret = run.parent / "secret.wav"
    secret.write_bytes(tone(9))
    with Store.read(run) as store:
        sound = store.audio_path(next(store.replies()).audio)
        sound.unlink()
        sound.symlink_to(secret)
        with pytest.raises(DataError, match="leaves its folder"):
            store.audio_path(sound.stem)
    out = run.parent / "report.html"
    assert main(["report", str(run), "--embed-audio", "-o", str(out)]) == 0
    assert 'data-type="audio' not in out.read_text()
    assert "leaves its folder" in out.read_text()


def test_a_report_does_not_wait_for_a_pipe_that_is_named_like_a_sound(run: Path) -> None:
    with Store.read(run) as store:
        sound = store.audio_path(next(store.replies()).audio)
    sound.unlink()
    os.mkfifo(sound)
    out = run.parent / "report.html"
    assert main(["report", str(run), "-o", str(out)]) == 0
    assert "not a plain file" in out.read_text()


@pytest.mark.parametrize(
    "statements",
    [
        ("CREATE TRIGGER t AFTER INSERT ON meta BEGIN DELETE FROM replies; END",),
        (
            "ALTER TABLE items RENAME TO old",
            "CREATE VIEW items AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x FROM c) SELECT x AS seq FROM c",
        ),
        ("ALTER TABLE items ADD COLUMN more AS (hex(zeroblob(100)))",),
        ("DROP TABLE replies",),
        ("CREATE TABLE extra (a)",),
    ],
)
def test_tables_that_are_not_ours_are_refused_before_they_are_used(run: Path, statements: tuple[str, ...]) -> None:
    tampered(run, *statements)
    for use in (Store.read, Store.create):
        with pytest.raises(StoreError, match="contains data that Overtone did not write"):
            use(run)
    if "TRIGGER" in statements[0]:
        db = sqlite3.connect(run / "run.db")
        assert db.execute("SELECT count(*) FROM replies").fetchone() == (1,)


WRONG = [
    "UPDATE replies SET text = x'ff00'",
    "UPDATE replies SET text = CAST(x'fffe41' AS TEXT)",
    "UPDATE replies SET text = hex(zeroblob(600000))",
    "UPDATE replies SET audio = x'00'",
    "UPDATE replies SET latency = 'soon'",
    "UPDATE replies SET latency = 9e999",
    "UPDATE replies SET usage = '[1]'",
    "UPDATE replies SET usage = CAST('{\"input_tokens\": 100000000000000000000}' AS BLOB)",
    "UPDATE replies SET notes = CAST('[1]' AS BLOB)",
    "UPDATE items SET body = 'nope'",
    "UPDATE items SET body = CAST(json_set(CAST(body AS TEXT), '$.turns', json('[]')) AS BLOB)",
    "UPDATE asks SET condition = x'00' WHERE id = 1",
    "UPDATE asks SET repeat = 'often' WHERE id = 1",
    "UPDATE scores SET value = 9e999",
    "UPDATE scores SET value = 'good'",
    "UPDATE scores SET detail = CAST('[1]' AS BLOB)",
    "UPDATE scores SET detail = CAST(replace(hex(zeroblob(50000)), '0', '[') AS BLOB)",
    "UPDATE meta SET value = x'ff'",
    "INSERT INTO events VALUES ('x', 'warning', x'00')",
]


@pytest.mark.parametrize("statement", WRONG)
@pytest.mark.parametrize(
    "command",
    [
        lambda run: ["case", run, "s/id_0/target"],
        lambda run: ["report", run],
        lambda run: ["export", run],
        lambda run: ["export", run, "--format", "csv"],
        lambda run: ["score", run],
    ],
    ids=["case", "report", "jsonl", "csv", "score"],
)
def test_a_value_of_the_wrong_kind_is_one_clear_line(
    run: Path, statement: str, command: Callable[[str], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    tampered(run, statement)
    code = main(command(str(run)))
    said = capsys.readouterr().err
    assert code in (0, 2)  # a command that does not read the value does not mind it
    if code:
        assert "Overtone did not write" in said


def test_a_root_with_a_null_byte_is_a_reason_in_the_report(run: Path) -> None:
    tampered(run, "INSERT OR REPLACE INTO meta VALUES ('root', '/tmp/' || char(0) || 'x')")
    assert main(["report", str(run)]) == 0
    assert "cannot be resolved" in (run / "report.html").read_text()


def test_hostile_names_and_facts_cannot_write_to_the_terminal(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tampered(run, "UPDATE items SET case_id = case_id || char(27) || '[31m', cue = char(8238)")
    assert main(["case", str(run)]) == 0
    assert main(["case", str(run), "no\x1b[31msuch"]) == 2
    said = "".join(capsys.readouterr())
    assert "\\x1b[31m" in said
    assert "\x1b" not in said
    assert "\u202e" not in said
