"""EmoV-DB: two women and two men read sentences of CMU ARCTIC amused, angry, disgusted, sleepy and neutral."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from overtone.corpora.corpus_files import Corpus, Note, beside, lines, mostly, named
from overtone.corpora.open_licences import RESEARCH
from overtone.corpora.recording import Recording

_EMOTIONS = {
    "amused": "amused",
    "anger": "angry",
    "angry": "angry",
    "disgust": "disgust",
    "disgusted": "disgust",
    "neutral": "neutral",
    "sleepiness": "sleepy",
    "sleepy": "sleepy",
}
_NAME = re.compile(rf"({'|'.join(_EMOTIONS)})_\d+-\d+_(\d{{4}})", re.I)
_SPEAKERS = {"bea": "female", "jenie": "female", "josh": "male", "sam": "male"}
_SENTENCES = "cmuarctic.data"  # ( arctic_a0001 "Author of the danger trail, Philip Steels, etc." )
_SENTENCE = re.compile(r'\(\s*arctic_a(\d{4})\s+"(.*)"\s*\)')


def _speaker(file: str) -> str:
    names = [re.split("[_-]", folder.lower())[0] for folder in file.split("/")[:-1]]
    return next((name for name in reversed(names) if name in _SPEAKERS), "")


def _rows(folder: Path) -> Iterator[Recording | str]:
    texts: dict[str, str] = {}
    if table := beside(folder, _SENTENCES):
        texts = {match[1]: match[2] for line in lines(table) if (match := _SENTENCE.match(line))}
    else:
        yield Note(f"{folder / _SENTENCES}: missing, so that words are unknown; get it from festvox.org/cmu_arctic")
    for one in named(folder, _NAME, distinct=False):
        if isinstance(one, str):
            yield one
            continue
        file, (emotion, number) = one[0], one[1].groups()
        speaker = _speaker(file)
        if not speaker:
            who = ", ".join(_SPEAKERS)
            yield f"{folder / file}: no folder names the speaker ({who}); unpack bea_Amused.tar.gz in bea_Amused/"
            continue
        yield Recording(
            name=file,
            speaker=speaker,
            sex=_SPEAKERS[speaker],
            emotion=_EMOTIONS[emotion.lower()],
            words=texts.get(number, ""),
        )


CORPUS = Corpus(
    title="EmoV-DB",
    layout=f"bea_Amused/amused_1-15_0001.wav … and {_SENTENCES}",
    licence=RESEARCH,
    page="https://www.openslr.org/115/",
    language="en",
    recognise=lambda folder: mostly(folder, _NAME),
    rows=_rows,
)
