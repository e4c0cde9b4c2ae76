"""Mixing: the same batches for the same seed, the same tasks on every process, no record on two."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any, Literal

import pytest

from overtone.echat.data.exchange_records import Record
from overtone.echat.data.labels import Labels
from overtone.echat.data.layout import Sequence, Task, Think
from overtone.echat.learn.mixing import Mixture, Planned, Source, measuring, surveyed
from overtone.errors import DataError
from tests.echat.test_layout import TOK


def source(task: str, n: int, weight: float = 1.0, seed: int = 0, **how: object) -> Source:
    rng = random.Random(seed)
    records = [Record(f"{task}{at}") for at in range(n)]
    lengths = [rng.randint(20, 200) for _ in range(n)]
    return Source(records, task, weight, lengths=lengths, **how)  # type: ignore[arg-type]


def survey(source: Source, *how: Any) -> Source:
    return surveyed(source, [measuring(source, *how)(at) for at in range(len(source.records))])


def first(mixture: Mixture, n: int, start: int = 0) -> list[Planned]:
    return list(itertools.islice(mixture.batches(start), n))


SOURCES = [source("s2t", 300), source("s2s", 100), source("s2s", 60, 0.5), source("t2s", 90, 2.9)]


def test_the_same_seed_gives_the_same_batches_and_another_seed_others() -> None:
    one, two, other = (first(Mixture(SOURCES, budget=1000, seed=s), 60) for s in (1, 1, 2))
    assert one == two != other


def test_processes_take_the_same_tasks_and_no_record_twice() -> None:
    ranks = [first(Mixture(SOURCES, budget=1000, rank=rank, world=2), 80) for rank in (0, 1)]
    assert [batch.task for batch in ranks[0]] == [batch.task for batch in ranks[1]]
    sole = [SOURCES[0], SOURCES[1]]  # lists that are not repeated
    for task in ("s2t", "s2s"):
        seen: Counter[tuple[int, int]] = Counter()
        for rank in (0, 1):
            for batch in first(Mixture(sole, budget=1000, rank=rank, world=2), 30):
                if batch.task == task and batch.epoch == 0:
                    seen.update(batch.picks)
        assert seen
        assert max(seen.values()) == 1


@pytest.mark.parametrize(("records", "world"), [(60, 2), (300, 8)])
def test_the_longest_records_are_learnt_too_where_processes_leave_some_out(records: int, world: int) -> None:
    made = source("s2t", records)
    mixture = Mixture([made], budget=1000, world=world)
    learnt = {at for epoch in range(30) for batch in mixture.plan("s2t", epoch) for _, at in batch}
    assert learnt == set(range(records))
    assert all(len(mixture.plan("s2t", epoch)) % world == 0 for epoch in range(30))


@pytest.mark.parametrize("world", [1, 2, 3])
@pytest.mark.parametrize("start", [1, 17, 150])
def test_a_restart_goes_on_where_it_was(start: int, world: int) -> None:
    whole = first(Mixture(SOURCES, budget=1000, world=world, rank=world - 1), 170)
    assert first(Mixture(SOURCES, budget=1000, world=world, rank=world - 1), 20, start) == whole[start : start + 20]
    assert max(batch.epoch for batch in whole) >= 1


def test_tasks_are_drawn_in_proportion_to_their_lists() -> None:
    mixture = Mixture(SOURCES, budget=1000)
    assert mixture.weights == {"s2s": 130, "s2t": 300, "t2s": 180}
    drawn = Counter(mixture.task_at(index) for index in range(4000))
    assert drawn["s2t"] / 4000 == pytest.approx(300 / 610, abs=0.03)
    assert drawn["t2s"] / 4000 == pytest.approx(180 / 610, abs=0.03)


def test_a_weight_repeats_a_list_or_takes_a_part_of_it() -> None:
    mixture = Mixture(SOURCES, budget=1000)
    taken = Counter(pick for batch in mixture.plan("t2s", 0) for pick in batch)
    assert set(taken.values()) == {2}
    parts = []
    for epoch in (0, 1):
        picks = [pick for batch in mixture.plan("s2s", epoch) for pick in batch]
        parts.append({at for number, at in picks if number == 2})
        assert len(picks) == len(set(picks)) == 130
    assert len(parts[0]) == 30
    assert parts[0] != parts[1]


def test_a_batch_keeps_to_its_budget() -> None:
    mixture = Mixture(SOURCES, budget=1000)
    for task in mixture.tasks:
        room = {"s2s": 0.8}.get(task, 1.0)
        plan = mixture.plan(task, 0)
        for batch in plan:
            longest = max(SOURCES[number].lengths[at] for number, at in batch)
            assert longest * len(batch) <= room * 1000 + 1e-6
        filled = sum(SOURCES[n].lengths[at] for batch in plan for n, at in batch) / (1000 * room * len(plan))
        assert filled > 0.8  # like lengths lie together


def targeted(task: str, n: int, density: float, long: int = 1, **how: object) -> Source:
    found = source(task, n, **how)
    lengths = [long * length for length in found.lengths]
    return Source(found.records, found.task, lengths=lengths, targets=[round(density * length) for length in lengths])


@pytest.mark.parametrize("more", [[], [("s2t", 1500, 0.4, 3)]], ids=["one list a task", "unlike ones in a task"])
def test_lists_with_few_targets_have_larger_batches_and_as_many_positions(
    more: list[tuple[str, int, float, int]],
) -> None:
    kinds = [("t2s", 2000, 0.8, 1), ("s2t", 2000, 0.1, 1), *more]
    sources = [targeted(*kind) for kind in kinds]
    old, new = Mixture(sources, budget=1000), Mixture(sources, budget=100_000, targets=800)

    def held(mixture: Mixture, task: str) -> list[list[tuple[int, int]]]:
        batches = [batch for batch in first(mixture, 5000) if batch.task == task]
        return [[(sources[s].lengths[at], sources[s].targets[at]) for s, at in batch.picks] for batch in batches]

    for task in ("t2s", "s2t"):
        sums = [sum(t for _, t in batch) for batch in held(new, task)]
        assert max(sums) <= 800
        assert sum(sums) > (0.85 if not more else 0.7) * 800 * len(sums)
    shares = [
        sum(n for batch in held(m, "s2t") for n, _ in batch) / sum(n for batch in held(m, "t2s") for n, _ in batch)
        for m in (old, new)
    ]
    assert shares[1] == pytest.approx(shares[0], rel=0.12)


def test_thoughts_streaming_history_and_text_have_less_room() -> None:
    assert source("s2t", 1).room(0) == 1
    assert source("s2s", 1).room(0) == 0.8
    for less in (source("s2t", 1, thoughts=("label",)), source("s2s", 1, streaming=0.5), source("t2t", 1)):
        assert less.room(0) == 0.6


def test_a_record_longer_than_the_budget_is_a_batch_alone() -> None:
    plan = Mixture([source("s2t", 5)], budget=10).plan("s2t", 0)
    assert [len(batch) for batch in plan] == [1] * 5


def test_few_records_are_shared_out_among_the_processes() -> None:
    mixture = Mixture([source("s2t", 4)], budget=100_000, world=2)
    assert [len(batch) for batch in mixture.plan("s2t", 0)] == [2, 2]
    with pytest.raises(DataError, match="1 records for 2 processes"):
        Mixture([source("s2t", 1)], budget=1000, world=2)


def test_the_survey_measures_and_leaves_out_with_reasons() -> None:
    records = [
        Record("a", "Yes.", "x", "hi", Labels(emotion="sad"), think_str="so"),
        Record("b", "Yes.", "long", "hi"),
        Record("c", "Yes.", "", "hi"),
        Record("d", "Yes.", "x", "hi", think_str="so"),
    ]
    found = survey(
        Source(records, "s2t", thoughts=("natural",)),
        TOK,
        lambda clip: 500.0 if clip.wav == "long" else 2.0,
        lambda seconds: round(seconds * 12.5),
    )
    assert [bool(n) for n in found.lengths] == [True, False, False, True]
    assert found.left_out == {"no thought": 1, "no recording": 1}
    sequence: Sequence = found.lay_out(0, TOK, random.Random(0))
    assert found.lengths[0] == len(sequence.ids) - 1 + 25
    with pytest.raises(DataError, match=r"none of 1 records can be trained on: no recording \(1\)"):
        survey(Source(records[2:3], "s2t"), TOK, lambda clip: 1.0, round)


FLAGS = {"reply_tag": True, "all_heard": True}


@pytest.mark.parametrize(
    ("task", "style", "thoughts", "alike"),
    [("t2s", "chat", ("",), True), ("t2t", "chat", ("",), True), ("s2t", "understand", ("",), True),
     ("s2s", "chat", ("",), False), ("s2s", "chat", ("label",), False)],
)  # fmt: skip
def test_lists_that_lay_out_alike_have_the_same_lengths(
    task: Task, style: Literal["understand", "chat"], thoughts: tuple[Think, ...], alike: bool
) -> None:
    heard = {"heard": {"emotion": "sad", "age": "adult"}}
    records = [Record("a", "Yes.", "x", "hi", Labels(emotion="sad"), speech_token=(1,) * 30, extra=heard)]
    plain = Source(records, task, 2.0, style, thoughts)
    flagged = Source(records, task, 0.5, style, thoughts, **FLAGS)
    assert (plain.laid_out == flagged.laid_out) == alike
    lengths = [survey(one, TOK, lambda clip: 2.0, round).lengths for one in (plain, flagged)]
    assert (lengths[0] == lengths[1]) == alike
    assert Source(records, task, 2.0, style, thoughts, streaming=0.3).laid_out != plain.laid_out


@pytest.mark.parametrize(("task", "style", "left"), [("s2t", "chat", 1), ("t2t", "chat", 1), ("s2t", "understand", 0)])
def test_what_is_to_be_written_down_is_never_taught_as_a_reply(task: str, style: str, left: int) -> None:
    """Its `txt` are the speaker's own words: a model that learnt them as a reply would say back what it heard."""
    words = "Once upon a time."
    line = Record("a", words, "a.wav", words, Labels(style="fairy tale"), task="<TRANSCRIBE> <STYLE>")
    chat = Record("b", "Hello to you.", "b.wav", "Hello there.", Labels(emotion="happy"), task="<S2TCHAT>")
    found = survey(Source([line, chat], task, style=style), TOK, lambda clip: 2.0, lambda s: round(12.5 * s))  # type: ignore[arg-type]
    assert [bool(n) for n in found.lengths] == [not left, True]
    assert found.left_out == ({"for understanding only": 1} if left else {})


