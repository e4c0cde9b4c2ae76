"""One session of OpenAI's Realtime protocol on the server side, over any model that answers in pieces.

The session keeps the conversation, detects turns or waits for the client to end them, and streams one response at a
time. It does no networking: it gets the client's events and sends its own through a function.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol

from overtone.echat.talk import realtime_events as wire
from overtone.echat.talk.dialogue import Asked, Floats, Message
from overtone.echat.talk.realtime_events import ClientEvent, Content, Refused, Settings, new_id
from overtone.echat.talk.voice_detection import VoiceDetection
from overtone.errors import AudioError
from overtone.server_guard import Problem

MAX_SECONDS = 600.0  # of sound in the buffer
MAX_ITEMS = 200  # of a conversation


class Whole(Protocol):
    """A whole answer; see `answer.Answer`."""

    text: str
    codes: tuple[int, ...]
    finish: str
    heard: int
    heard_sound: int
    said: int


class AnswerPiece(Protocol):
    """A piece of an answer; see `answer.Piece`."""

    text: str
    sound: Floats | None

    @property
    def whole(self) -> Whole | None: ...


Send = Callable[[dict[str, Any]], Awaitable[None]]
Answers = Callable[[Asked], AsyncIterator[Any]]


class _Stored:
    """An item of the conversation: its role, and what the model gets of it."""

    def __init__(self, role: str, parts: list[Any], content: list[dict[str, Any]]) -> None:
        self.role, self.parts, self.content = role, parts, content

    def json(self, name: str, status: str = "completed") -> dict[str, Any]:
        shown = [{k: v for k, v in part.items() if k != "audio"} for part in self.content]
        return {"id": name, "object": "realtime.item", "type": "message", "role": self.role, "status": status,
                "content": shown}  # fmt: skip


class RealtimeSession:
    """The state of one session. `answer` streams the model's answer to a conversation."""

    def __init__(self, send: Send, answer: Answers, name: str) -> None:
        self._out, self._answer, self._name = send, answer, name
        self._settings = Settings()
        self._items: OrderedDict[str, _Stored] = OrderedDict()
        self._buffer = bytearray()
        self._begins = 0  # the sample of the session at which the buffer begins
        self._ears = self._new_ears()
        self._turn = new_id("item")  # the id of the item that the buffer will become
        self._working: asyncio.Task[None] | None = None
        self._why_cancelled = ""

    async def _send(self, kind: str, **fields: Any) -> None:
        await self._out({"type": kind, "event_id": new_id("event"), **fields})

    async def open(self) -> None:
        """Send the event that begins a session."""
        await self._send("session.created", session=self._settings.json(self._name))

    async def close(self) -> None:
        """Stop the response that is being made, if any."""
        await self._cancel("client_cancelled")

    async def take(self, data: str | bytes) -> None:
        """Take in an event of the client. An invalid one is answered with an error event."""
        event: ClientEvent | None = None
        try:
            event = wire.parse(data)
            take = self._takes().get(event.type)
            if take is None:
                raise Refused(f"unknown event type {event.type[:60]!r}", param="type")
            await take(event)
        except Refused as error:
            name = event.event_id if event is not None else None
            await self._error(str(error), error.kind, error.code, error.param, name)

    async def _error(
        self, message: str, kind: str, code: str | None = None, param: str = "", event: str | None = None
    ) -> None:
        error = {"message": message, "type": kind, "code": code, "param": param or None, "event_id": event}
        await self._send("error", error=error)

    def _takes(self) -> dict[str, Callable[[ClientEvent], Awaitable[None]]]:
        return {
            "session.update": self._update,
            "input_audio_buffer.append": self._append,
            "input_audio_buffer.commit": self._commit,
            "input_audio_buffer.clear": self._clear,
            "conversation.item.create": self._create_item,
            "conversation.item.delete": self._delete_item,
            "response.create": self._create_response,
            "response.cancel": self._cancel_response,
        }

    # ── settings and items ──────────────────────────────────────────────────────────────────────────────────────────
    async def _update(self, event: ClientEvent) -> None:
        if event.session is None:
            raise Refused("session.update without a session", "missing_required_parameter", "session")
        rate = self._settings.rate
        self._settings.change(event.session)
        if rate != self._settings.rate and self._buffer:
            raise Refused("the input rate cannot change while the buffer has sound", param="session.audio.input.format")
        self._ears = self._new_ears()
        await self._send("session.updated", session=self._settings.json(self._name))

    def _new_ears(self) -> VoiceDetection | None:
        found = self._settings.detection
        return None if found is None else VoiceDetection(
            self._settings.rate, found.threshold, found.silence_duration_ms
        )  # fmt: skip

    async def _create_item(self, event: ClientEvent) -> None:
        item = event.item
        if item is None or item.type != "message":
            raise Refused("only items of the type message are supported", param="item.type")
        if len(self._items) >= MAX_ITEMS:
            raise Refused(f"a conversation has at most {MAX_ITEMS} items")
        parts = [self._part(content) for content in item.content]
        kept = [{k: v for k, v in (("type", c.type), ("text", c.text)) if v} for c in item.content]
        await self._add(item.id or new_id("item"), _Stored(item.role, parts, kept))

    def _part(self, content: Content) -> Any:
        if content.type in ("input_text", "output_text", "text"):
            return content.text
        if content.type == "input_audio":
            return wire.wave_of(wire.pcm_of(content.audio, "item.content"), self._settings.rate)
        if content.type == "output_audio":
            return content.transcript
        raise Refused(f"unknown content type {content.type[:40]!r}", param="item.content")

    async def _add(self, name: str, item: _Stored) -> None:
        before = next(reversed(self._items), None)
        self._items[name] = item
        for kind in ("conversation.item.added", "conversation.item.done"):
            await self._send(kind, previous_item_id=before, item=item.json(name))

    async def _delete_item(self, event: ClientEvent) -> None:
        if event.item_id is None or event.item_id not in self._items:
            raise Refused("there is no such item", "item_not_found", "item_id")
        del self._items[event.item_id]
        await self._send("conversation.item.deleted", item_id=event.item_id)

    # ── the user's sound ────────────────────────────────────────────────────────────────────────────────────────────
    async def _append(self, event: ClientEvent) -> None:
        pcm = wire.pcm_of(event.audio)
        if (len(self._buffer) + len(pcm)) / 2 / self._settings.rate > MAX_SECONDS:
            raise Refused(f"the buffer has at most {MAX_SECONDS:g} s of sound; commit or clear it", param="audio")
        self._buffer += pcm
        detection = self._settings.detection
        if self._ears is None or detection is None:
            return
        for change, sample in self._ears.add(pcm):
            at = round(1000 * sample / self._settings.rate)
            if change == "started":
                await self._send("input_audio_buffer.speech_started", audio_start_ms=at, item_id=self._turn)
                if detection.interrupt_response:
                    await self._cancel("turn_detected")
                self._forget_before(sample - round(detection.prefix_padding_ms / 1000 * self._settings.rate))
            else:
                await self._send("input_audio_buffer.speech_stopped", audio_end_ms=at, item_id=self._turn)
                await self._commit_buffer()
                if detection.create_response:
                    await self._respond(wire.Wanted())

    def _forget_before(self, sample: int) -> None:
        """Drop what the buffer has before a turn, as far as it is not its padding."""
        if (extra := sample - self._begins) > 0:
            del self._buffer[: extra * 2]
            self._begins += extra

    async def _commit(self, event: ClientEvent) -> None:
        await self._commit_buffer()

    async def _commit_buffer(self) -> None:
        if len(self._buffer) / 2 < 0.1 * self._settings.rate:
            raise Refused("the buffer has less than 0.1 s of sound", "input_audio_buffer_commit_empty")
        name, before = self._turn, next(reversed(self._items), None)
        wave = await asyncio.to_thread(wire.wave_of, bytes(self._buffer), self._settings.rate)
        self._reset_buffer()
        await self._send("input_audio_buffer.committed", item_id=name, previous_item_id=before)
        await self._add(name, _Stored("user", [wave], [{"type": "input_audio", "transcript": None}]))

    async def _clear(self, event: ClientEvent) -> None:
        self._reset_buffer()
        self._ears = self._new_ears()
        await self._send("input_audio_buffer.cleared")

    def _reset_buffer(self) -> None:
        self._begins += len(self._buffer) // 2
        self._buffer.clear()
        self._turn = new_id("item")

    # ── the response ────────────────────────────────────────────────────────────────────────────────────────────────
    async def _create_response(self, event: ClientEvent) -> None:
        await self._respond(event.response or wire.Wanted())

    async def _cancel_response(self, event: ClientEvent) -> None:
        if not self._responding:
            raise Refused("there is no response to cancel", "response_cancel_not_active")
        await self._cancel("client_cancelled")

    @property
    def _responding(self) -> bool:
        return self._working is not None and not self._working.done()

    async def _cancel(self, reason: str) -> None:
        if self._working is not None and not self._working.done():
            self._why_cancelled = reason
            self._working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._working

    async def _respond(self, wanted: wire.Wanted) -> None:
        if self._responding:
            raise Refused("a response is being made already", "conversation_already_has_active_response")
        if not self._items:
            raise Refused("the conversation is empty; send an item or audio first")
        speech = self._settings.speech if wanted.output_modalities is None else "audio" in wanted.output_modalities
        most = self._settings.max_tokens if wanted.max_output_tokens is None else wire.tokens(wanted.max_output_tokens)
        instructions = self._settings.instructions if wanted.instructions is None else wanted.instructions
        messages = [Message("system", (instructions,))] if instructions else []
        messages += [Message(item.role, tuple(item.parts)) for item in self._items.values()]  # type: ignore[arg-type]
        asked = Asked(tuple(messages), speech=speech, max_text=most)
        response = _Response(self._send, speech)
        await response.begin(next(reversed(self._items)))
        self._working = asyncio.create_task(self._make(response, asked))
        await asyncio.sleep(0)  # a task that is cancelled before it starts would not end its response

    async def _make(self, response: _Response, asked: Asked) -> None:
        """Stream one response, and always end it."""
        self._why_cancelled = ""
        try:
            async with contextlib.aclosing(self._answer(asked)) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    await response.add(piece)
        except asyncio.CancelledError:
            await response.end("cancelled", {"type": "cancelled", "reason": self._why_cancelled or "client_cancelled"})
            self._keep(response)
            raise
        except (Problem, AudioError) as problem:
            kind = "invalid_request_error" if getattr(problem, "status", 400) < 500 else "server_error"
            error = {"type": kind, "code": getattr(problem, "code", "") or None, "message": str(problem)}
            await response.end("failed", {"type": "failed", "error": error})
            return
        cut = response.whole is not None and response.whole.finish == "length"
        details = {"type": "incomplete", "reason": "max_output_tokens"} if cut else None
        await response.end("incomplete" if cut else "completed", details)
        self._keep(response)

    def _keep(self, response: _Response) -> None:
        codes = response.whole.codes if response.whole is not None else ()
        parts: list[Any] = [response.words, *([codes] if codes else [])]
        self._items[response.item] = _Stored("assistant", parts, [response.content()])


