"""Scores of runs by arm, and differences between arms, with intervals over seeds and scripts.

The bootstrap resamples the seeds of each arm and the scripts of each part (for recordings of people, the speakers).
Arms are compared on the same draws of scripts. With three seeds, the seeds' contribution to an interval is rough, so
each seed's value is reported too.
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
from overtone.echat.exam.answer_file import ARMS
from overtone.echat.exam.counts import OWN, Counts
from overtone.echat.exam.tallies import Array, Kind, Measure
from overtone.errors import DataError

FULL = "full"
WITHIN = ((OWN, "deaf"), (OWN, "told"), (OWN, "oracle"), ("label", "plain"))  # sources that are compared within an arm
ACROSS = ("named", "chosen", "words", "thought", OWN, "deaf", "speech")  # sources that are compared between arms
LEVEL = 0.95


class Row(Struct, frozen=True):
    """One score. `chance` is the score of a model that ignores the audio; `seeds` has each seed's value."""

    arm: str
    part: str
    measure: str
    source: str
    value: float | None
    low: float | None
    high: float | None
    seeds: tuple[float | None, ...]
    n: int  # records of one run
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
        """Whether the interval excludes 0."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


class Scores(Struct, frozen=True):
    """All scores and differences of some runs."""

    arms: dict[str, list[int]]  # arm → its seeds
    parts: dict[str, int]  # part → number of records
    draws: int
    embedder: str
    rows: list[Row]
    differences: list[Difference]
    seconds: dict[str, list[float]] = {}  # arm → duration of asking each of its models


def score(
    runs: Sequence[Counts], *, draws: int = 1000, seed: int = 0, say: Callable[[str], None] = lambda line: None
) -> Scores:
    """Score runs, pooling the seeds of each arm. Raises DataError if runs cannot be compared."""
    arms = _checked(runs)
    counted = {arm: [run.tallies() for run in members] for arm, members in arms.items()}
    tables = {
        (arm, key, kind): Table(arm, key.part, [t[key] for t in of_seeds], kind, draws, seed)
        for arm, of_seeds in counted.items()
        for key in sorted(of_seeds[0])
        if all(key in t for t in of_seeds)
        for kind in of_seeds[0][key].kinds
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
    """Return the runs by arm, sorted by seed. Raises DataError if their records, recipes or data differ."""
    if not runs:
        raise DataError("no predictions to score; give files of `overtone evaluate echat`")
    out: dict[str, list[Counts]] = {}
    for run in sorted(runs, key=lambda run: (run.head.arm != FULL, run.head.arm, run.head.seed)):
        head, name = run.head, f"{run.head.arm}, seed {run.head.seed}"
        if run.asked != runs[0].asked:
            raise DataError(
                f"{name}: its records differ from those of {runs[0].head.arm}, seed {runs[0].head.seed}; "
                "use the same --data, --parts and --limit for all"
            )
        if run.apart != runs[0].apart:
            raise DataError(
                f"{name}: its model heard other records in training than that of {runs[0].head.arm}, seed "
                f"{runs[0].head.seed}, so their headlines have different records; count the answers of both with "
                "--heard corpus, speaker or clip, or score them separately"
            )
        if run.embedder != runs[0].embedder:
            raise DataError(f"{name}: counted with {run.embedder}, others with {runs[0].embedder}; count all again")
        if any(other.head.seed == head.seed for other in out.get(head.arm, ())):
            raise DataError(f"{name}: duplicate; remove one")
        for other in out.get(head.arm, ()) or (out.get(FULL, ()) if head.arm in ARMS.values() else ()):
            for what in ("recipe", "data"):
                if other.head.notes.get(what) != head.notes.get(what):
                    raise DataError(
                        f"{name}: its {what} differs from that of {other.head.arm}, seed {other.head.seed}; runs are "
                        "compared only with the same recipe and data: retrain them, or score them separately"
                    )
        out.setdefault(head.arm, []).append(run)
    return out


class Table:
    """One measure over an arm's seeds and a part's scripts: its value, and its value in every bootstrap draw."""

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
        # A script's name determines its draws, so that all measures and arms of a part use the same draws.
        scripts = np.stack([_times(f"{part}/{name}", draws, seed) for name in names], 1)  # (D, G)
        of_arm = _multinomial(f"arm/{arm}", s, draws, seed)  # (D, S)
        by_seed = (scripts @ cells.transpose(1, 0, 2).reshape(g, s * k)).reshape(draws, s, k)
        self.drawn: Array = tallies.value(kind, (by_seed * of_arm[:, :, None]).sum(1))

    def interval(self) -> tuple[float, float]:
        """Return the bootstrap interval."""
        return _quantiles(self.drawn, self.clusters)


@functools.lru_cache(maxsize=1 << 13)
def _times(name: str, draws: int, seed: int) -> Array:
    """Return how often a script occurs in each bootstrap draw: Poisson counts, the bootstrap's limit for many scripts.

    The counts depend only on the script's name, so tables with slightly different scripts still share draws.
    """
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
    """Compare the full arm with every other arm. Within each arm, compare the reply that it was trained for with other
    modes."""
    out = []
    for (arm, key, kind), table in tables.items():
        pairs: list[tuple[str, Measure]] = []
        if arm == FULL and key.source in ACROSS:
            pairs = [(other, key) for other in dict.fromkeys(a for a, _, _ in tables) if other != FULL]
        pairs += [(arm, replace(key, source=b)) for a, b in WITHIN if key.source == a]
        for other, twin in pairs:
            compared = tables.get((other, twin, kind))
            if compared is None:
                continue
            low, high = _quantiles(table.drawn - compared.drawn, min(table.clusters, compared.clusters))
            a, b = f"{arm}/{key.source}", f"{other}/{twin.source}"
            difference = _number(table.value - compared.value)
            out.append(Difference(key.part, _name(key, kind), a, b, difference, _number(low), _number(high)))
    return out


def _number(x: float) -> float | None:
    """Round a number; None for NaN, which JSON cannot represent."""
    return None if math.isnan(x) else round(x, 4)
