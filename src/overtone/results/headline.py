"""The headline tables that a benchmark defines, computed for a run, each number with its interval."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np
from msgspec import Struct

from overtone.results.case_names import KeyedCases, unique
from overtone.results.column_values import Scored, correlated, counted_replies, counts_item, reduced, reply_value
from overtone.results.headline_condition import by_condition
from overtone.results.judge_scores import PANEL, judges_of, read_dimensions, value
from overtone.results.load import Answer, Reading
from overtone.results.measures import Estimate, estimate, on_scale, within
from overtone.schema import Item
from overtone.stats import bootstrap, corpus_sums
from overtone.suite import Column, Headline, Pearson

SEED = 13
DRAWS = 1000
STILL = 1e-9  # a smaller spread is rounding error
UNNAMED = "not named"  # the name of the line for items without a value of the field that names the lines
Scales = Mapping[str, tuple[float, float]]  # a score's name → its ends


class SuiteRow(Struct, frozen=True):
    """One line of a headline table. `cells` has a number for each column, None if no item counts for the column."""

    key: str
    condition: str
    name: str  # the value of the field `Headline.rows`
    cells: tuple[Estimate | None, ...]


class SuiteTable(Struct, frozen=True):
    headline: Headline
    rows: tuple[SuiteRow, ...]


def has_own_tables(reading: Reading) -> bool:
    """Return whether a run's benchmark has its own headline tables, instead of levels that share their scripts."""
    return reading.suite is not None and bool(reading.suite.headlines)


def suite_tables(reading: Reading) -> list[SuiteTable]:
    """Return the headline tables of the run's benchmark; an empty list if it has none, or if no item of a table was
    asked.

    A table without any score, e.g. because a judge is missing, is left out if other tables have scores.
    """
    suite = reading.suite
    if suite is None or not suite.headlines:
        return []
    scored, scales = read_scored(reading), _scales(reading)
    tables = []
    for headline in suite.headlines:
        tables.append(SuiteTable(headline, tuple(_rows(headline, scored, scales))))
        if headline.differences:
            tables.append(_differences(headline, scored, scales))
    asked = [table for table in tables if table.rows]
    known = [table for table in asked if any(cell and cell.scored for row in table.rows for cell in row.cells)]
    return known or asked


def _scales(reading: Reading) -> Scales:
    """Return score → ends of its scale, for scores whose rubric or metric declares both ends."""
    judged = read_dimensions(reading.meta, reading.signatures).values()
    scales = [(name, info.low, info.high) for name, info in reading.declared.items()]
    scales += [(dimension.key, dimension.low, dimension.high) for dimension in judged]
    return {name: (low, high) for name, low, high in scales if low is not None and high is not None}


def read_scored(reading: Reading) -> list[Scored]:
    """Return every ask of a run with the values that headlines need; an ask without a reply has no values."""
    judges = {name.partition("@")[0]: [""] for name in reading.signatures if "@" in name}
    judges = {key: judges_of(key, reading.signatures) for key in judges}
    suite = reading.suite
    columns = [column for headline in suite.headlines for column in headline.columns] if suite is not None else []
    named = [column.score for column in columns]
    named += [column.reduce.against for column in columns if isinstance(column.reduce, Pearson)]
    parts = sorted({name for name in named if "." in name})
    read: dict[tuple[int, int], tuple[dict[str, float | None], dict[str, str]]] = {}  # answers may share their scores
    scored = []
    for condition, answers in by_condition(reading).items():
        for answer in answers:
            known = (id(answer.scores), answer.state)
            if known not in read:
                read[known] = _values(answer, judges, parts)
            scored.append(Scored(answer.item, condition, answer.repeat, *read[known], answer.item_id))
    return scored


