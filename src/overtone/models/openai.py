"""An endpoint that speaks OpenAI's /v1/chat/completions: OpenAI, vLLM, vllm-omni, sglang, …

The wire format is written and read directly: a body is built once as bytes, a reply decoded into the few fields needed.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Struct
from yarl import URL

from overtone.errors import ModelFailure, UsageError
from overtone.models import _speech
from overtone.models.http import (
    DEFAULT_TIMEOUT,
    Endpoint,
    endpoint_url,
    generation,
    malformed,
    origin,
    problem_of,
    read_key,
)
from overtone.schema import Message, Reply, Request, Sound, Usage
from overtone.spec import Spec, check_url, suggest

DEFAULT_BASE = "https://api.openai.com/v1"
DEFAULT_KEY = "OPENAI_API_KEY"
KEYS: dict[str, type] = {
    "base_url": str,
    "api_key_env": str,
    "voice": str,
    "audio_part": str,
    "max_tokens_field": str,
    "speech_format": str,
}
CHOICES = {
    "audio_part": ("input_audio", "audio_url"),
    "max_tokens_field": ("max_tokens", "max_completion_tokens"),
    "speech_format": ("wav", "pcm16"),
}
PCM_RATE = 24_000  # what the wire format's pcm16 means
TEXT_ONLY = "speech refused by the endpoint, asked for text only"
NO_SPEECH = "speech was asked for, none came back"
_ABOUT_SPEECH = re.compile(
    r"(?i)modalit"
    r"|\b(output|generat|respon|return)\w*\W+(\w+\W+){0,3}(audio|speech)"
    r"|\b(audio|speech)\W+(\w+\W+){0,3}(output|generat|respon)"
    r"|\b(unknown|unrecognized|unexpected|extra)\W+(\w+\W+){0,4}audio\b"
)


class _TokenDetails(Struct):
    audio_tokens: int | None = None


class _Usage(Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _TokenDetails | None = None
    completion_tokens_details: _TokenDetails | None = None


class _Audio(Struct):
    data: str | None = None
    transcript: str | None = None
    format: str | None = None


class _Part(Struct):
    text: str | None = None


class _Message(Struct):
    content: str | list[_Part] | None = None
    audio: _Audio | None = None
    refusal: str | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content if part.text)
        return self.content or ""


class _Choice(Struct):
    message: _Message
    finish_reason: str | None = None


class _Completion(Struct):
    choices: list[_Choice] | None = None
    model: str | None = None
    usage: _Usage | None = None
    error: msgspec.Raw = msgspec.Raw()


_decoder = msgspec.json.Decoder(_Completion)
_encode = msgspec.json.Encoder().encode


def load(spec: Spec) -> OpenAI:
    """The model a SPEC `openai:NAME?…` names."""
    return OpenAI(spec)


class OpenAI:
    """One model behind a chat-completions endpoint."""

    slots: int | None = None

    def __init__(self, spec: Spec) -> None:
        options = spec.typed(KEYS)
        if not spec.name:
            raise UsageError(f"{spec}: no model is named; write openai:NAME, e.g. openai:gpt-4o-audio-preview")
        for key, allowed in CHOICES.items():
            if (value := options.setdefault(key, allowed[0])) not in allowed:
                near = suggest(value, allowed)
                raise UsageError(f"{spec}: {key} must be {' or '.join(allowed)}, not {value!r}{near}")
        check_url(options.setdefault("base_url", DEFAULT_BASE), f"{spec.kind}:{spec.name}")
        self.spec = spec
        self._options = options
        self._speech: str = options.get("speech", "auto")
        self._text_only = False  # the endpoint has refused speech once
        parameters = generation(spec, options)
        if "max_tokens" in parameters:
            parameters[options["max_tokens_field"]] = parameters.pop("max_tokens")
        self._head: dict[str, Any] = {"model": spec.name, **parameters}
        self._spoken: dict[str, Any] = {
            "modalities": ["text", "audio"],
            "audio": {"voice": options.get("voice", "alloy"), "format": options["speech_format"]},
        }
        path = "" if URL(options["base_url"]).path.rstrip("/").endswith("/chat/completions") else "/chat/completions"
        self._url = endpoint_url(options["base_url"], path)
        self._endpoint: Endpoint | None = None

    def __repr__(self) -> str:
        return f"OpenAI({self.spec})"

    def describe(self) -> dict[str, Any]:
        out: dict[str, Any] = {"kind": "openai", **self._head, "base_url": self._options["base_url"]}
        out |= {"audio_part": self._options["audio_part"], "speech": self._speech}
        if self._speech != "no":
            out |= self._spoken
        return out

    async def open(self) -> None:
        if self._endpoint is None:
            key = self._key()
            self._endpoint = Endpoint(
                self._url,
                key_header=("Authorization", f"Bearer {key}") if key else None,
                secret=key,
                timeout=self._options.get("timeout", DEFAULT_TIMEOUT),
            )
        await self._endpoint.open()

    async def close(self) -> None:
        if self._endpoint is not None:
            await self._endpoint.close()

    def _key(self) -> str:
        """The key to send. OpenAI's own goes to OpenAI's own host only; another host gets what `api_key_env` names."""
        variable = self._options.get("api_key_env", "")
        if not variable and origin(self._url) == origin(URL(DEFAULT_BASE)):
            variable = DEFAULT_KEY
        if not variable:
            return ""
        if key := read_key(variable):
            return key
        raise UsageError(
            f"{self.spec}: the environment variable {variable} is not set; put the endpoint's key there, "
            "or give base_url=http://HOST:PORT/v1 for an endpoint that needs none"
        )

    async def ask(self, request: Request) -> Reply:
        speech = request.speech and self._speech != "no"
        if speech and self._text_only:
            return await self._ask(request, False, (TEXT_ONLY,))
        try:
            return await self._ask(request, speech, ())
        except ModelFailure as failure:
            if not (speech and failure.reason == "rejected" and _ABOUT_SPEECH.search(failure.detail)):
                raise
            if self._speech == "yes":
                raise ModelFailure("speech_refused", failure.detail) from None
        reply = await self._ask(request, False, (TEXT_ONLY,))
        self._text_only = True  # only now is it certain that speech was what it refused
        return reply

    async def _ask(self, request: Request, speech: bool, notes: tuple[str, ...]) -> Reply:
        endpoint = self._endpoint
        if endpoint is None:
            raise RuntimeError("ask() before open()")
        try:
            answer = await endpoint.post(self.body(request, speech))
        except ModelFailure as failure:
            if failure.reason == "rejected" and "content_filter" in failure.detail:
                return Reply("", finish="content_filter", refused=True, notes=(*notes, failure.detail))
            raise
        return self._read(endpoint, answer, speech, notes)

    def body(self, request: Request, speech: bool) -> bytes:
        """The request as the endpoint will read it. msgspec writes bytes as base64 straight into the body."""
        messages = [self._message(message) for message in request.messages]
        return _encode({**self._head, "messages": messages, **(self._spoken if speech else {})})

    def _message(self, message: Message) -> dict[str, Any]:
        if message.role != "user" or (len(message.parts) == 1 and isinstance(message.parts[0], str)):
            return {"role": message.role, "content": message.text}
        parts = [self._sound(p) if isinstance(p, Sound) else {"type": "text", "text": p} for p in message.parts]
        return {"role": message.role, "content": parts}

    def _sound(self, sound: Sound) -> dict[str, Any]:
        if self._options["audio_part"] == "input_audio":
            return {"type": "input_audio", "input_audio": {"data": sound.wav, "format": "wav"}}
        quoted = _encode(sound.wav)
        url = msgspec.Raw(b'"data:audio/wav;base64,' + memoryview(quoted)[1:])
        return {"type": "audio_url", "audio_url": {"url": url}}

    def _read(self, endpoint: Endpoint, answer: bytes, speech: bool, notes: tuple[str, ...]) -> Reply:
        try:
            completion = _decoder.decode(answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise malformed(endpoint, f"the answer is not a chat completion ({error})", answer) from None
        if not completion.choices:
            if bytes(completion.error) not in (b"", b"null"):  # some gateways send their errors with status 200
                problem = problem_of(answer)
                status = problem.code if isinstance(problem.code, int) and 400 <= problem.code < 600 else 500
                raise endpoint.refusal(status, problem)
            raise malformed(endpoint, "the answer holds no choices", answer)
        # vllm-omni answers with one choice for the text and a second for the speech.
        messages = [choice.message for choice in completion.choices]
        refusal = next((m.refusal for m in messages if m.refusal), "")
        audio = next((m.audio for m in messages if m.audio and m.audio.data), None)
        text = next((m.text for m in messages if m.text), "")
        text = text or next((m.audio.transcript for m in messages if m.audio and m.audio.transcript), "") or refusal
        finish = completion.choices[0].finish_reason or ""
        refused = bool(refusal) or finish == "content_filter"
        wav = self._wav(audio) if audio and audio.data else None
        if speech and wav is None and not refused:
            if self._speech == "yes":
                raise ModelFailure("speech_refused", "the endpoint answered without speech", retry=True)
            notes = (*notes, NO_SPEECH)
        return Reply(
            text,
            audio=wav,
            finish="refusal" if refusal else finish,
            usage=_usage(completion.usage),
            model=completion.model or "",
            notes=notes,
            refused=refused,
        )

    def _wav(self, audio: _Audio) -> bytes:
        form = audio.format or self._options["speech_format"]
        return _speech.from_base64(audio.data or "", pcm_rate=PCM_RATE if form.lower().startswith("pcm") else None)


def _usage(usage: _Usage | None) -> Usage:
    if usage is None:
        return Usage()
    heard, spoken = usage.prompt_tokens_details, usage.completion_tokens_details
    return Usage(
        input_tokens=usage.prompt_tokens or 0,
        output_tokens=usage.completion_tokens or 0,
        input_audio_tokens=(heard.audio_tokens or 0) if heard else 0,
        output_audio_tokens=(spoken.audio_tokens or 0) if spoken else 0,
    )
