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
    r"\\?\bboxed\s*\{([^{}]*)\}|<\s*(?:final_?)?(?:answer|choice|option|conclusion)\s*>(.*?)<\s*/\s*(?:final_?)?"
    r"(?:answer|choice|option|conclusion)\s*>|<\|begin_of_box\|"
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
_TOKENS_HEAD = re.compile(r"^(?:\s*(?:<\|[^|<>]{1,40}\|>|</?s>))*\s*(?:(?:assistant|model|ai|bot)\s*(?::|\n))?\s*")
_TOKENS_END = re.compile(r"<\|(?:im_end|im_start|endoftext|eot_id|end_of_text|end|eos|user|observation)\|>|</s>|<eos>")
_TOKENS = re.compile(r"<\|[^|<>\n]{1,40}\|>|<end_of_turn>|<unk>|<pad>|\[/?inst\]")
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
    text = _without_tokens(text)
    text = re.sub(r"~~.*?~~", " ", text)
    text = _LETTER_IN_MARKS.sub(r"[\2]", text)
    text = re.sub(r"\*+|`+|__|^\s*#+\s*|^\s*>\s*|^\s*[-•]\s+|\$", "", text, flags=re.M)
    text = _SAID.sub(r"\1 …", text)
    return _SPACES.sub(" ", text).strip()


def _without_tokens(text: str) -> str:
    """Without the model's control tokens and its role; what follows the end of its turn is not its answer."""
    text = _TOKENS_HEAD.sub("", text, count=1)
    if "<" not in text and "[" not in text:
        return text
    end = _TOKENS_END.search(text)
    return _TOKENS.sub(" ", text[: end.start()] if end else text)


def unfinished_thought(text: str) -> bool:
    """Whether the reply ends inside its thinking: then only what it calls its answer is one."""
    tags = list(_THINK.finditer(text.lower()))
    return bool(tags) and not tags[-1][1]


_QUESTION_LINE = re.compile(r"^(?:(?:next\s+)?question(?:\s*\d+)?\s*[:.)]|q\s?\d+\s*[:.)]|.{8,200}\?\s*$)", re.M)
_MENU_LINE = re.compile(r"\s*[(\[]?([a-h])[)\].:]\s*(\S[^\n]*)(?:\n|$)")


def own_question(text: str, options: Sequence[Option]) -> tuple[str, str]:
    """What stands before a further question, and what follows: "" nothing, "next" a question, "foreign" a strange menu.

    Small models go on with questions and menus of their own making; an answer to those is none to ours.
    """
    for m in _QUESTION_LINE.finditer(text):
        stop = text.find("\n", m.end())
        at = m.end() if m[0].rstrip().endswith("?") else stop if stop >= 0 else len(text)
        menu: list[tuple[str, str]] = []
        while line := _MENU_LINE.match(text, at):
            menu.append((line[1], words_of(line[2])))
            at = line.end()
        own = {words_of(o.text) for o in options}
        if len(menu) > 1 and menu[0][0] == "a" and menu[1][0] == "b" and not own & {t for _, t in menu}:
            return text[: m.start()].strip(), "foreign"
        if m.start() and not menu and re.match(r"(?:next\s+)?q", m[0]):
            return text[: m.start()].strip(), "next"
    return text, ""


_ORDINAL = re.compile(
    r"(\b(?:pick|choose|chose|select|take|with|for)\s+)?\b(?:the\s+)?"
    r"(first|second|third|fourth|last|1st|2nd|3rd|4th)\s+(?:option\b|choice\b|(one)\b)"
)


def with_letters(text: str, options: Sequence[Option]) -> str:
    """Options named by their place (`the last option`) named by letter instead."""
    if "option" not in text and "choice" not in text and " one" not in text:
        return text
    letters = "abcdefgh"
    places = {"first": "a", "second": "b", "third": "c", "fourth": "d", "last": letters[len(options) - 1]}
    places |= {"1st": "a", "2nd": "b", "3rd": "c", "4th": "d"}
    return _ORDINAL.sub(lambda m: m[0] if m[3] and not m[1] else f"{m[1] or ''}option {places[m[2]]}", text)