def _values(
    answer: Answer, judges: dict[str, list[str]], parts: Sequence[str]
) -> tuple[dict[str, float | None], dict[str, str]]:
    """Return score → value for a reply, and `score.key` → text for each text in the details of its scores."""
    values = {name: answer.value(name) for name in answer.scores}
    for part in parts:
        metric, _, key = part.partition(".")
        score = answer.scores.get(metric)
        number = score.detail.get(key) if score is not None and answer.answered else None
        values[part] = float(number) if isinstance(number, int | float) else None
    for key, labels in judges.items():
        values[key] = value(answer, key, PANEL if len(labels) > 1 else labels[0], labels)
    texts = {
        f"{name}.{key}": note
        for name, score in answer.scores.items()
        for key, note in score.detail.items()
        if isinstance(note, str) and answer.answered
    }
    return values, texts


def cases_by_key(reading: Reading) -> Iterator[KeyedCases]:
    """Yield the key of every number in the headline tables, ROW/COLUMN, with the cases of the replies that count."""
    suite = reading.suite
    if suite is None or not suite.headlines:
        return
    scored = read_scored(reading)
    for headline in suite.headlines:
        for key, _, _, rows in _parts(headline, scored):
            for column in headline.columns:
                counted = counted_replies(column, rows)
                every = not column.score and not column.balance
                known = [r for r in counted if every or reply_value(column, r) is not None]
                yield f"{key}/{column.key}", unique(r.item.case for r in known)
        if headline.differences:
            for key, _, _, pairs in _paired(headline, scored):
                for column in _means(headline):
                    both = [a for a, b in pairs if counts_item(column, a.item) and _apart(column, a, b) is not None]
                    yield f"{key}/{column.key}", unique(a.item.case for a in both)


def _parts(headline: Headline, scored: Sequence[Scored]) -> Iterator[tuple[str, str, str, list[Scored]]]:
    """Yield (key, condition, name, replies) for every line of a headline table."""
    parts: dict[tuple[str, str], list[Scored]] = {}
    for one in scored:
        name = _row_name(one.item, headline.rows) if headline.rows else ""
        parts.setdefault((one.condition, name), []).append(one)
    for (condition, name), rows in parts.items():
        yield f"suite/{headline.key}/{condition}" + (f"/{name}" if headline.rows else ""), condition, name, rows


def _row_name(item: Item, field: str) -> str:
    """Return the name of an item's line: the value of `field`. A cue that Overtone does not know is named in the
    benchmark's own words."""
    name = str(getattr(item, field)) or (item.cue_text if field == "cue" else "")
    return name or UNNAMED


def _rows(headline: Headline, scored: Sequence[Scored], scales: Scales) -> Iterator[SuiteRow]:
    for key, condition, name, rows in _parts(headline, scored):
        cells = tuple(number(column, counted_replies(column, rows), scales) for column in headline.columns)
        if any(cell is not None for cell in cells):
            yield SuiteRow(key, condition, name, cells)


def number(column: Column, replies: Sequence[Scored], scales: Scales | None = None) -> Estimate | None:
    """Compute one column over the replies that count for it; None without such replies. The interval is clustered by
    group and stays within the scale of the column."""
    if not replies:
        return None
    scale, offset = column.scale, column.offset
    if column.balance:
        return _bounded(_balanced(column, replies), column, scales or {})
    if column.reduce is None:
        counted = _once(column, replies)
        values = [None if (v := reply_value(column, reply)) is None else scale * (v + offset) for reply in counted]
        yes_or_no = (scale, offset) == (1, 0) and all(v is None or v in (0.0, 1.0) for v in values)
        rows = [(v, r.item.group) for v, r in zip(values, counted, strict=True)]
        return _bounded(estimate(rows, kind="proportion" if yes_or_no else "mean"), column, scales or {})
    if isinstance(column.reduce, Pearson):
        return _bounded(_correlation(column, column.reduce, replies), column, scales or {})
    groups: dict[str, list[Scored]] = {}
    for reply in replies:
        groups.setdefault(reply.item.group, []).append(reply)
    whole, rule = list(groups.values()), column.reduce

    def statistic(places: Iterable[int]) -> float:
        value = reduced(rule, column.score, [whole[int(place)] for place in places])
        return math.nan if value is None else scale * (value + offset)

    interval = bootstrap.clustered(statistic, range(len(whole)), seed=SEED, draws=DRAWS)
    known = sum(reply.values.get(column.score) is not None for reply in replies) if column.score else len(replies)
    value, low, high = (None if math.isnan(x) else x for x in (interval.value, interval.low, interval.high))
    return _uncertain(Estimate(value, low, high, known, len(replies), scripts=len(whole)))


