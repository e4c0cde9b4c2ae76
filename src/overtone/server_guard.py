"""Checks and limits of every Overtone server: host, token, connections, headers, bodies and waiting times.

aiohttp limits neither the number of connections nor the time that a client takes to send its first headers, to send
its body or to read the answer. This module does.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import ipaddress
import logging
import os
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web

from overtone.errors import DataError, UsageError
from overtone.paths import read_plain, shown, user_path
from overtone.safety import is_loopback

MAX_BODY = 32 << 20  # bytes
MAX_CONNECTIONS = 128
HEADER_SECONDS = 10.0  # from the connection to the end of the first request's headers
BODY_SECONDS = 60.0
STALL_SECONDS = 60.0  # without the client reading any of its answer
IDLE_SECONDS = 30.0  # between two requests, the second one's headers included
RETRY_AFTER = 2  # seconds
MIN_TOKEN = 16  # characters
TOKEN_VARIABLE = "OVERTONE_TOKEN"
OPEN_PATHS = frozenset({"/health"})  # answered without a token

_log = logging.getLogger(__name__)
_quiet = logging.getLogger(f"{__name__}.requests")  # aiohttp's: a traceback for each malformed request
_quiet.disabled = True

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Problem(Exception):
    """An error of a request. The server sends it to the client in OpenAI's format."""

    def __init__(self, status: int, message: str, *, code: str = "", param: str = "") -> None:
        super().__init__(message)
        self.status, self.code, self.param = status, code, param

    def json(self) -> dict[str, Any]:
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        error = {"message": str(self), "type": kind, "param": self.param or None, "code": self.code or None}
        return {"error": error}

    def response(self) -> web.Response:
        headers = {}
        if self.status == 503:
            headers["Retry-After"] = str(RETRY_AFTER)
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return json_response(self.json(), self.status, headers)


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """Return a JSON response with this value."""
    body = msgspec.json.encode(value)
    return web.Response(body=body, status=status, content_type="application/json", headers=headers)


# ── checks ────────────────────────────────────────────────────────────────────────────────────────────────────────────
class Guard:
    """Checks the host name and token of a request. `hosts` are additional names of this server; paths in `open_paths`
    need no token.

    IP addresses and localhost are always allowed. A web page whose domain points at this machine (DNS rebinding) sends
    that domain as the host and is refused. A page cannot send a JSON body to another origin without a CORS permission,
    which is never given. `command` is named in the advice of errors.
    """

    def __init__(
        self,
        hosts: Iterable[str] = (),
        token: str = "",
        command: str = "overtone serve",
        open_paths: Iterable[str] = OPEN_PATHS,
    ) -> None:
        self._command = command
        self._hosts = frozenset(_without_port(host) for host in hosts)
        self._token = token.encode()
        self._open_paths = frozenset(open_paths)

    def check(self, request: web.Request) -> None:
        """Raise Problem for a request that is not meant for this server or does not carry its token."""
        names = request.headers.getall("Host", [])
        if len(names) != 1 or not self._is_ours(_without_port(names[0])):
            called = shown(", ".join(names)[:100])
            advice = f"use its address or localhost, or allow the name with --allow-host of '{self._command}'"
            raise Problem(403, f"this server is not called {called!r}; {advice}", code="wrong_host")
        if self._token and request.path not in self._open_paths and not self._has_token(request):
            raise Problem(401, "send this server's token as 'Authorization: Bearer TOKEN'", code="invalid_api_key")

    def _is_ours(self, name: str) -> bool:
        if name in self._hosts or name == "localhost" or name.endswith(".localhost"):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True  # a page's domain cannot be an IP address of this machine

    def _has_token(self, request: web.Request) -> bool:
        given = request.headers.getall("Authorization", [])
        scheme, _, value = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        sent = value.strip().encode("utf-8", "surrogateescape")
        return scheme.lower() == "bearer" and hmac.compare_digest(sent, self._token)


def _without_port(host: str) -> str:
    """Return the name or address in a Host header, in lower case, without port, brackets and final dot."""
    match = re.fullmatch(r"\[([^\[\]]*)\](?::\d*)?|([^:\[\]]*)(?::\d*)?", host.strip())
    return (match[1] or match[2] or "").lower().removesuffix(".") if match else host.lower()


def read_token(file: Path | None, environ: Mapping[str, str] = os.environ) -> str:
    """Read the server's token from a file, else from OVERTONE_TOKEN; "" if neither is given."""
    if file is not None:
        try:
            token, origin = read_plain(user_path(file), 1 << 16).decode("utf-8", "replace").strip(), shown(str(file))
        except DataError as error:
            raise UsageError(f"--token-file: {error}") from None
    else:
        token, origin = environ.get(TOKEN_VARIABLE, "").strip(), TOKEN_VARIABLE
        if not token:
            return ""
    if len(token) < MIN_TOKEN or not (token.isascii() and token.isprintable() and " " not in token):
        raise UsageError(
            f"{origin} does not contain a valid token: it needs at least {MIN_TOKEN} printable ASCII characters "
            "without spaces, e.g. from 'openssl rand -hex 32'"
        )
    return token


def exposure(taken: socket.socket, token: str) -> str:
    """Return a warning if other machines can reach the server without a token, else ""."""
    host = str(taken.getsockname()[0])
    if token or is_loopback(host):
        return ""
    return f"anyone who can reach {host} can use this server; set a token with --token-file FILE or {TOKEN_VARIABLE}"


