"""An HTTP endpoint's failures against a real local server, and the key that must never be seen."""

from __future__ import annotations

import asyncio
import email.utils
import gzip
import logging
import socket
import time
import traceback
from collections.abc import Iterator

import pytest
from aiohttp import web
from yarl import URL

from overtone.errors import ModelFailure, UsageError
from overtone.models.endpoint_errors import problem_of
from overtone.models.http import (
    MAX_RETRY_AFTER,
    Endpoint,
    endpoint_url,
    proxy_for,
    retry_after,
)
from tests.servers import OpenAIServer

KEY = "sk-topsecret-0123456789abcdef"
BODY = b'{"model":"any","messages":[{"role":"user","content":"hi"}]}'


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


async def post(url: str, *, timeout: float = 5.0, max_bytes: int = 2**20) -> bytes:
    endpoint = Endpoint(
        endpoint_url(url, "/chat/completions"),
        key_header=("Authorization", f"Bearer {KEY}"),
        secret=KEY,
        timeout=timeout,
        max_bytes=max_bytes,
    )
    await endpoint.open()
    try:
        return await endpoint.post(BODY)
    finally:
        await endpoint.close()


async def failure_of(url: str, *, timeout: float = 5.0, max_bytes: int = 2**20) -> ModelFailure:
    with pytest.raises(ModelFailure) as caught:
        await post(url, timeout=timeout, max_bytes=max_bytes)
    assert KEY not in "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    return caught.value


@pytest.mark.parametrize(("behaviour", "reason", "retry", "fatal", "overload", "wait"), [
    ("400", "rejected", False, False, False, None),
    ("401", "auth", False, True, False, None),
    ("402", "rejected", False, True, False, None),
    ("403", "auth", False, True, False, None),
    ("404", "not_found", False, True, False, None),
    ("408", "timeout", True, False, True, None),
    ("413", "too_large", False, False, False, None),
    ("422", "rejected", False, False, False, None),
    ("429", "rate_limited", True, False, True, None),
    ("429:2.5", "rate_limited", True, False, True, 2.5),
    ("429:86400", "rate_limited", True, False, True, MAX_RETRY_AFTER),
    ("500", "server", True, False, False, None),
    ("502", "server", True, False, False, None),
    ("503:4", "server", True, False, True, 4.0),
    ("504", "timeout", True, False, True, None),
    ("reset", "connection", True, False, False, None),
])  # fmt: skip
async def test_each_failure_has_its_reason_and_says_whether_to_ask_again(
    server: OpenAIServer, behaviour: str, reason: str, retry: bool, fatal: bool, overload: bool, wait: float | None
) -> None:
    server.behave(behaviour)
    failure = await failure_of(server.base_url)
    assert (failure.reason, failure.retry, failure.fatal, failure.overload) == (reason, retry, fatal, overload)
    assert failure.retry_after == wait
    if behaviour != "reset":
        assert f"HTTP {behaviour[:3]}" in failure.detail
    assert server.count == 1, "a model makes one attempt"


@pytest.mark.parametrize("behaviour", ["hang", "slow_body"])
async def test_an_answer_that_does_not_come_or_does_not_end_is_a_timeout(server: OpenAIServer, behaviour: str) -> None:
    server.behave(behaviour)
    start = time.monotonic()
    failure = await failure_of(server.base_url, timeout=0.5)
    assert time.monotonic() - start < 2.5
    assert (failure.reason, failure.retry, failure.overload) == ("timeout", True, True)
    assert "0.5 s" in failure.detail


async def test_an_answer_is_not_read_beyond_its_limit(server: OpenAIServer) -> None:
    server.behave("huge:50")
    failure = await failure_of(server.base_url, max_bytes=2**20)
    assert (failure.reason, failure.retry) == ("too_large", False)


async def test_nobody_listening_ends_a_run_at_once() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    failure = await failure_of(f"http://127.0.0.1:{port}/v1")
    assert (failure.reason, failure.retry, failure.fatal) == ("connection", True, True)
    assert "no server listens" in failure.detail


async def test_an_unknown_host_ends_a_run_at_once() -> None:
    failure = await failure_of("http://no-such-host.invalid/v1")
    assert (failure.reason, failure.fatal) == ("connection", True)
    assert "host name is unknown" in failure.detail


