"""The written half of the EChat-style data: what is asked, how a reply answers to what is heard, and the check of both.

Everything in texts/*.toml is written by hand. A query is a frame's wording with its slots filled; a reply is an opening
of a strategy, a fact of the frame, and a turn of a strategy or an offer of the frame. The limits of their lengths are
such that any three of them make a reply of 12 to 32 words.
"""

from __future__ import annotations

import functools
import itertools
import re
import string
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from overtone.build.gates._lexicon import tells
from overtone.build.rules import cues_in
from overtone.cues import BY_SLUG
from overtone.echat.data.labels import AGES, CUE_OF_LABEL, EMOTIONS, GENDERS, REPLY, SCENES, STYLES, VOCAL
from overtone.errors import DataError
from overtone.paths import read_plain, shown

FOLDER = Path(__file__).parent / "texts"
MAX_BYTES = 2_000_000
LONGEST = 300  # characters of one text

LABELS: Mapping[str, tuple[str, ...]] = {  # dimension → what a strategy is written for
    "emotion": tuple(name for name in EMOTIONS if name != "other"),
    "age": AGES,
    "gender": GENDERS,
    "event": (*(name for name in VOCAL if name != "other"), *SCENES),
}

QUERY, OPENING, FACT, CLOSE = (6, 16), (2, 10), (6, 13), (4, 9)  # fewest and most words
BECAUSE, QUESTION, ANSWER = (5, 15), (1, 18), (4, 32)
LINE = (5, 24)  # of a style
LEAST = {"say": 3, "values": 6, "facts": 3, "offers": 2, "openings": 12, "turns": 6, "because": 5, "lines": 25}
LEAST_OF_SET = {"train frames": 160, "held-out frames": 40, "topics": 20, "train queries": 6000}
LEAST_OF_SET |= {"followups": 60, "plain": 300}
HARMLESS = re.compile(  # words that only look like a tell-tale one
    r"\b(?:windows?|windowsill|cards?|cardboard|care|careful\w*|carry\w*|carr(?:ies|ied)|carrots?|carpets?)\b", re.I
)

Part = Literal["train", "held-out"]


