"""A study with made-up units, and raters who answer it, without runs or sounds."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from overtone.studio.store import Store
from overtone.studio.store.store_records import Person, Slot
from overtone.studio.study import Checks, Database, People, Source, Study


class Unit(Struct, frozen=True):
    """The least that a unit has."""

    id: str
    group: str
    system: str


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def make_units(scripts: int = 12, systems: tuple[str, ...] = ("one", "two", "three")) -> list[Unit]:
    """Every script in every system."""
    return [Unit(f"{system}-{script}", f"s{script}", system) for script in range(scripts) for system in systems]


def make_study(folder: Path, url: str, *, checks: Checks | None = None, **settings: Any) -> Study:
    """A study file's content, with an id of its own."""
    values: dict[str, Any] = {
        "id": secrets.token_hex(6), "title": "A test", "design": "acr", "rubrics": ("echomind",), "raters": 20,
        "session": 6, "votes": 3, "people": People(consent="Yes?"), "store": Database(url=url),
        "checks": checks or Checks(headphones=False, training=2, traps=1, gold=1),
        "sources": (Source(name="one", path="one"),), "path": folder / "study.toml",
    }  # fmt: skip
    return Study(**{**values, **settings})


def open_study(
    study: Study, units: list[Unit] | None = None, *, clock: Callable[[], float] = time.time, **options: int
) -> Store:
    """An open store whose units are frozen."""
    store = Store.open(study, clock=clock)
    store.freeze(make_units() if units is None else units, **{"sides": 1, **options})
    return store


def arrive(store: Store) -> Person:
    """A new rater who has consented and set up the sound."""
    label = store.people.invite(1)[0].label
    store.people.consent(label, store.study.consent_sha, True, {})
    return store.people.set_up(label, {"output": "headphones"}, 0.5)


def rate(store: Store, label: str, slot: Slot, value: Any = 4, key: str = "") -> bool:
    """Answer one screen completely."""
    key = key or f"{slot.id}.done"
    return store.answers.add(label, slot.id, key, {"C1": value}, plays={"reply": 1}, ms=4000, done=True)


def finish(store: Store, label: str) -> list[Slot]:
    """Answer a whole session, and return its places."""
    places = store.sessions.enter(label)
    for slot in places:
        rate(store, label, slot)
    return places
