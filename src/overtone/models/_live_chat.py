"""The common base of realtime models: keep sessions over the turns of a conversation, run one turn, and make its
reply."""

from __future__ import annotations

import asyncio
import binascii
import re
from typing import Any, Protocol

import msgspec
from yarl import URL

from overtone.errors import ModelFailure, UsageError
from overtone.models import OnPiece, Piece
from overtone.models._chat import ChatModel
from overtone.models._live_socket import LiveSocket, SocketEndpoint
from overtone.models._live_turn import LiveTurn
from overtone.models.http import DEFAULT_TIMEOUT, Endpoint
from overtone.schema import Message, Reply, Request, Sound
from overtone.spec import Spec, suggest

KEYS: dict[str, type] = {"pace": str, "turn": str, "vad_silence": float}
CHOICES = {"pace": ("realtime", "fast"), "turn": ("manual", "vad")}
REASON = 1.0  # seconds in which the server may say why it closed the connection
KEPT = 64  # sessions that wait for the next turn of their conversation
Known = tuple[str, str, int]  # item, condition and repeat of a conversation
Parts = tuple[str | Sound, ...]


class LiveSession(Protocol):
    """One connection that speaks a protocol."""

    socket: LiveSocket

    async def start(self, instructions: str, speech: bool) -> None:
        """Configure the session, and wait until the server has accepted that."""

    async def add(self, history: list[Message]) -> None:
        """Add earlier messages of the conversation."""

    async def speak(self, turn: LiveTurn, before: Parts, after: Parts) -> None:
        """Send the user's message, of which `turn` has the clip, and let the model answer."""

    def handle(self, event: bytes, turn: LiveTurn) -> bool:
        """Take in an event of the server; return whether the reply is complete. Raises ModelFailure."""
        ...


class _Kept(msgspec.Struct):
    session: LiveSession
    messages: int  # of the history that the session knows
    speech: bool


class LiveModel(ChatModel):
    """A model behind a realtime endpoint. Subclasses open sessions that speak its protocol."""

    schemes = ("wss", "ws", "https", "http")
    rate = 24_000  # of the sound that is sent, in Hz, unless the SPEC has `audio_rate`
    unsupported: tuple[str, ...] = ()  # generation parameters that the protocol lacks

    def __init__(self, spec: Spec, keys: dict[str, type], *, base: str, key_variable: str, hint: str) -> None:
        super().__init__(spec, {**KEYS, **keys}, base=base, key_variable=key_variable, hint=hint)
        for key, allowed in CHOICES.items():
            if (value := self.options.setdefault(key, allowed[0])) not in allowed:
                raise UsageError(
                    f"{spec}: {key} must be {' or '.join(allowed)}, not {value!r}{suggest(value, allowed)}"
                )
        for name in self.unsupported:
            if name in self.parameters:
                raise UsageError(f"{spec}: this protocol has no {name}; remove it")
        silence = self.options.get("vad_silence")
        if silence is not None and not (self.vad and 0 < silence <= 10):
            raise UsageError(f"{spec}: vad_silence is for turn=vad: seconds of silence that end a turn, at most 10")
        self.audio_rate: int = self.options.get("audio_rate", self.rate)
        self._kept: dict[Known, _Kept] = {}

    @property
    def vad(self) -> bool:
        """Whether the server detects the end of the user's turn."""
        return bool(self.options["turn"] == "vad")

    @property
    def paced(self) -> bool:
        """Whether the clip is sent in real time."""
        return bool(self.options["pace"] == "realtime")

    def describe(self) -> dict[str, Any]:
        """Return what identifies its replies."""
        out: dict[str, Any] = {"kind": self.spec.kind, "model": self.spec.name, **self.parameters}
        kept = ("base_url", "pace", "turn", "vad_silence", "voice")
        out |= {key: self.options[key] for key in kept if key in self.options}
        return out | {"audio_rate": self.audio_rate, "speech": self.speech}

    def connect(self, endpoint: SocketEndpoint, socket: LiveSocket) -> LiveSession:
        """Return a session on an open connection, not yet started."""
        raise NotImplementedError

    async def open(self) -> None:
        if self._endpoint is None:
            key = self.key()
            self._endpoint = SocketEndpoint(
                socket_url(self.url()),
                key_header=self.key_header(key) if key else None,
                secret=key,
                timeout=self.options.get("timeout", DEFAULT_TIMEOUT),
            )
        await self._endpoint.open()

    async def close(self) -> None:
        kept, self._kept = list(self._kept.values()), {}
        for one in kept:
            await one.session.socket.close()
        await super().close()

    async def ask(self, request: Request) -> Reply:
        return await self._ask(request, _ignored)

    async def stream(self, request: Request, on_piece: OnPiece) -> Reply:
        """Ask, and pass on the parts of the reply as they arrive."""
        return await self._ask(request, on_piece)

    async def read_stream(
        self, endpoint: Endpoint, request: Request, speech: bool, notes: tuple[str, ...], on_piece: OnPiece
    ) -> Reply:
        assert isinstance(endpoint, SocketEndpoint)
        *history, message = [m for m in request.messages if m.role != "system"]
        before, sound, after = split(message)
        turn = await asyncio.to_thread(LiveTurn, sound, self.audio_rate, self.paced, on_piece)
        limit = endpoint.timeout + (turn.seconds if self.paced else 0.0)
        session: LiveSession | None = None
        complete = False
        try:
            async with asyncio.timeout(limit):
                session = await self._session(endpoint, request, history, speech)
                await _converse(session, turn, before, after)
            complete = True
        except TimeoutError:
            detail = f"no complete reply from {endpoint!r} in {limit:g} s"
            raise ModelFailure("timeout", detail, retry=True, overload=True) from None
        finally:
            if session is not None and (not complete or request.last):
                await session.socket.close()
        if not request.last:
            await self._keep(request, _Kept(session, len(history) + 2, speech))
        return await asyncio.to_thread(_reply, turn, notes)

    async def _session(
        self, endpoint: SocketEndpoint, request: Request, history: list[Message], speech: bool
    ) -> LiveSession:
        """Return the session of this conversation, or a new one that knows its history."""
        kept = self._kept.pop(known(request), None)
        if kept is not None:
            if not kept.session.socket.closed and (kept.messages, kept.speech) == (len(history), speech):
                return kept.session
            await kept.session.socket.close()
        session = self.connect(endpoint, await endpoint.connect())
        try:
            await session.start("\n".join(m.text for m in request.messages if m.role == "system"), speech)
            await session.add(history)
        except BaseException:
            await session.socket.close()
            raise
        return session

    async def _keep(self, request: Request, kept: _Kept) -> None:
        self._kept[known(request)] = kept
        while len(self._kept) > KEPT:  # a conversation that failed leaves its session behind
            oldest = self._kept.pop(next(iter(self._kept)))
            await oldest.session.socket.close()


