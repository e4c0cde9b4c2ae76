"""Which option a reply states in the option's own words, when it names no letter.

An option's word in running text is an answer only where the sentence is about what was heard: "The speaker sounds
happy" is one, "I'm happy to help!" and a transcript with the word in it are not.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgspec import Struct
from rapidfuzz.distance import OSA

from overtone.tasks import _phrases as say
from overtone.tasks._reading import Reader, body_of, fold, is_cjk, words_of

_UNIT = re.compile(r"[.;!?\n。!?;]+|:(?=\s)|\s[–—-]+\s|…")  # what a sentence, or a part that stands alone, ends with
_COMMA = re.compile(r"[,、,()]|\b(?:but|so|however|although|though|while|because|since|therefore|and yet|overall)\b")
_QUOTED = re.compile(r"\"[^\"\n]+\"|(?<!\w)'[^'\n]+(?:'\w[^'\n]*)*'(?!\w)")
_BESIDES = re.compile(r"\b(?:rather than|instead of|not|as opposed to|and not|more than)\b.*")  # "… rather than sad"
_AND_MORE = re.compile(r"\s+(?:and|or)\s+(?:\w+\s+)?\w+\W*(?:$|[.;\n])")  # "happy and tired": which?
_LONG = 4  # from this many words on, an option's text is not said by chance
_WORDY = 20  # words; what a longer sentence says of the option's word is not plain
_MANY = 30  # words; in longer replies single words of the menu come up without being an answer


_ASKED = re.compile(r"[^.!?\n]*\?")  # what a reply asks, it does not state


class _Mention(Struct, frozen=True):
    letter: str
    start: int
    end: int


@lru_cache(maxsize=4096)
def _finder(words: str) -> re.Pattern[str]:
    return re.compile(re.escape(words.strip()) if is_cjk(words) else rf"(?<![\w'-]){body_of(words)}(?![\w-])(?!'\w)")


def _mentions(text: str, options: dict[str, str]) -> list[_Mention]:
    """Every place where an option's whole text stands; a place belongs to the longest option only."""
    found: list[_Mention] = []
    for letter, words in sorted(options.items(), key=lambda kv: -len(kv[1])):
        if not words.strip():
            continue
        for m in _finder(words).finditer(text):
            if not any(m.start() < f.end and f.start < m.end() for f in found):
                found.append(_Mention(letter, m.start(), m.end()))
    return sorted(found, key=lambda f: f.start)


def _unquoted(text: str, options: dict[str, str]) -> str:
    """The text with quoted speech blanked out; an option's own text in quotes stays."""

    def blank(m: re.Match[str]) -> str:
        words = words_of(m[0])
        own = any(
            t in words and (len(t.split()) >= _LONG or len(words.split()) <= len(t.split()) + 1) for t in options_
        )
        return m[0] if own else " " * len(m[0])

    options_ = [t for t in options.values() if t.strip()]
    return _QUOTED.sub(blank, text) if '"' in text or "'" in text else text


def _around(edge: re.Pattern[str], text: str, start: int, end: int) -> tuple[int, int]:
    """Where the stretch around a place begins and ends, between two edges."""
    low = max((m.end() for m in edge.finditer(text, 0, start)), default=0)
    high = edge.search(text, end)
    return low, high.start() if high else len(text)


def _denied(text: str, m: _Mention, previous: _Mention | None, was_denied: bool) -> bool:
    low = max(_around(_UNIT, text, m.start, m.end)[0], _around(_COMMA, text, m.start, m.end)[0])
    before = say.NOT_A_NEGATION.sub(" ", text[low : m.start])
    if say.NEGATION.search(before) or say.TEXT_NEGATION.search(before) or say.NEGATED_AFTER.match(text, m.end):
        return True
    listed = previous is not None and re.fullmatch(
        r"[\s,]*(?:or|nor|and)?\s*(?:an?|the)?\s*", text[previous.end : m.start]
    )
    return bool(listed and was_denied)  # "not happy, sad or angry"


