"""Metrics turn a stored reply and its item into scores: a value with its statistics, or unscored with a reason.

One file per metric, each with a `load() -> Metric`; importing this room imports none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from overtone.schema import Item, Key, Score


class Answered(Struct, frozen=True):
    """One stored reply with its item. `refused` and `finish` are the endpoint's own words on it."""

    key: Key
    item: Item
    text: str
    refused: bool = False
    finish: str = ""
    audio_sha: str = ""

    @property
    def reference(self) -> str:
        """The reference transcript or reply to this turn; "" where there is none."""
        given = self.item.turns[self.key.turn].reference if self.key.turn < len(self.item.turns) else ""
        return given or (self.item.references[0] if self.item.references else "")


class Metric(Protocol):
    """What every metric offers. One metric may emit several `Score.metric` names, e.g. `wer` and `wer_raw`."""

    name: str
    version: int

    def applies(self, item: Item) -> bool:
        """Whether this metric has a word to say on the replies to this item."""
        ...

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        """For each reply its scores, in order. Batched: a metric that loads a model loads it once."""
        ...
