"""Normalise text before words or characters are counted.

`english` behaves like Whisper's English normaliser: lower case; no bracketed remarks, fillers, symbols or diacritics;
contractions, titles and numbers in one form; American spelling. `basic` is for every other language and behaves like
Whisper's basic normaliser with diacritics preserved: lower case, no bracketed remarks, no symbols. `NAME` and `BASIC`
are the versions of the two normalisers; a version changes whenever the output of its normaliser changes.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from pathlib import Path

from overtone.languages import DEFAULT, plain, split
from overtone.metrics._numbers import words_to_digits

NAME = "english-2"
BASIC = "basic-1"
_DATA = Path(__file__).parent / "data" / "spelling.tsv"
_KEPT = ".%$¢€£"  # symbols that may belong to a number
_BRACKETS = re.compile(r"[<\[][^>\]]*[>\]]")
_PARENTHESES = re.compile(r"\(([^)]+?)\)")
_FILLERS = re.compile(r"\b(?:hmm|mm|mhm|mmm|uh|um)\b")
_SPACE = re.compile(r"\s+")

_CONTRACTED = {
    "won't": "will not",
    "can't": "can not",
    "let's": "let us",
    "ain't": "aint",
    "y'all": "you all",
    "i'ma": "i am going to",
    "ma'am": "madam",
}
_WORDS = {
    "wanna": "want to",
    "kinda": "kind of",
    "sorta": "sort of",
    "dunno": "do not know",
    "gotta": "got to",
    "gonna": "going to",
    "imma": "i am going to",
    "woulda": "would have",
    "coulda": "could have",
    "shoulda": "should have",
    "cause": "because",
} | {
    short: f"{full} "
    for short, full in {
        "mr": "mister",
        "mrs": "missus",
        "st": "saint",
        "dr": "doctor",
        "prof": "professor",
        "capt": "captain",
        "gov": "governor",
        "ald": "alderman",
        "gen": "general",
        "sen": "senator",
        "rep": "representative",
        "pres": "president",
        "rev": "reverend",
        "hon": "honorable",
        "asst": "assistant",
        "assoc": "associate",
        "lt": "lieutenant",
        "col": "colonel",
        "jr": "junior",
        "sr": "senior",
        "esq": "esquire",
    }.items()
}
_PERFECT = {
    "'d been": " had been",
    "'s been": " has been",
    "'d gone": " had gone",
    "'s gone": " has gone",
    "'d done": " had done",
    "'s got": " has got",
}
_ENDINGS = {
    "'re": " are",
    "'s": " is",
    "'d": " would",
    "'ll": " will",
    "'t": " not",
    "'ve": " have",
    "'m": " am",
}


def _any_of(table: dict[str, str], start: str = "") -> re.Pattern[str]:
    return re.compile(f"{start}(?:{'|'.join(table)})" + r"\b")


_CONTRACTED_RE = _any_of(_CONTRACTED, r"\b")
_WORDS_RE = _any_of(_WORDS, r"\b")
_PERFECT_RE = _any_of(_PERFECT)
_ENDINGS_RE = _any_of(_ENDINGS)
_NOT_RE = re.compile(r"n't\b")


class _Symbols(dict[int, str]):
    """A table for `str.translate`, filled on demand: removes diacritics, and maps symbols except `_KEPT` to spaces."""

    _LETTERS = {"œ": "oe", "ø": "o", "æ": "ae", "ß": "ss", "đ": "d", "ð": "d", "þ": "th", "ł": "l"}  # noqa: RUF012

    def __missing__(self, code: int) -> str:
        char = chr(code)
        kind = unicodedata.category(char)
        if char in _KEPT:
            out = char
        elif char.lower() in self._LETTERS and char != "Þ":
            out = self._LETTERS[char.lower()] if char.islower() else self._LETTERS[char.lower()].upper()
        else:
            out = "" if kind == "Mn" else " " if kind[0] in "MSP" else char
        self[code] = out
        return out


_SYMBOLS = _Symbols()


@cache
def _spelling() -> dict[str, str]:
    lines = _DATA.read_text(encoding="utf-8").splitlines()
    return dict(line.split("\t") for line in lines if not line.startswith("#"))


def without_remarks(text: str) -> str:
    """Remove bracketed remarks: `[laughs]`, `<unk>`, `(sighs)`. An unclosed bracket stays.

    The search ends at the last closing bracket, so that many unclosed ones do not take quadratic time.
    """
    if "[" in text or "<" in text:
        last = max(text.rfind(">"), text.rfind("]")) + 1
        text = _BRACKETS.sub("", text[:last]) + text[last:]
    if "(" in text:
        last = text.rfind(")") + 1
        text = _PARENTHESES.sub("", text[:last]) + text[last:]
    return text


def english(text: str) -> str:
    """Normalise like Whisper's English normaliser. `split()` then returns the words."""
    s = text.lower()
    s = without_remarks(s)
    s = _FILLERS.sub("", s)
    if "'" in s:
        s = re.sub(r"(?<!\s)\s+'", "'", s)
        s = _CONTRACTED_RE.sub(lambda m: _CONTRACTED[m[0]], s)
    s = _WORDS_RE.sub(lambda m: _WORDS[m[0]], s)
    if "'" in s:
        s = _PERFECT_RE.sub(lambda m: _PERFECT[m[0]], s)
        s = _NOT_RE.sub(" not", s)  # before the others: "'sn't"
        s = _ENDINGS_RE.sub(lambda m: _ENDINGS[m[0]], s)
    if "," in s:
        s = re.sub(r"(\d),(\d)", r"\1\2", s)
    if "." in s:
        s = re.sub(r"\.([^0-9]|$)", r" \1", s)
    s = (s if s.isascii() else unicodedata.normalize("NFKD", s)).translate(_SYMBOLS)
    s = words_to_digits(s)
    spelling = _spelling()
    s = " ".join([spelling.get(w, w) for w in s.split()])
    s = re.sub(r"[.$¢€£]([^0-9])", r" \1", s)
    if "%" in s:
        s = re.sub(r"([^0-9])%", r"\1 ", s)
    return _SPACE.sub(" ", s)


def basic(text: str) -> str:
    """Normalise like Whisper's basic normaliser with diacritics; remarks in （full-width） brackets are removed too."""
    return plain(without_remarks(unicodedata.normalize("NFKC", text)))


def units(text: str, language: str) -> list[str]:
    """Return the normalised words of a text, or its characters in a language without spaces between words."""
    return english(text).split() if language == DEFAULT else split(basic(text), language)


def plain_units(text: str, language: str) -> list[str]:
    """Return words or characters like `units` for languages other than English, but keep remarks in brackets."""
    return split(plain(text), language)
