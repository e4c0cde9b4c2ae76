"""Draw wrong answers and the order of options, balanced over a whole set.

Balance ensures that options or letters alone do not reveal the right answer.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
from msgspec import Struct

from overtone.build.script import Script
from overtone.build.tract import random_of
from overtone.cues import ALSO_TRUE, ALSO_TRUE_OF_KIND, Cue
from overtone.schema import Style

FLAT = frozenset({"tired", "slow", "sad", "disgust", "hoarse", "elderly"})  # cues that plain synthetic speech suggests
BY_DEGREE = frozenset({"speed", "volume"})  # categories whose cues may be slightly true of other clips

# A clip's measures against those of its neutral twin. Listeners notice a change of pace of about 5 % and of level of
# about 1 dB. At twice and three times these values a listener may justifiably call the clip fast, slow or loud.
PACE_RATIO = 1.10
LEVEL_DB = 3.0
NOISY = frozenset({"hoarse", "breath", "sobbing", "cough", "sigh", "laughter", "yawn", "moan"})  # unvoiced, not hushed
VOICED_RATIO = 0.5  # a clip with a smaller share of the twin's voiced frames is halfway to a whisper


class Question(Struct, frozen=True):
    """One question about one clip. `provenance` names, for each option, the reading of the clip that makes it right."""

    id: str
    script: Script
    style: Style
    category: str
    question: str
    options: tuple[str, ...]
    provenance: tuple[str, ...]
    gold: int  # position
    part: str = ""  # of the benchmark, as in an item

    @property
    def answer(self) -> str:
        return chr(ord("A") + self.gold)

    @property
    def options_text(self) -> str:
        return "\n".join(f"{chr(ord('A') + i)}. {text}" for i, text in enumerate(self.options))


class Measured(Protocol):
    """The fields of audio.Measures that this module uses."""

    @property
    def rate_hz(self) -> float | None: ...
    @property
    def rms_dbfs(self) -> float: ...
    @property
    def voiced(self) -> float: ...


def true_of(script: Script, style: str) -> frozenset[str]:
    """Return every cue that may be true of a clip and therefore must not be one of its distractors."""
    cue = script.cue_in(style)
    facts = {script.sex_in(style)}
    if cue is not None:
        facts |= {cue.slug} | also_true(cue.slug, script.manner_in(style))
    if cue is None or cue.category != "age":
        facts.add("adult")
    if cue is None or cue.dimension != "paralinguistic":
        facts |= FLAT
    return frozenset(facts)


def also_true(slug: str, kind: str = "") -> frozenset[str]:
    """Return the other cues that an honest listener may hear in a clip with this cue (and `kind`, if it has one)."""
    return ALSO_TRUE.get(slug, frozenset()) | ALSO_TRUE_OF_KIND.get((slug, kind), frozenset())


def arguable(script: Script, style: str, measured: Mapping[str, Measured]) -> frozenset[str]:
    """Return the paces and levels that a listener could hear in a clip, measured against its neutral twin.

    `measured` is keyed by `script.file_name(style)`. Nothing is arguable if either clip was not measured, or if the cue
    belongs to the environment: then the voice is the twin's voice, and the measures reflect the scene.
    """
    cue = script.cue_in(style)
    mine, twin = measured.get(script.file_name(style)), measured.get(script.file_name("neutral"))
    if cue is None or cue.dimension == "environment" or mine is None or twin is None:
        return frozenset()
    heard = set()
    if mine.rate_hz and twin.rate_hz:
        pace = mine.rate_hz / twin.rate_hz
        heard |= {"fast"} if pace > PACE_RATIO else {"slow"} if pace < 1 / PACE_RATIO else set()
    if mine.rms_dbfs - twin.rms_dbfs > LEVEL_DB:
        heard.add("shout")
    # A soft voice is not a whisper as long as it is voiced.
    if mine.voiced < VOICED_RATIO * twin.voiced and cue.slug not in NOISY:
        heard.add("whisper")
    own = {"speed": {"fast", "slow"}, "volume": {"shout", "whisper"}}.get(cue.category, set())
    return frozenset(heard - own)  # the gates check whether a fast clip is fast


class Fair:
    """Pick wrong answers so that the options alone do not reveal the right one. A cue is offered as a wrong answer in
    proportion to the number of its right answers. Two cues that are offered together are right equally often."""

    def __init__(self, right: Iterable[str]) -> None:
        self._right = Counter(right)
        self._offered: Counter[str] = Counter()
        self._lost: Counter[tuple[str, str]] = Counter()  # (right, wrong) cues, and (right, wrong) categories

    def pick(self, right: Sequence[Cue], pool: Sequence[Cue], beside: Sequence[Cue], rng: np.random.Generator) -> Cue:
        """Choose a wrong answer from `pool` for clips whose right answers are `right`. `beside` has the wrong answers
        chosen before. Cues that clash with none of these are preferred."""
        pool = [c for c in pool if not any(_clash(c, other) for other in (*right, *beside))] or pool
        mixed = [pool[int(i)] for i in rng.permutation(len(pool))]
        return min(mixed, key=lambda c: self._burden(right, c))

    def count(self, right: Sequence[Cue], offered: Sequence[Cue]) -> None:
        """Record that the cues in `offered` were wrong answers on clips where one of `right` was right."""
        for cue in right:
            for wrong in (*offered, *(c for c in right if c != cue)):
                self._offered[wrong.slug] += 1
                self._lost[cue.slug, wrong.slug] += 1
                self._lost[cue.category, wrong.category] += 1

    def _burden(self, right: Sequence[Cue], wrong: Cue) -> float:
        """Return a score for how much a cue was already used as a wrong answer; lower is better.

        The score rises the more often `wrong` was offered as a wrong answer, relative to how often it is right. It also
        rises if `wrong` was offered more often where a cue in `right` was right than the other way round.
        """
        burden = 10 * self._offered[wrong.slug] / max(self._right[wrong.slug], 0.5)
        for cue in right:
            burden += self._lost[cue.slug, wrong.slug] - self._lost[wrong.slug, cue.slug]
            burden += (self._lost[cue.category, wrong.category] - self._lost[wrong.category, cue.category]) / 5
        return burden


def _clash(one: Cue, other: Cue) -> bool:
    return other.slug in also_true(one.slug) or one.slug in also_true(other.slug)


class Orders:
    """Choose orders of options so that right answers spread evenly over the letters, in total and for each reading."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._all: dict[str, Counter[int]] = defaultdict(Counter)
        self._each: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)
        self._asked: Counter[str] = Counter()

    def next(self, category: str, readings: Sequence[str], right: Sequence[str]) -> tuple[str, ...]:
        """Return an order of `readings`. Each reading in `right` is the right answer on some clip."""
        rng = random_of(self._seed, "order", category, str(self._asked[category]))
        self._asked[category] += 1
        orders = list(itertools.permutations(readings))
        orders = [orders[i] for i in rng.permutation(len(orders))]
        total = self._all[category]

        def crowd(order: tuple[str, ...]) -> int:
            at = [(reading, order.index(reading)) for reading in right]
            return sum(total[i] + self._each[category, reading][i] for reading, i in at)

        best = min(orders, key=crowd)
        for reading in right:
            self._all[category][best.index(reading)] += 1
            self._each[category, reading][best.index(reading)] += 1
        return best