def _without_thinking(text: str) -> str:
    """What stands outside the thinking, or all of it where nothing does: better that than nothing."""
    tags = list(_THINK.finditer(text))
    if not tags:
        return text
    opened = next((t.start() for t in tags if not t[1]), len(text))
    closed = max((t.end() for t in tags if t[1]), default=len(text))
    outside = f"{text[:opened]}\n{text[closed:]}" if opened < closed else text[closed:]
    return outside if outside.strip() else _THINK.sub("\n", text)


_ACCENTS = str.maketrans({c: unicodedata.normalize("NFD", c)[0] for c in map(chr, range(0xE0, 0x180)) if c.islower()})


def fold(text: str) -> str:
    """Lower-case Latin without its accents, character for character."""
    return text if text.isascii() else text.translate(_ACCENTS)


@lru_cache(maxsize=8192)
def words_of(text: str) -> str:
    """Text as bare words with one space around each; the form in which option texts are compared."""
    text = fold(unicodedata.normalize("NFKC", text).lower().translate(_MARKS))
    text = re.sub(r"[^\w\s']|_", " ", text)
    return " " + " ".join(w.strip("'") for w in text.split() if w not in ("a", "an", "the")) + " "


@lru_cache(maxsize=4096)
def body_of(words: str) -> str:
    """A pattern for an option's words in running text, whatever stands between them."""
    return r"(?:(?:a|an|the)\s+)?" + r"\W+(?:(?:a|an|the)\W+)?".join(re.escape(w) for w in words.split())


_CJK = re.compile("[\u3040-\u9fff\uac00-\ud7a3]")


def is_cjk(text: str) -> bool:
    return not text.isascii() and _CJK.search(text) is not None


@lru_cache(maxsize=4096)
def _menu(options: tuple[Option, ...]) -> tuple[dict[str, str], frozenset[str], frozenset[str]]:
    """Letter → words; all that may be a letter; and those that are also the first of an option's own words."""
    words = {o.letter.lower(): words_of(o.text) for o in options}
    split = [words_of(o.text).split() for o in options]
    first = {w[0] for w in split if len(w) > 1 and len(w[0]) == 1}
    bare = {o.letter.lower() for o, w in zip(options, split, strict=True) if o.text.lower().split() == w}
    first -= {w for w in first if w in bare and f" {w}{words[w]}" in words.values()}  # C is "major", and B "C major"
    return words, frozenset(words) | frozenset("abcdefgh"), frozenset(first)


# ---------------------------------------------------------------- reading one choice at a place

_TOKEN = re.compile(r"([(\[{<\"'/]*)\s?([a-z])\s?([)\]}>\"']*)(?![a-zà-ÿ0-9_])(?!['-][a-zà-ÿ])(?!\.[a-z0-9])")
_JOIN = re.compile(
    r"\s*(,?\s*(?:\band/or\b|\bor\b|\band\b|\boder\b|\bund\b|\bou\b|\bet\b|\bo\b|\by\b|&|/|\+|和|或者|或|与|、|か|と)|"
    r",)\s*(?:(?:option|choice|maybe|possibly|even|perhaps|also)\s+)*"
)
_WORD_CHAR = re.compile(r"[a-zà-ÿ0-9_]")
_NEXT_WORD = re.compile(r"[^\S\n]+([a-zà-ÿ']+)")
LEAD = re.compile(r"[\s:\-–—=>*.,…]*")
_RISKY = frozenset("aeiouyrnst")  # letters that are words or parts of speech in some language


class Reader:
    """A cleaned reply with its options: finds letters and option texts at places, and knows what surrounds them."""

    def __init__(self, text: str, options: Sequence[Option]) -> None:
        self.text = text
        self.options, self.known, self.words = _menu(tuple(options))  # shared between replies: read, never written

    def letter_at(self, at: int) -> tuple[str, int] | None:
        """The letter that stands here as a letter (not as an article or part of a word), and where it ends."""
        m = _TOKEN.match(self.text, at)
        if m is None or m[2] not in self.known or (at and not m[1] and _WORD_CHAR.match(self.text, at - 1)):
            return None
        if m[2] in self.words and not m[3] and self.text[m.end() : m.end() + 1] in (" ", "-"):
            named = self.option_at(m.start(2))
            if named and self.options[named].startswith(f" {m[2]} "):
                return None  # an option's own first word: "C major"
        if m[2] in _RISKY and not (m[1] and m[3]) and m[3] not in (")", "]"):
            follow = _NEXT_WORD.match(self.text, m.end())
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
        if say.CONCESSION.search(before):
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
