"""Set phrases in replies: openings and endings that many replies of a run share, and descriptions instead of replies.

An opening is the first WORDS words of a sentence, in lower case and without punctuation. It is a template if at least
SHARE of the replies under the same condition have it, in at least LEAST groups of variants. Three places are counted:

- `template_opening`: the first sentence of the reply;
- `template_closing`: its last sentence, if it has several (an ending such as "But you know, …");
- `template_sentence`: any of its sentences.

`template_ending` is the same for the last WORDS words of a reply. Each is 1 or 0, and the detail has the longest
template, up to LONGEST words. In languages without spaces between words, characters are counted. Templates depend on
all replies of a run, so these scores are recomputed whenever a run is scored.

`analytic` is 1 if a reply describes the recording or its speaker ("the speaker sounds tired", "the audio conveys …")
instead of speaking to the person: a short list of English patterns, each tested on texts that it must and must not
match. Replies in other languages are unscored.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from overtone.errors import UsageError
from overtone.languages import DEFAULT, is_unspaced, words
from overtone.metrics import Answered, ReplyMetric
from overtone.metrics._limits import english_only
from overtone.metrics._sentences import sentences
from overtone.schema import Item, Score
from overtone.scores import of_replies

VERSION = 2
WORDS, LONGEST = 3, 5
CHARS, LONGEST_CHARS = 4, 8  # about the same length in a language without spaces
SHARE, LEAST = 0.05, 5
PLACES = ("opening", "ending", "sentence", "closing")
SIGNATURES = {
    place: f"template_{place}|v{VERSION}|words:{WORDS}-{LONGEST},unspaced={CHARS}-{LONGEST_CHARS}|share:{SHARE:g}"
    f"|least:{LEAST}|of:condition"
    for place in PLACES
}
ANALYTIC = f"analytic|v{VERSION}|patterns:en"
BENCHMARKS = ("aeq",)
_SHARE = {"better": "lower", "reduce": "share"}
SCORES = {
    "template_opening": of_replies("Template openings", **_SHARE),
    "template_ending": of_replies("Template endings", **_SHARE),
    "template_closing": of_replies("Template last sentences", **_SHARE),
    "template_sentence": of_replies("Templates anywhere", **_SHARE),
    "analytic": of_replies("Descriptions in place of replies", **_SHARE),
}

_SPACE = re.compile(r"\s+")
# For languages other than English. A run of marks is tried once, from its start.
_SENTENCE_END = re.compile(r"(?<![.!?…؟।])[.!?…؟।]++[\"'”’»)\]]*(?=\s)|[。！？]+[」』”’）]*")
_START = r"(?:\A|(?<=[.!?:;,\n])|(?<=[\"“*]))\s?"  # of a sentence or clause, in text with single spaces
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
PATTERNS: dict[str, str] = {  # name → regular expression
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
    """Return the name of the first pattern of descriptions that a reply matches, or "" if it matches none."""
    plain = _SPACE.sub(lambda run: "\n" if "\n" in run[0] else " ", text.replace("’", "'"))
    return next((name for name, pattern in _PATTERNS if pattern.search(plain)), "")


def split(text: str, language: str = DEFAULT) -> list[str]:
    """Return the sentences of a reply. A line break ends a sentence too."""
    result: list[str] = []
    for line in text.lower().splitlines():
        result += sentences(line) if language == DEFAULT else _SENTENCE_END.sub("\n", line).split("\n")
    return result


def phrases(text: str, language: str = DEFAULT) -> Mapping[str, list[list[str]]]:
    """Return place → lists of phrases, each of which may be a template.

    A place has one list for each sentence, or a single list. The phrases of a list are in the order of their length.
    """
    text = text.replace("’", "'")
    least, most = (CHARS, LONGEST_CHARS) if is_unspaced(language) else (WORDS, LONGEST)
    join = "" if is_unspaced(language) else " "
    every = words(text, language)
    long_enough = [units for sentence in split(text, language) if len(units := words(sentence, language)) >= least]
    openings = [[join.join(units[:n]) for n in range(least, min(most, len(units)) + 1)] for units in long_enough]
    endings = [join.join(every[-n:]) for n in range(least, min(most, len(every)) + 1)]
    whole = [join.join(every[:n]) for n in range(least, min(most, len(every)) + 1)]
    return {
        "opening": [whole] if whole else [],
        "ending": [endings] if endings else [],
        "sentence": openings,
        "closing": openings[-1:] if len(openings) > 1 else [],
    }


class Templates(ReplyMetric):
    """Scores replies of conversations: `template_` with each of PLACES, and `analytic`. Call `survey` first."""

    name = "templates"
    version = VERSION

    def __init__(self, everywhere: bool) -> None:
        self._everywhere = everywhere
        self._shared: dict[tuple[str, str], frozenset[str]] = {}  # (condition, place) → the templates

    def applies(self, item: Item) -> bool:
        return item.task == "converse" and (self._everywhere or item.benchmark in BENCHMARKS)

    def survey(self, answered: Iterable[Answered]) -> None:
        """Find the templates: phrases that recur across the run's replies, for each condition and each place in a
        reply."""
        counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        groups: dict[tuple[str, str, str], set[str]] = defaultdict(set)
        replies: Counter[str] = Counter()
        for a in answered:
            replies[a.key.condition] += 1
            for place, by_sentence in phrases(a.text, a.language).items():
                distinct = {phrase for sentence in by_sentence for phrase in sentence}  # a reply counts once
                counts[a.key.condition, place].update(distinct)
                for phrase in distinct:
                    seen_in = groups[a.key.condition, place, phrase]
                    if len(seen_in) < LEAST:
                        seen_in.add(a.item.group)
        self._shared = {
            (condition, place): frozenset(
                phrase
                for phrase, often in counted.items()
                if often >= SHARE * replies[condition] and len(groups[condition, place, phrase]) >= LEAST
            )
            for (condition, place), counted in counts.items()
        }

    def one(self, a: Answered) -> list[Score]:
        return list(self._scores(a))

    def _scores(self, a: Answered) -> Iterator[Score]:
        language = a.language
        fewer = f"fewer than {CHARS} characters" if is_unspaced(language) else f"fewer than {WORDS} words"
        for place, by_sentence in phrases(a.text, language).items():
            name, signature = f"template_{place}", SIGNATURES[place]
            if not by_sentence:
                why = f"fewer than two sentences, without those of {fewer}" if place == "closing" else fewer
                yield Score(name, signature, None, why)
                continue
            shared = self._shared.get((a.key.condition, place), frozenset())
            templates = [phrase for sentence in by_sentence for phrase in sentence if phrase in shared]
            longest = max(templates, key=len, default="")
            yield Score(name, signature, float(bool(longest)), "", {"template": longest, place: by_sentence[0][-1]})
        if reason := english_only("the list of patterns", language):
            yield Score("analytic", ANALYTIC, None, reason)
        elif not a.text.strip():
            yield Score("analytic", ANALYTIC, None, "the reply has no words")
        else:
            matched = described(a.text)
            yield Score("analytic", ANALYTIC, float(bool(matched)), "", {"matched": matched})


def load(everywhere: str = "no") -> Templates:
    """Load the metric. `everywhere=yes` scores the conversations of every benchmark, not only of AEQ-Bench."""
    if everywhere not in ("yes", "no"):
        raise UsageError(f"--metric templates: everywhere must be yes or no, not {everywhere!r}")
    return Templates(everywhere == "yes")
