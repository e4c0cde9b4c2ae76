"""A run in shards: even parts that keep scripts together, and a merged run like one that was never split."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench.data import make
from overtone import locks
from overtone.benchmarks import Selection, selected
from overtone.cli._main import main
from overtone.errors import OvertoneError, StoreError, UsageError
from overtone.results.load import open_run
from overtone.runs.cost_plan import make_plan
from overtone.runs.merge_shards import merge
from overtone.runs.run_shards import Shard, groups_of, parse_shard, whole_name
from overtone.runs.session import load_benchmark
from overtone.runs.settings import read_run_file, resolve
from overtone.runs.store import Store
from overtone.schema import Item
from overtone.scoring import score_run
from tests.benchmarks.built import write_built
from tests.runs.helpers import run, settings
from tests.servers import OpenAIServer

BUILT: dict[str, Any] = {"benchmark": "open", "prompt": "zero,enhance", "repeats": 2}
EXPORTS = {"jsonl": ".jsonl", "csv": ".csv", "scores": ".json", "parquet": ".parquet", "inspect": ".eval", "hf": ""}


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A set with questions, conversations and dialogues of two turns, in which the clips of one script are broken."""
    root = write_built(tmp_path / "set")
    broken = [path for path in root.rglob("s2*.wav") if "audio_response" not in path.parts]
    for path in broken:
        path.write_bytes(b"not a sound")
    assert broken
    return root


def shards(data: Path, server: OpenAIServer, out: Path, of: int, **flags: Any) -> list[Path]:
    """Run all shards, the last first, as a cluster may."""
    for number in range(of, 0, -1):
        run(data, server.base_url, out, shard=f"{number}/{of}", **flags)
    return [out.with_name(f"{out.name}-shard-{number}-of-{of}") for number in range(1, of + 1)]


def timeless(folder: Path) -> Path:
    """Set the times in a run to zero."""
    with sqlite3.connect(folder / "run.db") as db:
        db.execute("UPDATE replies SET latency = 0, at = 0")
        db.execute("UPDATE failures SET at = 0")
        db.execute("UPDATE events SET at = 0")
        db.execute("UPDATE meta SET value = '2026-01-01T00:00:00Z' WHERE key IN ('created', 'command')")
    return folder


def values(store: Store) -> dict[tuple[Any, ...], float | None]:
    """Return every score of a run by its ask, its turn and its signature."""
    last = {(ask, -1, s.metric, s.signature, s.reason): s.value for ask, s in store.scores(every=True)}
    return last | {(a, t, s.metric, s.signature, s.reason): s.value for a, t, s in store.turn_scores(every=True)}


def exported(folder: Path, out: Path) -> dict[str, bytes]:
    """Return the bytes of every export of a run, with the run's path left out."""
    files = {}
    out.mkdir()
    for form, ending in EXPORTS.items():
        name = out / f"export{ending}"
        more = ["--condition", "enhance/audio"] if form == "inspect" else []  # such a log has one condition
        assert main(["export", str(folder), "--format", form, "-o", str(name), *more]) == 0
        for path in sorted(p for p in name.rglob("*") if p.is_file()) if name.is_dir() else [name]:
            files[f"{form} {path.name}"] = path.read_bytes().replace(str(folder).encode(), b"RUN")
    return files


