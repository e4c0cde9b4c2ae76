"""Helpers of the adapters: list sound files in a fixed order, read tables and texts of any size, declare a `Corpus`."""

from __future__ import annotations

import csv
import os
import re
import stat
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from msgspec import Struct

from overtone.corpora.recording import Recording
from overtone.errors import DataError
from overtone.paths import read_plain, shown

SOUNDS = (".wav", ".flac", ".ogg", ".opus", ".mp3")
TABLE_BYTES = 2_000_000_000
TEXT_BYTES = 50_000_000
_PEEK = 2_000  # sound files that are looked at to recognise a layout


class Corpus(Struct, frozen=True, kw_only=True):
    """An adapter: how a corpus is laid out, and what binds its recordings.

    `recognise` says quickly whether a folder has the layout. `rows` yields a Recording per usable row, with `name` and
    what the corpus states of it, a sentence for each unusable one, and a Note for missing labels. A recording without
    a licence or language has that of the corpus.
    """

    title: str
    layout: str  # the files that the folder must contain
    licence: str
    page: str  # where the corpus and its licence are published
    recognise: Callable[[Path], bool]
    rows: Callable[[Path], Iterator[Recording | str]]
    language: str = ""


class Note(str):
    """A sentence about labels that are missing; no recording is left out for it."""

    __slots__ = ()


def files(folder: Path, suffixes: Collection[str] = SOUNDS) -> Iterator[str]:
    """Yield the paths, relative to the folder and with `/`, of its files with these suffixes, sorted.

    Linked folders and hidden files are not entered."""
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        base = Path(where).relative_to(folder).as_posix()
        for name in sorted(names):
            if os.path.splitext(name)[1].lower() in suffixes and not name.startswith("."):  # noqa: PTH122
                yield name if base == "." else f"{base}/{name}"


def stem(file: str) -> str:
    """Return the name of a file without its folders and suffix."""
    return file.rpartition("/")[2].rpartition(".")[0]


def named(
    folder: Path, grammar: re.Pattern[str], *, distinct: bool = True
) -> Iterator[tuple[str, re.Match[str]] | str]:
    """Yield each sound file with the match of its stem; for another name, a sentence.

    If names are `distinct`, a second file of the same name is a copy: some downloads contain the corpus twice.
    """
    seen: set[str] = set()
    for file in files(folder):
        name = grammar.fullmatch(stem(file))
        if name is None:
            yield f"{folder / file}: the name does not follow the corpus' scheme"
        elif distinct and name[0] in seen:
            yield f"{folder / file}: a second copy of {name[0]}"
        else:
            seen.add(name[0])
            yield file, name


def mostly(folder: Path, grammar: re.Pattern[str]) -> bool:
    """Return whether at least half of the folder's first sound files have names like these."""
    seen = fitting = 0
    for file in files(folder):
        seen += 1
        fitting += bool(grammar.fullmatch(stem(file)))
        if seen == _PEEK:
            break
    return 0 < seen <= 2 * fitting


def beside(folder: Path, name: str) -> Path | None:
    """Return the file of this name in the folder or above it, because users often give the folder of the sounds."""
    return next((path for path in (folder / name, folder.parent / name) if path.is_file()), None)


def header(path: Path, delimiter: str = ",") -> list[str]:
    """Return the names of a table's columns; [] for a file that is missing or not a table."""
    if not path.is_file():  # opening a pipe could block permanently
        return []
    try:
        with path.open("rb") as file:
            line = file.readline(100_000).decode("utf-8-sig", "replace")
    except OSError:
        return []
    return [name.strip().strip('"') for name in line.rstrip("\r\n").split(delimiter)]


def rows(
    path: Path,
    convert: Callable[[dict[str, str]], Recording],
    *,
    delimiter: str = ",",
    quoted: bool = True,
) -> Iterator[Recording | str]:
    """Yield a recording per row of a table in UTF-8; for an unusable row, its line and the reason.

    `convert` raises KeyError for a missing column and DataError for a bad value. Raises DataError if the file cannot be
    read at all.
    """
    at = 0
    _check_link(path)
    try:
        if not stat.S_ISREG(path.stat().st_mode) or path.stat().st_size > TABLE_BYTES:
            raise DataError(f"{shown(str(path))}: not a plain file of at most {TABLE_BYTES // 10**6} MB")
        with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
            table = csv.DictReader(file, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE)
            for cells in table:
                at = table.line_num
                row = {str(key).strip(): value.strip() for key, value in cells.items() if isinstance(value, str)}
                try:
                    "".join(row.values()).encode()
                    yield convert(row)
                except UnicodeEncodeError:
                    yield f"{path} line {at}: not text in UTF-8"
                except KeyError as error:
                    yield f"{path} line {at}: missing column {error.args[0]}"
                except DataError as error:
                    yield f"{path} line {at}: {error}"
    except OSError as error:
        raise DataError(f"{shown(str(path))}: cannot be read: {error.strerror}") from None
    except csv.Error as error:
        yield f"{path} after line {at}: not a table ({error}); the rest is not read"


def lines(path: Path, encodings: Collection[str] = ("utf-8-sig",)) -> list[str]:
    """Return the lines of a text in the first of these encodings that fits. Raises DataError if none does.

    A byte-order mark decides before the list does."""
    _check_link(path)
    data = read_plain(path, TEXT_BYTES)
    marked = ("utf-16",) if data[:2] in (b"\xff\xfe", b"\xfe\xff") else ()
    for encoding in (*marked, *encodings):
        try:
            return data.decode(encoding).splitlines()
        except UnicodeDecodeError:
            continue
    raise DataError(f"{shown(str(path))}: not text in {' or '.join(encodings)}; convert it to UTF-8")


def _check_link(path: Path) -> None:
    """Raise DataError for a link, which could bring the text of any file of the user's into a set."""
    if path.is_symlink():
        raise DataError(f"{shown(str(path))}: a link; copy the file that it points to into the folder")


def years(text: str) -> int | None:
    """Return an age in years; None for an empty text. Raises DataError for anything else than 0 to 120."""
    if not text:
        return None
    try:
        age = int(float(text))
    except (ValueError, OverflowError):
        age = -1
    if not 0 <= age <= 120:
        raise DataError(f"age {text!r} is not a number of years")
    return age


def cp1252_mended(text: str) -> str:
    """Return a text in which bytes of Windows-1252 were taken as control characters, with the intended quotes."""
    return text.translate({code: bytes([code]).decode("cp1252", "replace") for code in range(0x80, 0xA0)})
