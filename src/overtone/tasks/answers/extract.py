"""Which choice a reply makes: a strict reader of the required format and a lenient reader of everything else.

Neither guesses. A reply that endorses two letters, a letter that is not on the menu, or none at all gets no letter and
a status that says why.
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
from overtone.tasks.answers.positions import (
    LEAD,
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
    words: bool = False  # an option's words stand there, not its letter


# ---------------------------------------------------------------- collecting claims


def _headed(r: Reader) -> Iterator[_Claim]:
    for tier, pattern, rule in ((3, say.FINAL, "final"), (2, say.ANSWER, "answer"), (1, say.LEAN, "lean")):
        for head in few(pattern.finditer(r.text)):
            lead = LEAD.match(r.text, head.end())
            at = lead.end() if lead else head.end()
            noun = say.NOUN_BEFORE_LETTER.match(r.text, at)
            read = (r.letters_at(noun.end()) if noun else None) or r.letters_at(at)
            words = read is None
            if words and (tier > 1 or re.search(r"\b(?:choose|pick|select|say|go with|going with|opt for)\b", head[0])):
                named = (r.option_at(noun.end()) if noun else None) or r.option_at(at)
                read = ((named,), at) if named else None
            if read is None or r.disowned(head.start(), read[1]):
                continue
            if len(read[0]) > 1 and set(read[0]) >= set(r.options) and "/" in r.text[at : read[1]]:
                continue  # the format asked for, repeated: "[A/B/C/D]"
            if len(read[0]) == 1 and re.fullmatch(r"either|both|between|torn between", head[0].strip()):
                continue
            yield _Claim(read[0], head.start(), read[1], tier, rule, words)


def _tailed(r: Reader) -> Iterator[_Claim]:
    for m in few(re.finditer(r"(?<![a-zà-ÿ0-9_'])[(\[\"']?[a-z](?![a-zà-ÿ0-9_'])", r.text)):
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


def _lines(r: Reader, after_menu: bool) -> Iterator[_Claim]:
    """A letter alone on its line, or one that opens the reply: `B`, `(B).`, `B. The speaker …`."""
    opened: list[tuple[tuple[str, ...], int, int, str]] = []
    for m in few(re.finditer(r"^.*\S.*$", r.text, re.M)):
        line = m[0].strip()
        lead = re.match(r"\s*(?:[^\w\s(\[\"'<{/|]+\s*|\d{1,2}[.)]\s+)?", m[0])
        at = m.start() + (lead.end() if lead else 0)
        noun = say.NOUN_BEFORE_LETTER.match(r.text, at)
        at = noun.end() if noun and r.letter_at(noun.end()) else at
        read = r.letters_at(at)
        if read is None:
            continue
        rest = r.text[read[1] : m.end()]
        if re.match(r"[\s.,)]+[(\[]?[a-h][.,)\]](?:\s|$)", rest):
            continue  # "A. A. B. B."
        if opened and "abcdefgh".startswith("".join(o[0][0] for o in opened) + read[0][0]):
            opened.append((read[0], at, read[1], line))  # the next of a list, cut short
        elif re.fullmatch(r"[^\w/❌✗✘👎]*", rest):
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
    trailing = _TRAILING.search(r.text)
    if (
        trailing
        and (end := r.letter_at(trailing.end()))
        and not r.disowned(trailing.end(), end[1])
        and not say.NAMED_BY_LETTER.search(f"{trailing[1]} ")
    ):
        yield _Claim((end[0],), trailing.end(), end[1], 1, "trailing")
    # "Which emotion is it? B."
    lone = re.search(r"(?<=\w\w)[\"')]?[.!?。:]\s+(?=[(\[\"']?[a-z][)\]\"']?\W{0,3}$)", r.text)
    if (
        lone
        and (end := r.letter_at(lone.end()))
        and not (opened and opened[-1][1] == lone.end())
        and not r.disowned(lone.end(), end[1])
    ):
        yield _Claim((end[0],), lone.end(), end[1], 1, "trailing")
    firsts = [o[0][0] for o in opened]
    listing = len(set(firsts)) > 1 and firsts[0] == "a" and firsts[: len(set(firsts))] == sorted(set(firsts))
    if (
        opened
        and not listing
        and opened[0][1] <= len(r.text) - len(r.text.lstrip()) + 12
        and (not after_menu or r.option_at(opened[0][2]) == opened[0][0][0])
        and not r.disowned(opened[0][1], opened[0][2])
    ):
        yield _Claim(opened[0][0], opened[0][1], opened[0][2], 2, "opening")


# "… a sad voice – B", "After a second listen: C", "they need sleep: option A."
_TRAILING = re.compile(
    r"(?:(?<![^\w\s.!?)\]]\s)\s[–—:→-]|(\b\w+):)\s*(?:(?:the\s+)?(?:option|choice|"
    r"letter)\s+)?(?=[(\[\"']?[a-z][)\]\"']?\W{0,3}$)"
)
_TICKED = re.compile(
    r"(?:^|(?<=[\n,;]))[^\w\n,;]*([a-h])\b[^\n,;✅❌✓✔✗✘]{0,80}?[^\w\n,;✅❌✓✔✗✘]+(?:(yes|true|correct|present|heard)|"
    r"([✅✓✔])|(?:no|false|incorrect|wrong|absent|not (?:present|heard)|❌|✗|✘))[^\w\n,;]*(?=[\n,;]|$)"
)


_MARK = re.compile("[✅✓✔☑←]|<-+")
_LISTED = re.compile(r"^\W*([a-h])\b[^\w\n]([^\n]*)$", re.M)
_BEST = re.compile(
    r"[.;:,!?(–—-]\s*(?:the |my )?(?:best|correct|right|winner|pick|choice|this one|chosen)(?: (?:answer|choice|"
    r"option|fit|match|one|pick|reply|response))?\W*$"
)


def _ticked(r: Reader) -> Iterator[_Claim]:
    """Every option on a line of its own with yes or no behind it, and one yes."""
    lines = list(_TICKED.finditer(r.text))
    yes = [m for m in lines if m[2] or m[3]]
    if not yes:
        lines = list(_LISTED.finditer(r.text))
        yes = [m for m in lines if _BEST.search(m[2])]
    if len({m[1] for m in lines}) > 1 and len(yes) == 1:
        yield _Claim((yes[0][1],), yes[0].start(1), yes[0].end(), 2, "ticked")


def _mentions(r: Reader, after_menu: bool) -> Iterator[_Claim]:
    """Letters that are named and not disowned, in whatever words, unless they name something else (`vitamin C`)."""
    end, many = 0, len(r.text.split()) > _RAMBLING
    listed = after_menu or len(re.findall(r"^\W*[a-h][.):]\s", r.text, re.M)) > 1
    for m in few(re.finditer(r"(?<![\wà-ÿ'#-])[(\[\"']?[a-z](?![\wà-ÿ']|-\w)", r.text)):
        read = r.letters_at(m.start()) if m.start() >= end else None
        if read is None:
            continue
        end = read[1]
        before, after = r.text[max(0, m.start() - 16) : m.start()], r.text[end : end + 10]
        named = say.NAMED_BY_LETTER.search(before) or say.NAMED_BY_LETTER_AFTER.match(after)
        if named and any(letter != text.strip() for letter, text in r.texts):  # unless the options are grades
            continue
        if (m[0][0] == "(" and r.text[end - 1] != ")") or (
            re.search(r"(?:^|\n)\s*$", before) and (listed or re.match(r"[.):]\s*\w", after))
        ):
            continue  # an aside, and a line of a list
        if many and m[0] == "a" and not re.match(r"\s*(?:[.,;:!)]|is\b)", after):
            continue  # in a long reply it may be an article after all
        word = re.search(r"([^\W\d_]+) $", before)
        if word and re.match(r"\. \w", after) and word[1] not in say.FRAME and word[1] not in say.PICKING:
            continue  # "John D. Smith"
        denied = re.match(
            r"(?:,? (?:and|or)|,) [(\[]?[a-h][)\]]? (?:are|were|would|don't|do not)\b", r.text[end : end + 24]
        )
        if not denied and not r.disowned(m.start(), end):  # "B and D would only hurt"
            yield _Claim(read[0], m.start(), end, 0, "mention")


def _blank_listing(r: Reader) -> str:
    """The text with repeated menus (`A. … B. … C. …`, each with its own text) blanked out."""
    spans: list[tuple[int, int, str]] = []
    if len(_MARK.findall(r.text)) == 1:
        return r.text  # the menu with the chosen line marked
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


def _with_mentions(r: Reader, claims: list[_Claim], after_menu: bool) -> list[_Claim]:
    """The claims, or the letters merely named where there is no claim. A letter named after the last claim counts
    beside it where the reply turns (`B, however … C`). Of a long reply only the last sentence is searched."""
    named = list(_mentions(r, after_menu))
    if len(r.text.split()) > _RAMBLING:
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


def _decide(r: Reader, claims: list[_Claim]) -> _Claim | None:
    """The claim that stands, or None where the reply stays of two minds."""
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
        return None  # it takes something back in words we do not know
    own = r.options.get(last.letters[0], "")
    tail = re.sub(body_of(own), " ", tail) if own.strip() else tail
    if re.search(rf"\b{last.letters[0]}\b[^.\n]{{0,12}} is (?:incorrect|wrong|not correct)\b", r.text[: last.start]):
        return None  # it calls the letter wrong and gives it all the same
    if len(last.letters) > 1 or say.INDECISION.search(tail) or say.RETRACTION.search(r.text, last.end):
        return None
    return last


def _bare_letters(r: Reader, start: int) -> Iterator[str]:
    for m in few(re.finditer(r"(?<![\wà-ÿ'])[(\[\"']?[a-h](?![\wà-ÿ'])", r.text[start:])):
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
    if not named and (_another(r, claim.letters[0], at) or names_another(r, claim.letters[0], at)):
        return True
    bracketed = re.search(r"[(\[]\s?[a-z]\s?[)\]]$", r.text[: claim.end])  # "Female (A)"
    named = r.option_before(bracketed.start()) if bracketed else None
    return named is not None and named != claim.letters[0]


def _another(r: Reader, letter: str, at: int) -> bool:
    """Whether the words behind a letter are nearly those of another option: `A: Another person talking`."""
    said = words_of(re.split(r"[.;\n]", r.text[at : at + 200], maxsplit=1)[0]).strip()
    if letter not in r.options or not len(said) > 5 or len(said.split()) > 12:
        return False
    near = {k: fuzz.ratio(said, t.strip()) for k, t in r.options.items()}
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


# The two commonest replies, read at a glance; what `_lenient` would say of them, fifteen times as fast.
_PLAIN = re.compile(r"(the answer is(?:: ?| ))?(?:\[([a-h])\]|\(([a-h])\)|([a-h]))\.?", re.I | re.A)


def lenient(text: str, options: Sequence[Option], *, heard: bool = False) -> Extracted:
    """Return the choice a careful reader would see in any reply, however worded; None where they would not see one.

    With `heard` the text is a transcript of speech, in which a letter may be written as it sounds (`See.` for C).
    """
    if (plain := _PLAIN.fullmatch(text)) is not None:
        letter = (plain[2] or plain[3] or plain[4]).upper()
        rule = "answer" if plain[1] else "line"
        on_menu = any(o.letter == letter for o in options)
        return Extracted(letter, "parsed", rule) if on_menu else Extracted(None, "beyond", rule)
    return _lenient(text, tuple(options), heard)


@lru_cache(maxsize=1024)  # the strict reader asks again what the lenient one has just read
def _lenient(text: str, options: tuple[Option, ...], heard: bool = False) -> Extracted:
    cleaned = clean(text)
    if not cleaned:
        return Extracted(None, "empty", "empty")
    cleaned = without_dialogue(without_speech(cleaned, options), options)
    answer, others = own_question(cleaned, options)
    if others and (read := _read(answer, options, heard=heard)).letter is not None:
        return read  # what follows answers questions nobody asked
    if others == "foreign":
        return Extracted(None, "unparsable", "another question's menu")
    held, beside = _quoted_option(cleaned, options)
    menu = {option.letter for option in options} - {held}
    if held and menu & {letter.upper() for letter in _BESIDE_LETTER.findall(beside)}:
        return Extracted(None, "hedged", "letter and text disagree")
    named = beside.replace(_QUOTE, f"option {held.lower()}") if held else cleaned
    return _read(named, options, thought=unfinished_thought(text), heard=heard)


_QUOTE = "\ufffc"  # in the place of an option's words
_QUOTED_WORDS = 4  # at least, of an option: fewer may stand in a reply by chance
_BESIDE_WORDS = 5  # at most, beside the option's words
_BESIDE_LETTER = re.compile(r"(?<![\w'])(?:[b-z]|a(?=[.:)\]]))(?![\w'])")


@lru_cache(maxsize=4096)  # the same options come with many replies
def _option_words(text: str) -> str:
    return clean(text).strip(" .!?\"'")


def _quoted_option(cleaned: str, options: Sequence[Option]) -> tuple[str, str]:
    """The option that a reply repeats word for word, hardly saying more, and the reply with _QUOTE in its place; else
    two empty texts. Options can be whole replies ("I can't wait!"), whose words would be weighed as the model's own."""
    texts = {o.letter: _option_words(o.text) for o in options}
    held = [letter for letter, words in texts.items() if len(words.split()) >= _QUOTED_WORDS and words in cleaned]
    beside = cleaned.replace(texts[held[0]], f" {_QUOTE} ") if len(held) == 1 else ""
    return (held[0], beside) if beside and len(beside.split()) <= _BESIDE_WORDS + 1 else ("", "")


