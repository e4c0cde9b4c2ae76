"""An endpoint that speaks OpenAI's /v1/chat/completions: OpenAI, vLLM, vllm-omni, sglang, …

The wire format is written and read directly: a body is built once as bytes, a reply decoded into the few fields needed.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct
from yarl import URL

from overtone.errors import ModelFailure, UsageError
from overtone.models import OnPiece, _speech
from overtone.models._chat import ChatModel, encode
from overtone.models._openai_stream import ReplyStream, TokenCounts, thought_of
from overtone.models.endpoint_errors import UNKNOWN_PART, problem_of
from overtone.models.http import Endpoint, endpoint_url, malformed
from overtone.schema import THOUGHT, Message, Reply, Request, Sound, Usage
from overtone.spec import Spec, suggest

DEFAULT_BASE = "https://api.openai.com/v1"
DEFAULT_KEY = "OPENAI_API_KEY"
KEYS: dict[str, type] = {"audio_part": str, "max_tokens_field": str, "speech_format": str, "stream": str}
CHOICES = {
    "audio_part": ("input_audio", "audio_url"),
    "max_tokens_field": ("max_tokens", "max_completion_tokens"),
    "speech_format": ("wav", "pcm16"),
    "stream": ("no", "yes"),
}
PCM_RATE = 24_000  # the rate of the wire format's pcm16


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
    reasoning: Any = None
    reasoning_content: Any = None

    @property
    def thought(self) -> str:
        return thought_of(self.reasoning, self.reasoning_content)

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
    usage: TokenCounts | None = None
    error: msgspec.Raw = msgspec.Raw()


_decoder = msgspec.json.Decoder(_Completion)


def check_key(spec: Spec) -> None:
    """Raise UsageError if the key that requests need is not set or must not be sent."""
    OpenAI(spec).key()


class OpenAI(ChatModel):
    """One model behind a chat-completions endpoint: `openai:NAME?…`."""

    def __init__(self, spec: Spec) -> None:
        hint = "openai:NAME, e.g. openai:gpt-4o-audio-preview"
        super().__init__(spec, KEYS, base=DEFAULT_BASE, key_variable=DEFAULT_KEY, hint=hint)
        for key, allowed in CHOICES.items():
            if (value := self.options.setdefault(key, allowed[0])) not in allowed:
                near = suggest(value, allowed)
                raise UsageError(f"{spec}: {key} must be {' or '.join(allowed)}, not {value!r}{near}")
        parameters = dict(self.parameters)
        if "max_tokens" in parameters:
            parameters[self.options["max_tokens_field"]] = parameters.pop("max_tokens")
        self._head: dict[str, Any] = {"model": spec.name, **parameters}
        self._spoken: dict[str, Any] = {
            "modalities": ["text", "audio"],
            "audio": {"voice": self.options.get("voice", "alloy"), "format": self.options["speech_format"]},
        }

    def url(self) -> URL:
        path = "/chat/completions"
        return endpoint_url(str(self.base), "" if self.base.path.rstrip("/").endswith(path) else path)

    def key_header(self, key: str) -> tuple[str, str]:
        return "Authorization", f"Bearer {key}"

    def describe(self) -> dict[str, Any]:
        out: dict[str, Any] = {"kind": "openai", **self._head, "base_url": self.options["base_url"]}
        out |= {"audio_part": self.options["audio_part"], "speech": self.speech}
        return out | self._spoken if self.speech != "no" else out

    @property
    def streams(self) -> bool:
        """Whether runs ask for streamed replies, whose timings are measured."""
        return bool(self.options["stream"] == "yes")

    async def stream(self, request: Request, on_piece: OnPiece) -> Reply:
        """Ask for a streamed reply. A server that does not stream sends the whole reply, as one piece."""
        return await self._ask(request, on_piece)

    async def read_stream(
        self, endpoint: Endpoint, request: Request, speech: bool, notes: tuple[str, ...], on_piece: OnPiece
    ) -> Reply:
        stream = ReplyStream(endpoint, on_piece, PCM_RATE, notes)
        answer = await endpoint.post(self.body(request, speech, stream=True), stream.line)
        return self.read(endpoint, answer, speech, notes) if answer else stream.reply()

    def body(self, request: Request, speech: bool, stream: bool = False) -> bytes:
        # msgspec writes bytes as base64 directly into the body, without an intermediate string.
        out: dict[str, Any] = {**self._head, "messages": [self._message(message) for message in request.messages]}
        if request.seed is not None:
            out["seed"] = request.seed
        if request.greedy:
            out.pop("top_p", None)
            out["temperature"] = 0.0
        if speech:
            out |= self._spoken
        if stream:
            out |= {"stream": True, "stream_options": {"include_usage": True}}
            if speech:
                out["audio"] = self._spoken["audio"] | {"format": "pcm16"}  # OpenAI streams no other format
        if request.schema is not None:
            schema = {"name": "answer", "strict": True, "schema": request.schema}
            out["response_format"] = {"type": "json_schema", "json_schema": schema}
        return encode(out)

    def _message(self, message: Message) -> dict[str, Any]:
        if message.role != "user" or (len(message.parts) == 1 and isinstance(message.parts[0], str)):
            return {"role": message.role, "content": message.text}
        parts = [self._sound(p) if isinstance(p, Sound) else {"type": "text", "text": p} for p in message.parts]
        return {"role": message.role, "content": parts}

    def _sound(self, sound: Sound) -> dict[str, Any]:
        if self.options["audio_part"] == "input_audio":
            return {"type": "input_audio", "input_audio": {"data": sound.wav, "format": "wav"}}
        url = msgspec.Raw(b'"data:audio/wav;base64,' + memoryview(encode(sound.wav))[1:])
        return {"type": "audio_url", "audio_url": {"url": url}}

    def rejected(self, failure: ModelFailure, notes: tuple[str, ...]) -> Reply:
        if "(content_filter)" in failure.detail:  # Azure's filter stops the prompt itself, with a status of 400
            return Reply("", finish="content_filter", refused=True, notes=(*notes, failure.detail))
        if UNKNOWN_PART in failure.detail:
            other = next(part for part in CHOICES["audio_part"] if part != self.options["audio_part"])
            advised = failure.detail.replace(UNKNOWN_PART, f"{UNKNOWN_PART}; try audio_part={other}")
            raise ModelFailure("rejected", advised, fatal=True) from None
        raise failure

    def read(self, endpoint: Endpoint, answer: bytes, speech: bool, notes: tuple[str, ...]) -> Reply:
        try:
            completion = _decoder.decode(answer)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
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
        if thought := next((m.thought for m in messages if m.thought), ""):
            notes = (*notes, THOUGHT + thought)
        return Reply(
            text,
            audio=self._wav(audio) if audio else None,
            finish="refusal" if refusal else finish,
            usage=completion.usage.usage() if completion.usage else Usage(),
            model=completion.model or "",
            notes=notes,
            refused=bool(refusal) or finish == "content_filter",
        )

    def _wav(self, audio: _Audio) -> bytes:
        form = audio.format or self.options["speech_format"]
        return _speech.from_base64(audio.data or "", pcm_rate=PCM_RATE if form.lower().startswith("pcm") else None)


load = OpenAI
