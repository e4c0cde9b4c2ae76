"""The prompts of `prompts.toml`: a system prompt for each kind of output, and many wordings of what is asked of a
recording. A user's own file may take its place."""

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
    """Wordings of an understanding prompt: for the words, for words and labels, for labels alone."""

    words: tuple[str, ...]
    both: tuple[str, ...]
    labels: tuple[str, ...]


class Prompts(Struct, frozen=True, forbid_unknown_fields=True):
    system: dict[str, str]
    understand: Asked
    names: dict[str, tuple[str, ...]]

    def wordings(self, words: bool, dimensions: Sequence[str]) -> list[str]:
        """Every way to ask for the words (or not) and these labels."""
        if not dimensions:
            return list(self.understand.words)
        frames = self.understand.both if words else self.understand.labels
        ways = range(min(len(self.names[dimension]) for dimension in dimensions))
        listed = [_listed([self.names[dimension][way] for dimension in dimensions]) for way in ways]
        return [frame.replace("{what}", what) for frame in frames for what in listed]

    def ask(self, words: bool, dimensions: Sequence[str], rng: random.Random | None = None) -> str:
        """One of them, drawn; the first without `rng`."""
        found = self.wordings(words, dimensions)
        return rng.choice(found) if rng else found[0]


@functools.cache
def read(path: Path = FILE) -> Prompts:
    """The prompts of a file. DataError says what is missing in it."""
    where = shown(str(path))
    try:
        table = tomllib.loads(read_plain(path, _LIMIT).decode("utf-8"))
        prompts = msgspec.convert(table, Prompts)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise DataError(f"{where}: {error}; correct the file") from None
    if missing := [kind for kind in KINDS if not prompts.system.get(kind)]:
        raise DataError(f"{where}: [system] has no {', '.join(missing)}; write them")
    if missing := [name for name in DIMENSIONS if not prompts.names.get(name)]:
        raise DataError(f"{where}: [names] has no {', '.join(missing)}; write them")
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
