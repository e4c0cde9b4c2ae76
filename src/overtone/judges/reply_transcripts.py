"""What is heard in the spoken replies of a run: as a metric wrote it down, else by the recogniser of the package."""

from __future__ import annotations

import asyncio
from pathlib import Path

from overtone.errors import OvertoneError
from overtone.languages import primary
from overtone.runs.store import Store

OURS = "moonshine"  # how the name of the package's own recogniser begins


class Transcripts:
    """The words of replies, each heard once however many judges and rubrics want them."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._made: dict[str, asyncio.Future[str]] = {}
        self._written: dict[tuple[int, int], tuple[str, str]] | None = None

    async def of(self, ask: int, turn: int, audio: str, language: str) -> tuple[str, str]:
        """The words of a reply's sound, and the recogniser's name, "" for ours. OvertoneError where ours cannot."""
        if self._written is None:
            self._written = written(self.store)
        if (ask, turn) in self._written:
            return self._written[ask, turn]
        if primary(language) not in ("", "en"):
            raise OvertoneError(
                f"the offline recogniser hears English alone, and this reply is in {language!r}; score the run with "
                "--metric 'consistency?recogniser=openai/whisper-large-v3' first, which writes down what it hears"
            )
        if audio not in self._made:
            self._made[audio] = asyncio.ensure_future(asyncio.to_thread(transcript, self.store.audio_path(audio)))
        return await asyncio.shield(self._made[audio]), ""


def written(store: Store) -> dict[tuple[int, int], tuple[str, str]]:
    """Ask and turn → the words that the metric consistency heard with a recogniser other than ours, and its name."""
    found = {}
    last = {ask.id: len(ask.item.turns) - 1 for ask, _ in store.asks()}
    rows = [(ask, last.get(ask, 0), score) for ask, score in store.scores(every=True)]
    for ask, turn, score in (*rows, *store.turn_scores(every=True)):
        name = score.signature.partition("|recogniser:")[2].partition("|")[0]
        heard = score.detail.get("transcript")
        if score.metric == "consistency_wer" and isinstance(heard, str) and name and not name.startswith(OURS):
            found[ask, turn] = heard, name
    return found


def transcript(path: Path) -> str:
    """The words of a reply's sound."""
    from overtone.audio import read
    from overtone.embedded.recogniser import transcribe

    return transcribe(*read(path))
