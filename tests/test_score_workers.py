"""Slow metrics in several processes: the same scores as in one, whatever happens to a process."""

from __future__ import annotations

import io
import os
import pickle
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from overtone import score_workers
from overtone.metrics import Answered, prosody
from overtone.metrics.semsim import SemanticSimilarity
from overtone.schema import Clip, Item, Key, Score, Turn
from overtone.score_workers import ScoreWorkers, keep_workers, serve, workers
from overtone.scoring import score_run
from tests.report.fake_run import make_run


class Unsendable(prosody.Prosody):
    """A slow metric whose class no other process can import."""

    def __reduce__(self) -> str:
        raise TypeError("not to be copied")


class Fatal(prosody.Prosody):
    """A slow metric that ends the process which unpacks it."""

    def __reduce__(self) -> tuple[object, ...]:
        return os._exit, (3,)


class Raising(prosody.Prosody):
    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        raise ValueError("never")


def replies() -> list[Answered]:
    item = Item(
        id="open/x",
        benchmark="open",
        level=3,
        task="converse",
        category="conversation",
        case="x",
        group="x",
        style="target",
        turns=(Turn(Clip("c.wav", seconds=1.0), "Hi.", ""),),
    )
    return [Answered(Key("open/x", "basic", 0, 0), item, "Hello.")]


class Counting(SemanticSimilarity):
    """A metric that records which asks it scores together."""

    def __init__(self, name: str, tasks: tuple[str, ...], calls: list[tuple[str, set[str]]]) -> None:
        self.name, self.tasks, self.calls, self.slow = name, tasks, calls, False

    def applies(self, item: Item) -> bool:
        return item.task in self.tasks

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        self.calls.append((self.name, {a.item.id for a in answered}))
        return [[] for _ in answered]


def test_metrics_that_share_vectors_score_the_same_asks_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, set[str]]] = []
    both = {"a": Counting("a", ("converse",), calls), "b": Counting("b", ("converse", "transcribe"), calls)}
    monkeypatch.setattr("overtone.scoring.load_metrics", lambda *given: both)
    make_run(tmp_path / "run", scripts=24)
    score_run(tmp_path / "run", processes=1)
    names = [name for name, _ in calls]
    assert names.count("a") > 1 and names[:2] == ["a", "b"]  # not all pages of one metric first
    pages = {name: [ids for owner, ids in calls if owner == name] for name in both}
    assert sum(map(len, pages["a"])) < sum(map(len, pages["b"]))
    assert all(any(ids <= other for other in pages["b"]) for ids in pages["a"])


def stored(folder: Path) -> list[tuple[object, ...]]:
    db = sqlite3.connect(folder / "run.db")
    rows = db.execute("SELECT kind, subject, metric, signature, value, reason, detail FROM scores")
    found = rows.fetchall()
    db.close()
    return found


def test_scores_do_not_depend_on_the_number_of_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    submit = ScoreWorkers.submit

    def counted(self: ScoreWorkers, *given: object) -> object:
        future = submit(self, *given)  # type: ignore[arg-type]
        asked.append(future)
        return future

    monkeypatch.setattr(ScoreWorkers, "submit", counted)
    for processes in (1, 2, 3):
        make_run(tmp_path / f"run{processes}", scripts=12)
        score_run(tmp_path / f"run{processes}", processes=processes)
    assert stored(tmp_path / "run1") == stored(tmp_path / "run2") == stored(tmp_path / "run3")
    done = [future.result() for future in asked if future is not None]
    assert done and all(rows is not None for rows in done)


def test_a_page_that_a_process_cannot_score_comes_back_unscored() -> None:
    pool = ScoreWorkers(1)
    try:
        assert pool.submit([(Unsendable(), replies())]) is None
        unknown = pool.submit([(Raising(), replies())])  # the processes cannot import this module
        assert unknown is not None and unknown.result(60) is None
        good = pool.submit([(prosody.Prosody(), replies())])
        assert good is not None and good.result(60) == [prosody.Prosody().score(replies())]
        dead = pool.submit([(Fatal(), replies())])
        assert dead is not None and dead.result(60) is None
        after = pool.submit([(prosody.Prosody(), replies())])
        assert after is not None and after.result(60) is None
    finally:
        pool.close()


def test_a_metric_that_raises_leaves_the_page_to_the_caller() -> None:
    jobs = [pickle.dumps([(pickle.dumps(metric), replies())]) for metric in (Raising(), prosody.Prosody())]
    answers = io.BytesIO()
    serve(io.BytesIO(b"".join(len(job).to_bytes(8, "little") + job for job in jobs)), answers)
    answers.seek(0)
    assert pickle.load(answers) is None
    assert pickle.load(answers) == [prosody.Prosody().score(replies())]


def test_closing_ends_the_processes_and_answers_what_waits() -> None:
    pool = ScoreWorkers(2)
    waiting = [pool.submit([(prosody.Prosody(), replies())]) for _ in range(5)]
    pool.close()
    assert all(future is not None and future.done() for future in waiting)
    assert all(child.poll() is not None for child in pool._children)


def test_few_replies_start_no_process_and_kept_processes_are_shared() -> None:
    with workers(2, score_workers.LEAST - 1) as pool:
        assert pool is None
    with workers(1, 10_000) as pool:
        assert pool is None
    with keep_workers():
        with workers(2, 10_000) as first:
            pass
        with workers(2, 10_000) as second:
            assert first is second is not None
    with workers(2, 10_000) as third:
        assert third is not first