def _states(text: str, m: _Mention, options: dict[str, str]) -> bool:
    """Whether the words around a mention make it an answer: nothing else is said, or it is said of what was heard."""
    low, high = _around(_UNIT, text, m.start, m.end)
    clause_low, clause_high = _around(_COMMA, text, m.start, m.end)
    clause_low, clause_high = max(low, clause_low), min(high, clause_high)
    if len(options[m.letter].split()) >= _LONG:
        opens = not text[low : m.start].strip(" \"'([-*•")
        closes = not re.match(r"\s*[\"']?\s*[\w]", text[m.end : m.end + 4])
        return (opens or closes) and not _to_the_speaker(text[: m.start] + " " + text[m.end :])
    others = _BESIDES.sub("", text[m.end : clause_high])
    if is_cjk(text[low:high]) or not _leftover(text[clause_low : m.start] + " " + others):
        return True
    before, after = text[low : m.start], text[m.end : high]
    if not _leftover(before) and say.AFTER_TEXT.match(text, m.end):
        return not say.TALK.search(say.NOT_TALK.sub(" ", after))
    sentence = say.NOT_TALK.sub(" ", before + " ¤ " + after)
    if say.TALK.search(sentence) or say.CONDITION.search(say.NOT_A_CONDITION.sub(" ", before)):
        return False
    if say.EXPLETIVE.search(before) and re.match(r"\s+(?:that|to|enough|if|when|how|why)\b", text[m.end :]):
        return False  # "It is clear that …"
    if options[m.letter].strip() in ("yes", "no") or say.REPORTED.search(before):
        return False
    if len(text[low:high].split()) > _WORDY:
        return False
    own = text[m.start : m.end] if " " in options[m.letter].strip() else ""
    return any(say.ABOUT.search(part) for part in (before, after, own))


def _leftover(text: str) -> list[str]:
    return [w for w in words_of(text).split() if w not in say.FRAME]


def _part_of_any(text: str, options: dict[str, str]) -> bool:
    words = words_of(text)
    return len(words.split()) > 2 and any(words in t for t in options.values())


def _concluding(text: str, m: _Mention) -> bool:
    return bool(say.CONCLUSION.search(text, _around(_UNIT, text, m.start, m.end)[0], m.start))


def _to_the_speaker(text: str) -> bool:
    """Whether this is talk with the speaker and not an answer to the question."""
    return bool(say.TALK.search(say.NOT_TALK.sub(" ", text))) and not say.ABOUT.search(text)


def _yes_or_no(r: Reader, body: str) -> str | None:
    polar = {k: t.split()[0] for k, t in r.options.items() if t.strip() and t.split()[0] in ("yes", "no")}
    if set(polar.values()) != {"yes", "no"} or len(polar) != len(r.options):
        return None
    words = body.split()
    first = words[0] if words else ""
    said = "yes" if first in say.YES else "no" if first in say.NO else ""
    if not said and is_cjk(r.text):
        said = "no" if r.text.startswith(say.NO_CJK) else "yes" if r.text.startswith(say.YES_CJK) else ""
    elif said and not re.match(
        r"\W*\w+\W*(?:[^\w\s'\"]|\n|$)|\W*\w+\s+(?:it|there|the|he|she|they|this|that|way)\b", r.text
    ):
        return None  # "No problem", "Yes sir"
    if not said or say.INDECISION.search(r.text):
        return None
    if _to_the_speaker(r.text):
        return None
    return next(k for k, v in polar.items() if v == said)


def _runs(words: str) -> set[tuple[str, ...]]:
    split = words.split()
    return set(zip(split, split[1:], split[2:], strict=False))


def _borrows(text: str, found: list[_Mention], options: dict[str, str]) -> bool:
    """Whether, beside the option it states, the reply uses three words in a row of another one."""
    for m in found:
        text = text[: m.start] + "¤" * (m.end - m.start) + text[m.end :]
    said = _runs(words_of(text.replace("¤", ""))) - _runs(options[found[0].letter])
    return any(said & _runs(t) for k, t in options.items() if k != found[0].letter and len(t.split()) >= _LONG)


