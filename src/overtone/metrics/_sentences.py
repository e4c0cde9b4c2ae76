"""Split lower-cased English text into sentences, much like NLTK's word_tokenize.

The word tokenizer needs sentences, because it separates a full stop only from the last word of a sentence. For
lower-cased text, the rules reduce to a list of abbreviations and to conditions on the token after an initial or a
number. The list has common abbreviations. After a rare one (the initials "d.w."), NLTK may split differently, because
its list was learned from newspapers.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path

_DATA = Path(__file__).parent / "data" / "abbreviations.txt"

_CURLY = "‘’“”«»"
_NOT_IN_WORDS = rf"[)\";}}\]*:@'({{\[{_CURLY}?!]"
_MULTIPLE = r"(?:-{2,}|\.{2,}|(?:\.\s){2,}\.)"
_WORD_ENDS = rf"\s|$|{_NOT_IN_WORDS}|{_MULTIPLE}"
_TOKEN = re.compile(rf"{_MULTIPLE}|(?=[^(\"`{{\[:;&#*@)}}\]\-,])\S+?(?={_WORD_ENDS}|,(?:{_WORD_ENDS}))|\S")
_MARK = re.compile(rf"[.?!](?=({_NOT_IN_WORDS}|\s+(\S+)))")
_CLOSING = re.compile(rf"[\"')\]}}{_CURLY}]+?(?:\s+|(?=--)|$)", re.M)
_NUMBER = re.compile(r"-?[.,]?\d[\d,.-]*\.?")
_INITIAL = re.compile(r"[^\W\d]\.")


@cache
def abbreviations() -> frozenset[str]:
    """Return the words after which a full stop does not end a sentence. The entry ". . " is for three spaced full
    stops."""
    lines = _DATA.read_text("utf-8").splitlines()
    return frozenset((*(word for line in lines if not line.startswith("#") for word in line.split()), ". . "))


def sentences(text: str) -> list[str]:
    """Return the sentences of lower-cased text, without the space between them."""
    result: list[str] = []
    spans = list(_spans(text))
    moved = 0  # length of the closing quotes and brackets that the sentence before took from this one
    for i, (start, stop) in enumerate(spans):
        start += moved
        moved = 0
        if i + 1 < len(spans):
            after, end = spans[i + 1]
            closing = _CLOSING.match(text[after:end])
            if closing:
                result.append(text[start : after + len(closing[0].rstrip())])
                moved = closing.end()
                continue
        if text[start:stop]:
            result.append(text[start:stop])
    return result


def _spans(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for mark, context in _marks(text):
        if _breaks(context):
            yield start, mark.end()
            start = mark.start(2) if mark[2] else mark.end()
    yield start, len(text.rstrip())


def _marks(text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Yield each mark that may end a sentence, with the text around it. Only the last of several adjacent marks is
    yielded."""
    last: re.Match[str] | None = None
    start = stop = 0
    for mark in _MARK.finditer(text):
        before = text[stop : mark.start()]
        space = max(before.rfind(c) for c in string.whitespace)
        word = stop + space + 1 if space > 0 else start
        if last is not None and stop <= word:
            yield last, text[start:stop] + last[0] + last[1]
        last, start, stop = mark, word, mark.start()
    if last is not None:
        yield last, text[start:stop] + last[0] + last[1]


@lru_cache(maxsize=1 << 14)
def _breaks(context: str) -> bool:
    tokens = [token for line in context.split("\n") for token in _TOKEN.findall(line)]
    return any(_ends(token, after) for token, after in pairwise(tokens))


def _ends(token: str, after: str) -> bool:
    """Return whether a sentence ends with this token, given the next one."""
    if token in (".", "?", "!"):
        return True
    if not token.endswith(".") or token.endswith(".."):
        return False
    word = token[:-1]
    if not {word, word.rpartition("-")[2]}.isdisjoint(abbreviations()):
        return False
    initial = _INITIAL.fullmatch(token)
    if initial or _NUMBER.fullmatch(token):
        if after in (";", ":", ",", ".", "!", "?"):
            return False
        # a small letter, or after an initial a capital that has no lower case
        return not (after[0].islower() or (initial and after[0].isupper()))
    return True
