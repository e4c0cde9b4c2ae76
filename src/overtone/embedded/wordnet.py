"""WordNet's synonyms and examples, read from its own files.

The database is that of Debian's wordnet-base, or a folder that the user names by OVERTONE_WORDNET. Nothing of it is
part of this package.
"""

from __future__ import annotations

import hashlib
import itertools
import mmap
import os
import re
from functools import cache
from pathlib import Path

from overtone.errors import DataError, MissingExtra

FOLDER = Path("/usr/share/wordnet")
VARIABLE = "OVERTONE_WORDNET"
INSTALL = "apt install wordnet-base"

# Inflections of each part of speech: ending → the ending of the base form.
_ENDINGS: dict[str, tuple[tuple[str, str], ...]] = {
    "noun": (
        ("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"),
        ("men", "man"), ("ies", "y"),
    ),
    "verb": (
        ("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", ""),
    ),
    "adj": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    "adv": (),
}  # fmt: skip


class WordNet:
    """One WordNet folder. `identity` names its version and its bytes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._index: dict[str, dict[str, list[int]]] = {}
        self._irregular: dict[str, dict[str, list[str]]] = {}
        self._data: dict[str, mmap.mmap] = {}
        self._known: dict[str, frozenset[str]] = {}
        digest, version = hashlib.sha256(), ""
        for kind in _ENDINGS:
            index, irregular = (folder / f"index.{kind}").read_bytes(), (folder / f"{kind}.exc").read_bytes()
            with (folder / f"data.{kind}").open("rb") as file:
                self._data[kind] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            for part in (index, irregular, self._data[kind]):
                digest.update(part)
            self._index[kind] = _read_index(index.decode("utf-8", "replace"), folder / f"index.{kind}")
            lines = (line.split() for line in irregular.decode("utf-8", "replace").splitlines())
            self._irregular[kind] = {terms[0]: terms[1:] for terms in lines if terms}
            named = re.search(rb"WordNet (\d+\.\d+) Copyright", index[:4096])
            version = version or (named[1].decode() if named else "unknown")
        self.identity = f"{version}-{digest.hexdigest()[:8]}"

    def synonyms(self, word: str) -> frozenset[str]:
        """Return the word and all single words that share a meaning with it, in any part of speech."""
        if word not in self._known:
            self._known[word] = frozenset(self._find(word.lower())) | {word}
        return self._known[word]

    def examples(self) -> list[str]:
        """Return the phrases and sentences that show how WordNet's words are used, unchanged."""
        examples: dict[str, None] = {}
        for data in self._data.values():
            for line in data[:].decode("utf-8", "replace").splitlines():
                if not line.startswith(" "):  # otherwise the licence
                    examples |= dict.fromkeys(re.findall(r'"([^"]+)"(?=;|\s*$)', line.partition(" | ")[2]))
        return list(examples)

    def licence(self) -> str:
        """Return the notice that accompanies every copy. Each file begins with it, as numbered lines."""
        head = self._data["noun"][:8192].decode("utf-8", "replace").splitlines()
        notice = itertools.takewhile(lambda line: line.startswith(" "), head)
        return "\n".join(re.sub(r"^\s+\d+ ?", "", line).rstrip() for line in notice)

    def _find(self, word: str) -> set[str]:
        synonyms: set[str] = set()
        for kind, endings in _ENDINGS.items():
            forms = self._irregular[kind].get(word)
            if forms is None:
                forms = [word[: -len(ending)] + base for ending, base in endings if word.endswith(ending)]
            for form in dict.fromkeys((word, *forms)):
                for offset in self._index[kind].get(form, ()):
                    synonyms.update(self._members(kind, offset))
        return synonyms

    def _members(self, kind: str, offset: int) -> list[str]:
        data = self._data[kind]
        line = data[offset : data.find(b"\n", offset)]
        fields = line.partition(b" | ")[0].decode("utf-8", "replace").split()
        if len(fields) < 5 or not fields[0].isdecimal() or int(fields[0]) != offset:
            raise DataError(f"{self._folder / f'data.{kind}'}: no synset at {offset}; install it again: {INSTALL}")
        words = fields[4 : 4 + 2 * int(fields[3], 16) : 2]  # each followed by its number among the word's meanings
        return [re.sub(r"\([^()]*\)$", "", word) for word in words if "_" not in word]


def _read_index(text: str, path: Path) -> dict[str, list[int]]:
    offsets: dict[str, list[int]] = {}
    for line in text.splitlines():
        if line.startswith(" ") or not line:
            continue
        # word, kind, meanings, n, n pointers, meanings, tagged meanings (all counts), then the offset of each meaning
        word, *rest = line.split()
        numbers = [int(field) if field.isdecimal() else -1 for field in rest[1:3]]
        if len(numbers) < 2 or min(numbers) < 0 or len(rest) != 5 + sum(numbers):
            raise DataError(f"{path}: the line of {word!r} is broken; install it again: {INSTALL}")
        offsets[word] = [int(offset) for offset in rest[5 + numbers[1] :]]
    return offsets


def wordnet() -> WordNet:
    """Return the installed WordNet, read once. If it is missing, the error gives the command that installs it."""
    return _read(Path(os.environ.get(VARIABLE) or FOLDER))


@cache
def _read(folder: Path) -> WordNet:
    wanted = [name for kind in _ENDINGS for name in (f"index.{kind}", f"data.{kind}", f"{kind}.exc")]
    for name in wanted:
        if not (folder / name).is_file():
            named = f" (no {name} in {folder}, which {VARIABLE} names)" if folder != FOLDER else ""
            raise MissingExtra(f"WordNet is not installed{named}; {INSTALL}")
        if name.startswith("data") and not (folder / name).stat().st_size:
            raise DataError(f"{folder / name} is empty; install it again: {INSTALL}")
    return WordNet(folder)