def known(request: Request) -> Known:
    """Return what identifies the conversation of a request."""
    return request.key.item, request.key.condition, request.key.repeat


def split(message: Message) -> tuple[Parts, Sound | None, Parts]:
    """Split a message at its last sound, which is the one that is spoken."""
    at = max((n for n, part in enumerate(message.parts) if isinstance(part, Sound)), default=None)
    if at is None:
        return message.parts, None, ()
    sound = message.parts[at]
    assert isinstance(sound, Sound)
    return message.parts[:at], sound, message.parts[at + 1 :]


def socket_url(url: URL) -> URL:
    """Return a URL with the scheme of WebSockets."""
    return url.with_scheme({"http": "ws", "https": "wss"}.get(url.scheme, url.scheme))


def pcm_of(data: str) -> bytes:
    """Decode the sound of one event. Raises ModelFailure."""
    try:
        return binascii.a2b_base64(data.encode("ascii"), strict_mode=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ModelFailure("truncated_audio", f"a piece of speech is not valid base64: {error}", retry=True) from None


def rate_of(mime: str, default: int) -> int:
    """Return the rate in a type such as `audio/pcm;rate=24000`. Raises ModelFailure for an impossible one."""
    found = re.search(r"rate=(-?\d{1,9})", mime)
    return checked_rate(int(found[1]) if found else default)


def checked_rate(rate: int) -> int:
    """Return a rate of the server's sound. Raises ModelFailure for an impossible one."""
    if not 4_000 <= rate <= 192_000:
        raise ModelFailure("malformed", f"the server sends sound at {rate} Hz", retry=True)
    return rate


async def _converse(session: LiveSession, turn: LiveTurn, before: Parts, after: Parts) -> None:
    """Speak and listen at the same time, until the reply is complete."""
    speaking = asyncio.create_task(session.speak(turn, before, after))
    listening = asyncio.create_task(_listen(session, turn))
    try:
        await asyncio.wait({speaking, listening}, return_when=asyncio.FIRST_COMPLETED)
        if speaking.done() and speaking.exception() is not None:  # what the server says may explain it better
            await asyncio.wait({listening}, timeout=REASON)
            if not listening.done():
                speaking.result()
        await listening
    finally:
        for task in (speaking, listening):
            task.cancel()
        await asyncio.gather(speaking, listening, return_exceptions=True)


async def _listen(session: LiveSession, turn: LiveTurn) -> None:
    while True:
        try:
            async with asyncio.timeout(turn.patience()):
                event = await session.socket.receive()
        except TimeoutError:
            if turn.waited_enough:
                turn.notes.append("the server ended the turn before the clip was over")
                return
            continue
        if session.handle(event, turn):
            return


def _reply(turn: LiveTurn, notes: tuple[str, ...]) -> Reply:
    return Reply(
        turn.words,
        audio=turn.speech,
        finish=turn.finish,
        usage=turn.usage,
        model=turn.model,
        notes=(*notes, *turn.notes),
        refused=turn.refused,
        timings=turn.timings(),
        session=turn.session(),
    )


def _ignored(piece: Piece) -> None:
    """Ignore a part of a reply that nobody watches."""
