"""One case across the levels, as the case browser shows it: transcripts, answers to questions, and replies.

A case is a script in one style. Its transcript, voice questions, reasoning questions and conversation share one clip,
so a wrong reply can be traced to the first level that fails.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from overtone.errors import UsageError
from overtone.results.load import Answer, Reading, read
from overtone.results.measures import status
from overtone.runs.people_labels import LabelStudy
from overtone.runs.store import Part, Store
from overtone.schema import Item, Score
from overtone.scores import CHOICE
from overtone.spec import suggest

ALIKE = 3  # cases that are named for a mistyped one
BATCH = 1_000  # asks to read from the store at once; a batch never splits a case


class Asked(Struct, frozen=True):
    """One item of a case, with all answers to this item."""

    item: Item
    answers: list[Answer]


class CaseView(Struct, frozen=True):
    """One case, with its items by level."""

    case: str
    group: str
    style: str
    cue: str
    dimension: str
    topic: str
    words: str
    transcripts: list[Asked]
    voice: list[Asked]
    reasoning: list[Asked]
    replies: list[Asked]
    studies: dict[str, LabelStudy] = {}  # whose raters labelled replies of the case

    def all(self) -> list[Asked]:
        return [*self.transcripts, *self.voice, *self.reasoning, *self.replies]


def case(store: Store, case_id: str) -> CaseView:
    """Return the view of one case of a run. `case_id` is the name of the case, or the id of one of its items.

    Raises UsageError if the run has no such case or item.
    """
    reading = read(store, Part(case=case_id))
    views = views_of(reading.answers)
    if case_id not in views and (of_item := store.case_of(case_id)) is not None:
        case_id, views = of_item, views_of(read(store, Part(case=of_item)).answers)
    if case_id not in views:
        raise UsageError(
            f"{store.folder} has no case and no item {case_id!r}{_alike(store, case_id)}; "
            "'overtone case RUN' lists the cases, which are named like 'synthesis/id_854/target'"
        )
    return replace(views[case_id], studies=reading.studies)


def _alike(store: Store, part: str) -> str:
    """Return, as text, the cases whose names contain the parts of `part`, such as 'id_854/target' without its
    source; "" if there are none."""
    names = [name for name, _ in store.cases()]
    inner = [name for name in names if f"/{part.strip('/')}/" in f"/{name}/"]
    if not inner:
        return suggest(part, names)
    more = f" and {len(inner) - ALIKE} more" if len(inner) > ALIKE else ""
    return f"; did you mean {', '.join(map(repr, inner[:ALIKE]))}{more}"


def asks_by_case(reading: Reading) -> dict[str, list[int]]:
    """Return case → ids of its asks. Cases and asks are in the order of the run."""
    asks: dict[str, list[int]] = {}
    for answer in reading.answers:
        asks.setdefault(answer.item.case, []).append(answer.ask)
    return asks


def views(reading: Reading, asks: Iterable[list[int]]) -> Generator[CaseView, None, None]:
    """Yield the view of each case, given the asks of each case. The store is read in batches, so that memory suffices
    for a run of any length."""
    with Store.read(reading.folder) as store:
        batch: list[list[int]] = []
        for case_asks in asks:
            if batch and sum(map(len, batch)) + len(case_asks) > BATCH:
                yield from _whole_views(store, batch)
                batch = []
            batch.append(case_asks)
        yield from _whole_views(store, batch)


def _whole_views(store: Store, batch: list[list[int]]) -> Iterator[CaseView]:
    answers = {a.ask: a for a in read(store, Part(asks=[ask for asks in batch for ask in asks])).answers}
    for asks in batch:
        yield from views_of(answers[ask] for ask in asks).values()


def views_of(answers: Iterable[Answer]) -> dict[str, CaseView]:
    """Return case → view, in the order of the answers."""
    by_case: dict[str, dict[str, tuple[Item, list[Answer]]]] = {}
    for answer in answers:
        items = by_case.setdefault(answer.item.case, {})
        items.setdefault(answer.item.id, (answer.item, []))[1].append(answer)
    return {name: _view(name, [Asked(*asked) for asked in items.values()]) for name, items in by_case.items()}


def _view(name: str, asked: list[Asked]) -> CaseView:
    first = asked[0].item
    by_task: dict[str, Any] = {
        "transcripts": [a for a in asked if a.item.task == "transcribe"],
        "voice": [a for a in asked if a.item.task == "choose" and a.item.level == 1],
        "reasoning": [a for a in asked if a.item.task == "choose" and a.item.level != 1],
        "replies": [a for a in asked if a.item.task not in ("transcribe", "choose")],
    }
    return CaseView(
        case=name,
        group=first.group,
        style=first.style,
        cue=first.cue,
        dimension=first.dimension,
        topic=next((a.item.topic for a in asked if a.item.topic), ""),
        words=next((t.words for a in asked for t in a.item.turns if t.words), ""),
        **by_task,
    )


def state(answer: Answer) -> str:
    """Return the state of an answer: "answered", "failed" or "pending"."""
    return "answered" if answer.answered else "failed" if answer.failed else "pending"


def right(answer: Answer) -> bool | None:
    """Return whether the answer to a question is right; None for other items, and for an answer without a score."""
    value = answer.value(CHOICE) if answer.item.task == "choose" and answer.item.gold else None
    return None if value is None else value == 1


def how_read(answer: Answer) -> str:
    """Return how the choice was read from a reply (see `measures.status`); "" for items without a choice."""
    return status(answer) if answer.item.task == "choose" else ""


def reasons(answer: Answer) -> dict[str, str]:
    """Return score → reason: the judge's reason for its score of the last reply, or why the score is missing."""
    return {name: _why(score) for name, score in answer.scores.items() if "@" in name or "reader" in score.detail}


def failure(answer: Answer) -> str:
    """Return the reason and detail of a failure; "" if the ask was answered or is pending."""
    found = answer.failure
    return f"{found.reason}: {found.detail}" if found and not answer.answered else ""


def _why(score: Score) -> str:
    """Return a judge's reason for its score, or the outcome of a reader for an answer that the rules could not read."""
    if "reader" in score.detail:
        return ": ".join(str(part) for part in ("reader", score.detail["reader"], score.detail.get("why")) if part)
    return str(score.detail.get("why") or "") if score.value is not None else score.reason
