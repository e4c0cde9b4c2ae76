"""The records of a run's store: asks with their replies and failures."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from overtone.schema import Item, Key, Likelihood, Timings, Usage


class StoredReply(Struct, frozen=True):
    """A stored reply with its key. `audio` is the hex name of its sound, or empty."""

    ask: int
    key: Key
    text: str
    audio: str
    finish: str
    refused: bool
    model: str
    notes: tuple[str, ...]
    usage: Usage
    latency: float
    attempts: int
    likelihoods: tuple[tuple[Likelihood, ...], ...] = ()  # see `overtone.schema.Reply`
    timings: Timings | None = None
    recording: str = ""  # the hex name of the sound of both voices, in a realtime session


class Ask(Struct, frozen=True):
    """An item under one condition, in one repeat. `replies` holds the replies so far, if they were read."""

    id: int
    item: Item
    condition: str
    repeat: int
    replies: tuple[StoredReply, ...] = ()  # in the order of turns; the replies that a benchmark gives are not stored

    @property
    def reply(self) -> StoredReply:
        """Return the last reply; in an answered ask, the reply to the last turn."""
        return self.replies[-1]

    def key(self, turn: int = 0) -> Key:
        return Key(self.item.id, self.condition, self.repeat, turn)


class Failure(Struct, frozen=True):
    ask: int
    key: Key
    reason: str
    detail: str
    attempts: int


class Part(Struct, frozen=True):
    """A selection of a run's asks: those of a case, or those with the given ids."""

    case: str | None = None
    asks: Sequence[int] = ()