def test_shares_divide_the_records_of_lists_that_are_laid_out_alike() -> None:
    lists = [source("s2t", 900, share=0.5), source("s2t", 80, share=0.3, seed=1), source("s2t", 20, share=0.2, seed=2)]
    mixture = Mixture([*lists, source("s2s", 100)], budget=1000)
    for epoch in (0, 1):
        picks = [pick for batch in mixture.plan("s2t", epoch) for pick in batch]
        assert Counter(number for number, _ in picks) == {0: 500, 1: 300, 2: 200}
        uses = [Counter(at for number, at in picks if number == n) for n in range(3)]
        assert set(uses[0].values()) == {1} and set(uses[1].values()) == {3, 4} and set(uses[2].values()) == {10}
    assert mixture.weights["s2t"] == pytest.approx(1000)  # as many as the lists have together


def test_a_share_without_data_goes_to_the_others_and_a_share_alone_changes_nothing() -> None:
    plain, shared = source("s2t", 300), source("s2t", 300, share=0.4)
    assert first(Mixture([plain], budget=1000), 40) == first(Mixture([shared], budget=1000), 40)
    other = source("s2t", 100, share=0.2, seed=3)
    picks = [pick for batch in Mixture([shared, other], budget=1000).plan("s2t", 0) for pick in batch]
    assert Counter(number for number, _ in picks) == {0: 267, 1: 133}


def test_only_lists_that_are_laid_out_alike_divide_their_records() -> None:
    lists = [source("s2t", 300, share=0.5, style="understand"), source("s2t", 100, share=0.5, style="chat")]
    picks = [pick for batch in Mixture(lists, budget=1000).plan("s2t", 0) for pick in batch]
    assert Counter(number for number, _ in picks) == {0: 300, 1: 100}
