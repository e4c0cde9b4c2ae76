"""The prompts of `prompts.toml`: one system prompt per kind of output, and many wordings of understanding questions.

Users may supply their own file.
"""

from __future__ import annotations

import functools
import random
import tomllib
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from overtone.echat.data.labels import DIMENSIONS
from overtone.errors import DataError
from overtone.paths import read_plain, shown

FILE = Path(__file__).with_suffix(".toml")
KINDS = (
    "s2s",
    "s2s-think",
    "s2s-streaming",
    "s2s-streaming-think",
    "s2t",
    "s2t-think",
    "t2t",
    "understand",
    "tts",
    "tts-streaming",
)
_LIMIT = 1_000_000  # bytes


class Asked(Struct, frozen=True, forbid_unknown_fields=True):
    """Wordings of an understanding question: for the words, for words and labels, for labels only."""

    words: tuple[str, ...]
    both: tuple[str, ...]
    labels: tuple[str, ...]


class Prompts(Struct, frozen=True, forbid_unknown_fields=True):
    """All prompts of a file."""

    system: dict[str, str]
    understand: Asked
    names: dict[str, tuple[str, ...]]

    def wordings(self, words: bool, dimensions: Sequence[str]) -> list[str]:
        """Return every question that asks for these labels, with or without the words."""
        if not dimensions:
            return list(self.understand.words)
        frames = self.understand.both if words else self.understand.labels
        numbers = range(min(len(self.names[dimension]) for dimension in dimensions))
        listed = [_listed([self.names[dimension][number] for dimension in dimensions]) for number in numbers]
        return [frame.replace("{what}", what) for frame in frames for what in listed]

    def ask(self, words: bool, dimensions: Sequence[str], rng: random.Random | None = None) -> str:
        """Draw one of these questions; without `rng`, return the first."""
        wordings = self.wordings(words, dimensions)
        return rng.choice(wordings) if rng else wordings[0]


@functools.cache
def read(path: Path = FILE) -> Prompts:
    """Read the prompts of a file. Raises DataError if something is missing or invalid."""
    where = shown(str(path))
    try:
        table = tomllib.loads(read_plain(path, _LIMIT).decode("utf-8"))
        prompts = msgspec.convert(table, Prompts)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise DataError(f"{where}: {error}; correct the file") from None
    if missing := [kind for kind in KINDS if not prompts.system.get(kind)]:
        raise DataError(f"{where}: [system] lacks {', '.join(missing)}; add them")
    if missing := [name for name in DIMENSIONS if not prompts.names.get(name)]:
        raise DataError(f"{where}: [names] lacks {', '.join(missing)}; add them")
    for part in ("words", "both", "labels"):
        wordings: tuple[str, ...] = getattr(prompts.understand, part)
        if not wordings or any(("{what}" in wording) != (part != "words") for wording in wordings):
            raise DataError(
                f"{where}: [understand] {part} needs wordings, "
                f"{'none' if part == 'words' else 'each'} with {{what}}; correct them"
            )
    return prompts


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
