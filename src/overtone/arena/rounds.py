"""Rounds of the arena: pairs are drawn, judges vote on them in both orders, and the next round knows what they said."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack

from overtone.arena import pairing as drawing
from overtone.arena.contestants import Field
from overtone.arena.pairing import Pair, round_length
from overtone.arena.vote_store import VERDICTS, Table, Vote
from overtone.errors import UsageError
from overtone.judges import trust_record
from overtone.judges.judgement import Judgement, Outcome
from overtone.judges.panel import Sitting, each
from overtone.judges.policy import Judge
from overtone.judges.rubric import Rubric
from overtone.judges.verdict_cache import Verdicts
from overtone.stats.votes import Votes, votes


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
    """Draw until there are `count` pairs, and have every judge vote on the first `count`; how it went for each judge.

    Pairs drawn before stay the first. Where a judge stops (budget, a wrong key) no further pairs are drawn: the same
    command goes on from there.
    """
    labels = [judge.label for judge in judges]
    if len(set(labels)) < len(labels):
        raise UsageError("two judges have one name; give one of them label=NAME in its SPEC")
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
        for sitting in sittings:  # open from the first round to the last: a worker's model is loaded once
            stack.push_async_callback(sitting.close)
        for part in _rounds(field, table, count, seed):
            await asyncio.gather(*(_vote(field, table, sitting, rubric, part, on_judged) for sitting in sittings))
            stopped = [sitting.outcome.stopped for sitting in sittings]
            if any(why not in ("", "unreadable") for why in stopped) or (stopped and all(stopped)):
                break  # of several judges, the others go on without one whose verdicts cannot be read
        return {sitting.judge.label: sitting.outcome for sitting in sittings}


def current(field: Field, table: Table) -> list[Pair]:
    """The table's pairs whose runs, case and replies are still those of the field."""
    keys, here = {case.key for case in field.cases}, set(field.players)
    return [
        pair
        for pair in table.pairs()
        if pair.key in keys and {pair.a, pair.b} <= here and field.identify(pair.key, pair.a, pair.b) == pair.id
    ]


def counted(found: Sequence[Vote]) -> Votes:
    """Votes as the statistics take them."""
    return votes([v.a for v in found], [v.b for v in found], [v.winner for v in found])


def _rounds(field: Field, table: Table, count: int, seed: int) -> Iterator[list[Pair]]:
    """The first `count` pairs, a round at a time; a round is drawn when the one before it has been voted on."""
    length = round_length(len(field.players))
    done = 0
    while done < count:
        end = min(count, (done // length + 1) * length)
        here = current(field, table)
        drawn = [pair for pair in here if pair.drawn]
        if len(drawn) < end:
            begun = len(drawn) // length * length  # of the round that the next pair belongs to
            seen = {pair.id for pair in drawn[:begun]} | {pair.id for pair in here if not pair.drawn}
            cast = counted([vote for vote in table.votes() if vote.pair in seen])
            wanted = min(end, begun + length) - len(drawn)
            new = drawing.draw(field.players, field.cases, here, wanted, seed=seed, cast=cast)
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
    part: Sequence[Pair],
    on_judged: Callable[[str, int], None],
) -> None:
    """One judge's votes on the pairs of a round, each kept as it comes."""

    async def one(pair: Pair) -> None:
        subject = await asyncio.to_thread(field.subject, pair, rubric)  # it may have to be transcribed
        judgement = await sitting.judgement(rubric, subject)
        table.keep(_votes(pair, sitting.judge, rubric, judgement))
        on_judged(sitting.judge.label, 1)

    await each(one, part, sitting.judge.policy.connections)


def _votes(pair: Pair, judge: Judge, rubric: Rubric, judgement: Judgement) -> Iterator[Vote]:
    """A judgement's verdicts as they were cast: a draw's own A is the pair's, whichever side it was shown on."""
    for draw in judgement.draws:
        said = draw.values.get(rubric.dimensions[0].key)
        if said is None:
            continue
        a, b = (pair.b, pair.a) if draw.swapped else (pair.a, pair.b)
        winner = {"A": "B", "B": "A"}.get(str(said), str(said)) if draw.swapped else str(said)
        yield Vote(pair.id, a, b, winner, judge.label, "judge", rubric.identity, draw.repeat, judge.identity)


def trust(judges: Sequence[Judge], rubric: Rubric) -> list[str]:
    """A note for every judge that has not shown that it can be trusted with this question."""
    return [
        f"{judge.label} is not validated for the rubric {rubric.name}; see 'overtone judge validate'"
        for judge in judges
        if trust_record.validated(trust_record.identity(judge, rubric), rubric) is None
    ]
