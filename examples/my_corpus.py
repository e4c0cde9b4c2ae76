"""My corpus: a folder per speaker, and the emotion as the first part of a file's name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from overtone.corpora import Corpus, Recording

ROOM = "corpora"
EMOTIONS = {"hap": "happy", "sad": "sad", "ang": "angry"}


def recognise(folder: Path) -> bool:
    """Return whether the folder has this layout."""
    return any(folder.glob("speaker_*/*.wav"))


def rows(folder: Path) -> Iterator[Recording | str]:
    """Yield a recording per file, and a sentence for each file that cannot be used."""
    for path in sorted(folder.glob("speaker_*/*.wav")):
        emotion = EMOTIONS.get(path.stem.split("_")[0])
        if emotion is None:
            yield f"{path}: no emotion in the name; expected {', '.join(EMOTIONS)}"
            continue
        yield Recording(name=path.relative_to(folder).as_posix(), speaker=path.parent.name, emotion=emotion)


CORPUS = Corpus(
    title="My corpus",
    layout="speaker_ann/hap_01.wav …",
    licence="CC-BY-4.0",
    page="https://example.org/corpus",
    language="en",
    recognise=recognise,
    rows=rows,
)
