"""A benchmark's files, read with care: objects in JSON, sounds that are found but not opened, and what was met."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from overtone.errors import DataError
from overtone.languages import primary, tag_problem
from overtone.paths import inside, read_plain, shown

Fields = dict[str, Any]
MAX_BYTES = 500_000_000  # of one JSON file


def read_objects(path: Path) -> Iterator[Fields]:
    """The objects of the list a JSON file holds, bare or as the one list inside an object, one at a time: a tree of
    the whole file would take ten times its size."""
    name = shown(str(path))
    try:
        data = read_plain(path, MAX_BYTES).removeprefix(b"\xef\xbb\xbf")
        tree = msgspec.json.decode(data, type=list[msgspec.Raw] if data[:64].lstrip()[:1] == b"[" else Any)
    except RecursionError:
        raise DataError(f"{name}: not usable JSON: nested too deeply; fetch the file again") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{name}: not valid JSON: {error}; fetch the file again") from None
    if isinstance(tree, dict):
        lists = [value for value in tree.values() if isinstance(value, list)]
        tree = lists[0] if len(lists) == 1 else tree
    if not isinstance(tree, list):
        raise DataError(f"{name}: holds {kind_of(tree)}, but a list of objects is expected")
    for position, value in enumerate(tree):
        if isinstance(value, msgspec.Raw):
            value = _decoded(value, f"{name}: position {position}")
        if not isinstance(value, dict):
            raise DataError(f"{name}: position {position} holds {kind_of(value)}, but an object is expected")
        yield lowered(value)


def _decoded(value: msgspec.Raw, where: str) -> Any:
    try:
        return msgspec.json.decode(value)
    except RecursionError:
        raise DataError(f"{where}: not usable JSON: nested too deeply; fetch the file again") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{where}: not valid JSON: {error}; fetch the file again") from None


def lowered(fields: Fields) -> Fields:
    """The same with its keys trimmed and in lower case."""
    return {key.strip().lower(): value for key, value in fields.items()}


def read_rows(path: Path) -> Iterator[Fields]:
    """The objects of a JSON Lines file, one to a line; empty lines are none."""
    name = shown(str(path))
    for number, line in enumerate(read_plain(path, MAX_BYTES).removeprefix(b"\xef\xbb\xbf").splitlines(), 1):
        if not line.strip():
            continue
        value = _decoded(msgspec.Raw(line), f"{name}, line {number}")
        if not isinstance(value, dict):
            raise DataError(f"{name}, line {number} holds {kind_of(value)}, but an object is expected")
        yield lowered(value)


def text(fields: Fields, keys: Sequence[str], where: str) -> str:
    """The first of `keys` that holds something, as text. Anything but text or a number there is an error."""
    for key in keys:
        value = fields.get(key)
        if value is None or value == "":
            continue
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise DataError(f"{where}: {key!r} holds {kind_of(value)}, but text is expected")
        if found := str(value).strip():
            return found
    return ""


def language(fields: Fields, where: str) -> str:
    """The primary language that a row's `language` or `lang` names, by BCP-47 tag or English name; "" where missing."""
    stated = text(fields, ("language", "lang"), where)
    if stated and (problem := tag_problem(stated)):
        raise DataError(f"{where}: language: {shown(problem)}")
    return primary(stated)


def kind_of(value: object) -> str:
    """What a value of JSON is, in words."""
    names = {type(None): "null", bool: "true or false", str: "text", int: "a number", float: "a number", list: "a list"}
    return names.get(type(value), "an object")


class Sounds:
    """Finds sound files under a root by path, and by name where the path is stale, without opening them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._listed: dict[str, dict[str, list[str]]] = {}  # folder → file name → paths relative to the root
        self._files: set[str] = set()
        self._found: dict[tuple[str, tuple[str, ...]], str | None] = {}

    def find(self, named: str, folders: tuple[str, ...]) -> str | None:
        """Where the file `named` lies, relative to the root: in one of `folders` ("" or ending in "/"), else by its
        bare name anywhere in the first. None when it is absent; DataError when it leads outside the root."""
        key = (named, folders)
        if key not in self._found:
            self._found[key] = self._find(named, folders)
        return self._found[key]

    def _find(self, named: str, folders: tuple[str, ...]) -> str | None:
        names = self._list(folders[0])
        path = named.replace("\\", "/").strip().removeprefix("./")
        pure = PurePosixPath(path)
        plain = not pure.is_absolute() and ".." not in pure.parts
        if plain and folders[0] + path in self._files:
            return folders[0] + path
        for folder in folders:
            # No plain file of the first folder: elsewhere, behind a link, absent, or an attempt to leave the root.
            real = inside(self.root, folder + path if not pure.is_absolute() else path)
            if _is_file(real):
                return folder + path if plain else real.relative_to(self.root.resolve()).as_posix()
        same = names.get(pure.name, [])
        return same[0] if len(same) == 1 else None

    def _list(self, folder: str) -> dict[str, list[str]]:
        """A folder's plain files by name, listed once. Links are left to `inside`."""
        if folder in self._listed:
            return self._listed[folder]
        names: dict[str, list[str]] = defaultdict(list)
        stack = [folder]
        while stack:
            here = stack.pop()
            try:
                with os.scandir(inside(self.root, here.rstrip("/")) if here else self.root) as listing:
                    for thing in listing:
                        if not is_utf8(thing.name):  # no JSON file can name it, and no item could hold it
                            continue
                        if thing.is_dir(follow_symlinks=False):
                            stack.append(f"{here}{thing.name}/")
                        elif thing.is_file(follow_symlinks=False):
                            self._files.add(here + thing.name)
                            names[thing.name].append(here + thing.name)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise DataError(f"{shown(str(self.root / here))}: cannot be listed: {error.strerror}") from None
        self._listed[folder] = names
        return names


def is_utf8(name: str) -> bool:
    """Whether a file's name can stand in JSON."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name longer than the file system takes cannot exist
        return False


class Warnings:
    """Counts what was met while loading, by kind, and names the first few of each."""

    NAMED = 3

    def __init__(self) -> None:
        self._kinds: dict[str, list[str]] = {}
        self._counts: dict[str, int] = defaultdict(int)
        self._seen: set[tuple[str, str]] = set()

    def add(self, kind: str, which: str) -> None:
        """`kind` is a sentence that holds for any number of them: "clips that do not exist are left out"."""
        if (kind, which) in self._seen:  # twenty questions on one missing clip are one missing clip
            return
        self._seen.add((kind, which))
        self._counts[kind] += 1
        named = self._kinds.setdefault(kind, [])
        if len(named) < self.NAMED:
            named.append(shown(which))

    def lines(self) -> list[str]:
        out = []
        for kind, named in self._kinds.items():
            more = ", …" if self._counts[kind] > len(named) else ""
            out.append(f"{kind} ({self._counts[kind]}: {', '.join(named)}{more})")
        return out
