"""MELD: turns of the television series Friends with seven emotions; its videos must be converted to sounds first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from overtone.corpora import recording
from overtone.corpora.corpus_files import Corpus, cp1252_mended, files, rows, stem
from overtone.corpora.recording import Recording
from overtone.errors import DataError

_NAME = re.compile(r"dia(\d+)_utt(\d+)")
_SPLITS = ("train", "dev", "test")  # train_splits, dev_splits_complete, output_repeated_splits_test
_LEADS = {  # the speakers of four fifths of the turns
    **dict.fromkeys(("Monica", "Rachel", "Phoebe"), "female"),
    **dict.fromkeys(("Chandler", "Joey", "Ross"), "male"),
}
FFMPEG = 'for f in MELD.Raw/*/dia*.mp4; do ffmpeg -nostdin -v error -i "$f" -vn -ac 1 -ar 16000 "${f%.mp4}.wav"; done'


def _tables(folder: Path) -> dict[str, str]:
    """Return the table of each part: train_sent_emo.csv, dev_sent_emo.csv, test_sent_emo.csv."""
    tables: dict[str, str] = {}
    for file in files(folder, {".csv"}):
        part = stem(file).partition("_")[0]
        if part in _SPLITS and stem(file) == f"{part}_sent_emo":
            tables.setdefault(part, file)
    return tables


def _split_of(file: str) -> str:
    folders = file.split("/")[:-1]
    return next((part for folder in reversed(folders) for part in _SPLITS if part in folder.split("_")), "")


def _rows(folder: Path) -> Iterator[Recording | str]:
    sounds = {
        (_split_of(file), int(name[1]), int(name[2])): file
        for file in files(folder)
        if (name := _NAME.fullmatch(stem(file)))
    }
    if not sounds:
        yield f"{folder}: no sound files dia0_utt0.wav …; convert the videos: {FFMPEG}"
        return
    for part, table in _tables(folder).items():

        def convert(row: dict[str, str], part: str = part) -> Recording:
            try:
                key = part, int(row["Dialogue_ID"]), int(row["Utterance_ID"])
            except ValueError:
                raise DataError(f"Dialogue_ID {row['Dialogue_ID']!r} or Utterance_ID is not a number") from None
            if key not in sounds:
                raise DataError(f"no sound file dia{key[1]}_utt{key[2]} in the folder of {part}")
            return Recording(
                name=sounds[key],
                speaker=row["Speaker"],
                sex=_LEADS.get(row["Speaker"], ""),
                emotion=recording.emotion(row["Emotion"]),
                words=cp1252_mended(row["Utterance"]),
                split=part,
            )

        yield from rows(folder / table, convert)


CORPUS = Corpus(
    title="MELD",
    layout="train_sent_emo.csv, dev_sent_emo.csv, test_sent_emo.csv; "
    "train_splits/dia0_utt0.wav …, dev_splits_complete/…, output_repeated_splits_test/…",
    licence="GPL-3.0-only",
    page="https://github.com/declare-lab/MELD",
    language="en-US",
    recognise=lambda folder: (
        bool(_tables(folder))
        and any(
            _NAME.fullmatch(stem(file)) for file in files(folder, {".wav", ".flac", ".ogg", ".opus", ".mp3", ".mp4"})
        )
    ),
    rows=_rows,
)
