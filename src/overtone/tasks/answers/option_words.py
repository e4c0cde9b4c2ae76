"""Find the places where a reply names an option by the option's words, inflected or not.

An option's *key* consists of the roots of the words that distinguish it from the other options. A mention is a short
part of one sentence that has the whole key. A partial mention has a large part of the key that no other option shares.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import pairwise

from msgspec import Struct

TOKEN = re.compile(r"\d+%?(?![^\W\d_])|[\u3040-\u9fff\uac00-\ud7a3]|[^\W_]+(?:'[^\W\d_]+)*[#♯♭]?")
_ARTICLES = frozenset(("a", "an", "the"))
# Words that hardly ever distinguish one option from another.
_GENERIC = frozenset(
    """speaker speaker's speakers voice voices show shows showing sound sounds background audio clip recording person
    speaking speak speaks talking while is are was were be being been of to in on at and or with for from by as his her
    their its it it's there there's they he she this that these those has have had do does so very
    """.split()  # noqa: SIM905
)
_NEGATORS = frozenset(("no", "not", "never", "none", "without", "neither", "cannot", "can't"))
_NUMBERS = {
    word: str(n)
    for n, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
    )
}
_IRREGULAR = {
    "anger": "anger", "angry": "anger", "angrily": "anger", "angrier": "anger", "angered": "anger", "laughter": "laugh",
    "children": "child", "men": "man", "women": "woman", "people": "person", "really": "really", "only": "only",
    "forgot": "forget", "forgotten": "forget", "spoke": "speak", "broke": "break", "broken": "break", "wept": "weep",
    "rang": "ring", "sang": "sing", "rose": "rise", "fell": "fall", "slept": "sleep", "went": "go", "wolves": "wolf",
    "sceptical": "skept", "sceptic": "skept", "scepticism": "skept", "during": "during",
    "melancholy": "melanchol", "can't": "cannot", "breathless": "breath", "terror": "terrif",
    "terrified": "terrif", "terrifying": "terrif",
}  # fmt: skip
_INFLECTED = ("ed", "ing", "e", "y", "ly", "est", "ness", "iness", "ily", "ened", "ful", "ious", "iety", "dom")
_DERIVED = (
    "fully", "ingly", "edly", "ation", "ations", "ion", "ions", "ment", "ic", "ical", "ically", "icism", "ism", "al",
    "ally", "ive", "ively", "ance", "etic", "ate", "at", "like", "ish", "song", "storm", "ity", "asm", "astic",
    "astically", "er", "ent", "ency", "ence", "ous",
)  # fmt: skip
_SUFFIXES = sorted({(s, 3) for s in _INFLECTED} | {(s, 4) for s in _DERIVED}, key=lambda pair: -len(pair[0]))
_DOUBLED = re.compile(r"([bcdfgklmnprstvz])\1$")
_WIDE = 2  # per word of a key: other words of the sentence that may come between the words of the key


class Mention(Struct, frozen=True):
    """One place that names an option: `start` and `end` in the text, and how much of the option's key it has."""

    letter: str
    start: int
    end: int
    exact: bool  # the option's own words, not an inflected form of them
    whole: bool  # the whole key
    roots: int


class Key(Struct, frozen=True):
    """The key of one option: the roots of its distinguishing words, in order, and all its words unchanged."""

    roots: tuple[str, ...]
    words: tuple[str, ...]
    ordered: bool  # another option has the same words in another order
    unshared: frozenset[str]  # the roots that no other option has


@lru_cache(maxsize=16384)
def root(word: str) -> str:
    """Return a rough root, which is the same for the inflected and the common derived forms of an English word."""
    word = word.removesuffix("'s")
    if word in _NUMBERS or word in _IRREGULAR:
        return _NUMBERS.get(word) or _IRREGULAR[word]
    if not word.isalpha() or not word.isascii():
        return word
    if word.endswith(("ies", "ied")) and len(word) > 3:
        word = word[:-3] + "y"
    elif word.endswith("s") and len(word) > 3 and word[-2] not in "su":
        word = word[:-1]
    for _ in range(3):
        word = _IRREGULAR.get(word, word)
        for suffix, least in _SUFFIXES:
            if word.endswith(suffix) and len(word) - len(suffix) >= least and not word.endswith("eer"):
                word = word[: -len(suffix)]
                break
        else:
            break
    return _DOUBLED.sub(r"\1", word)


_UNITS = frozenset(map(root, ("second", "minute", "hour", "day", "week", "month", "year", "percent", "metre", "meter")))


def _distinctive(words: list[str], shared: set[str]) -> list[str]:
    distinctive = [w for w in words if w not in _GENERIC and root(w) not in shared]
    if not distinctive or _NEGATORS.intersection(words) or any(_is_letter(w) for w in words):
        return words  # "There is no sound", "Vitamin D": all words matter
    return distinctive


def _words(text: str, lettered: bool) -> list[str]:
    """Return the words of an option. Articles are left out, unless the options contain single letters (`A - D - E`,
    `Vitamin A`), where "a" is not an article."""
    words: list[str] = TOKEN.findall(text)
    return words if lettered else [w for w in words if w not in _ARTICLES] or words


def _is_letter(word: str) -> bool:
    return len(word) == 1 and word.isascii() and word.isalpha()


