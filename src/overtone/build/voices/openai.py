"""Any server with OpenAI's POST /audio/speech: gpt-4o-mini-tts, CosyVoice, Kokoro, vllm-omni, …

By default the server is told in one sentence how to speak and delivers the cue itself (`delivery=native`). With
`delivery=world` it speaks plainly and the recipes of this builder are applied, as to the embedded voices.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from overtone import audio
from overtone.audio import Samples
from overtone.build.voices._http import post, speech_endpoint
from overtone.build.voices._programs import sounding
from overtone.build.voices._records import (
    PACE,
    SEXES,
    UNKNOWN,
    How,
    Sex,
    Speaker,
    Synthesiser,
    VoiceError,
    cast_of,
    named,
    options,
)
from overtone.build.voices.instructions import PLAIN, spoken_instructions
from overtone.errors import AudioError, UsageError
from overtone.safety import check_key_route, read_key
from overtone.spec import Spec, check_url, suggest

DEFAULT_BASE = "https://api.openai.com/v1"
DEFAULT_KEY = "OPENAI_API_KEY"
CHOSEN: dict[Sex, tuple[str, ...]] = {
    "male": ("ash", "echo", "onyx", "verse"),
    "female": ("coral", "nova", "sage", "shimmer"),
}
KEYS: dict[str, type] = {
    **dict.fromkeys(SEXES, str),
    "base_url": str,
    "api_key_env": str,
    "delivery": str,
    "instructions": bool,
    "format": str,
    "reply": str,
    "licence": str,
    "timeout": float,
}
CHOICES = {"delivery": ("native", "world"), "format": ("wav", "flac", "mp3")}


class OpenAI(Synthesiser):
    """The speech model that a SPEC `openai:MODEL?base_url=…&male=…&female=…` describes."""

    def __init__(self, spec: Spec) -> None:
        given = options(spec, KEYS)
        self._who = str(Spec(spec.kind, spec.name, {}))
        if not spec.name:
            raise UsageError("openai: no model is named; write openai:MODEL, e.g. openai:gpt-4o-mini-tts")
        for key, allowed in CHOICES.items():
            if (value := given.setdefault(key, allowed[0])) not in allowed:
                near = suggest(value, allowed)
                raise UsageError(f"{self._who}: {key} must be {' or '.join(allowed)}, not {value!r}{near}")
        base: str = given.setdefault("base_url", DEFAULT_BASE)
        check_url(base, self._who)
        self._model, self._format = spec.name, str(given["format"])
        self._url = _endpoint(base)
        # A vendor's key is sent to the vendor's own host only.
        variable = given.get("api_key_env") or (DEFAULT_KEY if _origin(base) == _origin(DEFAULT_BASE) else "")
        self._variable: str = variable
        self._timeout: float = given.get("timeout", 120.0)
        self.native = given["delivery"] == "native"
        self._instruct: bool = given.get("instructions", True)
        if self.native and not self._instruct:
            raise UsageError(f"{self._who}: without instructions the server cannot deliver cues; add delivery=world")
        self.licence = given.get("licence", UNKNOWN)
        self._speakers = cast_of(spec, named(spec, given, CHOSEN))
        self._reply: str = given.get("reply", "")

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variable that holds its key, if it needs one."""
        return (self._variable,) if self._variable else ()

    def identity(self) -> str:
        parts = urlsplit(self._url)
        return f"openai:{self._model}@{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path}"

    def speak(self, words: str, speaker: Speaker, how: How, *, pace: int = PACE) -> tuple[Samples, int]:
        asked = spoken_instructions(how.cue, how.manner, how.instructions) if self.native else PLAIN
        return self._say(words, speaker.name, asked)

    def speak_reply(self, text: str, style: str, file: str) -> tuple[Samples, int] | None:
        """Speak in the voice `reply=NAME`; without one, the embedded voice speaks replies."""
        if not self._reply:
            return None
        return self._say(text, self._reply, f"You are an assistant answering someone. Speak in this manner: {style}.")

    def _say(self, words: str, voice: str, instructions: str) -> tuple[Samples, int]:
        body: dict[str, Any] = {"model": self._model, "voice": voice, "input": words, "response_format": self._format}
        if self._instruct:
            body["instructions"] = instructions
        endpoint = speech_endpoint(self._url, self._key(), self._timeout)
        data = post(endpoint, body, who=self._who)
        try:
            return sounding(*audio.decode(data, name="the answer"), self._who)
        except AudioError as error:
            start = endpoint.redact(data[:200].decode("utf-8", "replace"))
            raise VoiceError(f"{self._who}: {error}; it begins: {start}") from None

    def _key(self) -> str:
        key = read_key(self._variable) if self._variable else ""
        if self._variable and not key:
            raise UsageError(f"{self._who}: the environment variable {self._variable} is not set; put the key there")
        if key:
            check_key_route(self._url, self._who)
        return key


load = OpenAI


def _endpoint(base: str) -> str:
    """Append the path to `base` before its query, so that `…/v1?api-version=1` works."""
    parts = urlsplit(base)
    path = parts.path.rstrip("/")
    return parts._replace(path=path if path.endswith("/audio/speech") else f"{path}/audio/speech").geturl()


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port
