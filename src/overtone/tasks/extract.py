"""Which choice a reply makes: a strict reader of the required format and a lenient reader of everything else.

Neither guesses. A reply that endorses two letters, a letter that is not on the menu, or none at all gets no letter and
a status that says why, so that what a model said and what we understood can always be told apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

from overtone.schema import Option
from overtone.tasks import _phrases as say
from overtone.tasks._reading import LEAD, Reader, body_of, clean, is_cjk, words_of

Status = Literal["parsed", "hedged", "refused", "beyond", "unparsable", "empty"]
STATUSES: tuple[Status, ...] = ("parsed", "hedged", "refused", "beyond", "unparsable", "empty")
STRICT = "strict-1"
LENIENT = "lenient-1"


class Extracted(Struct, frozen=True):
    """What was read: a letter of the options when `parsed`, None otherwise; `rule` names what decided."""

    letter: str | None
    status: Status
    rule: str


class _Claim(Struct, frozen=True):
    """One place where the reply commits itself. Several letters in one claim mean it did not choose among them."""

    letters: tuple[str, ...]
    start: int
    end: int
    tier: int
    rule: str


# ---------------------------------------------------------------- collecting claims


def _headed(r: Reader) -> Iterator[_Claim]:
    for tier, pattern, rule in ((3, say.FINAL, "final"), (2, say.ANSWER, "answer"), (1, say.LEAN, "lean")):
        for head in pattern.finditer(r.text):
            lead = LEAD.match(r.text, head.end())
            at = lead.end() if lead else head.end()
            noun = say.NOUN_BEFORE_LETTER.match(r.text, at)
            read = (r.letters_at(noun.end()) if noun else None) or r.letters_at(at)
            if (
                read is None
                and tier == 1
                and re.search(r"\b(?:choose|pick|select|say|go with|going with|opt for)\b", head[0])
            ):
                named = r.option_at(at)
                read = ((named,), at) if named else None
            elif read is None and tier > 1:
                named = r.option_at(noun.end() if noun else at) or r.option_at(at)
                read = ((named,), at) if named else None
            if read is None or r.disowned(head.start(), read[1]):
                continue
            if len(read[0]) > 1 and set(read[0]) >= set(r.options) and "/" in r.text[at : read[1]]:
                continue  # the format asked for, repeated: "[A/B/C/D]"
            if len(read[0]) == 1 and re.fullmatch(r"either|both|between|torn between", head[0].strip()):
                continue
            yield _Claim(read[0], head.start(), read[1], tier, rule)


def _tailed(r: Reader) -> Iterator[_Claim]:
    for m in re.finditer(r"(?<![a-zà-ÿ0-9_'])[(\[\"']?[a-z](?![a-zà-ÿ0-9_'])", r.text):
        read = r.letter_at(m.start())
        if read is None:
            continue
        after = re.match(r"[.:]?(?:\s*\([^()]{1,80}\))?", r.text[read[1] :])
        end = read[1] + (after.end() if after else 0)
        tail = say.TAIL.match(r.text, end) or say.TAIL.match(r.text, read[1])
        if tail is None and (own := r.options.get(read[0], "").strip()):  # "B. The speaker is female ✅"
            follow = re.match(
                r"[.):\s]*" + body_of(own) + r"\W{0,3}?(?=✅|✓|✔|☑|\((?:correct|right)|←|<-)", r.text[read[1] :]
            )
            tail = say.TAIL.match(r.text, read[1] + follow.end()) if follow else None
        if tail is not None and not r.disowned(m.start(), tail.end()) and not say.NEGATED_AFTER.match(r.text, read[1]):
            yield _Claim((read[0],), m.start(), read[1], 2, "subject")


def _lines(r: Reader) -> Iterator[_Claim]:
    """A letter alone on its line, or one that opens the reply: `B`, `(B).`, `B. The speaker …`."""
    opened = []
    for m in re.finditer(r"^.*$", r.text, re.M):
        line = m[0].strip()
        at = m.start() + len(m[0]) - len(m[0].lstrip())
        noun = say.NOUN_BEFORE_LETTER.match(r.text, at)
        at = noun.end() if noun and r.letter_at(noun.end()) else at
        read = r.letters_at(at)
        if read is None:
            continue
        rest = r.text[read[1] : m.end()]
        if re.fullmatch(r"[^\w/❌✗✘👎]*", rest):
            yield _Claim(read[0], at, read[1], 2, "line")
        elif (
            re.match(r"\s*[.:,)\-–—。、]|\s*\(", rest)
            or (r.text[at] in "([\"'")
            or r.option_at(read[1]) == read[0][0]
            or (
                at == 0
                and re.match(r"\s+(?:because|since|as|weil|car|porque|based|due|instead of|rather than|over)\b", rest)
            )
        ):
            opened.append((read[0], at, read[1], line))
    trailing = re.search(r"(?<![^\w\s.!?)\]][\s])\s[–—:→-]\s*(?=\S{1,5}$)", r.text)
    if trailing and (end := r.letter_at(trailing.end())) and re.fullmatch(r"\W*", r.text[end[1] :]):
        yield _Claim((end[0],), trailing.end(), end[1], 1, "trailing")
    firsts = [o[0][0] for o in opened]
    listing = len(set(firsts)) > 1 and firsts[0] == "a" and firsts[: len(set(firsts))] == sorted(set(firsts))
    if (
        opened
        and not listing
        and opened[0][1] <= len(r.text) - len(r.text.lstrip()) + 12
        and not r.disowned(opened[0][1], opened[0][2])
    ):
        yield _Claim(opened[0][0], opened[0][1], opened[0][2], 2, "opening")


def _mentions(r: Reader) -> list[_Claim]:
    """Letters merely named (`option B`, `(B)`), for replies that name one and only one."""
    found = []
    for m in re.finditer(say.MENTION.pattern + r"|(?<![\wà-ÿ])(?=[(\[][a-z][)\]])", r.text):
        read = r.letters_at(m.end())
        if read and not r.disowned(m.start(), read[1]):
            found.append(_Claim(read[0], m.start(), read[1], 1, "mention"))
    return found


def _blank_listing(r: Reader) -> str:
    """The text with repeated menus (`A. … B. … C. …`, each with its own text) blanked out."""
    spans: list[tuple[int, int, str]] = []
    for letter, text in r.options.items():
        if text.strip():
            pattern = (
                rf"(?<![a-zà-ÿ0-9_'])[(\[\"']?{letter}[)\]\"']?\s*[.:)\-–]?\s*[\"']?{body_of(text)}(?!\w)[\"'.;,]*"
            )
            spans += [(m.start(), m.end(), letter) for m in re.finditer(pattern, r.text)]
    spans.sort()
    text, run = r.text, spans[:1]
    for span in [*spans[1:], (len(text) + 99, 0, "")]:
        gap = text[run[-1][1] : span[0]] if run else ""
        if (
            run
            and span[2] > run[-1][2]
            and re.fullmatch(r"[\s\W]*(?:and|or|und|oder|et|ou|y|o)?[\s\W]*", gap)
            and not re.search("[✅✓✔☑❌✗✘←]", gap)
        ):
            run.append(span)
            continue
        if len(run) > 1:
            text = text[: run[0][0]] + " " * (run[-1][1] - run[0][0]) + text[run[-1][1] :]
        run = [span]
    return text


# ---------------------------------------------------------------- deciding


def _decide(r: Reader, claims: list[_Claim]) -> _Claim | None:
    """The claim that stands, or None where the reply stays of two minds."""
    claims = sorted(claims, key=lambda c: (c.end, c.tier))
    last = claims[-1]
    if len({c.letters for c in claims}) > 1:
        before, _ = r.sentence(last.start, last.end)
        lead = before + r.text[last.start : last.end]
        previous = [c for c in claims if c.letters != last.letters]
        best = max(c.tier for c in previous)
        gap = r.text[max(c.end for c in previous) : last.start] if previous[-1].end < last.start else before
        corrected = bool(say.CORRECTION.search(gap[-120:] + lead))
        concluded = bool(say.CONCLUSION.search(lead)) and last.tier >= min(best, 2)
        turned = bool(say.CONTRAST.search(before) or say.CONTRAST.search(gap[-40:])) and last.tier >= best
        outranks = last.tier > best
        if all(len(c.letters) > 1 for c in previous) and len(last.letters) == 1:
            outranks = True  # "either A or B. I'd say B."
        if not (corrected or concluded or turned or outranks):
            top = [c for c in claims if c.tier == max(c.tier for c in claims)]
            if len({c.letters for c in top}) > 1 or top[0].tier < 2:
                return None
            last = top[-1]
    tail = r.text[last.end : last.end + 160]
    doubt = say.CORRECTION.search(r.text, last.end)
    if doubt and (set(_bare_letters(r, doubt.end())) & set(r.options)) - set(last.letters):
        return None  # it takes something back in words we do not know
    if len(last.letters) > 1 or say.INDECISION.search(tail):
        return None
    return last


def _bare_letters(r: Reader, start: int) -> Iterator[str]:
    for m in re.finditer(r"(?<![\wà-ÿ'])[(\[\"']?[a-h](?![\wà-ÿ'])", r.text[start:]):
        if found := r.letter_at(start + m.start()):
            yield found[0]


def _contradicts(r: Reader, claim: _Claim) -> bool:
    """Whether the text next to the letter is that of another option: `B. <text of C>`."""
    after = re.match(r"[\s.:,)\]\-–—(\"'=]*", r.text[claim.end :])
    at = claim.end + (after.end() if after else 0)
    named = r.option_at(at)
    if named and named != claim.letters[0] and r.option_at(claim.end) != claim.letters[0]:
        words = len(r.options[named].split())
        ends = re.match(body_of(r.options[named]) + r"\s*(?:[.,;:!?)\]\"'\n。]|$)", r.text[at:])
        return words > 2 or bool(ends)
    bracketed = re.search(r"[(\[]\s?[a-z]\s?[)\]]$", r.text[: claim.end])  # "Female (A)"
    named = r.option_before(bracketed.start()) if bracketed else None
    return named is not None and named != claim.letters[0]


def _by_text(r: Reader) -> tuple[str | None, str]:
    """The one option whose text the reply states: (letter, rule), or (None, rule) where it states several."""
    asked = re.sub(r"[^.!?\n]*\?", " ", r.text)  # what the reply asks, it does not state
    body = words_of(asked if asked.strip() else r.text)
    first = body.split()[0] if body.strip() else ""
    polar = {
        k: "yes" if t.split()[0] == "yes" else "no"
        for k, t in r.options.items()
        if t.strip() and t.split()[0] in ("yes", "no")
    }
    if set(polar.values()) == {"yes", "no"} and len(polar) == len(r.options):
        said = "yes" if first in say.YES else "no" if first in say.NO else ""
        if not said and is_cjk(r.text):
            said = "no" if r.text.startswith(say.NO_CJK) else "yes" if r.text.startswith(say.YES_CJK) else ""
        if said and not say.INDECISION.search(r.text):
            return next(k for k, v in polar.items() if v == said), "yes-no"
    masked = body
    found: list[str] = []
    denied: list[str] = []
    for letter, text in sorted(r.options.items(), key=lambda kv: -len(kv[1])):
        needle = text if not is_cjk(text) else text.strip()
        at = masked.find(needle) if text.strip() else -1
        while at >= 0:
            before = " ".join(masked[:at].split()[-3:])
            negated = re.search(
                r"\b(?:not|no|isn't|never|n't|don't|doesn't|wasn't|rather than|instead of|than|nicht|pas|cannot|"
                r"can't|without|nor)\b|不$",
                before,
            )
            (denied if negated and text.strip() not in ("no", "yes") else found).append(letter)
            masked = masked[:at] + " " + "¤" * max(0, len(needle) - 2) + " " + masked[at + len(needle) :]
            at = masked.find(needle)
    single_words = all(len(t.split()) == 1 for t in r.options.values())
    if single_words and len(body.split()) > 40:
        found = []
    if len(set(found)) == 1:
        return found[0], "option-text"
    if not found and len(r.options) == 2 and len(set(denied)) == 1:
        other = next(k for k in r.options if k != denied[0])
        if r.options[other].strip() in ("in" + r.options[denied[0]].strip(), "not " + r.options[denied[0]].strip()):
            return other, "opposite"
    if found:
        return None, "several option texts"
    words = [w for w in body.split() if w not in _FRAME]
    if 0 < len(words) <= 6:
        hits = [k for k, t in r.options.items() if set(words) <= set(t.split())]
        if len(hits) == 1 and not denied:
            return hits[0], "option-words"
    return None, ""


_FRAME = frozenset(
    [
        "it",
        "it's",
        "its",
        "is",
        "sounds",
        "like",
        "speaker",
        "speaker's",
        "voice",
        "seems",
        "i",
        "think",
        "in",
        "background",
        "there",
        "are",
        "answer",
        "would",
        "be",
        "that's",
        "this",
        "to",
        "be",
        "of",
    ]
)


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


def lenient(text: str, options: Sequence[Option]) -> Extracted:
    """The choice a careful reader would see in any reply, however worded; None where they would not see one."""
    cleaned = clean(text)
    if not cleaned:
        return Extracted(None, "empty", "empty")
    full = Reader(cleaned, options)
    r = Reader(_blank_listing(full), options)
    claims = [*_headed(r), *_tailed(r), *_lines(r)]
    if not claims:
        claims = _mentions(r)
        if len({c.letters for c in claims}) > 1:
            lead = [c for c in claims if say.CONCLUSION.search(r.sentence(c.start, c.end)[0])]
            if len({c.letters for c in lead}) != 1 or lead[-1] is not claims[-1]:
                return Extracted(None, "hedged", "several letters named")
            claims = lead
    if claims:
        claim = _decide(r, claims)
        if claim is None:
            return Extracted(None, "hedged", "several letters endorsed")
        if _contradicts(r, claim):
            return Extracted(None, "hedged", "letter and text disagree")
        return _settle(r, claim.letters[0], claim.rule)
    letter, rule = _by_text(r)
    if letter is not None:
        if say.INDECISION.search(r.text):
            return Extracted(None, "hedged", "indecision")
        bare = set(_bare_letters(r, 0)) & set(r.options)
        if bare and letter not in bare:
            return Extracted(None, "hedged", "letter and text disagree")
        return _settle(r, letter, rule)
    if rule:
        return Extracted(None, "hedged", rule)
    return _nothing(r)


_FORMAT = re.compile(
    r"(?:^|(?<=[.!?\n]))\s*(?:the\s+)?(?:correct\s+|"
    r"final\s+)?answer\s*(?:is)?\s*[:\-]?\s*(?P<open>[(\[{<\"']*)\s*(?P<letter>[a-z])\s*(?P<close>[)\]}>\"']*)"
    r"(?=\s*$|\s*[.!,;]?\s*\n|\s*[.!,;:](?:\s|$)|(?P<more>\s+\w))"
)
_LONE = re.compile(r"[(\[{<\"'\s]*(?P<letter>[a-z])[)\]}>\"'\s]*[.:,!)]?[\"'\s]*")


def strict(text: str, options: Sequence[Option]) -> Extracted:
    """The letter in the required format (`The answer is: [B]`) or standing alone; anything else is not an answer.

    A letter found so counts only when the lenient reading of the whole reply agrees, so that a later "Sorry, I meant
    C" is not overlooked; what is strictly parsed is therefore always leniently parsed, with the same letter.
    """
    cleaned = clean(text, declared=False)
    if not cleaned:
        return Extracted(None, "empty", "empty")
    r = Reader(cleaned, options)
    lone = _LONE.fullmatch(cleaned)
    found = (
        {lone["letter"]}
        if lone
        else {m["letter"] for m in _FORMAT.finditer(cleaned) if not m["more"] or (m["open"] and m["close"])}
    )
    if len(found) > 1:
        return Extracted(None, "hedged", "several letters in the format")
    if not found:
        return _nothing(r, "not in the format")
    read = _settle(r, found.pop(), "lone letter" if lone else "format")
    whole = lenient(text, options)
    if read.letter is not None and whole.letter != read.letter:
        return whole if whole.letter is None else Extracted(None, "hedged", "taken back later")
    return read