def test_the_exports_of_merged_shards_are_those_of_a_run_that_was_not_split(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    whole, split = tmp_path / "whole" / "run", tmp_path / "split" / "run"
    with OpenAIServer() as server:
        run(built, server.base_url, whole, **BUILT)
        asked = server.count
        parts = shards(built, server, split, 3, **BUILT)
        assert server.count == 2 * asked, "the shards together ask what the run asks"
    for folder in (whole, *parts):
        score_run(folder)
    assert main(["merge", *map(str, parts)]) == 0
    printed = capsys.readouterr().out
    with Store.read(whole) as one, Store.read(split) as other:
        assert one.counts() == other.counts() and one.counts()["failed"] > 0
        assert any(reply.key.turn for reply in other.replies()), "dialogues have two replies"
        assert [item.id for item in one.items()] == [item.id for item in other.items()]
        assert values(one) == pytest.approx(values(other), abs=1e-6)
        counts = other.counts()
        assert "3 shards" in printed and f"{counts['answered']} answered, {counts['failed']} failed" in printed
    for folder in (whole, split):  # in one order, because embeddings differ in the eighth decimal between batches
        score_run(folder)
    expected = exported(timeless(whole), whole.parent / "exports")
    assert exported(timeless(split), split.parent / "exports") == expected
    assert len(expected) > len(EXPORTS)
    tables = []
    for folder in (whole, split):
        capsys.readouterr()
        assert main(["table", "results", str(folder), "--format", "csv"]) == 0
        tables.append(capsys.readouterr().out)
    assert tables[0] == tables[1]
    assert main(["verify", str(split)]) == 0


def test_the_command_without_shard_asks_nothing_after_a_merge(small: Path, tmp_path: Path) -> None:
    with OpenAIServer() as server:
        parts = shards(small, server, tmp_path / "run", 2)
        asked = server.count
        merge(parts, tmp_path / "run")
        outcome = run(small, server.base_url, tmp_path / "run")
        assert (outcome.requests, server.count) == (0, asked)
        assert run(small, server.base_url, tmp_path / "run", prompt="enhance,zero").answered == 9, "it can be extended"


def test_judges_are_not_asked_again_after_a_merge(small: Path, tmp_path: Path) -> None:
    with OpenAIServer() as server:
        model = f"openai:any?base_url={server.base_url}"
        command = ["run", "echomind", "--data", str(small), "--model", model, "--judge", f"{model}&label=j",
                   "--levels", "3", "--out", str(tmp_path / "run"), "-q"]  # fmt: skip
        for number in (1, 2):
            main([*command, "--shard", f"{number}/2"])
        judged = len(server.asked)
        assert main(["merge", *map(str, sorted(tmp_path.glob("run-shard-*")))]) == 0
        assert main([*command]) in (0, 3)
        assert len(server.asked) == judged
    with Store.read(tmp_path / "run") as store:
        assert "j" in store.judge_labels()
        rubrics = msgspec.json.decode(store.meta()["rubrics"])
    with Store.read(tmp_path / "run-shard-1-of-2") as store:
        assert rubrics == msgspec.json.decode(store.meta()["rubrics"]) != {}


def test_extended_shards_merge_to_the_extended_run(small: Path, tmp_path: Path) -> None:
    whole, split = tmp_path / "whole" / "run", tmp_path / "split" / "run"
    parts: list[Path] = []
    with OpenAIServer() as server:
        for flags in ({"limit": 9}, {"limit": 9}, {"prompt": "enhance,zero"}):
            run(small, server.base_url, whole, **flags)
            parts = shards(small, server, split, 2, **flags)
        run(small, server.base_url, split, shard="2/2", prompt="enhance,zero")  # an additional attempt changes nothing
    merge(parts, split)
    with Store.read(whole) as one, Store.read(split) as other:
        asks = [[(ask.id, ask.item.id, ask.condition, state) for ask, state in s.asks()] for s in (one, other)]
    assert asks[0] == asks[1]


def test_rows_beside_the_replies_follow_their_asks_and_items(small: Path, tmp_path: Path) -> None:
    with OpenAIServer() as server:
        parts = shards(small, server, tmp_path / "run", 2)
    for part in parts:
        with sqlite3.connect(part / "run.db") as db:
            db.execute("INSERT INTO heard SELECT seq, 'clip', id FROM items")
            of_asks = "FROM asks a JOIN items i ON i.seq = a.item"
            for table in ("likelihoods", "timings"):
                db.execute(f"INSERT INTO {table} SELECT a.id, 0, CAST(i.id AS BLOB) {of_asks}")
            db.execute(f"INSERT INTO sessions SELECT a.id, 0, '', CAST(i.id AS BLOB) {of_asks}")
            db.execute("INSERT INTO studies VALUES ('s', x'7b7d')")
            row = "a.id, 's', i.id, 'r', 'd', x'31', 1, '2026-01-01', x'7b7d'"
            db.execute(f"INSERT INTO labels SELECT {row} {of_asks}")
    merge(parts, tmp_path / "run")
    with sqlite3.connect(tmp_path / "run" / "run.db") as db:
        heard = db.execute("SELECT i.id, h.origin FROM heard h JOIN items i ON i.seq = h.item").fetchall()
        assert len(heard) == db.execute("SELECT count(*) FROM items").fetchone()[0]
        assert all(item == origin for item, origin in heard)
        body = "CAST(t.body AS TEXT)"
        columns = {"likelihoods": body, "timings": body, "sessions": "CAST(t.events AS TEXT)", "labels": "unit"}
        for table, column in columns.items():
            sql = f"SELECT i.id, {column} FROM {table} t JOIN asks a ON a.id = t.ask JOIN items i ON i.seq = a.item"
            rows = db.execute(sql).fetchall()
            assert len(rows) == 18 and all(item == about for item, about in rows), table
        assert db.execute("SELECT count(*) FROM studies").fetchone()[0] == 1
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    filled = {"meta", "items", "asks", "replies", "clips", "signatures", "scores", "events", "declarations", "suite"}
    assert tables == filled | {*columns, "heard", "studies", "failures"}, "merge every table, and test that it does"


def test_a_row_of_a_missing_ask_is_damage(small: Path, tmp_path: Path) -> None:
    with OpenAIServer() as server:
        parts = shards(small, server, tmp_path / "run", 2)
    with sqlite3.connect(parts[1] / "run.db") as db:
        db.execute("INSERT INTO timings VALUES (999, 0, x'7b7d')")
    with pytest.raises(StoreError, match="a row of ask 999, which is missing"):
        merge(parts, tmp_path / "run")


# ── how items are dealt out ─────────────────────────────────────────────────────────────────────────────────────────
def items(data: Path) -> list[Item]:
    benchmark = load_benchmark(settings(data, "http://x", Path("x")))
    return list(selected(benchmark, Selection(asr="all")))


def test_shards_are_even_and_keep_scripts_together(tmp_path: Path) -> None:
    every = items(make(tmp_path / "data", scripts=23, questions=40, seconds=0.1))
    parts = [groups_of(Shard(number, 4), every) for number in range(1, 5)]
    assert sorted(group for part in parts for group in part) == sorted({item.group for item in every})
    loads = [sum(item.group in part for item in every) for part in parts]
    largest = max(Counter(item.group for item in every).values())
    assert max(loads) - min(loads) <= largest < len(every) / 4
    shuffled = random.Random(3).sample(every, len(every))
    assert [groups_of(Shard(number, 4), shuffled) for number in range(1, 5)] == parts
    cases = {item.case: item.group for item in every}
    assert all(cases[item.case] == item.group for item in every), "a case lies within a group"


def test_no_shard_of_a_limited_run_is_much_larger_than_the_others(tmp_path: Path) -> None:
    data = make(tmp_path / "data", scripts=40, questions=4, seconds=0.1)
    plans = [
        make_plan(settings(data, "http://127.0.0.1:9/v1", tmp_path / "run", shard=f"{n}/4", limit=40, levels="3")).items
        for n in range(1, 5)
    ]
    assert sum(plans) == 40
    assert max(plans) <= 40 / 4 + 3, "at most one group, which has three conversations, above the mean"


# ── what is refused ─────────────────────────────────────────────────────────────────────────────────────────────────
@pytest.fixture
def server() -> Any:
    with OpenAIServer() as running:
        yield running


def test_a_shard_continues_only_as_itself(small: Path, tmp_path: Path, server: OpenAIServer) -> None:
    one, two = shards(small, server, tmp_path / "run", 2)
    with pytest.raises(StoreError, match="shard: 1/2 → the whole run"):
        run(small, server.base_url, one)
    one.rename(tmp_path / "run-shard-1-of-3")
    with pytest.raises(StoreError, match="shard: 1/2 → 1/3"):
        run(small, server.base_url, tmp_path / "run", shard="1/3")
    run(small, server.base_url, tmp_path / "other-shard-1-of-2", limit=2)
    with pytest.raises(StoreError, match="shard: the whole run → 1/2"):
        run(small, server.base_url, tmp_path / "other", limit=2, shard="1/2")
    assert two.is_dir()


def test_a_missing_shard_is_named_and_partial_merges_can_be_resumed(
    small: Path, tmp_path: Path, server: OpenAIServer
) -> None:
    parts = shards(small, server, tmp_path / "run", 3)
    with pytest.raises(StoreError, match=r"4 of 18 requests of the run are missing: name also the folder of 2/3"):
        merge([parts[0], parts[2]], tmp_path / "run")
    assert not (tmp_path / "run").exists()
    made = merge([parts[0], parts[2]], tmp_path / "run", partial=True)
    assert (made.shards, made.answered, made.pending) == (2, 14, 0)
    assert run(small, server.base_url, tmp_path / "run").answered == 4
    with Store.read(tmp_path / "run") as store:
        assert store.counts() == {"pending": 0, "answered": 18, "failed": 0}


def test_an_unfinished_shard_is_named(small: Path, tmp_path: Path, server: OpenAIServer) -> None:
    run(small, server.base_url, tmp_path / "run", shard="1/2")
    run(small, server.base_url, tmp_path / "run", shard="2/2", budget_requests=2)
    parts = sorted(tmp_path.glob("run-shard-*"))
    with pytest.raises(StoreError, match=r"shard 2/2 .* has 9 requests that were not sent"):
        merge(parts, tmp_path / "run")
    assert merge(parts, tmp_path / "run", partial=True).pending == 9


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ({"seed": 3}, r"is a part of another run than shard 1/2 .*seed: None → 3"),
        ({"prompt": "zero"}, r"were asked for different items \(prompt: \['enhance'\] → \['zero'\]\)"),
        ({"shard": "2/3"}, r"parts of different splits"),
    ],
)
def test_shards_of_different_runs_are_refused(
    small: Path, tmp_path: Path, server: OpenAIServer, flags: dict[str, Any], why: str
) -> None:
    run(small, server.base_url, tmp_path / "run", shard="1/2")
    run(small, server.base_url, tmp_path / "run", **({"shard": "2/2"} | flags))
    with pytest.raises(OvertoneError, match=why):
        merge(sorted(tmp_path.glob("run-shard-*")), tmp_path / "run")
    assert not (tmp_path / "run").exists() and not (tmp_path / "run.merging").exists()


