"""Scores of runs, by arm: each with an interval over seeds and scripts, and differences between arms with theirs.

Both are drawn anew, with replacement: the seeds of each arm, and the scripts (of people's recordings the speakers) of
each part. Arms are compared on the same draws of scripts. With three seeds their share of an interval is a rough one:
each seed's own value is told beside it.
"""

from __future__ import annotations

import functools
import math
import zlib
from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from overtone.echat.exam import tallies
from overtone.echat.exam.counts import OWN, Counts
from overtone.echat.exam.predictions import ARMS
from overtone.echat.exam.tallies import Array, Kind, Measure
from overtone.errors import DataError

FULL = "full"
WITHIN = ((OWN, "deaf"), (OWN, "told"), (OWN, "oracle"), ("label", "plain"))  # sources that are compared in an arm
ACROSS = ("named", "chosen", "words", "thought", OWN, "deaf", "speech")  # and between arms
LEVEL = 0.95


class Row(Struct, frozen=True):
    """One score. `chance` is what a model gets that hears nothing; `seeds` has each seed's value."""

    arm: str
    part: str
    measure: str
    source: str
    value: float | None
    low: float | None
    high: float | None
    seeds: tuple[float | None, ...]
    n: int  # of one run
    clusters: int
    chance: float | None = None


