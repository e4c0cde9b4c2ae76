"""RAVDESS: 24 actors say two sentences with eight emotions at two intensities; the file names state everything."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from overtone.corpora.corpus_files import Corpus, mostly, named
from overtone.corpora.recording import Recording

# modality (audio only), channel (speech), emotion, intensity, statement, repetition, actor
_NAME = re.compile(r"03-01-0([1-8])-0([12])-0([12])-0[12]-((?:0[1-9]|1\d|2[0-4]))")
_EMOTIONS = ("neutral", "calm", "happy", "sad", "angry", "fear", "disgust", "surprise")
_INTENSITIES = ("normal", "strong")
_STATEMENTS = ("Kids are talking by the door.", "Dogs are sitting by the door.")


def _rows(folder: Path) -> Iterator[Recording | str]:
    for one in named(folder, _NAME):
        if isinstance(one, str):
            yield one
            continue
        file, (emotion, intensity, statement, actor) = one[0], one[1].groups()
        yield Recording(
            name=file,
            speaker=actor,
            sex="female" if int(actor) % 2 == 0 else "male",
            age_group="adult",  # 21 to 33 years, which is all that the paper states
            emotion=_EMOTIONS[int(emotion) - 1],
            intensity=_INTENSITIES[int(intensity) - 1],
            words=_STATEMENTS[int(statement) - 1],
        )


CORPUS = Corpus(
    title="RAVDESS",
    layout="Actor_01/03-01-05-01-02-01-01.wav …",
    licence="CC-BY-NC-SA-4.0",
    page="https://zenodo.org/records/1188976",
    language="en-US",
    recognise=lambda folder: mostly(folder, _NAME),
    rows=_rows,
)
