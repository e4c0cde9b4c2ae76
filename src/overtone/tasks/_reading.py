"""A reply made plain, and what can be read at a place in it: a letter, a list of letters, an option's own words.

The hand tools of `extract`: cleaning, telling the letter A from the article, and seeing whether the words around a
claim take it back.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from overtone.schema import Option
from overtone.tasks import _phrases as say

# ---------------------------------------------------------------- cleaning

_THINK = re.compile(r"[<◁\[](/?)(?:think|thinking|thought|reasoning|reflection)[>▷\]]")
_HEAD, _TAIL = 2_000, 6_000  # characters of a long reply that are read: a choice stands at its start or its end
_LATEX = re.compile(r"\\(?:text|mathrm|textbf|mathbf|textit|mathit|operatorname|bf|rm)\s*\{([^{}]*)\}")
_DECLARED = re.compile(
    r"\\?\bboxed\s*\{([^{}]*)\}|<\s*(?:final_?)?(?:answer|choice|option)\s*>(.*?)<\s*/\s*(?:final_?)?(?:answer|"
    r"choice|option)\s*>|<\|begin_of_box\|"
    r">(.*?)<\|end_of_box\|>|"
    r"[\"'](?:final[_ ]?answer|answer|choice|option|letter|selected(?:[_ ](?:option|answer|choice))?|prediction|"
    r"response|result|label|"
    r"correct[_ ](?:answer|option)|答案|选项)[\"']\s*:\s*(?:\"([^\"\n]{0,300})\"|'([^'\n]{0,300})'|(\[[^\]]{0,120}\]))",
    re.S,
)
_LETTER_IN_MARKS = re.compile(r"(\*\*|__|`|\*)\s*[(\[\"']?([a-z])[)\]\"']?\s*[.:,)]?\s*\1")
_SAID = re.compile(
    r"\b(says?|said|saying|utters?|shouts?|asks?|whispers?|mutters?|yells?|repeats?|exclaims?|tells?|states?|mentions?|"
    r"reads|hear|heard|replies|cries|sentence|phrase|line|contains|speech is|transcript(?:ion)?|content|"
    r"words?(?: are)?)\b[^\"“.\n]{0,25}[\"“]([^\"”]{5,}?)[\"”]"
)
_SPACES = re.compile(r"[^\S\n]+")
_MARKS = str.maketrans(
    dict.fromkeys("‘’´", "'")
    | dict.fromkeys("“”„«»「」『』", '"')
    | dict.fromkeys("【〔", "[")
    | dict.fromkeys("】〕", "]")
    | {"🅰": "a", "🅱": "b"}
    | dict.fromkeys("\u200b\u200d\ufeff\ufe0f")
)


def clean(text: str, declared: bool = True) -> str:
    """Lower-case, NFKC, without thinking, mark-up and quoted speech; `declared` answers (boxed, tagged, JSON) plain."""
    text = unicodedata.normalize("NFKC", text.translate(_MARKS)).translate(_MARKS).lower()
    text = _without_thinking(text)
    if len(text) > _HEAD + _TAIL:
        text = f"{text[:_HEAD]}\n{text[-_TAIL:]}"
    if declared:
        text = _LATEX.sub(r"\1", _LATEX.sub(r"\1", text))
        text = _DECLARED.sub(
            lambda m: "\nfinal answer: " + next(g for g in m.groups() if g is not None).strip() + "\n", text
        )
    text = re.sub(r"~~.*?~~", " ", text)
    text = _LETTER_IN_MARKS.sub(r"[\2]", text)
    text = re.sub(r"\*+|`+|__|^\s*#+\s*|^\s*>\s*|\$", "", text, flags=re.M)
    text = _SAID.sub(r"\1 …", text)
    return _SPACES.sub(" ", text).strip()


def _without_thinking(text: str) -> str:
    """What stands outside the thinking, or all of it where nothing does: better that than nothing."""
    tags = list(_THINK.finditer(text))
    if not tags:
        return text
    opened = next((t.start() for t in tags if not t[1]), len(text))
    closed = max((t.end() for t in tags if t[1]), default=len(text))
    outside = f"{text[:opened]}\n{text[closed:]}" if opened < closed else text[closed:]
    return outside if outside.strip() else _THINK.sub("\n", text)


@lru_cache(maxsize=8192)
def words_of(text: str) -> str:
    """Text as bare words with one space around each; the form in which option texts are compared."""
    text = unicodedata.normalize("NFKC", text).lower().translate(_MARKS)
    text = re.sub(r"[^\w\s']|_", " ", text)
    return " " + " ".join(w.strip("'") for w in text.split() if w not in ("a", "an", "the")) + " "


@lru_cache(maxsize=4096)
def body_of(words: str) -> str:
    """A pattern for an option's words in running text, whatever stands between them."""
    return r"(?:(?:a|an|the)\s+)?" + r"\W+(?:(?:a|an|the)\W+)?".join(re.escape(w) for w in words.split())


