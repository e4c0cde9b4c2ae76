"""Read and check the written texts of the EChat-style data: queries, and replies that fit the delivery.

The texts are in texts/*.toml. A query is a frame's wording with its slots filled. A reply is an opening of a strategy,
a fact of the frame, and a turn of a strategy or an offer of the frame. The length limits of these pieces ensure that
any combination makes a reply of 12 to 32 words.
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
from overtone.cues import BY_SLUG, cues_in
from overtone.echat.data.labels import AGES, CUE_OF_LABEL, EMOTIONS, GENDERS, REPLY, SCENES, STYLES, VOCAL
from overtone.errors import DataError
from overtone.paths import read_plain, shown

FOLDER = Path(__file__).parent / "texts"
MAX_BYTES = 2_000_000
LONGEST = 300  # characters of one text

LABELS: Mapping[str, tuple[str, ...]] = {  # dimension → labels that need a strategy
    "emotion": tuple(name for name in EMOTIONS if name != "other"),
    "age": AGES,
    "gender": GENDERS,
    "event": (*(name for name in VOCAL if name != "other"), *SCENES),
}

QUERY, OPENING, FACT, CLOSE = (6, 16), (2, 10), (6, 13), (4, 9)  # minimum and maximum words
BECAUSE, QUESTION, ANSWER = (5, 15), (1, 18), (4, 32)
LINE = (5, 24)  # words of a style's line
LEAST = {"say": 3, "values": 6, "facts": 3, "offers": 2, "openings": 12, "turns": 6, "because": 5, "lines": 25}
LEAST_OF_SET = {"train frames": 160, "held-out frames": 40, "topics": 20, "train queries": 6000}
LEAST_OF_SET |= {"followups": 60, "plain": 300}
HARMLESS = re.compile(  # words that only resemble a revealing word
    r"\b(?:windows?|windowsill|cards?|cardboard|care|careful\w*|carry\w*|carr(?:ies|ied)|carrots?|carpets?)\b", re.I
)

Part = Literal["train", "held-out"]


class Frame(Struct, frozen=True, forbid_unknown_fields=True):
    """A question in several wordings that fit any voice. `topic` is a noun that fits after `help with`."""

    id: str
    topic: str
    part: Part
    say: tuple[str, ...]
    facts: tuple[str, ...]
    offers: tuple[str, ...]
    slots: dict[str, tuple[str, ...]] = {}

    def fillings(self) -> Iterator[dict[str, str]]:
        """Yield every combination of slot values, in the written order."""
        for values in itertools.product(*self.slots.values()):
            yield dict(zip(self.slots, values, strict=True))

    def queries(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield every distinct query with its slot values."""
        seen: set[str] = set()
        for filling in self.fillings():
            for wording in self.say:
                if (words := wording.format(**filling)) not in seen:
                    seen.add(words)
                    yield words, filling


class Strategy(Struct, frozen=True, forbid_unknown_fields=True):
    """The texts of replies to one label. All parts share the strategies; only queries and voices are held out."""

    dimension: Literal["emotion", "age", "gender", "event"]
    label: str
    part: Part
    reply_emotion: str
    openings: tuple[str, ...]
    turns: tuple[str, ...]  # may have the slot {topic_noun}
    because: tuple[str, ...]  # clauses for a thought, without capital or full stop


class Style(Struct, frozen=True, forbid_unknown_fields=True):
    """Lines of one genre, and the factors on pace, pitch range and level with which they are read."""

    name: str
    rate: float
    range: float
    gain: float
    lines: tuple[str, ...]


class Followup(Struct, frozen=True, forbid_unknown_fields=True):
    """A follow-up question. It may follow any frame or, with `topic`, only frames of that topic."""

    id: str
    part: Part
    say: tuple[str, ...]
    facts: tuple[str, ...]
    topic: str = ""


class Plain(Struct, frozen=True, forbid_unknown_fields=True):
    """A question and its answer, as text only."""

    question: str
    answer: str