class _Response:
    """One response on its way out."""

    def __init__(self, send: Callable[..., Awaitable[None]], speech: bool) -> None:
        self._send, self._speech = send, speech
        self.id, self.item = new_id("resp"), new_id("item")
        self.words = ""
        self.whole: Whole | None = None
        self._place = {"response_id": self.id, "item_id": self.item, "output_index": 0, "content_index": 0}
        self._of_item = {"response_id": self.id, "output_index": 0}

    def content(self) -> dict[str, Any]:
        if self._speech:
            return {"type": "output_audio", "transcript": self.words}
        return {"type": "output_text", "text": self.words}

    def _part(self, words: str) -> dict[str, Any]:
        return {"type": "audio", "transcript": words} if self._speech else {"type": "text", "text": words}

    def _json(self, status: str) -> dict[str, Any]:
        modalities = ["audio" if self._speech else "text"]
        return {"id": self.id, "object": "realtime.response", "status": status, "status_details": None, "output": [],
                "output_modalities": modalities, "usage": None}  # fmt: skip

    def _message(self, status: str, content: list[dict[str, Any]]) -> dict[str, Any]:
        return {"id": self.item, "object": "realtime.item", "type": "message", "role": "assistant", "status": status,
                "content": content}  # fmt: skip

    async def begin(self, before: str) -> None:
        await self._send("response.created", response=self._json("in_progress"))
        item = self._message("in_progress", [])
        await self._send("response.output_item.added", **self._of_item, item=item)
        await self._send("conversation.item.added", previous_item_id=before, item=item)
        await self._send("response.content_part.added", **self._place, part=self._part(""))

    async def add(self, piece: AnswerPiece) -> None:
        if piece.text:
            self.words += piece.text
            kind = "output_audio_transcript" if self._speech else "output_text"
            await self._send(f"response.{kind}.delta", **self._place, delta=piece.text)
        if piece.sound is not None and len(piece.sound):
            await self._send("response.output_audio.delta", **self._place, delta=wire.delta_of(piece.sound))
        self.whole = piece.whole or self.whole

    async def end(self, status: str, details: dict[str, Any] | None) -> None:
        ended = "completed" if status == "completed" else "incomplete"
        if self._speech:
            await self._send("response.output_audio.done", **self._place)
            await self._send("response.output_audio_transcript.done", **self._place, transcript=self.words)
        else:
            await self._send("response.output_text.done", **self._place, text=self.words)
        await self._send("response.content_part.done", **self._place, part=self._part(self.words))
        item = self._message(ended, [self.content()])
        await self._send("response.output_item.done", **self._of_item, item=item)
        await self._send("conversation.item.done", previous_item_id=None, item=item)
        response = self._json(status) | {"status_details": details, "output": [item], "usage": self._usage()}
        await self._send("response.done", response=response)

    def _usage(self) -> dict[str, Any] | None:
        if self.whole is None:
            return None
        heard, said, spoken = self.whole.heard, self.whole.said, len(self.whole.codes)
        return {
            "total_tokens": heard + said + spoken,
            "input_tokens": heard,
            "output_tokens": said + spoken,
            "input_token_details": {
                "audio_tokens": self.whole.heard_sound,
                "text_tokens": heard - self.whole.heard_sound,
            },
            "output_token_details": {"audio_tokens": spoken, "text_tokens": said},
        }
