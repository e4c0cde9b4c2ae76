"""The texts of the open set for AEQ-Bench, as their author writes them, and the check that they keep the rules.

A group is one utterance. In a context group it is said in a neutral voice and the background decides what it asks for;
in a tone group the background stays and the voice decides. Whoever ignores what varies gives one answer to all.
No text says whether its speaker is a man or a woman, so any voice may speak it.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from overtone.build import rules
from overtone.build.gates._lexicon import tells, tones
from overtone.build.script import LONGEST, MAX_BYTES, Dialogue, Script, read_collection
from overtone.cues import BY_SLUG, Cue
from overtone.errors import DataError
from overtone.paths import read_plain, shown
from overtone.spec import suggest

FOLDER = Path(__file__).parent / "aeq"
NEUTRAL = "neutral"
TONES = ("happy", "angry", "sad", "tired", "fear", "surprise", "disgust", "sobbing", "whisper", "laughter")  # our cues
EMOV_DB = {  # EmoV-DB's folder of a tone → the tones of ours that its recordings can stand for, the nearest first
    "neutral": (NEUTRAL,),
    "amused": ("laughter", "happy"),  # amused speech there is mostly spoken through laughter
    "angry": ("angry",),
    "sleepy": ("tired",),  # with yawns
    "disgust": ("disgust",),
}
WORDS = (7, 16)  # how many an utterance may have
SENTENCES = {"context": 3, "tone": 2}  # how many a context may have at most
VARIANTS = {"context": (2, 3), "tone": (4, 4)}  # how many a group has: from, to
REPLY_WORDS = (15, 30)
REPLY_RATIO = 1.35  # of the longest to the shortest reply of a group, in words
SAME_SITUATION = 0.4  # shared words ÷ all words, from which on two contexts of a group are one
TOPICS = (  # those of the open set
    *("beauty", "entertainment", "family", "finance", "food", "games", "health"),
    *("home", "school", "sports", "technology", "travel", "work"),
)
BALANCED = 26  # groups of a setting from which on its topics are balanced: each within a factor 2 of the mean
OPENING = 0.06  # how many of a set's replies may begin with the same word, as a share; from 100 replies on
COLOURED = ("positive", "negative", "harsh", "feeling")  # kinds of words that lean towards a tone
MANNER = ("physiological", "emotion", "volume", "speed", "nonverbal")  # categories of cues that a voice carries
NAMES = re.compile(  # capitalised words that name nobody and no firm
    r"Grandpa|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?|January|February|March|April|May|June|July|August|September|"
    r"October|November|December|Easter|New|Year|Italian|Europe|Mill|Street"
)
# what the lexicon's win\w*, won and mess\w* find, and does not mean
PLAIN = re.compile(r"\b(?:winter|windows?|wing|messages?|won't)\b", re.I)


class Variant(Struct, frozen=True, forbid_unknown_fields=True):
    """What varies, and what to answer then: a context, or a tone; the reference reply, and how it is spoken."""

    wants: str  # what the speaker needs here: for judges and people, never shown to a model
    reply: str
    style: str
    context: str = ""  # of a context group
    tone: str = ""  # of a tone group: neutral, or the slug of a cue

    @property
    def cue(self) -> Cue | None:
        """The cue that the voice carries; None where it is neutral."""
        return BY_SLUG.get(self.tone)


class Group(Struct, frozen=True, forbid_unknown_fields=True):
    """One utterance with its variants."""

    id: str
    setting: Literal["context", "tone"]
    topic: str
    words: str
    variant: tuple[Variant, ...]
    context: str = ""  # of a tone group, the same for all

    def context_of(self, variant: Variant) -> str:
        """The background before this variant's utterance."""
        return variant.context or self.context

    def name_of(self, variant: Variant) -> str:
        """The variant's id: the group's with its place, from 1, or with its tone."""
        return f"{self.id}-{variant.tone or self.variant.index(variant) + 1}"


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    group: tuple[Group, ...]


