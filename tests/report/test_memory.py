"""What tables and reports take of memory grows slowly with a run: bounds per item, not in all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench import pipeline
from overtone.runs.store import Store
from overtone.schema import Clip, Item, Option, Reply, Score, Turn, Usage

FEW, MANY = 5_000, 20_000
TABLES = """
import sys
from pathlib import Path
from bench.memory import peak
from overtone.report.terminal import print_run
print_run(Path(sys.argv[1]))
print("RESULT", peak())
"""


def question(number: int) -> Item:
    """One of ten questions on a clip. Its words are its own, as those of a reasoning question are."""
    script, style = f"synthesis/id_{number // 10}", "target"
    options = tuple(Option(letter, f"Option {letter} of question {number}, in a sentence.") for letter in "ABCD")
    return Item(
        id=f"echomind/{script}/understanding_{number}",
        benchmark="echomind",
        level=1,
        task="choose",
        category="emotion",
        case=f"{script}/{style}",
        group=script,
        style=style,
        turns=(Turn(Clip(f"audio/{number // 10}.wav"), words=f"This is line number {number // 10}."),),
        cue="sad",
        question=f"Which emotion does the voice of speaker {number} most likely carry?",
        options=options,
        gold="C",
    )


def make_run(folder: Path, items: int) -> Path:
    with Store.create(folder) as store:
        store.set_meta({"benchmark": "echomind", "model": "null-model"})
        for start in range(0, items, 500):
            store.plan([(question(n), ["task/audio"]) for n in range(start, start + 500)], 1)
        store.commit()
        last = 0
        while asks := store.open_asks(last, 500):
            scored = []
            for ask in asks:
                last = ask.id
                letter = "ABCD"[ask.id % 4]
                reply = Reply(f"The answer to this one is: [{letter}]", None, "stop", Usage(100, 5))
                store.add_reply(ask, 0, reply, sent=b"[]", latency=0.25, attempts=1)
                for name in ("accuracy", "accuracy_strict"):
                    detail = {"status": "parsed", "answer": letter}
                    scored.append((ask.id, Score(name, f"{name}|v1", float(letter == "C"), "", detail)))  # type: ignore[arg-type]
            store.add_scores(scored)
            store.commit()
    return folder


def peak_of(code: str, *arguments: Path) -> float:
    """The peak memory in MB that a program of its own prints."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=True
    )
    return float(done.stdout.split("RESULT")[1].split()[0 if code is TABLES else 1])


def test_tables_and_report_take_little_more_memory_for_each_item(tmp_path: Path) -> None:
    tables, reports = [], []
    for items in (FEW, MANY):
        run = make_run(tmp_path / f"run{items}", items)
        tables.append(peak_of(TABLES, run))
        reports.append(peak_of(pipeline.REPORT, run, tmp_path / f"report{items}.html"))
    grown = [(after - before) * 1000 / (MANY - FEW) for before, after in (tables, reports)]  # kB an item
    assert grown[0] < 1.0 and grown[1] < 1.5, f"kilobytes an item: tables {grown[0]:.2f}, report {grown[1]:.2f}"


@pytest.mark.full
def test_a_whole_run_takes_little_more_memory_for_each_item(tmp_path: Path) -> None:
    few, many = (pipeline.measure(tmp_path, items)[4] for items in (FEW, MANY))
    grown = (many - few) * 1000 / (MANY - FEW)
    assert grown < 1.5, f"kilobytes an item: {grown:.2f}"