class Texts(Struct, frozen=True):
    """All written texts."""

    frames: tuple[Frame, ...] = ()
    strategies: tuple[Strategy, ...] = ()
    styles: tuple[Style, ...] = ()
    followups: tuple[Followup, ...] = ()
    plain: tuple[Plain, ...] = ()

    def strategy(self, dimension: str, label: str) -> Strategy:
        """Return the strategy for a label. Raises KeyError."""
        for strategy in self.strategies:
            if (strategy.dimension, strategy.label) == (dimension, label):
                return strategy
        raise KeyError(f"{dimension}/{label}")

    def check(self) -> list[str]:
        """Return every broken rule as `text: problem`; [] if the texts are ready to be built."""
        problems = [f"frame {f.id}: {what}" for f in self.frames for what in _check_frame(f)]
        problems += [f"strategy {s.dimension}/{s.label}: {p}" for s in self.strategies for p in _check_strategy(s)]
        problems += [f"style {s.name}: {what}" for s in self.styles for what in _check_style(s)]
        problems += [f"followup {f.id}: {what}" for f in self.followups for what in _check_followup(f)]
        problems += [f"plain {p.question!r}: {what}" for p in self.plain for what in _check_plain(p)]
        return problems + list(_repeats(self)) + list(_missing(self))


_KINDS: dict[str, tuple[str, type[Struct]]] = {  # table → field of Texts, type
    "frame": ("frames", Frame),
    "strategy": ("strategies", Strategy),
    "style": ("styles", Style),
    "followup": ("followups", Followup),
    "plain": ("plain", Plain),
}


def read(folder: Path = FOLDER) -> Texts:
    """Read the texts of a folder, in the order of file names. Raises DataError with file, line and reason."""
    paths = sorted(folder.glob("*.toml"))
    if not paths:
        raise DataError(f"{shown(str(folder))}: no texts; give a folder with the .toml files of the texts")
    values: dict[str, list[Any]] = {field: [] for field, _ in _KINDS.values()}
    for path in paths:
        for field, value in _tables(path):
            values[field].append(value)
    return Texts(**{field: tuple(several) for field, several in values.items()})


def _tables(path: Path) -> Iterator[tuple[str, Struct]]:
    """Yield each table of a file: the name of its field in Texts, and its value."""
    try:
        text = read_plain(path, MAX_BYTES).decode("utf-8")
        tree = tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataError(f"{shown(path.name)}: invalid TOML: {error}") from error
    for kind, tables in tree.items():
        if kind not in _KINDS or not isinstance(tables, list):
            raise DataError(f"{shown(path.name)}: unknown table [[{shown(kind)}]]; known: {', '.join(_KINDS)}")
        lines = [n for n, line in enumerate(text.splitlines(), 1) if line.strip().startswith(f"[[{kind}]]")]
        for line, table in itertools.zip_longest(lines, tables, fillvalue=0):
            field, shape = _KINDS[kind]
            try:
                value = msgspec.convert(table, shape)
            except msgspec.ValidationError as error:
                raise DataError(f"{shown(path.name)}, line {line}: invalid {kind}: {error}") from error
            if problem := _unusable(value):
                raise DataError(f"{shown(path.name)}, line {line}: {problem}")
            yield field, value


def _unusable(value: Struct) -> str:
    """Return the reason why a text cannot be composed or spoken, or "". `check` covers the writing rules."""
    for text in _texts_of(value):
        if not text.strip() or text != text.strip() or len(text) > LONGEST or not text.isprintable():
            return f"{shown(text)[:60]!r}: must be 1 to {LONGEST} printable characters without spaces at its ends"
        slots = set(value.slots) if isinstance(value, Frame) else set()
        if isinstance(value, Strategy) and text in value.turns:
            slots = {"topic_noun"}
        try:
            extra = slots_in(text) - slots
        except ValueError as error:
            return f"{shown(text)[:60]!r}: {error}"
        if extra:
            return f"{shown(text)[:60]!r}: unknown slot {', '.join(sorted(extra))}; known: {', '.join(slots) or 'none'}"
    if isinstance(value, Strategy):
        if value.label not in LABELS[value.dimension]:
            return f"unknown {value.dimension} {shown(value.label)!r}; known: {', '.join(LABELS[value.dimension])}"
        if value.reply_emotion not in REPLY:
            return f"unknown reply emotion {shown(value.reply_emotion)!r}; known: {', '.join(REPLY)}"
    if isinstance(value, Style) and value.name not in STYLES:
        return f"unknown style {shown(value.name)!r}; known: {', '.join(STYLES)}"
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
    """Return the names of a text's slots. Raises ValueError for unmatched braces."""
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


# ── the rules of writing ────────────────────────────────────────────────────────────────────────────────────────────


