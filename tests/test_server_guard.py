"""A server behind the guard, attacked over real sockets: foreign names, no token, slow, large and many requests."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from overtone import server_guard
from overtone.errors import UsageError
from overtone.safety import is_loopback
from overtone.server_guard import Guard, Problem, bound, exposure, listening, middlewares, read_json, read_token

TOKEN = "0123456789abcdef-secret"
LARGE = b"x" * (8 << 20)


async def echo(request: web.Request) -> web.Response:
    return server_guard.json_response({"bytes": len(await read_json(request))})


async def large(request: web.Request) -> web.StreamResponse:
    return web.Response(body=LARGE)


async def broken(request: web.Request) -> web.Response:
    raise RuntimeError("a secret of this machine")


async def health(request: web.Request) -> web.Response:
    return server_guard.json_response({"status": "ok"})


@contextlib.asynccontextmanager
async def served(one: Guard) -> AsyncIterator[tuple[str, int]]:
    """The guard before a few small routes; gives host and port."""
    app = web.Application(client_max_size=server_guard.MAX_BODY, middlewares=middlewares(one))
    app.add_routes(
        [
            web.post("/v1/echo", echo),
            web.get("/v1/large", large),
            web.get("/health", health),
            web.get("/v1/broken", broken),
        ]
    )
    async with listening(app, bound("127.0.0.1", 0)) as url:
        yield "127.0.0.1", int(url.split(":")[2].split("/")[0])


async def raw(at: tuple[str, int], request: bytes, seconds: float = 5.0) -> bytes:
    """What comes back until the server closes the connection."""
    reader, writer = await asyncio.open_connection(*at)
    writer.write(request)
    try:
        async with asyncio.timeout(seconds):
            return await reader.read()
    finally:
        writer.close()


def head(*lines: str, path: str = "/health", method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "Connection: close", "", ""]).encode()


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (["Host: 127.0.0.1:8000"], 200),
        (["Host: localhost:9999"], 200),
        (["Host: LOCALHOST."], 200),
        (["Host: [::1]:8000"], 200),
        (["Host: 192.168.0.7"], 200),
        (["Host: model.example:8000"], 200),
        (["Host: attacker.example:8000"], 403),
        (["Host: 127.0.0.1.attacker.example"], 403),
        (["Host: localhost.attacker.example"], 403),
        (["Host: attacker.example@127.0.0.1"], 403),
        (["Host: 127.0.0.1, attacker.example"], 403),
        (["Host: [::1].attacker.example"], 403),
        (["Host: "], 403),
    ],
)
async def test_only_requests_under_a_name_of_this_server_are_answered(lines: list[str], wanted: int) -> None:
    async with served(Guard(["Model.Example"])) as at:
        answer = await raw(at, head(*lines))
    assert status(answer) == wanted, answer
    assert wanted == 200 or b'"wrong_host"' in answer


async def test_no_host_header_and_two_of_them_are_refused() -> None:
    async with served(Guard()) as at:
        assert status(await raw(at, head())) == 400
        assert status(await raw(at, b"GET /health HTTP/1.0\r\n\r\n")) == 403
        assert status(await raw(at, head("Host: 127.0.0.1", "Host: attacker.example"))) in (400, 403)


@pytest.mark.parametrize(
    ("sent", "wanted"),
    [
        (f"Bearer {TOKEN}", 200),
        (f"bearer  {TOKEN}", 200),
        (f"Bearer {TOKEN}x", 401),
        (f"Bearer {TOKEN[:-1]}", 401),
        (f"Basic {TOKEN}", 401),
        (TOKEN, 401),
        ("Bearer", 401),
        ("Bearer ä", 401),
        (None, 401),
    ],
)
async def test_without_the_token_nothing_but_health_is_answered(sent: str | None, wanted: int) -> None:
    headers = {"Authorization": sent} if sent is not None else {}
    async with served(Guard(token=TOKEN)) as (host, port), aiohttp.ClientSession() as session:
        async with session.post(f"http://{host}:{port}/v1/echo", json={}, headers=headers) as answer:
            text = await answer.text()
            assert answer.status == wanted
            assert TOKEN not in text
            assert wanted == 200 or answer.headers["WWW-Authenticate"] == "Bearer"
        async with session.get(f"http://{host}:{port}/nowhere", headers=headers) as answer:
            assert answer.status == (404 if wanted == 200 else 401), "who has no token does not learn which paths exist"
        async with session.get(f"http://{host}:{port}/health") as answer:
            assert answer.status == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
async def test_a_body_that_a_web_page_could_send_without_leave_is_refused(kind: str) -> None:
    lines = ["Host: localhost", *([f"Content-Type: {kind}"] if kind else []), "Content-Length: 2"]
    async with served(Guard()) as at:
        answer = await raw(at, head(*lines, path="/v1/echo", method="POST") + b"{}")
        assert status(answer) == 415 and b"application/json" in answer
        lines[1:2] = ["Content-Type: application/json; charset=utf-8"]
        answer = await raw(at, head(*lines[:2], "Content-Length: 2", path="/v1/echo", method="POST") + b"{}")
        assert status(answer) == 200
        preflight = await raw(at, head("Host: localhost", "Origin: http://x", path="/v1/echo", method="OPTIONS"))
        assert status(preflight) == 405 and b"Access-Control" not in preflight


async def test_headers_that_never_end_are_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_guard, "HEADER_SECONDS", 0.3)

    async def trickle(at: tuple[str, int]) -> float:
        began = time.monotonic()
        reader, writer = await asyncio.open_connection(*at)
        writer.write(b"GET /health HTTP/1.1\r\n")
        closed = asyncio.create_task(reader.read())
        for n in range(100):
            if closed.done():
                break
            with contextlib.suppress(ConnectionError):
                writer.write(f"X-{n}: y\r\n".encode())
                await writer.drain()
            await asyncio.sleep(0.05)
        writer.close()
        assert closed.done(), "the connection is still open"
        with contextlib.suppress(ConnectionError):
            await closed
        return time.monotonic() - began

    async with served(Guard()) as at:
        taken = await asyncio.gather(*(trickle(at) for _ in range(10)), raw(at, b""))
        assert max(seconds for seconds in taken if isinstance(seconds, float)) < 3
        assert status(await raw(at, head("Host: localhost"))) == 200


async def test_a_slow_request_after_a_first_one_is_cut_off_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_guard, "IDLE_SECONDS", 0.3)
    async with served(Guard()) as at:
        reader, writer = await asyncio.open_connection(*at)
        writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert status(await reader.readuntil(b"}")) == 200
        writer.write(b"GET /health HTTP/1.1\r\nHost:")
        async with asyncio.timeout(5):
            assert await reader.read() == b""
        writer.close()


async def test_a_body_that_comes_slowly_is_refused_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_guard, "BODY_SECONDS", 0.3)
    lines = ["Host: localhost", "Content-Type: application/json", "Content-Length: 1000"]
    async with served(Guard()) as at:
        reader, writer = await asyncio.open_connection(*at)
        writer.write(head(*lines, path="/v1/echo", method="POST") + b"{")
        async with asyncio.timeout(5):
            answer = await reader.readuntil(b"}}")
        assert status(answer) == 408 and b"slow_body" in answer
        writer.close()
        assert status(await raw(at, head("Host: localhost"))) == 200


@pytest.mark.parametrize("packed", [False, True])
async def test_a_body_that_is_too_large_is_refused_before_it_is_kept(
    packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_guard, "MAX_BODY", 1 << 16)
    data = gzip.compress(b" " * (1 << 24)) if packed else b" " * (1 << 18)
    headers = {"Content-Type": "application/json"} | ({"Content-Encoding": "gzip"} if packed else {})
    async with (
        served(Guard()) as (host, port),
        aiohttp.ClientSession() as session,
        session.post(f"http://{host}:{port}/v1/echo", data=data, headers=headers) as answer,
    ):
        assert answer.status == 413
        assert (await answer.json())["error"]["type"] == "invalid_request_error"


async def test_connections_over_the_limit_are_told_so_and_others_are_answered_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server_guard, "MAX_CONNECTIONS", 5)
    async with served(Guard()) as at:
        idle = [await asyncio.open_connection(*at) for _ in range(5)]
        await asyncio.sleep(0.1)
        answer = await raw(at, b"")
        assert status(answer) == 503 and b"Retry-After" in answer and b"too many connections" in answer
        for _, writer in idle[:2]:
            writer.close()
        await asyncio.sleep(0.1)
        assert status(await raw(at, head("Host: localhost"))) == 200
        for _, writer in idle[2:]:
            writer.close()


async def test_a_client_that_does_not_read_its_answer_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_guard, "STALL_SECONDS", 0.3)
    monkeypatch.setattr(server_guard, "MAX_CONNECTIONS", 1)
    async with served(Guard()) as at:
        reader, writer = await asyncio.open_connection(*at, limit=1024)
        writer.write(head("Host: localhost", path="/v1/large"))
        await writer.drain()
        await asyncio.sleep(1.5)  # its place is free again
        assert status(await raw(at, head("Host: localhost"))) == 200
        with contextlib.suppress(ConnectionError):
            size = 0
            while chunk := await reader.read(1 << 20):
                size += len(chunk)
            assert size < len(LARGE)
        writer.close()


async def test_odd_paths_and_requests_are_errors_and_no_more() -> None:
    async with served(Guard()) as at:
        for path in ("/../../etc/passwd", "/v1/%2e%2e/%2e%2e/etc/passwd", "/v1/echo/..", "//attacker.example/health"):
            assert status(await raw(at, head("Host: localhost", path=path))) in (400, 404, 405)
        assert status(await raw(at, head(f"Host: localhost\r\nX: {'y' * 20_000}"))) == 400
        assert status(await raw(at, b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")) == 400  # somebody tries TLS
        assert status(await raw(at, head("Host: localhost", method="BREW"))) in (400, 405)
        assert status(await raw(at, head("Host: localhost"))) == 200


async def test_a_handler_that_breaks_is_a_500_without_its_reason() -> None:
    async with served(Guard()) as at:
        answer = await raw(at, head("Host: localhost", path="/v1/broken"))
        assert status(answer) == 500 and b"server_error" in answer and b"secret" not in answer


def test_a_token_comes_from_a_file_or_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert read_token(file, {"OVERTONE_TOKEN": "x" * 20}) == TOKEN
    assert read_token(None, {"OVERTONE_TOKEN": f" {TOKEN} "}) == TOKEN
    assert read_token(None, {}) == read_token(None, {"OVERTONE_TOKEN": ""}) == ""
    for text in ("", "short", "two words of a token", "t\u00f6ken-with-umlaut-in-it"):
        file.write_text(text)
        with pytest.raises(UsageError, match="valid token") as error:
            read_token(file, {})
        assert not text or text not in str(error.value)
    with pytest.raises(UsageError, match="--token-file"):
        read_token(tmp_path / "nowhere", {})


def test_a_server_that_others_can_reach_without_a_token_is_warned_of() -> None:
    for host, warned in (("127.0.0.1", False), ("0.0.0.0", True)):
        with bound(host, 0) as taken:
            assert bool(exposure(taken, "")) == warned
            assert not exposure(taken, TOKEN)


def test_loopback_is_told_by_name_and_address() -> None:
    assert all(map(is_loopback, ("localhost", "LocalHost.", "a.localhost", "127.0.0.1", "127.8.9.1", "::1", "[::1]")))
    assert not any(map(is_loopback, ("", "0.0.0.0", "10.0.0.1", "localhost.example", "127.0.0.1.example", "::", "x")))


def test_a_problem_of_the_server_is_not_called_the_clients() -> None:
    assert Problem(500, "x").json()["error"]["type"] == "server_error"
    assert Problem(404, "x").json()["error"]["type"] == "invalid_request_error"