async def test_a_server_without_tls_is_a_connection_failure(server: OpenAIServer) -> None:
    failure = await failure_of(server.base_url.replace("http:", "https:"))
    assert (failure.reason, failure.fatal) == ("connection", True)


async def test_an_endpoint_that_repeats_the_key_does_not_bring_it_into_the_error(
    server: OpenAIServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.behave("echo_key")
    failure = await failure_of(server.base_url)
    assert "you sent" in failure.detail and "topsecret" not in failure.detail
    assert len(failure.detail) < 450, "at most 300 characters of the body"
    assert "topsecret" not in caplog.text


async def test_an_answer_that_repeats_the_key_comes_back_without_it() -> None:
    with OpenAIServer(answer=lambda asked: f"your key is {KEY}") as server:
        for key, kept in ((KEY, False), ("none", True)):
            endpoint = Endpoint(
                URL(f"{server.base_url}/chat/completions"), key_header=("Authorization", f"Bearer {key}"), secret=key
            )
            await endpoint.open()
            server.answer = lambda asked, key=key: f"your key is {key}"  # type: ignore[misc]
            answer = await endpoint.post(BODY)
            await endpoint.close()
            assert (key.encode() in answer) == kept
            assert b"your key is" in answer


async def test_the_key_is_in_no_attribute_a_person_prints(server: OpenAIServer) -> None:
    endpoint = Endpoint(URL(server.base_url), key_header=("Authorization", f"Bearer {KEY}"), secret=KEY)
    assert "topsecret" not in f"{endpoint} {endpoint!r} {endpoint.url}"


def test_what_looks_like_a_key_is_redacted_even_if_it_is_not_ours() -> None:
    endpoint = Endpoint(URL("http://localhost/v1"))
    said = endpoint.redact('Incorrect key: sk-proj-abc***XYZ9, "Authorization: Bearer other-token-77" AIzaSyB1234567')
    assert not any(secret in said for secret in ("abc***XYZ9", "other-token", "SyB123"))


async def test_a_redirect_on_the_same_host_keeps_the_key(server: OpenAIServer) -> None:
    server.behave("redirect:/v1/chat/completions")
    assert b"choices" in await post(server.base_url)
    assert [asked.headers.get("Authorization") for asked in server.asked] == [f"Bearer {KEY}"] * 2
    assert server.asked[1].text == "hi", "the body goes along"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_redirect_to_another_host_or_port_drops_the_key(server: OpenAIServer, host: str) -> None:
    with OpenAIServer() as other:
        port = other.port if host == "127.0.0.1" else server.port
        server.behave(f"redirect:http://{host}:{port}/v1/chat/completions")
        assert b"choices" in await post(server.base_url)
        arrived = (*server.asked[1:], *other.asked)
    assert [asked.headers.get("Authorization") for asked in arrived] == [None]


async def test_a_dropped_key_stays_dropped_when_the_next_hop_leads_back(server: OpenAIServer) -> None:
    with OpenAIServer() as other:
        server.behave(f"redirect:{other.base_url}/chat/completions")
        other.behave(f"redirect:{server.base_url}/chat/completions")
        await post(server.base_url)
    assert [asked.headers.get("Authorization") for asked in server.asked] == [f"Bearer {KEY}", None]


async def test_a_redirect_loop_ends_after_three_hops(server: OpenAIServer) -> None:
    server.always = "redirect:/v1/chat/completions"
    failure = await failure_of(server.base_url)
    assert (failure.reason, failure.fatal, server.count) == ("rejected", True, 4)


@pytest.mark.parametrize("target", ["file:///etc/passwd", "http://user:pw@127.0.0.1:1/v1"])
async def test_a_redirect_to_a_strange_place_is_refused(server: OpenAIServer, target: str) -> None:
    server.behave(f"redirect:{target}")
    failure = await failure_of(server.base_url)
    assert failure.reason == "rejected" and "pw" not in failure.detail


async def test_a_small_answer_that_unpacks_into_a_huge_one_is_stopped() -> None:
    async def bomb(_: web.Request) -> web.Response:
        packed = gzip.compress(b" " * (32 * 2**20))
        return web.Response(body=packed, headers={"Content-Encoding": "gzip", "Content-Type": "application/json"})

    app = web.Application()
    app.router.add_post("/v1/chat/completions", bomb)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        failure = await failure_of(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", max_bytes=2**20)
    finally:
        await runner.cleanup()
    assert failure.reason == "too_large"


async def test_something_that_does_not_speak_http_is_malformed() -> None:
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n")
        await writer.drain()
        writer.close()

    listener = await asyncio.start_server(babble, "127.0.0.1", 0)
    async with listener:
        failure = await failure_of(f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1")
    assert failure.reason in ("malformed", "connection") and failure.retry


async def test_bodies_over_a_megabyte_are_sent_without_a_warning(
    server: OpenAIServer, recwarn: pytest.WarningsRecorder
) -> None:
    body = BODY.replace(b"hi", b"h" * 2**21)
    endpoint = Endpoint(URL(f"{server.base_url}/chat/completions"))
    await endpoint.open()
    await endpoint.post(body)
    await endpoint.close()
    assert len(server.asked[0].text) == 2**21
    assert not [w for w in recwarn if "large body" in str(w.message)]


def test_retry_after_reads_seconds_and_dates_and_is_capped() -> None:
    soon = email.utils.formatdate(time.time() + 30, usegmt=True)
    assert 25 < (retry_after({"Retry-After": soon}) or 0) <= 30
    assert retry_after({"Retry-After": email.utils.formatdate(time.time() - 30, usegmt=True)}) == 0
    assert retry_after({"Retry-After": "7"}) == 7
    assert retry_after({"retry-after-ms": "1500"}) == 1.5
    assert retry_after({"Retry-After": "999999"}) == MAX_RETRY_AFTER
    assert retry_after({"Retry-After": "soon"}) is None
    assert retry_after({}) is None


@pytest.mark.parametrize("given", ["nan", "garbage", "-5", "", "Thu, 01 Jan 0001 00:00:00 +2359", "1e5x"])
def test_a_retry_after_that_is_no_time_is_none_or_nothing(given: str) -> None:
    for name in ("Retry-After", "retry-after-ms"):
        assert not retry_after({name: given})


async def test_an_exhausted_quota_is_not_waited_for() -> None:
    problem = problem_of(b'{"error":{"message":"You exceeded your quota","code":"insufficient_quota"}}')
    failure = Endpoint(URL("http://localhost/v1")).refusal(429, problem)
    assert (failure.reason, failure.retry, failure.fatal) == ("rate_limited", False, True)


@pytest.mark.parametrize(("body", "message"), [
    (b'{"error":{"message":"no","code":"x"}}', "no"),
    (b'{"error":"no"}', "no"),
    (b'{"message":"no"}', "no"),
    (b'{"detail":[{"loc":["body"]}]}', '[{"loc":["body"]}]'),
    (b'[{"error":{"message":"no"}}]', "no"),
    (b"<html><b>no</b></html>", "  no  "),
    (b"\xff\xfe", "��"),
])  # fmt: skip
def test_the_message_is_found_in_every_usual_error_body(body: bytes, message: str) -> None:
    assert problem_of(body).message == message


def test_proxies_come_from_the_environment_but_never_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY", "https_proxy", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "inside.example")
    assert proxy_for(URL("https://api.example/v1")) == "http://proxy.example:3128"
    assert proxy_for(URL("https://inside.example/v1")) is None
    for host in ("127.0.0.1", "localhost", "[::1]", "127.8.8.8"):
        assert proxy_for(URL(f"http://{host}:8000/v1")) is None


async def test_a_proxy_is_really_used_and_its_password_never_shown(
    monkeypatch: pytest.MonkeyPatch, server: OpenAIServer
) -> None:
    for name in ("no_proxy", "NO_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", f"http://someone:hunter2@127.0.0.1:{server.port}")
    assert b"choices" in await post("http://model.example/v1")
    assert server.asked[0].headers["Host"] == "model.example"
    monkeypatch.setenv("HTTP_PROXY", "http://someone:hunter2@127.0.0.1:1")
    failure = await failure_of("http://model.example/v1")
    assert (failure.reason, failure.fatal) == ("connection", True)
    assert "proxy" in failure.detail and "hunter2" not in failure.detail
    monkeypatch.setenv("HTTP_PROXY", "socks5://someone:hunter2@127.0.0.1:1")
    with pytest.raises(UsageError) as error:
        await post("http://model.example/v1")
    assert "hunter2" not in str(error.value)


def test_a_query_of_the_base_url_stays_behind_the_path() -> None:
    assert str(endpoint_url("http://h/v1/?api-version=2", "/chat/completions")) == (
        "http://h/v1/chat/completions?api-version=2"
    )
