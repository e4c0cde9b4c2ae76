"""A reply that streams in OpenAI's format: server-sent events become pieces for the caller and, at the end, a Reply."""

from __future__ import annotations

import binascii
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from overtone.audio import load_sound
from overtone.errors import AudioError, ModelFailure
from overtone.models import OnPiece, Piece, _speech
from overtone.models.endpoint_errors import problem_of
from overtone.models.http import Endpoint, malformed
from overtone.schema import THOUGHT, Reply, Usage


def thought_of(*fields: Any) -> str:
    """Return the first text among `reasoning` (vLLM) and `reasoning_content` (other servers, older versions), or "".

    Gateways put other things than text there too.
    """
    return next((field for field in fields if field and isinstance(field, str)), "")


class _Details(Struct):
    audio_tokens: int | None = None


class TokenCounts(Struct):
    """OpenAI's usage object, of a whole reply or of a stream's last chunk."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None

    def usage(self) -> Usage:
        """Return the counts in our form; those that the endpoint does not report are 0."""
        heard, spoken = self.prompt_tokens_details, self.completion_tokens_details
        return Usage(
            input_tokens=self.prompt_tokens or 0,
            output_tokens=self.completion_tokens or 0,
            input_audio_tokens=(heard.audio_tokens or 0) if heard else 0,
            output_audio_tokens=(spoken.audio_tokens or 0) if spoken else 0,
        )


class _Audio(Struct):
    data: str | None = None
    transcript: str | None = None


class _Delta(Struct):
    content: str | None = None
    reasoning: Any = None
    reasoning_content: Any = None
    audio: _Audio | None = None
    refusal: str | None = None


class _Sampling(Struct):
    sample_rate_hz: int | None = None


class _Choice(Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None
    audio_metadata: _Sampling | None = None  # vllm-omni


class _Chunk(Struct):
    choices: list[_Choice] | None = None
    modality: str | None = None  # vllm-omni: "audio" if the content of these choices is base64 of speech
    model: str | None = None
    usage: TokenCounts | None = None
    notes: list[str] = []
    error: msgspec.Raw = msgspec.Raw()


_decoder = msgspec.json.Decoder(_Chunk)


class ReplyStream:
    """Collects one streamed reply. `line` takes each line of the answer; `reply` returns the whole reply."""

    def __init__(self, endpoint: Endpoint, on_piece: OnPiece, rate: int, notes: Sequence[str]) -> None:
        self._endpoint, self._on_piece, self._rate = endpoint, on_piece, rate
        self._notes: list[str] = list(notes)
        self._text: list[str] = []
        self._transcript: list[str] = []
        self._thought: list[str] = []
        self._refusal: list[str] = []
        self._pcm = bytearray()
        self._finish = self._model = ""
        self._usage: TokenCounts | None = None
        self._begun = False

    def line(self, line: bytes) -> None:
        """Read one line of an event stream. Raises ModelFailure for an error that the server sends, or a bad chunk."""
        if not line.startswith(b"data:"):
            return
        data = line[5:].strip()
        if data in (b"", b"[DONE]"):
            return
        try:
            chunk = _decoder.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise malformed(self._endpoint, f"the stream has an invalid chunk ({error})", data) from None
        if bytes(chunk.error) not in (b"", b"null"):
            problem = problem_of(data)
            status = problem.code if isinstance(problem.code, int) and 400 <= problem.code < 600 else 500
            raise self._endpoint.refusal(status, problem)
        self._begun = True
        self._model = chunk.model or self._model
        self._usage = chunk.usage or self._usage
        self._notes += chunk.notes
        for choice in chunk.choices or ():
            self._finish = choice.finish_reason or self._finish
            if choice.audio_metadata is not None and choice.audio_metadata.sample_rate_hz:
                self._rate = choice.audio_metadata.sample_rate_hz
            if choice.delta is not None:
                self._add(_with_speech_as_audio(choice) if chunk.modality == "audio" else choice.delta)

    def _add(self, delta: _Delta) -> None:
        transcript = (delta.audio.transcript or "") if delta.audio else ""
        pcm = self._decoded(delta.audio.data) if delta.audio and delta.audio.data else b""
        text, refusal = delta.content or "", delta.refusal or ""
        thought = thought_of(delta.reasoning, delta.reasoning_content)
        self._text.append(text)
        self._transcript.append(transcript)
        self._thought.append(thought)
        self._refusal.append(refusal)
        self._pcm += pcm
        if text or transcript or thought or refusal or pcm:
            self._on_piece(Piece(text or transcript or refusal, thought, pcm, self._rate if pcm else 0))

    def _decoded(self, data: str) -> bytes:
        if len(data) + len(self._pcm) > _speech.MAX_SPEECH_BYTES:
            raise ModelFailure("too_large", f"the reply's speech is over {_speech.MAX_SPEECH_BYTES // 2**20} MB")
        try:
            piece = binascii.a2b_base64(data.encode("ascii"), strict_mode=True)
            if piece[:4] != b"RIFF":
                return piece
            wav = load_sound(_speech.whole_wav(piece), name="a piece of speech").wav  # older vllm-omni: each is a WAV
        except (binascii.Error, UnicodeEncodeError) as error:
            raise ModelFailure(
                "truncated_audio", f"a piece of speech is not valid base64: {error}", retry=True
            ) from None
        except AudioError as error:
            raise ModelFailure("truncated_audio", str(error), retry=True) from None
        self._rate = int.from_bytes(wav[24:28], "little")
        return wav[44:]

    def reply(self) -> Reply:
        """Return the whole reply. Raises ModelFailure if the stream ended before it."""
        if not self._begun or not self._finish:
            raise ModelFailure("connection", "the streamed reply ended before it was complete", retry=True)
        text, refusal = "".join(self._text) or "".join(self._transcript), "".join(self._refusal)
        thought = "".join(self._thought)
        if thought and not any(note.startswith(THOUGHT) for note in self._notes):
            self._notes.append(THOUGHT + thought)
        fields: dict[str, Any] = {"usage": self._usage.usage()} if self._usage else {}
        return Reply(
            text or refusal,
            audio=_speech.pcm_to_wav(bytes(self._pcm), self._rate) if self._pcm else None,
            finish="refusal" if refusal else self._finish,
            model=self._model,
            notes=tuple(self._notes),
            refused=bool(refusal) or self._finish == "content_filter",
            **fields,
        )


def _with_speech_as_audio(choice: _Choice) -> _Delta:
    """Return the delta of a choice of vllm-omni whose content is speech, in OpenAI's form."""
    assert choice.delta is not None
    return _Delta(audio=_Audio(data=choice.delta.content))
