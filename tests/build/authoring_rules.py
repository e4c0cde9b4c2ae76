"""Check what a machine can check of docs/how-to/authoring.md: a script that breaks a rule is listed with the reason."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from overtone.build.script import TWO_WAY, Script
from overtone.cues import BY_SLUG, cues_in

PROVENANCES = ("target", "alternative", "words", "harmful")
WORDS = (7, 18)  # how many a script may have
REPLY_RATIO = 1.25  # of the longest to the shortest reply of a script, in words
OPTION_RATIO = 1.8  # of the longest to the shortest option of a question, in characters
BEGINNING = 4  # words that no two scripts of a set have in common at their beginning
ALIKE = 0.5  # shared words ÷ all words of two texts
LONGEST_SHARE = 0.4  # how often one provenance may hold the longest option of a set
LARGE = 100  # scripts from which on a set's two-way answers are balanced within each cue too
OVERALL = 0.05  # by how much they may then differ over the set, as a share of the questions


def problems(scripts: Sequence[Script]) -> list[str]:
    """Every broken rule of a set, as `id: what is wrong`."""
    found = [f"{s.id}: {what}" for s in scripts for what in _of_script(s)]
    return found + list(too_alike([(s.id, s.words) for s in scripts])) + list(_of_set(scripts))


def _of_script(s: Script) -> Iterable[str]:
    count = len(s.words.split())
    if not WORDS[0] <= count <= WORDS[1]:
        yield f"{count} words; a script has {WORDS[0]} to {WORDS[1]}"
    for where, text in (("words", s.words), ("reply.neutral", s.reply.get("neutral", ""))):
        for named in cues_in(text):
            yield f"{where} name the cue {named!r}"
    if ("neutral" in s.reply) == (BY_SLUG[s.cue].category == "gender"):
        yield "needs a neutral reply, unless it is about the speaker's sex"
    lengths = [len(reply.split()) for reply in s.reply.values()]
    if max(lengths) > REPLY_RATIO * min(lengths):
        yield f"replies of {lengths} words: the longest may be {REPLY_RATIO} times the shortest"
    replies = list(s.reply.items())
    for i, (one, text) in enumerate(replies):
        for two, other in replies[:i]:
            if alike(text, other) >= ALIKE:
                yield f"the replies to {two} and {one} say almost the same"
    for r in s.reasoning:
        if r.category in TWO_WAY:
            continue
        options = {p: getattr(r, p) for p in PROVENANCES}
        sizes = [len(text) for text in options.values()]
        if max(sizes) > OPTION_RATIO * min(sizes):
            yield f"{r.category}: options of {sizes} characters; the longest may be {OPTION_RATIO} times the shortest"
        for named in cues_in(f"{r.question} {r.words}"):
            yield f"{r.category}: the question or its words-alone option names the cue {named!r}"


def too_alike(texts: Sequence[tuple[str, str]]) -> Iterable[str]:
    """Of (id, words): what begins or reads like one before it."""
    first: dict[str, str] = {}
    for i, (name, words) in enumerate(texts):
        start = " ".join(words.lower().split()[:BEGINNING])
        if start in first:
            yield f"{name}: begins like {first[start]} ({start!r})"
        first.setdefault(start, name)
        for other, said in texts[:i]:
            if alike(words, said) >= ALIKE:
                yield f"{name}: reads almost like {other}"


def _of_set(scripts: Sequence[Script]) -> Iterable[str]:
    four = [r for s in scripts for r in s.reasoning if r.category not in TWO_WAY]
    longest = Counter(max(PROVENANCES, key=lambda p: len(getattr(r, p))) for r in four)
    for provenance, count in longest.items():
        if len(four) >= 20 and count > LONGEST_SHARE * len(four):
            yield f"set: the {provenance} option is the longest in {count} of {len(four)} questions"
    for category, answers in TWO_WAY.items():
        asked = [(s, r) for s in scripts for r in s.reasoning if r.category == category]
        given = Counter(r.target for _, r in asked)
        share = OVERALL if len(scripts) >= LARGE else 0.2
        if _gap(given, answers) > max(2, share * given.total()):
            yield f"set: {category} is answered {dict(given)} on target clips; balance it"
        carried: dict[str, Counter[str]] = {}  # by cue, and by the kind of a cue that comes in several
        for s, r in asked if len(scripts) >= LARGE else ():
            for style, answer in (("target", r.target), ("alternative", r.alternative)):
                slug = s.alternative if style == "alternative" else s.cue
                for name in {slug, f"{s.manner_in(style)} {slug}".strip()}:
                    carried.setdefault(name, Counter())[answer] += 1
        for name, counted in carried.items():
            if _gap(counted, answers) > 1:
                yield f"set: {category} is answered {dict(counted)} on clips with {name}; balance it"


def _gap(given: Counter[str], answers: tuple[str, ...]) -> int:
    return abs(given[answers[0]] - given[answers[1]])


def alike(one: str, two: str) -> float:
    """Shared words ÷ all words of two texts."""
    a, b = (set(re.findall(r"\w+", text.lower())) for text in (one, two))
    return len(a & b) / len(a | b)
