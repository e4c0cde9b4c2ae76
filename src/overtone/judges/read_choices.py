"""A reader over a run's multiple-choice replies: what the rules could not read, it reads.

Its work is a measurement of `accuracy` of its own. Every reply has a row in it: as the rules read it, or where they
could not, as the reader does. A reply that the reader did not get to, or whose verdict could not be read, stays as the
rules left it, so that a failing server changes no number. The measurement by rules alone is not touched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import msgspec
from msgspec import Struct

from overtone.judges import choice_reader as reading
from overtone.judges.choice_reader import NONE, Checked
from overtone.judges.judge_run import FILE
from overtone.judges.panel import Detail, Outcome, Sitting, each
from overtone.judges.policy import Judge
from overtone.judges.verdict_cache import Verdicts
from overtone.runs.asker import Policy as Retries
from overtone.runs.limiter import Limiters
from overtone.runs.measurement_choice import same_signature
from overtone.runs.store import Ask, Store
from overtone.schema import Score
from overtone.scores import CHOICE

META = "readers"  # the run's meta holds under this key what is known of each reader
PAGE = 1000
_READ = "|reader:"


class Readout(Struct):
    """How a reader's work went: of `replies` answers to questions, the rules could not read `unparsed`. Of these the
    reader read `read`, found no choice in `none`, and did not read `left`."""

    replies: int = 0
    unparsed: int = 0
    read: int = 0
    none: int = 0
    left: int = 0
    checked: Checked | None = None
    outcome: Outcome = msgspec.field(default_factory=Outcome)

    @property
    def refused(self) -> bool:
        """Whether the reader is not good enough to be used."""
        return self.checked is not None and not self.checked.passed


class _Unparsed(Struct, frozen=True):
    ask: Ask
    turn: int
    text: str
    rules: Score


async def read_run(
    store: Store,
    reader: Judge,
    rules: str,
    *,
    retries: Retries | None = None,
    log: Callable[[str], None] | None = None,
    limiters: Limiters | None = None,
) -> Readout:
    """Read what the rules, which score with the signature `rules`, could not. What was read before is not asked again.

    The reader is checked first, unless it was on this machine before; one that fails the check reads nothing.
    """
    scores = _scores(store, rules)
    unparsed = {one.ask.id: one for one in _unparsed(store, scores)}
    result = Readout(len(scores), len(unparsed))
    with Verdicts(store.folder / FILE) as verdicts:
        logs = store.folder / "workers"
        sitting = Sitting(reader, verdicts, retries=retries, log=log, log_folder=logs, limiters=limiters)
        result.outcome = sitting.outcome
        try:
            if unparsed:
                result.checked = reading.kept_check(reader) or await reading.check(sitting)
                if result.checked is None or result.refused:
                    result.left = len(unparsed)
                    carry(store, rules)
                    return result
                sitting.outcome = result.outcome = _spent(sitting.outcome)
            _describe(store, reader, result.checked)
            ending = reading.signature(reader, "")
            read_before = _fill(store, ending, scores, unparsed)
            await _read(store, sitting, ending, unparsed, read_before, result)
        finally:
            await sitting.close()
    return result


def carry(store: Store, rules: str) -> None:
    """Complete a measurement with a reader by the replies that came since, where it is the one that is shown. Nobody is
    asked: replies that the rules cannot read stay as the rules left them until the reader is named again."""
    by_rules, read, rest = store.selection().shown.get(CHOICE, "").partition(_READ)
    if read and same_signature(rules, by_rules):
        scores = _scores(store, rules)
        _fill(store, read + rest, scores, {one.ask.id: one for one in _unparsed(store, scores)})


def _spent(outcome: Outcome) -> Outcome:
    """A fresh count for the run's own replies, with what the check has cost."""
    return Outcome(requests=outcome.requests, cost=outcome.cost)


