"""SAVEE: four British men read 15 sentences per emotion, with seven emotions. The words are not published as text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from overtone.corpora.corpus_files import Corpus, files, stem
from overtone.corpora.open_licences import RESEARCH
from overtone.corpora.recording import Recording

_FLAT = re.compile(r"(DC|JE|JK|KL)_(sa|su|a|d|f|h|n)(\d\d)")
_FOLDERS = re.compile(r"(?:.*/)?(DC|JE|JK|KL)/(sa|su|a|d|f|h|n)(\d\d)\.\w+")  # the publisher's own layout
_EMOTIONS = {
    "a": "angry",
    "d": "disgust",
    "f": "fear",
    "h": "happy",
    "n": "neutral",
    "sa": "sad",
    "su": "surprise",
}


def _code(file: str) -> re.Match[str] | None:
    return _FLAT.fullmatch(stem(file)) or _FOLDERS.fullmatch(file)


def _recognise(folder: Path) -> bool:
    names = [bool(_code(file)) for file in files(folder)]
    return 0 < len(names) <= 2 * sum(names)


def _rows(folder: Path) -> Iterator[Recording | str]:
    for file in files(folder):
        if (code := _code(file)) is None:
            yield f"{folder / file}: the name does not follow the corpus' scheme"
            continue
        yield Recording(
            name=file,
            speaker=code[1],
            sex="male",
            age_group="adult",  # postgraduates and researchers of 27 to 31 years
            emotion=_EMOTIONS[code[2]],
        )


CORPUS = Corpus(
    title="SAVEE",
    layout="DC/a01.wav … or DC_a01.wav …",
    licence=RESEARCH,
    page="http://kahlan.eps.surrey.ac.uk/savee/",
    language="en-GB",
    recognise=_recognise,
    rows=_rows,
)
