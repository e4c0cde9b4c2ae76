"""A stored run as a model: returns the stored replies, so that a retired model can still be scored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from overtone.audio import load_sound
from overtone.errors import ModelFailure, OvertoneError, UsageError
from overtone.paths import read_plain
from overtone.runs.store import Store
from overtone.schema import Reply, Request, Session
from overtone.spec import Spec

MAX_AUDIO = 512 << 20  # bytes of a session's sound


class Replay:
    """The model `replay:RUN`. A reply is found by the request's key: item, condition, repeat and turn."""

    slots = None
    likelihoods = True  # where the run has them

    def __init__(self, spec: Spec) -> None:
        spec.typed({})
        if not spec.name:
            raise UsageError("replay: the run's folder is missing; write replay:FOLDER")
        self.spec = spec
        self._store = Store.read(Path(spec.name))
        self._recorded = self._store.meta()

    async def open(self) -> None:
        """Do nothing: the run is already open."""

    async def ask(self, request: Request) -> Reply:
        key = request.key
        name = f"{key.item} [{key.condition}, repeat {key.repeat}, turn {key.turn}]"
        reply = self._store.reply(key)
        if reply is None:
            raise ModelFailure("not_recorded", f"{self.spec.name} contains no reply to {name}")
        audio = None
        if reply.audio:
            try:
                audio = load_sound(self._store.audio_path(reply.audio)).wav
            except OvertoneError as error:
                raise ModelFailure("not_recorded", f"the sound of {name} is missing: {error}") from None
        kept = reply.text, audio, reply.finish, reply.usage, reply.model, reply.notes, reply.refused
        return Reply(*kept, reply.likelihoods, reply.timings, self._session(reply.ask, key.turn))

    def _session(self, ask: int, turn: int) -> Session | None:
        """Return the record of a realtime turn, as it was made."""
        found = self._store.session(ask, turn)
        if found is None:
            return None
        name, events = found
        try:
            return Session(read_plain(self._store.audio_path(name), MAX_AUDIO) if name else None, events)
        except OvertoneError as error:
            raise ModelFailure("not_recorded", f"the sound of a session is missing: {error}") from None

    async def close(self) -> None:
        self._store.close()

    def describe(self) -> dict[str, Any]:
        """Return the description of the recorded model."""
        return {"replay": self._recorded.get("model", ""), "answers": self._recorded.get("answers", "")}


load = Replay
