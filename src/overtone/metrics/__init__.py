"""Metrics turn a stored reply and its item into scores: a value with its statistics, or unscored with a reason.

One file per metric, each with a `load(**options) -> Metric`; importing this room imports none of them. A file that says
`ON_REQUEST = True` (its metric is slow, or needs what few have) is scored only where it is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from msgspec import Struct

from overtone.errors import AudioError
from overtone.languages import language_of
from overtone.paths import inside
from overtone.schema import Item, Key, Score

if TYPE_CHECKING:
    from overtone.audio import Samples


class Sounds(Struct, frozen=True):
    """Where a run's sounds lie: a reply's by its SHA-256, a reference's by its path in the benchmark's folder."""

    reply: Callable[[str], Path]
    root: Path | None = None


class Answered(Struct, frozen=True):
    """One stored reply with its item. `refused` and `finish` are the endpoint's own words on it."""

    key: Key
    item: Item
    text: str
    refused: bool = False
    finish: str = ""
    audio_sha: str = ""
    sounds: Sounds | None = None
    siblings: Mapping[str, str] = {}  # style → reference reply of the same script, of a one-turn conversation

    @property
    def reference(self) -> str:
        """The reference transcript or reply to this turn; "" where there is none."""
        given = self.item.turns[self.key.turn].reference if self.key.turn < len(self.item.turns) else ""
        return given or (self.item.references[0] if self.item.references else "")

    @property
    def language(self) -> str:
        """The primary language of the reply: what the item says, else what the script of its texts suggests."""
        words = self.item.turns[self.key.turn].words if self.key.turn < len(self.item.turns) else ""
        return language_of(self.item.language, self.reference or words)

    @property
    def reference_audio(self) -> str:
        """The path of the reference reply's sound, of the same turn as `reference`; "" where there is none."""
        turn = self.item.turns[self.key.turn] if self.key.turn < len(self.item.turns) else None
        if turn is not None and (turn.reference_audio or turn.reference):
            return turn.reference_audio
        return self.item.reference_audio

    def sound(self) -> tuple[Samples, int]:
        """The reply's sound, mono, and its rate. OvertoneError, fit to be a reason, where it has none that can be
        read."""
        if not self.audio_sha:
            raise AudioError("the reply has no audio")
        if self.sounds is None:
            raise AudioError("the reply's audio cannot be reached")
        return _read(self.sounds.reply(self.audio_sha), f"the reply's audio {self.audio_sha[:12]}")

    def reference_sound(self) -> tuple[Samples, int]:
        """The reference reply's sound, as `sound`."""
        if not self.reference_audio:
            raise AudioError("no reference audio")
        if self.sounds is None or self.sounds.root is None:
            raise AudioError("the run does not say where its reference audio lies")
        path = inside(self.sounds.root, self.reference_audio)
        return _read(path, f"the reference audio {self.reference_audio}")


def _read(path: Path, name: str) -> tuple[Samples, int]:
    from overtone.audio import read

    return read(path, name=name)


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


@runtime_checkable
class Surveying(Metric, Protocol):
    """A metric whose scores depend on the other replies of the run: it sees all of them before it scores any, and
    every time anew."""

    def survey(self, answered: Iterable[Answered]) -> None: ...
