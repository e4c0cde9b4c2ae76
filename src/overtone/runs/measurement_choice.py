"""Select which measurement of each metric is shown, if a run has several.

The scores of a metric can differ by its options, its version or the model behind it. Each variant is a measurement
with its own signature and its own rows in the store. All code that shows, compares, checks or exports scores reads the
one measurement that is selected here, so that results cannot contradict each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Struct

_TEXT = re.compile(r"\|text:[^|]*")  # says what was read, e.g. a transcript of the reply; not a separate measurement
ASKED = "measurements"  # key of the history in the run's meta table, see `record`

History = dict[str, list[tuple[str, bool]]]  # metric → (signature, requested by name?), the most recent last


class Measurement(Struct, frozen=True):
    """The rows of one metric with one signature.

    `values` is the number of rows with a value; it is counted only if the metric has several signatures.
    """

    metric: str
    number: int  # the signature's number in the store; newer signatures have higher numbers
    signature: str
    values: int


class Selection(Struct, frozen=True):
    """The selected signature of every metric (`shown`), and notes by metric on measurements that are not shown.

    `ranks` contains the rows to be read as (metric, number of the signature); of two rows for one reply, the one with
    the higher rank is used.
    """

    shown: dict[str, str]
    ranks: dict[tuple[str, int], int]
    notes: dict[str, str]


def select_measurements(held: Iterable[Measurement], history: History) -> Selection:
    """Select one measurement of every metric.

    Measurements with at least one value come first; if none has a value, all are considered, so that the reasons can
    be shown. Among these, the one requested last is selected. A measurement that the user requested by name is not
    replaced by one that was only computed by default. Runs of older versions have no history of requests; there, the
    signature that was stored last is selected.
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
    """Return whether two signatures mean the same measurement."""
    return one == other or _TEXT.sub("", one) == _TEXT.sub("", other)


def read_history(meta: Mapping[str, str]) -> History:
    """Read the history of requested measurements from a run's meta table; empty if it is missing or unreadable."""
    try:
        return msgspec.json.decode(meta.get(ASKED, "") or "{}", type=History)
    except (msgspec.MsgspecError, RecursionError):  # the run may come from an untrusted source
        return {}


def record(history: History, metric: str, signature: str, named: bool) -> bool:
    """Add a request for a measurement, by name or by default, to the history. Return whether that changed it."""
    asked = history.setdefault(metric, [])
    if asked[-1:] == [(signature, named)] or (not named and (signature, True) in asked):
        return False
    asked[:] = [*(entry for entry in asked if entry[0] != signature), (signature, named)]
    return True
