"""Which measurement of each metric is shown, where a run holds several of it.

A metric can be measured in several ways: by another model, with another option, by a newer version. Each way has its
own signature and its own rows in the store. Everything that shows, compares, checks or exports scores reads the one
measurement that is selected here, so that no two of them can contradict each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Struct

_TEXT = re.compile(r"\|text:[^|]*")  # whether a judge read a reply's text or a transcript of it: one measurement
ASKED = "measurements"  # the run's meta holds under this key what was asked for, see `record`

History = dict[str, list[tuple[str, bool]]]  # metric → (signature, asked for by name?), the last one last


class Measurement(Struct, frozen=True):
    """The rows of one metric that carry one signature. `values` is how many have a value; it is counted only where a
    metric has several signatures."""

    metric: str
    number: int  # of the signature in the store: it grows with each new signature
    signature: str
    values: int


class Selection(Struct, frozen=True):
    """`shown` has the selected signature of every metric. `ranks` has every row to be read as (metric, number of the
    signature); of two rows of one reply the higher rank counts. `notes` has, by metric, what is not shown and why."""

    shown: dict[str, str]
    ranks: dict[tuple[str, int], int]
    notes: dict[str, str]


def select_measurements(held: Iterable[Measurement], history: History) -> Selection:
    """Select one measurement of every metric.

    Only measurements with at least one value compete; where none has a value, all do, so that the reasons can be shown.
    Among those that compete the one that was asked for last is selected. A metric that is computed with every scoring
    is asked for only where the user names it; unnamed, it does not replace what a user named. Where the run does not
    say what was asked for, as runs of older versions do not, the signature that was stored last is selected.
    """
    by_metric: dict[str, list[Measurement]] = {}
    for measurement in held:
        by_metric.setdefault(measurement.metric, []).append(measurement)
    shown: dict[str, str] = {}
    ranks: dict[tuple[str, int], int] = {}
    notes: dict[str, str] = {}
    for metric, measurements in sorted(by_metric.items()):
        asked = {signature: (named, place) for place, (signature, named) in enumerate(history.get(metric, []))}
        measurements.sort(key=lambda m: (m.values > 0, *asked.get(m.signature, (False, -1)), m.number))
        selected = measurements[-1]
        shown[metric] = selected.signature
        others = []
        for rank, measurement in enumerate(measurements):
            if same_signature(selected.signature, measurement.signature):
                ranks[metric, measurement.number] = rank
            elif measurement.values:
                others.append(f"{measurement.signature} ({_values(measurement.values)})")
        if others:
            count = sum(m.values for m in measurements if (metric, m.number) in ranks)
            notes[metric] = (
                f"{metric} was measured in {len(others) + 1} ways. Shown is the one that was asked for last: "
                f"{selected.signature} ({_values(count)}). Not shown: {'; '.join(others)}. To show another one, score "
                "the run again and name it with --metric or --judge."
            )
    return Selection(shown, ranks, notes)


def _values(count: int) -> str:
    return "1 value" if count == 1 else f"{count:,} values"


def same_signature(one: str, other: str) -> bool:
    """Whether two signatures stand for one kind of score."""
    return one == other or _TEXT.sub("", one) == _TEXT.sub("", other)


def read_history(meta: Mapping[str, str]) -> History:
    """Read what was asked for from a run's meta; empty where it says nothing, or nothing that can be read."""
    try:
        return msgspec.json.decode(meta.get(ASKED, "") or "{}", type=History)
    except (msgspec.MsgspecError, RecursionError):  # a stranger's run may hold anything there
        return {}


def record(history: History, metric: str, signature: str, named: bool) -> bool:
    """Note that a measurement was asked for, by name or in passing. Returns whether the history changed by it."""
    asked = history.setdefault(metric, [])
    if asked[-1:] == [(signature, named)] or (not named and (signature, True) in asked):
        return False
    asked[:] = [*(entry for entry in asked if entry[0] != signature), (signature, named)]
    return True
