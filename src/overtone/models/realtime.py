"""An endpoint that speaks OpenAI's Realtime protocol: OpenAI, vllm-omni, sglang-omni, `overtone serve`.

The names of events are those of the released protocol; those of its beta are understood too.
"""

from __future__ import annotations

import base64
from typing import Any

import msgspec
from msgspec import Struct
from yarl import URL

from overtone.errors import ModelFailure
from overtone.models._live_chat import LiveModel, LiveSession, Parts, checked_rate, pcm_of
from overtone.models._live_socket import LiveSocket, SocketEndpoint
from overtone.models._live_turn import LiveTurn
from overtone.models.endpoint_errors import problem_of
from overtone.models.http import endpoint_url, malformed
from overtone.models.reply_clock import now
from overtone.schema import Message, Sound, Usage
from overtone.spec import Spec

DEFAULT_BASE = "wss://api.openai.com/v1"
DEFAULT_KEY = "OPENAI_API_KEY"
SOUND = {"response.output_audio.delta", "response.audio.delta"}
TRANSCRIPT = {"response.output_audio_transcript.delta", "response.audio_transcript.delta"}
TEXT = {"response.output_text.delta", "response.text.delta", *TRANSCRIPT}
# Errors that say that something has already happened which we asked for.
HARMLESS = {"conversation_already_has_active_response", "response_cancel_not_active"}
_STATUS = {"invalid_api_key": 401, "model_not_found": 404, "rate_limit_exceeded": 429, "insufficient_quota": 429}
_BY_TYPE = {"server_error": 500, "rate_limit_error": 429, "authentication_error": 401, "tokens": 429, "requests": 429}


class _Error(Struct):
    type: str | None = None
    code: str | None = None
    message: str | None = None


class _Format(Struct):
    type: str | None = None
    rate: int | None = None


class _Side(Struct):
    format: _Format | str | None = None


class _Audio(Struct):
    input: _Side | None = None
    output: _Side | None = None


class _Configured(Struct):
    model: str | None = None
    audio: _Audio | None = None


class _Details(Struct):
    reason: str | None = None
    error: _Error | None = None


class _Tokens(Struct):
    audio_tokens: int | None = None


