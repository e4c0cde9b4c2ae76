"""Balance: no letter, answer or option length is right more often than it should be, and no text occurs twice."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from overtone.build.gates import Finding
from overtone.build.gates._reader_view import tokens
from overtone.build.questions import Question
from overtone.build.script import TWO_WAY, Script

ANSWER_SHARE = 0.2  # |first − second answer| of a two-way category, as a share of its questions; 1 is always allowed
LETTER_SHARE = 0.1  # how far a letter's share of right answers may be from an equal one; 1 question is always allowed
LONGEST = 0.1  # how much more often than by chance the right answer may be the longest, or the shortest
EITHER: dict[str, tuple[str, ...]] = {  # category → cues whose clips can have either answer (default: all)
    "laughter": ("laughter",),
    "shouting": ("shout",),
    "people": (),
}
LEAST = 20  # questions needed to check shares of lengths


def check(scripts: Sequence[Script], questions: Sequence[Question]) -> list[Finding]:
    """Return a finding for every imbalance of a set's questions and for every duplicate."""
    return [*_letters(questions), *_two_way(questions), *_lengths(questions), *_twice(scripts, questions)]


def _groups(questions: Iterable[Question]) -> dict[str, list[Question]]:
    groups: dict[str, list[Question]] = defaultdict(list)
    for q in questions:
        groups[f"{q.part}/{q.category}" if q.part else q.category].append(q)
    return groups


def _letters(questions: Sequence[Question]) -> Iterable[Finding]:
    """Check that right answers spread evenly over the letters, per category and number of options. Two-way categories
    are excluded: their options have a fixed order, so the letter is the answer (see `_two_way`)."""
    for name, mine in _groups(q for q in questions if q.category not in TWO_WAY).items():
        for size in sorted({len(q.options) for q in mine}):
            given = Counter(q.gold for q in mine if len(q.options) == size)
            total, equal = given.total(), given.total() / size
            for place in range(size):
                off = abs(given[place] - equal)
                if off > max(1, LETTER_SHARE * total):
                    letter = chr(ord("A") + place)
                    reason = f"of {total} questions with {size} options, {letter} is right in {given[place]}"
                    yield Finding("balance", name, reason, given[place] / total, 1 / size)


def _two_way(questions: Sequence[Question]) -> Iterable[Finding]:
    """Check Yes against No and Consistent against Inconsistent: overall, and within each cue. A cue is only checked if
    its clips can have either answer: laughter may be hearty or not, but applause never comes from one person."""
    for name, mine in _groups(q for q in questions if q.category in TWO_WAY).items():
        yield from _answers(name, mine, "overall")
        carried: dict[str, list[Question]] = defaultdict(list)
        for q in mine:
            cue = q.script.cue_in(q.style)
            carried[cue.slug if cue else "no cue"].append(q)
        either = EITHER.get(mine[0].category)
        for cue_name, clips in carried.items():
            if either is not None and cue_name not in either:
                continue
            yield from _answers(name, clips, f"on clips with {cue_name}")


def _answers(name: str, mine: Sequence[Question], where: str) -> Iterable[Finding]:
    given = Counter(q.options[q.gold] for q in mine)
    first, second = TWO_WAY[mine[0].category]
    off = abs(given[first] - given[second])
    if off > max(1, math.floor(ANSWER_SHARE * len(mine))):
        reason = f"{where}: {given[first]} {first}, {given[second]} {second}"
        yield Finding("balance", name, reason, off / len(mine), ANSWER_SHARE)


def _lengths(questions: Sequence[Question]) -> Iterable[Finding]:
    """Check whether the right option, or the option of one reading, is the longest or shortest too often. Only written
    options are checked. Options from the taxonomy are the same whether right or wrong; the leak test covers them."""
    for name, mine in _groups(q for q in questions if "harmful" in q.provenance).items():
        if len(mine) < LEAST:
            continue
        bound = sum(1 / len(q.options) for q in mine) / len(mine) + LONGEST
        for word, extreme in (("longest", max), ("shortest", min)):
            shares = {"right": [_share(q, q.gold, extreme) for q in mine]}
            for reading in ("target", "alternative", "words", "harmful"):
                shares[reading] = [
                    _share(q, i, extreme) for q in mine for i, p in enumerate(q.provenance) if p == reading
                ]
            for which, values in shares.items():
                share = sum(values) / max(1, len(values))
                if len(values) >= LEAST and share > bound:
                    yield Finding("balance", name, f"the {which} option is the {word} in {share:.0%}", share, bound)


def _share(q: Question, place: int, extreme: Callable[[Iterable[int]], int]) -> float:
    """Return 1 if the option is the only longest (shortest) one, 1/n if n options tie, and 0 otherwise."""
    sizes = [len(option) for option in q.options]
    limit = extreme(sizes)
    return float(sizes[place] == limit) / sizes.count(limit)


def _twice(scripts: Sequence[Script], questions: Sequence[Question]) -> Iterable[Finding]:
    """Find words, replies and questions that occur twice, duplicate ids, and questions with two equal options."""
    seen: dict[tuple[str, str], str] = {}
    for s in scripts:
        texts = [("words", "its words are those of", s.words)]
        texts += [("reply", f"its reply to {style} is one of", text) for style, text in s.reply.items()]
        for kind, problem, text in texts:
            key = (kind, " ".join(tokens(text)))
            if key in seen:
                yield Finding("balance", s.id, f"{problem} {seen[key]}")
            seen.setdefault(key, s.id)
    asked: dict[tuple[str, ...], str] = {}
    ids = Counter(q.id for q in questions)
    yield from (Finding("balance", name, f"{n} questions have this id") for name, n in ids.items() if n > 1)
    for q in questions:
        if len({" ".join(tokens(option)) for option in q.options}) < len(q.options):
            yield Finding("balance", q.id, "two of its options are the same")
        if "harmful" not in q.provenance:
            continue
        own = (q.category, q.question, *sorted(q.options))
        if asked.setdefault(own, q.script.id) != q.script.id:
            yield Finding("balance", q.id, f"question and options are those of {asked[own]}")
