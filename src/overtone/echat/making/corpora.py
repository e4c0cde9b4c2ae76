"""Read the corpora that `overtone build echat-real` knows, in the publisher's layout or by a table.

Unusable rows are reported and left out.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from overtone.echat.data.labels import DIMENSIONS, EVENTS, VOCAL, Labels, label
from overtone.errors import DataError, UsageError
from overtone.paths import inside, read_plain, shown

LICENCES = {  # corpus → licence of its rows; ESC-50's rows of ESC-10 have the more open ESC10
    "ravdess": "CC-BY-NC-SA-4.0",
    "esc50": "CC-BY-NC-3.0",
    "nonverbal": "CC-BY-NC-ND-4.0",
    "librispeech": "CC-BY-4.0",
    "speechocean": "CC-BY-4.0",
}
ESC10 = "CC-BY-3.0"
OPEN = frozenset({"CC-BY-4.0", ESC10})
_TABLE_BYTES = 50_000_000
SHOWN_WARNINGS = 8  # warnings per corpus that are printed; the rest are counted
_RAVDESS = ("neutral", "calm", "happy", "sad", "angry", "fearful", "disgust", "surprised")
_SAYS = ("Kids are talking by the door.", "Dogs are sitting by the door.")
_SOUNDS = (".wav", ".flac", ".ogg", ".mp3")


class Take(Struct, frozen=True):
    """One recording of a corpus. `words` is "" if it has no speech."""

    corpus: str
    name: str  # its path relative to the corpus's folder
    path: str
    words: str
    labels: Labels
    speaker: str  # or the source recording of a sound; never in two parts
    licence: str


def read(data: Path) -> tuple[list[Take], list[str]]:
    """Read every known corpus in a folder or its subfolders. Return the recordings and warnings about skipped ones."""
    if not data.is_dir():
        raise UsageError(f"{shown(str(data))}: no such folder; give the folder with your corpora")
    takes: list[Take] = []
    names: set[tuple[str, str]] = set()
    warnings: list[str] = []
    for folder in (*sorted(p for p in data.iterdir() if p.is_dir()), data):
        if folder == data and takes:
            break  # it contains corpora, so it is not itself a corpus
        for reader in (_ravdess, _esc50, _speechocean, _librispeech, _nonverbal):
            before = len(takes)
            bad: list[str] = []
            unknown: list[str] = []
            try:
                for take in reader(folder):
                    if isinstance(take, str):
                        bad.append(take)
                    elif (take.corpus, take.name) in names:
                        warnings.append(f"{take.path} has the same name as another recording of {take.corpus}; skipped")
                    elif Path(take.path).is_file():
                        names.add((take.corpus, take.name))
                        takes.append(_known(take, unknown))
                    else:
                        warnings.append(f"{take.path} is missing; skipped")
            except DataError as error:
                warnings.append(f"{folder}: cannot be read as {reader.__name__.strip('_')}: {error}")
            for what, problems in (("rows", bad), ("labels", unknown)):
                warnings += problems[:SHOWN_WARNINGS]
                if problems:
                    warnings.append(f"{folder}: {what} left out: {len(problems)}")
            if len(takes) > before:
                break
    return takes, warnings


def _known(take: Take, unknown: list[str]) -> Take:
    """Return the recording without labels that training does not know."""
    unknown += [f"{take.path}: {problem}" for problem in take.labels.problems()]
    known = {d: name for d, name in take.labels.known().items() if name in DIMENSIONS[d]}
    return replace(take, labels=Labels(**known))


def _ravdess(folder: Path) -> Iterator[Take | str]:
    """Read RAVDESS by a table (file, actor, gender, emotion, text), or by its file names."""

    def convert(row: dict[str, str]) -> Take:
        labels = Labels(label("emotion", row["emotion"]), "adult", label("gender", row.get("gender", "")))
        return _take("ravdess", folder, row["file"], row["text"], labels, row["actor"])

    table = folder / "labels.csv"
    if table.is_file():
        yield from _rows(table, {"actor", "emotion", "text"}, convert)
        return
    for path in sorted(folder.glob("[Aa]ctor_*/03-01-*")):
        name = re.fullmatch(r"03-01-0([1-8])-0[12]-0([12])-0[12]-(\d\d)", path.stem)
        if name and path.suffix in _SOUNDS:
            actor = int(name[3])
            labels = Labels(
                label("emotion", _RAVDESS[int(name[1]) - 1]), "adult", "female" if actor % 2 == 0 else "male"
            )
            yield _take("ravdess", folder, str(path.relative_to(folder)), _SAYS[int(name[2]) - 1], labels, name[3])


def _esc50(folder: Path) -> Iterator[Take | str]:
    """Read ESC-50 as unpacked, or by a table (file, category, esc10)."""

    def convert(row: dict[str, str]) -> Take:
        event = label("event", row["category"])
        file = row.get("file") or f"audio/{row['filename']}"
        source = Path(file).stem.split("-")[1] if "-" in Path(file).stem else file
        licence = ESC10 if row.get("esc10", "").lower() == "true" else LICENCES["esc50"]
        labels = Labels(event=event if event in EVENTS else "other")
        return replace(_take("esc50", folder, file, "", labels, source), licence=licence)

    meta = folder / "meta" / "esc50.csv"
    table = meta if meta.is_file() else folder / "labels.csv"
    if table.is_file():
        yield from _rows(table, {"category"}, convert)


def _speechocean(folder: Path) -> Iterator[Take | str]:
    """Read speechocean762 by a table (file, speaker, age, gender, text)."""

    def convert(row: dict[str, str]) -> Take:
        if not row["age"].isdecimal():
            raise DataError(f"age {row['age']!r} is not a number of years")
        years = int(row["age"])
        age = "child" if years < 13 else "old" if years >= 60 else "adult" if years >= 18 else ""
        gender = {"m": "male", "f": "female"}.get(row.get("gender", ""), "")
        labels = Labels(age=age, gender="" if age == "child" else gender)
        words = row["text"].capitalize() + "."
        return _take("speechocean", folder, row["file"], words, labels, row["speaker"])

    table = folder / "labels.csv"
    if table.is_file():
        yield from _rows(table, {"speaker", "age", "text"}, convert)


def _librispeech(folder: Path) -> Iterator[Take | str]:
    """Read LibriSpeech as unpacked (*.trans.txt), or by a table (transcripts.tsv: file, text)."""

    def convert(row: dict[str, str]) -> Take:
        file = row["file"]
        return _take("librispeech", folder, file, _sentence(row["text"]), Labels(), file.split("-")[0])

    table = folder / "transcripts.tsv"
    if table.is_file():
        yield from _rows(table, set(), convert, "\t")
        return
    for path in sorted(folder.rglob("*.trans.txt")):
        for number, line in enumerate(read_plain(path, _TABLE_BYTES).splitlines(), start=1):
            try:
                name, _, words = line.decode("utf-8").partition(" ")
                file = str((path.parent / f"{name}.flac").relative_to(folder))
                yield _take("librispeech", folder, file, _sentence(words), Labels(), name.split("-")[0])
            except (DataError, UnicodeDecodeError) as error:
                yield f"{path} line {number}: {error}"


def _nonverbal(folder: Path) -> Iterator[Take | str]:
    """Read vocal sounds from one folder per kind: coughing/, crying/, laughing/, screaming/, sighing/ …"""
    kinds = {p: label("event", p.name) for p in sorted(folder.iterdir()) if p.is_dir()}
    if "cough" not in kinds.values() or "laugh" not in kinds.values() or "cry" not in kinds.values():
        return
    for kind, event in kinds.items():
        for path in sorted(kind.iterdir()):
            if path.suffix in _SOUNDS:
                labels = Labels(event=event if event in VOCAL else "other")
                first = path.stem.split("_")[0]  # the speaker, unless it names the kind
                speaker = path.stem if label("event", first) == event else first
                yield _take("nonverbal", folder, f"{kind.name}/{path.name}", "", labels, speaker)


def _take(corpus: str, folder: Path, file: str, words: str, labels: Labels, speaker: str) -> Take:
    return Take(corpus, file, str(inside(folder, file)), words, labels, speaker, LICENCES[corpus])


def _sentence(words: str) -> str:
    plain = " ".join(words.lower().split())
    return f"{plain[:1].upper()}{plain[1:]}."


def _rows(
    path: Path, needs: set[str], convert: Callable[[dict[str, str]], Take], delimiter: str = ","
) -> Iterator[Take | str]:
    """Yield a recording per row of a table with these columns; for an unusable row, its line and the reason."""
    try:
        text = read_plain(path, _TABLE_BYTES).decode("utf-8-sig")
        table = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
        if not needs <= {name.strip() for name in table.fieldnames or ()}:
            return
        for cells in table:
            row = {str(key).strip(): value.strip() for key, value in cells.items() if isinstance(value, str)}
            where = f"{path} line {table.line_num}"
            try:
                yield convert(row)
            except KeyError as error:
                yield f"{where}: missing column {error.args[0]}"
            except DataError as error:
                yield f"{where}: {error}"
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{shown(str(path))}: not a table in UTF-8: {error}") from None
