"""A stored run as a model: answers from its replies, so that a retired model can be scored for ever."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from overtone.audio import load_sound
from overtone.errors import ModelFailure, OvertoneError, UsageError
from overtone.runs.store import Store
from overtone.schema import Key, Reply, Request
from overtone.spec import Spec


class Replay:
    """`replay:RUN`. A request is recognised by its key: item, condition, repeat and turn."""

    slots = None

    def __init__(self, spec: Spec) -> None:
        spec.typed({})
        if not spec.name:
            raise UsageError("replay: which run? write replay:FOLDER")
        self.spec = spec
        self._store = Store.read(Path(spec.name))
        self._recorded = self._store.meta()

    async def open(self) -> None:
        """Nothing to start: the run is already open."""

    async def ask(self, request: Request) -> Reply:
        found = self._store.reply(request.key)
        if found is None:
            raise ModelFailure("not_recorded", f"{self.spec.name} holds no reply to {_shown(request.key)}")
        audio = None
        if found.audio:
            try:
                audio = load_sound(self._store.audio_path(found.audio)).wav
            except OvertoneError as error:
                raise ModelFailure("not_recorded", f"the sound of {_shown(request.key)} is missing: {error}") from None
        return Reply(found.text, audio, found.finish, found.usage, found.model, found.notes, found.refused)

    async def close(self) -> None:
        self._store.close()

    def describe(self) -> dict[str, Any]:
        """The recorded model's own description: a replay stands for it."""
        return {"replay": self._recorded.get("model", ""), "answers": self._recorded.get("answers", "")}


def _shown(key: Key) -> str:
    return f"{key.item} [{key.condition}, repeat {key.repeat}, turn {key.turn}]"


def load(spec: Spec) -> Replay:
    return Replay(spec)
