"""MSP-Podcast: turns from podcasts with the emotion that most listeners heard; the speech is not acted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from overtone.corpora import recording
from overtone.corpora.corpus_files import Corpus, header, lines, rows, stem
from overtone.corpora.open_licences import RESEARCH
from overtone.corpora.recording import Recording
from overtone.errors import DataError

_TABLES = ("Labels/labels_consensus.csv", "labels_consensus.csv", "Labels/labels_concensus.csv")  # older: misspelt
_EMOTIONS = {
    "A": "angry",
    "S": "sad",
    "H": "happy",
    "U": "surprise",
    "F": "fear",
    "D": "disgust",
    "C": "contempt",
    "N": "neutral",
    "O": "other",
    "X": "",  # the listeners did not agree
    "": "",  # the labels of Test3 are not published
}
_SPLITS = {"Development": "dev", "Validation": "dev"}


def _table(folder: Path) -> Path | None:
    return next((folder / name for name in _TABLES if {"FileName", "EmoClass"} <= set(header(folder / name))), None)


def _rows(folder: Path) -> Iterator[Recording | str]:
    table = _table(folder)
    assert table is not None  # `recognise` found it
    home = "Audios" if (folder / "Audios").is_dir() else "Audio"

    def convert(row: dict[str, str]) -> Recording:
        file, code = row["FileName"], row["EmoClass"]
        if code not in _EMOTIONS:
            raise DataError(f"unknown EmoClass {code!r}")
        known = row.get("SpkrID", "")
        if not known.removesuffix(".0").isdecimal():  # unknown: nobody of the same podcast may be in another part
            known = "podcast " + "_".join(stem(file).split("_")[:2])
        words = folder / "Transcripts" / f"{stem(file)}.txt"
        split = row.get("Split_Set", "")
        return Recording(
            name=f"{home}/{file}",
            speaker=known.removesuffix(".0"),
            sex=recording.sex(row.get("Gender", "")),
            emotion=_EMOTIONS[code],
            words=" ".join(lines(words, ("utf-8-sig", "cp1252"))).strip() if words.is_file() else "",
            split=_SPLITS.get(split, split.lower()),
        )

    yield from rows(table, convert)


CORPUS = Corpus(
    title="MSP-Podcast",
    layout="Audios/MSP-PODCAST_0001_0008.wav … and Labels/labels_consensus.csv, optionally Transcripts/",
    licence=RESEARCH,
    page="https://ecs.utdallas.edu/research/researchlabs/msp-lab/MSP-Podcast.html",
    language="en-US",
    recognise=lambda folder: _table(folder) is not None,
    rows=_rows,
)
