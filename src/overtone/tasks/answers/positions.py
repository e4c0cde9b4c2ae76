"""A cleaned reply, and readers for one place in it: a letter, a list of letters, an option's words.

`extract` uses these tools to clean a reply, to distinguish the letter A from the article, and to check whether the
words around a claim take it back.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypeVar

from overtone.schema import Option
from overtone.tasks.answers import phrases as say

# ---------------------------------------------------------------- cleaning

_THINK = re.compile(r"[<◁\[](/?)(?:think|thinking|thought|reasoning|reflection)[>▷\]]")
_HEAD, _TAIL = 2_000, 6_000  # characters of a long reply that are read: the choice is at its start or its end
_LATEX = re.compile(r"\\(?:text|mathrm|textbf|mathbf|textit|mathit|operatorname|bf|rm)\s*\{([^{}]*)\}")
_DECLARED = re.compile(
    r"\\?\bboxed\s*\{([^{}]*)\}|<\s*(?:final_?)?(?:answer|choice|option|conclusion|response|output|result|letter|"
    r"label)\s*>([^<]*)<\s*/\s*\w+\s*>|<\|begin_of_box\|>(.*?)<\|end_of_box\|>|[\"'](?:final[_ ]?answer|answer|choice|"
    r"option|letter|selected(?:[_ ](?:option|answer|choice))?|prediction|response|result|label|correct[_ ](?:answer|"
    r"option)|答案|选项)[\"']\s*:\s*(?:\"([^\"\n]{0,300})\"|'([^'\n]{0,300})'|(\[[^\]]{0,120}\]))|"
    r"\{\s*\"[\w ]{1,40}\"\s*:\s*\"([^\"\n]{0,300})\"\s*\}",
    re.S,
)
_LETTER_IN_MARKS = re.compile(r"(\*\*|__|`|\*)[^\S\n]*[(\[\"']?([a-z])[)\]\"']?[^\S\n]*[.:,)]?[^\S\n]*\1")
_SAID = re.compile(
    r"\b(says?|said|saying|utters?|shouts?|asks?|whispers?|mutters?|yells?|repeats?|exclaims?|tells?|states?|"
    r"mentions?|reads|hear|heard|replies|cries|sentence|phrase|line|contains|speech is|transcript(?:ion)?|content|"
    r"words?(?: are)?)\b[^\"“.\n]{0,25}[\"“]([^\"”\s]+\s[^\"”]+)[\"”]"
)
_TOKENS_HEAD = re.compile(r"^(?:\s*(?:<\|[^|<>]{1,40}\|>|</?s>))*\s*(?:(?:assistant|model|ai|bot)\s*(?::|\n))?\s*")
_TOKENS_END = re.compile(r"<\|(?:im_end|im_start|endoftext|eot_id|end_of_text|end|eos|user|observation)\|>|</s>|<eos>")
_TOKENS = re.compile(r"<\|[^|<>\n]{1,40}\|>|<end_of_turn>|<unk>|<pad>|\[/?inst\]")
_SPACES = re.compile(r"[^\S\n]+")
_BLANK_LINES = re.compile(r"\n ?\n[ \n]*")
_MARKS = str.maketrans(
    dict.fromkeys("‘’´", "'")
    | dict.fromkeys("“”„«»「」『』", '"')
    | dict.fromkeys("【〔", "[")
    | dict.fromkeys("】〕", "]")
    | {"🅰": "a", "🅱": "b"}
    | dict.fromkeys("\u200b\u200d\ufeff\ufe0f")
)


def clean(text: str, declared: bool = True) -> str:
    """Return a reply in lower case and NFKC, without thinking and mark-up. `declared` also unwraps answers in a box,
    in tags or in JSON."""
    text = unicodedata.normalize("NFKC", text.translate(_MARKS)).translate(_MARKS).lower()
    text = _BLANK_LINES.sub("\n\n", _SPACES.sub(" ", _without_thinking(text)))
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
    text = re.sub(r"\*+|`+|__|^[^\S\n]*(?:#+|>|[-•](?=\s))\s*|\$", "", text, flags=re.M)
    if re.match(r"q(?:uestion)?\s*:", text):
        text = re.sub(r"^a\s*:\s*(?=\W?[a-h]\b)", "answer: ", text, flags=re.M)
    return _BLANK_LINES.sub("\n\n", _SPACES.sub(" ", text)).strip()


def _without_tokens(text: str) -> str:
    """Remove the model's control tokens and role, and the text after the end of its turn."""
    text = _TOKENS_HEAD.sub("", text, count=1)
    end = _TOKENS_END.search(text)
    return _TOKENS.sub(" ", text[: end.start()] if end else text)


