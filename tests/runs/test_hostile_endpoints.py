"""An endpoint that answers with anything: each reply is kept within bounds or is a failure, and the run goes on."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from overtone.cli import main
from overtone.errors import ModelFailure, OvertoneError
from overtone.models.command import Command
from overtone.runs.asker import _bounded
from overtone.runs.engine import Engine
from overtone.runs.limiter import Limiter
from overtone.runs.session import Hooks, execute
from overtone.runs.store import Store
from overtone.schema import Reply, Usage
from tests.runs.helpers import QUICK, run, settings
from tests.servers import Asked, OpenAIServer, Server

DEEP = b"[" * 100_000 + b"]" * 100_000


class Odd(OpenAIServer):
    """Answers every request with `body`, whatever was asked."""

    status, body = 200, b""

    async def _misbehave(self, request: web.Request, asked: Asked, behaviour: str, text: str) -> web.StreamResponse:
        return web.Response(body=self.body, status=self.status, content_type="application/json")


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (200, DEEP, "malformed"),
        (200, b'{"more":' + DEEP + b"}", "malformed"),
        (200, b'{"error":' + DEEP + b"}", "malformed"),
        (400, b"[" * 60_000, "rejected"),
        (500, b'{"error":' + b"[" * 30_000, "server"),
    ],
)
def test_json_that_is_nested_without_end_is_a_failure_and_not_the_end(
    small: Path, tmp_path: Path, status: int, body: bytes, reason: str
) -> None:
    with Odd() as server:
        server.always, server.status, server.body = "odd", status, body
        with pytest.raises(OvertoneError, match=f"the first request failed.*{reason}"):
            run(small, server.base_url, tmp_path / "run", limit=6)
    with Store.read(tmp_path / "run") as store:
        assert [failure.reason for failure in store.failures()] == [reason] * 2


def test_a_reply_of_a_million_characters_is_too_large(small: Path, tmp_path: Path) -> None:
    with OpenAIServer(answer=lambda asked: "word " * 250_000) as server:
        assert run(small, server.base_url, tmp_path / "run", limit=1).failed == 1
        assert server.count == 1, "asking again would bring the same"
    with Store.read(tmp_path / "run") as store:
        assert next(store.failures()).reason == "too_large"


def test_token_counts_that_are_no_counts_cost_nothing_and_break_nothing(small: Path, tmp_path: Path) -> None:
    class Generous(OpenAIServer):
        def reply(self, text: str, wav: bytes | None, cut: int = 0) -> dict[str, Any]:
            spoken = {"audio_tokens": -9}
            usage = {"prompt_tokens": 10**30, "completion_tokens": -5, "completion_tokens_details": spoken}
            return {**super().reply(text, wav, cut), "usage": usage, "model": "m" * 10**6}

    with Generous() as server:
        assert run(small, server.base_url, tmp_path / "run", limit=1).answered == 1
    with Store.read(tmp_path / "run") as store:
        reply = next(store.replies())
    assert (reply.usage, len(reply.model)) == (Usage(2**53, 0, 0, 0), 400)
    assert main(["export", str(tmp_path / "run"), "--format", "parquet"]) == 0


def test_half_a_surrogate_pair_is_written_out() -> None:
    assert _bounded(Reply("a\ud800b", finish="\udfff")).text == "a\\ud800b"
    with pytest.raises(ModelFailure, match="too_large"):
        _bounded(Reply("x" * 1_000_001))


async def test_a_program_that_nests_without_end_fails_its_request(tmp_path: Path) -> None:
    from overtone.schema import Key, Message, Request
    from overtone.spec import parse_spec

    program = tmp_path / "deep.py"
    program.write_text("import sys\nfor line in sys.stdin:\n    print('{\"x\":' + '[' * 100000, flush=True)\n")
    model = Command(parse_spec(f"command:{program}?timeout=20"))
    await model.open()
    try:
        with pytest.raises(ModelFailure, match="malformed"):
            await model.ask(Request(Key("i", "c"), (Message("user", ("hi",)),)))
    finally:
        await model.close()


@pytest.mark.parametrize("behaviour", ["hang", "429:300"])
def test_a_run_whose_first_request_hangs_or_waits_can_be_stopped(
    small: Path, tmp_path: Path, behaviour: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines: list[Engine] = []
    begun = Engine.run

    async def watched(self: Engine) -> Any:
        engines.append(self)
        return await begun(self)

    monkeypatch.setattr(Engine, "run", watched)

    async def go(server: Server) -> float:
        working = asyncio.create_task(execute(settings(small, server.base_url, tmp_path / "run"), Hooks(policy=QUICK)))
        while not server.count:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        began = time.monotonic()
        engines[0].stop("interrupted", grace=0.2)
        assert (await working).stopped == "interrupted"
        return time.monotonic() - began

    with OpenAIServer() as server:
        server.always = behaviour
        assert asyncio.run(go(server)) < 5


async def test_a_limiter_that_lets_go_lets_everybody_through() -> None:
    limiter = Limiter(1)
    await limiter.acquire()
    limiter.overloaded(300.0)
    waiting = [asyncio.create_task(limiter.acquire()) for _ in range(3)]
    await asyncio.sleep(0)
    limiter.let_go()
    await asyncio.wait_for(asyncio.gather(*waiting), 5)


def test_what_an_endpoint_says_cannot_write_to_the_terminal_or_forge_a_log_line(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with OpenAIServer() as server:
        server.always = "400:\x1b]0;owned\x07\u202e\n2030-01-01 INFO forged"
        words = ["run", "echomind", "--data", str(small), "--model", f"openai:any?base_url={server.base_url}"]
        main([*words, "--out", str(tmp_path / "run"), "--limit", "2", "-v"])
        server.always = "401:\x1b[31mred"
        main([*words, "--out", str(tmp_path / "other"), "--limit", "2", "-v"])
    said = "".join(capsys.readouterr())
    for text in (said, (tmp_path / "run" / "run.log").read_text()):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert not any(line.startswith("2030") for line in (tmp_path / "run" / "run.log").read_text().splitlines())
    assert "\\x1b[31mred" in said