def _correlation(column: Column, rule: Pearson, replies: Sequence[Scored]) -> Estimate:
    """Return Pearson's r with a jackknife interval over groups: sums per group are enough, so long runs are fast."""
    rows = correlated(rule, column.score, replies)
    if not rows:
        return Estimate(None, None, None, 0, len(replies))
    x, y = (np.array([row[side] for row in rows]) for side in (0, 1))
    if np.ptp(x) < STILL or np.ptp(y) < STILL:
        same = "no correlation: one side has the same value in all replies"
        return Estimate(None, None, None, len(rows), len(replies), note=same)
    x, y = x - x.mean(), y - y.mean()  # so that the squares do not cancel
    sums = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], 1)

    def r(total: corpus_sums.Sums) -> float:
        n, a, b, aa, bb, ab = total
        spread = (aa - a * a / n) * (bb - b * b / n)
        return float((ab - a * b / n) / math.sqrt(spread)) if n > 1.5 and spread > STILL**2 else math.nan

    interval = corpus_sums.jackknife(sums, [group for _, _, group in rows], r)
    value, low, high = (None if math.isnan(v) else v for v in (interval.value, interval.low, interval.high))
    asked = len(replies) // (2 if rule.less else 1)
    return Estimate(value, low, high, len(rows), asked, scripts=len({row[2] for row in rows}))


def _uncertain(made: Estimate) -> Estimate:
    """Drop an interval of width 0: if all groups have the same value, their spread cannot be estimated."""
    if made.low is None or made.low != made.high:
        return made
    return msgspec.structs.replace(made, low=None, high=None, note="no interval: all groups have the same value")


def _ends(column: Column, scales: Scales) -> tuple[float, float]:
    """Return the lowest and the highest possible value of a column; infinite if unknown."""
    if column.ends is not None:
        return column.ends
    used = list(column.balance.values()) or [(column.score, 1.0)]
    if column.read is not None or any(score not in scales for score, _ in used):
        return -math.inf, math.inf
    ends = [column.scale * (times * end + column.offset) for score, times in used for end in scales[score]]
    return min(ends), max(ends)


def _bounded(made: Estimate, column: Column, scales: Scales) -> Estimate:
    low, high = _ends(column, scales)
    seen = low if made.value is None else made.value  # an empty reply may count less than the lowest rating
    return on_scale(made, min(low, seen), max(high, seen))


def _balanced(column: Column, replies: Sequence[Scored]) -> Estimate:
    """Return the mean of the categories' means, with a jackknife interval over groups."""
    places = {name: place for place, name in enumerate(column.balance)}
    valued = [(places[r.item.category], v, r.item.group) for r in replies if (v := reply_value(column, r)) is not None]
    rows = np.zeros((len(valued), 2 * len(places)))
    for row, (place, counted, _) in zip(rows, valued, strict=True):
        row[place], row[len(places) + place] = column.scale * counted, 1.0

    def score(sums: corpus_sums.Sums) -> float:
        totals, counts = sums[: len(places)], sums[len(places) :]
        there = counts > 0.5  # counts are differences of sums, so they may not be exactly 0
        return float((totals[there] / counts[there]).mean()) if there.any() else math.nan

    interval = corpus_sums.jackknife(rows, [group for _, _, group in valued], score)
    ends = tuple(None if math.isnan(x) else x for x in (interval.value, interval.low, interval.high))
    scripts = len({reply.item.group for reply in replies})
    return _uncertain(Estimate(ends[0], ends[1], ends[2], len(valued), len(replies), scripts=scripts))


