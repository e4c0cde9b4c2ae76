"""OpenAI's chat completions format on the server side: parse request bodies, and write answers and chunks as JSON.

This module does no networking.
"""

from __future__ import annotations

import base64
import binascii
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import msgspec
import numpy as np
from msgspec import UNSET, Struct

from overtone import audio
from overtone.echat.net.config import RATE as HEARD
from overtone.echat.talk.answer import Answer
from overtone.echat.talk.dialogue import Asked, Floats, Message, to_wave
from overtone.echat.talk.streaming_speech import RATE
from overtone.errors import AudioError
from overtone.paths import shown
from overtone.server_guard import Problem

FORMATS = ("wav", "pcm16")  # pcm16: 24 kHz, mono, little-endian
MAX_SECONDS = 600.0  # audio per request; a few compressed kilobytes can contain hours of silence
REMEMBERED = 256  # spoken replies that a later request may refer to
EXPIRES = 3600  # seconds
_REFUSED: dict[str, tuple[object, ...]] = {  # unsupported keys, and values of them that have no effect
    "tools": (None, []),
    "functions": (None, []),
    "response_format": (None, {"type": "text"}),
    "logprobs": (None, False),
    "prediction": (None,),
    "web_search_options": (None,),
    "stop": (None, [], ""),
    "logit_bias": (None, {}),
    "frequency_penalty": (None, 0),
    "presence_penalty": (None, 0),
}
_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}


class _Data(Struct):
    data: str
    format: str = "wav"


class _Url(Struct):
    url: str


class _Part(Struct):
    type: str
    text: str = ""
    input_audio: _Data | None = None
    audio_url: _Url | None = None


class _Reference(Struct):
    id: str


class _Message(Struct):
    role: str
    content: str | list[_Part] | None = None
    audio: _Reference | None = None


class _Spoken(Struct):
    format: str = "wav"


class _StreamOptions(Struct):
    include_usage: bool = False


class Body(Struct):
    """A request for a completion. OpenAI's other keys are ignored."""

    model: str
    messages: list[_Message]
    modalities: list[str] | None = None
    audio: _Spoken | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    seed: int | None = None
    n: int | None = None
    tools: Any = UNSET
    functions: Any = UNSET
    response_format: Any = UNSET
    logprobs: Any = UNSET
    prediction: Any = UNSET
    web_search_options: Any = UNSET
    stop: Any = UNSET
    logit_bias: Any = UNSET
    frequency_penalty: Any = UNSET
    presence_penalty: Any = UNSET

    @property
    def speech(self) -> bool:
        """Whether speech is requested."""
        return "audio" in (self.modalities or ())

    @property
    def format(self) -> str:
        """The requested audio format."""
        return self.audio.format if self.audio else "wav"


_decoder = msgspec.json.Decoder(Body)


class Memory:
    """The codes of recent spoken replies by id, so that a dialogue's history can include the model's speech."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[float, str, tuple[int, ...]]] = OrderedDict()

    def keep(self, name: str, text: str, codes: tuple[int, ...]) -> None:
        """Store a reply, dropping the oldest if there are too many."""
        self._kept[name] = (time.monotonic() + EXPIRES, text, codes)
        while len(self._kept) > REMEMBERED:
            self._kept.popitem(last=False)

    def find(self, name: str) -> tuple[str, tuple[int, ...]] | None:
        """Return a reply's text and codes, or None if it is unknown or expired."""
        until, text, codes = self._kept.get(name, (0.0, "", ()))
        return (text, codes) if until > time.monotonic() else None


def parse(data: bytes, served: str) -> Body:
    """Parse and check a request's body. Raises Problem."""
    try:
        body = _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Problem(400, f"the body is not a valid chat completion request: {error}") from None
    if body.model != served:
        message = f"unknown model {shown(body.model[:100])!r}; this server has {served!r}"
        raise Problem(404, message, code="model_not_found", param="model")
    for key, harmless in _REFUSED.items():
        if (value := getattr(body, key)) is not UNSET and value not in harmless:
            raise Problem(400, f"{key} is not supported by this model; remove it", param=key)
    _check(body)
    return body


def _check(body: Body) -> None:
    for name, value, low, high in (
        ("temperature", body.temperature, 0.0, 2.0),
        ("top_p", body.top_p, 0.001, 1.0),
        ("max_tokens", body.max_tokens, 1, 1_000_000),
        ("max_completion_tokens", body.max_completion_tokens, 1, 1_000_000),
        ("n", body.n, 1, 1),
    ):
        if value is not None and not low <= value <= high:
            wanted = "must be 1" if low == high else f"must be between {low:g} and {high:g}"
            raise Problem(400, f"{name} {wanted}, not {str(value)[:40]}", param=name)
    for modality in body.modalities or ():
        if modality not in ("text", "audio"):
            raise Problem(400, f"modalities must be text or audio, not {shown(modality[:40])!r}", param="modalities")
    if body.speech and body.format not in FORMATS:
        raise Problem(
            400, f"audio.format must be {' or '.join(FORMATS)}, not {shown(body.format[:40])!r}", param="audio.format"
        )
    if body.speech and body.stream and body.format != "pcm16":
        raise Problem(400, "audio.format must be pcm16 for a streamed answer", param="audio.format")


