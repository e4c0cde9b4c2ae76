"""Compose the exchanges of the open EChat set from written texts: query, delivery, reply and thought.

A question has several wordings and several deliveries. The same question in the same delivery has one reply, whatever
its wording; another delivery has another reply. So only listening predicts the reply. Every random choice is seeded by
its purpose, not by a running number, so adding a text changes nothing elsewhere.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec
import numpy as np
from msgspec import Struct

from overtone.build.tract import random_of
from overtone.echat.data.labels import Labels, label
from overtone.echat.making.deliveries import Delivery, Rotation, deliveries, hash_number, shuffled
from overtone.echat.making.texts import Followup, Frame, Texts, slots_in

# A few more than needed (20,000 in train, 300 in dev, 600 in each test), because the gates remove some.
SIZES = {"train": 21_600, "dev": 340, "seen": 720, "recipe": 720, "engine": 720, "style": 400, "words": 6_000}
PARTS = tuple(SIZES)
HEARD = {
    "style": "<TRANSCRIBE> <STYLE>",
    "words": "<TRANSCRIBE>",
}  # training parts without replies, and their tasks
TWO_TURNS = 0.045  # share of exchanges that follow another one
CHANGED = 0.4  # share of follow-ups to emotions that have another emotion
DEV_SHARE = 0.15  # share of the held-out frames
PER_QUESTION = 3  # deliveries of a question in the first pass over train

T = TypeVar("T")


class Exchange(Struct, frozen=True):
    """A query in one delivery, and its reply. `labels` are the labels it is about; `heard` are all its labels."""

    key: str
    part: str
    group: str  # identifies the query; the same words in other deliveries share it
    kind: str
    question: str
    labels: Labels
    heard: Labels
    cues: tuple[str, ...] = ()
    sex: str = ""  # of the speaker
    voice: str = ""  # seed for the choice of the speaker
    person: str = ""  # seed for the variation between recordings: voice, room and level
    reply_emotion: str = ""
    txt: str = ""
    think_str: str = ""
    first: str = ""  # key of the exchange it follows
    manner: tuple[float, float, float] = (1.0, 1.0, 1.0)  # a style's factors on pace, pitch range and level


def compose(texts: Texts, seed: int = 0, sizes: Mapping[str, int] = SIZES) -> list[Exchange]:
    """Compose the exchanges of the requested parts, except `words`, which comes from WordNet."""
    every = deliveries(texts)
    out: list[Exchange] = []
    held = shuffled([f for f in texts.frames if f.part == "held-out"], seed, "frames", lambda f: f.id)
    cut = max(1, round(DEV_SHARE * len(held))) if len(held) > 1 else 0
    frames = {"train": [f for f in texts.frames if f.part == "train"], "dev": held[:cut]}
    for part, size in sizes.items():
        if part == "words":
            continue  # wordnet_examples.py composes this part
        if part == "style":
            out += _styled(texts, seed, size)
        elif part == "train":
            out += _train(texts, frames[part], every, seed, size)
        else:
            out += _grouped(texts, frames.get(part, held[cut:]), every, seed, part, size)
    return out


def sizes_for(count: int, only: Sequence[str] = ()) -> dict[str, int]:
    """Return the size of each part if the part `train` has `count` exchanges.

    The other parts shrink in proportion, but keep at least 4 exchanges.
    """
    share = min(1.0, count / SIZES["train"])
    sizes = {p: count if p == "train" else max(4, 2 * round(share * n / 2)) for p, n in SIZES.items()}
    return {part: n for part, n in sizes.items() if not only or part in only}


# ── parts ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _train(
    texts: Texts, frames: Sequence[Frame], every: Mapping[str, Sequence[Delivery]], seed: int, size: int
) -> list[Exchange]:
    """Compose train: questions in several deliveries and all their wordings, then follow-ups, `size` in total."""
    single = size - round(TWO_TURNS * size) if texts.followups else size
    questions = [(frame, *question) for frame in frames for question in _questions(frame)]
    questions = shuffled(questions, seed, "questions", lambda q: f"{q[0].id}/{q[1]}")
    rotation = Rotation(every, seed, "train")
    out: list[Exchange] = []
    used: dict[int, set[Labels]] = {}
    limit = sum(map(len, every.values()))
    for several in (PER_QUESTION, *[1] * limit):
        for at, (frame, filling, wordings) in enumerate(questions):
            for _ in range(several):
                delivery = rotation.next(len(wordings))
                if delivery.labels in used.setdefault(at, set()):
                    continue
                used[at].add(delivery.labels)
                out += [_exchange("train", frame, filling, w, delivery, seed, sex_of(seed, w.text)) for w in wordings]
            if len(out) >= single:
                return out[:single] + _follow(texts, out[:single], every, seed, size - single)
    return out + _follow(texts, out, every, seed, size - single)


def _grouped(
    texts: Texts, frames: Sequence[Frame], every: Mapping[str, Sequence[Delivery]], seed: int, part: str, size: int
) -> list[Exchange]:
    """Compose dev or a test part: every query in two deliveries of one kind by one speaker.

    The test parts share queries and deliveries.
    """
    queries = [(f, filling, wording) for f in frames for filling, wordings in _questions(f) for wording in wordings]
    queries = shuffled(queries, seed, "test", lambda q: f"{q[0].id}/{q[2].text}")
    seen: Counter[str] = Counter()
    rank: dict[str, int] = {}
    for frame, _, wording in queries:  # take frames in rotation, so that a small part has all frames
        rank[wording.text] = seen[frame.id]
        seen[frame.id] += 1
    queries.sort(key=lambda q: rank[q[2].text])
    rotation = Rotation(every, seed, "dev" if part == "dev" else "test")
    out: list[Exchange] = []
    for frame, filling, wording in queries:
        if len(out) + 2 > size:
            break
        sex = sex_of(seed, wording.text)
        pair = [_exchange(part, frame, filling, wording, delivery, seed, sex) for delivery in rotation.pair()]
        if pair[0].key != pair[1].key:
            out += pair
    return out


def _styled(texts: Texts, seed: int, size: int) -> list[Exchange]:
    """Compose the part `style`: lines of the eight styles to transcribe and classify, without replies."""
    lines = [(style, line) for style in texts.styles for line in style.lines]
    out: list[Exchange] = []
    for turn in range(-(-size // max(len(lines), 1)) if lines else 0):
        for style, line in shuffled(lines, seed, f"styles/{turn}", lambda x: x[1]):
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
    part: str, frame: Frame, filling: dict[str, str], wording: Wording, delivery: Delivery, seed: int, sex: str
) -> Exchange:
    key = key_of(part, frame.id, wording.text, delivery.name)
    group = key_of("query", frame.id, wording.text)
    for_reply = random_of(seed, "reply", frame.id, str(filling), delivery.name)
    # a reply mentions only things that the query named
    facts, offers = (
        [t.format(**filling) for t in some if slots_in(t) <= wording.slots] for some in (frame.facts, frame.offers)
    )
    fact = _choose(facts, for_reply)
    return Exchange(
        key, part, group, delivery.kind, wording.text, delivery.labels, all_heard(delivery.labels, sex), delivery.cues,
        delivery.labels.gender or sex, voice=wording.text, person=key if part == "train" else group,
        reply_emotion=delivery.strategies[0].reply_emotion,
        txt=_reply(delivery, fact, frame.topic, offers, for_reply),
        think_str=_thought(delivery, frame.topic, for_reply),
    )  # fmt: skip


def _follow(
    texts: Texts, before: Sequence[Exchange], every: Mapping[str, Sequence[Delivery]], seed: int, count: int
) -> list[Exchange]:
    """Compose follow-up queries by the same speaker. The delivery stays; an emotion occasionally changes."""
    topics = {f"{f.id}": f.topic for f in texts.frames}
    followups = [f for f in texts.followups if f.part == "train"]
    by_labels = {(d.kind, d.labels): d for several in every.values() for d in several}
    out = []
    for x in shuffled(before, seed, "followed", lambda x: x.key)[:count]:
        rng = random_of(seed, "followup", x.key)
        topic = topics[x.key.split("_")[1]]
        fits = [f for f in followups if f.topic in ("", topic)]
        if not fits:
            continue
        delivery = by_labels[x.kind, x.labels]
        if x.kind == "emotion" and rng.random() < CHANGED:
            others = [d for d in every["emotion"] if d.labels != delivery.labels]
            delivery = _choose(others or [delivery], rng)
        out.append(_next(x, _choose(fits, rng), topic, delivery, rng))
    return out


def _next(x: Exchange, followup: Followup, topic: str, delivery: Delivery, rng: np.random.Generator) -> Exchange:
    question = _choose(followup.say, rng)
    key = key_of(x.part, followup.id, question, delivery.name, x.key)
    return msgspec.structs.replace(
        x, key=key, group=key, question=question, kind=delivery.kind, labels=delivery.labels,
        heard=all_heard(delivery.labels, x.sex), cues=delivery.cues, first=x.key,
        reply_emotion=delivery.strategies[0].reply_emotion,
        txt=_reply(delivery, _choose(followup.facts, rng), topic, (), rng), think_str=_thought(delivery, topic, rng),
    )  # fmt: skip


# ── words ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _reply(delivery: Delivery, fact: str, topic: str, offers: Sequence[str], rng: np.random.Generator) -> str:
    """Return a reply: an opening that responds to the main label, a fact, and a sentence for the second label or an
    offer."""
    strategies = delivery.strategies
    opening = _choose(strategies[0].openings, rng)
    turns = [turn.format(topic_noun=topic) for turn in strategies[-1 if len(strategies) == 1 else 1].turns]
    last = _choose(offers, rng) if offers and len(strategies) == 1 and rng.random() < 0.5 else _choose(turns, rng)
    return f"{opening} {fact} {last}"


def spoken_answer(delivery: Delivery, rng: np.random.Generator) -> tuple[str, str]:
    """Return a reply and a thought for words from a corpus. The reply answers the delivery and states no facts."""
    strategy = delivery.strategies[0]
    reply = f"{_choose(strategy.openings, rng)} {_choose(strategy.turns, rng).format(topic_noun='that')}"
    return reply, _thought(delivery, "something of their day", rng)


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
    ("", ""): "someone",
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


def _thought(delivery: Delivery, topic: str, rng: np.random.Generator) -> str:
    """Return a thought: the labels heard, the evidence, the request, and the way to answer. At most 45 words."""
    labels, strategy = delivery.labels, delivery.strategies[0]
    heard = [_WHO[labels.age, labels.gender]]
    heard += [_FEELS[labels.emotion]] if labels.emotion else []
    if labels.event:
        heard.append(_DOES.get(labels.event) or f"with the sound of {labels.event} behind the voice")
    who = " ".join(heard)
    reason, wants = _choose(strategy.because, rng), _choose(_WANTS, rng).format(topic)
    return f"{who[0].upper()}{who[1:]}: {reason}. {wants} {_choose(_SHOULD[strategy.reply_emotion], rng)}"


def all_heard(labels: Labels, sex: str) -> Labels:
    """Return all labels of a clip in a voice of that sex.

    Laughs, sobs and sighs leave the emotion empty, because they express a feeling without one of the emotion labels. A
    child's gender is empty, because a voice made childlike reveals none.
    """
    feeling = labels.emotion or ("neutral" if labels.event not in ("laugh", "cry", "sigh") else "")
    age = labels.age or "adult"
    return Labels(feeling, age, "" if age == "child" else labels.gender or sex, labels.event)


# ── draws ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Wording(Struct, frozen=True):
    """A query, and the slots of its frame that it uses."""

    text: str
    slots: frozenset[str]


def _questions(frame: Frame) -> Iterator[tuple[dict[str, str], list[Wording]]]:
    """Yield each filling of the slots with its new wordings.

    A wording is skipped if no fact of the frame answers it.
    """
    seen: set[str] = set()
    for filling in frame.fillings():
        every = [Wording(w.format(**filling), frozenset(slots_in(w))) for w in frame.say]
        new = [w for w in every if w.text not in seen and any(slots_in(f) <= w.slots for f in frame.facts)]
        seen |= {w.text for w in new}
        if new:
            yield filling, new


def key_of(*parts: str) -> str:
    """Return a key with the first two names and a hash of all of them."""
    digest = hashlib.sha256("/".join(parts).encode()).hexdigest()[:10]
    return f"{parts[0]}_{parts[1]}_{digest}"


def sex_of(seed: int, what: str) -> str:
    """Draw a speaker's sex, determined by the seed and a name."""
    return ("male", "female")[hash_number(seed, "sex", what) % 2]


def _choose(items: Sequence[T], rng: np.random.Generator) -> T:
    return items[int(rng.integers(len(items)))]
