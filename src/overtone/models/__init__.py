"""Models: anything that turns a request into a reply. One file per kind; `load(spec)` in that file makes one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Struct

from overtone.schema import Reply, Request
from overtone.spec import Spec


class Piece(Struct, frozen=True, omit_defaults=True):
    """A part of a reply that arrives while the model still speaks. `pcm` is mono 16-bit PCM at `rate` Hz."""

    text: str = ""
    thought: str = ""
    pcm: bytes = b""
    rate: int = 0


OnPiece = Callable[[Piece], None]


class Model(Protocol):
    """The interface between the engine and a model. The engine does retries, back-off, concurrency and storage.

    A model may have an `endpoint`, a text: models of one command with the same endpoint share one concurrency limit.
    Its file may have a `check_key(spec)`, which raises UsageError if a key is missing or must not be sent.
    It may have `likelihoods = True`: it then answers a request with `continuations` by `Reply.likelihoods`. Other
    models never get such a request.
    It may have `stream(request, on_piece)`, which calls `on_piece` with each part as it arrives and returns the reply
    that `ask` would return. A run then streams and stores the reply's timings, unless the model has `streams = False`.
    It may have `heard()`, which returns what it heard in training as a `heard.HeardInTraining`, or None if that is not
    known. A run marks the items that it heard, and keeps them out of its headline.
    It may have `variables`, the names of the environment variables that it reads keys from, which a process on another
    machine gets.
    It may have an `audio_rate`: the rate in Hz to which it resamples every sound itself, known once it is open.
    """

    spec: Spec
    slots: int | None  # the number of requests it can serve at once; None: the engine decides

    async def open(self) -> None:
        """Start the session or process that it needs. Raises OvertoneError if it is misconfigured."""

    async def ask(self, request: Request) -> Reply:
        """Send a request once and return the reply. Raises ModelFailure if there is no reply."""
        ...

    async def close(self) -> None:
        """Release everything; safe to call twice, and after a failed open."""

    def describe(self) -> dict[str, Any]:
        """Return the name, parameters and versions that identify its replies. They never contain a secret."""
        ...
