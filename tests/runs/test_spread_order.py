"""A limit and a budget take a sample that is spread over the benchmark, and a larger one contains a smaller one."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from pathlib import Path

import pytest

from bench.data import make
from overtone.cli import main
from overtone.runs.session import load_benchmark, planned
from overtone.runs.spread_order import Place, spread
from overtone.runs.store import Store
from tests.runs.helpers import run, settings
from tests.servers import OpenAIServer

URL = "http://127.0.0.1:9/v1"


def places(seed: int = 3, count: int = 900) -> list[Place]:
    """A benchmark in the order of files: one level after the other, of very different sizes."""
    rng = random.Random(seed)
    cues = [f"cue{i}" for i in range(12)]
    levels = [(1, "transcribe", "asr"), *((2, "choose", f"q{i}") for i in range(5)), (3, "converse", "conversation")]
    weights = [1, 1, 1, 1, 1, 1, 6]
    drawn = [rng.choices(levels, weights)[0] for _ in range(count)]
    found = []
    for level, task, category in sorted(drawn):
        style = rng.choice(("target", "alternative", "neutral")) if level == 3 else "target"
        cue = "" if style == "neutral" else rng.choice(cues)
        found.append(Place(level, task, category, style, cue, f"script{rng.randrange(count // 4)}"))
    return found


def test_every_item_comes_once() -> None:
    assert sorted(spread(places())) == list(range(900))
    assert list(spread([])) == []


@pytest.mark.parametrize("limit", [7, 20, 40, 120])
def test_every_beginning_is_spread_over_levels_tasks_styles_and_cues(limit: int) -> None:
    found = places()
    sample = [found[i] for i in itertools.islice(spread(found), limit)]
    levels = Counter(p.level for p in sample)
    assert max(levels.values()) - min(levels.values()) <= 1
    assert len(levels) == 3
    categories = Counter(p.category for p in sample if p.level == 2)
    assert max(categories.values()) - min(categories[f"q{i}"] for i in range(5)) <= 1
    styles = Counter(p.style for p in sample if p.level == 3)
    assert max(styles.values()) - min(styles.values()) <= 1
    cues = Counter(p.cue for p in sample if p.cue)
    assert len(cues) == min(12, sum(cues.values()))
    assert max(cues.values()) - min(cues.values()) <= 2


def test_the_order_does_not_follow_the_order_of_the_files() -> None:
    found = places()
    mixed = random.Random(1).sample(range(900), 900)
    first = {found[i] for i in itertools.islice(spread(found), 60)}
    second = {found[mixed[i]] for i in itertools.islice(spread([found[i] for i in mixed]), 60)}
    assert len(first & second) > 40, "which scripts are drawn depends on their names, not on where they stand"


def test_a_larger_limit_contains_a_smaller_one_and_extends_the_same_run(tmp_path: Path) -> None:
    data = make(tmp_path / "data", scripts=30, questions=40, seconds=0.1)
    with OpenAIServer() as server:
        assert run(data, server.base_url, tmp_path / "run", limit=20).answered == 20
        with Store.read(tmp_path / "run") as store:
            small = {item.id for item in store.items()}
            assert Counter(item.level for item in store.items()).keys() == {1, 3}
        assert run(data, server.base_url, tmp_path / "run", limit=20).requests == 0
        assert run(data, server.base_url, tmp_path / "run", limit=40).answered == 20
        with Store.read(tmp_path / "run") as store:
            large = {item.id for item in store.items()}
        assert small < large
        assert len(large) == 40
        whole = run(data, server.base_url, tmp_path / "run")
        assert whole.answered == 30 + 40 + 90 - 40
        assert server.count == 30 + 40 + 90


def test_a_budget_is_spent_on_a_spread_sample(tmp_path: Path) -> None:
    data = make(tmp_path / "data", scripts=30, questions=40, seconds=0.1)
    with OpenAIServer() as server:
        assert run(data, server.base_url, tmp_path / "run", budget_requests=20).stopped == "budget"
        run(data, server.base_url, tmp_path / "limit", limit=20)
        with Store.read(tmp_path / "run") as a, Store.read(tmp_path / "limit") as b:
            asked = {reply.key.item for reply in a.replies()}
            assert asked == {reply.key.item for reply in b.replies()}, "the same items as a limit of that size"
        assert run(data, server.base_url, tmp_path / "run", budget_requests=20).stopped == "budget"
        run(data, server.base_url, tmp_path / "limit", limit=40)
        with Store.read(tmp_path / "run") as a, Store.read(tmp_path / "limit") as b:
            assert {reply.key.item for reply in a.replies()} == {reply.key.item for reply in b.replies()}


def test_items_without_a_condition_do_not_count(tmp_path: Path) -> None:
    data = make(tmp_path / "data", scripts=5, questions=6, seconds=0.1)
    told = settings(data, URL, tmp_path / "run", input="transcript", limit=10)
    assert len(list(planned(told, load_benchmark(told)))) == 10, "nothing is transcribed where the words are shown"


def old_run(data: Path, out: Path, server: OpenAIServer, limit: int) -> None:
    """A run as it was made when a limit took the first items: no order is noted in it."""
    run(data, server.base_url, out, levels="1", asr="all", limit=1)
    with Store.create(out) as store:
        store.db.execute("DELETE FROM replies")
        store.db.execute("DELETE FROM asks")
        store.db.execute("DELETE FROM items")
        store.db.execute("DELETE FROM meta WHERE key = 'order'")
        told = settings(data, server.base_url, out)
        store.plan(list(itertools.islice(planned(told, load_benchmark(told)), limit)), 1)


def test_a_run_made_with_the_old_order_resumes_in_that_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = make(tmp_path / "data", scripts=30, questions=40, seconds=0.1)
    with OpenAIServer() as server:
        old_run(data, tmp_path / "run", server, 20)
        with Store.read(tmp_path / "run") as store:
            before = [item.id for item in store.items()]
        server.count = 0
        assert run(data, server.base_url, tmp_path / "run", limit=20).answered == 20
        words = ["echomind", "--data", str(data), "--model", f"openai:any?base_url={server.base_url}"]
        assert main(["plan", *words, "--out", str(tmp_path / "run"), "--limit", "20"]) == 0
        assert "20 before; not asked again" in capsys.readouterr().out
        assert run(data, server.base_url, tmp_path / "run", limit=25).answered == 5
        assert server.count == 25
        with Store.read(tmp_path / "run") as store:
            assert [item.id for item in store.items()][:20] == before
            assert all("/asr/" in item.id for item in store.items()), "the first 25 are transcripts"
