"""The words and the emotion of a run's spoken replies. They come from stored scores of a metric, or else from the
package's own models."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from overtone.errors import OvertoneError
from overtone.languages import primary
from overtone.runs.store import Store
from overtone.scores import in_table

UNKNOWN = "unclear: no emotion stands out"
_OUR_PREDICTOR = "overtone-emotion"  # prefix of the name of the package's own predictor
_OUR_RECOGNISER = "moonshine"
T = TypeVar("T")


class _Once(Generic[T]):
    """A slow function of a reply's audio. It runs once per file, in a thread, and all judges share the result."""

    def __init__(self, store: Store, function: Callable[[Path], T]) -> None:
        self._store, self._function = store, function
        self._results: dict[str, asyncio.Future[T]] = {}

    async def __call__(self, audio: str) -> T:
        if audio not in self._results:
            call = asyncio.to_thread(self._function, self._store.audio_path(audio))
            self._results[audio] = asyncio.ensure_future(call)
        return await asyncio.shield(self._results[audio])


class Transcripts:
    """The words of replies."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._transcribe = _Once(store, transcript)
        self._stored: dict[tuple[int, int], tuple[str, str]] | None = None

    async def of(self, ask: int, turn: int, audio: str, language: str) -> tuple[str, str]:
        """Return a reply's words and the recogniser's name, "" for the package's own.

        Raises OvertoneError if the package's recogniser does not know the language.
        """
        if self._stored is None:
            self._stored = stored_transcripts(self._store)
        if (ask, turn) in self._stored:
            return self._stored[ask, turn]
        if primary(language) not in ("", "en"):
            raise OvertoneError(
                f"the offline recogniser hears English alone, and this reply is in {language!r}; score the run with "
                "--metric 'consistency?recogniser=openai/whisper-large-v3' first, which writes down what it hears"
            )
        return await self._transcribe(audio), ""


def stored_transcripts(store: Store) -> dict[tuple[int, int], tuple[str, str]]:
    """Return (ask, turn) → (words, recogniser), from scores of the metric consistency with an external recogniser."""
    transcripts = {}
    last = {ask.id: len(ask.item.turns) - 1 for ask, _ in store.asks()}
    rows = [(ask, last.get(ask, 0), score) for ask, score in store.scores(every=True)]
    for ask, turn, score in (*rows, *store.turn_scores(every=True)):
        name = score.signature.partition("|recogniser:")[2].partition("|")[0]
        words = score.detail.get("transcript")
        other = name and not name.startswith(_OUR_RECOGNISER)
        if score.metric == "consistency_wer" and isinstance(words, str) and other:
            transcripts[ask, turn] = words, name
    return transcripts


def transcript(path: Path) -> str:
    """Transcribe an audio file with the package's recogniser."""
    from overtone.audio import read
    from overtone.embedded.recogniser import transcribe

    return transcribe(*read(path))


class Emotions:
    """The emotion in the voice of replies, as one word."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._predict = _Once(store, emotion)
        self._stored: dict[int, tuple[str, str]] | None = None

    async def of(self, ask: int, audio: str) -> tuple[str, str]:
        """Return the emotion of an ask's last reply, and the predictor's name. Raises OvertoneError without audio."""
        if not audio:
            raise OvertoneError("the reply has no audio")
        return self._by_metric().get(ask) or await self._predict(audio)

    def predictor(self) -> str:
        """Return the name of this run's predictor. The signature of a reply without an emotion contains it too."""
        from overtone.embedded.emotion import identity

        return next((name for _, name in self._by_metric().values()), "") or identity()

    def _by_metric(self) -> dict[int, tuple[str, str]]:
        if self._stored is None:
            self._stored = stored_emotions(self._store)
        return self._stored


def stored_emotions(store: Store) -> dict[int, tuple[str, str]]:
    """Return ask → (emotion, predictor), from scores of the metric emoalign with an external predictor."""
    emotions = {}
    names = in_table(store.declared(), "emotion")
    for ask, score in store.scores(every=True):
        name = score.signature.partition("|predictor:")[2].partition("|")[0]
        label = score.detail.get("reply")
        if score.metric in names and isinstance(label, str) and name and not name.startswith(_OUR_PREDICTOR):
            emotions[ask] = in_words(label), name
    return emotions


def emotion(path: Path) -> tuple[str, str]:
    """Return the emotion that the package's predictor finds in an audio file, and the predictor's name."""
    from overtone.audio import read
    from overtone.embedded.emotion import identity, predict

    return in_words(predict(*read(path)).label), identity()


def in_words(label: str) -> str:
    """Return an emotion label in the form that a judge reads: UNKNOWN for "unknown" and "other", other labels
    unchanged."""
    return UNKNOWN if label in ("unknown", "other") else label
