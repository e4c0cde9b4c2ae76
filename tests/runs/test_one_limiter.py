"""One limiter for each endpoint: shared by a run, its judges and the runs after it; never between two endpoints."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

import pytest
from aiohttp import web

from bench.data import make
from overtone.cli import main
from overtone.models.openai import load
from overtone.runs.asker import Asker
from overtone.runs.limiter import Limiter, Limiters
from overtone.runs.session import Hooks, execute
from overtone.runs.store import Store
from overtone.spec import parse_spec
from tests.judges.server import JudgeServer, by_request, written
from tests.runs.helpers import QUICK, settings
from tests.servers import Asked, OpenAIServer, echo


def either(asked: Asked) -> str:
    """What one server says that is both: the model under test, and its judge."""
    return written(verdict) if (verdict := by_request(asked)) else echo(asked)


@pytest.fixture
def talks(tmp_path: Path) -> Path:
    return make(tmp_path / "data", scripts=8, questions=6, seconds=0.2)


def run_of(data: Path, out: Path, server: OpenAIServer, judge: str, connections: int) -> int:
    words = ["run", "echomind", "--levels", "3", "-q", "--data", str(data), "--out", str(out)]
    words += ["--model", f"openai:any?base_url={server.base_url}", "--max-connections", str(connections)]
    return main([*words, "--judge", f"openai:judge?base_url={judge}&rubrics=echomind"])


def test_a_judge_at_the_models_endpoint_keeps_to_the_runs_limit(talks: Path, tmp_path: Path) -> None:
    with OpenAIServer(latency=0.03, answer=either) as server:
        assert run_of(talks, tmp_path / "run", server, server.base_url, 4) == 0
        assert server.count == 24 + 24, "every reply was given and judged"
        assert server.most_at_once == 4


def test_what_a_judge_meets_slows_the_run_and_is_told_in_its_log(
    talks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OpenAIServer(latency=0.03, answer=either) as server:
        plain = server._misbehave
        met = 0

        async def busy(request: web.Request, asked: Asked, behaviour: str, text: str) -> web.StreamResponse:
            nonlocal met
            if not by_request(asked) or met:  # the first question to the judge meets a busy server
                return web.json_response(server.reply(text, None))
            met += 1
            response: web.StreamResponse = await plain(request, asked, "429:0.2", text)
            return response

        server.always = "busy"
        monkeypatch.setattr(server, "_misbehave", busy)
        assert run_of(talks, tmp_path / "run", server, server.base_url, 8) == 0
        assert met == 1 and server.count == 24 + 24 + 1
    assert "judge judge, overloaded: 4 requests at once" in (tmp_path / "run" / "run.log").read_text()


def test_a_judge_elsewhere_has_a_limit_of_its_own(talks: Path, tmp_path: Path) -> None:
    with OpenAIServer(latency=0.03) as model, JudgeServer(latency=0.1) as judge:
        assert run_of(talks, tmp_path / "run", model, judge.base_url, 4) == 0
        assert model.most_at_once == 4
        assert judge.most_at_once > 4


def test_a_run_begins_with_the_limit_that_the_one_before_has_learned(small: Path, tmp_path: Path) -> None:
    limiters = Limiters()
    hooks = Hooks(policy=QUICK, limiters=limiters)
    with OpenAIServer(latency=0.02) as server, OpenAIServer(latency=0.1) as other:
        server.behave("500", "429:0.01")
        asyncio.run(execute(settings(small, server.base_url, tmp_path / "a", levels="1", max_connections=8), hooks))
        (line,) = limiters.lines.values()
        learned = line.limit
        assert 4 <= learned < 8
        server.most_at_once = 0
        asyncio.run(execute(settings(small, server.base_url, tmp_path / "b", levels="1", max_connections=8), hooks))
        assert server.most_at_once < 8
        assert line.limit > learned, "and goes on to recover"
        asyncio.run(execute(settings(small, other.base_url, tmp_path / "c", levels="1,3", max_connections=8), hooks))
        assert other.most_at_once == 8, "another endpoint has taught nothing"
    assert len(limiters.lines) == 2 and all(line.in_flight == 0 for line in limiters.lines.values())
    with Store.read(tmp_path / "b") as store:
        told = [detail for _, kind, detail in store.events() if kind == "limit"]
        assert told[0] == f"learned before: {int(learned)} requests at once"
    with Store.read(tmp_path / "c") as store:
        assert not [detail for _, kind, detail in store.events() if kind == "limit"]


def test_a_pause_that_an_endpoint_asks_for_holds_for_the_next_run(small: Path, tmp_path: Path) -> None:
    limiters = Limiters()

    async def overload(server: OpenAIServer) -> None:
        model = load(parse_spec(f"openai:any?base_url={server.base_url}"))
        Asker(model, limiters=limiters).limiter.overloaded(0.4)

    with OpenAIServer() as server:
        asyncio.run(overload(server))  # and its event loop is gone, with the timers it had
        began = time.monotonic()
        told = settings(small, server.base_url, tmp_path / "run", limit=3)
        outcome = asyncio.run(asyncio.wait_for(execute(told, Hooks(limiters=limiters)), 10))
        assert outcome.answered == 3
        assert 0.35 < time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("openai:a?base_url=http://host:8000/v1", "openai:b?base_url=http://HOST:8000/v1/&temperature=0", True),
        ("openai:a", "openai:b?base_url=https://api.openai.com:443/v1", True),
        ("openai:a?base_url=http://host:8000/v1", "openai:a?base_url=http://host:8001/v1", False),
        ("openai:a?base_url=http://host:8000/v1", "openai:a?base_url=http://host:8000/other/v1", False),
        ("openai:a?base_url=http://host:8000/v1", "openai:a?base_url=https://host:8000/v1", False),
    ],
)
def test_an_endpoint_is_how_it_is_spoken_to_and_where(first: str, second: str, same: bool) -> None:
    assert (load(parse_spec(first)).endpoint == load(parse_spec(second)).endpoint) is same


async def test_models_without_an_endpoint_share_nothing() -> None:
    limiters = Limiters()
    first, second = limiters.limiter("", 4), limiters.limiter("", 4)
    first.overloaded(None)
    assert (int(first.limit), int(second.limit), limiters.lines) == (2, 4, {})


async def test_who_stops_lets_only_its_own_through() -> None:
    limiters = Limiters()
    run, judge = limiters.limiter("x", 1), limiters.limiter("x", 4, leads=False)
    await run.acquire()
    waiting = [asyncio.create_task(run.acquire()), asyncio.create_task(judge.acquire())]
    await asyncio.sleep(0)
    run.let_go()
    await asyncio.sleep(0.01)
    assert [task.done() for task in waiting] == [True, False]
    run.release()
    assert not waiting[1].done(), "the other one is still served"
    run.release()
    await asyncio.wait_for(waiting[1], 1)


async def test_shares_are_never_more_than_the_line_nor_than_their_own_ceilings() -> None:
    limiters = Limiters()
    judge = limiters.limiter("x", 3, leads=False)
    run = limiters.limiter("x", 8)
    seen: dict[str, int] = {}

    async def one(limiter: Limiter, name: str) -> None:
        await limiter.acquire()
        for key, count in ((name, limiter.in_flight), ("all", run.in_flight + judge.in_flight)):
            seen[key] = max(seen.get(key, 0), count)
        await asyncio.sleep(0.001)
        limiter.release()

    work = [one(judge, "judge") for _ in range(15)] + [one(run, "run") for _ in range(100)]
    await asyncio.wait_for(asyncio.gather(*work), 5)
    assert seen == {"judge": 3, "run": 8, "all": 8}
    assert (run.line.in_flight, len(run.line.waiting)) == (0, 0)


async def test_a_runs_ceiling_is_the_lines_and_what_was_learned_stays() -> None:
    limiters = Limiters()
    judge = limiters.limiter("x", 16, leads=False)
    assert limiters.limiter("x", 4).limit == 4
    assert limiters.limiter("x", 32).limit == judge.limit == 32, "nothing was learned: each run has its own"
    judge.overloaded(None)
    assert limiters.limiter("x", 64).limit == 16
    assert limiters.limiter("x", 8).limit == 8


async def test_judges_alone_share_the_highest_of_their_ceilings() -> None:
    limiters = Limiters()
    for ceiling in (4, 16, 8):
        assert limiters.limiter("x", ceiling, leads=False).line is limiters.lines["x"]
    assert limiters.lines["x"].limit == 16


async def test_nothing_is_lost_when_many_give_up_waiting() -> None:
    limiters = Limiters()
    run, judge = limiters.limiter("x", 4), limiters.limiter("x", 2, leads=False)
    rng = random.Random(5)

    async def one(limiter: Limiter) -> None:
        await limiter.acquire()
        try:
            assert run.in_flight + judge.in_flight <= 4
            await asyncio.sleep(rng.random() / 200)
        finally:
            limiter.release()

    tasks = [asyncio.create_task(one(rng.choice((run, judge)))) for _ in range(300)]
    while any(not task.done() for task in tasks):
        await asyncio.sleep(0.001)
        rng.choice(tasks).cancel()
    assert (run.in_flight, judge.in_flight, run.line.in_flight, len(run.line.waiting)) == (0, 0, 0, 0)
    assert {type(task.exception()) for task in tasks if not task.cancelled()} == {type(None)}