def read(folder: Path = FOLDER) -> list[Group]:
    """The groups of a folder's files, in the order of their names; DataError says which group is not whole, and why."""
    found: list[Group] = []
    seen: set[str] = set()
    paths = sorted(folder.glob("*.toml"))
    if not paths:
        raise DataError(f"{shown(str(folder))}: holds no file of groups (.toml)")
    for path in paths:
        try:
            file = msgspec.convert(tomllib.loads(read_plain(path, MAX_BYTES).decode("utf-8")), _File)
        except (UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
            raise DataError(f"{shown(path.name)}: cannot be read as groups: {error}") from error
        for group in file.group:
            if problem := "another group has this id" if group.id in seen else _problem(group):
                raise DataError(f"{shown(path.name)}: group {shown(group.id)}: {problem}")
            seen.add(group.id)
            found.append(group)
    return found


def _problem(group: Group) -> str:
    """What keeps a group from being spoken, or nothing."""
    if not re.fullmatch(rf"{group.setting}-\d{{1,6}}", group.id):
        return f"an id is the setting and a number, like {group.setting}-07"
    if not re.fullmatch(r"[a-z]{1,40}", group.topic):
        return f"a topic is one word of small letters, not {shown(group.topic)!r}"
    for variant in group.variant:
        for text in (group.words, group.context_of(variant), variant.reply, variant.wants, variant.style):
            if not text.strip() or len(text) > LONGEST or not text.isprintable():
                return f"its words, contexts, wants, replies and styles are 1 to {LONGEST} printable characters each"
        if group.setting == "context" and (variant.tone or group.context):
            return "in a context group each variant has a context of its own, and no tone"
        if group.setting == "tone" and variant.context:
            return "in a tone group the context stands before the variants, once"
        if group.setting == "tone" and variant.tone not in (NEUTRAL, *TONES):
            there = ", ".join((NEUTRAL, *TONES))
            return f"no tone {shown(variant.tone)!r}{suggest(variant.tone, TONES)}; there is: {there}"
    least, most = VARIANTS[group.setting]
    if not least <= len(group.variant) <= most:
        return f"{len(group.variant)} variants; a {group.setting} group has {least} to {most}"
    if len({variant.tone or variant.context for variant in group.variant}) < len(group.variant):
        return "two of its variants are the same"
    if group.setting == "tone" and group.variant[0].tone != NEUTRAL:
        return f"the first variant of a tone group is {NEUTRAL}"
    return ""


# ── the rules of writing ────────────────────────────────────────────────────────────────────────────────────────────


def problems(groups: Sequence[Group], others: Iterable[str] = ()) -> list[str]:
    """Every broken rule, as `id: what is wrong`. `others` are texts of other sets, of which nothing is said again."""
    found = [f"{group.id}: {what}" for group in groups for what in _of_group(group)]
    found += rules.too_alike([(group.id, group.words) for group in groups])
    found += _said_again(groups)
    known = {run for text in others for run in rules.runs(text)}
    for group in groups:
        for text in _texts(group):
            found += [
                f"{group.id}: also said in another set: {' '.join(run)!r}" for run in rules.runs(text) if run in known
            ]
    return found + list(_of_topics(groups)) + list(_of_openings(groups))


def open_texts(name: str = "open") -> Iterator[str]:
    """Everything said and answered in a set of scripts."""
    for one in read_collection(name).everything:
        if isinstance(one, Script):
            yield from (one.words, *one.reply.values())
        elif isinstance(one, Dialogue):
            yield from (one.steady_reply, *(t.words for t in one.turn), *(t.reply for t in one.turn))


def _of_group(group: Group) -> Iterator[str]:
    count = len(group.words.split())
    if not WORDS[0] <= count <= WORDS[1]:
        yield f"{count} words; an utterance has {WORDS[0]} to {WORDS[1]}"
    for sex in ("male", "female"):
        if told := tells()[sex].search(group.words):
            yield f"{told[0]!r} says who speaks, and any voice may"
    contexts = [group.context] if group.setting == "tone" else [v.context for v in group.variant]
    for text in contexts:
        if (count := len(re.findall(r"[.!?](?:\s|$)", text))) not in range(1, SENTENCES[group.setting] + 1):
            yield f"a context of {count} sentences; at most {SENTENCES[group.setting]}"
        if rules.runs(text) & rules.runs(group.words):
            yield "a context says the utterance before it is said"
    yield from _of_replies(group)
    for i, text in enumerate(contexts):
        for other in contexts[:i]:
            if rules.alike(text, other) >= SAME_SITUATION:
                yield "two of its contexts are almost the same situation"
    for text in _texts(group):
        for name in sorted(names(text)):
            yield f"{name!r} may be the name of somebody or of a firm"
    if group.setting == "tone":
        for where, text in (("the words", group.words), ("the context", group.context)):
            yield from (f"{where} lean towards a tone: {word!r}" for word in leanings(text))
        yield from (f"the neutral reply names the cue {named!r}" for named in rules.cues_in(group.variant[0].reply))


def _of_replies(group: Group) -> Iterator[str]:
    lengths = [len(variant.reply.split()) for variant in group.variant]
    if min(lengths) < REPLY_WORDS[0] or max(lengths) > REPLY_WORDS[1]:
        yield f"replies of {lengths} words; a reply has {REPLY_WORDS[0]} to {REPLY_WORDS[1]}"
    if max(lengths) > REPLY_RATIO * min(lengths):
        yield f"replies of {lengths} words: the longest may be {REPLY_RATIO} times the shortest"
    for i, one in enumerate(group.variant):
        for two in group.variant[:i]:
            if rules.alike(one.reply, two.reply) >= rules.ALIKE:
                yield f"the replies of {group.name_of(two)} and {group.name_of(one)} say almost the same"


def _said_again(groups: Sequence[Group]) -> Iterator[str]:
    first: dict[str, str] = {}
    for group in groups:
        contexts = [group.context] if group.setting == "tone" else [v.context for v in group.variant]
        for text in (*contexts, *(variant.reply for variant in group.variant)):
            key = " ".join(re.findall(r"\w+", text.lower()))
            if key in first:
                yield f"{group.id}: a context or reply that stands in {first[key]} too: {text!r}"
            first.setdefault(key, group.id)


def _of_topics(groups: Sequence[Group]) -> Iterator[str]:
    for setting in VARIANTS:
        counts = Counter(group.topic for group in groups if group.setting == setting)
        yield from (
            f"set: no topic {topic!r}; there is: {', '.join(TOPICS)}" for topic in counts if topic not in TOPICS
        )
        mean = counts.total() / len(TOPICS)
        for topic in TOPICS if counts.total() >= BALANCED else ():
            if not mean / 2 <= counts[topic] <= mean * 2:
                yield f"set: {counts[topic]} of {counts.total()} {setting} groups are about {topic}; balance them"


def _of_openings(groups: Sequence[Group]) -> Iterator[str]:
    """A reply that begins as all replies do is a template, and what a reply must show here is that it is none."""
    first = Counter(re.findall(r"[\w']+", v.reply)[0].lower() for group in groups for v in group.variant)
    for word, count in first.items():
        if first.total() >= 100 and count > OPENING * first.total():
            yield f"set: {count} of {first.total()} replies begin with {word!r}"


def leanings(text: str) -> list[str]:
    """The words of a text that would tell of a tone: by our lexicon of tones and cues, or by the taxonomy."""
    text = PLAIN.sub(" ", text)
    patterns = [tones()[kind] for kind in COLOURED]
    for cue in BY_SLUG.values():
        if cue.category in MANNER:
            patterns += [tells()[cue.slug], re.compile(cue.pattern, re.I)]
    return list(dict.fromkeys(match[0].lower() for pattern in patterns for match in pattern.finditer(text)))


def names(text: str) -> set[str]:
    """Capitalised words within a sentence that are no known name of a day, a month or the like."""
    inside = re.findall(r"(?<=[\w,;:] )[A-Z][\w]+", text)
    return {word for word in inside if not NAMES.fullmatch(word)}


def _texts(group: Group) -> list[str]:
    contexts = [group.context] if group.setting == "tone" else [v.context for v in group.variant]
    return [group.words, *contexts, *(variant.reply for variant in group.variant)]
