"""The actor: a process on a node that holds one model and answers one driver's requests.

Its methods return failures as values, because an exception that crosses Ray becomes one of Ray's own types.
"""

from __future__ import annotations

import os
from typing import Any

from msgspec import Struct

from overtone import registry
from overtone.cluster import node_setup
from overtone.cluster.node_setup import Setup
from overtone.errors import MissingExtra, ModelFailure, OvertoneError, UsageError, raised
from overtone.models import Model
from overtone.models.reply_clock import ask_streaming, streams
from overtone.schema import Reply, Request
from overtone.spec import Spec

SHORT = 400  # characters of an exception


class Failed(Struct, frozen=True):
    """A ModelFailure as plain values."""

    reason: str
    detail: str
    retry: bool = False
    fatal: bool = False
    overload: bool = False
    retry_after: float | None = None
    unavailable: bool = False
    item: bool = False

    @classmethod
    def of(cls, failure: ModelFailure) -> Failed:
        return cls(*(getattr(failure, name) for name in cls.__struct_fields__))

    def failure(self, more: str = "") -> ModelFailure:
        """Return it as the exception that the engine expects, with `more` after its detail."""
        flags = {name: getattr(self, name) for name in self.__struct_fields__[2:]}
        return ModelFailure(self.reason, self.detail + more, **flags)


class Refused(Struct, frozen=True):
    """Why a model could not be opened on this node: an error that the user can fix."""

    text: str
    missing: bool = False  # a package is not installed

    def error(self, node: str) -> OvertoneError:
        kind = MissingExtra if self.missing else UsageError
        return kind(f"on node {node}: {self.text}")


class Opened(Struct, frozen=True):
    """The description of an open model."""

    described: dict[str, Any]
    audio_rate: int | None


class Placed(Struct, frozen=True):
    """Where an actor runs."""

    node: str  # Ray's id of it
    pid: int
    gpus: str  # as in CUDA_VISIBLE_DEVICES; "" without one


class Holder:
    """Holds a model on a node. Ray makes an actor of this class."""

    def __init__(self, setup: Setup, spec: Spec) -> None:
        self._setup = setup
        self._spec = spec
        self._model: Model | None = None
        self._streams = False

    async def place(self) -> Placed:
        """Answer as soon as the actor runs somewhere."""
        import ray

        return Placed(ray.get_runtime_context().get_node_id(), os.getpid(), os.environ.get("CUDA_VISIBLE_DEVICES", ""))

    async def open(self) -> Opened | Refused:
        """Load and open the model."""
        if wrong := node_setup.difference(self._setup, packages=False):
            return Refused(f"another version is installed there ({wrong}); install the same on every node")
        try:
            node_setup.apply(self._setup)
            model: Model = registry.find("models", self._spec.kind).load(self._spec)
            self._model = model
            await model.open()
            self._streams = streams(model)
            return Opened(model.describe(), getattr(model, "audio_rate", None))
        except OvertoneError as error:
            return Refused(str(error), isinstance(error, MissingExtra))
        except Exception as error:  # noqa: BLE001 - a plug-in may raise anything
            return Refused(f"{self._spec} cannot be opened: {raised(error)}")

    async def ask(self, request: Request) -> Reply | Failed:
        """Ask the model once. If it streams, the timings of the reply are measured here, at the model."""
        assert self._model is not None
        try:
            reply = await (ask_streaming(self._model, request) if self._streams else self._model.ask(request))
            if not isinstance(reply, Reply):
                raise TypeError(f"ask() returned {type(reply).__name__}, not a Reply")
            return reply
        except ModelFailure as failure:
            return Failed.of(failure)
        except Exception as error:  # noqa: BLE001 - a plug-in may raise anything
            return Failed("exception", raised(error)[:SHORT])

    async def close(self) -> str:
        """Close the model. Return what it raised, "" for nothing."""
        try:
            if self._model is not None:
                await self._model.close()
        except Exception as error:  # noqa: BLE001 - a plug-in may raise anything
            return raised(error)
        return ""
