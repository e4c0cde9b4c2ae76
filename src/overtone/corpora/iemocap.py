"""IEMOCAP: ten actors in improvised and scripted dialogues; the emotion is the one most evaluators chose."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from overtone.corpora.corpus_files import Corpus, files, lines, stem
from overtone.corpora.open_licences import RESEARCH
from overtone.corpora.recording import Recording
from overtone.errors import DataError

_EMOTIONS = {
    "neu": "neutral",
    "hap": "happy",
    "sad": "sad",
    "ang": "angry",
    "sur": "surprise",
    "fea": "fear",
    "dis": "disgust",
    "fru": "frustrated",
    "exc": "excited",
    "oth": "other",
    "xxx": "",  # the evaluators did not agree
}
# [6.2901 - 8.2357]	Ses01F_impro01_F000	neu	[2.5000, 2.5000, 2.5000], then a line per evaluator
_TURN = re.compile(r"\[[\d.]+ - [\d.]+\]\s+(Ses0[1-5][MF]_\w+_[MF]\w*\d+\w*)\s+(\w{3})\s+\[.*")
_WORDS = re.compile(r"(Ses0[1-5][MF]_\w+)\s+\[[\d.-]+\]:\s*(.*)")
_TAG = re.compile(r"\[[A-Z ]+\]")  # [LAUGHTER], [BREATHING], [GARBAGE]
_MARKED = re.compile(r"Ses0[1-5][MF]_(?:impro|script)\w+")


def _evaluations(folder: Path) -> list[str]:
    return [
        name
        for name in files(folder, {".txt"})
        if re.search(r"(^|/)dialog/EmoEvaluation/[^/]+$", name) and _MARKED.fullmatch(stem(name))
    ]


def _words(folder: Path, dialogue: str) -> dict[str, str]:
    """Return the words of each turn of a dialogue: `Ses01F_impro01_F000 [006.2901-008.2357]: Excuse me.`"""
    path = folder / dialogue.replace("/EmoEvaluation/", "/transcriptions/")
    if not path.is_file():
        return {}
    return {match[1]: match[2] for line in lines(path, ("utf-8-sig", "cp1252")) if (match := _WORDS.match(line))}


def _rows(folder: Path) -> Iterator[Recording | str]:
    for dialogue in _evaluations(folder):
        session = dialogue.partition("dialog/EmoEvaluation/")[0]
        try:
            words = _words(folder, dialogue)
            turns = [match for line in lines(folder / dialogue) if (match := _TURN.match(line.strip()))]
        except DataError as error:
            yield str(error)
            continue
        if not turns:
            yield f"{folder / dialogue}: no line such as [6.29 - 8.24] Ses01F_impro01_F000 neu [2.5, 2.5, 2.5]"
        for name, code in (turn.groups() for turn in turns):
            if code not in _EMOTIONS:
                yield f"{folder / dialogue}: {name} has the unknown emotion {code!r}"
                continue
            sex = name.rpartition("_")[2][0]  # Ses01F_impro01_M003: the man of session 1
            said = words.get(name, "")
            yield Recording(
                name=f"{session}sentences/wav/{stem(dialogue)}/{name}.wav",
                speaker=f"{name[:5]}{sex}",
                sex="female" if sex == "F" else "male",
                emotion=_EMOTIONS[code],
                event="laughter" if "[LAUGHTER]" in said else "",
                words=" ".join(_TAG.sub(" ", said).split()),
                split=f"session {name[4]}",
            )


CORPUS = Corpus(
    title="IEMOCAP",
    layout="Session1/sentences/wav/Ses01F_impro01/Ses01F_impro01_F000.wav … and "
    "Session1/dialog/EmoEvaluation/Ses01F_impro01.txt, Session1/dialog/transcriptions/Ses01F_impro01.txt",
    licence=RESEARCH,
    page="https://sail.usc.edu/iemocap/",
    language="en-US",
    recognise=lambda folder: bool(_evaluations(folder)),
    rows=_rows,
)