@functools.cache
def _revealing() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return, for every cue with a label, its slug and a pattern of words that reveal it."""
    slugs = {CUE_OF_LABEL.get((kind, label)) for kind, labels in LABELS.items() for label in labels}
    return tuple((slug, pattern) for slug, pattern in tells().items() if slug in slugs)


def revealing_words(words: str) -> list[str]:
    """Return the words of a query that reveal its delivery, speaker or place, as `word (cue)`."""
    plain = HARMLESS.sub("·", words)
    matches = [f"{match[0]!r} ({slug})" for slug, pattern in _revealing() if (match := pattern.search(plain))]
    return matches + [f"names {BY_SLUG[slug].phrase}" for slug in cues_in(plain)]


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
        yield f"duplicates among its {what}"


def _plain_words(text: str) -> str:
    return " ".join(re.findall(r"[\w'{}]+", text.lower()))


def _check_frame(frame: Frame) -> Iterator[str]:
    if not re.fullmatch(r"[a-z]+-\d\d", frame.id) or not re.fullmatch(r"[a-z]+", frame.topic):
        yield "an id must be a word, a dash and two digits; a topic must be one lower-case word"
    for what in ("say", "facts", "offers"):
        yield from _few(what, getattr(frame, what))
    for slot, values in frame.slots.items():
        yield from _few("values", values)
        if not any(f"{{{slot}}}" in wording for wording in frame.say):
            yield f"no wording uses its slot {slot}"
    for wording in frame.say:
        yield from itertools.islice(_outside("query", _filled(frame, wording), QUERY), 1)
        for word in dict.fromkeys(word for words in _filled(frame, wording) for word in revealing_words(words)):
            yield f"{word} reveals the cue: {wording!r}"
        if not wording.format(**next(frame.fillings()))[0].isupper() or wording[-1] not in ".!?":
            yield f"a query must begin with a capital and end with . ! or ?: {wording!r}"
    for what, texts, limits in (("fact", frame.facts, FACT), ("offer", frame.offers, CLOSE)):
        for text in texts:
            yield from itertools.islice(_outside(what, _filled(frame, text), limits), 1)


def _filled(frame: Frame, text: str) -> list[str]:
    """Return the text with its slots filled in several ways, which include every value and the shortest and longest
    ones."""
    names = slots_in(text)
    if not names:
        return [text]
    ordered = {name: sorted(frame.slots[name], key=_count) for name in names}
    longest = max(map(len, ordered.values()))
    return [
        text.format(**{name: values[min(at, len(values) - 1)] for name, values in ordered.items()})
        for at in range(longest)
    ]


def _check_strategy(s: Strategy) -> Iterator[str]:
    for what in ("openings", "turns", "because"):
        yield from _few(what, getattr(s, what))
    yield from _outside("opening", s.openings, OPENING)
    yield from _outside("turn", s.turns, CLOSE)
    yield from _outside("because", s.because, BECAUSE)
    for clause in s.because:
        if clause[-1] in ".!?" or (clause[0].isupper() and not clause.startswith("I ")):
            yield f"a clause must have no capital and no full stop: {clause!r}"
    for text in (*s.openings, *s.turns):
        if text[-1] not in ".!?":
            yield f"a sentence must end with . ! or ?: {text!r}"


def _check_style(style: Style) -> Iterator[str]:
    yield from _few("lines", style.lines)
    yield from _outside("line", style.lines, LINE)
    if not all(0.5 <= factor <= 2 for factor in (style.rate, style.range, style.gain)):
        yield "its factors must be between 0.5 and 2"


def _check_followup(followup: Followup) -> Iterator[str]:
    if len(followup.say) < 2 or len(followup.facts) < 2:
        yield "at least two wordings and two facts are required"
    yield from _outside("query", followup.say, QUERY)
    yield from _outside("fact", followup.facts, FACT)
    for words in followup.say:
        yield from (f"{word} reveals the cue: {words!r}" for word in revealing_words(words))


def _check_plain(pair: Plain) -> Iterator[str]:
    yield from _outside("question", [pair.question], QUESTION)
    yield from _outside("answer", [pair.answer], ANSWER)


def _repeats(texts: Texts) -> Iterator[str]:
    """Yield duplicates."""
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
        yield from (f"{what} {name}: {n} times" for name, n in Counter(names).items() if n > 1)
    where: dict[str, tuple[str, str]] = {}
    said = [(words, f.id, f.part) for f in texts.frames for words, _ in f.queries()]
    said += [(words, f.id, f.part) for f in texts.followups for words in f.say]
    for words, name, part in said:
        first, its_part = where.setdefault(_plain_words(words), (name, part))
        if first != name:
            yield f"{name}: {first} ({its_part}) has the same query: {words!r}"


def _missing(texts: Texts) -> Iterator[str]:
    """Yield a message for each kind of text of which the set has too few."""
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
