"""A fast and safe client of one HTTP endpoint: the key stays in a header, and a failure becomes a ModelFailure.

aiohttp and msgspec are used directly because that has 8 times the throughput of the openai SDK with audio bodies.
"""

from __future__ import annotations

import asyncio
import errno
import re
import socket
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.request import getproxies, proxy_bypass

import aiohttp
from multidict import CIMultiDict, istr
from yarl import URL

from overtone.errors import ModelFailure, UsageError
from overtone.models.endpoint_errors import Problem, problem_of
from overtone.safety import SECRET_CHARS, is_loopback, without_keys
from overtone.spec import Spec

MAX_RESPONSE_BYTES = 64 * 2**20
MAX_ERROR_BYTES = 64 * 2**10
MAX_LINE_BYTES = 4 * 2**20  # of a streamed answer
MAX_REDIRECTS = 3
MAX_RETRY_AFTER = 600.0
DEFAULT_TIMEOUT = 300.0
CONNECT_TIMEOUT = 30.0
# uvicorn (vLLM, sglang) closes an idle connection after 5 s; reusing one at that very moment fails the request.
KEEP_ALIVE = 4.0
DETAIL_CHARS = 300


class _Body(aiohttp.BytesPayload):
    """A body that is already encoded. aiohttp's own class warns above 1 MiB and recommends a slower method."""

    def __init__(self, value: bytes) -> None:
        aiohttp.Payload.__init__(self, value, content_type="application/json")
        self._size = len(value)


def origin(url: URL) -> tuple[str, str, int | None]:
    """Return scheme, host and port. A key may only be sent to its own origin."""
    return url.scheme, (url.host or "").lower(), url.port


def proxy_for(url: URL) -> str | None:
    """Return the proxy for a URL by HTTPS_PROXY, HTTP_PROXY and NO_PROXY, or None. Loopback is never proxied."""
    host = url.host or ""
    if is_loopback(host):
        return None
    proxy = getproxies().get({"ws": "http", "wss": "https"}.get(url.scheme, url.scheme))
    if not proxy or proxy_bypass(f"{host}:{url.port}"):
        return None
    if not re.match(r"(?i)https?://[^/\s]+", proxy):  # not shown: it may hold a password
        raise UsageError(f"the proxy for {url.scheme} in the environment is not an http:// URL; correct or unset it")
    return proxy


def endpoint_url(base: str, path: str) -> URL:
    """Append `path` to a base URL before its query, so that `…/v1?api-version=1` works."""
    url = URL(base)
    return url.with_path(url.path.rstrip("/") + path, keep_query=True)