def test_folders_that_cannot_be_merged_are_refused(small: Path, tmp_path: Path, server: OpenAIServer) -> None:
    one, two = shards(small, server, tmp_path / "run", 2)
    run(small, server.base_url, tmp_path / "whole", limit=1)
    with pytest.raises(UsageError, match="whole is not a shard: it was made without --shard"):
        merge([one, tmp_path / "whole"], tmp_path / "run")
    with pytest.raises(UsageError, match="shard 1/2 is named 2 times"):
        merge([one, one, two], tmp_path / "run")
    with pytest.raises(StoreError, match="exists and is not an empty folder"):
        merge([one, two], tmp_path / "whole")
    with (one / "lock").open("a") as held:
        assert locks.lock(held)
        with pytest.raises(StoreError, match="is being written by another process"):
            merge([one, two], tmp_path / "run")
    sound = next((two / "audio").glob("*/*.wav"))
    data = sound.read_bytes()
    sound.write_bytes(data[:-1])
    with pytest.raises(StoreError, match=f"shard 2/2 .*{sound.name} of a reply is damaged"):
        merge([one, two], tmp_path / "run")
    sound.write_bytes(data)
    assert merge([one, two], tmp_path / "run").answered == 18, "what a failed merge left is replaced"


def test_a_killed_merge_leaves_no_run_and_is_repeated(small: Path, tmp_path: Path, server: OpenAIServer) -> None:
    parts = shards(small, server, tmp_path / "run", 2)

    def killed(shard: Path, folder: Path) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        merge(parts, tmp_path / "run", also=killed)
    assert (tmp_path / "run.merging").is_dir() and not (tmp_path / "run").exists()
    assert merge(parts, tmp_path / "run").answered == 18
    assert not (tmp_path / "run.merging").exists()