def unfinished_thought(text: str) -> bool:
    """Return whether the reply ends inside its thinking. If so, only explicit claims like "the answer is B" count."""
    tags = list(_THINK.finditer(text.lower()))
    return bool(tags) and not tags[-1][1]


_QUESTION_LINE = re.compile(r"^(?:(?:next\s+)?question(?:\s*\d+)?\s*[:.)]|q\s?\d+\s*[:.)]|.{8,200}\?\s*$)", re.M)
_MENU_LINE = re.compile(r"\s*[(\[]?([a-h])[)\].:]\s*(\S[^\n]*)(?:\n|$)")


def own_question(text: str, options: Sequence[Option]) -> tuple[str, str]:
    """Return the text up to a question that the model invented, and the kind of that question.

    The kind is "next" for a question without options, "foreign" for one with options, and "" if there is no such
    question. Small models continue with invented questions and options. An answer to such a question is not an answer
    to ours.
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


_PLACES = {
    word: place
    for place, words in enumerate(
        ("first 1st one", "second 2nd two", "third 3rd three", "fourth 4th four", "fifth 5th five")
    )
    for word in words.split()
}
_ORDINAL = re.compile(
    r"\b(?:the\s+)?(?:very\s+)?(first|second|third|fourth|fifth|last|final(?=\s+(?:option|one)\b)|1st|2nd|3rd|4th|5th)"
    r"(?:\s+(?:(option|choice|statement|response|answer|reply|suggestion|description|alternative)|one)\b(?!\s*(?:is\b|[:=])\s*\W?[a-h]\b)"
    r"|(?=\W*(?:$|\n)))|(?:\b(?:option|choice|number|no\.)\s*|(?:\b\w+\s+)?#)(one|two|three|four|five|\d)\b"
)
_HEARD = {
    "ay": "a", "eh": "a", "aye": "a", "bee": "b", "be": "b", "see": "c", "sea": "c", "cee": "c", "si": "c", "dee": "d",
    "ee": "e", "eff": "f", "gee": "g", "aitch": "h",
}  # fmt: skip
_HEARD_LETTER = re.compile(
    r"(\b(?:option|choice|letter|answer(?:\s+is|'s)?:?)\s+)"
    rf"({'|'.join(_HEARD)})(?=\s*(?:[.,!?;:]|$))"
)
_HEARD_ALONE = re.compile(
    r"((?:^|[.!?,:;]\s|\b(?:is|it's|that's|with|for|say|pick|choose|select|be|definitely|probably|so|clearly|think|guess)\s))"
    rf"({'|'.join(_HEARD)})(?=\s*(?:[.,!?;:]|$))"
)


def with_letters(text: str, options: Sequence[Option], *, heard: bool = False) -> str:
    """Replace other names of options by their letters: a position (`the last option`), or a letter spelled as it sounds
    by a recogniser (`option see`). With `heard`, such a spelling may also stand alone (`Bee.`)."""
    own = frozenset(word for o in options for word in words_of(o.text).split())
    text = _HEARD_LETTER.sub(lambda m: m[0] if m[2] in own else m[1] + _HEARD[m[2]], text)
    if heard:
        text = _HEARD_ALONE.sub(lambda m: m[0] if m[2] in own else m[1] + _HEARD[m[2]], text)
    if not _ORDINAL.search(text):
        return text

    def letter(m: re.Match[str]) -> str:
        word = m[1] or m[3]
        place = len(options) - 1 if word in ("last", "final") else _PLACES.get(word, -1)
        place = int(word) - 1 if word.isdigit() else place
        if word in own or str(place + 1) in own or not 0 <= place < len(options):
            return m[0]
        if not m[2]:  # "the third one" is an option only if the sentence says nothing else about it
            low, high = bounds.around(m.start(), m.end())
            others = words_of(text[low : m.start()] + " " + text[m.end() : high]).split()
            if any(w not in say.FRAME and w not in say.PICKING for w in others):
                return m[0]
        return f"option {'abcdefgh'[place]}"

    bounds = Sentences(text)
    return _ORDINAL.sub(letter, text)


def without_speech(text: str, options: Sequence[Option]) -> str:
    """Remove quotations of the speaker. Quotations of an option's text stay."""
    own = [t for t in (words_of(o.text) for o in options) if len(t.split()) > 2]

    def unquoted(m: re.Match[str]) -> str:
        words = words_of(m[2])
        return m[0] if any(t in words for t in own) or quoted_in_part(words, own) else f"{m[1]} …"

    return _SAID.sub(unquoted, text) if '"' in text else text


