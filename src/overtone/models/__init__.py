"""Models: anything that turns a request into a reply. One file per kind; `load(spec)` in that file makes one."""

from __future__ import annotations

from typing import Any, Protocol

from overtone.schema import Reply, Request
from overtone.spec import Spec


class Model(Protocol):
    """What the engine asks of a model. Retries, back-off, concurrency and storage are the engine's.

    A model may have an `endpoint`, a text: those of one command that name the same share one limit of requests at once.
    Its file may have a `check_key(spec)`, which raises UsageError where a key is missing or must not be sent.
    It may have an `audio_rate`: the rate in Hz to which it resamples every sound itself, known once it is open.
    """

    spec: Spec
    slots: int | None  # how many requests it can serve at once; None = as many as the engine likes

    async def open(self) -> None:
        """Start what it needs (a session, a process). Raises OvertoneError when it is misconfigured."""

    async def ask(self, request: Request) -> Reply:
        """One attempt at one request. Raises ModelFailure when no reply came."""
        ...

    async def close(self) -> None:
        """Release everything; safe to call twice, and after a failed open."""

    def describe(self) -> dict[str, Any]:
        """What identifies its answers: its name, parameters as sent, versions. Never a secret."""
        ...
