"""An endpoint that speaks Google's Live protocol (BidiGenerateContent); not verified against Google.

It is checked against the types of Google's SDK and a local server.
"""

from __future__ import annotations

import base64
import re
from typing import Any

import msgspec
from msgspec import Struct
from yarl import URL

from overtone.errors import ModelFailure
from overtone.models._live_chat import LiveModel, LiveSession, Parts, pcm_of, rate_of
from overtone.models._live_socket import LiveSocket, SocketEndpoint
from overtone.models._live_turn import LiveTurn
from overtone.models.gemini import PARAMETERS, Content, Part
from overtone.models.http import endpoint_url, malformed
from overtone.models.reply_clock import now
from overtone.schema import Message, Reply, Sound, Usage
from overtone.spec import Spec

DEFAULT_BASE = "wss://generativelanguage.googleapis.com"
DEFAULT_KEY = "GEMINI_API_KEY"
METHOD = "google.ai.generativelanguage.{version}.GenerativeService.BidiGenerateContent"
OUT_RATE = 24_000  # default for audio/pcm without a rate
REFUSALS = re.compile("SAFETY|PROHIBITED|BLOCKLIST|SPII|RECITATION")


class _Transcription(Struct):
    text: str | None = None


class _ServerContent(Struct, rename="camel"):
    model_turn: Content | None = None
    turn_complete: bool | None = None
    turn_complete_reason: str | None = None
    interrupted: bool | None = None
    output_transcription: _Transcription | None = None


class _Count(Struct, rename="camel"):
    modality: str = ""
    token_count: int = 0


class _Usage(Struct, rename="camel"):
    prompt_token_count: int | None = None
    response_token_count: int | None = None
    thoughts_token_count: int | None = None
    prompt_tokens_details: list[_Count] | None = None
    response_tokens_details: list[_Count] | None = None


class _Message(Struct, rename="camel"):
    setup_complete: dict[str, Any] | None = None
    server_content: _ServerContent | None = None
    usage_metadata: _Usage | None = None
    go_away: dict[str, Any] | None = None
    tool_call: dict[str, Any] | None = None
    session_resumption_update: dict[str, Any] | None = None

    @property
    def kind(self) -> str:
        """The name of the field that is set, as the wire format writes it."""
        names = ("setup_complete", "server_content", "go_away", "tool_call", "session_resumption_update")
        found = next((name for name in names if getattr(self, name) is not None), "usage_metadata")
        return re.sub("_(.)", lambda m: m[1].upper(), found)


_decoder = msgspec.json.Decoder(_Message)


def check_key(spec: Spec) -> None:
    """Raise UsageError if the key that a session needs is not set or must not be sent."""
    GeminiLive(spec).key()


class GeminiLive(LiveModel):
    """One model behind Google's Live endpoint: `gemini-live:NAME?…`."""

    rate = 16_000

    def __init__(self, spec: Spec) -> None:
        hint = "gemini-live:NAME, e.g. gemini-live:gemini-2.5-flash-native-audio-latest"
        super().__init__(spec, {}, base=DEFAULT_BASE, key_variable=DEFAULT_KEY, hint=hint)

    def url(self) -> URL:
        found = re.search(r"/(v\d+\w*)/?$", self.base.path)
        method = METHOD.format(version=found[1] if found else "v1beta")
        base = self.base.with_path(self.base.path[: found.start()]) if found else self.base
        return endpoint_url(str(base), f"/ws/{method}")

    def key_header(self, key: str) -> tuple[str, str]:
        return "x-goog-api-key", key

    def rejected(self, failure: ModelFailure, notes: tuple[str, ...]) -> Reply:
        if re.search(r"(?i)api.?key", failure.detail):  # Google closes with the code of a wrong message
            raise ModelFailure("auth", failure.detail, fatal=True)
        raise failure

    def connect(self, endpoint: SocketEndpoint, socket: LiveSocket) -> LiveSession:
        return _Session(self, endpoint, socket)


load = GeminiLive


