"""The common base of models behind an HTTP endpoint: find the key, send one request, fall back to text without
speech."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from yarl import URL

from overtone.errors import ModelFailure, UsageError
from overtone.models import OnPiece
from overtone.models.http import DEFAULT_TIMEOUT, Endpoint, generation, origin
from overtone.safety import check_key_route, read_key
from overtone.schema import Reply, Request
from overtone.spec import Spec, check_url

TEXT_ONLY = "speech refused by the endpoint, asked for text only"
NO_SPEECH = "speech was asked for, none came back"
_ABOUT_SPEECH = re.compile(
    r"(?i)modalit"
    r"|\b(output|generat|respon|return)\w*\W+(\w+\W+){0,3}(audio|speech)"
    r"|\b(audio|speech)\W+(\w+\W+){0,3}(output|generat|respon)"
    r"|\b(unknown|unrecognized|unexpected|extra)\W+(\w+\W+){0,4}audio\b"
)
KEYS: dict[str, type] = {"base_url": str, "api_key_env": str, "voice": str}

encode = msgspec.json.Encoder().encode


class ChatModel:
    """One model behind an HTTP endpoint. Subclasses write the request's body and read the answer."""

    slots: int | None = None
    schemes: tuple[str, ...] = ("http", "https")  # of a base URL

    def __init__(self, spec: Spec, keys: dict[str, type], *, base: str, key_variable: str, hint: str) -> None:
        options = spec.typed({**KEYS, **keys})
        if not spec.name:
            raise UsageError(f"{spec}: the model's name is missing; write {hint}")
        check_url(options.setdefault("base_url", base), f"{spec.kind}:{spec.name}", self.schemes)
        self.spec = spec
        self.options = options
        self.parameters = generation(spec, options)
        self.speech: str = options.get("speech", "auto")
        self.base = URL(options["base_url"])
        self._variable: str = options.get("api_key_env", "")
        if not self._variable and origin(self.base) == origin(URL(base)):
            self._variable = key_variable  # a vendor's key goes to the vendor's own host only
        self._text_only = False  # the endpoint has refused speech once
        self._endpoint: Endpoint | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.spec})"

    @property
    def endpoint(self) -> str:
        """The wire format and base URL, which identify the endpoint for a shared concurrency limit."""
        scheme, host, port = origin(self.base)
        return f"{self.spec.kind} {scheme}://{host}:{port}{self.base.path.rstrip('/')}"

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variable that holds its key, if it needs one."""
        return (self._variable,) if self._variable else ()

    # ── for subclasses to define ──────────────────────────────────────────────────────────────────────────────────────
    def url(self) -> URL:
        """Return the URL that requests are sent to."""
        raise NotImplementedError

    def key_header(self, key: str) -> tuple[str, str]:
        """Return the name and value of the header that carries the key."""
        raise NotImplementedError

    def body(self, request: Request, speech: bool) -> bytes:
        """Encode a request in the endpoint's wire format."""
        raise NotImplementedError

    def read(self, endpoint: Endpoint, answer: bytes, speech: bool, notes: tuple[str, ...]) -> Reply:
        """Read the reply from an answer. Raises ModelFailure if it contains no reply."""
        raise NotImplementedError

    async def read_stream(
        self, endpoint: Endpoint, request: Request, speech: bool, notes: tuple[str, ...], on_piece: OnPiece
    ) -> Reply:
        """Send a request whose reply streams; pass on its parts and return it. Only for models with `stream`."""
        raise NotImplementedError

    def rejected(self, failure: ModelFailure, notes: tuple[str, ...]) -> Reply:
        """Return the reply that corresponds to a rejection, e.g. a content filter's refusal. By default, raise
        `failure`."""
        raise failure

    def describe(self) -> dict[str, Any]:
        raise NotImplementedError

    # ── shared ────────────────────────────────────────────────────────────────────────────────────────────────────────
    async def open(self) -> None:
        if self._endpoint is None:
            key = self.key()
            self._endpoint = Endpoint(
                self.url(),
                key_header=self.key_header(key) if key else None,
                secret=key,
                timeout=self.options.get("timeout", DEFAULT_TIMEOUT),
            )
        await self._endpoint.open()

    async def close(self) -> None:
        if self._endpoint is not None:
            await self._endpoint.close()

    def key(self) -> str:
        """Return the key from the environment, or "" for an endpoint that needs no key.

        Raises UsageError if the variable is not set, or if the key would be sent to another machine over plain http.
        """
        if not self._variable:
            return ""
        if key := read_key(self._variable):
            check_key_route(str(self.base), str(self.spec))
            return key
        raise UsageError(
            f"{self.spec}: the environment variable {self._variable} is not set; put the endpoint's key there, "
            "or name another variable with api_key_env=NAME, or an endpoint that needs no key with base_url=URL"
        )

    async def ask(self, request: Request) -> Reply:
        return await self._ask(request, None)

    async def _ask(self, request: Request, on_piece: OnPiece | None) -> Reply:
        """Ask, and ask for text only if the endpoint refuses speech."""
        speech = request.speech and self.speech != "no"
        if speech and self._text_only:
            return await self._ask_once(request, False, (TEXT_ONLY,), on_piece)
        try:
            return await self._ask_once(request, speech, (), on_piece)
        except ModelFailure as failure:
            message = failure.detail.partition(": ")[2]  # without the URL: "generateContent" is not about generating
            if not (speech and failure.reason == "rejected" and _ABOUT_SPEECH.search(message)):
                raise
            if self.speech == "yes":
                raise ModelFailure("speech_refused", failure.detail) from None
        reply = await self._ask_once(request, False, (TEXT_ONLY,), on_piece)
        self._text_only = True  # the text request succeeded, so speech was the reason for the refusal
        return reply

    async def _ask_once(
        self, request: Request, speech: bool, notes: tuple[str, ...], on_piece: OnPiece | None
    ) -> Reply:
        endpoint = self._endpoint
        if endpoint is None:
            raise RuntimeError("ask() before open()")
        try:
            if on_piece is None:
                answer = await endpoint.post(self.body(request, speech))
                reply = self.read(endpoint, answer, speech, notes)
            else:
                reply = await self.read_stream(endpoint, request, speech, notes, on_piece)
        except ModelFailure as failure:
            if failure.reason != "rejected":
                raise
            return self.rejected(failure, notes)
        if speech and reply.audio is None and not reply.refused:
            if self.speech == "yes":
                raise ModelFailure("speech_refused", "the endpoint answered without speech", retry=True)
            return msgspec.structs.replace(reply, notes=(*reply.notes, NO_SPEECH))
        return reply
