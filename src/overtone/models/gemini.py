"""Google's Gemini over its own generateContent wire format; sound in, text and, where the model can, speech out."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Struct
from yarl import URL

from overtone.errors import ModelFailure
from overtone.models import _speech
from overtone.models._chat import ChatModel, encode
from overtone.models.http import Endpoint, endpoint_url, malformed
from overtone.schema import Message, Reply, Request, Sound, Usage
from overtone.spec import Spec

DEFAULT_BASE = "https://generativelanguage.googleapis.com"
DEFAULT_KEY = "GEMINI_API_KEY"
PCM_RATE = 24_000  # default for audio/L16 without a rate
FINISH = {"STOP": "stop", "MAX_TOKENS": "length"}
REFUSALS = {"SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "RECITATION"}
PARAMETERS = {"temperature": "temperature", "top_p": "topP", "max_tokens": "maxOutputTokens", "seed": "seed"}


class Blob(Struct, rename="camel"):
    mime_type: str = ""
    data: str = ""


class Part(Struct, rename="camel"):
    text: str | None = None
    thought: bool | None = None
    inline_data: Blob | None = None


class Content(Struct):
    parts: list[Part] | None = None


class _Candidate(Struct, rename="camel"):
    content: Content | None = None
    finish_reason: str | None = None


class _Feedback(Struct, rename="camel"):
    block_reason: str | None = None


class _Count(Struct, rename="camel"):
    modality: str = ""
    token_count: int = 0


class _Usage(Struct, rename="camel"):
    prompt_token_count: int = 0
    candidates_token_count: int = 0
    thoughts_token_count: int = 0
    prompt_tokens_details: list[_Count] | None = None
    candidates_tokens_details: list[_Count] | None = None


class _Generated(Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    prompt_feedback: _Feedback | None = None
    usage_metadata: _Usage | None = None
    model_version: str | None = None


_decoder = msgspec.json.Decoder(_Generated)


def check_key(spec: Spec) -> None:
    """Raise UsageError if the key that requests need is not set or must not be sent."""
    Gemini(spec).key()


class Gemini(ChatModel):
    """One Gemini model: `gemini:NAME?…`."""

    def __init__(self, spec: Spec) -> None:
        super().__init__(
            spec, {}, base=DEFAULT_BASE, key_variable=DEFAULT_KEY, hint="gemini:NAME, e.g. gemini:gemini-2.5-flash"
        )
        self._name = spec.name.removeprefix("models/")
        self._config: dict[str, Any] = {PARAMETERS[key]: value for key, value in self.parameters.items()}
        self._spoken: dict[str, Any] = {"responseModalities": ["TEXT", "AUDIO"]}
        if voice := self.options.get("voice"):
            self._spoken["speechConfig"] = {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": voice}}}

    def url(self) -> URL:
        version = "" if re.search(r"/v\d+\w*/?$", self.base.path) else "/v1beta"
        return endpoint_url(str(self.base), f"{version}/models/{self._name}:generateContent")

    def key_header(self, key: str) -> tuple[str, str]:
        return "x-goog-api-key", key

    def describe(self) -> dict[str, Any]:
        out: dict[str, Any] = {"kind": "gemini", "model": self._name, **self._config}
        out |= {"base_url": self.options["base_url"], "speech": self.speech}
        return out | self._spoken if self.speech != "no" else out

    def body(self, request: Request, speech: bool) -> bytes:
        system = "\n".join(message.text for message in request.messages if message.role == "system")
        contents = [_content(message) for message in request.messages if message.role != "system"]
        config = {**self._config, **(self._spoken if speech else {})}
        if request.seed is not None:
            config["seed"] = request.seed
        if request.greedy:
            config.pop("topP", None)
            config["temperature"] = 0.0
        if request.schema is not None:
            config |= {"responseMimeType": "application/json", "responseJsonSchema": request.schema}
        out: dict[str, Any] = {"contents": contents}
        if system:
            out["system_instruction"] = {"parts": [{"text": system}]}
        if config:
            out["generationConfig"] = config
        return encode(out)

    def rejected(self, failure: ModelFailure, notes: tuple[str, ...]) -> Reply:
        if re.search(r"(?i)api.?key", failure.detail):  # Google answers a wrong key with 400, not 401
            raise ModelFailure("auth", failure.detail, fatal=True)
        raise failure

    def read(self, endpoint: Endpoint, answer: bytes, speech: bool, notes: tuple[str, ...]) -> Reply:
        try:
            generated = _decoder.decode(answer)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise malformed(endpoint, f"the answer is not a generateContent response ({error})", answer) from None
        usage, model = _usage(generated.usage_metadata), generated.model_version or ""
        blocked = generated.prompt_feedback.block_reason if generated.prompt_feedback else None
        if blocked:
            return Reply("", finish=blocked.lower(), usage=usage, model=model, notes=notes, refused=True)
        if not generated.candidates:
            raise malformed(endpoint, "the answer holds no candidates", answer)
        candidate = generated.candidates[0]
        parts = (candidate.content.parts if candidate.content else None) or []
        reason = candidate.finish_reason or ""
        return Reply(
            "".join(part.text for part in parts if part.text and not part.thought),
            audio=_speech_of(parts),
            finish=FINISH.get(reason, reason.lower()),
            usage=usage,
            model=model,
            notes=notes,
            refused=reason in REFUSALS,
        )


load = Gemini


def _content(message: Message) -> dict[str, Any]:
    if message.role == "assistant":
        return {"role": "model", "parts": [{"text": message.text}]}
    return {"role": "user", "parts": [_part(part) for part in message.parts]}


def _part(part: str | Sound) -> dict[str, Any]:
    if isinstance(part, Sound):
        return {"inline_data": {"mime_type": "audio/wav", "data": part.wav}}
    return {"text": part}


def _speech_of(parts: list[Part]) -> bytes | None:
    blob = next((p.inline_data for p in parts if p.inline_data and p.inline_data.mime_type.startswith("audio/")), None)
    if blob is None:
        return None
    mime = blob.mime_type.lower()
    if not mime.startswith(("audio/l16", "audio/pcm")):
        return _speech.from_base64(blob.data)
    rate = re.search(r"rate=(\d+)", mime)
    return _speech.from_base64(blob.data, pcm_rate=int(rate[1]) if rate else PCM_RATE)


def _audio_tokens(counts: list[_Count] | None) -> int:
    return sum(count.token_count for count in counts or () if count.modality == "AUDIO")


def _usage(usage: _Usage | None) -> Usage:
    if usage is None:
        return Usage()
    return Usage(
        input_tokens=usage.prompt_token_count,
        output_tokens=usage.candidates_token_count + usage.thoughts_token_count,  # thoughts are billed as output
        input_audio_tokens=_audio_tokens(usage.prompt_tokens_details),
        output_audio_tokens=_audio_tokens(usage.candidates_tokens_details),
    )