def quoted_in_part(words: str, texts: Sequence[str]) -> str | None:
    """Return the only text that contains the quoted words: `the one that begins "I can hear how upset you are"`."""
    hits = [t for t in texts if words in t] if len(words.split()) > 2 else []
    return hits[0] if len(hits) == 1 and len(set(texts)) == len(texts) else None


def without_courtesy(text: str, options: Sequence[Option]) -> str:
    """Remove polite sentences and sentences about answering, which must not count as conditions or answers. A reply
    with no other sentence is returned unchanged."""
    own = [words_of(o.text) for o in options]
    kept: list[str] = []
    for low, high in Sentences(text).bounds:
        part = text[low:high]
        if ":" not in part and say.COURTESY.match(part) and not any(words_of(part) in t for t in own):
            continue
        kept.append(part)
    return "".join(kept).strip() or text


_TURN = re.compile(r"(?:^|(?<=[\n.!?])\s*)(?:speaker |person )?([a-d])\s*:\s+(?=\w|\"|')", re.M)


def without_dialogue(text: str, options: Sequence[Option]) -> str:
    """Remove the turns of a transcript (`A: Hello! B: Hi.`), whose letters are speakers and not options."""
    turns = list(_TURN.finditer(text))
    if len(turns) < 2 or [t[1] for t in turns[:2]] != ["a", "b"]:
        return text
    own = {o.letter.lower(): words_of(o.text) for o in options}
    for turn, end in zip(turns, [*(t.start() for t in turns[1:]), len(text)], strict=True):
        part = text[turn.end() : end]
        words = words_of(part)
        if say.JUDGED.match(part) or (turn[1] in own and set(own[turn[1]].split()) & set(words.split()) - say.FRAME):
            return text
    stop = text.find("\n", turns[-1].end())
    return text[: turns[0].start()] + (text[stop:] if stop >= 0 else "")


def _without_thinking(text: str) -> str:
    """Return the text outside the thinking, or all of the text if there is nothing outside."""
    tags = list(_THINK.finditer(text))
    opened = next((t.start() for t in tags if not t[1]), len(text))
    closed = max((t.end() for t in tags if t[1]), default=len(text))
    outside = f"{text[:opened]}\n{text[closed:]}" if opened < closed else text[closed:]
    return outside if outside.strip() else _THINK.sub("\n", text)


_ACCENTS = str.maketrans({c: unicodedata.normalize("NFD", c)[0] for c in map(chr, range(0xE0, 0x180)) if c.islower()})


def fold(text: str) -> str:
    """Remove the accents of lower-case Latin letters; the length stays the same."""
    return text if text.isascii() else text.translate(_ACCENTS)


@lru_cache(maxsize=8192)
def words_of(text: str) -> str:
    """Return the bare words of a text with one space around each. Option texts are compared in this form."""
    text = fold(unicodedata.normalize("NFKC", text).lower().translate(_MARKS))
    text = re.sub(r"[^\w\s']|_", " ", text)
    return " " + " ".join(w.strip("'") for w in text.split() if w not in ("a", "an", "the")) + " "