async def read_json(request: web.Request, limit: int | None = None) -> bytes:
    """Read a request's JSON body. Raises Problem for another content type and for a body too large or slow."""
    if request.content_type != "application/json":
        raise Problem(415, "send the body as JSON, with 'Content-Type: application/json'", code="not_json")
    return await read_body(request, limit)


async def read_body(request: web.Request, limit: int | None = None) -> bytes:
    """Read a request's body of at most `limit` bytes (None: MAX_BODY). Raises Problem for a larger or slow one."""
    limit = MAX_BODY if limit is None else limit
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for block in request.content.iter_any():
                body += block
                if len(body) > limit:
                    raise _too_large(limit)
    except TimeoutError:
        raise Problem(408, f"the body did not arrive within {BODY_SECONDS:g} s", code="slow_body") from None
    return bytes(body)


def _too_large(limit: int) -> Problem:
    size = f"{limit >> 20} MB" if limit >= 1 << 20 else f"{limit >> 10} kB"
    return Problem(413, f"the body is over {size}; send less", code="too_large")


def middlewares(guard: Guard) -> list[Any]:
    """Return middlewares that run the guard's checks before every handler and answer errors in OpenAI's format."""

    @web.middleware
    async def answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except Problem as problem:
            answer = problem.response()
        except web.HTTPRequestEntityTooLarge:
            answer = _too_large(MAX_BODY).response()
        except web.RequestPayloadError:  # e.g. the header announces gzip, but the body is not gzip
            answer = Problem(400, "the body cannot be read: it is not in the format its headers state").response()
        except web.HTTPException as error:
            answer = Problem(error.status, f"{request.method} {shown(request.path)}: {error.reason}").response()
            if "Allow" in error.headers:
                answer.headers["Allow"] = error.headers["Allow"]
        except Exception as error:  # noqa: BLE001 - whatever it is, the server goes on
            _log.exception("%s %s failed", request.method, shown(request.path))
            answer = Problem(500, f"the server failed ({type(error).__name__}); see the server's log").response()
        if request.body_exists and not request.content.at_eof():
            answer.force_close()  # do not wait for the rest of a refused body
        return answer

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        if isinstance(request.protocol, _Connection):
            request.protocol.has_request()
        guard.check(request)
        return await handler(request)

    return [answer_errors, check]


# ── connections ───────────────────────────────────────────────────────────────────────────────────────────────────────
class _Connection(web.RequestHandler):
    """A connection that is closed if its client takes too long to send the first headers or to read the answer."""

    __slots__ = ("_deadline", "_others", "_stall")

    def __init__(self, others: set[_Connection], *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._others = others
        self._deadline: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._others.add(self)
        super().connection_made(transport)
        self._deadline = asyncio.get_running_loop().call_later(HEADER_SECONDS, transport.close)

    def has_request(self) -> None:
        """Cancel the deadline, because the first headers have arrived. aiohttp itself limits the time between later
        requests."""
        if self._deadline is not None:
            self._deadline.cancel()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.transport is not None:
            self._stall = asyncio.get_running_loop().call_later(STALL_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stall is not None:
            self._stall.cancel()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._others.discard(self)
        for timer in (self._deadline, self._stall):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)


class _Refused(asyncio.Protocol):
    """Answers a connection above the limit with an error and closes it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        body = msgspec.json.encode(Problem(503, "too many connections; try again later", code="overloaded").json())
        head = f"HTTP/1.1 503 Service Unavailable\r\nRetry-After: {RETRY_AFTER}\r\nConnection: close\r\n"
        kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        assert isinstance(transport, asyncio.WriteTransport)
        transport.write((head + kind).encode() + body)
        transport.close()


def bound(host: str, port: int) -> socket.socket:
    """Bind a socket to an address before anything is loaded; it does not listen yet. Raises UsageError."""
    if not 0 <= port <= 65_535:
        raise UsageError(f"there is no port {port}; choose one up to 65535")
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        taken = socket.socket(family, kind, proto)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(address)
    except OSError as error:
        why = error.strerror or error
        raise UsageError(f"cannot listen on {host}:{port} ({why}); choose another with --port or --host") from None
    return taken


@contextlib.asynccontextmanager
async def listening(
    app: web.Application, taken: socket.socket, *, path: str = "/v1", connections: int = 0
) -> AsyncIterator[str]:
    """Answer requests on a bound socket inside this context; yield the URL of `path`.

    A handler is cancelled when its client disconnects, so that a stream stops. Clients above the number of
    `connections` (0: MAX_CONNECTIONS) are refused.
    """
    connections = connections or MAX_CONNECTIONS
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=2)
    await runner.setup()
    loop = asyncio.get_running_loop()
    made: set[_Connection] = set()

    def accept() -> asyncio.Protocol:
        if len(made) >= connections:
            return _Refused()
        limits = {"keepalive_timeout": IDLE_SECONDS, "access_log": None, "logger": _quiet}
        return _Connection(made, runner.server, loop=loop, **limits)

    server = await loop.create_server(accept, sock=taken, backlog=connections)
    try:
        host, port = taken.getsockname()[:2]
        yield f"http://{f'[{host}]' if ':' in host else host}:{port}{path}"
    finally:
        server.close()
        await runner.cleanup()
