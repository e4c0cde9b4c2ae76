"""Compute the values of headline columns from loaded replies.

A benchmark describes its columns as data (see `overtone.suite`). This module implements their rules.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct

from overtone.schema import Item
from overtone.stats.correlation import pearson
from overtone.suite import (
    Column,
    Difference,
    Kappa,
    Means,
    NoteIn,
    Pearson,
    Reduce,
    ReplyValue,
    Right,
    VerdictShare,
    Wins,
)  # fmt: skip


class Scored(Struct, frozen=True):
    """One reply with the values that headlines need.

    `values` maps the name of a metric, or of a judged dimension, to its score; for a dimension, this is the mean of the
    judges. It also maps `metric.key` to a number in the score's details, if a column uses this number. `told` maps
    `metric.key` to a text in the score's details.
    """

    item: Item
    condition: str
    repeat: int
    values: Mapping[str, float | None]
    told: Mapping[str, str] = {}
    item_id: str = ""  # `item.id` is empty in a light reading


Groups = Sequence[Sequence[Scored]]  # replies, grouped: the variants of one utterance are a group


# ── which replies count ─────────────────────────────────────────────────────────────────────────────────────────────


def counts_item(column: Column, item: Item) -> bool:
    """Return whether an item counts for the column."""
    if not all(getattr(item, field) in allowed for field, allowed in column.only.items()):
        return False
    return not column.where or any(
        all(_fits(getattr(item, field), patterns) for field, patterns in fields.items()) for fields in column.where
    )


def _fits(value: object, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(str(value), pattern) for pattern in patterns)


def counted_replies(column: Column, replies: Sequence[Scored]) -> list[Scored]:
    """Return the replies that count for the column."""
    found = [reply for reply in replies if counts_item(column, reply.item)]
    if column.if_right is None:
        return found
    first, then = column.if_right
    right = {(r.item.group, r.repeat) for r in found if r.item.level == first and r.values.get(column.score) == 1}
    return [r for r in found if r.item.level == then and (r.item.group, r.repeat) in right]


# ── what one reply counts ───────────────────────────────────────────────────────────────────────────────────────────


def reply_value(column: Column, reply: Scored) -> float | None:
    """Return the value of one reply in a column that is a mean over replies."""
    if column.read is not None:
        return _read(column.read, reply)
    if not column.balance:
        return reply.values.get(column.score)
    score, times = column.balance.get(reply.item.category, ("", 1.0))
    found = reply.values.get(score)
    return None if found is None else times * found


def _read(rule: ReplyValue, reply: Scored) -> float | None:
    match rule:
        case Difference():
            first, second = reply.values.get(rule.score), reply.values.get(rule.less)
            return None if first is None or second is None else first - second
        case VerdictShare():
            words = (*rule.words, *rule.more.get(reply.item.category, ()))
            said = [word for _, told in _verdicts(rule.score, reply) for word in told.split(",") if word in rule.known]
            return sum(word in words for word in said) / len(said) if said else None
        case NoteIn():
            noted = reply.told.get(rule.note)
            return float(noted in rule.words) if noted else None
        case Wins():
            return _wins(rule, reply)


def _wins(rule: Wins, reply: Scored) -> float | None:
    rated, reference = reply.values.get(rule.score), reply.values.get(rule.against)
    if rated is None or reference is None:
        return None
    shares = []
    for judge, told in _verdicts(rule.score, reply):
        own, other = told.split(","), reply.told.get(f"{rule.against}@{judge}", "").split(",")
        if told and len(own) == len(other):
            shares.append(sum(float(a) > float(b) for a, b in zip(own, other, strict=True)) / len(own))
    return _mean(shares) if shares else float(rated > reference)


def _verdicts(score: str, reply: Scored) -> Iterator[tuple[str, str]]:
    """Yield (label, verdicts) for each judge of a score. The label is the part of the score's name after the `@`;
    the verdicts are separated by commas."""
    for name, told in reply.told.items():
        if name.startswith(f"{score}@") and name.endswith(".values"):
            yield name.partition("@")[2], told


# ── how replies become a number ─────────────────────────────────────────────────────────────────────────────────────


def reduced(rule: Reduce, score: str, groups: Groups) -> float | None:
    """Compute a column's number from the groups of replies that count. `rule` is the column's rule and `score` the
    score that it reads."""
    match rule:
        case Means():
            return _means(rule, groups, rule.scores or (score,))
        case Right():
            return _right(rule, groups, score)
        case Kappa():
            return _kappa(rule, groups)
        case Pearson():
            rows = correlated(rule, score, [reply for group in groups for reply in group])
            r = pearson([x for x, _, _ in rows], [y for _, y, _ in rows]) if rows else math.nan
            return None if math.isnan(r) else r


def correlated(rule: Pearson, score: str, replies: Iterable[Scored]) -> list[tuple[float, float, str]]:
    """Return the rows that a correlation is computed from: the score, what it is compared with, and the group."""
    rows: list[tuple[float, float, str]] = []
    sides: dict[tuple[str, str, int], dict[str, tuple[float, float, str]]] = {}
    for reply in replies:
        x, y = reply.values.get(score), reply.values.get(rule.against)
        if x is None or y is None:
            continue
        row = (x, y, reply.item.group)
        if rule.less is None:
            rows.append(row)
        else:
            side = sides.setdefault((reply.item.case, reply.condition, reply.repeat), {})
            side[str(getattr(reply.item, rule.less[0]))] = row
    if rule.less is not None:
        _, first, second = rule.less
        pairs = [(side[first], side[second]) for side in sides.values() if first in side and second in side]
        rows = [(a[0] - b[0], a[1] - b[1], a[2]) for a, b in pairs]
    return rows


def _mean(values: Iterable[float | None]) -> float | None:
    found = [value for value in values if value is not None]
    return sum(found) / len(found) if found else None


def _means(rule: Means, groups: Groups, scores: Sequence[str]) -> float | None:
    means: dict[str, list[float]] = {}
    for group in groups:
        for reply in group:
            found = [value for score in scores if (value := reply.values.get(score)) is not None]
            if len(found) == len(scores):
                name = str(getattr(reply.item, rule.by)) if rule.by else ""
                means.setdefault(name, []).append((sum(found) / len(scores) + rule.offset) * rule.times)
    parts = rule.parts or [(name,) for name in means]
    whole = _mean(_mean(_mean(means.get(name, ())) for name in part) for part in parts)
    if not rule.over:
        return whole
    other = _means(Means(rule.by, rule.parts, offset=rule.offset, times=rule.times), groups, (rule.over,))
    return whole / other if whole is not None and other else None


def _right(rule: Right, groups: Groups, score: str) -> float | None:
    values = [[reply.values.get(score) for reply in group] for group in groups]
    if all(value is None for group in values for value in group):
        return None
    right = of = 0
    if rule.replies:
        right, of = sum(value == 1 for group in values for value in group), sum(map(len, values))
    if rule.groups:
        right, of = right + sum(all(value == 1 for value in group) for group in values), of + len(values)
    return right / of if rule.share else float(right)


def _kappa(rule: Kappa, groups: Groups) -> float | None:
    """Return quadratically weighted κ: 1 − mean squared difference ÷ its value for two independent raters. None if
    neither rater varies."""
    told = [reply.told for group in groups for reply in group]
    pairs = [(rule.steps.get(t.get(rule.note, "")), rule.steps.get(t.get(rule.other, ""))) for t in told]
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not known:
        return None
    n = len(known)
    apart = sum((a - b) ** 2 for a, b in known) / n
    mean_a, mean_b = sum(a for a, _ in known) / n, sum(b for _, b in known) / n
    chance = sum(a * a + b * b for a, b in known) / n - 2 * mean_a * mean_b
    return 1 - apart / chance if chance else None