def test_a_clip_that_differs_between_shards_is_refused(small: Path, tmp_path: Path, server: OpenAIServer) -> None:
    one, two = shards(small, server, tmp_path / "run", 2)
    with sqlite3.connect(one / "run.db") as db:
        db.execute("INSERT INTO clips SELECT 'shared.wav', sha256, size, mtime_ns, seconds FROM clips LIMIT 1")
    with sqlite3.connect(two / "run.db") as db:
        db.execute("INSERT INTO clips VALUES ('shared.wav', ?, 1, 1, 1.0)", ("0" * 64,))
    with pytest.raises(StoreError, match=r"shard 2/2 .*another clip shared\.wav"):
        merge([one, two], tmp_path / "run")


# ── settings and reports ────────────────────────────────────────────────────────────────────────────────────────────
def test_a_shard_says_that_it_is_one(small: Path, tmp_path: Path, server: OpenAIServer) -> None:
    parts = shards(small, server, tmp_path / "run", 2)
    (note,) = [note for note in open_run(parts[0]).notes if "shard" in note]
    assert note.startswith("This is shard 1/2 of a run, not the whole run")
    merge(parts, tmp_path / "run")
    assert not any("shard" in note for note in open_run(tmp_path / "run").notes)


def test_config_files_repeat_the_shard_and_the_merged_run(small: Path, tmp_path: Path, server: OpenAIServer) -> None:
    parts = shards(small, server, tmp_path / "run", 2)
    merge(parts, tmp_path / "run")
    for folder, shard in ((parts[1], "2/2"), (tmp_path / "run", None)):
        (again,) = resolve({}, read_run_file(folder / "config.toml"), {})
        assert (again.folder, again.shard) == (folder, shard)


