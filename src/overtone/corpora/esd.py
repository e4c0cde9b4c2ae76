"""ESD: ten English and ten Chinese speakers read 350 sentences with five emotions; texts in a tab file per speaker."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from overtone.corpora.corpus_files import Corpus, Note, lines, mostly, named
from overtone.corpora.open_licences import RESEARCH
from overtone.corpora.recording import Recording
from overtone.errors import DataError

_NAME = re.compile(r"(00[01]\d|0020)_(\d{6})")
_EMOTIONS = ("neutral", "angry", "happy", "sad", "surprise")  # of the sentences 1–350, 351–700, …
_NAMES = ("Neutral", "Angry", "Happy", "Sad", "Surprise")  # of folders, and in the texts of English speakers
_SENTENCES = 350
_LINE = re.compile(r"\W*(\d{4}_\d{6})\s+(.*\S)")
_MEN = {4, 5, 6, 8, 10, 11, 12, 13, 14, 20}
_SPLITS = {"train": "train", "evaluation": "dev", "test": "test"}


def _texts(path: Path, is_chinese: bool) -> dict[str, str]:
    """Return the words by recording: `0011_000001	The nine the eggs, I keep.	Neutral`.

    The twenty files are in UTF-8, UTF-16, GB 18030 or Windows-1252, and some lines have spaces for tabs.
    """
    texts = {}
    for line in lines(path, ("utf-8-sig", "gb18030" if is_chinese else "cp1252")):
        if match := _LINE.match(line):
            head, _, last = match[2].rpartition(" ")
            is_labelled = "\t" not in match[2] and (last in _NAMES or (is_chinese and head))
            texts[match[1]] = head.strip() if is_labelled else match[2].partition("\t")[0].strip()
    return texts


def _rows(folder: Path) -> Iterator[Recording | str]:
    texts: dict[str, dict[str, str]] = {}
    for one in named(folder, _NAME):
        if isinstance(one, str):
            yield one
            continue
        file, (speaker, number) = one[0], one[1].groups()
        at, part = int(speaker), (int(number) - 1) // _SENTENCES
        if not (1 <= at <= 20 and 0 <= part < len(_EMOTIONS)):
            yield f"{folder / file}: there is no speaker {speaker} with sentence {number}"
            continue
        if speaker not in texts:
            folders = file.split("/")[:-1]
            home = folder.joinpath(*folders[: folders.index(speaker) + 1]) if speaker in folders else folder
            path = home / f"{speaker}.txt"
            try:
                texts[speaker] = _texts(path, at <= 10)
            except DataError as error:
                texts[speaker] = {}
                yield Note(f"no words of speaker {speaker}: {error}")
        yield Recording(
            name=file,
            speaker=speaker,
            sex="male" if at in _MEN else "female",
            emotion=_EMOTIONS[next((_NAMES.index(name) for name in file.split("/") if name in _NAMES), part)],
            words=texts[speaker].get(f"{speaker}_{number}", ""),
            language="zh-CN" if at <= 10 else "en",
            split=next((_SPLITS[name] for name in file.split("/") if name in _SPLITS), ""),
        )


CORPUS = Corpus(
    title="ESD",
    layout="0011/Angry/0011_000351.wav … (or with train/, evaluation/, test/ below Angry/) and 0011/0011.txt",
    licence=RESEARCH,
    page="https://hltsingapore.github.io/ESD/",
    recognise=lambda folder: mostly(folder, _NAME),
    rows=_rows,
)