def _in_part(body: str, options: dict[str, str]) -> str | None:
    """The option of which the whole reply is a good part: its beginning, its telling words, or it with a slip."""
    words = body.split()
    shared = set.intersection(*(set(t.split()) for t in options.values())) | say.FRAME
    telling = {k: [w for w in t.split() if w not in shared] for k, t in options.items()}
    said = [w for w in words if w not in say.FRAME]
    if not said:
        return None
    if len(words) > _LONG or len(said) > 2:
        hits = [k for k, t in options.items() if t.startswith(body)]
        if hits:
            return hits[0] if len(hits) == 1 else None
    first, last = words.index(said[0]), len(words) - words[::-1].index(said[-1])
    inside = [k for k, t in options.items() if f" {' '.join(words[first:last])} " in t]
    if inside:
        return inside[0] if len(inside) == 1 and 3 * len(said) >= len(telling[inside[0]]) else None
    near = {k: " ".join(t) for k, t in telling.items() if len(" ".join(t)) > _LONG}
    letters = [w for w in said if len(w) == 1]  # C minor is no slip of D minor
    near = {k: t for k, t in near.items() if [w for w in t.split() if len(w) == 1] == letters}
    hits = [k for k, t in near.items() if OSA.distance(" ".join(said), t, score_cutoff=1) <= 1]
    return hits[0] if len(hits) == 1 else None


def stated(r: Reader) -> tuple[str | None, str]:
    """The one option whose text the reply states: (letter, rule), or (None, rule) where it states several."""
    asked = _ASKED.sub(lambda m: m[0] if _part_of_any(m[0], r.options) else " ", r.text)
    whole = asked.strip() or len(r.text.split()) > _LONG
    text = _unquoted(fold(asked if whole else r.text), r.options)
    body = words_of(text)
    if letter := _yes_or_no(r, body):
        return letter, "yes-no"
    if {t.strip() for t in r.options.values()} == {"yes", "no"} and _to_the_speaker(r.text):
        return None, ""
    found: list[_Mention] = []
    denied: list[str] = []
    previous, was_denied = None, False
    mentions = _mentions(text, r.options)
    for m in mentions:
        was_denied = _denied(text, m, previous, was_denied)
        previous = m
        if was_denied and r.options[m.letter].strip() not in ("no", "yes"):
            denied.append(m.letter)
        elif _AND_MORE.match(text, m.end):
            return None, "several option texts"
        elif _states(text, m, r.options):
            found.append(m)
    count = len(body.split())
    menu_words = count > _MANY and len({m.letter for m in _mentions(fold(r.text), r.options)}) > 1
    if menu_words and all(len(t.split()) == 1 for t in r.options.values()):
        found = [m for m in found if not text[: m.start].strip() or _concluding(text, m)]
    letters = list(dict.fromkeys(m.letter for m in found))
    if len(letters) == 1:
        if _borrows(text, found, r.options):
            return None, "several option texts"  # one in full and a part of another
        return letters[0], "option-text"
    if found:
        last = found[-1]
        other = max(m.end for m in found if m.letter != last.letter)
        if other < last.start and say.CORRECTION.search(text[other : last.start]):
            return last.letter, "option-text"
        return None, "several option texts"
    if len(r.options) == 2 and len(set(denied)) == 1:
        opposite = next(k for k in r.options if k != denied[0])
        if r.options[opposite].strip() in ("in" + r.options[denied[0]].strip(), "not " + r.options[denied[0]].strip()):
            return opposite, "opposite"
    if not denied and count <= 14 and (letter := _in_part(body, r.options)):
        return letter, "option-words"
    return None, ""


def states_another(r: Reader, letter: str) -> bool:
    """Whether the reply, which names this letter, plainly states the text of another option."""
    text = fold(r.text)
    others = (t for k, t in r.options.items() if k != letter and t.strip())
    return any(_finder(t).search(text) for t in others) and stated(r)[0] not in (None, letter)
