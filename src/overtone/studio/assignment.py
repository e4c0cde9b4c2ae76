"""Which units a person gets, and in which order: pure functions, so that balance can be tested over many people.

A person meets every script at most once and every system equally often. The order of the systems is a row of a Williams
square. So over many people, every system comes equally often in every position and after every other system. Units with
the fewest answers and reservations are given out first, which makes the design of scripts × systems a balanced
incomplete block design. All people rate a fixed overlap set, to measure their agreement.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from msgspec import Struct

Kind = Literal["training", "trap", "gold", "real", "anchor", "repeat"]

ANCHOR = "anchor"  # the system of units with known low or high quality, for the variance rule
TONES = (2, 3, 4, 5)  # right answers of a trap
LEAST_GAP = 4  # screens between a unit and its repetition, if the session is long enough


class Place(Struct, frozen=True):
    """The properties of a unit that assignment uses."""

    id: str
    group: str
    system: str


class Needs(Struct, frozen=True, kw_only=True):
    """The size of a session, and how many answers a unit needs. With two `sides`, the order on a screen varies."""

    session: int
    votes: int
    overlap: int = 0
    training: int = 0
    traps: int = 0
    gold: int = 0
    repeats: int = 0
    anchors: int = 0
    sides: int = 1
    seed: int = 0


class Held(Struct, frozen=True, kw_only=True):
    """Assigned places of all people (`votes` and `swaps` per unit), and of this person."""

    votes: Mapping[str, int] = {}  # finished and reserved real places
    swaps: Mapping[str, int] = {}  # those of them whose second reply is first
    groups: frozenset[str] = frozenset()  # scripts that this person has met, in whatever kind of place
    units: tuple[str, ...] = ()  # real units of this person's session that are already there, in order
    kinds: Mapping[str, int] = {}  # places of this person's session per kind
    number: int = 0  # of sessions that began before; rotates orders


class Planned(Struct, frozen=True, kw_only=True):
    """One place to reserve."""

    kind: Kind
    unit: str = ""
    swap: bool = False
    target: int = 0


def williams(count: int) -> list[list[int]]:
    """Return orders of `count` things. Every thing comes equally often in every position and after every other thing.

    An even number of things needs `count` orders, an odd number twice as many.
    """
    zigzag = [(-(at // 2) if at % 2 == 0 else at // 2 + 1) % count for at in range(count)]
    rows = [[(thing + shift) % count for thing in zigzag] for shift in range(count)]
    return rows if count % 2 == 0 else rows + [row[::-1] for row in rows]


def overlap_set(places: Sequence[Place], size: int, seed: int) -> list[Place]:
    """Return the units that all people rate. Their scripts differ, and the systems take turns."""
    mixed = _mixed(places, f"{seed}:overlap")
    systems = sorted({place.system for place in mixed} - {ANCHOR})
    chosen: list[Place] = []
    groups: set[str] = set()
    for turn in range(size * len(systems)):
        wanted = systems[turn % len(systems)]
        found = next((p for p in mixed if p.system == wanted and p.group not in groups), None)
        if found is not None and len(chosen) < size:
            chosen.append(found)
            groups.add(found.group)
    return chosen


def rateable(places: Sequence[Place], needs: Needs) -> list[Place]:
    """Return the units that can be rated.

    Anchors are left out. If a script is in the overlap set, its other units are left out too.
    """
    fixed = {place.group: place.id for place in overlap_set(places, needs.overlap, needs.seed)}
    return [p for p in places if p.system != ANCHOR and fixed.get(p.group, p.id) == p.id]


def places_left(places: Sequence[Place], votes: Mapping[str, int], needs: Needs) -> int:
    """Return how many more rated places the study needs."""
    return sum(max(0, needs.votes - votes.get(place.id, 0)) for place in rateable(places, needs))


def plan(
    places: Sequence[Place], needs: Needs, held: Held, *, duels: Sequence[str] = (), blocked: Iterable[str] = ()
) -> list[Planned]:
    """Return the places that a person's session lacks, in order; [] if the study needs no more answers.

    `duels` are the systems of the next places in order of preference (adaptive pairs). A session is complete even if
    fewer answers are missing: the additional ones do no harm, and sessions stay comparable.
    """
    lost = set(blocked)
    usable = [place for place in places if place.id not in lost]
    rated = [place for place in usable if place.system != ANCHOR]
    missing = needs.session - held.kinds.get("real", 0)
    if missing > 0 and places_left(rated, held.votes, needs) == 0:
        return []
    taken = set(held.groups)
    reserve = _extras_wanted(needs, held) if not held.units else 0
    chosen = _real(rated, needs, held, missing, taken, duels, reserve) if missing > 0 else []
    taken |= {place.group for place in chosen}
    ordered = in_order(chosen, held.number, needs.seed)
    real = [Planned(kind="real", unit=p.id, swap=s) for p, s in zip(ordered, _sides(ordered, needs, held), strict=True)]
    return _with_extras(real, usable, needs, held, taken)


def _extras_wanted(needs: Needs, held: Held) -> int:
    wanted = (("training", needs.training), ("gold", needs.gold))
    return sum(max(0, count - held.kinds.get(kind, 0)) for kind, count in wanted)


# ── which units ───────────────────────────────────────────────────────────────────────────────────────────────────────
def _real(
    places: Sequence[Place], needs: Needs, held: Held, missing: int, taken: set[str], duels: Sequence[str], reserve: int
) -> list[Place]:
    """Return the real units: the overlap set, then units with the fewest answers, systems in equal numbers."""
    fixed = [p for p in overlap_set(places, needs.overlap, needs.seed) if p.group not in taken]
    chosen = [place for place in fixed if place.id not in held.units][:missing]
    met = taken | {place.group for place in chosen}
    free = [place for place in rateable(places, needs) if place.group not in met]
    missing = min(missing, max(len(chosen), _groups(free) + len(chosen) - reserve))
    systems = Counter(place.system for place in places if place.id in held.units)
    systems.update(place.system for place in chosen)
    queues = _queues(free, needs, held)
    wanted = list(duels)
    while len(chosen) < missing:
        for queue in queues.values():
            while queue and queue[-1].place.group in met:
                queue.pop()
        heads = [queue[-1] for queue in queues.values() if queue]
        first = wanted.pop(0) if wanted else ""
        best = min(heads, key=lambda head: head.against(first, systems)).place
        chosen.append(best)
        systems[best.system] += 1
        met.add(best.group)
    return chosen


class _Candidate(Struct, frozen=True):
    """A unit that could be next."""

    enough: bool
    votes: int
    script: int  # votes of all units of the script: a script with few must be met by many people
    chance: float
    place: Place

    def against(self, first: str, systems: Mapping[str, int]) -> tuple[float, ...]:
        """Return the reasons against this unit in the order of their weight, given the systems of the session."""
        system = self.place.system
        return (
            self.enough,
            bool(first) and system != first,
            systems.get(system, 0),
            self.votes,
            self.script,
            self.chance,
        )


def _queues(free: Sequence[Place], needs: Needs, held: Held) -> dict[str, list[_Candidate]]:
    """Return the candidates per system, the best one last."""
    chance = random.Random(f"{needs.seed}:{held.number}:units")
    queues: dict[str, list[_Candidate]] = {}
    scripts: Counter[str] = Counter()
    for place in free:
        scripts[place.group] += held.votes.get(place.id, 0)
    for place in sorted(free, key=lambda place: place.id):
        votes = held.votes.get(place.id, 0)
        candidate = _Candidate(votes >= needs.votes, votes, scripts[place.group], chance.random(), place)
        queues.setdefault(place.system, []).append(candidate)
    for queue in queues.values():
        queue.sort(key=lambda one: (one.enough, one.votes, one.script, one.chance), reverse=True)
    return queues


def _groups(places: Iterable[Place]) -> int:
    return len({place.group for place in places})


# ── in which order ────────────────────────────────────────────────────────────────────────────────────────────────────
def in_order(chosen: Sequence[Place], number: int, seed: int) -> list[Place]:
    """Return units so that their systems follow the rows of a Williams square; `number` chooses the first row."""
    queues: dict[str, list[Place]] = {}
    for place in _mixed(chosen, f"{seed}:{number}:order"):
        queues.setdefault(place.system, []).append(place)
    systems = sorted(queues)
    rows = williams(len(systems)) if systems else []
    ordered: list[Place] = []
    block = 0
    while len(ordered) < len(chosen):
        row = rows[(number + block) % len(rows)]
        ordered += [queues[systems[at]].pop() for at in row if queues[systems[at]]]
        block += 1
    return ordered


def _sides(chosen: Sequence[Place], needs: Needs, held: Held) -> list[bool]:
    """Return for each unit whether its replies are swapped: balanced per unit, within the person, then by chance."""
    if needs.sides != 2:
        return [False] * len(chosen)
    chance = random.Random(f"{needs.seed}:{held.number}:sides")
    sides: dict[str, bool] = {}
    lean = 0
    for forced in (True, False):  # units whose orders are balanced so far balance the person's orders
        for place in chosen:
            more = 2 * held.swaps.get(place.id, 0) - held.votes.get(place.id, 0)
            if forced == bool(more):
                sides[place.id] = (more or lean or chance.choice((-1, 1))) < 0
                lean += 1 if sides[place.id] else -1
    return [sides[place.id] for place in chosen]


# ── training, traps, gold, repetitions ────────────────────────────────────────────────────────────────────────────────
def _with_extras(
    real: list[Planned], places: Sequence[Place], needs: Needs, held: Held, taken: set[str]
) -> list[Planned]:
    """Return the session: training first, the others at random places, never at the beginning."""
    chance = random.Random(f"{needs.seed}:{held.number}:extras")

    def lacking(kind: Kind, count: int) -> int:
        return max(0, count - held.kinds.get(kind, 0))

    gold = _different([p for p in places if p.system != ANCHOR], lacking("gold", needs.gold), taken, chance)
    training = [] if held.units else _different(places, lacking("training", needs.training), taken, chance)
    anchors = _different([p for p in places if p.system == ANCHOR], lacking("anchor", needs.anchors), set(), chance)
    mixed: list[Planned] = [
        *(
            Planned(kind="gold", unit=p.id, target=chance.randrange(needs.sides) if needs.sides == 2 else 0)
            for p in gold
        ),
        *(Planned(kind="anchor", unit=p.id) for p in anchors),
        *(Planned(kind="trap", target=chance.choice(TONES)) for _ in range(lacking("trap", needs.traps))),
    ]
    session = _inserted(real, mixed, chance)
    session = _with_repeats(session, lacking("repeat", needs.repeats), chance)
    trained = [Planned(kind="training", unit=p.id, swap=needs.sides == 2 and chance.random() < 0.5) for p in training]
    return trained + session


def _different(places: Sequence[Place], count: int, taken: set[str], chance: random.Random) -> list[Place]:
    """Return units of scripts that the person does not meet otherwise, of different systems; note their scripts."""
    chosen: list[Place] = []
    systems: Counter[str] = Counter()
    free = sorted((place for place in places if place.group not in taken), key=lambda place: place.id)
    chance.shuffle(free)
    while len(chosen) < count and free:
        best = min(free, key=lambda place: systems[place.system])
        chosen.append(best)
        systems[best.system] += 1
        taken.add(best.group)
        free = [place for place in free if place.group != best.group]
    return chosen


def _inserted(real: list[Planned], mixed: list[Planned], chance: random.Random) -> list[Planned]:
    """Return both lists as one: one of `mixed` at a random place of each equal part of the session."""
    chance.shuffle(mixed)
    session = list(real)
    for part, planned in reversed(list(enumerate(mixed))):
        low = part * len(real) // len(mixed)
        high = (part + 1) * len(real) // len(mixed)
        session.insert(chance.randint(min(low + 1, high), high), planned)
    return session


def _with_repeats(session: list[Planned], count: int, chance: random.Random) -> list[Planned]:
    """Repeat real screens of the first half at the end, at least LEAST_GAP later where the session is long enough."""
    for _ in range(count):
        met = Counter(planned.unit for planned in session)
        early = session[: max(1, min(len(session) // 2, len(session) - LEAST_GAP))]
        real = [planned for planned in early if planned.kind == "real" and met[planned.unit] == 1]
        if not real:
            break
        again = chance.choice(real)
        session = [*session, Planned(kind="repeat", unit=again.unit, swap=again.swap)]
    return session


def _mixed(places: Sequence[Place], purpose: str) -> list[Place]:
    mixed = sorted(places, key=lambda place: place.id)
    random.Random(purpose).shuffle(mixed)
    return mixed
