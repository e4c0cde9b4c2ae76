"""Operational numbers of a run, for use in requirements: replies, failures, retries, latency, timings and cost.

`answered` and `failures` are measures like any other and can be compared. Retries, latency percentiles and cost are
read from the stored replies: a check can require them, but they have no paired test. All these numbers count every ask
of the run, also asks outside the headline.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from overtone.errors import UsageError
from overtone.results.load import Answer, Reading
from overtone.results.measures import Estimate, Measure, estimate
from overtone.results.timings import FACTOR, LABELS, SHARES, Timed, estimate_timing, percentile, read_timings
from overtone.runs.prices import Price, price_of
from overtone.runs.store import Store
from overtone.schema import Usage
from overtone.scores import Scale, ScoreInfo
from overtone.spec import parse_spec

COST = "cost_usd"
TIMED = "successful requests only, of replies that streamed"


def _failed(answer: Answer) -> float | None:
    """Return 1 for a failure, 0 for a reply, and None for a pending ask, whose outcome is open."""
    return 1.0 if answer.failed else 0.0 if answer.answered else None


def _measure(about: ScoreInfo, read: Callable[[Answer], float | None]) -> Measure:
    return Measure(
        about.label.lower(), about.label, "", 0, lambda item: True, read, (), about, "proportion", every=True
    )


MEASURES = {
    "answered": _measure(ScoreInfo("Answered"), lambda answer: float(answer.answered)),
    "failures": _measure(ScoreInfo("Failures", better="lower"), _failed),
}


class Spent(NamedTuple):
    """The latency and tokens of a run's stored replies, one entry per reply, and the asks that were retried."""

    asks: list[int]
    latencies: list[float]
    usages: list[Usage]
    retried: set[int]
    timings: Timed


class Total(NamedTuple):
    """A number over many replies. `estimate` takes the run, the latency and tokens of its replies, and the asks that
    count. `note` must be shown with the number."""

    about: ScoreInfo
    estimate: Callable[[Reading, Spent, Sequence[Answer]], Estimate]
    note: str = ""


def read_spent(run: Reading) -> Spent:
    """Read the latency and tokens of every reply from the store, because a light reading holds only conversations."""
    spent = Spent([], [], [], set(), read_timings(run))
    with Store.read(run.folder) as store:
        for reply in store.replies():
            spent.asks.append(reply.ask)
            spent.latencies.append(reply.latency)
            spent.usages.append(reply.usage)
            if reply.attempts > 1:
                spent.retried.add(reply.ask)
        spent.retried.update(failure.ask for failure in store.failures() if failure.attempts > 1)
    return spent


# ── retries ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _retries(run: Reading, spent: Spent, answers: Sequence[Answer]) -> Estimate:
    """Return the share of asks that needed more than one request. Pending asks count as missing."""
    done = ((float(a.ask in spent.retried) if a.answered or a.failed else None, a.item.group) for a in answers)
    return estimate(list(done), kind="proportion", good=0.0, bad=1.0)


# ── latency ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _latency(share: float) -> Total:
    def over(run: Reading, spent: Spent, answers: Sequence[Answer]) -> Estimate:
        asks = {a.ask for a in answers}
        seconds = np.sort([s for ask, s in zip(spent.asks, spent.latencies, strict=True) if ask in asks])
        return percentile(seconds.tolist(), share, sum(not a.answered for a in answers))

    note = "successful requests only, without waiting and retries"
    return Total(ScoreInfo(f"Latency, {100 * share:g} % within", "seconds", "lower", 0.0, None), over, note)


# ── timings ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _timing(name: str, share: float) -> Total:
    def over(run: Reading, spent: Spent, answers: Sequence[Answer]) -> Estimate:
        return estimate_timing(name, share, spent.timings, answers)

    scale: Scale = "plain" if name == FACTOR else "seconds"
    return Total(ScoreInfo(f"{LABELS[name]}, {100 * share:g} % within", scale, "lower", 0.0, None), over, TIMED)


# ── cost ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _cost(run: Reading, spent: Spent, answers: Sequence[Answer]) -> Estimate:
    """Return the price of the stored replies in dollars by today's price table. At worst, an ask without a reply, or a
    reply without reported tokens, costs as much as the most expensive reply."""
    price = run_price(run)
    missing = sum(not a.answered for a in answers)
    asks = {a.ask for a in answers}
    usages = [usage for ask, usage in zip(spent.asks, spent.usages, strict=True) if ask in asks]
    counted = usages if price is not None and price.date == "free" else [u for u in usages if u != Usage()]
    asked = len(usages) + missing
    if price is None or (usages and not counted):
        return Estimate(None, None, None, 0, asked)
    costs = [price.of(usage) for usage in counted]
    total = math.fsum(costs)
    worst = total + (asked - len(counted)) * max(costs, default=0.0)
    return Estimate(total, None, None, len(counted), asked, total, worst)


def run_price(run: Reading) -> Price | None:
    """Return the price of the run's model; None if the price is unknown. The run's SPEC shows whether the model ran on
    the user's own server."""
    try:
        spec = parse_spec(tomllib.loads(run.meta.get("settings", ""))["model"][0]["spec"])
    except (tomllib.TOMLDecodeError, KeyError, IndexError, TypeError, UsageError):  # a run that another program wrote
        return None
    return price_of(spec)


TOTALS = {
    "retries": Total(ScoreInfo("Retries", better="lower"), _retries),
    "latency_p50": _latency(0.5),
    "latency_p95": _latency(0.95),
    **{f"{name}_p{100 * share:g}": _timing(name, share) for name in LABELS for share in SHARES},
    COST: Total(ScoreInfo("Cost", "usd", "lower", 0.0, None), _cost),
}


def why_not(name: str, run: Reading) -> str:
    """Return the reason why the number `name` of TOTALS has no value in this run."""
    if TOTALS[name].note == TIMED:
        streams = "models that stream measure it, e.g. openai: with stream=yes"
        detects = "realtime: models measure it with turn=vad"
        return f"no reply of the run has this timing; {detects if name.startswith('vad_wait') else streams}"
    if name != COST:
        return "the run has no reply"
    if run_price(run) is None:
        return f"the price of {run.meta.get('model') or 'the model'} is unknown; name a price file in OVERTONE_PRICES"
    return "the endpoint reported no token counts"


def refuse_pairing(name: str) -> None:
    """Raise UsageError if `name` is one of TOTALS, which have no value for single replies to pair."""
    if name in TOTALS:
        raise UsageError(
            f"{name} has no value for one reply, so it cannot be compared pair by pair. Check it in each run instead: "
            f'overtone check RUN --require "{name} <= {"5%" if TOTALS[name].about.scale == "percent" else 2}"'
        )