def is_cjk(text: str) -> bool:
    return any("\u3040" <= c <= "\u9fff" or "\uac00" <= c <= "\ud7a3" for c in text)


# ---------------------------------------------------------------- reading one choice at a place

_TOKEN = re.compile(r"([(\[{<\"'/]*)\s?([a-z])\s?([)\]}>\"']*)(?![a-zà-ÿ0-9_])(?!['-][a-zà-ÿ])(?!\.[a-z0-9])")
_JOIN = re.compile(
    r"\s*(,?\s*(?:\band/or\b|\bor\b|\band\b|\boder\b|\bund\b|\bou\b|\bet\b|\bo\b|\by\b|&|/|\+|和|或者|或|与|、|か|と)|"
    r",)\s*(?:(?:option|choice|maybe|possibly|even|perhaps|also)\s+)*"
)
LEAD = re.compile(r"[\s:\-–—=>*.,…]*")
_RISKY = frozenset("aeiouyrnst")  # letters that are words or parts of speech in some language


class Reader:
    """A cleaned reply with its options: finds letters and option texts at places, and knows what surrounds them."""

    def __init__(self, text: str, options: Sequence[Option]) -> None:
        self.text = text
        self.options = {o.letter.lower(): words_of(o.text) for o in options}
        self.known = frozenset(self.options) | frozenset("abcdefgh")

    def letter_at(self, at: int) -> tuple[str, int] | None:
        """The letter that stands here as a letter (not as an article or part of a word), and where it ends."""
        m = _TOKEN.match(self.text, at)
        if m is None or m[2] not in self.known or (at and re.match(r"[a-zà-ÿ0-9_]", self.text[at - 1])):
            return None
        if m[2] in _RISKY and not (m[1] and m[3]):
            follow = re.match(r"[^\S\n]+([a-zà-ÿ']+)", self.text[m.end() :])
            if follow and follow[1] not in say.AFTER_LETTER:
                return None
        return m[2], m.end()

    def letters_at(self, at: int) -> tuple[tuple[str, ...], int] | None:
        """All letters of a list such as `A or C`, `B/D`, `A, B and C` that starts here."""
        first = self.letter_at(at)
        if first is None:
            return None
        found, end = [first[0]], first[1]
        while join := _JOIN.match(self.text, end):
            more = self.letter_at(join.end())
            if more is None or say.NEGATED_AFTER.match(self.text, more[1]):
                break
            if (
                join[1].strip() == ","
                and re.match(r"[^\S\n]+[a-zà-ÿ]", self.text[more[1] :])
                and not _JOIN.match(self.text, more[1])
            ):
                break  # "The answer is B, C is wrong"
            found.append(more[0])
            end = more[1]
        return tuple(dict.fromkeys(found)), end

    def option_at(self, at: int) -> str | None:
        """The option whose whole text starts here (the longest, when one begins with another)."""
        rest = words_of(self.text[at : at + 400])
        hits = [
            k
            for k, t in self.options.items()
            if t.strip() and (rest.startswith(t) or (is_cjk(t) and rest.strip().startswith(t.strip())))
        ]
        return max(hits, key=lambda k: len(self.options[k])) if hits else None

    def option_before(self, at: int) -> str | None:
        """The option whose whole text ends here."""
        line = words_of(self.text[max(0, at - 400) : at])
        hits = [k for k, t in self.options.items() if t.strip() and line.endswith(t)]
        return max(hits, key=lambda k: len(self.options[k])) if hits else None

    def sentence(self, start: int, end: int) -> tuple[str, str]:
        """What stands in the same sentence before and after a place."""
        edges = [m.end() for m in say.SENTENCE_EDGE.finditer(self.text, max(0, start - 400), start)]
        stop = say.SENTENCE_EDGE.search(self.text, end)
        before = self.text[edges[-1] if edges else max(0, start - 400) : start]
        return before, self.text[end : stop.end() if stop else len(self.text)]

    def disowned(self, start: int, end: int) -> bool:
        """Whether the words around take the claim back: negated, conditional, a question, somebody else's."""
        before, after = self.sentence(start, end)
        edges = [m.end() for m in say.CLAUSE_EDGE.finditer(before)]
        clause = say.NOT_A_NEGATION.sub(" ", before[edges[-1] if edges else 0 :])
        if say.NEGATION.search(clause) or say.NEGATED_AFTER.match(self.text, end):
            return True
        turn = [m.end() for m in say.CONTRAST.finditer(before)]
        own = before[turn[-1] if turn else 0 :]
        if say.OTHERS.search(own + self.text[start : max(start, end - 3)]):
            return True
        if say.CONDITION.search(say.NOT_A_CONDITION.sub(" ", own)) or re.search(
            r"\bif\b", say.NOT_A_CONDITION.sub(" ", after)
        ):
            return True
        return bool(say.QUESTION.match((before + self.text[start:end] + after).strip()))