class Difference(Struct, frozen=True):
    """One score minus another of the same part; `a` and `b` are arm/source."""

    part: str
    measure: str
    a: str
    b: str
    value: float | None
    low: float | None
    high: float | None

    @property
    def sure(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


class Scores(Struct, frozen=True):
    """What runs got right."""

    arms: dict[str, list[int]]  # arm → its seeds
    parts: dict[str, int]  # part → its records
    draws: int
    embedder: str
    rows: list[Row]
    differences: list[Difference]
    seconds: dict[str, list[float]] = {}  # arm → what asking each of its models took


def score(
    runs: Sequence[Counts], *, draws: int = 1000, seed: int = 0, say: Callable[[str], None] = lambda line: None
) -> Scores:
    """Put the runs of an arm together."""
    arms = _checked(runs)
    counted = {arm: [run.tallies() for run in members] for arm, members in arms.items()}
    tables = {
        (arm, key, kind): Table(arm, key.part, [t[key] for t in those], kind, draws, seed)
        for arm, those in counted.items()
        for key in sorted(those[0])
        if all(key in t for t in those)
        for kind in those[0][key].kinds
    }
    say(f"{len(tables)} scores, {draws} draws each")
    return Scores(
        {arm: [run.head.seed for run in members] for arm, members in arms.items()},
        runs[0].parts,
        draws,
        runs[0].embedder,
        [_row(arm, key, kind, table) for (arm, key, kind), table in tables.items()],
        _differences(tables),
        {arm: [run.head.seconds for run in members] for arm, members in arms.items()},
    )


def _checked(runs: Sequence[Counts]) -> dict[str, list[Counts]]:
    """Runs by arm, ordered by seed; all must have been asked the same records, and an ablation's trained alike."""
    if not runs:
        raise DataError("no predictions to score; give files that `overtone evaluate echat` wrote")
    out: dict[str, list[Counts]] = {}
    for run in sorted(runs, key=lambda run: (run.head.arm != FULL, run.head.arm, run.head.seed)):
        head, name = run.head, f"{run.head.arm}, seed {run.head.seed}"
        if run.asked != runs[0].asked:
            raise DataError(
                f"{name}: asked other records than {runs[0].head.arm}, seed {runs[0].head.seed}; "
                "give all the same --data, --parts and --limit"
            )
        if run.embedder != runs[0].embedder:
            raise DataError(f"{name}: counted by {run.embedder}, others by {runs[0].embedder}; count all of them anew")
        if any(other.head.seed == head.seed for other in out.get(head.arm, ())):
            raise DataError(f"{name}: given twice; leave one out")
        for other in out.get(head.arm, ()) or (out.get(FULL, ()) if head.arm in ARMS.values() else ()):
            for what in ("recipe", "data"):
                if other.head.notes.get(what) != head.notes.get(what):
                    raise DataError(
                        f"{name}: another {what} than {other.head.arm}, seed {other.head.seed}; arms and seeds are put "
                        "together only where these are the same: train them alike, or score them apart"
                    )
        out.setdefault(head.arm, []).append(run)
    return out


class Table:
    """The sums of one measure over an arm's seeds and a part's scripts, and its value under every draw of both."""

    def __init__(
        self, arm: str, part: str, of_seeds: Sequence[tallies.Tally], kind: Kind, draws: int, seed: int
    ) -> None:  # fmt: skip
        names = sorted({name for tally in of_seeds for name in tally.by})
        self.n, self.clusters, self.chance = of_seeds[0].n, len(names), of_seeds[0].chance.get(kind)
        none = np.zeros(of_seeds[0].width)
        cells = np.array([[tally.by.get(name, none) for name in names] for tally in of_seeds])  # (S, G, K)
        self.seeds: list[float] = [float(v) for v in tallies.value(kind, cells.sum(1))]
        self.value = float(tallies.value(kind, cells.sum((0, 1))))
        s, g, k = cells.shape
        # Names decide a script's draws, so that every measure and arm of a part is drawn alike.
        scripts = np.stack([_times(f"{part}/{name}", draws, seed) for name in names], 1)  # (D, G)
        of_arm = _multinomial(f"arm/{arm}", s, draws, seed)  # (D, S)
        by_seed = (scripts @ cells.transpose(1, 0, 2).reshape(g, s * k)).reshape(draws, s, k)
        self.drawn: Array = tallies.value(kind, (by_seed * of_arm[:, :, None]).sum(1))

    def interval(self) -> tuple[float, float]:
        return _quantiles(self.drawn, self.clusters)


@functools.lru_cache(maxsize=1 << 13)
def _times(name: str, draws: int, seed: int) -> Array:
    """How often a script is drawn, of each draw: Poisson, the bootstrap's counts when there are many scripts. Each has
    its own numbers, so scripts can be drawn alike in tables that hold not quite the same ones."""
    return np.random.default_rng([seed, zlib.crc32(name.encode())]).poisson(1.0, draws).astype(np.float64)


def _multinomial(name: str, count: int, draws: int, seed: int) -> Array:
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    return rng.multinomial(count, np.full(count, 1 / count), size=draws).astype(np.float64)


def _quantiles(drawn: Array, clusters: int) -> tuple[float, float]:
    known = drawn[~np.isnan(drawn)]
    if clusters < 2 or len(known) < 2:
        return math.nan, math.nan
    low, high = np.quantile(known, (0.5 - LEVEL / 2, 0.5 + LEVEL / 2))
    return float(low), float(high)


def _row(arm: str, key: Measure, kind: Kind, table: Table) -> Row:
    low, high = table.interval()
    return Row(
        arm, key.part, _name(key, kind), key.source, _number(table.value), _number(low), _number(high),
        tuple(_number(v) for v in table.seeds), table.n, table.clusters,
        None if table.chance is None else _number(table.chance),
    )  # fmt: skip


def _name(key: Measure, kind: Kind) -> str:
    return key.name if kind == "mean" else f"{key.name}.{kind}"


def _differences(tables: dict[tuple[str, Measure, Kind], Table]) -> list[Difference]:
    """The full arm against each other, and within an arm its own reply against the others."""
    out = []
    for (arm, key, kind), table in tables.items():
        pairs: list[tuple[str, Measure]] = []
        if arm == FULL and key.source in ACROSS:
            pairs = [(other, key) for other in dict.fromkeys(a for a, _, _ in tables) if other != FULL]
        pairs += [(arm, replace(key, source=b)) for a, b in WITHIN if key.source == a]
        for other, twin in pairs:
            found = tables.get((other, twin, kind))
            if found is None:
                continue
            low, high = _quantiles(table.drawn - found.drawn, min(table.clusters, found.clusters))
            a, b = f"{arm}/{key.source}", f"{other}/{twin.source}"
            difference = _number(table.value - found.value)
            out.append(Difference(key.part, _name(key, kind), a, b, difference, _number(low), _number(high)))
    return out


def _number(x: float) -> float | None:
    """What JSON can hold."""
    return None if math.isnan(x) else round(x, 4)