def asked(body: Body, memory: Memory) -> Asked:
    """Convert a body to a request for the model. Raises Problem for an unusable message or audio."""
    messages: list[Message] = []
    left = MAX_SECONDS
    for at, message in enumerate(body.messages):
        messages.append(_message(message, at, memory, left))
        left -= sum(len(part) / HEARD for part in messages[-1].parts if isinstance(part, np.ndarray))
    return Asked(
        tuple(messages),
        speech=body.speech,
        seed=body.seed or 0,
        temperature=body.temperature,
        top_p=body.top_p,
        max_text=body.max_completion_tokens or body.max_tokens or 0,
    )


def _message(message: _Message, at: int, memory: Memory, left: float) -> Message:
    where = f"messages[{at}]"
    if message.role not in _ROLES:
        raise Problem(400, f"{where}: unknown role {shown(message.role[:40])!r}; use {', '.join(_ROLES)}", param=where)
    parts: list[Any] = []
    content = message.content
    if isinstance(content, str):
        parts.append(content)
    for number, part in enumerate(content if isinstance(content, list) else ()):
        parts.append(_part(part, f"{where}.content[{number}]"))
        left -= len(parts[-1]) / HEARD if isinstance(parts[-1], np.ndarray) else 0.0
        if left < 0:
            limit = f"more than {MAX_SECONDS:g} s of audio in one request; send fewer or shorter turns"
            raise Problem(400, f"{where}: {limit}", param=where)
    if message.audio is not None:
        reply = memory.find(message.audio.id)
        if reply is None:
            unknown = f"unknown or expired audio id {shown(message.audio.id[:100])!r}; send the words as content"
            raise Problem(400, f"{where}: {unknown}", param=f"{where}.audio")
        text, codes = reply
        parts += [codes] if any(isinstance(part, str) and part for part in parts) else [text, codes]
    return Message(_ROLES[message.role], tuple(parts))  # type: ignore[arg-type]


def _part(part: _Part, where: str) -> str | Floats:
    if part.type in ("text", "input_text", "output_text"):
        return part.text
    if part.type == "input_audio":
        if part.input_audio is None:
            raise Problem(400, f"{where}: input_audio must have data and format", param=where)
        return _wave(part.input_audio.data, where)
    if part.type == "audio_url":
        if part.audio_url is None:
            raise Problem(400, f"{where}: audio_url must have a url", param=where)
        head, _, data = part.audio_url.url.partition(",")
        if not head.startswith("data:") or not head.endswith(";base64"):
            raise Problem(400, f"{where}: only data: URLs are supported; the server fetches nothing", param=where)
        return _wave(data, where)
    raise Problem(400, f"{where}: unknown part type {shown(part.type[:40])!r}; use text or input_audio", param=where)


def _wave(data: str, where: str) -> Floats:
    try:
        return to_wave(binascii.a2b_base64(data.encode("ascii"), strict_mode=True), where)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise Problem(400, f"{where}: the audio is not valid base64 ({error})", param=where) from None
    except AudioError as error:
        raise Problem(400, str(error), param=where) from None


# ── output ────────────────────────────────────────────────────────────────────────────────────────────────────────────
def new_id(kind: str) -> str:
    """Return a new random id."""
    return f"{kind}-{uuid4().hex[:24]}"


def sound_data(sound: Floats, form: str) -> str:
    """Encode audio as base64 in a format: wav, or pcm16 (16-bit mono samples, 24 kHz, little-endian)."""
    if form == "wav":
        return base64.b64encode(audio.encode_wav(sound, RATE)).decode()
    return base64.b64encode(np.clip(np.rint(sound * 32_768.0), -32_768, 32_767).astype("<i2").tobytes()).decode()


def usage(answer: Answer) -> dict[str, Any]:
    """Return OpenAI's usage object for an answer."""
    output = answer.said + len(answer.codes)
    return {
        "prompt_tokens": answer.heard,
        "completion_tokens": output,
        "total_tokens": answer.heard + output,
        "prompt_tokens_details": {"audio_tokens": answer.heard_sound},
        "completion_tokens_details": {"audio_tokens": len(answer.codes)},
    }


def completion(head: dict[str, Any], message: dict[str, Any], answer: Answer) -> dict[str, Any]:
    """Return a completion object."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": answer.finish}
    return {**head, "object": "chat.completion", "choices": [choice], "usage": usage(answer), **_noted(answer.notes)}


def chunk(head: dict[str, Any], delta: dict[str, Any], finish: str | None = None, notes: Sequence[str] = ()) -> bytes:
    """Return one chunk of a stream as a server-sent event."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return event({**head, "object": "chat.completion.chunk", "choices": [choice], **_noted(notes)})


def _noted(notes: Sequence[str]) -> dict[str, Any]:
    return {"notes": list(notes)} if notes else {}


def event(value: Any) -> bytes:
    """Encode a value as a server-sent event."""
    return b"data: " + msgspec.json.encode(value) + b"\n\n"
