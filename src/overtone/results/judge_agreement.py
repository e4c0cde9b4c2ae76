"""Agreement of judges: between judges on the same replies, and between repeated verdicts of one judge."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
from msgspec import Struct

from overtone.results.judge_scores import Dimension, judges_of, replies_of, scope_of, scored_names
from overtone.results.load import Answer
from overtone.results.measures import Estimate, from_interval
from overtone.stats import agreement, cluster, correlation, kappa

DRAWS = 1000
SEED = 20_251


class AgreementRow(Struct, frozen=True):
    """The agreement on one dimension, between several judges (`judges`) or between one judge's verdicts (`repeats`).

    `alpha` is Krippendorff's for ordinal data, with a bootstrap interval over scripts. `exact`, `within_one` and
    `spearman` are means over pairs of judges, or of repeats. They are None if undefined: no variation, no pair.
    """

    kind: str  # judges, repeats
    dimension: Dimension
    who: tuple[str, ...]
    alpha: Estimate
    exact: float | None
    within_one: float | None
    spearman: float | None
    replies: int


def agreements(answers: Iterable[Answer], dimensions: Mapping[str, Dimension]) -> list[AgreementRow]:
    """Compute the agreement over all conditions of a run together."""
    asked = replies_of(answers)
    names = scored_names(asked)
    rows = []
    for key, dimension in dimensions.items():
        judges = judges_of(key, names)
        scope = scope_of(dimension, judges, asked)
        if len(judges) > 1:
            units = [([a.value(f"{key}@{j}") for j in judges], a.item.group) for a in scope]
            rows.append(_row("judges", dimension, tuple(judges), units))
        for judge in judges:
            drawn = [(draws_of(a, f"{key}@{judge}"), a.item.group) for a in scope]
            most = max((len(values) for values, _ in drawn), default=0)
            if most > 1:
                even = [([*values, *[None] * (most - len(values))], group) for values, group in drawn]
                rows.append(_row("repeats", dimension, (judge,), even))
    return [row for row in rows if row.replies]


def draws_of(answer: Answer, name: str) -> list[float | None]:
    """Return the single verdicts behind a score, None for a verdict that is not a number."""
    score = answer.scores.get(name)
    verdicts = str(score.detail.get("values") or "") if score is not None and answer.answered else ""
    return [_number(text) for text in verdicts.split(",")] if verdicts else []


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return {"yes": 1.0, "no": 0.0}.get(text.strip().lower())
    return value if math.isfinite(value) else None


def _row(
    kind: str, dimension: Dimension, who: tuple[str, ...], units: Sequence[tuple[Sequence[float | None], str]]
) -> AgreementRow:
    rated = [(values, group) for values, group in units if sum(v is not None for v in values) > 1]
    table = np.array([[math.nan if v is None else v for v in values] for values, _ in rated], dtype=np.float64)
    pairs = [
        (a[both], b[both]) for a, b in itertools.combinations(table.T, 2) if (both := ~np.isnan(a) & ~np.isnan(b)).any()
    ]
    if not len(rated):
        return AgreementRow(kind, dimension, who, Estimate(None, None, None, 0, len(units)), None, None, None, 0)
    agreed = agreement.agreement(table.T, "ordinal", seed=SEED, draws=DRAWS, clusters=[group for _, group in rated])
    known = cluster.Interval(agreed.alpha, math.nan, agreed.low, agreed.high, len(rated), len({g for _, g in rated}))
    alpha = from_interval(known, agreed.low, agreed.high, len(units))
    if kind == "judges":
        alpha = msgspec.structs.replace(alpha, note=_coverage(who, [values for values, _ in units]))
    return AgreementRow(
        kind=kind,
        dimension=dimension,
        who=who,
        alpha=alpha,
        exact=_mean([kappa.exact(a.tolist(), b.tolist()) for a, b in pairs]),
        within_one=None if dimension.share else _mean([kappa.within(a.tolist(), b.tolist()) for a, b in pairs]),
        spearman=_mean([correlation.spearman(a, b) for a, b in pairs]),
        replies=len(rated),
    )


def _coverage(judges: Sequence[str], units: Sequence[Sequence[float | None]]) -> str:
    """Return a note with the number of replies that each judge rated; "" if all judges rated the same number. The
    row's n counts only replies that at least two judges rated."""
    counts = [sum(values[place] is not None for values in units) for place in range(len(judges))]
    if len(set(counts)) < 2:
        return ""
    return "replies rated: " + ", ".join(f"{judge} {count}" for judge, count in zip(judges, counts, strict=True))


def _mean(values: Sequence[float]) -> float | None:
    known = [v for v in values if not math.isnan(v)]
    return sum(known) / len(known) if known else None
