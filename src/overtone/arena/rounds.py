"""Rounds of the arena: draw pairs, let judges vote on them in both orders, and draw the next round based on the
votes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack

from overtone.arena import pairing as drawing
from overtone.arena.contestants import Field
from overtone.arena.pairing import Pair, round_length
from overtone.arena.vote_store import VERDICTS, Table, Vote, counted
from overtone.errors import UsageError
from overtone.judges import trust_record
from overtone.judges.judgement import Judgement, Outcome
from overtone.judges.panel import Sitting, each
from overtone.judges.policy import Judge
from overtone.judges.rubric import Rubric
from overtone.judges.verdict_cache import Verdicts


def play(
    field: Field,
    table: Table,
    judges: Sequence[Judge],
    rubric: Rubric,
    count: int,
    *,
    seed: int = 0,
    on_judged: Callable[[str, int], None] | None = None,
) -> dict[str, Outcome]:
    """Draw pairs until the arena has `count`, and let every judge vote on the first `count`. Return the judges'
    outcomes.

    Pairs that were drawn earlier come first. If a judge stops (budget, a wrong key), no further pairs are drawn; the
    same command resumes the round.
    """
    labels = [judge.label for judge in judges]
    if len(set(labels)) < len(labels):
        raise UsageError("two judges have the same label; give one of them label=NAME in its SPEC")
    return asyncio.run(_play(field, table, judges, rubric, count, seed, on_judged or (lambda label, more: None)))


async def _play(
    field: Field,
    table: Table,
    judges: Sequence[Judge],
    rubric: Rubric,
    count: int,
    seed: int,
    on_judged: Callable[[str, int], None],
) -> dict[str, Outcome]:
    async with AsyncExitStack() as stack:
        sittings = []
        if judges:
            verdicts = stack.enter_context(Verdicts(table.folder / VERDICTS))
            sittings = [Sitting(judge, verdicts, log_folder=table.folder / "workers") for judge in judges]
        for sitting in sittings:  # open for all rounds, so that a worker's model is loaded once
            stack.push_async_callback(sitting.close)
        for pairs in _rounds(field, table, count, seed):
            await asyncio.gather(*(_vote(field, table, sitting, rubric, pairs, on_judged) for sitting in sittings))
            stopped = [sitting.outcome.stopped for sitting in sittings]
            if any(why not in ("", "unreadable") for why in stopped) or (stopped and all(stopped)):
                break  # the other judges continue without one whose verdicts cannot be read
        return {sitting.judge.label: sitting.outcome for sitting in sittings}


def current(field: Field, table: Table) -> list[Pair]:
    """Return the stored pairs that are still valid: the field has the same runs, case and replies."""
    keys, players = {case.key for case in field.cases}, set(field.players)
    return [
        pair
        for pair in table.pairs()
        if pair.key in keys and {pair.a, pair.b} <= players and field.identify(pair.key, pair.a, pair.b) == pair.id
    ]


def _rounds(field: Field, table: Table, count: int, seed: int) -> Iterator[list[Pair]]:
    """Yield the first `count` pairs, round by round. A round is drawn after the votes on the previous round."""
    length = round_length(len(field.players))
    done = 0
    while done < count:
        end = min(count, (done // length + 1) * length)
        pairs = current(field, table)
        drawn = [pair for pair in pairs if pair.drawn]
        if len(drawn) < end:
            begun = len(drawn) // length * length  # first pair of the round that the next pair belongs to
            seen = {pair.id for pair in drawn[:begun]} | {pair.id for pair in pairs if not pair.drawn}
            cast = counted([vote for vote in table.votes() if vote.pair in seen])
            wanted = min(end, begun + length) - len(drawn)
            new = drawing.draw(field.players, field.cases, pairs, wanted, seed=seed, cast=cast)
            table.add_pairs(field.pair(case, a, b, drawn=True) for case, a, b in new)
            if not new:
                end = len(drawn)
            drawn = [pair for pair in current(field, table) if pair.drawn]
            end = min(end, len(drawn))
        if end <= done:
            return
        yield drawn[done:end]
        done = end


async def _vote(
    field: Field,
    table: Table,
    sitting: Sitting,
    rubric: Rubric,
    pairs: Sequence[Pair],
    on_judged: Callable[[str, int], None],
) -> None:
    """Let one judge vote on the pairs of a round. Each vote is stored at once."""

    async def one(pair: Pair) -> None:
        subject = await asyncio.to_thread(field.subject, pair, rubric)  # it may need a transcript, which is slow
        judgement = await sitting.judgement(rubric, subject)
        table.store(_votes(pair, sitting.judge, rubric, judgement))
        on_judged(sitting.judge.label, 1)

    await each(one, pairs, sitting.judge.policy.connections)


def _votes(pair: Pair, judge: Judge, rubric: Rubric, judgement: Judgement) -> Iterator[Vote]:
    """Convert a judgement to votes, one per verdict. In a vote, `a` is the run that was shown as A."""
    for draw in judgement.draws:
        verdict = draw.values.get(rubric.dimensions[0].key)
        if verdict is None:
            continue
        a, b = (pair.b, pair.a) if draw.swapped else (pair.a, pair.b)
        winner = {"A": "B", "B": "A"}.get(str(verdict), str(verdict)) if draw.swapped else str(verdict)
        yield Vote(pair.id, a, b, winner, judge.label, "judge", rubric.identity, draw.repeat, judge.identity)


def trust(judges: Sequence[Judge], rubric: Rubric) -> list[str]:
    """Return a note for every judge that is not validated for this rubric."""
    return [
        f"{judge.label} is not validated for the rubric {rubric.name}; see 'overtone judge validate'"
        for judge in judges
        if trust_record.validated(trust_record.identity(judge, rubric), rubric) is None
    ]
