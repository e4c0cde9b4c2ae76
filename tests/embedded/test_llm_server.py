"""SmolLM2 behind a local endpoint: it speaks the wire format, on this machine only, and says the same twice."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys

import aiohttp
import psutil
import pytest

from overtone.errors import UsageError
from overtone.models.openai import load
from overtone.schema import Key, Message, Reply, Request
from overtone.spec import parse_spec
from tests.embedded.serving import serving

pytestmark = pytest.mark.local
REQUEST = Request(Key("one", "zero/audio"), (Message("user", ("I failed my driving test again.",)),))


async def _asked(base_url: str, times: int) -> list[Reply]:
    model = load(parse_spec(f"openai:smollm2?base_url={base_url}&max_tokens=12&temperature=0&timeout=60"))
    await model.open()
    try:
        return [await model.ask(REQUEST) for _ in range(times)]
    finally:
        await model.close()


def test_it_answers_over_the_wire_and_says_the_same_twice() -> None:
    with serving() as base_url:
        first, second = asyncio.run(_asked(base_url, 2))
        assert first.text and first.text == second.text
        assert first.model == "SmolLM2-135M-Instruct", "no path of this machine"
        port = int(base_url.rpartition(":")[2].partition("/")[0])
        heard = [c.laddr for c in psutil.Process().net_connections("tcp") if c.status == "LISTEN"]
        assert [address.ip for address in heard if address.port == port] == ["127.0.0.1"]
        with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1:{port}"), serving(port):
            pass


BODY = {"model": "any", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 6, "temperature": 0}


async def _attacked(base_url: str, token: str) -> None:
    url, right = f"{base_url}/chat/completions", {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(headers=right) as session:
        for headers, body, status in (
            ({"Authorization": "Bearer wrong"}, BODY, 401),
            ({"Host": "attacker.example:8080"}, BODY, 403),
            ({"Content-Type": "text/plain"}, BODY, 415),
            ({}, [], 400),
            ({}, {"messages": "x"}, 400),
            ({}, {**BODY, "max_tokens": "many"}, 400),
            ({}, {"messages": [{"role": "user", "content": "word " * 6000}]}, 400),
            ({}, BODY, 200),
        ):
            told = {"Content-Type": "application/json", **headers}
            async with session.post(url, data=json.dumps(body), headers=told) as answer:
                assert answer.status == status, await answer.text()
                assert ("error" in await answer.json()) == (status != 200)
        for path in ("/props", "/slots", "/completion", "/v1/embeddings", "/"):
            async with session.get(base_url.removesuffix("/v1") + path) as answer:
                assert answer.status == 404, "no route of the engine's own server"
        async with session.post(url, json={**BODY, "stream": True}) as answer:
            lines = [line.decode().strip() async for line in answer.content if line.strip()]
        assert lines[-1] == "data: [DONE]" and answer.content_type == "text/event-stream"
        deltas = [json.loads(line.removeprefix("data: "))["choices"][0]["delta"] for line in lines[:-1]]
        streamed = "".join(delta.get("content") or "" for delta in deltas)
        async with session.post(url, json=BODY) as answer:
            assert streamed == (await answer.json())["choices"][0]["message"]["content"] != ""
        with pytest.raises(asyncio.TimeoutError):  # it hangs up; the next one is answered all the same
            await session.post(
                url, json={**BODY, "stream": False, "max_tokens": 30}, timeout=aiohttp.ClientTimeout(0.05)
            )
        async with session.post(url, json=BODY) as answer:
            assert answer.status == 200


def test_it_refuses_strangers_web_pages_and_bodies_it_cannot_use() -> None:
    token = "a-token-of-some-length"
    with serving(token=token) as base_url:
        asyncio.run(_attacked(base_url, token))


def test_the_command_says_where_it_listens_and_how_a_judge_is_pointed_at_it() -> None:
    command = [sys.executable, "-m", "overtone.embedded.llm_server", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as child:
        try:
            assert child.stdout is not None
            where, example = child.stdout.readline(), child.stdout.readline()
            assert "SmolLM2-135M-Instruct answers at http://127.0.0.1:" in where
            assert "--judge" in example
            base_url = example.partition("base_url=")[2].strip().strip('"')
            assert asyncio.run(_asked(base_url, 1))[0].text
        finally:
            child.kill()
