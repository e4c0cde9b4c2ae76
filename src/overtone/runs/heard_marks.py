"""Mark the items of a run whose clips, speakers or corpora the model heard in training.

A benchmark may have `origins(item)`, which returns where an item's clips come from. Without it, items are recognised by
their samples alone.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from overtone import audio
from overtone.benchmarks import Benchmark
from overtone.errors import AudioError, DataError, UsageError, foreign
from overtone.heard import CLIP, RATE, HeardInTraining, Mark, Origin, encode, sound_hash
from overtone.models import Model
from overtone.paths import inside
from overtone.runs.marks import marked_items, start_marks, write_marks
from overtone.runs.store import Store
from overtone.schema import Item

log = logging.getLogger("overtone")


def heard_by(model: Model) -> HeardInTraining | None:
    """Return what a model states that it heard; None if it states nothing. Raises UsageError for another object."""
    state: Callable[[], Any] | None = getattr(model, "heard", None)
    if state is None:
        return None
    with foreign(f"{model.spec} does not say what it heard in training"):
        heard = state()
    if heard is not None and not isinstance(heard, HeardInTraining):
        raise UsageError(
            f"{model.spec}: heard() returned {type(heard).__name__}; return an overtone.heard.HeardInTraining, or None "
            "if it is not known what the model heard"
        )
    return heard


class Marker:
    """Marks the items of a benchmark in a run's store."""

    def __init__(self, store: Store, benchmark: Benchmark, heard: HeardInTraining) -> None:
        self.store, self.benchmark, self.heard = store, benchmark, heard
        start_marks(store, heard.statement() | {"sha256": hashlib.sha256(encode(heard)).hexdigest()})
        self._done = marked_items(store)
        self._origins: Callable[[Item], Iterable[Origin]] = getattr(benchmark, "origins", lambda item: ())
        self._hashes: dict[str, bytes] = {}  # by path, because a clip often belongs to several items

    def add(self, items: Iterable[Item]) -> None:
        """Mark the items that are not marked yet."""
        fresh = [item for item in items if item.id not in self._done]
        write_marks(self.store, {item.id: self.mark(item) for item in fresh})
        self._done.update(item.id for item in fresh)

    def mark(self, item: Item) -> Mark:
        """Return the mark of an item. An unreadable clip has no samples; asking it reports the error."""
        with foreign(f"the benchmark {self.benchmark.name} does not say where the clips of {item.id} come from"):
            origins = tuple(self._origins(item))
        mark = self.heard.mark(origins)
        if mark.level == CLIP or not self.heard.sounds:
            return mark
        by_sound = self.heard.mark((), self._sounds(item))
        return by_sound if by_sound.level else mark

    def _sounds(self, item: Item) -> Iterator[bytes]:
        clips = [turn.clip for turn in item.turns] + [option.clip for option in item.options]
        for clip in clips:
            if clip is None:
                continue
            if clip.path not in self._hashes:
                self._hashes[clip.path] = self._hash(clip.path)
            yield self._hashes[clip.path]

    def _hash(self, path: str) -> bytes:
        try:
            samples = audio.read(inside(self.benchmark.root, path), rate=RATE)[0]
        except (AudioError, DataError, OSError) as error:
            log.debug("%s has no mark by its samples: %s", path, error)
            return b""
        return sound_hash(samples)