def _scores(store: Store, rules: str) -> dict[int, Score]:
    """Ask → its score by the rules alone."""
    return {
        ask: score
        for ask, score in store.scores(every=True)
        if score.metric == CHOICE and _READ not in score.signature and same_signature(rules, score.signature)
    }


def _unparsed(store: Store, scores: dict[int, Score]) -> Iterator[_Unparsed]:
    """The replies with words that the rules could not read as one of the options, without those that the endpoint
    itself marked as refused."""
    for ask, turn, text, _, _, refused in store.answered():
        score = scores.get(ask.id)
        if score is None or score.value is None or refused or turn < len(ask.item.turns) - 1:
            continue
        words = text if text.strip() else str(score.detail.get("transcript") or "")
        if score.detail.get("status") != "parsed" and words.strip() and ask.item.options:
            yield _Unparsed(ask, turn, words, score)


def _fill(store: Store, ending: str, scores: dict[int, Score], unparsed: dict[int, _Unparsed]) -> set[int]:
    """Give every reply without one a row of the measurement whose signatures end like this, as the rules read it.
    Returns the asks whose replies the reader has read before."""
    held: set[int] = set()
    read: set[int] = set()
    for ask, score in store.scores(every=True):
        if score.metric == CHOICE and score.signature.endswith(ending):
            held.add(ask)
            if score.detail.get("rule") == "reader" or score.detail.get("reader") == NONE:
                read.add(ask)
    missing = [ask for ask, score in scores.items() if ask not in held]
    for start in range(0, len(missing), PAGE):
        rows = []
        for ask in missing[start : start + PAGE]:
            more: Detail = {"read_by": "rules", **({"reader": "not asked"} if ask in unparsed else {})}
            rows.append((ask, _row(scores[ask].signature + ending, scores[ask], more)))
        store.add_scores(rows)
    store.commit()
    return read


def _row(signature: str, score: Score, more: Detail, value: float | None = None) -> Score:
    found = score.value if value is None else value
    return Score(CHOICE, signature, found, score.reason, {**score.detail, **more})


async def _read(
    store: Store,
    sitting: Sitting,
    ending: str,
    unparsed: dict[int, _Unparsed],
    read_before: set[int],
    result: Readout,
) -> None:
    async def one(found: _Unparsed) -> None:
        item, score = found.ask.item, found.rules
        key = found.ask.key(found.turn)
        name = f"read {key.item}|{key.condition}|{key.repeat}|{key.turn}"
        read = await reading.read(sitting, name, item.id, item.options, found.text)
        signature = score.signature + ending
        if not read.answer:
            result.left += 1
            if found.ask.id in read_before:  # its verdict was lost, what it said is still stored
                return
            row = _row(signature, score, {"read_by": "rules", "reader": read.problem})
        elif read.answer == NONE:
            result.none += 1
            row = _row(signature, score, {"read_by": "rules", "reader": NONE, "why": read.why})
        else:
            result.read += 1
            option = next(option for option in item.options if option.letter == read.answer)
            detail: Detail = {"answer": read.answer, "status": "parsed", "rule": "reader", "why": read.why}
            detail |= {"provenance": option.provenance, "read_by": sitting.judge.identity, "reader": read.answer}
            row = _row(signature, score, detail, float(read.answer == item.gold))
        store.add_scores([(found.ask.id, row)])
        store.commit()

    await each(one, unparsed.values(), sitting.judge.policy.connections)


def _describe(store: Store, reader: Judge, checked: Checked | None) -> None:
    """Keep in the run which model the reader is and how it did in its check."""
    readers: dict[str, dict[str, str]] = {}
    with suppress(msgspec.MsgspecError, RecursionError):  # a stranger's run may hold anything there: begin anew
        readers = msgspec.json.decode(store.meta().get(META, "") or "{}", type=dict[str, dict[str, str]])
    checked_before = readers.get(reader.label, {}).get("check", "")
    check = checked.sentence if checked else checked_before
    readers[reader.label] = {"model": reader.identity, "check": check}
    store.set_meta({META: msgspec.json.encode(readers).decode()})