class Frame(Struct, frozen=True, forbid_unknown_fields=True):
    """Something asked in several wordings, whose words fit any voice; `topic` is a noun that goes after `help with`."""

    id: str
    topic: str
    part: Part
    say: tuple[str, ...]
    facts: tuple[str, ...]
    offers: tuple[str, ...]
    slots: dict[str, tuple[str, ...]] = {}

    def fillings(self) -> Iterator[dict[str, str]]:
        """Every way to fill the slots, in the order written."""
        for values in itertools.product(*self.slots.values()):
            yield dict(zip(self.slots, values, strict=True))

    def queries(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Every query with what fills its slots, each once: a wording without slots comes once."""
        seen: set[str] = set()
        for filling in self.fillings():
            for wording in self.say:
                if (words := wording.format(**filling)) not in seen:
                    seen.add(words)
                    yield words, filling


class Strategy(Struct, frozen=True, forbid_unknown_fields=True):
    """How a reply answers to one label. A strategy serves every part: what is held out are queries and voices."""

    dimension: Literal["emotion", "age", "gender", "event"]
    label: str
    part: Part
    reply_emotion: str
    openings: tuple[str, ...]
    turns: tuple[str, ...]  # may have the slot {topic_noun}
    because: tuple[str, ...]  # clauses for a thought, without capital or full stop


class Style(Struct, frozen=True, forbid_unknown_fields=True):
    """Lines of one genre, and how they are read: factors of pace, of the pitch's range and of level."""

    name: str
    rate: float
    range: float
    gain: float
    lines: tuple[str, ...]


class Followup(Struct, frozen=True, forbid_unknown_fields=True):
    """What somebody asks next, whatever came first, or after a frame of one topic."""

    id: str
    part: Part
    say: tuple[str, ...]
    facts: tuple[str, ...]
    topic: str = ""


class Plain(Struct, frozen=True, forbid_unknown_fields=True):
    """A question and its answer in text alone."""

    question: str
    answer: str


class Texts(Struct, frozen=True):
    """All that is written."""

    frames: tuple[Frame, ...] = ()
    strategies: tuple[Strategy, ...] = ()
    styles: tuple[Style, ...] = ()
    followups: tuple[Followup, ...] = ()
    plain: tuple[Plain, ...] = ()

    def strategy(self, dimension: str, label: str) -> Strategy:
        """The strategy for a label; KeyError where none is written."""
        for found in self.strategies:
            if (found.dimension, found.label) == (dimension, label):
                return found
        raise KeyError(f"{dimension}/{label}")

    def check(self) -> list[str]:
        """Every broken rule, as `what: what is wrong with it`; an empty list for a set that may be built."""
        found = [f"frame {f.id}: {what}" for f in self.frames for what in _of_frame(f)]
        found += [f"strategy {s.dimension}/{s.label}: {what}" for s in self.strategies for what in _of_strategy(s)]
        found += [f"style {s.name}: {what}" for s in self.styles for what in _of_style(s)]
        found += [f"followup {f.id}: {what}" for f in self.followups for what in _of_followup(f)]
        found += [f"plain {p.question!r}: {what}" for p in self.plain for what in _of_plain(p)]
        return found + list(_repeats(self)) + list(_missing(self))


_KINDS: dict[str, tuple[str, type[Struct]]] = {  # table → the field that holds it, what it is
    "frame": ("frames", Frame),
    "strategy": ("strategies", Strategy),
    "style": ("styles", Style),
    "followup": ("followups", Followup),
    "plain": ("plain", Plain),
}


def read(folder: Path = FOLDER) -> Texts:
    """The texts of a folder, file by file in the order of their names. Raises DataError with file, line and reason."""
    paths = sorted(folder.glob("*.toml"))
    if not paths:
        raise DataError(f"{shown(str(folder))}: no texts here; it must hold the .toml files of the texts")
    found: dict[str, list[Any]] = {field: [] for field, _ in _KINDS.values()}
    for path in paths:
        for field, value in _tables(path):
            found[field].append(value)
    return Texts(**{field: tuple(values) for field, values in found.items()})


def _tables(path: Path) -> Iterator[tuple[str, Struct]]:
    """Of a file: the field of Texts, and the value, of each table."""
    try:
        text = read_plain(path, MAX_BYTES).decode("utf-8")
        tree = tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataError(f"{shown(path.name)}: cannot be read as TOML: {error}") from error
    for kind, tables in tree.items():
        if kind not in _KINDS or not isinstance(tables, list):
            raise DataError(f"{shown(path.name)}: no table [[{shown(kind)}]]; there is: {', '.join(_KINDS)}")
        lines = [n for n, line in enumerate(text.splitlines(), 1) if line.strip().startswith(f"[[{kind}]]")]
        for line, table in itertools.zip_longest(lines, tables, fillvalue=0):
            field, shape = _KINDS[kind]
            try:
                value = msgspec.convert(table, shape)
            except msgspec.ValidationError as error:
                raise DataError(f"{shown(path.name)}, line {line}: this {kind} cannot be read: {error}") from error
            if problem := _unusable(value):
                raise DataError(f"{shown(path.name)}, line {line}: {problem}")
            yield field, value


def _unusable(value: Struct) -> str:
    """What keeps a text from being composed or spoken at all, or nothing; `check` is for the rules of writing."""
    for text in _texts_of(value):
        if not text.strip() or text != text.strip() or len(text) > LONGEST or not text.isprintable():
            return f"{shown(text)[:60]!r}: a text is 1 to {LONGEST} printable characters without spaces around it"
        known = set(value.slots) if isinstance(value, Frame) else set()
        if isinstance(value, Strategy) and text in value.turns:
            known = {"topic_noun"}
        try:
            extra = slots_in(text) - known
        except ValueError as error:
            return f"{shown(text)[:60]!r}: {error}"
        if extra:
            return f"{shown(text)[:60]!r}: no slot {', '.join(sorted(extra))}; there is: {', '.join(known) or 'none'}"
    if isinstance(value, Strategy):
        if value.label not in LABELS[value.dimension]:
            return f"no {value.dimension} {shown(value.label)!r}; there is: {', '.join(LABELS[value.dimension])}"
        if value.reply_emotion not in REPLY:
            return f"no reply emotion {shown(value.reply_emotion)!r}; there is: {', '.join(REPLY)}"
    if isinstance(value, Style) and value.name not in STYLES:
        return f"no style {shown(value.name)!r}; there is: {', '.join(STYLES)}"
    return ""


def _texts_of(value: Struct) -> Iterator[str]:
    for field in value.__struct_fields__:
        held = getattr(value, field)
        if isinstance(held, tuple):
            yield from held
        elif isinstance(held, dict):
            yield from itertools.chain.from_iterable(held.values())
        elif field in ("question", "answer"):
            yield held


def slots_in(text: str) -> set[str]:
    """The names of the slots of a text. Raises ValueError for braces that are none."""
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


# ── the rules of writing ────────────────────────────────────────────────────────────────────────────────────────────


@functools.cache
def _telling() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Of every cue that a label stands for: its slug, and the words that would say that a query carries it."""
    slugs = {CUE_OF_LABEL.get((kind, label)) for kind, labels in LABELS.items() for label in labels}
    return tuple((slug, pattern) for slug, pattern in tells().items() if slug in slugs)


def told(words: str) -> list[str]:
    """What of a query's words would say how it is spoken, by whom or where, as `word (cue)`."""
    plain = HARMLESS.sub("·", words)
    found = [f"{match[0]!r} ({slug})" for slug, pattern in _telling() if (match := pattern.search(plain))]
    return found + [f"names {BY_SLUG[slug].phrase}" for slug in cues_in(plain)]


def _count(text: str) -> int:
    return len(text.split())


def _outside(what: str, texts: Iterable[str], limits: tuple[int, int]) -> Iterator[str]:
    for text in texts:
        if not limits[0] <= _count(text) <= limits[1]:
            yield f"{what} of {_count(text)} words, not {limits[0]} to {limits[1]}: {text!r}"


def _few(what: str, texts: Sequence[str]) -> Iterator[str]:
    if len(texts) < LEAST[what]:
        yield f"{len(texts)} {what}; at least {LEAST[what]}"
    if len(set(map(_plain_words, texts))) < len(texts):
        yield f"the same twice among its {what}"


def _plain_words(text: str) -> str:
    return " ".join(re.findall(r"[\w'{}]+", text.lower()))


def _of_frame(frame: Frame) -> Iterator[str]:
    if not re.fullmatch(r"[a-z]+-\d\d", frame.id) or not re.fullmatch(r"[a-z]+", frame.topic):
        yield "an id is a word, a dash and two digits; a topic is one word of small letters"
    for what in ("say", "facts", "offers"):
        yield from _few(what, getattr(frame, what))
    for slot, values in frame.slots.items():
        yield from _few("values", values)
        if not any(f"{{{slot}}}" in wording for wording in frame.say):
            yield f"no wording uses its slot {slot}"
    for wording in frame.say:
        yield from itertools.islice(_outside("query", _filled(frame, wording), QUERY), 1)
        for word in dict.fromkeys(word for words in _filled(frame, wording) for word in told(words)):
            yield f"{word} would tell: {wording!r}"
        if not wording.format(**next(frame.fillings()))[0].isupper() or wording[-1] not in ".!?":
            yield f"a query begins with a capital and ends as a sentence does: {wording!r}"
    for what, texts, limits in (("fact", frame.facts, FACT), ("offer", frame.offers, CLOSE)):
        for text in texts:
            yield from itertools.islice(_outside(what, _filled(frame, text), limits), 1)


def _filled(frame: Frame, text: str) -> list[str]:
    """A text with each value of its slots; of several slots not every pair, but every value and both extremes."""
    names = slots_in(text)
    if not names:
        return [text]
    ordered = {name: sorted(frame.slots[name], key=_count) for name in names}
    longest = max(map(len, ordered.values()))
    return [
        text.format(**{name: values[min(at, len(values) - 1)] for name, values in ordered.items()})
        for at in range(longest)
    ]


def _of_strategy(s: Strategy) -> Iterator[str]:
    for what in ("openings", "turns", "because"):
        yield from _few(what, getattr(s, what))
    yield from _outside("opening", s.openings, OPENING)
    yield from _outside("turn", s.turns, CLOSE)
    yield from _outside("because", s.because, BECAUSE)
    for clause in s.because:
        if clause[-1] in ".!?" or (clause[0].isupper() and not clause.startswith("I ")):
            yield f"a clause has no capital and no full stop: {clause!r}"
    for text in (*s.openings, *s.turns):
        if text[-1] not in ".!?":
            yield f"a sentence ends in a full stop: {text!r}"


def _of_style(style: Style) -> Iterator[str]:
    yield from _few("lines", style.lines)
    yield from _outside("line", style.lines, LINE)
    if not all(0.5 <= factor <= 2 for factor in (style.rate, style.range, style.gain)):
        yield "its factors are between 0.5 and 2"


def _of_followup(followup: Followup) -> Iterator[str]:
    if len(followup.say) < 2 or len(followup.facts) < 2:
        yield "two wordings and two facts at least"
    yield from _outside("query", followup.say, QUERY)
    yield from _outside("fact", followup.facts, FACT)
    for words in followup.say:
        yield from (f"{word} would tell: {words!r}" for word in told(words))


def _of_plain(pair: Plain) -> Iterator[str]:
    yield from _outside("question", [pair.question], QUESTION)
    yield from _outside("answer", [pair.answer], ANSWER)


def _repeats(texts: Texts) -> Iterator[str]:
    """What stands in two places."""
    for what, names in (
        ("frame", [f.id for f in texts.frames]),
        ("followup", [f.id for f in texts.followups]),
        ("strategy", [f"{s.dimension}/{s.label}" for s in texts.strategies]),
        ("style", [s.name for s in texts.styles]),
        ("question", [_plain_words(p.question) for p in texts.plain]),
        ("opening", [_plain_words(o) for s in texts.strategies for o in s.openings]),
        ("turn", [_plain_words(t) for s in texts.strategies for t in s.turns]),
        ("line", [_plain_words(line) for s in texts.styles for line in s.lines]),
    ):
        yield from (f"{what} {name}: there are {n} of it" for name, n in Counter(names).items() if n > 1)
    where: dict[str, tuple[str, str]] = {}
    said = [(words, f.id, f.part) for f in texts.frames for words, _ in f.queries()]
    said += [(words, f.id, f.part) for f in texts.followups for words in f.say]
    for words, name, part in said:
        first, its_part = where.setdefault(_plain_words(words), (name, part))
        if first != name:
            yield f"{name}: {first} ({its_part}) asks the same: {words!r}"


def _missing(texts: Texts) -> Iterator[str]:
    """What the set has too little of."""
    train = [f for f in texts.frames if f.part == "train"]
    have = {
        "train frames": len(train),
        "held-out frames": len(texts.frames) - len(train),
        "topics": len({f.topic for f in texts.frames}),
        "train queries": sum(1 for f in train for _ in f.queries()),
        "followups": len(texts.followups),
        "plain": len(texts.plain),
    }
    yield from (
        f"set: {have[what]} {what}; at least {least}" for what, least in LEAST_OF_SET.items() if have[what] < least
    )
    written = {(s.dimension, s.label) for s in texts.strategies}
    wanted = {(dimension, label) for dimension, labels in LABELS.items() for label in labels}
    yield from (f"set: no strategy for {dimension}/{label}" for dimension, label in sorted(wanted - written))
    yield from (f"set: no style {name}" for name in STYLES if name not in {s.name for s in texts.styles})
