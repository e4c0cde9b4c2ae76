"""The ways in which something can be said: which labels go together, which strategies answer them, and how often each
way has its turn."""

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

SHARES = {  # of exchanges, by the dimensions they are about: 70 % one, 30 % several
    "emotion": 0.26, "age": 0.11, "gender": 0.08, "event": 0.10, "scene": 0.15,
    "emotion+age": 0.07, "emotion+gender": 0.06, "age+gender": 0.03, "emotion+age+gender": 0.04, "emotion+scene": 0.04,
    "age+scene": 0.02, "gender+scene": 0.01, "emotion+event": 0.015, "age+event": 0.015,
}  # fmt: skip
FITTING = {"laugh": ("happy",), "cry": ("sad", "fear"), "sigh": ("sad",), "cough": ("sad", "anger", "fear", "happy")}
_ORDER = ("event", "emotion", "age", "scene", "gender")  # which dimension a reply answers first
_LAID = ("age", "emotion", "event", "scene", "gender")  # in which order cues are laid on a voice
_CAPTION = {caption.lower(): slug for slug, caption in EVENTS.items()}

T = TypeVar("T")


class Way(Struct, frozen=True):
    """One way to say something: what is heard of it, and how a reply answers, its strongest reason first."""

    kind: str
    labels: Labels
    cues: tuple[str, ...]
    strategies: tuple[Strategy, ...]

    @property
    def name(self) -> str:
        return "+".join(f"{dimension}={found}" for dimension, found in self.labels.known().items())


def ways(texts: Texts) -> dict[str, list[Way]]:
    """Kind → every way of it that has a strategy for each label and a sound of ours."""
    single: dict[str, list[tuple[str, str, Strategy]]] = {kind: [] for kind in _ORDER}
    for s in texts.strategies:
        slug = _slug(s)
        if s.dimension == "event" and not slug:
            continue  # a sound that we cannot make
        known = of_cues([slug]).known() if slug else {s.dimension: s.label}
        (dimension, name), *_ = known.items()
        kind = "scene" if dimension == "event" and name not in VOCAL else dimension
        single[kind].append((name, slug if s.label not in ("adult", "male", "female") else "", s))
    found: dict[str, list[Way]] = {}
    for kind in SHARES:
        parts = kind.split("+")
        chosen = [single[p] for p in parts]
        made = [_way(kind, parts, combination) for combination in itertools.product(*chosen)]
        found[kind] = [way for way in made if len(parts) == 1 or _goes_together(way)]
    plain = [way for way in found["emotion"] if way.labels.emotion == "neutral"]
    found["emotion"] += plain  # twice as often: a listener must also learn that there may be nothing to hear
    return {kind: those for kind, those in found.items() if those}


def _slug(s: Strategy) -> str:
    """Our cue of a strategy's label, "" for none."""
    if s.dimension == "event":
        return _CAPTION.get(s.label) or CUE_OF_LABEL.get(("event", label("event", s.label)), "") or _scene(s.label)
    return CUE_OF_LABEL.get((s.dimension, s.label), "")


def _scene(name: str) -> str:
    """A scene whose strategy goes by the name of its cue."""
    return name if name in CUE_OF_LABEL.values() else ""


def _way(kind: str, parts: Sequence[str], members: Sequence[tuple[str, str, Strategy]]) -> Way:
    told = {("event" if p == "scene" else p): name for p, (name, _, _) in zip(parts, members, strict=True)}
    laid = sorted(zip(parts, members, strict=True), key=lambda m: _LAID.index(m[0]))
    strongest = sorted(zip(parts, members, strict=True), key=lambda m: _ORDER.index(m[0]))
    return Way(
        kind, Labels(**told), tuple(slug for _, (_, slug, _) in laid if slug), tuple(s for _, (_, _, s) in strongest)
    )


def _goes_together(way: Way) -> bool:
    """Whether several labels can be true at once, and be claimed: nobody says whether a child is a boy or a girl."""
    told = way.labels
    if told.emotion == "neutral" or (told.age == "child" and told.gender):
        return False
    return not (told.emotion and told.event in FITTING and told.emotion not in FITTING[told.event])


class Turns:
    """Hands out ways so that at any moment each kind has had its share, and each way of a kind as often as the next."""

    def __init__(self, every: Mapping[str, Sequence[Way]], seed: int, what: str) -> None:
        self._ways = {kind: drawn(those, seed, f"{what}/{kind}", lambda w: w.name) for kind, those in every.items()}
        self._kinds: Counter[str] = Counter()
        self._given = {kind: [0] * len(those) for kind, those in self._ways.items()}  # exchanges of each way

    def next(self, size: int = 1, kind: str = "") -> Way:
        """The way of the next so many exchanges."""
        total = self._kinds.total() + size
        if not kind:
            kind = max(self._ways, key=lambda k: SHARES[k] * total - self._kinds[k])
        given = self._given[kind]
        at = given.index(min(given))
        given[at] += size
        self._kinds[kind] += size
        return self._ways[kind][at]

    def pair(self) -> tuple[Way, Way]:
        """Two of one kind that differ."""
        one = self.next()
        two = self.next(kind=one.kind)
        for _ in self._ways[one.kind]:
            if two.labels != one.labels:
                break
            two = self.next(kind=one.kind)
        return one, two


def number(seed: int, *what: str) -> int:
    return int.from_bytes(hashlib.sha256("/".join((str(seed), *what)).encode()).digest()[:8], "big")


def drawn(those: Iterable[T], seed: int, what: str, name: Callable[[T], str]) -> list[T]:
    """In an order of its own, in which nothing moves but what is new when something is added."""
    return sorted(those, key=lambda one: number(seed, what, name(one)))
