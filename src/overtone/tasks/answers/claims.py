"""Find the places where a reply commits to a letter. Each claim names the rule that found it, and how firm it is."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from overtone.tasks.answers import phrases as say
from overtone.tasks.answers.positions import LEAD, Reader, body_of, few

RAMBLING = 40  # words; in a longer reply a letter that is only mentioned counts in the last sentence only


class Claim(Struct, frozen=True):
    """One place where the reply commits itself. A claim with several letters means that the reply did not choose."""

    letters: tuple[str, ...]
    start: int
    end: int
    tier: int  # 3: called final, 2: called the answer, 1: leaned towards, 0: only mentioned
    rule: str
    words: bool = False  # the claim names an option by its words, not by its letter


def headed(r: Reader) -> Iterator[Claim]:
    """Yield a claim for each letter, list of letters or option's text after a phrase like "the answer is"."""
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
                continue  # the required format, repeated: "[A/B/C/D]"
            if len(read[0]) == 1 and re.fullmatch(r"either|both|between|torn between", head[0].strip()):
                continue
            yield Claim(read[0], head.start(), read[1], tier, rule, words)


def tailed(r: Reader) -> Iterator[Claim]:
    """Yield a claim for each letter before a phrase like "is correct"."""
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
            yield Claim((read[0],), m.start(), read[1], 2, "subject")


def lines(r: Reader, after_menu: bool) -> Iterator[Claim]:
    """Yield a claim for a letter alone on a line, or at the reply's end or start: `B`, `(B).`, `B. The speaker …`."""
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
            opened.append((read[0], at, read[1], line))  # the next line of a menu
        elif re.fullmatch(r"[^\w/❌✗✘👎]*", rest):
            yield Claim(read[0], at, read[1], 2, "line")
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
        yield Claim((end[0],), trailing.end(), end[1], 1, "trailing")
    # "Which emotion is it? B."
    lone = re.search(r"(?<=\w\w)[\"')]?[.!?。:]\s+(?=[(\[\"']?[a-z][)\]\"']?\W{0,3}$)", r.text)
    if (
        lone
        and (end := r.letter_at(lone.end()))
        and not (opened and opened[-1][1] == lone.end())
        and not r.disowned(lone.end(), end[1])
    ):
        yield Claim((end[0],), lone.end(), end[1], 1, "trailing")
    firsts = [o[0][0] for o in opened]
    listing = len(set(firsts)) > 1 and firsts[0] == "a" and firsts[: len(set(firsts))] == sorted(set(firsts))
    if (
        opened
        and not listing
        and opened[0][1] <= len(r.text) - len(r.text.lstrip()) + 12
        and (not after_menu or r.option_at(opened[0][2]) == opened[0][0][0])
        and not r.disowned(opened[0][1], opened[0][2])
    ):
        yield Claim(opened[0][0], opened[0][1], opened[0][2], 2, "opening")


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


def ticked(r: Reader) -> Iterator[Claim]:
    """Yield a claim for a reply that lists all options with yes or no after each, if only one option has a yes."""
    lines = list(_TICKED.finditer(r.text))
    yes = [m for m in lines if m[2] or m[3]]
    if not yes:
        lines = list(_LISTED.finditer(r.text))
        yes = [m for m in lines if _BEST.search(m[2])]
    if len({m[1] for m in lines}) > 1 and len(yes) == 1:
        yield Claim((yes[0][1],), yes[0].start(1), yes[0].end(), 2, "ticked")


def mentioned(r: Reader, after_menu: bool) -> Iterator[Claim]:
    """Yield a claim for each mentioned letter, unless the reply takes it back or it is part of a name (`vitamin C`)."""
    end, many = 0, len(r.text.split()) > RAMBLING
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
            continue  # in a long reply it may be an article
        word = re.search(r"([^\W\d_]+) $", before)
        if word and re.match(r"\. \w", after) and word[1] not in say.FRAME and word[1] not in say.PICKING:
            continue  # "John D. Smith"
        denied = re.match(
            r"(?:,? (?:and|or)|,) [(\[]?[a-h][)\]]? (?:are|were|would|don't|do not)\b", r.text[end : end + 24]
        )
        if not denied and not r.disowned(m.start(), end):  # "B and D would only hurt"
            yield Claim(read[0], m.start(), end, 0, "mention")


def without_menus(r: Reader) -> str:
    """Return the text with repeated menus (`A. … B. … C. …`, each letter with its text) blanked out."""
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
