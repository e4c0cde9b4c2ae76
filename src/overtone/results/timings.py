"""The timings of streamed replies in numbers: medians and 95th percentiles, by run and condition.

The interval of a percentile comes from the binomial distribution of its rank. A missing reply could have taken any
time, so it moves the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct

from overtone.results.headline_condition import by_condition
from overtone.results.load import Answer, Reading
from overtone.results.measures import Estimate
from overtone.runs.store import Store
from overtone.schema import Timings
from overtone.text import seconds

Z = 1.959964  # normal quantile of a two-sided 95 % interval
SHARES = (0.5, 0.95)
SIGNATURE = "timings|v1|percentiles:binomial-rank|foreground:6dB|playback:unbuffered"
FACTOR = "real_time_factor"
LABELS = {  # the fields of Timings, in the order of tables
    "first_text": "First text",
    "first_audio": "First sound",
    "voice_to_voice": "Voice to voice",
    "vad_wait": "VAD wait",
    "done": "Whole reply",
    "stalled": "Stalled",
    FACTOR: "Real-time factor",
}
_OF_ONE_REPLY = ("first_text", "first_audio", "voice_to_voice")
VOICE, WITHIN = "last voiced sample", "within the reply"
NO_TIMINGS = "no reply of these runs streamed: run a realtime: model, or openai: with stream=yes, into a new --out"
ORIGINS = {"request": "request sent", "turn": "end of the turn", "voice": VOICE}

Timed = Sequence[tuple[int, Timings]]  # ask → the timings of one of its replies


class TimingRow(Struct, frozen=True):
    """One timing of a condition: its field, where it is measured from, and its percentiles in the order of SHARES."""

    condition: str
    name: str
    measured_from: str
    percentiles: tuple[Estimate, ...]

    @property
    def label(self) -> str:
        return LABELS[self.name]


def read_timings(run: Reading) -> Timed:
    """Read the timings of a run's replies from its store."""
    with Store.read(run.folder) as store:
        return list(store.timings())


def estimate_timing(name: str, share: float, timed: Timed, answers: Iterable[Answer]) -> Estimate:
    """Return the time within which this share of the replies came. `name` is a field of Timings.

    A failure counts as missing if other replies to the same task have this timing.
    """
    by_ask = {answer.ask: answer for answer in answers}
    values: list[float] = []
    tasks: set[str] = set()
    for ask, timings in timed:
        value = getattr(timings, name)
        if ask in by_ask and value is not None:
            values.append(value)
            tasks.add(by_ask[ask].item.task)
    missing = sum(not answer.answered and answer.item.task in tasks for answer in by_ask.values())
    return percentile(sorted(values), share, missing)


def timing_rows(run: Reading) -> list[TimingRow]:
    """Return every timing that a run has, by condition; no rows if no reply streamed."""
    timed = read_timings(run)
    rows: list[TimingRow] = []
    for condition, answers in by_condition(run).items() if timed else ():
        asks = {answer.ask for answer in answers}
        mine = [(ask, timings) for ask, timings in timed if ask in asks]
        for name in LABELS:
            percentiles = tuple(estimate_timing(name, share, mine, answers) for share in SHARES)
            if percentiles[0].value is not None:
                rows.append(TimingRow(condition, name, _measured_from(name, mine), percentiles))
    return rows


def timing_text(timings: Timings | None) -> str:
    """Format when one reply came, like `first text 0.21 s, first sound 0.30 s`; "" if it did not stream."""
    values = [(LABELS[name].lower(), getattr(timings, name, None)) for name in _OF_ONE_REPLY]
    return ", ".join(f"{label} {seconds(value)}" for label, value in values if value is not None)


def _measured_from(name: str, timed: Timed) -> str:
    if name in ("voice_to_voice", "vad_wait"):
        return VOICE
    if name == "stalled":
        return WITHIN
    origins = {timings.origin for _, timings in timed if getattr(timings, name) is not None}
    return " or ".join(text for origin, text in ORIGINS.items() if origin in origins)


def percentile(ordered: Sequence[float], share: float, missing: int) -> Estimate:
    """Return the time within which this share of the replies arrived. The interval comes from the binomial distribution
    of the rank.

    A missing reply could have taken any time: `worst` is infinite if the missing replies alone can make up the slowest
    share.
    """
    n, asked = len(ordered), len(ordered) + missing
    if not n:
        return Estimate(None, None, None, 0, asked)
    half = Z * math.sqrt(n * share * (1 - share))
    low, high = math.floor(n * share - half), math.ceil(n * share + half)
    worst = math.ceil(share * (asked - 1))
    best = math.floor(share * (asked - 1)) - missing
    return Estimate(
        value=float(np.quantile(ordered, share)),
        low=ordered[low] if low >= 0 else None,
        high=ordered[high] if high < n else None,
        scored=n,
        asked=asked,
        best=ordered[best] if best >= 0 else 0.0,
        worst=ordered[worst] if worst < n else math.inf,
    )
