"""Metrics turn a stored reply and its item into scores: a value with its statistics, or unscored with a reason.

Each metric is a module with a `load(**options) -> Metric`; importing this package imports no such module. A metric that
is slow or needs a special installation sets `ON_REQUEST = True` and runs only if the user names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from msgspec import Struct

from overtone.errors import AudioError
from overtone.languages import language_of
from overtone.paths import inside
from overtone.schema import Item, Key, Likelihood, Score

if TYPE_CHECKING:
    from overtone.audio import Samples


class Sounds(Struct, frozen=True):
    """Access to a run's audio: a reply's by its SHA-256, a reference reply's by its path in the benchmark's folder."""

    reply: Callable[[str], Path]
    root: Path | None = None


class Answered(Struct, frozen=True):
    """One stored reply with its item. `refused` and `finish` were reported by the endpoint."""

    key: Key
    item: Item
    text: str
    refused: bool = False
    finish: str = ""
    audio_sha: str = ""
    sounds: Sounds | None = None
    likelihoods: tuple[tuple[Likelihood, ...], ...] = ()  # of the possible answers, if the model was asked for them
    siblings: Mapping[str, str] = {}  # style → reference reply of the same script, in one-turn conversations

    @property
    def reference(self) -> str:
        """The reference transcript or reply to this turn; "" if it is missing."""
        given = self.item.turns[self.key.turn].reference if self.key.turn < len(self.item.turns) else ""
        return given or (self.item.references[0] if self.item.references else "")

    @property
    def language(self) -> str:
        """The primary language of the reply: the item's language, else a guess from the writing system of its texts."""
        words = self.item.turns[self.key.turn].words if self.key.turn < len(self.item.turns) else ""
        return language_of(self.item.language, self.reference or words)

    @property
    def reference_audio(self) -> str:
        """The path of the reference reply's audio, for the same turn as `reference`; "" if it is missing."""
        turn = self.item.turns[self.key.turn] if self.key.turn < len(self.item.turns) else None
        if turn is not None and (turn.reference_audio or turn.reference):
            return turn.reference_audio
        return self.item.reference_audio

    def sound(self) -> tuple[Samples, int]:
        """Return the reply's audio as mono samples, and its rate. Raises OvertoneError, worded as a score's reason."""
        if not self.audio_sha:
            raise AudioError("the reply has no audio")
        if self.sounds is None:
            raise AudioError("the reply's audio cannot be reached")
        return _read(self.sounds.reply(self.audio_sha), f"the reply's audio {self.audio_sha[:12]}")

    def reference_sound(self) -> tuple[Samples, int]:
        """Return the reference reply's audio in the same form as `sound`."""
        if not self.reference_audio:
            raise AudioError("no reference audio")
        if self.sounds is None or self.sounds.root is None:
            raise AudioError("the run does not name the folder of its reference audio")
        path = inside(self.sounds.root, self.reference_audio)
        return _read(path, f"the reference audio {self.reference_audio}")


def _read(path: Path, name: str) -> tuple[Samples, int]:
    from overtone.audio import read

    return read(path, name=name)


class Metric(Protocol):
    """The interface of every metric. A metric may emit several `Score.metric` names, e.g. `wer` and `wer_raw`.

    A slow metric may set `page`, the number of replies per call of `score` (default: 256). Progress is reported, and
    scores are stored, after each call. A metric with `slow = True` is copied (by pickle) into several processes, which
    score different pages of replies. It must not keep a state between pages, nor hold a process or a connection. Slow
    metrics with the same `shares` and `page` score the same replies one after the other in one process. With `shares =
    "sentence vectors"`, each text of a page is embedded once for all of them.
    """

    name: str
    version: int

    def applies(self, item: Item) -> bool:
        """Return whether this metric scores the replies to this item."""
        ...

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        """Return the scores of each reply, in order. Replies come in batches so that a model is loaded once."""
        ...


@runtime_checkable
class Surveying(Metric, Protocol):
    """A metric whose scores depend on the other replies of the run."""

    def survey(self, answered: Iterable[Answered]) -> None:
        """Look at all replies of the run. This is called before `score`, each time a run is scored."""
        ...


class ReplyMetric:
    """Base class of metrics that score each reply separately, for items of one task. A subclass defines `one`."""

    task = "converse"

    def applies(self, item: Item) -> bool:
        return item.task == self.task

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        return [self.one(reply) for reply in answered]

    def one(self, a: Answered) -> list[Score]:
        raise NotImplementedError
