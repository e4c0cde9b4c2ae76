"""Your own recordings: sound files and a labels.csv that states who speaks, how, and under which licence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from overtone.corpora import recording
from overtone.corpora.corpus_files import Corpus, header, rows, stem, years
from overtone.corpora.open_licences import UNKNOWN
from overtone.corpora.recording import AGE_GROUPS, INTENSITIES, Recording
from overtone.errors import DataError

FILE = "labels.csv"
_OTHERS = {"speaker": ("actor",), "sex": ("gender",), "words": ("text",)}  # other names of columns


def is_table(folder: Path) -> bool:
    """Return whether the folder has a table of its recordings."""
    return "file" in header(folder / FILE)


def table_rows(folder: Path) -> Iterator[Recording | str]:
    """Yield a recording per row. Only `file` is needed; empty cells and missing columns are unknown labels."""
    yield from rows(folder / FILE, _row)


def _row(row: dict[str, str]) -> Recording:
    cell = {name: next((row[k] for k in (name, *_OTHERS.get(name, ())) if row.get(k)), "") for name in COLUMNS}
    sex = recording.sex(cell["sex"])
    if cell["sex"] and not sex and cell["sex"].lower() not in ("other", "unknown"):
        raise DataError(f"sex {cell['sex']!r} is neither male nor female; leave it empty if it is unknown")
    if cell["corpus"] and not re.fullmatch("[a-z0-9][a-z0-9-]*", cell["corpus"]):
        raise DataError(f"corpus {cell['corpus']!r} is not a name; use small letters, digits and -")
    group = cell["age_group"].lower()
    if group and group not in AGE_GROUPS:
        raise DataError(f"age_group {cell['age_group']!r} is unknown; use {', '.join(AGE_GROUPS)}")
    intensity = cell["intensity"].lower()
    if intensity and intensity not in INTENSITIES:
        raise DataError(f"intensity {cell['intensity']!r} is unknown; use {', '.join(INTENSITIES)}")
    return Recording(
        corpus=cell["corpus"],
        name=row["file"],
        speaker=cell["speaker"] or stem(row["file"]),  # unknown speakers are taken as different ones
        sex=sex,
        age=years(cell["age"]),
        age_group=group,
        emotion=recording.emotion(cell["emotion"]),
        intensity=intensity,
        event=recording.event(cell["event"]),
        words=cell["words"],
        language=cell["language"],
        licence=cell["licence"],
        split=cell["split"],
    )


COLUMNS = (
    "corpus",
    "speaker",
    "sex",
    "age",
    "age_group",
    "emotion",
    "intensity",
    "event",
    "words",
    "language",
    "licence",
    "split",
)
CORPUS = Corpus(
    title="a table of your own",
    layout=f"{FILE} with the column file, and any of {', '.join(COLUMNS)}",
    licence=UNKNOWN,
    page="",
    recognise=is_table,
    rows=table_rows,
)
