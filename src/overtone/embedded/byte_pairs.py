"""SmolLM2's tokenizer in plain Python, from the lists in the model's GGUF file.

It uses byte-level byte pairs, and every digit is a separate token. llama.cpp tokenises prompts itself, but its Python
package has no function that returns the tokens of a text, which are needed for the likelihood of an answer. A special
token that is written in a text is read as plain text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path

from overtone.embedded.gguf import read_strings
from overtone.errors import DataError

_SHORT = re.compile(r"'(?:s|t|re|ve|m|ll|d)")  # English endings that are words of their own
# On the shape of a text: a letter is a, white space is s (a blank stays), anything else is a dot.
_WORD = re.compile(r" ?a+| ?\.+|[ s]+(?![^ s])|[ s]+")


class BytePairs:
    """A tokenizer: `encode(text)` returns ids."""

    def __init__(self, tokens: Sequence[str], merges: Sequence[str]) -> None:
        self._ids = {token: number for number, token in enumerate(tokens)}
        self._ranks = {tuple(merge.split(" ", 1)): rank for rank, merge in enumerate(merges)}
        self._encode_word = lru_cache(maxsize=65536)(self._merge)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""
        return [token for word in _words(text) for token in self._encode_word(word)]

    def _merge(self, word: str) -> tuple[int, ...]:
        """Merge the bytes of a word step by step. Each step merges the pair that was learnt first."""
        parts = [_bytes()[byte] for byte in word.encode()]
        while len(parts) > 1:
            ranked = [(self._ranks.get(pair, -1), at) for at, pair in enumerate(pairwise(parts))]
            known = [found for found in ranked if found[0] >= 0]
            if not known:
                break
            at = min(known)[1]
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return tuple(self._ids[part] for part in parts)


def _words(text: str) -> Iterator[str]:
    """Split a text into single digits, and the rest into words, signs and white space."""
    shape = "".join(map(_shape, text))
    for part in re.finditer(r"0|[^0]+", shape):
        at = part.start()
        while at < part.end():
            found = _SHORT.match(text, at, part.end()) or _WORD.match(shape, at, part.end())
            end = found.end() if found else at + 1
            yield text[at:end]
            at = end


def _shape(character: str) -> str:
    if character == " ":
        return " "
    if character.isspace() and character not in "\x1c\x1d\x1e\x1f":  # Python counts these four, Unicode does not
        return "s"
    kind = unicodedata.category(character)[0]
    return {"L": "a", "N": "0"}.get(kind, ".")


@cache
def _bytes() -> dict[int, str]:
    """Map each byte to the character that represents it in the list of tokens. A printable byte represents itself."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {byte: chr(256 + number) for number, byte in enumerate(others)}


@cache
def load(path: Path) -> BytePairs:
    """Read the tokenizer of a GGUF file. Raises DataError if the file has none."""
    lists = read_strings(path, ("tokenizer.ggml.tokens", "tokenizer.ggml.merges"))
    if not all(lists):
        raise DataError(f"{path}: the file has no tokenizer of byte pairs")
    return BytePairs(*lists)