@lru_cache(maxsize=4096)
def keys_of(options: tuple[tuple[str, str], ...]) -> Mapping[str, Key]:
    """Return letter → key. An option is left out if it has no words, only single letters, or the same key as another
    option."""
    lettered = any(_is_letter(w) and w != "a" for _, t in options for w in TOKEN.findall(t))
    split = {k: _words(t, lettered) for k, t in options if t.strip()}
    shared = set.intersection(*({root(w) for w in words} for words in split.values())) if len(split) > 1 else set()
    if any(not {root(w) for w in words} - shared for words in split.values()):
        shared = set()
    roots = {k: tuple(root(w) for w in _distinctive(words, shared)) for k, words in split.items()}
    keys: dict[str, Key] = {}
    for letter, own in roots.items():
        others = [r for k, r in roots.items() if k != letter]
        if own in others or all(map(_is_letter, own)):
            continue
        ordered = (
            any(set(own) <= set(r) and len(own) == len(r) for r in others)
            or not own[0].isascii()
            or any(map(_is_letter, own))
            or sum(part.isdigit() for part in own) > 1
        )
        unshared = frozenset(own).difference(*others)
        keys[letter] = Key(own, tuple(split[letter]), ordered, unshared)
    return keys


def _pronoun(tokens: list[re.Match[str]], i: int) -> bool:
    """Return whether `one` is a pronoun here and not a number: `the one`, `no one`, `one of`."""
    if tokens[i][0] not in ("one", "one's"):
        return False
    before = tokens[i - 1][0] if i else ""
    after = tokens[i + 1][0] if i + 1 < len(tokens) else ""
    return (
        before in ("the", "no", "this", "that", "which", "any", "every", "each", "another", "first", "second", "last")
        or after in ("of", "can", "could", "might", "would", "should")
        or tokens[i][0] == "one's"
    )


def mentions(text: str, bounds: list[tuple[int, int]], keys: Mapping[str, Key]) -> list[Mention]:
    """Return every mention of an option in the sentences with these bounds, in order. Takes linear time."""
    by_root: dict[str, list[str]] = {}
    for letter, key in keys.items():
        for part in dict.fromkeys(key.roots):
            by_root.setdefault(part, []).append(letter)
    all_mentions: list[Mention] = []
    for low, high in bounds:
        tokens = list(TOKEN.finditer(text, low, high))
        roots = [root(t[0]) if not _pronoun(tokens, i) else "" for i, t in enumerate(tokens)]
        for i, (number, unit) in enumerate(pairwise(roots)):
            if number.isdigit() and unit in _UNITS and unit not in by_root:
                roots[i] = ""  # "the five seconds of the clip"
        whole = list(_whole(roots, by_root, keys))
        whole.sort(key=lambda hit: (-len(hit[1]), hit[1][0]))
        taken: dict[int, int] = {}
        kept = []
        for letter, places in whole:
            if all(p in taken for p in places):
                continue
            taken |= dict.fromkeys(places, 1)
            kept.append((letter, places, True))
        kept += [(k, p, False) for k, p in _partial(roots, by_root, keys, taken)]
        all_mentions += [_mention(tokens, keys[k], k, p, is_whole) for k, p, is_whole in kept]
    return sorted(all_mentions, key=lambda m: (m.start, m.end))


def _whole(
    roots: list[str], by_root: Mapping[str, list[str]], keys: Mapping[str, Key]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    last: dict[str, dict[str, int]] = {k: {} for k in keys}
    for i, part in enumerate(roots):
        for letter in by_root.get(part, ()):
            key, seen = keys[letter], last[letter]
            if key.ordered and len(seen) < len(key.roots) and part != key.roots[len(seen)]:
                seen.clear()
                if part != key.roots[0]:
                    continue
            seen.pop(part, None)
            seen[part] = i
            if len(seen) == len(set(key.roots)):
                places = tuple(sorted(seen.values()))
                together = not key.roots[0].isascii() or any(map(_is_letter, key.roots)) or _digits(key) > 1
                if places[-1] - places[0] < len(places) + (0 if together else len(places) * _WIDE):
                    yield letter, places
                    seen.clear()


def _digits(key: Key) -> int:
    return sum(part.isdigit() for part in key.roots)


def _partial(
    roots: list[str], by_root: Mapping[str, list[str]], keys: Mapping[str, Key], taken: Mapping[int, int]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    seen: dict[str, dict[str, int]] = {}
    for i, part in enumerate(roots):
        letters = by_root.get(part, ())
        if len(letters) == 1 and i not in taken and part in keys[letters[0]].unshared:
            seen.setdefault(letters[0], {}).setdefault(part, i)
    for letter, parts in seen.items():
        own = set(keys[letter].roots)
        must = {p for p in own if len(p) < 3 or p[0].isdigit()} | (own & _NEGATORS)
        if len(own) > 1 and must <= set(parts) and 2 * sum(map(len, parts)) >= sum(map(len, own)):
            yield letter, tuple(sorted(parts.values()))


def _mention(tokens: list[re.Match[str]], key: Key, letter: str, places: tuple[int, ...], whole: bool) -> Mention:
    first, last = tokens[places[0]], tokens[places[-1]]
    words = [t[0] for t in tokens[places[0] : places[-1] + 1]]
    exact = whole and all(w in key.words or w.removesuffix("'s") in key.words or w in _ARTICLES for w in words)
    return Mention(letter, first.start(), last.end(), exact, whole, len(places))
