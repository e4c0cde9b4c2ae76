"""The emotion in the voices of a run's replies: as a metric wrote it down, else as the package's predictor hears it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from overtone.errors import OvertoneError
from overtone.runs.store import Store
from overtone.scores import in_table

UNKNOWN = "unclear: no emotion stands out"
_OURS = "overtone-emotion"  # how the name of the package's own predictor begins


class Emotions:
    """One word for the voice of each reply, heard once however many judges and rubrics want it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._made: dict[str, asyncio.Future[tuple[str, str]]] = {}
        self._known: dict[int, tuple[str, str]] | None = None

    async def of(self, ask: int, audio: str) -> tuple[str, str]:
        """The emotion of an ask's last reply, and who heard it. OvertoneError, fit to be a reason, where none is."""
        if not audio:
            raise OvertoneError("the reply has no audio")
        if ask in self._written():
            return self._written()[ask]
        if audio not in self._made:
            self._made[audio] = asyncio.ensure_future(asyncio.to_thread(emotion, self.store.audio_path(audio)))
        return await asyncio.shield(self._made[audio])

    def by(self) -> str:
        """Who hears the replies of this run, for the signature of one that nobody could hear."""
        from overtone.embedded.emotion import identity

        return next((name for _, name in self._written().values()), "") or identity()

    def _written(self) -> dict[int, tuple[str, str]]:
        if self._known is None:
            self._known = written(self.store)
        return self._known


def written(store: Store) -> dict[int, tuple[str, str]]:
    """Ask → the emotion that the metric emoalign heard with a predictor other than ours, and that predictor's name."""
    found = {}
    names = in_table(store.declared(), "emotion")
    for ask, score in store.scores(every=True):
        name = score.signature.partition("|predictor:")[2].partition("|")[0]
        heard = score.detail.get("reply")
        if score.metric in names and isinstance(heard, str) and name and not name.startswith(_OURS):
            found[ask] = in_words(heard), name
    return found


def emotion(path: Path) -> tuple[str, str]:
    """The emotion of a reply's sound as our predictor hears it, and the predictor's name."""
    from overtone.audio import read
    from overtone.embedded.emotion import identity, predict

    return in_words(predict(*read(path)).label), identity()


def in_words(label: str) -> str:
    return UNKNOWN if label in ("unknown", "other") else label
