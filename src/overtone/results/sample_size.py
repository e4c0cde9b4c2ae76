"""How many scripts does a test need to detect a difference between two models that were asked the same items?

Two models answer the same items, so the test depends on the share of items that only one model gets right, or on the
spread of the differences. Several items of one script count less than items of different scripts. Two stored runs
supply all these values; one run supplies the rate, the spread and the correlation within a script. Without a run, the
assumptions below are used and reported. A run is read under the condition with the most scores, each item once.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from msgspec import Struct

from overtone.errors import UsageError
from overtone.results import measure_names
from overtone.results.comparison import LEVEL, Pairs, share, values
from overtone.results.headline_condition import headline_sources, over_headline
from overtone.results.judge_scores import by_status
from overtone.results.load import Answer, Reading
from overtone.results.measures import Measure
from overtone.schema import Item
from overtone.stats import cluster, power
from overtone.text import by_kind, number, percent

RATE = 0.5  # share of right answers: the one with the largest spread
AGREE = 0.5  # correlation of two models' scores over the same items
ALIKE = 0.1  # correlation of the differences of one script's items
POWER = 0.8  # probability of detecting the difference
SPREAD = 0.25  # standard deviation as a share of the scale: 1 point on a scale from 1 to 5
SIGNATURE = f"sizing|v1|level:0.95|two-sided|rate:{RATE}|agree:{AGREE}|alike:{ALIKE}|spread:{SPREAD}"


class Need(Struct, frozen=True):
    """The sample size that one measure needs. `difference` and `finds` are on the measure's own scale; `shown` is its
    number format."""

    key: str
    measure: str
    label: str
    shown: str  # percent or number
    digits: int
    difference: float
    scripts: int
    items: int
    power: float
    per_script: float
    have: int  # available scripts, 0 if no benchmark or run was named
    finds: float | None  # the smallest difference that the available scripts detect with this power
    basis: str  # a note: which values are measured and which assumed


class _Known(Struct, frozen=True):
    """The values that the sample size of one measure is computed from."""

    rate: float  # share of right answers
    either: float | None  # share of items that only one of two models gets right, if two runs are known
    spread: float  # standard deviation of one model's scores
    agree: float
    spread_between: float | None  # standard deviation of the differences, if two runs are known
    alike: float  # correlation within a script, for a cluster of mean size
    basis: str


def needs(
    difference: float, wanted: float, readings: Sequence[Reading] = (), items: Iterable[Item] | None = None
) -> list[Need]:
    """Return a row for each measure. `difference` is a share of a measure's scale: 0.03 means 3 percentage points of
    accuracy, and 0.12 points on a scale from 1 to 5. `items` are the items of a benchmark; without them, the items of
    the first reading count."""
    if not 0 < difference < 1:
        raise UsageError(f"--detect takes a share of the scale between 0 and 1, like 0.03, not {difference:g}")
    if not 0.05 < wanted < 1:
        raise UsageError(f"--power must be between 0.05 (chance) and 1, not {wanted:g}")
    if len(readings) > 2:
        raise UsageError("--from takes one run, or two to estimate how models differ")
    readings = over_headline(readings)
    measures = [m for m in measure_names.headline(readings) if _any(m, readings)] if readings else _usual()
    asked = _sure(_items(readings[0]) if items is None and readings else list(items or ()))
    rows = []
    for measure in measures:
        sizes = Counter(item.group for item in asked if measure.belongs(item))
        if asked and not sizes:
            continue
        known = _measured(measure, readings, sizes) if readings else _assumed(measure, sizes)
        if known is not None:
            rows.append(_need(measure, difference, wanted, known, sizes))
    if not rows:
        raise UsageError(
            "nothing to plan: no items match, or the run has no scores; 'overtone score RUN' computes them"
        )
    return rows


def _usual() -> list[Measure]:
    """Return the default measures, for use without a run."""
    judged = dataclasses.replace(measure_names.find_one("c4", ()), label="Judged replies, 1 to 5")
    return [*measure_names.questions(), judged]


def _any(measure: Measure, readings: Sequence[Reading]) -> bool:
    return all(any(measure.belongs(a.item) and measure.read(a) is not None for a in r.answers) for r in readings)


def _items(reading: Reading) -> list[Item]:
    """Return each item of a run once."""
    return list({a.item_id: a.item for a in reading.answers}.values())


def _sure(items: list[Item]) -> list[Item]:
    """Return the items of the headline: in the core, with clips of the headline's source, and with validated cues if
    there are any."""
    own = headline_sources(item.source for item in items)
    core = [item for item in items if not item.part and (not item.source or item.source in own)]
    sure = [item for item in core if item.status != "unvalidated"]
    return sure if any(item.status == "validated" for item in core) else core


# ── what is known ───────────────────────────────────────────────────────────────────────────────────────────────────


def _assumed(measure: Measure, sizes: Counter[str]) -> _Known:
    mean = _mean_size(sizes)
    weighted = sum(n * n for n in sizes.values()) / sum(sizes.values()) if sizes else 1.0
    alike = min(1.0, ALIKE * (weighted - 1) / (mean - 1)) if mean > 1 else 0.0
    what = f"rate {RATE:g}" if measure.right_or_wrong else f"spread {SPREAD * measure.about.length:g}"
    basis = f"assumed: {what}; correlations: items of a script {ALIKE:g}, models {AGREE:g}"
    return _Known(RATE, None, SPREAD * measure.about.length, AGREE, None, alike, basis)


def _measured(measure: Measure, readings: Sequence[Reading], sizes: Counter[str]) -> _Known | None:
    if len(readings) == 2:
        return _of_two(measure, readings[0], readings[1], sizes)
    rows = _head(a for a in readings[0].answers if not a.item.part and measure.belongs(a.item))
    condition = _condition(measure, rows)
    rows = [a for a in rows if a.condition == condition]
    valued = [(value, a.item.group) for a in rows if not a.repeat and (value := measure.read(a)) is not None]
    numbers = np.array([value for value, _ in valued])
    if len(valued) < 2 or (not measure.right_or_wrong and numbers.std() == 0):
        return None
    agree = _repeats(measure, rows)
    alike = _alike(numbers, [group for _, group in valued], sizes)
    spread = float(numbers.std(ddof=1))
    what = f"rate {number(numbers.mean())}" if measure.right_or_wrong else f"spread {spread:.3g}"
    between = "models 0.5 (assumed)" if agree is None else f"models {number(agree)} (from its repeats)"
    basis = f"measured: {what}; correlations: items of a script {number(alike)}, {between}"
    return _Known(float(numbers.mean()), None, spread, AGREE if agree is None else agree, None, alike, basis)


def _of_two(measure: Measure, first: Reading, second: Reading, sizes: Counter[str]) -> _Known | None:
    pairs = [(a, b) for a, b in share(first, second)[0] if measure.belongs(a.item) and not a.repeat]
    condition = _condition(measure, [a for a, _ in pairs])
    pairs = [(a, b) for a, b in pairs if a.condition == condition]
    kept = {a.ask for a in _head(a for a, _ in pairs)}
    return _of_pairs(measure, [(a, b) for a, b in pairs if a.ask in kept], sizes)


def _of_pairs(measure: Measure, pairs: Pairs, sizes: Counter[str]) -> _Known | None:
    """Return the values that the sample size depends on, from pairs of one condition; None if no pair differs."""
    before, after, groups = values(measure, pairs)
    a, b = np.array(before), np.array(after)
    if len(before) < 2 or (b - a).std() == 0:
        return None
    alike = _alike(b - a, groups, sizes)
    either = float((a != b).mean())
    between = float((b - a).std(ddof=1))
    if measure.right_or_wrong:
        what = f"only one right on {percent(either, 1)} of {len(before):,} pairs"
    else:
        what = f"differences spread {between:.3g} over {len(before):,} pairs"
    basis = f"measured: {what}; correlation of items of a script {number(alike)}"
    return _Known(float(a.mean()), either, float(a.std(ddof=1)), AGREE, between, alike, basis)


def _condition(measure: Measure, answers: Sequence[Answer]) -> str:
    """Return the condition with the most scores of a measure; the first one if several have the same number."""
    counts = Counter(a.condition for a in answers if measure.read(a) is not None)
    return counts.most_common(1)[0][0] if counts else ""


def _head(answers: Iterable[Answer]) -> list[Answer]:
    parts = by_status(list(answers))
    return parts[0][1] if parts else []


def _alike(numbers: np.ndarray[tuple[int], np.dtype[np.float64]], groups: list[str], sizes: Counter[str]) -> float:
    """Return the correlation between items of one script, from the design effect of the clusters.

    If each script has only one row here but several in the planned set, the assumed value is returned.
    """
    count = len(set(groups))
    naive = float(numbers.var(ddof=1)) / numbers.size if numbers.size > 1 else 0.0
    if count < 2 or naive == 0 or count == numbers.size:
        return 0.0 if naive == 0 or count < 2 or _mean_size(sizes) <= 1 else ALIKE
    effect = cluster.mean(numbers, groups).error ** 2 / naive
    size = numbers.size / count
    return float(min(1.0, max(0.0, (effect - 1) / (size - 1))))


def _repeats(measure: Measure, answers: Sequence[Answer]) -> float | None:
    """Return the correlation between the scores of the first two repeats; None if no item was asked twice, or if the
    scores do not vary."""
    by_repeat: list[dict[tuple[str, str], float]] = [{}, {}]
    for a in answers:
        value = measure.read(a)
        if a.repeat < 2 and value is not None:
            by_repeat[a.repeat][a.item_id, a.condition] = value
    both = sorted(by_repeat[0].keys() & by_repeat[1].keys())
    one, other = (np.array([part[key] for key in both]) for part in by_repeat)
    if len(both) < 3 or one.std() == 0 or other.std() == 0:
        return None
    return float(min(0.99, max(0.0, np.corrcoef(one, other)[0, 1])))


def detectable(measure: Measure, pairs: Pairs, tests: int = 1, wanted: float = POWER) -> float | None:
    """Return the smallest difference that a test of these pairs, corrected for `tests` tests, detects with the power
    `wanted`. It is on the measure's own scale; None if it is larger than the scale.

    If no pair differs, the assumed spread is used.
    """
    sizes = Counter(values(measure, pairs)[2])
    known = _of_pairs(measure, pairs, sizes) or _assumed(measure, sizes)
    reached = _power_of(measure, known, _mean_size(sizes), 1 - (1 - LEVEL) / max(1, tests))
    return _finds(reached, wanted, len(sizes), measure.about.length)


# ── what follows ────────────────────────────────────────────────────────────────────────────────────────────────────


def _need(measure: Measure, part: float, wanted: float, known: _Known, sizes: Counter[str]) -> Need:
    difference = part * measure.about.length
    mean = _mean_size(sizes)
    reached = _power_of(measure, known, mean)
    have = len(sizes)
    alike = known.alike
    try:
        if measure.right_or_wrong:
            design = power.proportion_size(*_shares(known, difference), power=wanted, per_cluster=mean, alike=alike)
        else:
            design = power.mean_size(difference, _between(known), power=wanted, per_cluster=mean, alike=alike)
    except ValueError as error:
        raise UsageError(f"{measure.label}: {error}") from None
    return Need(
        key=f"plan/{measure.name}",
        measure=measure.name,
        label=measure.label,
        shown=measure.about.shown,
        digits=measure.about.digits,
        difference=difference,
        scripts=design.clusters,
        items=design.rows,
        power=design.power,
        per_script=mean,
        have=have,
        finds=_finds(reached, wanted, have, measure.about.length),
        basis=known.basis,
    )


def _power_of(measure: Measure, known: _Known, mean: float, level: float = LEVEL) -> Callable[[float, int], float]:
    def reached(difference: float, scripts: int) -> float:
        if measure.right_or_wrong:
            shares = _shares(known, difference)
            return power.proportion_power(*shares, scripts, per_cluster=mean, alike=known.alike, level=level)
        return power.mean_power(difference, _between(known), scripts, per_cluster=mean, alike=known.alike, level=level)

    return reached


def _finds(reached: Callable[[float, int], float], wanted: float, have: int, scale: float) -> float | None:
    """Return the smallest difference that `have` scripts detect with power `wanted`; None if it exceeds the scale."""
    low, high = 0.0, 0.999 * scale
    if have < 2 or reached(high, have) < wanted:
        return None
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if reached(middle, have) < wanted else (low, middle)
    return high


def _shares(known: _Known, difference: float) -> tuple[float, float]:
    """Return two shares of items: those that only the better model gets right, and those that only the worse model
    gets right."""
    if known.either is not None:
        either = max(known.either, difference)
        return (either + difference) / 2, (either - difference) / 2
    low = min(max(known.rate - difference / 2, 0.0), 1 - difference)
    high = low + difference
    room = math.sqrt(low * (1 - low) * high * (1 - high))
    most = (low - low * high) / room if room else 0.0  # two rates that differ cannot agree fully
    only_low, only_high = power.discordant(low, min(1.0, high), min(known.agree, most) if room else 0.0)
    return only_high, only_low


def _between(known: _Known) -> float:
    if known.spread_between is not None:
        return known.spread_between
    return power.spread_of_difference(known.spread, known.spread, known.agree)


def _mean_size(sizes: Counter[str]) -> float:
    return sum(sizes.values()) / len(sizes) if sizes else 1.0


# ── in words ────────────────────────────────────────────────────────────────────────────────────────────────────────


def sentences(needs_of_measures: Sequence[Need], wanted: float) -> list[str]:
    """Return one sentence for each measure."""
    return [_sentence(need, wanted) for need in needs_of_measures]


def _sentence(need: Need, wanted: float) -> str:
    text = (
        f"{need.label}: {amount(need, need.difference)} is detected with power {wanted:g} "
        f"in {need.scripts:,} scripts ({need.items:,} items)"
    )
    if not need.have:
        return f"{text}."
    finds = "no difference smaller than the scale" if need.finds is None else amount(need, need.finds)
    return f"{text}; the {need.have:,} available scripts {_enough(need)} and detect {finds}."


def _enough(need: Need) -> str:
    return "suffice" if need.have >= need.scripts else "are too few"


def amount(need: Need, x: float) -> str:
    """Format a difference on the measure's own scale."""
    return by_kind(x, need.shown, need.digits) + (" points" if need.shown == "percent" else "")
