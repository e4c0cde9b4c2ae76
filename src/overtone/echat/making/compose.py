"""Exchanges of the open EChat set, composed from written texts: what is asked in which way, the reply and the thought.

A question is spoken in several wordings and in several ways; the same question in the same way has one reply, whatever
its wording, and in another way another one. So a reply can only be foretold by listening. Every choice is drawn from
what it is for, never from a running number: a text more or less changes nothing elsewhere.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec
import numpy as np
from msgspec import Struct

from overtone.build.draw import random_of
from overtone.echat.data.labels import Labels, label
from overtone.echat.making.texts import Followup, Frame, Texts, slots_in
from overtone.echat.making.ways import Turns, Way, drawn, number, ways

# A few more than are wanted (20,000 in train, 300 in dev, 600 in each test): the gates leave some out.
SIZES = {"train": 21_600, "dev": 340, "seen": 720, "recipe": 720, "engine": 720, "style": 400, "words": 6_000}
PARTS = tuple(SIZES)
HEARD = {
    "style": "<TRANSCRIBE> <STYLE>",
    "words": "<TRANSCRIBE>",
}  # parts to be trained on, but not answered: their tasks
TESTS = ("seen", "recipe", "engine")  # said in the same words, so that they can be compared
TWO_TURNS = 0.045  # share of exchanges that follow another one
CHANGED = 0.4  # share of these where the second turn is said in another emotion
DEV_SHARE = 0.15  # of the held-out frames
PER_QUESTION = 3  # ways in which a question is said in train, at first
THOUGHT_WORDS = 45

T = TypeVar("T")


class Exchange(Struct, frozen=True):
    """A query said in one way, and its reply. `labels` are those it is about; `heard` all that is true of it."""

    key: str
    part: str
    group: str  # the query: the same words in other ways
    kind: str
    question: str
    labels: Labels
    heard: Labels
    cues: tuple[str, ...] = ()
    sex: str = ""  # of the speaker
    voice: str = ""  # what decides who speaks it
    person: str = ""  # what decides the speaker's day, the room and the level
    reply_emotion: str = ""
    txt: str = ""
    think_str: str = ""
    first: str = ""  # key of the exchange it follows
    manner: tuple[float, float, float] = (1.0, 1.0, 1.0)  # of a style: factors of pace, of the pitch's range, of level


def compose(texts: Texts, seed: int = 0, sizes: Mapping[str, int] = SIZES) -> list[Exchange]:
    """Every exchange of the parts asked for that our texts are for, part by part."""
    every = ways(texts)
    out: list[Exchange] = []
    held = drawn([f for f in texts.frames if f.part == "held-out"], seed, "frames", lambda f: f.id)
    cut = max(1, round(DEV_SHARE * len(held))) if len(held) > 1 else 0
    frames = {"train": [f for f in texts.frames if f.part == "train"], "dev": held[:cut]}
    for part, size in sizes.items():
        if part == "words":
            continue  # nothing we wrote: words.py
        if part == "style":
            out += _styled(texts, seed, size)
        elif part == "train":
            out += _train(texts, frames[part], every, seed, size)
        else:
            out += _grouped(texts, frames.get(part, held[cut:]), every, seed, part, size)
    return out


def sizes_for(count: int, only: Sequence[str] = ()) -> dict[str, int]:
    """How large each part is beside a train part of that size; the others shrink with it, down to a few."""
    share = min(1.0, count / SIZES["train"])
    found = {p: count if p == "train" else max(4, 2 * round(share * n / 2)) for p, n in SIZES.items()}
    return {part: n for part, n in found.items() if not only or part in only}


# ── parts ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _train(
    texts: Texts, frames: Sequence[Frame], every: Mapping[str, Sequence[Way]], seed: int, size: int
) -> list[Exchange]:
    """Each question in some ways, in all its wordings, until there are enough; then what follows some of them."""
    single = size - round(TWO_TURNS * size) if texts.followups else size
    questions = [(frame, *question) for frame in frames for question in _questions(frame)]
    questions = drawn(questions, seed, "questions", lambda q: f"{q[0].id}/{q[1]}")
    turns = Turns(every, seed, "train")
    out: list[Exchange] = []
    used: dict[int, set[Labels]] = {}
    limit = sum(map(len, every.values()))
    for several in (PER_QUESTION, *[1] * limit):
        for at, (frame, filling, wordings) in enumerate(questions):
            for _ in range(several):
                way = turns.next(len(wordings))
                if way.labels in used.setdefault(at, set()):
                    continue
                used[at].add(way.labels)
                out += [_exchange("train", frame, filling, w, way, seed, sex_of(seed, w.text)) for w in wordings]
            if len(out) >= single:
                return out[:single] + _follow(texts, out[:single], every, seed, size - single)
    return out + _follow(texts, out, every, seed, size - single)


def _grouped(
    texts: Texts, frames: Sequence[Frame], every: Mapping[str, Sequence[Way]], seed: int, part: str, size: int
) -> list[Exchange]:
    """Each query in two ways of one kind by one speaker; the parts of the test share queries and ways."""
    queries = [(f, filling, wording) for f in frames for filling, wordings in _questions(f) for wording in wordings]
    queries = drawn(queries, seed, "test", lambda q: f"{q[0].id}/{q[2].text}")
    seen: Counter[str] = Counter()
    rank: dict[str, int] = {}
    for frame, _, wording in queries:  # frame by frame in turn, so that a small part has them all
        rank[wording.text] = seen[frame.id]
        seen[frame.id] += 1
    queries.sort(key=lambda q: rank[q[2].text])
    turns = Turns(every, seed, "dev" if part == "dev" else "test")
    out: list[Exchange] = []
    for frame, filling, wording in queries:
        if len(out) + 2 > size:
            break
        sex = sex_of(seed, wording.text)
        pair = [_exchange(part, frame, filling, wording, way, seed, sex) for way in turns.pair()]
        if pair[0].key != pair[1].key:
            out += pair
    return out


def _styled(texts: Texts, seed: int, size: int) -> list[Exchange]:
    """Lines of the eight styles, for the first stage: to be written down and named, not answered."""
    lines = [(style, line) for style in texts.styles for line in style.lines]
    out: list[Exchange] = []
    for turn in range(-(-size // max(len(lines), 1)) if lines else 0):
        for style, line in drawn(lines, seed, f"styles/{turn}", lambda x: x[1]):
            name = label("style", style.name)
            key = key_of("style", name.replace(" ", "-"), line, str(turn))
            sex = sex_of(seed, f"{line}/{turn}")
            out.append(
                Exchange(
                    key, "style", f"style/{line}", "style", line, Labels(style=name),
                    Labels(age="adult", gender=sex, style=name), sex=sex, voice=f"{line}/{turn}", person=key, txt=line,
                    manner=(style.rate, style.range, style.gain),
                )
            )  # fmt: skip
    return out[:size]


def _exchange(
    part: str, frame: Frame, filling: dict[str, str], wording: Wording, way: Way, seed: int, sex: str
) -> Exchange:
    key = key_of(part, frame.id, wording.text, way.name)
    group = key_of("query", frame.id, wording.text)
    for_reply = random_of(seed, "reply", frame.id, str(filling), way.name)
    # a reply speaks only of what was said
    facts, offers = (
        [t.format(**filling) for t in those if slots_in(t) <= wording.slots] for those in (frame.facts, frame.offers)
    )
    fact = _one(facts, for_reply)
    return Exchange(
        key, part, group, way.kind, wording.text, way.labels, all_heard(way.labels, sex), way.cues,
        way.labels.gender or sex, voice=wording.text, person=key if part == "train" else group,
        reply_emotion=way.strategies[0].reply_emotion,
        txt=_reply(way, fact, frame.topic, offers, for_reply),
        think_str=_thought(way, frame.topic, for_reply),
    )  # fmt: skip


def _follow(
    texts: Texts, before: Sequence[Exchange], every: Mapping[str, Sequence[Way]], seed: int, count: int
) -> list[Exchange]:
    """What is asked next, by the same speaker in the same way or, now and then, in another emotion."""
    topics = {f"{f.id}": f.topic for f in texts.frames}
    followups = [f for f in texts.followups if f.part == "train"]
    by_name = {(w.kind, w.labels): w for those in every.values() for w in those}
    out = []
    for x in drawn(before, seed, "followed", lambda x: x.key)[:count]:
        rng = random_of(seed, "followup", x.key)
        topic = topics[x.key.split("_")[1]]
        fits = [f for f in followups if f.topic in ("", topic)]
        if not fits:
            continue
        way = by_name[x.kind, x.labels]
        if x.kind == "emotion" and rng.random() < CHANGED:
            way = _one([w for w in every["emotion"] if w.labels != way.labels] or [way], rng)
        out.append(_next(x, _one(fits, rng), topic, way, rng))
    return out


def _next(x: Exchange, followup: Followup, topic: str, way: Way, rng: np.random.Generator) -> Exchange:
    question = _one(followup.say, rng)
    key = key_of(x.part, followup.id, question, way.name, x.key)
    return msgspec.structs.replace(
        x, key=key, group=key, question=question, kind=way.kind, labels=way.labels, heard=all_heard(way.labels, x.sex),
        cues=way.cues, reply_emotion=way.strategies[0].reply_emotion,
        txt=_reply(way, _one(followup.facts, rng), topic, (), rng), think_str=_thought(way, topic, rng), first=x.key,
    )  # fmt: skip


# ── words ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _reply(way: Way, fact: str, topic: str, offers: Sequence[str], rng: np.random.Generator) -> str:
    """An opening that answers to what was heard most, a fact, and a turn to what was heard besides, or an offer."""
    opening = _one(way.strategies[0].openings, rng)
    turns = [turn.format(topic_noun=topic) for turn in way.strategies[-1 if len(way.strategies) == 1 else 1].turns]
    last = _one(offers, rng) if offers and len(way.strategies) == 1 and rng.random() < 0.5 else _one(turns, rng)
    return f"{opening} {fact} {last}"


def spoken_answer(way: Way, rng: np.random.Generator) -> tuple[str, str]:
    """A reply and a thought to words that we did not write: what was heard is answered, and nothing is claimed."""
    reply = f"{_one(way.strategies[0].openings, rng)} {_one(way.strategies[0].turns, rng).format(topic_noun='that')}"
    return reply, _thought(way, "something of their day", rng)


_NOBODY = "someone"
_WHO = {
    ("child", ""): "a child",
    ("adult", ""): "a grown-up",
    ("old", ""): "an old person",
    ("adult", "male"): "a grown man",
    ("adult", "female"): "a grown woman",
    ("old", "male"): "an old man",
    ("old", "female"): "an old woman",
    ("", "male"): "a man",
    ("", "female"): "a woman",
    ("", ""): _NOBODY,
}
_FEELS = {
    "happy": "who sounds happy",
    "sad": "who sounds sad",
    "anger": "who sounds angry",
    "fear": "who sounds afraid",
    "surprise": "who sounds surprised",
    "disgust": "who sounds disgusted",
    "neutral": "in an even voice",
}
_DOES = {"laugh": "laughing", "cough": "coughing", "cry": "crying", "sigh": "sighing"}
_WANTS = ("They ask about {}.", "They want help with {}.", "It is about {}.", "The question is about {}.")
_SHOULD = {
    "joyful": ("I should sound glad and help.", "I should answer brightly."),
    "apologetic": ("I should be considerate and answer briefly.", "I should say sorry and then help."),
    "happy": ("I should share the good mood and answer.", "I should answer cheerfully."),
    "angry": ("I should take their side and then help.",),
    "surprised": ("I should share the surprise and then answer.", "I should wonder with them and help."),
    "disgusted": ("I should agree that it is unpleasant and then help.",),
    "sad": ("I should share the sadness and answer softly.",),
    "afraid": ("I should take the worry seriously and answer.",),
    "tearful": ("I should show that I am moved and then help.",),
    "comforting": ("I should comfort them first and then answer gently.", "I should be gentle and reassure them."),
    "neutral": ("I should answer plainly.", "I should simply give a clear answer."),
}


def _thought(way: Way, topic: str, rng: np.random.Generator) -> str:
    """What was heard, why it is thought so, what is wanted, and what to do: at most THOUGHT_WORDS words."""
    told = way.labels
    heard = [_WHO[told.age, told.gender]]
    heard += [_FEELS[told.emotion]] if told.emotion else []
    if told.event:
        heard.append(_DOES.get(told.event) or f"with the sound of {told.event} behind the voice")
    who = " ".join(heard)
    reason, wants = _one(way.strategies[0].because, rng), _one(_WANTS, rng).format(topic)
    return f"{who[0].upper()}{who[1:]}: {reason}. {wants} {_one(_SHOULD[way.strategies[0].reply_emotion], rng)}"


def all_heard(told: Labels, sex: str) -> Labels:
    """All that is true of a clip in a voice of that sex. A laugh or a sob says what is felt without being an emotion of
    ours; whether a voice made a child's is a boy's or a girl's nobody can say."""
    feeling = told.emotion or ("neutral" if told.event not in ("laugh", "cry", "sigh") else "")
    age = told.age or "adult"
    return Labels(feeling, age, "" if age == "child" else told.gender or sex, told.event)


# ── draws ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Wording(Struct, frozen=True):
    """A query, and which slots of its frame it fills."""

    text: str
    slots: frozenset[str]


def _questions(frame: Frame) -> Iterator[tuple[dict[str, str], list[Wording]]]:
    """Each filling with the wordings that are new with it; a frame some of whose facts need no slot is asked in every
    wording, another only in those that its facts can answer."""
    seen: set[str] = set()
    for filling in frame.fillings():
        every = [Wording(w.format(**filling), frozenset(slots_in(w))) for w in frame.say]
        new = [w for w in every if w.text not in seen and any(slots_in(f) <= w.slots for f in frame.facts)]
        seen |= {w.text for w in new}
        if new:
            yield filling, new


def key_of(*parts: str) -> str:
    digest = hashlib.sha256("/".join(parts).encode()).hexdigest()[:10]
    return f"{parts[0]}_{parts[1]}_{digest}"


def sex_of(seed: int, what: str) -> str:
    return ("male", "female")[number(seed, "sex", what) % 2]


def _one(those: Sequence[T], rng: np.random.Generator) -> T:
    return those[int(rng.integers(len(those)))]
