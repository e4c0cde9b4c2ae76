"""What benchmarks that ask about single recordings share: a folder, its clips, ids told apart, and items by level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from overtone.benchmarks import Selection
from overtone.benchmarks._files import Sounds, Warnings
from overtone.cues import BY_SLUG, find_cue
from overtone.errors import DataError
from overtone.paths import shown
from overtone.schema import Item


class Recordings:
    """A folder of recordings with questions. Whoever reads it adds to `found`; nothing opens a sound."""

    name = ""
    prompts: Mapping[str, str] = {"choose.letters": "item"}  # a question of two options lists two letters

    def __init__(self, data: Path, wanted: str) -> None:
        if not data.is_dir():
            raise DataError(f"{shown(str(data))}: no such folder; give the folder that holds {wanted}")
        self.root = data.resolve()
        self.found: list[Item] = []
        self.met = Warnings()
        self._sounds = Sounds(self.root)
        self._seen: dict[str, object] = {}

    @property
    def warnings(self) -> list[str]:
        return self.met.lines()

    def items(self, selection: Selection) -> Iterator[Item]:
        """Yield the items by level, then in the order of the files."""
        yield from sorted(self.found, key=lambda item: item.level)

    def clip(self, named: str, folders: tuple[str, ...], where: str) -> str | None:
        """The clip's path below the root; None, with a warning, where it is missing or holds nothing."""
        try:
            found = self._sounds.find(named, folders)
        except DataError as error:
            raise DataError(f"{where}: {error}") from None
        if found is None:
            self.met.add("questions whose recording is missing are left out", named)
        elif not (self.root / found).stat().st_size:
            self.met.add("questions whose recording is an empty file are left out; fetch it again", named)
            return None
        return found

    def unique(self, given: str, content: object, where: str) -> str:
        """`given`, or with `#2` … where something else has it already; "" for an exact repetition."""
        if self._seen.setdefault(given, content) is content:
            return given
        if self._seen[given] == content:
            self.met.add("questions that repeat an earlier one exactly are left out", given)
            return ""
        number = 2
        while self._seen.setdefault(f"{given}#{number}", content) is not content:
            number += 1
        self.met.add("questions that share the id of another are told apart by a number", f"{where}, {given}")
        return f"{given}#{number}"


def cue_of(label: str) -> tuple[str, str]:
    """Our slug of the cue that a benchmark calls `label`, and its dimension; "" where it is none of ours."""
    cue = find_cue(label)
    return ("", "") if cue is None else (cue.slug, BY_SLUG[cue.slug].dimension)
