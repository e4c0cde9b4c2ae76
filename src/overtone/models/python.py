"""A Python function or object of this process: `overtone.run(…, model=my_function)`, or `python:NAME` once registered.

A function takes a `Request` and returns a text, a pair of text and WAV bytes, or a `Reply`; it may be asynchronous. An
object with the methods of `Model` works the same way. It needs `ask`, and may have `open`, `close`, `describe`
and `heard`.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
from collections.abc import Callable
from typing import Any

from overtone.errors import ModelFailure, UsageError
from overtone.heard import HeardInTraining
from overtone.schema import Reply, Request
from overtone.spec import Spec, suggest

KEYS: dict[str, type] = {}
_objects: dict[str, Any] = {}


def add(name: str, model: Any) -> Spec:
    """Register an object as `python:NAME` in this process and return that SPEC. It replaces one of the same name."""
    _objects[name] = model
    return Spec("python", name, {})


def load(spec: Spec) -> PythonModel:
    """Return the model that `python:NAME` names. Raises UsageError if this process has no such object."""
    spec.typed(KEYS)
    if spec.name not in _objects:
        known = f"{suggest(spec.name, _objects)}; registered: {', '.join(_objects)}" if _objects else ""
        raise UsageError(
            f"{spec}: no Python object of this name is registered in this process{known}; pass it as model= to "
            "overtone.run, or register it with overtone.register"
        )
    return PythonModel(spec, _objects[spec.name])


class PythonModel:
    """A function or object with the interface of `Model`. A function that is not asynchronous runs in a thread."""

    def __init__(self, spec: Spec, target: Any) -> None:
        self.spec = spec
        self._target = target
        self._ask: Callable[[Request], Any] = target.ask if hasattr(target, "ask") else target
        self._asynchronous = inspect.iscoroutinefunction(self._ask) or inspect.iscoroutinefunction(
            getattr(self._ask, "__call__", None)  # noqa: B004 - an object whose __call__ is a coroutine function
        )
        # Code that is not asynchronous is seldom safe to call from several threads at once.
        if hasattr(target, "stream"):
            self.stream, self.streams = target.stream, getattr(target, "streams", True)
        self.likelihoods: bool = getattr(target, "likelihoods", False)
        self.slots: int | None = getattr(target, "slots", None if self._asynchronous else 1)

    async def open(self) -> None:
        await self._optional("open")

    async def close(self) -> None:
        await self._optional("close")

    async def ask(self, request: Request) -> Reply:
        if self._asynchronous:
            return _reply(await self._ask(request))
        return _reply(await asyncio.to_thread(self._ask, request))

    def describe(self) -> dict[str, Any]:
        """Return the object's own description if it has one, else its name and the hash of its source."""
        if hasattr(self._target, "describe"):
            return {"kind": "python", **self._target.describe()}
        return {"kind": "python", "name": self.spec.name, "sha256": source_hash(self._target)}

    def heard(self) -> HeardInTraining | None:
        """Return what the object states that it heard in training; None if it states nothing."""
        state = getattr(self._target, "heard", None)
        return state() if callable(state) else None

    async def _optional(self, name: str) -> None:
        method = getattr(self._target, name, None)
        if callable(method):
            result = method()
            if inspect.isawaitable(result):
                await result


def _reply(result: Any) -> Reply:
    match result:
        case Reply():
            return result
        case str():
            return Reply(result)
        case (str(text), bytes(wav)):
            return Reply(text, wav)
    raise ModelFailure(
        "malformed",
        f"the function returned {type(result).__name__}; return a text, a pair of text and WAV bytes, or a Reply",
    )


def source_hash(target: Any) -> str:
    """Return the SHA-256 of an object's source, or "" if Python does not have it (a shell, a C function)."""
    try:
        text = inspect.getsource(target if inspect.isroutine(target) or inspect.isclass(target) else type(target))
    except (OSError, TypeError):
        return ""
    return hashlib.sha256(text.encode()).hexdigest()
