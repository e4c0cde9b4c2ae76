"""Pairs of answers to one question: about two deliveries of a script, about one clip that was asked twice, or about a
clip and a second rendering of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from overtone.results.load import Answer
from overtone.results.measures import meant
from overtone.results.side_measures import by_basis, of_script
from overtone.schema import Item

DELIVERIES = ("target", "alternative", "neutral")
LEVELS = {1: "understanding", 2: "reasoning"}
REPEAT, RENDERING = "repeat", "rendering"


class Asked(NamedTuple):
    """One answer, with the readings of its options and the reading that was chosen."""

    item: Item
    right: str  # the reading under which the correct option is correct
    offered: tuple[str, ...]  # the readings of all options, sorted
    read: str | None  # the chosen option; "" for an unreadable reply, None for a missing one


Question = dict[str, dict[int, Asked]]  # style → repeat → answer


class About(NamedTuple):
    """The group, level and cases of a comparison. `kind` names the two styles, or is REPEAT or RENDERING."""

    group: str
    basis: str
    level: str
    dimension: str
    kind: str
    cases: tuple[str, ...]


class Moved(NamedTuple):
    """The answers to two clips whose correct answers differ. `changed`, `right` and `swapped` are None if a reply is
    missing. An unreadable reply counts as unchanged."""

    about: About
    changed: float | None
    right: float | None  # both answers are right
    swapped: float | None  # each clip got the correct answer of the other clip
    chance: float | None  # the probability that blind guessing is right on both


class Still(NamedTuple):
    """Two answers between which nothing changed. An unreadable reply counts as changed.

    `voice` and `nothing` are the shares of answers to this question that changed when the voice changed, and when
    nothing did. In these two shares, "unreadable" is an answer like any other.
    """

    about: About
    stays: float | None
    voice: float | None
    nothing: float | None


class Gathered(NamedTuple):
    """All comparisons of one condition."""

    moved: list[Moved]
    still: list[Still]
    notes: list[str]


def gather(answers: Iterable[Answer]) -> Gathered:
    """Return all comparisons within one condition, from the benchmark's core and its control clips."""
    asked = [a for a in answers if a.item.task == "choose" and a.item.gold and a.item.part in ("", "control")]
    gathered = Gathered([], [], [])
    duplicates = unlabelled = 0
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
                duplicates += 1
                continue
            styles = [s for s in DELIVERIES if s in question]
            if len(styles) > 1 and not any(_any(question[s]).right for s in styles):
                unlabelled += 1
            gathered.moved.extend(_moved(question, styles, basis))
            gathered.still.extend(_rendered(question, styles, basis))
            if (again := _repeated(question, styles, basis)) is not None:
                gathered.still.append(again)
    if duplicates:
        gathered.notes.append(f"{duplicates} kinds of question that are asked twice about one clip are left out.")
    if unlabelled:
        gathered.notes.append(
            f"{unlabelled} questions do not say under which reading their options are correct, so their clips are not "
            "compared."
        )
    return gathered


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
    """Return whether the two questions have the same options and different correct answers."""
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
    """Return the share of pairs with different answers, among pairs without a missing answer; None without any."""
    both = [(x, y) for one, other in pairs if (x := one.read) is not None and (y := other.read) is not None]
    return sum(x != y for x, y in both) / len(both) if both else None


def _about(clips: Sequence[Asked], basis: str, kind: str) -> About:
    item = clips[0].item
    cases = tuple(a.item.case for a in clips)
    return About(item.group, basis, LEVELS[item.level], item.dimension, kind, cases)
