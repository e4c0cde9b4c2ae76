"""The ledger of problems: failures, refusals, unreadable replies and missing scores.

No problem is dropped silently: each line of the ledger has a count and names some of the affected cases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from overtone.results.load import Answer
from overtone.results.measures import status
from overtone.results.score_details import lacking, needed_by
from overtone.schema import remarks
from overtone.scores import Declared

SHOWN = 3


class Place(Struct, frozen=True):
    """The case in which a problem occurred, and the stored detail of the problem."""

    case: str
    item: str
    condition: str
    detail: str


class LedgerRow(Struct, frozen=True):
    """One kind of problem with one reason."""

    kind: str  # failure, refusal, extraction, unscored, note
    reason: str
    count: int
    places: list[Place]


class Ledger(Struct, frozen=True):
    """The problems of a run, and the number of asks without a reply yet."""

    rows: list[LedgerRow]
    pending: int

    def of(self, kind: str) -> list[LedgerRow]:
        """Return the rows of one kind."""
        return [row for row in self.rows if row.kind == kind]


PENDING = "pending"
KINDS = ("failure", "refusal", "extraction", "unscored", "note")


def make_ledger(
    answers: Iterable[Answer], declared: Declared, text_of: Callable[[Answer], str] = lambda answer: ""
) -> Ledger:
    """Return the ledger of problems in these answers. `text_of` returns the reply's text if the answer does not hold
    its reply."""
    counts: dict[tuple[str, str], int] = {}
    places: dict[tuple[str, str], list[Place]] = {}
    pending = 0
    for answer, kind, reason, detail in entries(answers, declared):
        if kind == PENDING:
            pending += 1
            continue
        key = (kind, reason)
        counts[key] = counts.get(key, 0) + 1
        shown = places.setdefault(key, [])
        if len(shown) < SHOWN:
            if kind == "extraction" and not answer.replies:
                detail = text_of(answer)
            shown.append(Place(answer.item.case, answer.item_id, answer.condition, detail[:300]))
    ordered = sorted(counts, key=lambda key: (KINDS.index(key[0]), -counts[key], key[1]))
    return Ledger([LedgerRow(key[0], key[1], counts[key], places[key]) for key in ordered], pending)


def entries(answers: Iterable[Answer], declared: Declared) -> Iterator[tuple[Answer, str, str, str]]:
    """Yield (answer, kind, reason, detail) for every problem."""
    needed = {score: details for score, info in declared.items() if (details := needed_by(info))}
    for answer in answers:
        if answer.failed:
            failure = answer.failure
            yield answer, "failure", failure.reason if failure else "unknown", failure.detail if failure else ""
        elif not answer.answered:
            yield answer, PENDING, "", ""
            continue
        text = answer.replies[-1].text if answer.replies else ""
        if any(reply.refused for reply in answer.replies):
            yield answer, "refusal", "marked as a refusal by the endpoint", text
        if answer.answered and answer.item.task == "choose" and (how := status(answer)) not in ("", "parsed"):
            yield answer, "extraction", how, text
        for score in (s for scores in (*answer.earlier.values(), answer.scores) for s in scores.values()):
            if score.value is None:
                yield answer, "unscored", f"{score.metric}: {score.reason}", ""
            elif score.metric in needed and (fields := lacking(score, needed[score.metric])):
                yield answer, "unscored", f"{score.metric}: its detail lacks {', '.join(fields)}", ""
        for reply in answer.replies:
            for note in remarks(reply.notes):
                yield answer, "note", note, ""
