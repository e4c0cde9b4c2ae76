"""The deliveries of a query: labels that can occur together, strategies for answering them, and each delivery's
share."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from overtone.build.echat_texts import EVENTS
from overtone.echat.data.labels import CUE_OF_LABEL, VOCAL, Labels, label, of_cues
from overtone.echat.making.texts import Strategy, Texts

SHARES = {  # share of exchanges, by the dimensions they are about: 70 % one, 30 % several
    "emotion": 0.26, "age": 0.11, "gender": 0.08, "event": 0.10, "scene": 0.15,
    "emotion+age": 0.07, "emotion+gender": 0.06, "age+gender": 0.03, "emotion+age+gender": 0.04, "emotion+scene": 0.04,
    "age+scene": 0.02, "gender+scene": 0.01, "emotion+event": 0.015, "age+event": 0.015,
}  # fmt: skip
FITTING = {"laugh": ("happy",), "cry": ("sad", "fear"), "sigh": ("sad",), "cough": ("sad", "anger", "fear", "happy")}
_ORDER = ("event", "emotion", "age", "scene", "gender")  # which dimension a reply answers first
_APPLIED = ("age", "emotion", "event", "scene", "gender")  # in which order cues are applied to a voice
_CAPTION = {caption.lower(): slug for slug, caption in EVENTS.items()}

T = TypeVar("T")


class Delivery(Struct, frozen=True):
    """One delivery of a query: its labels, its cues, and the strategies that answer it, most important first."""

    kind: str
    labels: Labels
    cues: tuple[str, ...]
    strategies: tuple[Strategy, ...]

    @property
    def name(self) -> str:
        return "+".join(f"{dimension}={name}" for dimension, name in self.labels.known().items())


def deliveries(texts: Texts) -> dict[str, list[Delivery]]:
    """Return the deliveries by kind.

    A delivery is included only if each of its labels has a strategy and a sound that can be synthesised.
    """
    single: dict[str, list[tuple[str, str, Strategy]]] = {kind: [] for kind in _ORDER}
    for s in texts.strategies:
        slug = _slug(s)
        if s.dimension == "event" and not slug:
            continue  # there is no synthesiser for this sound
        known = of_cues([slug]).known() if slug else {s.dimension: s.label}
        (dimension, name), *_ = known.items()
        kind = "scene" if dimension == "event" and name not in VOCAL else dimension
        single[kind].append((name, slug if s.label not in ("adult", "male", "female") else "", s))
    by_kind: dict[str, list[Delivery]] = {}
    for kind in SHARES:
        parts = kind.split("+")
        chosen = [single[p] for p in parts]
        made = [_combined(kind, parts, combination) for combination in itertools.product(*chosen)]
        by_kind[kind] = [one for one in made if len(parts) == 1 or _compatible(one)]
    neutral = [one for one in by_kind["emotion"] if one.labels.emotion == "neutral"]
    by_kind["emotion"] += neutral  # twice as often, because a model must also learn that a voice can be neutral
    return {kind: several for kind, several in by_kind.items() if several}


def _slug(s: Strategy) -> str:
    """Return the cue of a strategy's label, or ""."""
    if s.dimension == "event":
        return _CAPTION.get(s.label) or CUE_OF_LABEL.get(("event", label("event", s.label)), "") or _scene(s.label)
    return CUE_OF_LABEL.get((s.dimension, s.label), "")


def _scene(name: str) -> str:
    """Return the name if it is the name of a cue, else ""."""
    return name if name in CUE_OF_LABEL.values() else ""


def _combined(kind: str, parts: Sequence[str], members: Sequence[tuple[str, str, Strategy]]) -> Delivery:
    labels = {("event" if p == "scene" else p): name for p, (name, _, _) in zip(parts, members, strict=True)}
    applied = sorted(zip(parts, members, strict=True), key=lambda m: _APPLIED.index(m[0]))
    strongest = sorted(zip(parts, members, strict=True), key=lambda m: _ORDER.index(m[0]))
    cues = tuple(slug for _, (_, slug, _) in applied if slug)
    return Delivery(kind, Labels(**labels), cues, tuple(s for _, (_, _, s) in strongest))


def _compatible(delivery: Delivery) -> bool:
    """Return whether all labels of a delivery can be true at once. A child's gender is never labelled."""
    labels = delivery.labels
    if labels.emotion == "neutral" or (labels.age == "child" and labels.gender):
        return False
    return not (labels.emotion and labels.event in FITTING and labels.emotion not in FITTING[labels.event])


class Rotation:
    """Hands out deliveries so that each kind always has its share and the deliveries of a kind are used equally
    often."""

    def __init__(self, every: Mapping[str, Sequence[Delivery]], seed: int, what: str) -> None:
        self._every = {
            kind: shuffled(several, seed, f"{what}/{kind}", lambda d: d.name) for kind, several in every.items()
        }
        self._kinds: Counter[str] = Counter()
        self._given = {kind: [0] * len(several) for kind, several in self._every.items()}  # exchanges per delivery

    def next(self, size: int = 1, kind: str = "") -> Delivery:
        """Return the delivery of the next `size` exchanges."""
        total = self._kinds.total() + size
        if not kind:
            kind = max(self._every, key=lambda k: SHARES[k] * total - self._kinds[k])
        given = self._given[kind]
        at = given.index(min(given))
        given[at] += size
        self._kinds[kind] += size
        return self._every[kind][at]

    def pair(self) -> tuple[Delivery, Delivery]:
        """Return two different deliveries of one kind."""
        one = self.next()
        two = self.next(kind=one.kind)
        for _ in self._every[one.kind]:
            if two.labels != one.labels:
                break
            two = self.next(kind=one.kind)
        return one, two


def hash_number(seed: int, *what: str) -> int:
    """Return a 64-bit number that is determined by the seed and the names."""
    return int.from_bytes(hashlib.sha256("/".join((str(seed), *what)).encode()).digest()[:8], "big")


def shuffled(items: Iterable[T], seed: int, what: str, name: Callable[[T], str]) -> list[T]:
    """Return the items in random order. Adding an item does not change the relative order of the others."""
    return sorted(items, key=lambda one: hash_number(seed, what, name(one)))
