"""Common Voice: volunteers read sentences in many languages; some state decade of age and gender."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from overtone.corpora.corpus_files import Corpus, header, rows
from overtone.corpora.recording import Recording

_AGES = {  # "fourties" is the corpus' spelling
    "teens": "teenager",
    **dict.fromkeys(("twenties", "thirties", "fourties", "forties", "fifties"), "adult"),
    **dict.fromkeys(("sixties", "seventies", "eighties", "nineties"), "elderly"),
}
_SEXES = {
    "male": "male",
    "male_masculine": "male",
    "female": "female",
    "female_feminine": "female",
}
_SPLITS = ("train", "dev", "test")


def _recognise(folder: Path) -> bool:
    return (folder / "clips").is_dir() and any(
        {"client_id", "path", "sentence"} <= set(header(folder / f"{name}.tsv", "\t"))
        for name in ("validated", *_SPLITS)
    )


def _row(row: dict[str, str], split: str = "") -> Recording:
    file = row["path"]
    return Recording(
        name=f"clips/{file}" if "." in file else f"clips/{file}.mp3",
        speaker=row["client_id"][:16],  # of 128 hexadecimal digits
        sex=_SEXES.get(row.get("gender", ""), ""),
        age_group=_AGES.get(row.get("age", ""), ""),
        words=row["sentence"],
        language=row.get("locale", ""),
        split=split,
    )


def _rows(folder: Path) -> Iterator[Recording | str]:
    tables = {name: folder / f"{name}.tsv" for name in _SPLITS if (folder / f"{name}.tsv").is_file()}
    seen: set[str] = set()
    for split, path in tables.items():
        for row in rows(path, lambda cells, split=split: _row(cells, split), delimiter="\t", quoted=False):  # type: ignore[misc]
            if not isinstance(row, str):
                seen.add(row.name)
            yield row
    if (folder / "validated.tsv").is_file():  # has those of the parts too
        for row in rows(folder / "validated.tsv", _row, delimiter="\t", quoted=False):
            if isinstance(row, str) or row.name not in seen:
                yield row


CORPUS = Corpus(
    title="Common Voice",
    layout="clips/common_voice_en_1.mp3 … and validated.tsv, train.tsv, dev.tsv, test.tsv (the folder of one language)",
    licence="CC0-1.0",
    page="https://commonvoice.mozilla.org/datasets",
    recognise=_recognise,
    rows=_rows,
)