def test_a_shard_can_be_named_in_the_environment_and_in_a_run_file(small: Path, tmp_path: Path) -> None:
    given = {"benchmark": "echomind", "data": str(small), "model": ["openai:any", "openai:other"], "out": "runs"}
    folders = [one.folder for one in resolve(given, None, {"OVERTONE_SHARD": "3/4"})]
    assert [folder.name for folder in folders] == [f"echomind-openai-{name}-shard-3-of-4" for name in ("any", "other")]
    file = tmp_path / "split.toml"
    file.write_text(
        '[run]\nshard = "1/2"\ndata = "data"\n[[benchmark]]\nname = "echomind"\n[[model]]\nspec = "openai:any"\n'
    )
    (one,) = resolve({}, read_run_file(file), {})
    assert one.folder == Path("runs/echomind-openai-any-shard-1-of-2")
    (other,) = resolve({"shard": "2/2"}, read_run_file(file), {})
    assert other.shard == "2/2"


@pytest.mark.parametrize("text", ["0/4", "5/4", "01/4", "1", "1/0", "a/b", "-1/4", "1/4/2", "1/99999", "١/٤"])
def test_invalid_shards_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="does not name a shard; write I/N"):
        parse_shard(text)


def test_the_name_of_the_run_follows_from_the_shard() -> None:
    assert whole_name("monday-shard-1-of-2") == "monday"
    assert whole_name("monday") is None
    assert Counter(str(Shard(2, 8)))["/"] == 1


def test_a_shard_without_items_is_refused_before_its_folder_is_made(small: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="this shard has no item, because the items that are asked have only 3 groups"):
        run(small, "http://127.0.0.1:9/v1", tmp_path / "run", shard="4/4")
    assert not list(tmp_path.glob("run*"))