_DANGLING = re.compile(r"\banswer\s*(?:is|:)\s*:?\s*[\[(\"]?$")
_RAMBLING = 40  # words; in longer replies a letter merely named is an answer in the last sentence only
_SOME_LETTER = re.compile(r"(?<![a-zà-ÿ0-9_])[a-z](?![a-zà-ÿ0-9_])")


def _read(cleaned: str, options: Sequence[Option], thought: bool = False, heard: bool = False) -> Extracted:
    uncut, cleaned = cleaned, without_courtesy(cleaned, options)
    r = Reader(with_letters(cleaned, options, heard=heard), options)
    lettered = _SOME_LETTER.search(r.text) is not None
    plain = _blank_listing(r) if lettered else r.text
    after_menu, r = plain != r.text, Reader(plain, options)
    masked, either = without_own_letters(r)
    if either:
        return Extracted(None, "hedged", "a letter or an option's own words")
    own_letters, whole, r = masked != r.text, r, Reader(masked, options)
    claims = [*_ticked(r)] or [*_headed(r), *_tailed(r), *_lines(r, after_menu)] if lettered else [*_headed(r)]
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
    """Return the letter in the required format (`The answer is: [B]`) or standing alone; nothing else is an answer.

    A letter found so counts only when the lenient reading of the whole reply agrees, so that a later "Sorry, I meant
    C" is not overlooked; what is strictly parsed is therefore always leniently parsed, with the same letter.
    """
    cleaned = clean(text, declared=False)
    if not cleaned:
        return Extracted(None, "empty", "empty")
    cleaned = without_speech(cleaned, options)
    if heard:
        cleaned = with_letters(cleaned, options, heard=True)
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
    whole = lenient(text, options, heard=heard)
    if read.letter is not None and whole.letter != read.letter:
        return whole if whole.letter is None else Extracted(None, "hedged", "taken back later")
    return read