class Endpoint:
    """POSTs JSON bodies to one URL. `key_header` is sent to that URL's own host only."""

    def __init__(
        self,
        url: URL,
        *,
        key_header: tuple[str, str] | None = None,
        secret: str = "",
        timeout: float = DEFAULT_TIMEOUT,
        max_bytes: int = MAX_RESPONSE_BYTES,
        accept: str = "application/json",
        redirects: int = MAX_REDIRECTS,
    ) -> None:
        self.url = url
        self.redirects = redirects
        self.timeout = timeout
        self.max_bytes = max_bytes
        self._secret = secret
        # Built once: aiohttp copies a ready CIMultiDict much faster than a dict of plain strings.
        self._bare: CIMultiDict[str] = CIMultiDict({istr("Accept"): accept})
        self._headers = self._bare.copy()
        if key_header:
            self._headers[istr(key_header[0])] = key_header[1]
        self._proxies: dict[tuple[str, str, int | None], str | None] = {}
        self._session: aiohttp.ClientSession | None = None

    def __repr__(self) -> str:
        return f"Endpoint({shown(self.url)})"

    async def open(self) -> None:
        self._proxy(self.url)
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE),
                timeout=aiohttp.ClientTimeout(total=self.timeout, sock_connect=min(CONNECT_TIMEOUT, self.timeout)),
                cookie_jar=aiohttp.DummyCookieJar(),
            )

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def post(self, body: bytes, on_line: Callable[[bytes], None] | None = None) -> bytes:
        """Send a body and return that of a 2xx answer. Raises ModelFailure, without secrets in its text, otherwise.

        With `on_line`, each line of the answer is passed on as it arrives, and what it raises ends the request.
        """
        if self._session is None:
            raise RuntimeError("the endpoint is not open")
        try:
            return self._without_key(await self._post(self._session, body, on_line))
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            failure = self._failure(error)
        # Raised outside the handler, because aiohttp's exceptions contain the request's headers, including the key.
        raise failure

    def _without_key(self, answer: bytes) -> bytes:
        """Remove the key from an answer that repeats it, because replies are stored and runs are shared."""
        if len(self._secret) < SECRET_CHARS:  # the key of a local server is often "none", which is also a word
            return answer
        return answer.replace(self._secret.encode(), "…".encode())

    async def _post(
        self, session: aiohttp.ClientSession, body: bytes, on_line: Callable[[bytes], None] | None
    ) -> bytes:
        url, headers, data = self.url, self._headers, _Body(body)
        for _ in range(self.redirects + 1):
            proxy = self._proxy(url)
            async with session.post(url, data=data, headers=headers, allow_redirects=False, proxy=proxy) as response:
                status = response.status
                if status == 200:
                    return await (self._read_lines(response, on_line) if on_line else self._read(response))
                if status not in (301, 302, 303, 307, 308) or not self.redirects:
                    if 200 < status < 300:
                        return await self._read(response)
                    problem = problem_of(await self._read_start(response))
                    raise self.refusal(status, problem, retry_after(response.headers), shown(self.url))
                target = self._redirect(url, status, response.headers.get("Location"))
            if origin(target) != origin(url):
                headers = self._bare  # also for all later redirects
            url = target
        raise ModelFailure("rejected", f"{shown(self.url)} redirects more than {self.redirects} times", fatal=True)

    def _proxy(self, url: URL) -> str | None:
        target = origin(url)
        if target not in self._proxies:
            self._proxies[target] = proxy_for(url)
        return self._proxies[target]

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        chunk = await response.content.readany()
        if response.content.at_eof() and len(chunk) <= self.max_bytes:
            return chunk
        chunks, size = [], 0
        while chunk:
            size += len(chunk)
            if size > self.max_bytes:
                response.close()
                raise ModelFailure("too_large", f"{shown(self.url)} sent more than {self.max_bytes} bytes")
            chunks.append(chunk)
            chunk = await response.content.readany()
        return b"".join(chunks)

    async def _read_lines(self, response: aiohttp.ClientResponse, on_line: Callable[[bytes], None]) -> bytes:
        """Pass on the lines of an event stream and return b"". Return the body of any other answer."""
        if response.content_type != "text/event-stream":
            return await self._read(response)
        size, rest = 0, b""
        while chunk := await response.content.readany():
            size += len(chunk)
            if size > self.max_bytes or len(rest) > MAX_LINE_BYTES:
                response.close()
                raise ModelFailure("too_large", f"{shown(self.url)} streamed more than {self.max_bytes} bytes")
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                on_line(self._without_key(line))
        on_line(self._without_key(rest))
        return b""

    async def _read_start(self, response: aiohttp.ClientResponse) -> bytes:
        """Read the beginning of an error's body. A connection with more data is closed instead of drained."""
        start = b""
        while len(start) < MAX_ERROR_BYTES:
            chunk = await response.content.readany()
            if not chunk:
                return start
            start += chunk
        response.close()
        return start[:MAX_ERROR_BYTES]

    def _redirect(self, url: URL, status: int, location: str | None) -> URL:
        if status == 303 or not location:
            detail = f"{shown(url)} answered {status} without a reply; check base_url"
            raise ModelFailure("rejected", detail, fatal=True)
        try:
            target = url.join(URL(location))
        except ValueError:
            target = URL()
        if target.scheme not in ("http", "https") or not target.host:
            raise ModelFailure("rejected", f"{shown(url)} redirects to a target that is not an http(s) URL", fatal=True)
        if target.user or target.password:
            raise ModelFailure("rejected", f"{shown(url)} redirects to a URL with a user name in it", fatal=True)
        return target

    def redact(self, text: str) -> str:
        """Shorten text to 300 characters on one line, without anything that is or looks like a key."""
        text = without_keys(text, self._secret)
        return text if len(text) <= DETAIL_CHARS else text[: DETAIL_CHARS - 1] + "…"

    def _version_hint(self, status: int) -> str:
        """Return a hint for the case that the server does not know the path and base_url lacks a version such as
        /v1."""
        if status not in (404, 405) or self.url.path != "/chat/completions":
            return ""
        return f"; base_url has no path: most servers need base_url={shown(self.url.with_path('/v1'))}"

    def refusal(
        self, status: int, problem: Problem, wait: float | None = None, where: str = "", what: str = ""
    ) -> ModelFailure:
        """Return the ModelFailure for an HTTP status and its message. `what` replaces the status in its text."""
        message = self.redact(problem.message)
        named = isinstance(problem.code, str) and problem.code != str(status)  # LiteLLM repeats the status as a string
        detail = (what or f"HTTP {status}") + (f" ({self.redact(str(problem.code))})" if named else "")
        detail += (f" from {where}" if where else "") + (f": {message}" if message else "")
        ambiguous = status in (400, 422) or status >= 500
        if status in (401, 403) or (ambiguous and problem.wrong_key):
            return ModelFailure("auth", detail, fatal=True)
        if status in (404, 405, 410) or (ambiguous and problem.wrong_model):
            return ModelFailure("not_found", detail + self._version_hint(status), fatal=True)
        if ambiguous and problem.no_audio:
            return ModelFailure("rejected", f"{detail} ({problem.no_audio})", fatal=True)
        if status == 413:
            return ModelFailure("too_large", detail)
        if status == 402:
            return ModelFailure("rejected", detail, fatal=True)
        if status in (408, 504):
            return ModelFailure("timeout", detail, retry=True, overload=True, retry_after=wait)
        if status == 429:
            if problem.code == "insufficient_quota":  # waiting does not help
                return ModelFailure("rate_limited", detail, fatal=True)
            return ModelFailure("rate_limited", detail, retry=True, overload=True, retry_after=wait)
        if status >= 500 and problem.too_long:  # llama.cpp; asking again does not help
            return ModelFailure("rejected", detail, item=True)
        if advice := problem.advice:
            detail += f" ({advice})"
        if status >= 500:
            loading = status == 503 and problem.loading
            busy = status in (503, 529) and not loading
            return ModelFailure("server", detail, retry=True, overload=busy, retry_after=wait, unavailable=loading)
        return ModelFailure("rejected", detail, fatal=300 <= status < 400, item=problem.about_item)

    def _failure(self, error: BaseException) -> ModelFailure:
        where = shown(self.url)
        absent = {"retry": True, "fatal": True, "unavailable": True}
        if isinstance(error, asyncio.TimeoutError) and not isinstance(error, aiohttp.ClientConnectorError):
            if isinstance(error, aiohttp.ServerTimeoutError) and "onnect" in type(error).__name__:
                return ModelFailure("timeout", f"no connection to {where} in time", retry=True, unavailable=True)
            return ModelFailure("timeout", f"no answer from {where} in {self.timeout:g} s", retry=True, overload=True)
        if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
            return ModelFailure("connection", self.redact(f"no secure connection to {where}: {error}"), fatal=True)
        if isinstance(error, aiohttp.ClientProxyConnectionError):
            return ModelFailure("connection", f"{where}: the proxy cannot be reached", **absent)
        if isinstance(error, aiohttp.ClientConnectorError):
            cause = error.os_error
            if isinstance(cause, socket.gaierror):
                return ModelFailure("connection", f"{where}: the host name is unknown", **absent)
            refused = isinstance(cause, ConnectionRefusedError) or cause.errno == errno.ECONNREFUSED
            why = "no server listens there" if refused else str(cause.strerror or cause)
            return ModelFailure("connection", self.redact(f"{where}: {why}"), **{**absent, "fatal": refused})
        if isinstance(error, aiohttp.ClientHttpProxyError):
            return ModelFailure("connection", f"the proxy refused {where}: HTTP {error.status}", retry=True, fatal=True)
        if isinstance(error, aiohttp.ClientResponseError):
            return ModelFailure("malformed", self.redact(f"{where} does not speak HTTP: {error.message}"), retry=True)
        if isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientPayloadError):
            return ModelFailure("connection", f"{where}: closed before its answer was complete", retry=True)
        if isinstance(error, aiohttp.ClientError | OSError):
            return ModelFailure("connection", self.redact(f"{where}: {error or type(error).__name__}"), retry=True)
        return ModelFailure("malformed", self.redact(f"{where}: {error}"), retry=True)


