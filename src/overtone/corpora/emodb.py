"""EMO-DB: ten German actors say ten sentences with seven emotions; the letters in the names are German words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from overtone.corpora.corpus_files import Corpus, mostly, named
from overtone.corpora.open_licences import UNKNOWN
from overtone.corpora.recording import Recording

_NAME = re.compile(r"(\d\d)([ab]\d\d)([WLEAFTN])([a-h])")
_EMOTIONS = {
    "W": "angry",  # Wut
    "L": "bored",  # Langeweile
    "E": "disgust",  # Ekel
    "A": "fear",  # Angst
    "F": "happy",  # Freude
    "T": "sad",  # Trauer
    "N": "neutral",
}
_SPEAKERS = {
    "03": ("male", 31),
    "08": ("female", 34),
    "09": ("female", 21),
    "10": ("male", 32),
    "11": ("male", 26),
    "12": ("male", 30),
    "13": ("female", 32),
    "14": ("female", 35),
    "15": ("male", 25),
    "16": ("female", 31),
}
_SENTENCES = {
    "a01": "Der Lappen liegt auf dem Eisschrank.",
    "a02": "Das will sie am Mittwoch abgeben.",
    "a04": "Heute abend könnte ich es ihm sagen.",
    "a05": "Das schwarze Stück Papier befindet sich da oben neben dem Holzstück.",
    "a07": "In sieben Stunden wird es soweit sein.",
    "b01": "Was sind denn das für Tüten, die da unter dem Tisch stehen?",
    "b02": "Sie haben es gerade hochgetragen und jetzt gehen sie wieder runter.",
    "b03": "An den Wochenenden bin ich jetzt immer nach Hause gefahren und habe Agnes besucht.",
    "b09": "Ich will das eben wegbringen und dann mit Karl was trinken gehen.",
    "b10": "Die wird auf dem Platz sein, wo wir sie immer hinlegen.",
}


def _rows(folder: Path) -> Iterator[Recording | str]:
    for one in named(folder, _NAME):
        if isinstance(one, str):
            yield one
            continue
        file, (speaker, sentence, emotion, _) = one[0], one[1].groups()
        sex, age = _SPEAKERS.get(speaker, ("", None))
        yield Recording(
            name=file,
            speaker=speaker,
            sex=sex,
            age=age,
            emotion=_EMOTIONS[emotion],
            words=_SENTENCES.get(sentence, ""),
        )


CORPUS = Corpus(
    title="EMO-DB",
    layout="wav/03a01Fa.wav …",
    licence=UNKNOWN,
    page="http://emodb.bilderbar.info/",
    language="de",
    recognise=lambda folder: mostly(folder, _NAME),
    rows=_rows,
)
