"""LibriSpeech: volunteers read English audiobooks; words, and the speakers' sex if SPEAKERS.TXT exists."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from overtone.corpora import recording
from overtone.corpora.corpus_files import Corpus, beside, files, header, lines, rows, stem
from overtone.corpora.recording import Recording
from overtone.errors import DataError

_TABLE = "transcripts.tsv"  # of a small selection: file, text


def _recognise(folder: Path) -> bool:
    if {"file", "text"} <= set(header(folder / _TABLE, "\t")):
        return True
    return next((True for name in files(folder, {".txt"}) if name.endswith(".trans.txt")), False)


def _sexes(folder: Path) -> dict[str, str]:
    """Return the speakers' sex from `14 | F | train-clean-360 | 25.03 | Kristin LeMoine`."""
    table = beside(folder, "SPEAKERS.TXT")
    cells = [line.split("|") for line in lines(table) if not line.startswith(";")] if table else []
    return {cell[0].strip(): recording.sex(cell[1]) for cell in cells if len(cell) > 1}


def _rows(folder: Path) -> Iterator[Recording | str]:
    sexes = _sexes(folder)

    def one(file: str, words: str, split: str = "") -> Recording:
        speaker = stem(file).split("-")[0]
        return Recording(name=file, speaker=speaker, sex=sexes.get(speaker, ""), words=words, split=split)

    if (folder / _TABLE).is_file():
        yield from rows(folder / _TABLE, lambda row: one(row["file"], row["text"]), delimiter="\t", quoted=False)
        return
    for transcript in (name for name in files(folder, {".txt"}) if name.endswith(".trans.txt")):
        where, _, _ = transcript.rpartition("/")
        parts = [folder.name, *where.split("/")]
        split = next((name for name in parts if name.startswith(("train-", "dev-", "test-"))), "")
        try:
            for line in lines(folder / transcript):
                name, _, words = line.partition(" ")
                if name:
                    yield one(f"{where}/{name}.flac" if where else f"{name}.flac", words, split)
        except DataError as error:
            yield str(error)


CORPUS = Corpus(
    title="LibriSpeech",
    layout="test-other/1688/142285/1688-142285-0000.flac … with 1688-142285.trans.txt",
    licence="CC-BY-4.0",
    page="https://www.openslr.org/12/",
    language="en",
    recognise=_recognise,
    rows=_rows,
)