def shown(url: URL) -> str:
    """Format a URL for an error, without user info and query."""
    return str(url.with_user(None).with_query(None)) if url.host else str(url)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait by `Retry-After` (seconds or a date) or `retry-after-ms`, capped; None if missing."""
    try:
        if ms := headers.get("retry-after-ms"):
            wait = float(ms) / 1000
        elif value := headers.get("Retry-After"):
            value = value.strip()
            seconds = re.fullmatch(r"\d+(\.\d+)?", value)
            wait = float(value) if seconds else parsedate_to_datetime(value).timestamp() - time.time()
        else:
            return None
    except (ValueError, OverflowError):
        return None
    return min(max(wait, 0.0), MAX_RETRY_AFTER) if wait == wait else None  # NaN is not equal to itself


def malformed(endpoint: Endpoint, what: str, body: bytes) -> ModelFailure:
    """Return the failure for an answer that violates the wire format, quoting how the answer begins."""
    start = endpoint.redact(body[:DETAIL_CHARS].decode("utf-8", "replace"))
    return ModelFailure("malformed", endpoint.redact(f"{what}; it begins: {start}"), retry=True)


def generation(spec: Spec, options: Mapping[str, Any]) -> dict[str, Any]:
    """Check the generation parameters in a SPEC (temperature, top_p, max_tokens, seed) and return those given."""
    limits = {"temperature": (0.0, 10.0), "top_p": (0.0, 1.0), "max_tokens": (1, 2**31), "seed": (-(2**63), 2**63 - 1)}
    for key, (low, high) in limits.items():
        if key in options and not low <= options[key] <= high:
            raise UsageError(f"{spec}: {key} must be between {low} and {high}, not {options[key]}")
    if not 0 < options.get("timeout", 1.0) < float("inf"):
        raise UsageError(f"{spec}: timeout must be a positive number of seconds, not {options['timeout']}")
    return {key: options[key] for key in limits if key in options}
