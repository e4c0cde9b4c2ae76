"""Which answers are compared: one question on two deliveries of a script, on a clip again, on its second rendering."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from overtone.analysis.measures import meant
from overtone.analysis.parts import by_basis, of_script
from overtone.analysis.reading import Answer
from overtone.schema import Item

DELIVERIES = ("target", "alternative", "neutral")
LEVELS = {1: "understanding", 2: "reasoning"}
REPEAT, RENDERING = "repeat", "rendering"


class Asked(NamedTuple):
    """One answer, read once."""

    item: Item
    right: str  # the reading under which the right option is right
    offered: tuple[str, ...]  # the readings of all options, whatever their order
    read: str | None  # what was chosen; "" where the reply cannot be read, None where there is none


Question = dict[str, dict[int, Asked]]  # style → repeat → its answer


class About(NamedTuple):
    """Where a comparison belongs. `kind` is the two styles, or what did not change."""

    group: str
    basis: str
    level: str
    dimension: str
    kind: str
    cases: tuple[str, ...]


class Moved(NamedTuple):
    """Two clips whose right answers differ. None where a reply is missing; one that cannot be read has not changed."""

    about: About
    changed: float | None
    right: float | None  # on both
    swapped: float | None  # each clip got the other's answer
    chance: float | None  # of right


class Still(NamedTuple):
    """Nothing changed. One reply that cannot be read has not stayed. The share of changed answers to the question is
    also given where the voice changed and where nothing did, with "cannot be read" as an answer like any other."""

    about: About
    stays: float | None
    voice: float | None
    nothing: float | None


class Gathered(NamedTuple):
    moved: list[Moved]
    still: list[Still]
    notes: list[str]


def gather(answers: Iterable[Answer]) -> Gathered:
    """All comparisons within one condition, over the core and its controls."""
    asked = [a for a in answers if a.item.task == "choose" and a.item.gold and a.item.part in ("", "control")]
    found = Gathered([], [], [])
    twice = untold = 0
    for basis, part in by_basis((a for a in asked if a.item.level in LEVELS), of_script(asked)):
        questions: dict[tuple[str, int, str], Question] = {}
        doubled = set()
        for answer, read in _read(part):
            item = read.item
            key = (item.group, item.level, item.category)
            of_clip = questions.setdefault(key, {}).setdefault(item.style, {})
            if answer.repeat in of_clip:
                doubled.add(key)
            of_clip[answer.repeat] = read
        for key, question in questions.items():
            if key in doubled:
                twice += 1
                continue
            styles = [s for s in DELIVERIES if s in question]
            if len(styles) > 1 and not any(_any(question[s]).right for s in styles):
                untold += 1
            found.moved.extend(_moved(question, styles, basis))
            found.still.extend(_rendered(question, styles, basis))
            if (again := _repeated(question, styles, basis)) is not None:
                found.still.append(again)
    if twice:
        found.notes.append(f"{twice} kinds of question that are asked twice about one clip are left out.")
    if untold:
        found.notes.append(f"{untold} questions do not say what their options stand for: no two clips are compared.")
    return found


def _read(answers: Iterable[Answer]) -> Iterator[tuple[Answer, Asked]]:
    about: dict[int, tuple[str, tuple[str, ...]]] = {}  # equal items of a light reading are one object
    for answer in answers:
        item = answer.item
        if (known := about.get(id(item))) is None:
            right = next((o.provenance for o in item.options if o.letter == item.gold), "")
            known = about[id(item)] = (right, tuple(sorted(o.provenance for o in item.options)))
        yield answer, Asked(item, *known, None if answer.value("accuracy") is None else meant(answer))


def _any(of_clip: dict[int, Asked]) -> Asked:
    return next(iter(of_clip.values()))


def _moves(one: Asked, other: Asked) -> bool:
    """Whether both clips were asked the same and the right answer is another one."""
    return bool(one.right and other.right and one.right != other.right and one.offered == other.offered)


def _voice_pairs(question: Question, styles: Sequence[str]) -> Iterator[tuple[Asked, Asked]]:
    for one, other in itertools.combinations(styles, 2):
        for repeat, answer in question[one].items():
            twin = question[other].get(repeat)
            if twin is not None and _moves(answer, twin):
                yield answer, twin


def _moved(question: Question, styles: Sequence[str], basis: str) -> Iterator[Moved]:
    for one, other in _voice_pairs(question, styles):
        about = _about([one, other], basis, f"{one.item.style}-{other.item.style}")
        first, second = one.read, other.read
        chance = 1 / len(one.item.options) / len(other.item.options)
        if first is None or second is None:
            yield Moved(about, None, None, None, chance)
            continue
        yield Moved(
            about,
            float(bool(first) and bool(second) and first != second),
            float(first == one.right and second == other.right),
            float(first == other.right and second == one.right),
            chance,
        )


def _rendered(question: Question, styles: Sequence[str], basis: str) -> Iterator[Still]:
    for repeat, control in question.get("control", {}).items():
        twin = question.get("target" if control.item.cue else "neutral", {}).get(repeat)
        if twin is None or twin.right != control.right:
            continue
        others = [a for s in styles if (a := question[s].get(repeat)) is not None and _moves(twin, a)]
        here, there = twin.read, control.read
        yield Still(
            _about([twin, control], basis, RENDERING),
            None if here is None or there is None else float(bool(here) and here == there),
            _differ([(twin, other) for other in others]),
            _differ([(twin, control)]),
        )


def _repeated(question: Question, styles: Sequence[str], basis: str) -> Still | None:
    again = [pair for s in styles for pair in itertools.combinations(question[s].values(), 2)]
    if not again:
        return None
    both = [(x, y) for one, other in again if (x := one.read) is not None and (y := other.read) is not None]
    clips = [_any(question[s]) for s in styles]
    return Still(
        _about(clips, basis, REPEAT),
        sum(bool(x) and x == y for x, y in both) / len(both) if both else None,
        _differ(list(_voice_pairs(question, styles))),
        _differ(again),
    )


def _differ(pairs: Sequence[tuple[Asked, Asked]]) -> float | None:
    """The share of pairs with two answers that differ."""
    both = [(x, y) for one, other in pairs if (x := one.read) is not None and (y := other.read) is not None]
    return sum(x != y for x, y in both) / len(both) if both else None


def _about(clips: Sequence[Asked], basis: str, kind: str) -> About:
    item = clips[0].item
    cases = tuple(a.item.case for a in clips)
    return About(item.group, basis, LEVELS[item.level], item.dimension, kind, cases)
