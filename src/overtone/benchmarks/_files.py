"""Read a benchmark's files: JSON objects, paths of sound files (which are not opened), unique ids, and warnings."""

from __future__ import annotations

import csv
import io
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import msgspec

from overtone.errors import DataError
from overtone.languages import primary, tag_problem
from overtone.paths import inside, read_plain, shown

Fields = dict[str, Any]
MAX_BYTES = 500_000_000  # the limit for one JSON file


def read_objects(path: Path) -> Iterator[tuple[str, Fields]]:
    """Yield (place, object) for each entry of a JSON file that is a list, or an object that contains one list.

    A bare list is decoded one object at a time, because decoding it as a whole needs ten times the file's size in
    memory.
    """
    name = shown(str(path))
    data = _read_bytes(path)
    tree = _decoded(data, name, list[msgspec.Raw] if data[:64].lstrip()[:1] == b"[" else Any)
    if isinstance(tree, dict):
        lists = [value for value in tree.values() if isinstance(value, list)]
        tree = lists[0] if len(lists) == 1 else tree
    if not isinstance(tree, list):
        raise DataError(f"{name}: holds {kind_of(tree)}, but a list of objects is expected")
    for position, value in enumerate(tree):
        where = f"{name}: position {position}"
        if isinstance(value, msgspec.Raw):
            value = _decoded(value, where)
        if not isinstance(value, dict):
            raise DataError(f"{where} holds {kind_of(value)}, but an object is expected")
        yield where, lowered(value)


def read_json(path: Path) -> Any:
    """Return the decoded content of a JSON file. Raises DataError if it is not valid JSON."""
    return _decoded(_read_bytes(path), shown(str(path)))


def _read_bytes(path: Path) -> bytes:
    return read_plain(path, MAX_BYTES).removeprefix(b"\xef\xbb\xbf")


def _decoded(data: bytes | msgspec.Raw, where: str, kind: Any = Any) -> Any:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else error
        raise DataError(f"{where}: not valid JSON: {reason}; fetch the file again") from None


def lowered(fields: Fields) -> Fields:
    """Return the fields with their keys trimmed and in lower case."""
    return {key.strip().lower(): value for key, value in fields.items()}


def read_rows(path: Path) -> Iterator[tuple[str, Fields]]:
    """Yield (place, object) for every line of a JSON Lines file. Empty lines are skipped."""
    for number, line in enumerate(_read_bytes(path).splitlines(), 1):
        if line.strip():
            where = f"{shown(str(path))}, line {number}"
            value = _decoded(line, where)
            if not isinstance(value, dict):
                raise DataError(f"{where} holds {kind_of(value)}, but an object is expected")
            yield where, lowered(value)


