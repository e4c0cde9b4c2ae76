"""Read the choice that a reply makes: a strict reader of the required format, and a lenient reader of any reply.

Neither reader guesses. If a reply endorses two letters, a letter that is not on the menu, or no letter, the result has
no letter, and a status that gives the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal

from msgspec import Struct
from rapidfuzz import fuzz

from overtone.schema import Option
from overtone.tasks.answers import phrases as say
from overtone.tasks.answers.claims import RAMBLING, Claim, headed, lines, mentioned, tailed, ticked, without_menus
from overtone.tasks.answers.positions import (
    Reader,
    body_of,
    clean,
    few,
    own_question,
    unfinished_thought,
    with_letters,
    without_courtesy,
    without_dialogue,
    without_speech,
    words_of,
)
from overtone.tasks.answers.stated_options import names_another, stated, states_another, without_own_letters

Status = Literal["parsed", "hedged", "refused", "beyond", "unparsable", "empty"]
STRICT = "strict-3"
LENIENT = "lenient-3"


class Extracted(Struct, frozen=True):
    """The choice read from a reply. `letter` is None unless the status is `parsed`; `rule` is the rule that decided."""

    letter: str | None
    status: Status
    rule: str


def _with_mentions(r: Reader, claims: list[Claim], after_menu: bool) -> list[Claim]:
    """Return the claims. If there are no claims, return the letters that the reply mentions as claims.

    A letter mentioned after the last claim is added if the reply changes its mind (`B, however … C`). In a long reply,
    only the last sentence is searched for mentions.
    """
    named = list(mentioned(r, after_menu))
    if len(r.text.split()) > RAMBLING:
        start = r.sentences.bounds[-1][0]
        concludes = say.CONCLUSION.search(r.text, start) is not None
        named = [c for c in named if c.start >= start and (concludes or not claims)]
        if concludes and named and not any(c.end >= start for c in claims):
            return claims + named[-1:]
    if not claims:
        single = [c for c in named if len(c.letters) == 1]
        return single or named
    last = max(c.end for c in claims)
    return claims + [c for c in named if c.start >= last and say.TURN.search(r.sentence(c.start, c.end)[0])]


def _decide(r: Reader, claims: list[Claim]) -> Claim | None:
    """Return the claim that counts, or None if the reply is undecided."""
    claims = sorted(claims, key=lambda c: (c.end, c.tier))
    last = claims[-1]
    minds = [c.letters for i, c in enumerate(claims) if not i or c.letters != claims[i - 1].letters]
    if len(minds) > 3 and last.tier < 3:
        return None  # "B. Or C. Maybe B. Hmm, C."
    if len({c.letters for c in claims}) > 1:
        before, _ = r.sentence(last.start, last.end)
        lead = before + r.text[last.start : last.end]
        previous = [c for c in claims if c.letters != last.letters]
        best = max(c.tier for c in previous)
        gap = r.text[max(c.end for c in previous) : last.start] if previous[-1].end < last.start else before
        corrected = bool(say.CORRECTION.search(gap[-120:] + lead))
        concluded = bool(say.CONCLUSION.search(lead)) and (last.tier >= min(best, 2) or len(minds) == 2)
        turned = bool(say.CONTRAST.search(before) or say.CONTRAST.search(gap[-40:])) and last.tier >= best
        outranks = last.tier > best
        if all(len(c.letters) > 1 for c in previous) and len(last.letters) == 1:
            outranks = True  # "either A or B. I'd say B."
        if not (corrected or concluded or turned or outranks):
            top = [c for c in claims if c.tier == max(c.tier for c in claims)]
            if len({c.letters for c in top}) > 1 or top[0].tier < 2 or last.letters != top[-1].letters:
                return None
            last = top[-1]
    tail = r.text[last.end : last.end + 160]
    doubt = say.CORRECTION.search(r.text, last.end)
    if doubt and (set(_bare_letters(r, doubt.end())) & set(r.options)) - set(last.letters):
        return None  # a correction that we cannot read
    own = r.options.get(last.letters[0], "")
    tail = re.sub(body_of(own), " ", tail) if own.strip() else tail
    if re.search(rf"\b{last.letters[0]}\b[^.\n]{{0,12}} is (?:incorrect|wrong|not correct)\b", r.text[: last.start]):
        return None  # it calls the letter wrong but gives it anyway
    if len(last.letters) > 1 or say.INDECISION.search(tail) or say.RETRACTION.search(r.text, last.end):
        return None
    return last


def _bare_letters(r: Reader, start: int) -> Iterator[str]:
    for m in few(re.finditer(r"(?<![\wà-ÿ'])[(\[\"']?[a-h](?![\wà-ÿ'])", r.text[start:])):
        if letter := r.letter_at(start + m.start()):
            yield letter[0]


def _contradicts(r: Reader, claim: Claim) -> bool:
    """Return whether the text next to the letter belongs to another option: `B. <text of C>`."""
    after = re.match(r"[\s.:,)\]\-–—(\"'=]*", r.text[claim.end :])
    at = claim.end + (after.end() if after else 0)
    named = r.option_at(at)
    if named and named != claim.letters[0] and r.option_at(claim.end) != claim.letters[0]:
        words = len(r.options[named].split())
        ends = re.match(body_of(r.options[named]) + r"\s*(?:[.,;:!?)\]\"'\n。]|$)", r.text[at:])
        return words > 2 or bool(ends)
    if not named and (_another(r, claim.letters[0], at) or names_another(r, claim.letters[0], at)):
        return True
    bracketed = re.search(r"[(\[]\s?[a-z]\s?[)\]]$", r.text[: claim.end])  # "Female (A)"
    named = r.option_before(bracketed.start()) if bracketed else None
    return named is not None and named != claim.letters[0]


def _another(r: Reader, letter: str, at: int) -> bool:
    """Return whether the words after a letter are almost the text of another option: `A: Another person talking`."""
    words = words_of(re.split(r"[.;\n]", r.text[at : at + 200], maxsplit=1)[0]).strip()
    if letter not in r.options or not len(words) > 5 or len(words.split()) > 12:
        return False
    near = {k: fuzz.ratio(words, t.strip()) for k, t in r.options.items()}
    best = max(near, key=lambda k: near[k])
    return best != letter and near[best] >= 70 and near[best] >= near[letter] + 20


def _nothing(r: Reader, rule: str = "") -> Extracted:
    if say.OFF_MENU.search(r.text):
        return Extracted(None, "beyond", "none of the options")
    if say.INDECISION.search(r.text):
        return Extracted(None, "hedged", "indecision")
    if say.REFUSAL.search(r.text):
        return Extracted(None, "refused", "refusal")
    return Extracted(None, "unparsable", rule or "nothing found")


def _settle(r: Reader, letter: str, rule: str) -> Extracted:
    if letter not in r.options:
        return Extracted(None, "beyond", rule)
    return Extracted(letter.upper(), "parsed", rule)


# The two most common replies. The result is that of `_lenient`, fifteen times as fast.
_PLAIN = re.compile(r"(the answer is(?:: ?| ))?(?:\[([a-h])\]|\(([a-h])\)|([a-h]))\.?", re.I | re.A)


def lenient(text: str, options: Sequence[Option], *, heard: bool = False) -> Extracted:
    """Return the choice that a careful person would see in a reply of any wording, or the reason why it makes no
    choice.

    With `heard` the text is a transcript of speech, in which a letter may be written as it sounds (`See.` for C).
    """
    if (plain := _PLAIN.fullmatch(text)) is not None:
        letter = (plain[2] or plain[3] or plain[4]).upper()
        rule = "answer" if plain[1] else "line"
        on_menu = any(o.letter == letter for o in options)
        return Extracted(letter, "parsed", rule) if on_menu else Extracted(None, "beyond", rule)
    return _lenient(text, tuple(options), heard)


@lru_cache(maxsize=1024)  # the strict reader needs the lenient result of the same reply
def _lenient(text: str, options: tuple[Option, ...], heard: bool = False) -> Extracted:
    cleaned = clean(text)
    if not cleaned:
        return Extracted(None, "empty", "empty")
    cleaned = without_dialogue(without_speech(cleaned, options), options)
    answer, others = own_question(cleaned, options)
    if others and (read := _read(answer, options, heard=heard)).letter is not None:
        return read  # the rest answers questions that the model invented
    if others == "foreign":
        return Extracted(None, "unparsable", "another question's menu")
    quoted, rest = _quoted_option(cleaned, options)
    others_on_menu = {option.letter for option in options} - {quoted}
    if quoted and others_on_menu & {letter.upper() for letter in _BESIDE_LETTER.findall(rest)}:
        return Extracted(None, "hedged", "letter and text disagree")
    named = rest.replace(_QUOTE, f"option {quoted.lower()}") if quoted else cleaned
    return _read(named, options, thought=unfinished_thought(text), heard=heard)


_QUOTE = "\ufffc"  # replaces an option's words
_QUOTED_WORDS = 4  # the least length of a quoted option: a reply may contain fewer words by chance
_BESIDE_WORDS = 5  # the most words in addition to the option's
_BESIDE_LETTER = re.compile(r"(?<![\w'])(?:[b-z]|a(?=[.:)\]]))(?![\w'])")


@lru_cache(maxsize=4096)  # many replies have the same options
def _option_words(text: str) -> str:
    return clean(text).strip(" .!?\"'")


def _quoted_option(cleaned: str, options: Sequence[Option]) -> tuple[str, str]:
    """Return the option that a reply repeats verbatim with few other words, and the reply with _QUOTE in its place.

    Returns two empty strings if there is no such option. An option can itself be a complete reply ("I can't wait!");
    without this, its words would be read as the model's own statement.
    """
    texts = {o.letter: _option_words(o.text) for o in options}
    quoted = [letter for letter, words in texts.items() if len(words.split()) >= _QUOTED_WORDS and words in cleaned]
    rest = cleaned.replace(texts[quoted[0]], f" {_QUOTE} ") if len(quoted) == 1 else ""
    return (quoted[0], rest) if rest and len(rest.split()) <= _BESIDE_WORDS + 1 else ("", "")


_DANGLING = re.compile(r"\banswer\s*(?:is|:)\s*:?\s*[\[(\"]?$")
_SOME_LETTER = re.compile(r"(?<![a-zà-ÿ0-9_])[a-z](?![a-zà-ÿ0-9_])")


def _read(cleaned: str, options: Sequence[Option], thought: bool = False, heard: bool = False) -> Extracted:
    uncut, cleaned = cleaned, without_courtesy(cleaned, options)
    r = Reader(with_letters(cleaned, options, heard=heard), options)
    lettered = _SOME_LETTER.search(r.text) is not None
    plain = without_menus(r) if lettered else r.text
    after_menu, r = plain != r.text, Reader(plain, options)
    masked, either = without_own_letters(r)
    if either:
        return Extracted(None, "hedged", "a letter or an option's own words")
    own_letters, whole, r = masked != r.text, r, Reader(masked, options)
    claims = [*ticked(r)] or [*headed(r), *tailed(r), *lines(r, after_menu)] if lettered else [*headed(r)]
    if thought and not any(c.tier > 1 for c in claims):
        return Extracted(None, "unparsable", "unfinished thinking")
    if lettered and not own_letters:
        claims = _with_mentions(r, claims, after_menu)
    in_words = stated(whole) if all(c.words for c in claims) else (None, "")
    if claims and in_words[0] is None:
        claim = _decide(r, claims)
        if claim is None:
            return Extracted(None, "hedged", "several letters endorsed")
        if claim.rule not in ("answer", "final") and _DANGLING.search(r.text):
            return Extracted(None, "unparsable", "cut short before the answer")
        if _contradicts(whole, claim) or states_another(whole, claim.letters[0]):
            return Extracted(None, "hedged", "letter and text disagree")
        return _settle(r, claim.letters[0], claim.rule)
    letter, rule = in_words
    if letter is not None:
        if after_menu and rule == "option-words":
            return Extracted(None, "unparsable", "part of a menu")
        if rule != "whole reply" and (say.INDECISION.search(r.text) or say.OFF_MENU.search(r.text)):
            return _nothing(Reader(uncut, options))
        if not own_letters and set(_bare_letters(r, 0)) - {letter}:
            return Extracted(None, "hedged", "letter and text disagree")
        return _settle(r, letter, rule)
    if rule:
        return Extracted(None, "hedged", rule)
    return _nothing(Reader(uncut, options))


_FORMAT = re.compile(
    r"(?:^|(?<=[.!?\n]))\s*(?:the\s+)?(?:correct\s+|"
    r"final\s+)?answer\s*(?:is)?\s*[:\-]?\s*(?P<open>[(\[{<\"']*)\s*(?P<letter>[a-z])\s*(?P<close>[)\]}>\"']*)(?=\s*$|"
    r"\s*[.!,;]?\s*\n|\s*[.!,;:](?:\s|$)|(?P<more>\s+\w))"
)
_LONE = re.compile(r"[(\[{<\"'\s]*(?P<letter>[a-z])[)\]}>\"'\s]*[.:,!)]?[\"'\s]*")


def strict(text: str, options: Sequence[Option], *, heard: bool = False) -> Extracted:
    """Return the letter of a reply in the required format (`The answer is: [B]`), or of a reply that is only a letter.

    Such a letter counts only if the lenient reading of the whole reply agrees, so that a later "Sorry, I meant C" is
    not missed. A reply that is parsed strictly is therefore always parsed leniently, with the same letter.
    """
    cleaned = clean(text, declared=False)
    if not cleaned:
        return Extracted(None, "empty", "empty")
    cleaned = without_speech(cleaned, options)
    if heard:
        cleaned = with_letters(cleaned, options, heard=True)
    r = Reader(cleaned, options)
    lone = _LONE.fullmatch(cleaned)
    matches = [lone] if lone else [m for m in _FORMAT.finditer(cleaned) if not m["more"] or (m["open"] and m["close"])]
    letters = {m["letter"] for m in matches}
    if len(letters) > 1:
        return Extracted(None, "hedged", "several letters in the format")
    if not letters:
        return _nothing(r, "not in the format")
    read = _settle(r, letters.pop(), "lone letter" if lone else "format")
    whole = lenient(text, options, heard=heard)
    if read.letter is not None and whole.letter != read.letter:
        return whole if whole.letter is None else Extracted(None, "hedged", "taken back later")
    return read
