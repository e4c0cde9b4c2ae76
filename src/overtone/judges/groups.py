"""Verdicts on groups: a judge sees all variants of one utterance with their replies at once.

A hash of the group's and items' names decides the order of the variants. It is the same for every model and unrelated
to the benchmark's order. As a control, the judge is asked the same question with the replies exchanged between
variants; this verdict is stored as KEY_shuffled. A group's verdict is stored for each of its replies.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence

import msgspec

from overtone.judges.judge_input import Subject
from overtone.judges.judgement import Judgement, signature
from overtone.judges.panel import Sitting
from overtone.judges.policy import Judge
from overtone.judges.rubric import Dimension, Rubric
from overtone.runs.store import Ask, Store
from overtone.schema import Score

Group = tuple[str, str, str, int]  # the item's group and part, the condition, the repeat
Asker = tuple[str, str]  # a judge's label and a rubric's name


class Groups:
    """The groups of variants in a run. A group is complete if every variant has a reply."""

    def __init__(self, store: Store, read: Callable[[Ask], Ask | None]) -> None:
        self._store = store
        self._read = read
        self._asks: dict[Group, list[Ask]] | None = None
        self._seen: dict[Asker, dict[Group, tuple[str, ...]]] = {}
        self._judged: set[tuple[Asker, Group]] = set()

    def complete(self, asker: Asker, ask: Ask, tasks: Sequence[str]) -> list[Ask]:
        """Return all asks of the group of `ask`, or [] if there are fewer than two or one lacks its reply.

        Each asker gets a group once; later calls for the same asker and group return [].
        """
        group = ask.item.group, ask.item.part, ask.condition, ask.repeat
        self._seen.setdefault(asker, {})[group] = tuple(tasks)
        if (asker, group) in self._judged:
            return []
        asks, replies = self._variants(group, tasks)
        if len(replies) < len(asks) or len(replies) < 2:
            return []
        self._judged.add((asker, group))
        return replies

    def incomplete(self, asker: Asker) -> Iterator[tuple[list[Ask], str]]:
        """Yield (replies, reason) for each group that `complete` was asked for but never returned."""
        for group, tasks in self._seen.get(asker, {}).items():
            if (asker, group) in self._judged:
                continue
            asks, replies = self._variants(group, tasks)
            if len(asks) < 2:
                why = "the group has one variant here: there is nothing to tell apart"
            else:
                why = f"{len(replies)} of the {len(asks)} variants of the group have a reply"
            yield replies, why

    def _variants(self, group: Group, tasks: Sequence[str]) -> tuple[list[Ask], list[Ask]]:
        if self._asks is None:
            self._asks = {}
            for ask, _ in self._store.asks():
                self._asks.setdefault((ask.item.group, ask.item.part, ask.condition, ask.repeat), []).append(ask)
        asks = [ask for ask in self._asks.get(group, []) if ask.item.task in tasks]
        return asks, [reply for ask in asks if (reply := self._read(ask)) is not None]


def shuffled(group: str, names: Sequence[str]) -> list[int]:
    """Return the indices of the names, shuffled into an order that depends only on the names and the group."""
    return sorted(range(len(names)), key=lambda place: hashlib.sha256(f"{group}\n{names[place]}".encode()).digest())


def exchanged(group: str, count: int) -> list[int]:
    """Return, for each of `count` variants, the index of the variant whose reply it gets: a rotation that depends on
    the group."""
    step = 1 + hashlib.sha256(group.encode()).digest()[0] % (count - 1)
    return [(place + step) % count for place in range(count)]


def subject(name: str, variants: Sequence[tuple[Ask, dict[str, str]]], *, control: bool) -> Subject:
    """Return the subject that shows a group's variants in the given order. With `control`, replies are exchanged."""
    group = variants[0][0].item.group
    sources = exchanged(group, len(variants)) if control else list(range(len(variants)))
    texts: dict[str, str] = {}
    for place, (_, own_texts) in enumerate(variants):
        reply = {"reply": variants[sources[place]][1]["reply"]}
        texts |= {f"{key}_{place + 1}": text for key, text in (own_texts | reply).items()}
    return Subject(f"{name}{'|shuffled' if control else ''}", group, texts, item=variants[0][0].item)


async def verdicts(
    sitting: Sitting, one: Rubric, group: Sequence[tuple[Ask, dict[str, str]]], *, transcript: bool, heard_by: str
) -> list[Score]:
    """Judge a complete group, and its control if the rubric has one. Return a score for each question."""
    first = group[0][0]
    name = first.item.group
    order = shuffled(name, [ask.item.id for ask, _ in group])
    variants = [group[place] for place in order]
    scores: list[Score] = []
    for control in (False, True) if one.control else (False,):
        shown = subject(f"{name}|{first.condition}|{first.repeat}", variants, control=control)
        shown = msgspec.structs.replace(shown, transcript=transcript, heard_by=heard_by)
        judgement = await sitting.judgement(one, shown)
        dimensions = one.controls if control else one.dimensions
        for asked, d in zip(one.dimensions, dimensions, strict=True):
            if asked.asked("", shown.item):
                scores.append(_score(sitting.judge, one, asked, d, judgement, order))
    return scores


def _score(
    judge: Judge, one: Rubric, asked: Dimension, d: Dimension, judgement: Judgement, order: Sequence[int]
) -> Score:
    value, reason, detail = judgement.score_parts(asked, judge.policy.least)
    detail |= {"variants": len(order), "order": ",".join(str(place + 1) for place in order)}
    shown = judgement.subject
    signed = signature(judge, one, d, transcript=shown.transcript, heard_by=shown.heard_by)
    return Score(f"{d.key}@{judge.label}", signed, value, reason, detail)


def unscored(judge: Judge, one: Rubric, why: str) -> list[Score]:
    """Return missing scores for a group that cannot be judged, with the reason."""
    return [
        Score(f"{d.key}@{judge.label}", signature(judge, one, d, transcript=False), None, why)
        for d in (*one.dimensions, *one.controls)
    ]
