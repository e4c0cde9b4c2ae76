"""speechocean762: English read by 250 Mandarin speakers, half of them children, with words, age and sex."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from overtone.corpora import recording
from overtone.corpora.corpus_files import Corpus, lines, mostly, years
from overtone.corpora.recording import Recording
from overtone.corpora.table import table_rows
from overtone.errors import DataError

_PARTS = ("train", "test")
_PREPARED = re.compile(r"\d{9}")  # file names of a folder with labels.csv


def _recognise(folder: Path) -> bool:
    if any((folder / part / "wav.scp").is_file() for part in _PARTS):
        return True
    return (folder / "labels.csv").is_file() and mostly(folder, _PREPARED)


def _pairs(path: Path) -> dict[str, str]:
    """Return a Kaldi table: the first word of each line, and the rest."""
    split = (line.split(maxsplit=1) for line in lines(path))
    return {line[0]: line[1] if len(line) > 1 else "" for line in split if line}


def _rows(folder: Path) -> Iterator[Recording | str]:
    if not any((folder / part).is_dir() for part in _PARTS):
        yield from table_rows(folder)
    for part in _PARTS:
        home = folder / part
        if not (home / "wav.scp").is_file():
            continue
        tables = {name: _pairs(home / name) for name in ("wav.scp", "utt2spk", "text", "spk2age", "spk2gender")}
        for utterance, file in tables["wav.scp"].items():
            try:
                speaker = tables["utt2spk"][utterance]
                yield Recording(
                    name=file,
                    speaker=speaker,
                    sex=recording.sex(tables["spk2gender"].get(speaker, "")),
                    age=years(tables["spk2age"].get(speaker, "")),
                    words=tables["text"].get(utterance, ""),
                    split=part,
                )
            except KeyError:
                yield f"{home / 'utt2spk'}: has no speaker for {utterance}"
            except DataError as error:
                yield f"{home / 'spk2age'}: speaker {speaker}: {error}"


CORPUS = Corpus(
    title="speechocean762",
    layout="WAVE/SPEAKER0001/000010011.WAV … and train/wav.scp, utt2spk, text, spk2age, spk2gender; the same for test",
    licence="CC-BY-4.0",
    page="https://www.openslr.org/101/",
    language="en",
    recognise=_recognise,
    rows=_rows,
)
