"""SmolLM2 behind a local endpoint: it speaks the wire format, on this machine only, and says the same twice."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import psutil
import pytest

from overtone.embedded.serve import start
from overtone.errors import UsageError
from overtone.models.openai import load
from overtone.schema import Key, Message, Reply, Request
from overtone.spec import parse_spec

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
    server, base_url = start()
    first, second = asyncio.run(_asked(base_url, 2))
    assert first.text and first.text == second.text
    assert first.model == "SmolLM2-135M-Instruct", "no path of this machine"
    port = int(base_url.rpartition(":")[2].partition("/")[0])
    heard = [c.laddr for c in psutil.Process().net_connections("tcp") if c.status == "LISTEN"]
    assert [address.ip for address in heard if address.port == port] == ["127.0.0.1"]
    with pytest.raises(UsageError, match=f"cannot listen on port {port}"):
        start(port)
    del server


def test_the_command_says_where_it_listens_and_how_a_judge_is_pointed_at_it() -> None:
    command = [sys.executable, "-m", "overtone.embedded.serve", "--port", "0"]
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