def _once(column: Column, replies: Sequence[Scored]) -> Sequence[Scored]:
    """Return the replies; if the column's score is about whole groups, return one reply per group and repeat."""
    if column.each == "reply":
        return replies
    first: dict[tuple[str, str, int], Scored] = {}
    for reply in replies:
        key = reply.item.group, reply.condition, reply.repeat
        if key not in first or reply_value(column, first[key]) is None:
            first[key] = reply
    return list(first.values())


# ── differences between conditions ──────────────────────────────────────────────────────────────────────────────────


def _differences(headline: Headline, scored: Sequence[Scored], scales: Scales) -> SuiteTable:
    """Make the table of differences between two conditions, for each column of a headline that is a mean. Only items
    with replies under both conditions count."""
    columns = tuple(
        msgspec.structs.replace(c, kind="points" if c.kind == "percent" else c.kind) for c in _means(headline)
    )
    hint = "The first condition minus the second, reply by reply (or group by group), over replies that both have."
    made = msgspec.structs.replace(
        headline, key=f"{headline.key}-differences", title=headline.differences, hint=hint, columns=columns
    )
    rows = []
    for key, named, name, pairs in _paired(headline, scored):
        cells = [_gap(column, [(a, b) for a, b in pairs if counts_item(column, a.item)], scales) for column in columns]
        if any(cell is not None for cell in cells):
            rows.append(SuiteRow(key, named, name, tuple(cells)))
    return SuiteTable(made, tuple(rows))


def _means(headline: Headline) -> list[Column]:
    return [c for c in headline.columns if c.reduce is None and c.if_right is None and not c.balance]


def _paired(
    headline: Headline, scored: Sequence[Scored]
) -> Iterator[tuple[str, str, str, list[tuple[Scored, Scored]]]]:
    """Yield (key, conditions, name of the line, pairs of replies to one item) for each pair from `_apart_by_one`."""
    parts = {(condition, name): rows for _, condition, name, rows in _parts(headline, scored)}
    conditions = list(dict.fromkeys(condition for condition, _ in parts))
    for first, second in _apart_by_one(conditions):
        for name in dict.fromkeys(name for condition, name in parts if condition == first):
            others = {(r.item_id, r.repeat): r for r in parts.get((second, name), [])}
            mine = parts[first, name]
            pairs = [(r, others[r.item_id, r.repeat]) for r in mine if (r.item_id, r.repeat) in others]
            named = f"{first} − {second}"
            key = f"suite/{headline.key}-differences/{named}" + (f"/{name}" if headline.rows else "")
            if pairs:
                yield key, named, name, pairs


def _apart_by_one(conditions: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each pair of conditions that differ only in the prompt or only in the input. In a pair of inputs, audio
    comes first."""
    ordered = sorted(conditions, key=lambda c: c.partition("/")[2] != "audio")
    for place, first in enumerate(ordered):
        for second in ordered[place + 1 :]:
            if sum(a != b for a, b in zip(first.split("/"), second.split("/"), strict=False)) == 1:
                yield first, second


def _apart(column: Column, first: Scored, second: Scored) -> float | None:
    a, b = reply_value(column, first), reply_value(column, second)
    return None if a is None or b is None else column.scale * (a - b)


def _gap(column: Column, pairs: Sequence[tuple[Scored, Scored]], scales: Scales) -> Estimate | None:
    if not pairs:
        return None
    others = {id(a): b for a, b in pairs}
    counted = _once(column, [a for a, b in pairs if _apart(column, a, b) is not None] or [a for a, _ in pairs])
    low, high = _ends(column, scales)
    gap = estimate([(_apart(column, a, others[id(a)]), a.item.group) for a in counted])
    return within(gap, low - high, high - low)
