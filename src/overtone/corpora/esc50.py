"""ESC-50: 2,000 environmental and human sounds of 50 classes; the ten classes of ESC-10 have a more open licence."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from overtone.corpora import recording
from overtone.corpora.corpus_files import Corpus, header, rows, stem
from overtone.corpora.recording import Recording

_TABLES = ("meta/esc50.csv", "labels.csv")
_ESC10 = "CC-BY-3.0"


def _recognise(folder: Path) -> bool:
    return any({"category", "esc10"} <= set(header(folder / table)) for table in _TABLES)


def _row(row: dict[str, str]) -> Recording:
    file = row.get("file") or f"audio/{row['filename']}"
    parts = stem(file).split("-")  # fold, source recording, take, class
    return Recording(
        name=file,
        speaker=parts[1] if len(parts) > 1 else stem(file),
        event=recording.event(row["category"]),
        licence=_ESC10 if row["esc10"].lower() == "true" else "",
        split=f"fold {row['fold']}" if row.get("fold") else "",
    )


def _rows(folder: Path) -> Iterator[Recording | str]:
    yield from rows(next(folder / table for table in _TABLES if (folder / table).is_file()), _row)


CORPUS = Corpus(
    title="ESC-50",
    layout="audio/1-100032-A-0.wav … and meta/esc50.csv",
    licence="CC-BY-NC-3.0",
    page="https://github.com/karolpiczak/ESC-50",
    recognise=_recognise,
    rows=_rows,
)
