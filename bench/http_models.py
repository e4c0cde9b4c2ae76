"""How much of a bare aiohttp loop's throughput a model's ask() keeps: 64 connections, 96 KB WAVs, 200 ms answers.

The server is another process; both clients take turns three times. Prints requests/s, CPU and the ratio of the medians.

    python -m bench.http_models [--requests 1280] [--connections 64] [--latency 0.2] [--seconds 3] [--rounds 3]
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import hashlib
import statistics
import time
from collections.abc import Awaitable, Callable

import aiohttp
import msgspec

from overtone.models import openai
from overtone.schema import Key, Message, Request, Sound
from overtone.spec import parse_spec
from tests.servers import process, tone


async def _drive(one: Callable[[], Awaitable[object]], requests: int, connections: int) -> tuple[float, float]:
    """Requests per second and CPU milliseconds per request of `connections` workers that refill at once."""
    left = requests

    async def worker() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            await one()

    start, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(worker() for _ in range(connections)))
    return requests / (time.perf_counter() - start), (time.process_time() - cpu) / requests * 1e3


def _request(seconds: float) -> Request:
    wav = tone(seconds=seconds, rate=16_000)
    sound = Sound(wav, hashlib.sha256(wav).hexdigest(), seconds)
    return Request(Key("bench/1", "task/audio"), (Message("user", (sound, "How does the speaker feel?")),))


async def bare(base_url: str, args: argparse.Namespace) -> tuple[float, float]:
    """The least a client can do: encode the sound, POST, read, parse."""
    wav = _sound(args.seconds)

    async def one() -> None:
        part = {"type": "input_audio", "input_audio": {"data": base64.b64encode(wav).decode(), "format": "wav"}}
        content = [part, {"type": "text", "text": "How does the speaker feel?"}]
        body = msgspec.json.encode({"model": "any", "messages": [{"role": "user", "content": content}]})
        async with session.post(f"{base_url}/chat/completions", data=body, headers=headers) as response:
            msgspec.json.decode(await response.read())["choices"][0]["message"]["content"]

    headers = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        return await _drive(one, args.requests, args.connections)


async def prebuilt(base_url: str, args: argparse.Namespace) -> tuple[float, float]:
    """Not even that: one body, built beforehand, and the answer is not parsed."""
    body = openai.load(parse_spec(f"openai:any?base_url={base_url}")).body(_request(args.seconds), False)

    async def one() -> None:
        async with session.post(f"{base_url}/chat/completions", data=body, headers=headers) as response:
            await response.read()

    headers = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        return await _drive(one, args.requests, args.connections)


async def ours(base_url: str, args: argparse.Namespace) -> tuple[float, float]:
    model = openai.load(parse_spec(f"openai:any?base_url={base_url}"))
    request = _request(args.seconds)
    await model.open()
    try:
        return await _drive(lambda: model.ask(request), args.requests, args.connections)
    finally:
        await model.close()


def _sound(seconds: float) -> bytes:
    return tone(seconds=seconds, rate=16_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1280)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--seconds", type=float, default=3.0, help="length of the sound; 3 s are 96 KB")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    clients = {"bare": bare, "prebuilt": prebuilt, "ours": ours}
    rates: dict[str, list[float]] = {name: [] for name in clients}
    cpus: dict[str, list[float]] = {name: [] for name in clients}
    with process(latency=args.latency, light=True) as base_url:
        for number in range(args.rounds):
            order = list(clients.items())
            for name, client in order[number % 3 :] + order[: number % 3]:  # nobody always goes first
                rate, cpu = asyncio.run(client(base_url, args))
                rates[name].append(rate)
                cpus[name].append(cpu)
    for name in clients:
        shown = " ".join(f"{rate:.1f}" for rate in rates[name])
        median, cpu = statistics.median(rates[name]), statistics.median(cpus[name])
        print(f"{name:9} {median:7.1f} requests/s  {cpu:.3f} CPU ms/request  ({shown})")
    ratio = statistics.median(rates["ours"]) / statistics.median(rates["bare"])
    print(f"ratio ours / bare     {ratio:.3f}")
    print(f"ratio ours / prebuilt {statistics.median(rates['ours']) / statistics.median(rates['prebuilt']):.3f}")


if __name__ == "__main__":
    main()
