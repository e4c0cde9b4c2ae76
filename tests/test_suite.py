"""A run holds what its benchmark says of itself: it reads the same where the benchmark's plug-in is not installed."""

from __future__ import annotations

import csv
import os
import re
import shutil
import sqlite3
import wave
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import numpy as np
import pytest

import overtone
from overtone import registry
from overtone.cli import main
from overtone.errors import StoreError, UsageError
from overtone.report.headline_tables import headlines
from overtone.results.headline import suite_tables
from overtone.results.load import open_run
from overtone.runs.store import Store
from overtone.suite import Column, Facts, Headline, Published, Suite, find_suite
from tests.conftest import REPOSITORY
from tests.runs.old_store import as_version_1, as_version_2

EXAMPLES = REPOSITORY / "examples"
WRITTEN = re.compile(rb"written \d{4}-\d\d-\d\d \d\d:\d\d UTC")  # the minute in which a report was written
MORE = """
from msgspec.structs import replace
from overtone.suite import Means, NoteIn, Published, Right

CHOSEN = {"task": ("choose",)}
FIRST = SUITE.headlines[0]
SUITE = replace(
    SUITE,
    headlines=(
        replace(FIRST, columns=(
            *FIRST.columns,
            Column("whole", "Whole clips", "accuracy", CHOSEN, Right(replies=False, groups=True, share=True)),
            Column("clips", "Mean of clips", "accuracy", CHOSEN, Means(by="group")),
            Column("first", "Says A", "accuracy", read=NoteIn("accuracy.answer", ("A",)), where=({"task": ("ch*",)},)),
        )),
        Headline("by-clip", "By clip", (Column("accuracy", "Accuracy", "accuracy", CHOSEN),), rows="group"),
    ),
    published=(Published("Mine, as printed", "A paper", {"accuracy": "Acc", "exact": "Exact"}, (("P", (67, None)),)),),
)
"""
SURFACES = {
    "headline": ["table", "headline", "{a}", "{b}"],
    "headline csv": ["table", "headline", "{a}", "{b}", "--format", "csv"],
    "published": ["table", "published", "{a}"],
    "results": ["table", "results", "{a}", "{b}"],
    "apologies": ["check", "{a}", "--require", "apologies <= 0.5"],
    "baseline": ["check", "{a}", "--baseline", "{b}"],
    "compare": ["compare", "{a}", "{b}"],
    "compare json": ["compare", "{a}", "{b}", "--format", "json"],
    "plan": ["plan", "--detect", "0.1", "--from", "{a}"],
    "case": ["case", "{a}", "row-1"],
    "rows": ["export", "{a}", "-o", "{out}/rows.csv"],
    "lines": ["export", "{a}", "-o", "{out}/lines.jsonl"],
    "scores": ["export", "{a}", "--format", "scores", "-o", "{out}/scores.json"],
    "report": ["report", "{a}", "{b}", "-o", "{out}/report.html"],
}
Shown = dict[str, tuple[int, str, str, dict[str, bytes]]]


