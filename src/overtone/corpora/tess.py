"""TESS: two women, aged 26 and 64, say "Say the word …" with 200 words and seven emotions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from overtone.corpora import recording
from overtone.corpora.corpus_files import Corpus, mostly, named
from overtone.corpora.recording import Recording

_NAME = re.compile(r"(OAF?|YAF)_([a-z]+)_(angry|disgust|fear|happy|neutral|ps|sad)", re.I)  # OA_bite_neutral.wav
_AGES = {"OAF": 64, "YAF": 26}


def _rows(folder: Path) -> Iterator[Recording | str]:
    for one in named(folder, _NAME):
        if isinstance(one, str):
            yield one
            continue
        file, (actress, word, emotion) = one[0], one[1].groups()
        speaker = "YAF" if actress.upper() == "YAF" else "OAF"
        yield Recording(
            name=file,
            speaker=speaker,
            sex="female",
            age=_AGES[speaker],
            emotion=recording.emotion(emotion),
            words=f"Say the word {word.lower()}.",
        )


CORPUS = Corpus(
    title="TESS",
    layout="OAF_angry/OAF_back_angry.wav …",
    licence="CC-BY-NC-ND-4.0",
    page="https://doi.org/10.5683/SP2/E8H2MF",
    language="en-CA",
    recognise=lambda folder: mostly(folder, _NAME),
    rows=_rows,
)
