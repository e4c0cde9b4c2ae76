"""CREMA-D: 91 actors of 20 to 74 years say twelve sentences with six emotions, some at three intensities."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from overtone.corpora import recording
from overtone.corpora.corpus_files import Corpus, Note, beside, mostly, named, rows, years
from overtone.corpora.recording import Recording

_SENTENCES = {
    "IEO": "It's eleven o'clock.",
    "TIE": "That is exactly what happened.",
    "IOM": "I'm on my way to the meeting.",
    "IWW": "I wonder what this is about.",
    "TAI": "The airplane is almost full.",
    "MTI": "Maybe tomorrow it will be cold.",
    "IWL": "I would like a new alarm clock.",
    "ITH": "I think I have a doctor's appointment.",
    "DFA": "Don't forget a jacket.",
    "ITS": "I think I've seen this before.",
    "TSI": "The surface is slick.",
    "WSI": "We'll stop in a couple of minutes.",
}
_EMOTIONS = {"ANG": "angry", "DIS": "disgust", "FEA": "fear", "HAP": "happy", "NEU": "neutral", "SAD": "sad"}
_INTENSITIES = {"LO": "low", "MD": "normal", "HI": "strong"}  # XX, and X in one name: not specified
_NAME = re.compile(rf"(1\d{{3}})_({'|'.join(_SENTENCES)})_({'|'.join(_EMOTIONS)})_(LO|MD|HI|XX?)")
_PEOPLE = "VideoDemographics.csv"


def _person(row: dict[str, str]) -> Recording:
    return Recording(name="", speaker=row["ActorID"], sex=recording.sex(row["Sex"]), age=years(row["Age"]))


def _rows(folder: Path) -> Iterator[Recording | str]:
    actors: dict[str, Recording] = {}
    if table := beside(folder, _PEOPLE):
        for person in rows(table, _person):
            if isinstance(person, str):
                yield Note(person)
            else:
                actors[person.speaker] = person
    else:
        yield Note(f"{folder / _PEOPLE}: missing, so that sex and age are unknown")
    for one in named(folder, _NAME):
        if isinstance(one, str):
            yield one
            continue
        file, (actor, sentence, emotion, intensity) = one[0], one[1].groups()
        known = actors.get(actor, Recording(name=file))
        yield Recording(
            name=file,
            speaker=actor,
            sex=known.sex,
            age=known.age,
            emotion=_EMOTIONS[emotion],
            intensity=_INTENSITIES.get(intensity, ""),
            words=_SENTENCES[sentence],
        )


CORPUS = Corpus(
    title="CREMA-D",
    layout=f"AudioWAV/1001_DFA_ANG_XX.wav … and {_PEOPLE}",
    licence="ODbL-1.0",
    page="https://github.com/CheyneyComputerScience/CREMA-D",
    language="en-US",
    recognise=lambda folder: mostly(folder, _NAME),
    rows=_rows,
)
