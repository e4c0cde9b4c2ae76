"""Scores a run's stored replies with every metric that applies. Never asks the model under test."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

from overtone import registry
from overtone.metrics import Answered, Metric, Sounds
from overtone.runs.store import Store
from overtone.schema import Score

PAGE = 256


def score_run(
    folder: Path, *, again: bool = True, on_metric: Callable[[str, int], None] | None = None
) -> dict[str, int]:
    """Score every reply of a run; returns how many scores each metric gave.

    With `again` false, replies that already hold a value with the metric's present signature are passed over.
    """
    given: dict[str, int] = {}
    Store.read(folder).close()  # a folder that is no run is an error, not a new run
    with Store.create(folder) as store:
        for name in registry.listing("metrics"):
            metric: Metric = registry.find("metrics", name).load()
            given[name] = _score_with(store, metric, again)
            if on_metric:
                on_metric(name, given[name])
    return given


def _score_with(store: Store, metric: Metric, again: bool) -> int:
    done: set[int] | None = set() if again else None
    count = 0
    root = store.meta().get("root")
    sounds = Sounds(store.audio_path, Path(root) if root else None)
    stream = (
        (ask, Answered(ask.key(turn), ask.item, text, refused, finish, audio, sounds))
        for ask, turn, text, audio, finish, refused in store.answered()
        if metric.applies(ask.item)
    )
    while page := list(itertools.islice(stream, PAGE if done is not None else 1)):
        todo = [(ask, answered) for ask, answered in page if not done or ask.id not in done]
        if not todo:
            continue
        rows = metric.score([answered for _, answered in todo])
        by_turn: dict[int | None, list[tuple[int, Score]]] = {}
        for (ask, answered), scores in zip(todo, rows, strict=True):
            last = answered.key.turn == len(ask.item.turns) - 1
            by_turn.setdefault(None if last else answered.key.turn, []).extend((ask.id, score) for score in scores)
        for turn in sorted(by_turn, key=lambda t: (t is None, t)):  # an ask counts as scored with its last turn
            store.add_scores(by_turn[turn], turn=turn)
        count += sum(map(len, rows))
        if done is None:  # the first reply tells the signatures; what holds a value under all of them is done
            sets = [store.scored(s) for s in {score.signature for scores in rows for score in scores}]
            done = set.intersection(*sets) if sets else set()
    store.commit()
    return count
