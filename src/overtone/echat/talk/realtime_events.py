"""OpenAI's Realtime protocol on the server side: what a client may send, and the events that answer it.

This module does no networking and needs no torch.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Literal
from uuid import uuid4

import msgspec
import numpy as np
from msgspec import UNSET, Struct, UnsetType

from overtone.audio import resample
from overtone.echat.net.config import RATE as HEARD
from overtone.echat.talk.dialogue import Floats

OUT_RATE = 24_000
IN_RATES = (8_000, 16_000, 24_000, 48_000)


class Refused(Exception):
    """An error of the client's event. It is sent as an error event; the session continues."""

    def __init__(self, message: str, code: str = "invalid_value", param: str = "", kind: str = "") -> None:
        super().__init__(message)
        self.code, self.param, self.kind = code, param, kind or "invalid_request_error"


class Format(Struct):
    type: str = "audio/pcm"
    rate: int = OUT_RATE


class Detection(Struct):
    type: str = "server_vad"
    threshold: float = 0.5
    prefix_padding_ms: int = 300
    silence_duration_ms: int = 500
    create_response: bool = True
    interrupt_response: bool = True


class _In(Struct):
    format: Format | UnsetType = UNSET
    turn_detection: Detection | UnsetType | None = UNSET


class _Out(Struct):
    format: Format | UnsetType = UNSET
    voice: Any = UNSET


class _Audio(Struct):
    input: _In = msgspec.field(default_factory=_In)
    output: _Out = msgspec.field(default_factory=_Out)


class Update(Struct):
    """The changes of a session that a client asks for. OpenAI's other keys are ignored."""

    type: str = "realtime"
    instructions: str | UnsetType = UNSET
    output_modalities: list[Literal["text", "audio"]] | UnsetType = UNSET
    max_output_tokens: int | Literal["inf"] | UnsetType | None = UNSET
    audio: _Audio = msgspec.field(default_factory=_Audio)


class Content(Struct):
    type: str
    text: str = ""
    audio: str = ""
    transcript: str = ""


class Item(Struct):
    type: str
    role: Literal["system", "user", "assistant"] = "user"
    content: list[Content] = []
    id: str = ""


class Wanted(Struct):
    """The settings of one response."""

    instructions: str | None = None
    output_modalities: list[Literal["text", "audio"]] | None = None
    max_output_tokens: int | Literal["inf"] | None = None


class ClientEvent(Struct):
    """An event of the client."""

    type: str
    event_id: str | None = None
    session: Update | None = None
    audio: str | None = None
    item: Item | None = None
    item_id: str | None = None
    response: Wanted | None = None


class Settings(Struct):
    """The settings of a session."""

    instructions: str = ""
    speech: bool = True
    max_tokens: int = 0
    rate: int = OUT_RATE
    detection: Detection | None = msgspec.field(default_factory=Detection)

    def change(self, update: Update) -> None:
        """Take in a client's changes. Raises Refused, and then changes nothing."""
        if update.type != "realtime":
            raise Refused("only sessions of the type realtime are supported", param="session.type")
        heard, spoken = update.audio.input.format, update.audio.output.format
        if isinstance(heard, Format) and (heard.type != "audio/pcm" or heard.rate not in IN_RATES):
            rates = ", ".join(map(str, IN_RATES))
            raise Refused(f"the input must be audio/pcm at {rates} Hz", param="session.audio.input.format")
        if isinstance(spoken, Format) and (spoken.type != "audio/pcm" or spoken.rate != OUT_RATE):
            raise Refused(f"the output must be audio/pcm at {OUT_RATE} Hz", param="session.audio.output.format")
        detection = update.audio.input.turn_detection
        if isinstance(detection, Detection):
            _check_detection(detection)
        if not isinstance(detection, UnsetType):
            self.detection = detection
        if isinstance(heard, Format):
            self.rate = heard.rate
        if isinstance(update.instructions, str):
            self.instructions = update.instructions
        if isinstance(update.output_modalities, list):
            self.speech = "audio" in update.output_modalities
        if not isinstance(update.max_output_tokens, UnsetType):
            self.max_tokens = tokens(update.max_output_tokens)

    def json(self, name: str) -> dict[str, Any]:
        """Return the session as events describe it."""
        detection = msgspec.to_builtins(self.detection)
        return {
            "type": "realtime",
            "model": name,
            "instructions": self.instructions,
            "output_modalities": ["audio" if self.speech else "text"],
            "max_output_tokens": self.max_tokens or "inf",
            "audio": {
                "input": {"format": {"type": "audio/pcm", "rate": self.rate}, "turn_detection": detection},
                "output": {"format": {"type": "audio/pcm", "rate": OUT_RATE}, "voice": "alloy"},
            },
        }


def tokens(given: int | str | None) -> int:
    """Return a limit of tokens, 0 for none. Raises Refused."""
    if isinstance(given, int) and not 1 <= given <= 1_000_000:
        raise Refused("max_output_tokens must be between 1 and 1000000, or inf", param="max_output_tokens")
    return given if isinstance(given, int) else 0


def _check_detection(detection: Detection) -> None:
    if detection.type != "server_vad":
        raise Refused("turn_detection must be server_vad or null", param="session.audio.input.turn_detection.type")
    for name, low, high in (("threshold", 0, 1), ("silence_duration_ms", 20, 10_000), ("prefix_padding_ms", 0, 5_000)):
        if not low <= getattr(detection, name) <= high:
            raise Refused(
                f"{name} must be between {low} and {high}", param=f"session.audio.input.turn_detection.{name}"
            )


_decoder = msgspec.json.Decoder(ClientEvent)


def parse(data: str | bytes) -> ClientEvent:
    """Read an event of the client. Raises Refused."""
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(f"not a valid event: {error}") from None


def pcm_of(data: str | None, param: str = "audio") -> bytes:
    """Decode base64 of 16-bit PCM. Raises Refused."""
    try:
        pcm = binascii.a2b_base64((data or "").encode("ascii"), strict_mode=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise Refused(f"the audio is not valid base64 ({error})", param=param) from None
    if len(pcm) % 2:
        raise Refused("the audio ends in the middle of a 16-bit sample", param=param)
    return pcm


def wave_of(pcm: bytes, rate: int) -> Floats:
    """Return PCM as the model hears it."""
    samples = np.frombuffer(pcm, "<i2").astype(np.float32) / 32_768.0
    return resample(samples, rate, HEARD)


def delta_of(sound: Floats) -> str:
    """Encode sound as base64 of 16-bit PCM."""
    return base64.b64encode(np.clip(np.rint(sound * 32_768.0), -32_768, 32_767).astype("<i2").tobytes()).decode()


def new_id(kind: str) -> str:
    """Return a new random id."""
    return f"{kind}_{uuid4().hex[:20]}"
