"""Split lower-cased English text into words like NLTK's `word_tokenize` (the Penn Treebank's rules).

The text is split into sentences first, because only a sentence's last full stop is a separate token. Then one rule
after the other puts spaces around separate tokens. A rule is skipped if the text has none of the characters it needs.
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
        # punctuation; the full stop at the end, with closing marks after it
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
        # closing quotes, then suffixes of a word
        ("»”’", "([»”’])", r" \1 "),
        ("'", "('')", r" \1 "),
        ('"', '"', " '' "),
        ("'", r"\s+", " "),
        ("'", r"([^' ])('[smd]|') ", r"\1 \2 "),
        ("'", r"([^' ])('ll|'re|'ve|n't) ", r"\1 \2 "),
        # two words in one
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
    """Return the tokens of lower-cased text."""
    return [token for sentence in sentences(text) for token in _tokens(sentence)]


def _tokens(text: str) -> list[str]:
    characters = set(text)
    for needs, pattern, replacement in _RULES:
        if not characters.isdisjoint(needs):
            text = pattern.sub(replacement, text)
    text = f" {text} "
    joined = any(word in text for word in _JOINED)
    apostrophe = "'" in text or '"' in text
    for needs, pattern, replacement in _ENDINGS:
        if joined if not needs else apostrophe if needs == "'" else not characters.isdisjoint(needs):
            text = pattern.sub(replacement, text)
    return text.split()
