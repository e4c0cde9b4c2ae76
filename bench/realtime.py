"""What Overtone's clock adds to the timings of a streamed reply, beside a bare socket: over HTTP and in a session.

A server in a process of its own sends text and sound after known delays. Each reply is measured twice in turn: by a
blocking socket that looks at the bytes, and by Overtone from the asker to the stored timings. The overhead at the 95th
percentile is the difference of the two percentiles; its interval comes from a bootstrap over the pairs.

    python -m bench.realtime [--requests 200] [--clip 5] [--only http|session]
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import multiprocessing
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection

import msgspec
import numpy as np
import numpy.typing as npt

from overtone.audio import load_sound
from overtone.models import openai, realtime
from overtone.runs.asker import Asker
from overtone.schema import Key, Message, Request, Timings
from overtone.spec import parse_spec
from tests.realtime_servers import RealtimeServer, Voice
from tests.servers import tone

TEXT, SOUND, STEP, STEPS = 0.1, 0.2, 0.025, 10  # seconds before the text and the sound, and between parts of the sound
DONE = SOUND + STEP * (STEPS - 1)
RATE = 24_000
Lags = npt.NDArray[np.float64]
DELAYS = {"first_text": TEXT, "first_audio": SOUND, "done": DONE}


def _event(delta: dict[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + msgspec.json.encode({"model": "timed", "choices": [choice]}) + b"\n\n"


def _script() -> list[tuple[float, bytes]]:
    """Return what the server sends after which delay."""
    pcm = tone(3, 0.05)[44:]
    part = _event({"audio": {"data": base64.b64encode(pcm).decode()}})
    sounds = [(SOUND + STEP * n, part) for n in range(STEPS)]
    sounds[-1] = (DONE, part + _event({}, "stop") + b"data: [DONE]\n\n")
    return [(TEXT, _event({"audio": {"transcript": "Yes."}})), *sounds]


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    loop, script = asyncio.get_running_loop(), _script()
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while head := (await reader.readuntil(b"\r\n\r\n")).lower():
            await reader.readexactly(int(head.split(b"content-length:")[1].split(b"\r\n")[0]))
            began = loop.time()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            for delay, data in script:
                await asyncio.sleep(began + delay - loop.time())
                writer.write(b"%x\r\n%b\r\n" % (len(data), data))
            writer.write(b"0\r\n\r\n")
            await writer.drain()
    writer.close()


def _serve_http(ready: Connection) -> None:
    async def serve() -> None:
        server = await asyncio.start_server(_answer, "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve())


def _serve_sessions(ready: Connection) -> None:
    voice = Voice(TEXT, SOUND, STEP, STEPS, part_seconds=0.05)
    with contextlib.suppress(KeyboardInterrupt), RealtimeServer(voice) as running:
        ready.send(running.port)
        time.sleep(3600)


@contextlib.contextmanager
def server(serve: Callable[[Connection], None]) -> Iterator[int]:
    """Run a server in a process of its own; give its port."""
    mine, its = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(its,), daemon=True)
    process.start()
    try:
        yield mine.recv()
    finally:
        process.kill()
        process.join()


def bare(connection: socket.socket, head: bytes, body: bytes) -> dict[str, float]:
    """Measure one reply by looking at the bytes of a socket."""
    began = time.perf_counter()
    connection.sendall(head + body)
    received = b""
    found: dict[str, float] = {}
    while not received.endswith(b"0\r\n\r\n"):
        received += connection.recv(1 << 16)
        at = time.perf_counter() - began
        if b'"transcript"' in received:
            found.setdefault("first_text", at)
        if b'"data"' in received:
            found.setdefault("first_audio", at)
    return found | {"done": at}


@asynccontextmanager
async def asker(port: int) -> AsyncIterator[Asker]:
    model = openai.load(parse_spec(f"openai:timed?base_url=http://127.0.0.1:{port}/v1&stream=yes"))
    await model.open()
    try:
        yield Asker(model)
    finally:
        await model.close()


def bare_session(port: int, events: Sequence[dict[str, object]]) -> dict[str, float]:
    """Measure one reply in a session by looking at the bytes of a socket. The last two events end the turn."""
    frames = [_frame(msgspec.json.encode(event)) for event in events]
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(
            b"GET /v1/realtime?model=test-model-1 HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\n"
            b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        _read_until(connection, b"session.created")
        connection.sendall(frames[0])
        _read_until(connection, b"session.updated")
        for frame in frames[1:-2]:
            connection.sendall(frame)
        began = time.perf_counter()
        connection.sendall(frames[-2] + frames[-1])
        found: dict[str, float] = {}
        received = b""
        while b'"response.done"' not in received:
            received += connection.recv(1 << 16)
            at = time.perf_counter() - began
            if b'"response.output_audio_transcript.delta"' in received:
                found.setdefault("first_text", at)
            if b'"response.output_audio.delta"' in received:
                found.setdefault("first_audio", at)
        return found | {"done": at}


def _read_until(connection: socket.socket, mark: bytes) -> None:
    received = b""
    while mark not in received:
        received += connection.recv(1 << 16)


def _frame(data: bytes) -> bytes:
    """Return a text frame of a client, with a mask of zeros."""
    size = len(data)
    length = bytes([128 | size]) if size < 126 else b"\xfe" + size.to_bytes(2, "big")
    return b"\x81" + length + bytes(4) + data


async def measure_sessions(port: int, requests: int, clip: float) -> list[tuple[dict[str, float], Timings]]:
    """Measure this many replies in sessions both ways, in turn. Clips are sent as fast as possible."""
    sound = load_sound(tone(1, clip, RATE), name="the clip")
    request = Request(Key("bench", "task/audio"), (Message("user", (sound,)),), speech=True)
    form = {"input": {"turn_detection": None}}
    events: list[dict[str, object]] = [{"type": "session.update", "session": {"type": "realtime", "audio": form}}]
    for start in range(44, len(sound.wav), 960):
        part = base64.b64encode(sound.wav[start : start + 960]).decode()
        events.append({"type": "input_audio_buffer.append", "audio": part})
    events += [{"type": "input_audio_buffer.commit"}, {"type": "response.create"}]
    model = realtime.load(parse_spec(f"realtime:test-model-1?base_url=ws://127.0.0.1:{port}/v1&pace=fast"))
    await model.open()
    overtone, pairs = Asker(model), []
    for number in range(requests + 5):
        plain = bare_session(port, events)
        reply, _, _ = await overtone.attempt(request)
        assert reply.timings is not None
        if number >= 5:
            pairs.append((plain, reply.timings))
    await model.close()
    return pairs


async def measure(port: int, requests: int, clip: float) -> list[tuple[dict[str, float], Timings]]:
    """Measure this many replies both ways, in turn."""
    sound = load_sound(tone(1, clip, 16_000), name="the clip")
    request = Request(Key("bench", "task/audio"), (Message("user", (sound, "Answer.")),), speech=True)
    async with asker(port) as overtone:
        body = overtone.model.body(request, True, stream=True)  # type: ignore[attr-defined]
        head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
        pairs = []
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for number in range(requests + 5):
                plain = bare(connection, head, body)
                reply, _, _ = await overtone.attempt(request)
                assert reply.timings is not None
                if number >= 5:  # the first ones warm up
                    pairs.append((plain, reply.timings))
    return pairs


def report(pairs: list[tuple[dict[str, float], Timings]]) -> None:
    """Print how far both lag behind the server's delay, and the overhead, in milliseconds."""
    print(f"{len(pairs)} replies measured by both; milliseconds after the server's delay")
    print(f"{'timing':<12} {'delay':>6} {'socket p50':>11} {'p95':>6} {'Overtone p50':>13} {'p95':>6} "
          f"{'overhead p50':>13} {'p95':>6}  (95 % interval)")  # fmt: skip
    for name, delay in DELAYS.items():
        plain = np.array([1000 * (one[name] - delay) for one, _ in pairs])
        ours = np.array([1000 * (getattr(timings, name) - delay) for _, timings in pairs])
        low, high = interval(ours, plain)
        print(f"{name:<12} {1000 * delay:>6.0f} {np.median(plain):>11.2f} {slow(plain):>6.2f} {np.median(ours):>13.2f} "
              f"{slow(ours):>6.2f} {np.median(ours) - np.median(plain):>13.2f} {slow(ours) - slow(plain):>6.2f}  "
              f"({low:.2f} to {high:.2f})")  # fmt: skip


def slow(lags: Lags) -> float:
    return float(np.quantile(lags, 0.95))


def interval(ours: Lags, plain: Lags) -> tuple[float, float]:
    """Return the 95 % interval of the difference of the two 95th percentiles, by a bootstrap over pairs."""
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, len(ours), (2000, len(ours)))
    more = np.quantile(ours[drawn], 0.95, axis=1) - np.quantile(plain[drawn], 0.95, axis=1)
    return float(np.quantile(more, 0.025)), float(np.quantile(more, 0.975))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--clip", type=float, default=5.0, help="seconds of the clip in each request")
    parser.add_argument("--only", choices=("http", "session"))
    args = parser.parse_args()
    for name, serve, measured in (("http", _serve_http, measure), ("session", _serve_sessions, measure_sessions)):
        if args.only in (None, name):
            print(f"── {name}")
            with server(serve) as port:
                report(asyncio.run(measured(port, args.requests, args.clip)))


if __name__ == "__main__":
    main()