@lru_cache(maxsize=4096)
def body_of(words: str) -> str:
    """Return a pattern for an option's words in running text, with any punctuation between them."""
    return r"(?:(?:a|an|the)\s+)?" + r"\W+(?:(?:a|an|the)\W+)?".join(re.escape(w) for w in words.split())


_CJK = re.compile("[\u3040-\u9fff\uac00-\ud7a3]")


def is_cjk(text: str) -> bool:
    return not text.isascii() and _CJK.search(text) is not None


@lru_cache(maxsize=4096)
def _menu(options: tuple[Option, ...]) -> tuple[dict[str, str], tuple[tuple[str, str], ...], frozenset[str]]:
    """Return letter → bare words of the option, (letter, text) pairs, and all characters that may be a letter."""
    words = {o.letter.lower(): words_of(o.text) for o in options}
    if any(re.search(r"(?<![\w'])[b-h](?![\w'])", o.text.lower()) and len(o.text) > 1 for o in options):
        words = {o.letter.lower(): f" {' '.join(o.text.lower().split())} " for o in options}  # "A minor": no article
    texts = tuple(
        (o.letter.lower(), fold(unicodedata.normalize("NFKC", o.text).translate(_MARKS).lower())) for o in options
    )
    return words, texts, frozenset(words) | frozenset("abcdefgh")


# ---------------------------------------------------------------- reading one choice at a place

_TOKEN = re.compile(r"([(\[{<\"'/]*)[^\S\n]?([a-z])[^\S\n]?([)\]}>\"']*)(?![a-zà-ÿ0-9_])(?!['-][a-zà-ÿ])(?!\.[a-z0-9])")
_JOIN = re.compile(
    r"\s*(,?\s*(?:\band/or\b|\bor\b|\band\b|\boder\b|\bund\b|\bou\b|\bet\b|\bo\b|\by\b|&|/|\+|和|或者|或|与|、|か|と)|"
    r",)\s*(?:(?:option|choice|maybe|possibly|even|perhaps|also)\s+)*"
)
_WORD_CHAR = re.compile(r"[a-zà-ÿ0-9_]")
_ABBREVIATED = re.compile(r"(?<![^\W_])[a-z]\.\Z")
_NEXT_WORD = re.compile(r"[^\S\n]+([a-zà-ÿ']+)")
_VERB = re.compile(r"[a-z]+[^sui\W]s")  # "A comes first": hardly a noun after an article
_NEAR = 400  # characters of a sentence that are read before and after a place
LEAD = re.compile(r"[\s:\-–—=>*.,…]*")
_RISKY = frozenset("aeiouyrnst")  # letters that are words or parts of speech in some language


_T = TypeVar("_T")
_FIRST, _LAST = 40, 120


def few(places: Iterable[_T]) -> list[_T]:
    """Return the places; if there are very many, only the first and the last of them. This limits the time for a reply
    that repeats itself a thousand times, and does not change the answer."""
    listed = list(places)
    return listed if len(listed) <= _FIRST + _LAST else listed[:_FIRST] + listed[-_LAST:]


class Sentences:
    """The sentences of a text. The full stop of an abbreviation or of a menu's letter (`B. Joy`) does not end one."""

    def __init__(self, text: str) -> None:
        ends = [
            m.end()
            for m in say.SENTENCE_EDGE.finditer(text)
            if m[0] != "." or not say.NOT_AN_END.search(text[max(0, m.start() - 12) : m.start()])
        ]
        ends = [*ends, len(text)] if not ends or ends[-1] < len(text) else ends
        self.bounds = list(zip([0, *ends], ends, strict=False))
        self._starts = [low for low, _ in self.bounds]

    def around(self, start: int, end: int) -> tuple[int, int]:
        """Return the bounds of the sentence around a place, at most a few hundred characters on each side."""
        low = self.bounds[max(bisect_right(self._starts, start) - 1, 0)][0]
        high = self.bounds[max(bisect_right(self._starts, max(start, end - 1)) - 1, 0)][1]
        return max(low, start - _NEAR), max(end, min(high, end + _NEAR))


