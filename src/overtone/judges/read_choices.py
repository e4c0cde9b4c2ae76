"""Let a reader read the multiple-choice replies of a run that the rules could not read.

The result is a separate measurement of `accuracy` with a row for every reply: the rules' result or, if the rules could
not read the reply, the reader's. A reply without a valid verdict of the reader keeps the rules' result, so that a
failing server changes no number. The measurement by rules alone does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import msgspec
from msgspec import Struct

from overtone.judges import choice_reader as reading
from overtone.judges.choice_reader import NONE, Checked
from overtone.judges.judge_run import FILE
from overtone.judges.judgement import Detail, Outcome
from overtone.judges.panel import Sitting, each
from overtone.judges.policy import Judge
from overtone.judges.verdict_cache import Verdicts
from overtone.runs.asker import Policy as Retries
from overtone.runs.limiter import Limiters
from overtone.runs.measurement_choice import same_signature
from overtone.runs.store import Ask, Store
from overtone.schema import Score
from overtone.scores import CHOICE

META = "readers"  # key in the run's meta for the descriptions of readers
PAGE = 1000
_READ = "|reader:"


class Readout(Struct):
    """The outcome of a reader's work, as numbers of replies."""

    replies: int = 0
    unparsed: int = 0  # not readable by the rules; the three below sum to this
    read: int = 0  # the reader found a choice
    none: int = 0  # the reader found no choice
    left: int = 0  # not read by the reader
    checked: Checked | None = None
    outcome: Outcome = msgspec.field(default_factory=Outcome)

    @property
    def refused(self) -> bool:
        """Whether the reader is not good enough to be used."""
        return self.checked is not None and not self.checked.passed


class _Unparsed(Struct, frozen=True):
    ask: Ask
    words: str  # of its reply, or what was heard in it
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
    """Read the replies that the rules with the signature `rules` could not read. Earlier readings are reused.

    The reader is checked first, unless it was checked on this machine before. A reader that fails is not used.
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
    """Add replies that arrived later to a measurement with a reader, if results show that measurement.

    No model is asked: new replies that the rules cannot read keep the rules' result until the reader runs again.
    """
    by_rules, read, rest = store.selection().shown.get(CHOICE, "").partition(_READ)
    if read and same_signature(rules, by_rules):
        scores = _scores(store, rules)
        _fill(store, read + rest, scores, {one.ask.id: one for one in _unparsed(store, scores)})


def _spent(outcome: Outcome) -> Outcome:
    """Return an outcome with the cost of the reader's check, and zero counts because no reply of the run was read."""
    return Outcome(requests=outcome.requests, cost=outcome.cost)


def _scores(store: Store, rules: str) -> dict[int, Score]:
    """Return ask → the score that the rules alone gave, without a reader."""
    return {
        ask: score
        for ask, score in store.scores(every=True)
        if score.metric == CHOICE and _READ not in score.signature and same_signature(rules, score.signature)
    }


def _unparsed(store: Store, scores: dict[int, Score]) -> Iterator[_Unparsed]:
    """Yield the replies with words that the rules could not read, except those that the endpoint marked as refused."""
    for ask in store.answered():
        score = scores.get(ask.id)
        if score is None or score.value is None or ask.reply.refused:
            continue
        words = ask.reply.text if ask.reply.text.strip() else str(score.detail.get("transcript") or "")
        if score.detail.get("status") != "parsed" and words.strip() and ask.item.options:
            yield _Unparsed(ask, words, score)


def _fill(store: Store, ending: str, scores: dict[int, Score], unparsed: dict[int, _Unparsed]) -> set[int]:
    """Copy the rules' scores into the measurement whose signature ends in `ending`, for replies that it lacks.

    Return the asks whose replies the reader has already read.
    """
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
    value = score.value if value is None else value
    return Score(CHOICE, signature, value, score.reason, {**score.detail, **more})


async def _read(
    store: Store,
    sitting: Sitting,
    ending: str,
    unparsed: dict[int, _Unparsed],
    read_before: set[int],
    result: Readout,
) -> None:
    async def one(reply: _Unparsed) -> None:
        item, score = reply.ask.item, reply.rules
        key = reply.ask.reply.key
        name = f"read {key.item}|{key.condition}|{key.repeat}|{key.turn}"
        read = await reading.read(sitting, name, item.id, item.options, reply.words)
        signature = score.signature + ending
        if not read.answer:
            result.left += 1
            if reply.ask.id in read_before:  # the verdict is lost, but its score is still stored
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
        store.add_scores([(reply.ask.id, row)])
        store.commit()

    await each(one, unparsed.values(), sitting.judge.policy.connections)


def _describe(store: Store, reader: Judge, checked: Checked | None) -> None:
    """Store the reader's model and the result of its check in the run."""
    readers: dict[str, dict[str, str]] = {}
    with suppress(msgspec.MsgspecError, RecursionError):  # the run may come from elsewhere: start from nothing
        readers = msgspec.json.decode(store.meta().get(META, "") or "{}", type=dict[str, dict[str, str]])
    checked_before = readers.get(reader.label, {}).get("check", "")
    check = checked.sentence if checked else checked_before
    readers[reader.label] = {"model": reader.identity, "check": check}
    store.set_meta({META: msgspec.json.encode(readers).decode()})
