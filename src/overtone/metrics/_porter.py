"""Porter's stemmer with NLTK's default extensions, for ROUGE and METEOR."""

from __future__ import annotations

from functools import lru_cache

NAME = "porter-nltk"

_IRREGULAR = {
    "skies": "sky", "dying": "die", "lying": "lie", "tying": "tie", "innings": "inning", "outings": "outing",
    "cannings": "canning",
} | {w: w for w in ("sky", "news", "inning", "outing", "canning", "howe", "proceed", "exceed", "succeed")}  # fmt: skip

# In each list, only the first ending that a word has is tried, whether or not its condition holds.
_STEP2 = (
    ("ational", "ate"), ("tional", "tion"), ("enci", "ence"), ("anci", "ance"), ("izer", "ize"), ("bli", "ble"),
    ("alli", "al"), ("entli", "ent"), ("eli", "e"), ("ousli", "ous"), ("ization", "ize"), ("ation", "ate"),
    ("ator", "ate"), ("alism", "al"), ("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous"), ("aliti", "al"),
    ("iviti", "ive"), ("biliti", "ble"), ("fulli", "ful"), ("logi", "log"),
)  # fmt: skip
_STEP3 = (
    ("icate", "ic"), ("ative", ""), ("alize", "al"), ("iciti", "ic"), ("ical", "ic"), ("ful", ""), ("ness", ""),
)  # fmt: skip
_STEP4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate", "iti",
    "ous", "ive", "ize",
)  # fmt: skip


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Return the stem of a word in lower case."""
    short = len(word) <= 2
    word = word.lower()
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if short:
        return word
    word = _past_and_plural(word)
    if word.endswith("y") and len(word) > 2 and _shape(word)[-2] == "c":
        word = word[:-1] + "i"
    return _last_letter(_step4(_step3(_step2(word))))


def _shape(word: str) -> str:
    """Return a word with every vowel replaced by v and every consonant by c; y is a vowel after a consonant."""
    shape = ""
    for letter in word:
        if letter in "aeiou" or (letter == "y" and shape[-1:] == "c"):
            shape += "v"
        else:
            shape += "c"
    return shape


def _measure(word: str) -> int:
    """Return Porter's measure m: the number of times that a consonant directly follows a vowel."""
    return _shape(word).count("vc")


def _closed(word: str) -> bool:
    """Return whether a word ends in consonant, vowel and consonant (the last not w, x or y), or consists of a vowel and
    a consonant."""
    shape = _shape(word)
    return shape == "vc" or (shape.endswith("cvc") and word[-1] not in "wxy")


def _past_and_plural(word: str) -> str:
    if word.endswith("ies"):
        word = word[:-1] if len(word) == 4 else word[:-2]
    elif word.endswith("sses"):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    if word.endswith("ied"):
        return word[:-1] if len(word) == 4 else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for ending in ("ed", "ing"):
        if word.endswith(ending) and "v" in _shape(word[: -len(ending)]):
            return _restored(word[: -len(ending)])
    return word


def _restored(word: str) -> str:
    """Return the base form, given a word without its -ed or -ing: `hop` for `hopp`, `file` for `fil`."""
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if len(word) > 1 and word[-1] == word[-2] and _shape(word)[-1] == "c":
        return word if word[-1] in "lsz" else word[:-1]
    return word + "e" if _measure(word) == 1 and _closed(word) else word


def _step2(word: str) -> str:
    if word.endswith("alli") and _measure(word[:-4]) > 0:
        return _step2(word[:-2])
    for ending, instead in _STEP2:
        if word.endswith(ending):
            kept = word[: -len(ending)]
            return kept + instead if _measure(word[:-3] if ending == "logi" else kept) > 0 else word
    return word


def _step3(word: str) -> str:
    for ending, instead in _STEP3:
        if word.endswith(ending):
            kept = word[: -len(ending)]
            return kept + instead if _measure(kept) > 0 else word
    return word


def _step4(word: str) -> str:
    for ending in _STEP4:
        if word.endswith(ending):
            kept = word[: -len(ending)]
            return kept if _measure(kept) > 1 and (ending != "ion" or kept[-1] in "st") else word
    return word


def _last_letter(word: str) -> str:
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _closed(word[:-1])):
            word = word[:-1]
    if word.endswith("ll") and _measure(word[:-1]) > 1:
        word = word[:-1]
    return word