class Reader:
    """A cleaned reply with its options. The methods read a letter, an option's text or the words around a place."""

    def __init__(self, text: str, options: Sequence[Option]) -> None:
        self.text = text
        self.sentences = Sentences(text)
        self.options, self.texts, self.known = _menu(tuple(options))  # shared between replies: read, never written

    def letter_at(self, at: int) -> tuple[str, int] | None:
        """Return the letter at this place and where it ends; None for an article or a part of a word."""
        m = _TOKEN.match(self.text, at)
        if m is None or m[2] not in self.known or (at and not m[1] and _WORD_CHAR.match(self.text, at - 1)):
            return None
        if _ABBREVIATED.search(self.text[max(0, at - 3) : at]):
            return None  # "i.e."
        named = self.text[max(0, at - 7) : at] in ("option ", "choice ", "letter ")
        if m[2] in _RISKY and not named and not (m[1] and m[3]) and m[3] not in (")", "]"):
            follow = _NEXT_WORD.match(self.text, m.end())
            if follow and follow[1] not in say.AFTER_LETTER and not _VERB.fullmatch(follow[1]):
                return None
        return m[2], m.end()

    def letters_at(self, at: int) -> tuple[tuple[str, ...], int] | None:
        """Return all letters of a list at this place, such as `A or C`, `B/D`, `A, B and C`, and where it ends."""
        first = self.letter_at(at)
        if first is None:
            return None
        letters, end = [first[0]], first[1]
        while join := _JOIN.match(self.text, end):
            more = self.letter_at(join.end())
            if more is None or say.NEGATED_AFTER.match(self.text, more[1]):
                break
            letters.append(more[0])
            end = more[1]
        return tuple(dict.fromkeys(letters)), end

    def option_at(self, at: int) -> str | None:
        """Return the option whose whole text starts here. If several do, return the longest."""
        rest = words_of(self.text[at : at + 400])
        hits = [
            k
            for k, t in self.options.items()
            if t.strip() and (rest.startswith(t) or (is_cjk(t) and rest.strip().startswith(t.strip())))
        ]
        return max(hits, key=lambda k: len(self.options[k])) if hits else None

    def option_before(self, at: int) -> str | None:
        """Return the option whose whole text ends here."""
        line = words_of(self.text[max(0, at - 400) : at])
        hits = [k for k, t in self.options.items() if t.strip() and line.endswith(t)]
        return max(hits, key=lambda k: len(self.options[k])) if hits else None

    def sentence(self, start: int, end: int) -> tuple[str, str]:
        """Return the text of the same sentence before and after a place."""
        low, high = self.sentences.around(start, end)
        return self.text[low:start], self.text[end:high]

    def disowned(self, start: int, end: int) -> bool:
        """Return whether the words around a claim take it back: a negation, condition, question, another's opinion."""
        before, after = self.sentence(start, end)
        edges = [m.end() for m in say.CLAUSE_EDGE.finditer(before)]
        low = len(before) if say.CLAUSE_EDGE.match(self.text, start) else edges[-1] if edges else 0
        clause = say.NOT_A_NEGATION.sub(" ", before[low:])
        if say.NEGATION.search(clause) or say.NEGATED_AFTER.match(self.text, end):
            return True
        if is_void(before, after, self.text[start : max(start, end - 3)]):
            return True
        return bool(say.QUESTION.match((before + self.text[start:end] + after).strip()))


def is_void(before: str, after: str, claim: str = "") -> bool:
    """Return whether a claim between `before` and `after` is only a condition, a concession or a first impression."""
    turns = [m.end() for m in say.TURN.finditer(before)]
    own = say.CONCEDED.sub("", before[turns[-1] if turns else 0 :])
    if (
        say.CONCESSION.search(before)
        or say.OTHERS.search(own + claim)
        or say.CONDITION.search(say.NOT_A_CONDITION.sub(" ", own))
    ):
        return True
    unreal = say.UNREAL.search(own + claim) and re.search(r"\bif\b", say.NOT_A_CONDITION.sub(" ", after))
    return bool(unreal or say.CONCEDED_AFTER.match(after) or re.match(r"[^,.;]{0,30}\bat first\b", after))
