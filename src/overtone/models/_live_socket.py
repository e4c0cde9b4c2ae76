"""A WebSocket to a realtime model: JSON events out and in, with the key in a header and every failure as a
ModelFailure."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import msgspec

from overtone.errors import ModelFailure
from overtone.models.endpoint_errors import problem_of
from overtone.models.http import CONNECT_TIMEOUT, Endpoint, retry_after, shown

MAX_FRAME_BYTES = 16 * 2**20
HEARTBEAT = 20.0  # seconds between pings; a peer that is gone without a word is noticed after 1.5 times this
CLOSE_SECONDS = 2.0
# What a server means by closing, as the HTTP status that says the same.
_STATUS = {1003: 400, 1007: 400, 1008: 400, 1009: 413, 1011: 500, 1012: 503, 1013: 503}

_encode = msgspec.json.Encoder().encode


class LiveSocket:
    """One open connection. Not for several tasks that receive; several may send."""

    def __init__(self, endpoint: SocketEndpoint, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._endpoint, self._socket = endpoint, socket

    @property
    def closed(self) -> bool:
        return self._socket.closed

    async def send(self, event: dict[str, Any]) -> None:
        """Send one event, and wait while the peer takes no more. Raises ModelFailure if the connection is lost."""
        try:
            await self._socket.send_str(_encode(event).decode())
        except (aiohttp.ClientError, OSError) as error:
            failure = self._lost(error)
        else:
            return
        raise failure  # outside the handler: aiohttp's exceptions contain the key

    async def receive(self) -> bytes:
        """Return the next event as JSON. Raises ModelFailure if the connection ends or the peer sends something
        else."""
        message = await self._socket.receive()
        if message.type == aiohttp.WSMsgType.TEXT:
            text: str = message.data
            return self._endpoint.without_key(text.encode("utf-8", "backslashreplace"))
        if message.type == aiohttp.WSMsgType.BINARY:
            # Google sends its JSON in binary frames.
            return self._endpoint.without_key(bytes(message.data))
        if message.type == aiohttp.WSMsgType.ERROR:
            raise self._lost(message.data)
        raise self._ended(message.extra)

    async def close(self) -> None:
        """Close the connection, so that the server stops working on the reply."""
        if not self._socket.closed:
            await self._socket.close()

    def _lost(self, error: BaseException | None) -> ModelFailure:
        where = shown(self._endpoint.url)
        if isinstance(error, aiohttp.WebSocketError):
            if error.code == aiohttp.WSCloseCode.MESSAGE_TOO_BIG:
                return ModelFailure("too_large", f"{where} sent a frame over {MAX_FRAME_BYTES >> 20} MB")
            return ModelFailure("malformed", self._endpoint.redact(f"{where} broke the protocol: {error}"), retry=True)
        if isinstance(error, aiohttp.ServerTimeoutError | TimeoutError):
            return ModelFailure("connection", f"{where} no longer answers pings", retry=True)
        why = self._endpoint.redact(str(error or "closed"))
        return ModelFailure("connection", f"the connection to {where} was lost: {why}", retry=True)

    def _ended(self, reason: Any) -> ModelFailure:
        code, where = self._socket.close_code, shown(self._endpoint.url)
        if (error := self._socket.exception()) is not None:
            return self._lost(error)
        text = reason if isinstance(reason, str) else ""
        if code in _STATUS:
            what = f"the connection was closed with code {code}"
            return self._endpoint.refusal(_STATUS[code], problem_of(text.encode()), where=where, what=what)
        said = f": {self._endpoint.redact(text)}" if text else ""
        return ModelFailure("connection", f"{where} closed before the reply was complete ({code}{said})", retry=True)


class SocketEndpoint(Endpoint):
    """Opens WebSockets to one URL. A redirect is refused, because the key would go along with it."""

    async def open(self) -> None:
        self._proxy(self.url)
        if self._session is None:
            trace = aiohttp.TraceConfig()
            trace.on_request_redirect.append(self._refuse_redirect)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(sock_connect=min(CONNECT_TIMEOUT, self.timeout)),
                cookie_jar=aiohttp.DummyCookieJar(),
                trace_configs=[trace],
            )

    async def connect(self) -> LiveSocket:
        """Open a connection. Raises ModelFailure, without secrets in its text."""
        if self._session is None:
            raise RuntimeError("the endpoint is not open")
        try:
            async with asyncio.timeout(min(CONNECT_TIMEOUT, self.timeout)):
                socket = await self._session.ws_connect(
                    self.url,
                    headers=self._headers,
                    proxy=self._proxy(self.url),
                    heartbeat=HEARTBEAT,
                    max_msg_size=MAX_FRAME_BYTES,
                    timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_SECONDS),
                )
        except aiohttp.WSServerHandshakeError as error:
            wait = retry_after(error.headers) if error.headers else None
            failure = self.refusal(error.status, problem_of(b""), wait, shown(self.url))
            if error.status < 400 or error.status == 426:
                failure = ModelFailure("rejected", f"{shown(self.url)} is not a WebSocket; check base_url", fatal=True)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            failure = self._failure(error)
        else:
            return LiveSocket(self, socket)
        raise failure  # outside the handler: aiohttp's exceptions contain the key

    def without_key(self, text: bytes) -> bytes:
        """Remove the key from an event that repeats it, because replies are stored and runs are shared."""
        return self._without_key(text)

    async def _refuse_redirect(self, *_: object) -> None:
        detail = f"{shown(self.url)} redirects; give the address that it redirects to as base_url"
        raise ModelFailure("rejected", detail, fatal=True)
