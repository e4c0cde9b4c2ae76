"""Replies out of a mould: openings and endings that many replies of a run share, and descriptions in place of replies.

`template_opening` is 1 where the first WORDS words of a reply (in lower case, without marks) open at least SHARE of the
replies asked under the same condition, in at least LEAST groups of variants; `template_ending` is the same of the last
words. The detail names the longest such opening, up to LONGEST words. It takes all replies of a run to know them, so
these scores are made anew whenever a run is scored.

`analytic` is 1 where a reply speaks about the recording or its speaker ("the speaker sounds tired", "the audio conveys
…") instead of to the person: a short list of patterns, each with what it must and must not match in the tests.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from overtone.errors import UsageError
from overtone.metrics import Answered
from overtone.metrics.lengths import words
from overtone.schema import Item, Score

VERSION = 1
WORDS, LONGEST = 3, 5
SHARE, LEAST = 0.05, 5
OPENING, ENDING = (
    f"template_{end}|v{VERSION}|words:{WORDS}-{LONGEST}|share:{SHARE:g}|least:{LEAST}|of:condition"
    for end in ("opening", "ending")
)
ANALYTIC = f"analytic|v{VERSION}|patterns:en"
BENCHMARKS = ("aeq",)

_START = r"(?:\A|(?<=[.!?:;,\n])|(?<=[\"“*]))\s*"  # of a sentence or a part of one
_SOUND = (
    r"(?:audio(?: (?:clip|recording|file|sample))?|recording|(?:sound|voice|speech) (?:clip|sample|recording)|clip)"
)
_SPEAKER = r"(?:speaker|user|caller|narrator)"
_WHO = r"(?:person|man|woman|voice|individual|child|girl|boy|someone)"
_FEELING = (
    r"(?:neutral|calm|flat|sad|sorrowful|angry|frustrated|annoyed|irritated|happy|cheerful|joyful|amused|tired|sleepy"
    r"|weary|exhausted|disgusted|fearful|afraid|anxious|nervous|surprised|excited|upset|serious|casual|emotional)"
)
_DOES = (
    r"(?:sounds?|seems?|appears?|expresses|conveys|suggests|indicates|implies|reflects|carries|is (?:speaking|saying"
    r"|expressing|conveying|describing|asking|talking|feeling|sharing|using))"
)
_HOLDS = (
    r"(?:conveys|contains|features|captures|expresses|suggests|indicates|depicts|consists of|shows|reveals|reflects"
    r"|seems|appears|sounds like|is of|has an? \w+ (?:tone|mood|voice))"
)
_LOUDSPEAKER = r"(?! (?:muffled|broken|distorted|tinny|crackly|blown|too|louder))"
PATTERNS: dict[str, str] = {  # what it looks like → how it is found
    "the speaker sounds": rf"{_START}(?:it (?:sounds|seems) (?:like|as if|that) )?the {_SPEAKER}"
    rf"(?:'s (?:voice|tone|delivery|words?|speech))? (?:\w+ly )?{_DOES}\b{_LOUDSPEAKER}",
    "the speaker's tone": rf"\bthe {_SPEAKER}'s (?:emotional state|emotions?|tone(?: of voice)?|mood|vocal \w+)\b",
    "the tone of the speaker": r"\b(?:tone|voice|emotion|mood|delivery) (?:of|in) (?:the|this) "
    rf"(?:{_SPEAKER}|{_SOUND})\b",
    "the audio conveys": rf"{_START}(?:the|this) {_SOUND} (?:\w+ly )?{_HOLDS}\b",
    "in the audio": rf"{_START}(?:in|from|based on|judging by|according to) (?:the|this) {_SOUND}\b",
    "the person in the recording": rf"\b{_WHO} in (?:the|this) {_SOUND}\b",
    "the tone is sad": rf"{_START}the (?:tone|emotion|voice)(?: here)? (?:is|sounds|seems|appears|feels) "
    rf"(?:to be )?(?:\w+ )?{_FEELING}\b",
    "a voice says": r"\ban? (?:(?:young|old|older|middle-aged) )?(?:man|woman|male|female|child)(?:'s)? voice "
    r"(?:says|is saying|speaks|is speaking|can be heard)\b",
    "spoken in a tone": r"\b(?:is|are) (?:spoken|said|delivered|uttered) (?:in|with) an? (?:[\w,-]+ ){1,4}"
    r"(?:tone|voice|manner)\b",
}
_PATTERNS = tuple((name, re.compile(pattern, re.I)) for name, pattern in PATTERNS.items())


def described(text: str) -> str:
    """Which pattern of a description a reply matches, by name; "" for a reply that speaks to somebody."""
    plain = text.replace("’", "'")
    return next((name for name, pattern in _PATTERNS if pattern.search(plain)), "")


def ends(text: str) -> tuple[list[str], list[str]]:
    """The openings and the endings of a reply, from WORDS to LONGEST words; none of a shorter one."""
    found = words(text.replace("’", "'"))
    sizes = range(WORDS, min(LONGEST, len(found)) + 1)
    return [" ".join(found[:n]) for n in sizes], [" ".join(found[-n:]) for n in sizes]


class Templates:
    """Scores replies of conversations: `template_opening`, `template_ending`, `analytic`. `survey` comes first."""

    name = "templates"
    version = VERSION

    def __init__(self, everywhere: bool) -> None:
        self._everywhere = everywhere
        self._shared: dict[tuple[str, str], frozenset[str]] = {}  # (condition, opening or ending) → the templates

    def applies(self, item: Item) -> bool:
        return item.task == "converse" and (self._everywhere or item.benchmark in BENCHMARKS)

    def survey(self, answered: Iterable[Answered]) -> None:
        """Look at every reply of the run: which openings and endings are templates?"""
        counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        groups: dict[tuple[str, str, str], set[str]] = defaultdict(set)
        replies: Counter[str] = Counter()
        for a in answered:
            replies[a.key.condition] += 1
            for which, found in zip(("opening", "ending"), ends(a.text), strict=True):
                counts[a.key.condition, which].update(found)
                for one in found:
                    groups[a.key.condition, which, one].add(a.item.group)
        self._shared = {
            (condition, which): frozenset(
                one
                for one, often in counted.items()
                if often >= SHARE * replies[condition] and len(groups[condition, which, one]) >= LEAST
            )
            for (condition, which), counted in counts.items()
        }

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        return [list(self._one(a)) for a in answered]

    def _one(self, a: Answered) -> Iterator[Score]:
        named = zip(("opening", "ending"), (OPENING, ENDING), ends(a.text), strict=True)
        for which, signature, found in named:
            if not found:
                yield Score(f"template_{which}", signature, None, f"fewer than {WORDS} words")
                continue
            shared = self._shared.get((a.key.condition, which), frozenset())
            longest = next((one for one in reversed(found) if one in shared), "")
            yield Score(
                f"template_{which}", signature, float(bool(longest)), "", {"template": longest, which: found[-1]}
            )
        if not a.text.strip():
            yield Score("analytic", ANALYTIC, None, "the reply has no words")
        else:
            matched = described(a.text)
            yield Score("analytic", ANALYTIC, float(bool(matched)), "", {"matched": matched})


def load(everywhere: str = "no") -> Templates:
    """`everywhere=yes` scores the conversations of every benchmark, not of AEQ-Bench alone."""
    if everywhere not in ("yes", "no"):
        raise UsageError(f"--metric templates: everywhere must be yes or no, not {everywhere!r}")
    return Templates(everywhere == "yes")