class _Session:
    """One session of Google's protocol."""

    def __init__(self, model: GeminiLive, endpoint: SocketEndpoint, socket: LiveSocket) -> None:
        self._model, self._endpoint, self.socket = model, endpoint, socket

    # ── what we send ────────────────────────────────────────────────────────────────────────────────────────────────
    async def start(self, instructions: str, speech: bool) -> None:
        model = self._model
        config: dict[str, Any] = {PARAMETERS[key]: value for key, value in model.parameters.items()}
        config["responseModalities"] = ["AUDIO" if speech else "TEXT"]
        if speech and (voice := model.options.get("voice")):
            config["speechConfig"] = {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": voice}}}
        detection: dict[str, Any] = {"disabled": not model.vad}
        if (silence := model.options.get("vad_silence")) is not None:
            detection["silenceDurationMs"] = round(1000 * silence)
        setup: dict[str, Any] = {
            "model": f"models/{model.spec.name.removeprefix('models/')}",
            "generationConfig": config,
            "realtimeInputConfig": {"automaticActivityDetection": detection},
        }
        if speech:
            setup["outputAudioTranscription"] = {}
        if instructions:
            setup["systemInstruction"] = {"parts": [{"text": instructions}]}
        await self.socket.send({"setup": setup})
        while self._read(await self.socket.receive()).setup_complete is None:
            pass

    async def add(self, history: list[Message]) -> None:
        turns = [_content("model" if m.role == "assistant" else "user", m.parts) for m in history]
        if turns:
            await self.socket.send({"clientContent": {"turns": turns, "turnComplete": False}})

    async def speak(self, turn: LiveTurn, before: Parts, after: Parts) -> None:
        async def append(pcm: bytes) -> None:
            data = base64.b64encode(pcm).decode()
            await self._input(turn, {"audio": {"mimeType": f"audio/pcm;rate={self._model.audio_rate}", "data": data}})

        if not turn.pcm:
            turn.note_event("clientContent", sent=True)
            await self.socket.send({"clientContent": {"turns": [_content("user", before)], "turnComplete": True}})
            turn.end()
            return
        if texts := (*before, *after):  # one turn has the words and the clip; the clip is what ends it
            await self.socket.send({"clientContent": {"turns": [_content("user", texts)], "turnComplete": False}})
        if self._model.vad:
            await turn.speak(append)
            await turn.stay_silent(append)
            return
        await self._input(turn, {"activityStart": {}})
        await turn.speak(append)
        await self._input(turn, {"activityEnd": {}})
        turn.end()

    async def _input(self, turn: LiveTurn, event: dict[str, Any]) -> None:
        turn.note_event(f"realtimeInput.{next(iter(event))}", sent=True)
        await self.socket.send({"realtimeInput": event})

    # ── what the server sends ───────────────────────────────────────────────────────────────────────────────────────
    def handle(self, event: bytes, turn: LiveTurn) -> bool:
        found = self._read(event)
        turn.note_event(found.kind)
        if found.usage_metadata is not None:
            turn.usage = _usage(found.usage_metadata)
        if found.go_away is not None:
            turn.notes.append("the server announced the end of the session")
        content = found.server_content
        if content is None:
            return False
        if content.interrupted:
            turn.drop("the server answered before the clip was over; what it said until then was dropped")
            return False
        for part in (content.model_turn.parts if content.model_turn else None) or ():
            self._part(part, turn)
        if content.output_transcription is not None:
            turn.text(content.output_transcription.text or "")
        if not content.turn_complete:
            return False
        turn.done_at = now()
        reason = content.turn_complete_reason or ""
        turn.refused = REFUSALS.search(reason) is not None
        turn.finish = "stop" if reason in ("", "TURN_COMPLETE_REASON_UNSPECIFIED") else reason.lower()
        turn.model = self._model.spec.name
        return turn.sent_at is not None or not turn.pcm

    def _part(self, part: Part, turn: LiveTurn) -> None:
        if part.inline_data is not None and part.inline_data.mime_type.startswith("audio/"):
            turn.noticed_reply()
            turn.sound(pcm_of(part.inline_data.data), rate_of(part.inline_data.mime_type, OUT_RATE))
        if part.text and not part.thought:
            turn.noticed_reply()
            turn.text(part.text)

    def _read(self, event: bytes) -> _Message:
        try:
            return _decoder.decode(event)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise malformed(self._endpoint, f"not a message of the Live protocol ({error})", event) from None


def _content(role: str, parts: Parts) -> dict[str, Any]:
    return {"role": role, "parts": [_part(part) for part in parts]}


def _part(part: str | Sound) -> dict[str, Any]:
    if isinstance(part, Sound):
        return {"inlineData": {"mimeType": "audio/wav", "data": base64.b64encode(part.wav).decode()}}
    return {"text": part}


def _usage(used: _Usage) -> Usage:
    def audio(counts: list[_Count] | None) -> int:
        return sum(count.token_count for count in counts or () if count.modality == "AUDIO")

    return Usage(
        used.prompt_token_count or 0,
        (used.response_token_count or 0) + (used.thoughts_token_count or 0),  # thoughts are billed as output
        audio(used.prompt_tokens_details),
        audio(used.response_tokens_details),
    )