def read_csv(
    path: Path, columns: Sequence[str], delimiter: str = ",", quoting: Literal[0, 3] = csv.QUOTE_MINIMAL
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield (place, row) for every line of a table. Raises DataError if one of `columns` is missing, or if a line does
    not have as many cells as the first line."""
    name = shown(str(path))
    try:
        content = _read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{name}: not UTF-8 text (byte {error.start}); fetch the file again") from None
    reader = csv.DictReader(io.StringIO(content, newline=""), strict=True, delimiter=delimiter, quoting=quoting)
    try:
        if missing := [column for column in columns if column not in (reader.fieldnames or ())]:
            raise DataError(f"{name}: has no column {', '.join(missing)}; fetch the file again")
        for row in reader:
            where = f"{name}, line {reader.line_num}"
            if None in row or None in row.values():
                raise DataError(f"{where}: the number of cells differs from the first line; fetch the file again")
            yield where, row
    except csv.Error as error:
        raise DataError(f"{name}, line {reader.line_num}: not usable CSV ({error}); fetch the file again") from None


def text(fields: Fields, keys: Sequence[str], where: str) -> str:
    """Return the first non-empty value under one of `keys` as text, or "". Raises DataError if a value is neither text
    nor a number."""
    for key in keys:
        value = fields.get(key)
        if value is None or value == "":
            continue
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise DataError(f"{where}: {key!r} holds {kind_of(value)}, but text is expected")
        if stripped := str(value).strip():
            return stripped
    return ""


def language(fields: Fields, where: str) -> str:
    """Return the primary language in a row's `language` or `lang` (a BCP-47 tag or an English name); "" if missing."""
    stated = text(fields, ("language", "lang"), where)
    if stated and (problem := tag_problem(stated)):
        raise DataError(f"{where}: language: {shown(problem)}")
    return primary(stated)


def kind_of(value: object) -> str:
    """Return an English phrase for the type of a JSON value, for error messages."""
    names = {type(None): "null", bool: "true or false", str: "text", int: "a number", float: "a number", list: "a list"}
    return names.get(type(value), "an object")


def slugify(words: str) -> str:
    """Return a text in lower case, with hyphens in place of all characters that are not letters or digits."""
    return re.sub(r"[\W_]+", "-", words.casefold()).strip("-")


class Sounds:
    """Finds sound files below a root by path, or by file name if the path is outdated, without opening them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._listed: dict[str, dict[str, list[str]]] = {}  # folder → file name → paths relative to the root
        self._files: set[str] = set()
        self._paths: dict[tuple[str, tuple[str, ...]], str | None] = {}

    def find(self, named: str, folders: tuple[str, ...], where: str) -> str | None:
        """Return the path of the file `named`, relative to the root, or None if it is missing.

        The file is looked up in `folders` (each "" or ending in "/"), then by its bare name anywhere in the first
        folder. Raises DataError, which mentions `where`, if the path leads outside the root.
        """
        key = (named, folders)
        if key not in self._paths:
            try:
                self._paths[key] = self._find(named, folders)
            except DataError as error:
                raise DataError(f"{where}: {error}") from None
        return self._paths[key]

    def _find(self, named: str, folders: tuple[str, ...]) -> str | None:
        names = self._list(folders[0])
        path = named.replace("\\", "/").strip().removeprefix("./")
        pure = PurePosixPath(path)
        plain = not pure.is_absolute() and ".." not in pure.parts
        if plain and folders[0] + path in self._files:
            return folders[0] + path
        for folder in folders:
            # Not a plain file of the first folder: it is elsewhere, behind a link, missing, or outside the root.
            real = inside(self.root, folder + path if not pure.is_absolute() else path)
            if _is_file(real):
                return folder + path if plain else real.relative_to(self.root.resolve()).as_posix()
        same = names.get(pure.name, [])
        return same[0] if len(same) == 1 else None

    def _list(self, folder: str) -> dict[str, list[str]]:
        """Return file name → paths of the plain files in a folder, which is listed only once. `inside` checks links."""
        if folder in self._listed:
            return self._listed[folder]
        names: dict[str, list[str]] = defaultdict(list)
        stack = [folder]
        while stack:
            here = stack.pop()
            try:
                with os.scandir(inside(self.root, here.rstrip("/")) if here else self.root) as entries:
                    for entry in entries:
                        if not is_utf8(entry.name):  # no JSON file can name it, and no item could hold it
                            continue
                        if entry.is_dir(follow_symlinks=False):
                            stack.append(f"{here}{entry.name}/")
                        elif entry.is_file(follow_symlinks=False):
                            self._files.add(here + entry.name)
                            names[entry.name].append(here + entry.name)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise DataError(f"{shown(str(self.root / here))}: cannot be listed: {error.strerror}") from None
        self._listed[folder] = names
        return names


def is_utf8(name: str) -> bool:
    """Return whether a file's name is valid UTF-8, so that it can be written in JSON."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a file with a name that is too long for the file system cannot exist
        return False


class UniqueIds:
    """Gives every record of a file a unique id. `nouns` is the word for the records in warnings, like "scripts"."""

    def __init__(self, notices: Warnings, nouns: str) -> None:
        self._notices, self._nouns = notices, nouns
        self._contents: dict[str, object] = {}

    def claim(self, given: str, content: object, where: str) -> str:
        """Return `given`, with `#2`, `#3` … added if another record has this id; "" if the record is an exact copy.

        Both cases add a warning.
        """
        if given not in self._contents:
            self._contents[given] = content
            return given
        if self._contents[given] == content:
            self._notices.add(f"{self._nouns} that repeat an earlier one exactly are left out", given)
            return ""
        number = 2
        while f"{given}#{number}" in self._contents:
            number += 1
        self._contents[f"{given}#{number}"] = content
        self._notices.add(f"{self._nouns} that share the id of another get a number after it", f"{where}, {given}")
        return f"{given}#{number}"


class Warnings:
    """Counts the problems found while loading, by kind, and lists the first few of each kind."""

    NAMED = 3

    def __init__(self) -> None:
        self._kinds: dict[str, list[str]] = {}
        self._counts: dict[str, int] = defaultdict(int)
        self._seen: set[tuple[str, str]] = set()

    def add(self, kind: str, which: str) -> None:
        """Count one problem. `kind` is a sentence in the plural, like "clips that do not exist are left out"."""
        if (kind, which) in self._seen:  # twenty questions about one missing clip are one problem
            return
        self._seen.add((kind, which))
        self._counts[kind] += 1
        named = self._kinds.setdefault(kind, [])
        if len(named) < self.NAMED:
            named.append(shown(which))

    def lines(self) -> list[str]:
        lines = []
        for kind, named in self._kinds.items():
            more = ", …" if self._counts[kind] > len(named) else ""
            lines.append(f"{kind} ({self._counts[kind]}: {', '.join(named)}{more})")
        return lines
