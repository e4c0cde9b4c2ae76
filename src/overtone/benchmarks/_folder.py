"""The base class of benchmarks that are stored as a folder of files, and functions that read options given as
recordings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from overtone.benchmarks import Selection
from overtone.benchmarks._files import Sounds, UniqueIds, Warnings, kind_of
from overtone.cues import find_cue
from overtone.errors import DataError
from overtone.paths import shown
from overtone.schema import Clip, Item, Option

MOST_EMPATHETIC = (
    "Which recording is the most empathetic reply to what the user says, in this situation and in this voice?"
)
LETTER = re.compile(r"\W*(?:opt(?:ion)?[-_ ]?)?([a-z])\W*", re.I)  # of an option: A, opt-A, option A


class BenchmarkFolder:
    """A folder of questions and recordings. A subclass reads its files and fills `_items`; no sound is opened."""

    name = ""
    prompts: Mapping[str, str] = {}

    def __init__(self, data: Path, contents: str) -> None:
        if not data.is_dir():
            raise DataError(f"{shown(str(data))}: no such folder; give the folder that holds {contents}")
        self.root = data.resolve()
        self.notices = Warnings()
        self._items: list[Item] = []
        self._sounds = Sounds(self.root)
        self._ids = UniqueIds(self.notices, "questions")

    @property
    def warnings(self) -> list[str]:
        return self.notices.lines()

    def items(self, selection: Selection) -> Iterator[Item]:
        """Yield the items by level, then in the order of the files."""
        yield from sorted(self._items, key=lambda item: item.level)

    def clip(self, named: str, folders: tuple[str, ...], where: str) -> str | None:
        """Return the clip's path relative to the root; None, with a warning, if the file is missing or empty."""
        path = self._sounds.find(named, folders, where)
        if path is None:
            self.notices.add("questions whose recording is missing are left out", named)
        elif not (self.root / path).stat().st_size:
            self.notices.add("questions whose recording is an empty file are left out; fetch it again", named)
            return None
        return path

    def folder_of(self, path: Path) -> str:
        """Return the folder of a file relative to the root, with a final "/"; "" for the root itself."""
        return f"{path.parent.relative_to(self.root).as_posix()}/".removeprefix("./")


def cue_of(label: str) -> tuple[str, str]:
    """Return the slug and the dimension of the cue that a benchmark calls `label`, or ("", "") for an unknown cue."""
    cue = find_cue(label)
    return ("", "") if cue is None else (cue.slug, cue.dimension)


def check_ids(items: Iterable[Item], root: Path) -> None:
    """Raise DataError if two items have the same id, because a file was copied."""
    seen: set[str] = set()
    for item in items:
        if item.id in seen:
            raise DataError(f"{shown(str(root))}: {shown(item.id)} is duplicated; keep one copy of each file")
        seen.add(item.id)


def option_paths(given: object, where: str) -> dict[str, str]:
    """Return letter → path of a row's spoken options. Raises DataError unless `given` is like {"opt-A": PATH}."""
    if not isinstance(given, dict) or len(given) < 2 or not all(isinstance(path, str) for path in given.values()):
        raise DataError(f"{where}: 'options' holds {kind_of(given)}, but two or more recordings are expected")
    paths = {}
    for key, path in given.items():
        letter = LETTER.fullmatch(str(key))
        if letter is None:
            raise DataError(f"{where}: an option is called {shown(str(key))!r}; opt-A, opt-B, … are expected")
        paths[letter[1].upper()] = path
    return paths


def spoken_options(clips: Mapping[str, str | None], gold: str, where: str) -> tuple[Option, ...]:
    """Return the options of a question whose answers are clips. Raises DataError if `gold` is not one of them."""
    if gold and gold not in clips:
        raise DataError(f"{where}: the right answer {gold} is not one of the options {', '.join(sorted(clips))}")
    return tuple(Option(letter, "", clip=Clip(clip)) for letter, clip in sorted(clips.items()) if clip)
