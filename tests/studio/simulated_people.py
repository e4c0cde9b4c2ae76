"""People who take part through the real store: their opinions are known, and some of them do not listen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct

from overtone.cli import main
from overtone.studio import contents, study
from overtone.studio.contents import Contents
from overtone.studio.designs import Unit
from overtone.studio.fields import Scale, Value
from overtone.studio.store import Store
from overtone.studio.store.store_records import Slot
from overtone.studio.study import Study
from tests.arena.helpers import make_run

ITEM, RATER, REST, SEVERITY = 0.6, 0.3, 0.85, 0.4  # the spreads that `studio new` assumes, and how strict people are
CLOSE = 0.3  # two replies this close are equally good


class Crowd(Struct, frozen=True):
    """A study with everybody's answers in its store, and who did not listen."""

    study: Study
    store: Store
    careless: frozenset[str]


def simulate(
    folder: Path, worth: Mapping[str, float], *flags: str, people: int, careless: float, scripts: int, seed: int = 0
) -> Crowd:
    """Make a study of runs worth this much on a scale from 1 to 5, and let people take part until they are done."""
    rng = np.random.default_rng(seed)
    runs = [
        make_run(folder / name, 1.0 + at, scripts=scripts, spoken=True, root=folder / "clips")
        for at, name in enumerate(worth)
    ]
    path = folder / "study.toml"
    words = ["studio", "new", str(path), "--from", *map(str, runs), "--raters", str(people), *flags]
    assert main(words) == 0
    made = study.read(path)
    asked = contents.read(made)
    store = Store.open(made)
    store.freeze(asked.units, sides=len(asked.design.sides), question_groups=asked.question_groups)
    units = {unit.id: unit for unit in asked.units}
    opinion = _Opinions(worth, {unit.group for unit in asked.units}, rng)
    idle = set()
    not_listening = set(rng.permutation(people)[: int(careless * people)].tolist())
    for number in range(people):
        label = store.people.invite(1)[0].label
        store.people.consent(label, made.consent_sha, True, {})
        store.people.set_up(label, {"output": "headphones"}, 0.5)
        if number in not_listening:
            idle.add(label)
        person = opinion.person()
        for slot in store.sessions.enter(label):
            values = _answers(asked, units.get(slot.unit), slot, person, rng, label in idle)
            plays = {one.name: 1 for one in asked.played(units[slot.unit])} if slot.unit in units else {}
            store.answers.add(label, slot.id, f"{slot.id}.done", values, plays=plays, ms=9_000, done=True)
    return Crowd(made, store, frozenset(idle))


class _Opinions:
    """How good every reply is for every person: worth, and the three spreads."""

    def __init__(self, worth: Mapping[str, float], groups: set[str], rng: np.random.Generator) -> None:
        self.worth, self.rng = worth, rng
        self.script = {group: rng.normal(0, 0.5) for group in sorted(groups)}
        self.item = {(group, run): rng.normal(0, ITEM) for group in sorted(groups) for run in worth}

    def person(self) -> _Person:
        return _Person(
            self, float(self.rng.normal(0, SEVERITY)), {run: self.rng.normal(0, RATER) for run in self.worth}
        )


class _Person:
    def __init__(self, all_: _Opinions, severity: float, taste: Mapping[str, float]) -> None:
        self.all, self.severity, self.taste = all_, severity, taste

    def rates(self, group: str, run: str) -> float:
        known = self.all
        shared = known.worth[run] + known.script[group] + known.item[group, run]
        return float(shared + self.severity + self.taste[run] + known.rng.normal(0, REST))


def _answers(
    asked: Contents, unit: Unit | None, slot: Slot, person: _Person, rng: np.random.Generator, idle: bool
) -> dict[str, Value]:
    if slot.kind == "trap" or unit is None:
        return {"tones": slot.target + 1 if idle else slot.target}
    fields = asked.fields_of(unit)
    if idle:
        return {field.key: _anything(field, rng) for field in fields}
    if slot.kind == "gold":
        right = asked.design.gold(fields, asked.rubrics, slot.target)
        return {field.key: right[field.key][0] for field in fields}
    rated = [person.rates(unit.group, reply.run) for reply in unit.replies]
    return {field.key: _chosen(field, rated[::-1] if slot.swap else rated) for field in fields}


def _anything(field: object, rng: np.random.Generator) -> Value:
    if isinstance(field, Scale):
        return int(rng.integers(field.low, field.high + 1))
    return str(rng.choice(sorted(field.options)))  # type: ignore[attr-defined]


def _chosen(field: object, rated: Sequence[float]) -> Value:
    """What a person answers about replies in the order of the screen."""
    if isinstance(field, Scale) and len(rated) == 1:
        return int(np.clip(round(rated[0]), field.low, field.high))
    gap = rated[0] - rated[1]
    if isinstance(field, Scale):  # B against A
        return int(np.clip(round(-gap), field.low, field.high))
    if abs(gap) < CLOSE:
        return "both_good" if sum(rated) > 6 else "both_bad"
    return "A" if gap > 0 else "B"