def write_clips(folder: Path) -> Path:
    """Write eight clips with two questions each, and what is said in them."""
    folder.mkdir()
    rng = np.random.default_rng(5)
    rows = []
    for n in range(8):
        with wave.open(str(folder / f"{n}.wav"), "wb") as sound:
            sound.setparams((1, 2, 16000, 0, "NONE", ""))
            sound.writeframes((rng.standard_normal(8000) * 3000).astype("<i2").tobytes())
        for k in range(2):
            answer = ("Rain", "Snow", "A long hail storm")[(n + k) % 3]
            rows.append((f"row-{n}-{k}" if k else f"row-{n}", f"{n}.wav", "it is wet", "What is heard?", answer))
    with (folder / "clips.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("id", "file", "words", "question", "options", "answer", "reply"))
        for name, sound_file, words, question, answer in rows:
            reply = "I am so sorry to hear that."
            writer.writerow((name, sound_file, words, question, "Rain|Snow|A long hail storm", answer, reply))
    return folder


def shown(folder: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> Shown:
    """Return what every command says of the runs, and writes."""
    found: Shown = {}
    for surface, words in SURFACES.items():
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        capsys.readouterr()
        code = main([word.format(a=folder / "first", b=folder / "longest", out=out) for word in words])
        said = capsys.readouterr()
        files = {path.name: WRITTEN.sub(b"", path.read_bytes()) for path in out.iterdir()}
        found[surface] = code, said.out, said.err, files
    return found


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two runs of a plug-in benchmark, scored with its own metric and with a plug-in metric, which are all here."""
    monkeypatch.setenv("OVERTONE_PLUGINS", "")
    monkeypatch.setattr(registry, "_plugins", {room: dict(found) for room, found in registry._plugins.items()})
    (tmp_path / "my_benchmark.py").write_text((EXAMPLES / "my_benchmark.py").read_text() + MORE)
    shutil.copy(EXAMPLES / "my_metric.py", tmp_path)
    clips = write_clips(tmp_path / "clips")
    for name in ("first", "longest"):
        words = ["run", str(tmp_path / "my_benchmark.py"), "--data", str(clips), "--out", str(tmp_path / name), "-q"]
        words += ["--model", f"{EXAMPLES / 'my_model.py'}:{name}", "--plugin", str(tmp_path / "my_metric.py")]
        assert main(words) == 0
    return tmp_path


def uninstall(folder: Path) -> None:
    """Take every plug-in away: its file, and what this process knows of it."""
    for room in registry._plugins.values():
        room.clear()
    for name in ("my_benchmark.py", "my_metric.py"):
        (folder / name).unlink()
    os.environ.pop("OVERTONE_PLUGINS", None)
    assert "my-benchmark" not in registry.listing("benchmarks") and "my-metric" not in registry.listing("metrics")


def test_a_run_reads_the_same_to_the_last_byte_without_its_plug_ins(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = shown(runs, tmp_path / "out", capsys)
    uninstall(runs)
    after = shown(runs, tmp_path / "out", capsys)
    for surface in SURFACES:
        assert after[surface] == before[surface], surface
    assert {surface: code for surface, (code, *_) in after.items() if code not in (0, 1)} == {}
    headline = after["headline csv"][1]
    assert all(label in headline for label in ("Exact", "Whole clips", "Mean of clips", "Says A", "by-clip"))
    assert "Mine, as printed" in after["published"][1] and "67" in after["published"][1]
    page = after["report"][3]["report.html"].decode()
    assert "Whole clips" in page and "Mine, as printed" in page
    assert "apologies" in after["apologies"][1]


def test_reading_a_run_does_not_ask_for_its_benchmark_or_its_metrics(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = shown(runs, tmp_path / "out", capsys)
    find, listing = registry.find, registry.listing
    built_in = {("benchmarks", "echomind")} | {("metrics", name) for name in registry.builtins("metrics")}

    def find_others(room: str, name: str) -> ModuleType:
        """Find what is not about a run: the paper's table that a finding compares with, and the built-in metrics."""
        assert room not in ("benchmarks", "metrics") or (room, name) in built_in, f"asked for {name} in {room}"
        return find(room, name)

    def list_others(room: str) -> dict[str, str]:
        assert room not in ("benchmarks", "metrics"), f"listed {room}"
        return listing(room)

    monkeypatch.setattr(registry, "find", find_others)
    monkeypatch.setattr(registry, "listing", list_others)
    assert shown(runs, tmp_path / "out", capsys) == before


def test_the_interface_reads_the_headline_of_a_run_without_its_plug_in(runs: Path) -> None:
    uninstall(runs)
    with overtone.open_run(runs / "first") as run:
        assert "Mean of" in str(run.table("headline"))


@pytest.mark.parametrize("as_older", [as_version_1, as_version_2])
def test_an_older_run_uses_the_installed_benchmark_until_a_writer_stores_its_suite(
    runs: Path, as_older: Callable[[Path], None]
) -> None:
    before = msgspec.to_builtins(suite_tables(open_run(runs / "first")))
    as_older(runs / "first")
    kept = (runs / "first" / "run.db").read_bytes()
    assert msgspec.to_builtins(suite_tables(open_run(runs / "first"))) == before
    assert (runs / "first" / "run.db").read_bytes() == kept, "reading never writes"
    assert main(["migrate", str(runs / "first")]) == 0
    uninstall(runs)
    reading = open_run(runs / "first")
    assert msgspec.to_builtins(suite_tables(reading)) == before
    assert reading.declared["exact"].label == "Exact answers"
    shutil.copytree(runs / "longest", runs / "other")
    as_older(runs / "other")
    assert main(["migrate", str(runs / "other")]) == 0
    assert suite_tables(open_run(runs / "other")) == [], "what nobody stored is not there"


def test_a_writer_without_the_plug_in_keeps_the_stored_suite(runs: Path) -> None:
    before = suite_tables(open_run(runs / "first"))
    uninstall(runs)
    assert main(["score", str(runs / "first"), "-q"]) == 0
    assert suite_tables(open_run(runs / "first")) == before


def test_runs_whose_benchmark_changed_its_table_between_them_stand_in_two_tables(runs: Path) -> None:
    with Store.create(runs / "longest") as store:
        suite = store.suite()
        assert suite is not None
        fewer = msgspec.structs.replace(suite.headlines[0], columns=suite.headlines[0].columns[:2])
        body = msgspec.json.encode(msgspec.structs.replace(suite, headlines=(fewer,)))
        store.db.execute("UPDATE suite SET body = ?", (body,))
    tables = headlines([open_run(runs / "first"), open_run(runs / "longest")])
    assert [table.key for table in tables] == [
        "suite-my-benchmark-mine",
        "suite-my-benchmark-mine-2",
        "suite-my-benchmark-by-clip",
    ]
    assert [len(table.heads) for table in tables] == [6, 2, 1]


@pytest.mark.parametrize("name", registry.builtins("benchmarks"))
def test_every_built_in_suite_survives_its_encoding(name: str) -> None:
    suite = registry.find("benchmarks", name).SUITE
    assert msgspec.json.decode(msgspec.json.encode(suite), type=Suite) == suite == find_suite(name)


FACTS = Facts("Toy", "", "", "", "", "one", "", "", "", "")


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Column("a", "A", "x", only={"colour": ("red",)}), "an item has no field 'colour'"),
        (lambda: Column("a", "A", "x", where=({"colour": ("red",)},)), "an item has no field 'colour'"),
        (lambda: Headline("a", "A", (), rows="colour"), "an item has no field 'colour'"),
        (lambda: Published("A", "B", {"x": "X"}, (("P", (1.0, 2.0)),)), "P has 2 values for 1 columns"),
    ],
)
def test_a_suite_that_names_what_is_not_there_is_an_error(make: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        make()


@pytest.mark.parametrize(
    "suite",
    [
        "Mine",
        Suite(FACTS, headlines=(Headline("a", "A", (Column("b", "B", "x", reduce=len),)),)),  # type: ignore[arg-type]
        Suite(FACTS, headlines=(Headline("a", "A", (Column("b", "B", "x", digits=99),)),)),
    ],
)
def test_a_suite_that_cannot_be_stored_is_an_error(suite: object, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("toy")
    module.SUITE = suite  # type: ignore[attr-defined]
    monkeypatch.setitem(registry._plugins["benchmarks"], "toy", module)
    with pytest.raises(UsageError, match="the benchmark toy: SUITE must be a Suite of plain data"):
        find_suite("toy")


def test_a_stored_suite_that_no_overtone_wrote_is_refused(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = find_suite("my-benchmark")
    body = msgspec.json.encode(suite).replace(b'"rows":"group"', b'"rows":"__class__"')
    db = sqlite3.connect(runs / "first" / "run.db")
    with db:
        db.execute("UPDATE suite SET body = ?", (body,))
    db.close()
    with pytest.raises(StoreError, match="contains data that Overtone did not write"):
        open_run(runs / "first")
    assert main(["verify", str(runs / "first")]) == 1
    assert "an item has no field '__class__'" in capsys.readouterr().out
