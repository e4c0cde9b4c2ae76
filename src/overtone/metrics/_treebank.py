"""English words as NLTK's `word_tokenize` parts them (the Penn Treebank's way), for lower-cased text.

Sentences first, since only a sentence's last full stop stands alone; then one rule after the other puts spaces around
what is a token of its own. A rule is tried only where a character it needs is there.
"""

from __future__ import annotations

import re

from overtone.metrics._sentences import sentences

NAME = "like-nltk-3.10"

_RULES: tuple[tuple[str, re.Pattern[str], str], ...] = tuple(
    (needs, re.compile(pattern), replacement)
    for needs, pattern, replacement in (
        # opening quotes
        ("«“‘„`", "([«“‘„]|`+)", r" \1 "),
        ('"', '^"', "``"),
        ('`"', "(``)", r" \1 "),
        ("\"'", r"([ (\[{<])(\"|'{2})", r"\1 `` "),
        ("'", r"(?<!\w)(')(?!(?:re|ve|ll|m|t|s|d|n)\b)(?=\w)", r"\1 "),
        # punctuation; the full stop at the end, with what closes after it
        (".", r"([^.])(\.)([\])}>\"'»”’ ]*+)\s*$", r"\1 \2 \3 "),
        (":,", r"([:,])(\D)", r" \1 \2"),
        (":,", r"([:,])$", r" \1 "),
        (".", r"(\.{2,})", r" \1 "),
        (";@#$%&", r"([;@#$%&])", r" \1 "),
        ("‒–—―", "([‒–—―])", r" \1 "),
        (".", r"([^.])(\.)([\])}>\"']*)\s*$", r"\1 \2\3 "),
        ("?!", r"([?!])", r" \1 "),
        ("'", r"([^'])' ", r"\1 ' "),
        ("*", r"([*])", r" \1 "),
        ("[](){}<>", r"([\]\[(){}<>])", r" \1 "),
        ("-", "(--)", r" \1 "),
    )
)
_ENDINGS: tuple[tuple[str, re.Pattern[str], str], ...] = tuple(
    (needs, re.compile(pattern), replacement)
    for needs, pattern, replacement in (
        # closing quotes, then what hangs on a word
        ("»”’", "([»”’])", r" \1 "),
        ("'", "('')", r" \1 "),
        ('"', '"', " '' "),
        ("'", r"\s+", " "),
        ("'", r"([^' ])('[smd]|') ", r"\1 \2 "),
        ("'", r"([^' ])('ll|'re|'ve|n't) ", r"\1 \2 "),
        # words that are two
        ("", r"\b(can)(not)\b", r" \1 \2 "),
        ("'", r"\b(d)('ye)\b", r" \1 \2 "),
        ("", r"\b(gim)(me)\b", r" \1 \2 "),
        ("", r"\b(gon)(na)\b", r" \1 \2 "),
        ("", r"\b(got)(ta)\b", r" \1 \2 "),
        ("", r"\b(lem)(me)\b", r" \1 \2 "),
        ("'", r"\b(more)('n)\b", r" \1 \2 "),
        ("", r"\b(wan)(na)(?=\s)", r" \1 \2 "),
        ("'", r" ('t)(is)\b", r" \1 \2 "),
        ("'", r" ('t)(was)\b", r" \1 \2 "),
    )
)
_JOINED = ("cannot", "gimme", "gonna", "gotta", "lemme", "wanna")


def words(text: str) -> list[str]:
    """The tokens of lower-cased text."""
    return [token for sentence in sentences(text) for token in _parted(sentence)]


def _parted(text: str) -> list[str]:
    there = set(text)
    for needs, pattern, replacement in _RULES:
        if not there.isdisjoint(needs):
            text = pattern.sub(replacement, text)
    text = f" {text} "
    joined = any(word in text for word in _JOINED)
    apostrophe = "'" in text or '"' in text
    for needs, pattern, replacement in _ENDINGS:
        if joined if not needs else apostrophe if needs == "'" else not there.isdisjoint(needs):
            text = pattern.sub(replacement, text)
    return text.split()
