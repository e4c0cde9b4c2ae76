"""Verdicts on groups: all variants of one utterance with their replies, put before a judge together.

The order is drawn from the group's name and its items' names, so that it is the same for every model and no habit of
the benchmark's. As a control the judge sees the same variants once more, each with the reply of another, under the same
question; what it says then is stored as KEY_shuffled. A group's verdict is stored on each of its replies.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence

import msgspec

from overtone.judges.judge_input import Subject
from overtone.judges.panel import Judgement, Sitting, signature
from overtone.judges.policy import Judge
from overtone.judges.reply_texts import Reply
from overtone.judges.rubric import Dimension, Rubric
from overtone.runs.store import Ask, Store
from overtone.schema import Score

Group = tuple[str, str, str, int]  # the item's group and part, the condition, the repeat
Taker = tuple[str, str]  # a judge's label and a rubric's name


class Groups:
    """Which variants a run holds of each group, and which groups are whole."""

    def __init__(self, store: Store, read: Callable[[Ask], Reply | None]) -> None:
        self._store = store
        self._read = read
        self._asks: dict[Group, list[Ask]] | None = None
        self._met: dict[Taker, dict[Group, tuple[str, ...]]] = {}
        self._taken: set[tuple[Taker, Group]] = set()

    def whole(self, taker: Taker, reply: Reply, tasks: Sequence[str]) -> list[Reply]:
        """All replies of the group of `reply`, where it has at least two and none is missing; to each taker once."""
        group = reply.item.group, reply.item.part, reply.key.condition, reply.key.repeat
        self._met.setdefault(taker, {})[group] = tuple(tasks)
        if (taker, group) in self._taken:
            return []
        found = [self._read(ask) for ask in self._variants(group, tasks)]
        known = [one for one in found if one is not None]
        if len(known) < len(found) or len(known) < 2:
            return []
        self._taken.add((taker, group))
        return known

    def rest(self, taker: Taker) -> Iterator[tuple[list[Reply], str]]:
        """The groups met that were never whole: the replies they have, and why they cannot be judged."""
        for group, tasks in self._met.get(taker, {}).items():
            if (taker, group) in self._taken:
                continue
            asks = self._variants(group, tasks)
            known = [one for ask in asks if (one := self._read(ask)) is not None]
            if len(asks) < 2:
                why = "the group has one variant here: there is nothing to tell apart"
            else:
                why = f"{len(known)} of the {len(asks)} variants of the group have a reply"
            yield known, why

    def _variants(self, group: Group, tasks: Sequence[str]) -> list[Ask]:
        if self._asks is None:
            self._asks = {}
            for ask, _ in self._store.asks():
                self._asks.setdefault((ask.item.group, ask.item.part, ask.condition, ask.repeat), []).append(ask)
        return [ask for ask in self._asks.get(group, []) if ask.item.task in tasks]


def shuffled(group: str, names: Sequence[str]) -> list[int]:
    """The places of the names in an order that depends on nothing but them and the group."""
    return sorted(range(len(names)), key=lambda place: hashlib.sha256(f"{group}\n{names[place]}".encode()).digest())


def exchanged(group: str, count: int) -> list[int]:
    """For each of `count` variants another one, no two the same: a turn by a step that the group's name decides."""
    step = 1 + hashlib.sha256(group.encode()).digest()[0] % (count - 1)
    return [(place + step) % count for place in range(count)]


def subject(name: str, variants: Sequence[tuple[Reply, dict[str, str]]], *, control: bool) -> Subject:
    """What a judge is shown of a group, in the order given. With `control` each variant has another's reply."""
    group = variants[0][0].item.group
    from_ = exchanged(group, len(variants)) if control else list(range(len(variants)))
    texts: dict[str, str] = {}
    for place, (_, told) in enumerate(variants):
        replied = {"reply": variants[from_[place]][1]["reply"]}
        texts |= {f"{key}_{place + 1}": text for key, text in (told | replied).items()}
    return Subject(f"{name}{'|shuffled' if control else ''}", group, texts, item=variants[0][0].item)


async def verdicts(
    sitting: Sitting, one: Rubric, told: Sequence[tuple[Reply, dict[str, str]]], *, transcript: bool, heard_by: str
) -> list[Score]:
    """The scores of one whole group: of every question, and where the rubric has a control, of that."""
    key = told[0][0].key
    group = told[0][0].item.group
    order = shuffled(group, [reply.item.id for reply, _ in told])
    variants = [told[place] for place in order]
    name = f"{group}|{key.condition}|{key.repeat}"
    found: list[Score] = []
    for control in (False, True) if one.control else (False,):
        shown = subject(name, variants, control=control)
        shown = msgspec.structs.replace(shown, transcript=transcript, heard_by=heard_by)
        judgement = await sitting.judgement(one, shown)
        dimensions = one.controls if control else one.dimensions
        for asked, d in zip(one.dimensions, dimensions, strict=True):
            if asked.asked("", shown.item):
                found.append(_score(sitting.judge, one, asked, d, judgement, order))
    return found


def _score(
    judge: Judge, one: Rubric, asked: Dimension, d: Dimension, judgement: Judgement, order: Sequence[int]
) -> Score:
    value, reason, detail = judgement.told(asked, judge.policy.least)
    detail |= {"variants": len(order), "order": ",".join(str(place + 1) for place in order)}
    shown = judgement.subject
    told = signature(judge, one, d, transcript=shown.transcript, heard_by=shown.heard_by)
    return Score(f"{d.key}@{judge.label}", told, value, reason, detail)


def unscored(judge: Judge, one: Rubric, why: str) -> list[Score]:
    """The same where a group cannot be judged."""
    return [
        Score(f"{d.key}@{judge.label}", signature(judge, one, d, transcript=False), None, why)
        for d in (*one.dimensions, *one.controls)
    ]
