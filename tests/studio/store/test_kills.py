"""The process is killed with SIGKILL while it stores answers: nothing acknowledged is lost, nothing is stored twice."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from overtone.studio.store import Store
from overtone.studio.study import Study
from tests.studio.store.helpers import arrive, make_study, make_units, open_study

FIELDS = ("C1", "C2", "C3")


def answer_until_killed(study: Study, label: str, acknowledged: int) -> None:
    """Run in a child: resume a person's session, answer, and write the key of each stored answer to the pipe."""
    with Store.open(study, create=False) as store:
        store.sessions.enter(label)
        while (slot := store.sessions.current(label)) is not None:
            for at, field in enumerate(FIELDS):
                key = f"{slot.id}.{field}"
                done = at == len(FIELDS) - 1
                store.answers.add(label, slot.id, key, {field: at}, plays={"reply": 1}, ms=9, done=done)
                os.write(acknowledged, f"{key}\n".encode())


def start(study: Study, label: str) -> tuple[int, int]:
    """Fork a child that answers. Return its id, and the end of the pipe from which acknowledgements are read."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            answer_until_killed(study, label, writing)
        finally:
            os._exit(0)
    os.close(writing)
    return child, reading


def kill_at_a_random_moment(child: int, reading: int, chance: random.Random) -> set[str]:
    """Let the child store a few answers, kill it, and return the keys that it acknowledged."""
    told = b""
    enough = chance.randint(1, 5)
    while told.count(b"\n") < enough and (more := os.read(reading, 4096)):
        told += more
    time.sleep(chance.uniform(0, 0.004))  # an answer takes about that long
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while more := os.read(reading, 4096):
        told += more
    os.close(reading)
    return set(told.decode().split())


@pytest.mark.parametrize("kills", [3, pytest.param(100, marks=pytest.mark.full)])
def test_no_answer_is_lost_or_doubled_when_the_process_is_killed(tmp_path: Path, database: str, kills: int) -> None:
    study = make_study(tmp_path, database, session=6, votes=40)
    with open_study(study, make_units(12)) as store:
        people = [arrive(store).label for _ in range(2 + kills // 5)]
    chance = random.Random(kills)
    acknowledged: set[str] = set()  # a killed child's unfinished screen is answered again, with the same keys
    done = 0
    while done < kills:
        with Store.open(study) as store:
            label = next((one for one in people if store.sessions.step(one) != "done"), "")
            if not label:  # a fast machine stores more answers before each kill
                people.append(label := arrive(store).label)
        acknowledged |= kill_at_a_random_moment(*start(study, label), chance)
        done += 1
    with Store.open(study) as store:
        stored = Counter(f"{one.slot}.{one.field}" for one in store.answers.history())
        assert set(stored.values()) == {1}
        assert acknowledged <= set(stored)
        assert len(stored) - len(acknowledged) <= kills  # stored, but killed before the acknowledgement
        for label in people:
            kinds = Counter(slot.kind for slot in store.sessions.enter(label))
            assert kinds == {"training": 2, "trap": 1, "gold": 1, "real": 6}