class _Usage(Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_token_details: _Tokens | None = None
    output_token_details: _Tokens | None = None


class _Content(Struct):
    text: str | None = None
    transcript: str | None = None


class _Item(Struct):
    content: list[_Content] | None = None


class _Response(Struct):
    id: str | None = None
    status: str | None = None
    status_details: _Details | None = None
    output: list[_Item] | None = None
    usage: _Usage | None = None


class _Event(Struct):
    type: str
    delta: msgspec.Raw = msgspec.Raw()
    response: _Response | None = None
    response_id: str | None = None
    session: _Configured | None = None
    error: _Error | None = None


_decoder = msgspec.json.Decoder(_Event)


def check_key(spec: Spec) -> None:
    """Raise UsageError if the key that a session needs is not set or must not be sent."""
    Realtime(spec).key()


class Realtime(LiveModel):
    """One model behind a realtime endpoint: `realtime:NAME?base_url=wss://…`."""

    unsupported = ("temperature", "top_p", "seed")

    def __init__(self, spec: Spec) -> None:
        hint = "realtime:NAME, e.g. realtime:gpt-realtime"
        super().__init__(spec, {}, base=DEFAULT_BASE, key_variable=DEFAULT_KEY, hint=hint)

    def url(self) -> URL:
        path = "/realtime"
        url = endpoint_url(str(self.base), "" if self.base.path.rstrip("/").endswith(path) else path)
        return url.update_query(model=self.spec.name)

    def key_header(self, key: str) -> tuple[str, str]:
        return "Authorization", f"Bearer {key}"

    def connect(self, endpoint: SocketEndpoint, socket: LiveSocket) -> LiveSession:
        return _Session(self, endpoint, socket)


load = Realtime


class _Session:
    """One session of OpenAI's protocol."""

    def __init__(self, model: Realtime, endpoint: SocketEndpoint, socket: LiveSocket) -> None:
        self._model, self._endpoint, self.socket = model, endpoint, socket
        self._out_rate = 24_000
        self._name = ""
        self._response = ""  # the id of the response that is being made
        self._started = False
        self._detecting: bool | None = None  # what the server does when it notices the end of a turn; see `_detection`

    # ── what we send ────────────────────────────────────────────────────────────────────────────────────────────────
    async def start(self, instructions: str, speech: bool) -> None:
        await self._wait_for("session.created")
        self._detecting = True if self._model.vad else None
        form = {"type": "audio/pcm", "rate": self._model.audio_rate}
        session: dict[str, Any] = {
            "type": "realtime",
            "output_modalities": ["audio" if speech else "text"],
            "audio": {"input": {"format": form, "turn_detection": self._detection(self._detecting)}},
        }
        if speech:
            session["audio"]["output"] = {"format": {"type": "audio/pcm", "rate": self._out_rate}}
            if voice := self._model.options.get("voice"):
                session["audio"]["output"]["voice"] = voice
        if instructions:
            session["instructions"] = instructions
        if most := self._model.parameters.get("max_tokens"):
            session["max_output_tokens"] = most
        self._started = True
        await self.socket.send({"type": "session.update", "session": session})
        await self._wait_for("session.updated")

    def _detection(self, answers: bool | None) -> dict[str, Any] | None:
        """Return the setting of the server's VAD: off (None), or on, and whether the end of a turn starts a reply."""
        if answers is None:
            return None
        out: dict[str, Any] = {"type": "server_vad", "create_response": answers, "interrupt_response": True}
        if (silence := self._model.options.get("vad_silence")) is not None:
            out["silence_duration_ms"] = round(1000 * silence)
        return out

    async def _wait_for(self, kind: str) -> None:
        while (event := self._read(await self.socket.receive())).type != kind:
            if event.type == "error":
                raise self._refused(event.error)
        self._configured(event.session)

    async def add(self, history: list[Message]) -> None:
        for message in history:
            await self._add_item(message.role, message.parts)

    async def _add_item(self, role: str, parts: Parts) -> None:
        content: list[dict[str, Any]] = []
        for part in parts:
            if isinstance(part, Sound):
                pcm = LiveTurn(part, self._model.audio_rate, False, lambda piece: None).pcm
                content.append({"type": "input_audio", "audio": base64.b64encode(pcm).decode()})
            else:
                content.append({"type": "output_text" if role == "assistant" else "input_text", "text": part})
        item = {"type": "message", "role": role, "content": content}
        await self.socket.send({"type": "conversation.item.create", "item": item})

    async def speak(self, turn: LiveTurn, before: Parts, after: Parts) -> None:
        async def append(pcm: bytes) -> None:
            turn.note_event("input_audio_buffer.append", sent=True)
            await self.socket.send({"type": "input_audio_buffer.append", "audio": base64.b64encode(pcm).decode()})

        async def send(event: dict[str, Any]) -> None:
            turn.note_event(event["type"], sent=True)
            await self.socket.send(event)

        # A VAD hears no end of a clip without a voice. Words after the clip belong to the question.
        detecting = (not after) if self._model.vad and turn.voiced else None
        if self._model.vad and turn.pcm and detecting != self._detecting:
            self._detecting = detecting
            sound = {"input": {"turn_detection": self._detection(detecting)}}
            await send({"type": "session.update", "session": {"type": "realtime", "audio": sound}})
        if before:
            await self._add_item("user", before)
        if turn.pcm:
            await turn.speak(append)
        if turn.pcm and detecting is not None:
            await turn.stay_silent(append)
        elif turn.pcm:
            turn.end()
            await send({"type": "input_audio_buffer.commit"})
        if after:
            await self._add_item("user", after)
        if not (turn.pcm and detecting):
            if not (turn.pcm and detecting is not None):
                turn.end()
            await send({"type": "response.create"})

    # ── what the server sends ───────────────────────────────────────────────────────────────────────────────────────
    def handle(self, event: bytes, turn: LiveTurn) -> bool:
        found = self._read(event)
        turn.note_event(found.type)
        if found.type in SOUND | TEXT:
            if not self._response and found.response_id:
                self._response = found.response_id
            if found.response_id in (None, self._response):
                delta = self._text(found, event)
                turn.sound(pcm_of(delta), self._out_rate) if found.type in SOUND else turn.text(delta)
        elif found.type == "response.created":
            self._response = (found.response.id if found.response else None) or ""
        elif found.type == "response.done":
            if found.response is None:
                raise malformed(self._endpoint, "response.done without a response", event)
            if found.response.id in (None, self._response) or not self._response:
                return self._done(found.response, turn)
        elif found.type == "input_audio_buffer.speech_started":
            turn.noticed_start()
        elif found.type == "input_audio_buffer.speech_stopped":
            turn.noticed_end()
        elif found.type == "session.updated":
            self._configured(found.session)
        elif found.type == "error" and (found.error is None or found.error.code not in HARMLESS):
            raise self._refused(found.error)
        return False

    def _read(self, event: bytes) -> _Event:
        try:
            return _decoder.decode(event)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise malformed(self._endpoint, f"not an event of the Realtime protocol ({error})", event) from None

    def _text(self, event: _Event, data: bytes) -> str:
        try:
            return msgspec.json.decode(event.delta, type=str)
        except msgspec.DecodeError:
            raise malformed(self._endpoint, f"{event.type} without a delta", data) from None

    def _configured(self, session: _Configured | None) -> None:
        """Check the formats that the server has accepted. Raises ModelFailure if it hears another rate than is sent."""
        if session is None:
            return
        self._name = session.model or self._name
        given = session.audio or _Audio()
        heard, spoken = (side.format if side is not None else None for side in (given.input, given.output))
        rate = self._model.audio_rate
        if self._started and isinstance(heard, _Format) and heard.rate not in (None, rate):
            detail = f"the server takes sound at {heard.rate} Hz, not {rate} Hz; give audio_rate={heard.rate}"
            raise ModelFailure("rejected", detail, fatal=True)
        if isinstance(spoken, _Format) and spoken.rate is not None:
            self._out_rate = checked_rate(spoken.rate)

    def _done(self, response: _Response, turn: LiveTurn) -> bool:
        """Take in the end of a response; return whether it is the reply to the whole turn."""
        self._response = ""
        status, details = response.status or "completed", response.status_details or _Details()
        if status == "failed":
            raise self._refused(details.error)
        if status == "cancelled":
            if details.reason == "turn_detected" and self._model.vad:
                turn.drop("the server answered before the clip was over; what it said until then was dropped")
                return False
            raise ModelFailure("server", f"the server cancelled the reply ({details.reason})", retry=True)
        if turn.over_at is None:
            raise ModelFailure("malformed", "the server answered before the turn was over", retry=True)
        turn.done_at = now()
        contents = [content for item in response.output or () for content in item.content or ()]
        turn.whole_text("".join(content.transcript or content.text or "" for content in contents))
        used = response.usage or _Usage()
        turn.usage = Usage(
            used.input_tokens or 0,
            used.output_tokens or 0,
            (used.input_token_details or _Tokens()).audio_tokens or 0,
            (used.output_token_details or _Tokens()).audio_tokens or 0,
        )
        turn.model = self._name
        turn.refused = details.reason == "content_filter"
        turn.finish = {"max_output_tokens": "length", None: "stop"}.get(details.reason, details.reason or "stop")
        return not turn.detected or turn.rest_was_heard

    def _refused(self, error: _Error | None) -> ModelFailure:
        """Return the failure for an error event, or for a response that failed."""
        found = error or _Error()
        status = _STATUS.get(found.code or "") or _BY_TYPE.get(found.type or "") or (400 if error else 500)
        problem = problem_of(msgspec.json.encode({"error": found}))
        return self._endpoint.refusal(status, problem, what="the server reports an error")
