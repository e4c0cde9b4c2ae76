"""BERT's tokenizer in plain Python.

Basic tokenisation cleans the text, lowers it, strips accents, and separates Chinese characters and punctuation. Then
words are split into the longest matching pieces. A marker such as "[SEP]" that is written in a text is read as plain
text.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from overtone.errors import DataError

_LONGEST_WORD = 100  # a longer one is unknown as a whole
_CHINESE = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


@lru_cache(maxsize=65536)
def _cleaned(char: str) -> str:
    """Return a character's replacement before words are split: itself, a space, itself between spaces, or nothing."""
    if char in "\t\n\r" or char.isspace():
        return " "
    if char in "\0\ufffd" or unicodedata.category(char)[0] == "C":
        return ""
    return f" {char} " if any(low <= ord(char) <= high for low, high in _CHINESE) else char


@lru_cache(maxsize=65536)
def _is_punctuation(char: str) -> bool:
    return char in string.punctuation or unicodedata.category(char)[0] == "P"


def words(text: str) -> Iterator[str]:
    """Yield a text's words and punctuation marks, lower-cased and without accents."""
    cleaned = "".join(map(_cleaned, text))
    bare = (c for c in unicodedata.normalize("NFD", cleaned) if unicodedata.category(c) != "Mn")
    # Letter by letter, because str.lower() looks at neighbours (a final sigma) and the vocabulary was made without.
    for chunk in "".join(c.lower() for c in bare).split():
        start = 0
        for i, char in enumerate(chunk):
            if _is_punctuation(char):
                if i > start:
                    yield chunk[start:i]
                yield char
                start = i + 1
        if start < len(chunk):
            yield chunk[start:]


class WordPiece:
    """A vocabulary and its pieces."""

    def __init__(self, vocabulary: Path) -> None:
        pieces = vocabulary.read_text("utf-8").splitlines()
        self.ids = {piece: i for i, piece in enumerate(pieces)}
        missing = [name for name in ("[UNK]", "[CLS]", "[SEP]", "[PAD]") if name not in self.ids]
        if missing:
            raise DataError(f"{vocabulary}: no {', '.join(missing)} in it; run 'overtone setup local' again")
        self.pieces = pieces
        self._unknown, self._first, self._last = self.ids["[UNK]"], self.ids["[CLS]"], self.ids["[SEP]"]
        self._word = lru_cache(maxsize=65536)(self._split)

    def _split(self, word: str) -> tuple[int, ...]:
        if len(word) > _LONGEST_WORD:
            return (self._unknown,)
        pieces: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                piece = self.ids.get(prefix + word[start:end])
                if piece is not None:
                    pieces.append(piece)
                    start = end
                    break
            else:
                return (self._unknown,)
        return tuple(pieces)

    def encode(self, text: str, longest: int) -> list[int]:
        """Return token ids with the opening and closing marker, cut to `longest`."""
        ids = [self._first]
        for word in words(text):
            ids.extend(self._word(word))
            if len(ids) >= longest:
                break
        return [*ids[: longest - 1], self._last]
