"""Is the second run better than the first? Paired differences on the items both were asked, and the cases that flipped.

An ask is paired with that of the same item, condition and repeat. Intervals and p-values come from one test, which
flips the signs of whole scripts (`stats.paired`); p-values are made larger for the number of rows in a table (Holm).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec import Struct

from overtone import cues
from overtone.analysis import named
from overtone.analysis.judged import by_status
from overtone.analysis.measures import TIE, Estimate, Measure, chosen
from overtone.analysis.reading import Answer, Reading
from overtone.analysis.said import Sentence
from overtone.analysis.unlike import Unlike, unlike
from overtone.stats import multiple, paired

SEED = 7
DRAWS = 10_000
LEVEL = 0.95
SIGNATURE = (
    f"compare|v1|pair:item,condition,repeat|cluster:script|test:sign-flips|draws:{DRAWS}|seed:{SEED}"
    f"|level:{LEVEL}|adjust:holm-by-table|unchanged:below {TIE:g} of the scale"
)
LARGEST = 10  # changes of a score that are listed in each direction
ALL = "all"
TOO_FEW = "too few scripts"

Pairs = list[tuple[Answer, Answer]]


class Change(Struct, frozen=True):
    """One measure in both runs over the same asks. `by` is the mean of second − first; its `asked` counts the pairs of
    asks, its `scored` those with a value on both sides. `p` is two-sided; `adjusted` holds for the whole table."""

    key: str
    condition: str
    measure: str
    label: str
    level: int
    basis: str
    cue: str  # "" is all cues
    better: str
    shown: str  # percent or number
    digits: int
    first: float | None
    second: float | None
    by: Estimate
    p: float | None
    adjusted: float | None
    only_first: int  # pairs that only the first run has a value for
    only_second: int
    worse: int  # pairs of a right-or-wrong measure that went from right to wrong
    improved: int

    @property
    def verdict(self) -> str:
        """better, worse, other (where neither way is better) or "" where it cannot be told."""
        if self.adjusted is None or self.by.value is None or self.adjusted > 1 - LEVEL:
            return ""
        if self.better == "neither":
            return "other"
        return "better" if (self.by.value > 0) == (self.better == "higher") else "worse"


class Table(Struct, frozen=True):
    """Rows whose p-values were adjusted together."""

    key: str
    title: str
    rows: tuple[Change, ...]


class Flip(Struct, frozen=True):
    """An ask whose score changed. `was` and `now` are the letters chosen, of a question."""

    item: str
    case: str
    condition: str
    repeat: int
    cue: str
    first: float
    second: float
    was: str = ""
    now: str = ""


class Flips(Struct, frozen=True):
    """What changed under one row: right to wrong and back, or the largest changes of a score; the worst first.

    Where neither way is better, `worse` holds what fell and `improved` what rose. The totals count what is not listed.
    """

    key: str
    label: str
    condition: str
    basis: str
    right_or_wrong: bool
    worse: tuple[Flip, ...]
    improved: tuple[Flip, ...]
    worse_total: int
    improved_total: int


class Comparison(Struct, frozen=True):
    """Two runs on what they share. `unlike` is empty unless the comparison was forced."""

    first: str
    second: str
    first_model: str
    second_model: str
    shared: int  # asks of the core in both
    only_first: int
    only_second: int
    conditions_apart: tuple[str, ...]  # conditions that only one of the runs has
    tables: tuple[Table, ...]
    flips: tuple[Flips, ...]
    unlike: tuple[Unlike, ...]
    notes: tuple[str, ...]
    signature: str = SIGNATURE


def share(first: Reading, second: Reading, conditions: Sequence[str] = ()) -> tuple[Pairs, int, int]:
    """The asks of the core that both runs hold, and how many only the first and only the second holds."""

    def core(reading: Reading) -> dict[tuple[str, str, int], Answer]:
        return {
            (a.item_id, a.condition, a.repeat): a
            for a in reading.answers
            if not a.item.part and (not conditions or a.condition in conditions)
        }

    here, there = core(first), core(second)
    pairs = [(a, there[key]) for key, a in here.items() if key in there]
    return pairs, len(here) - len(pairs), len(there) - len(pairs)


def differences(
    first: Reading, second: Reading, names: Sequence[str] = (), conditions: Sequence[str] = ()
) -> tuple[list[Unlike], list[str]]:
    """What makes the two runs incomparable in these measures, and what should be known all the same."""
    return unlike(first, second, _wanted(first, second, names), share(first, second, conditions)[0])


def compare(first: Reading, second: Reading, names: Sequence[str] = (), conditions: Sequence[str] = ()) -> Comparison:
    """The comparison, whether or not the runs compare: ask `differences` before, or look at `unlike` after."""
    pairs, only_first, only_second = share(first, second, conditions)
    wanted = _wanted(first, second, names)
    found, notes = unlike(first, second, wanted, pairs)
    overall: list[tuple[Change, Measure, Pairs]] = []
    by_cue: list[Table] = []
    for condition in dict.fromkeys(a.condition for a, _ in pairs):
        here = [(a, b) for a, b in pairs if a.condition == condition]
        for measure in wanted:
            mine = [(a, b) for a, b in here if measure.belongs(a.item)]
            if not any(measure.read(a) is not None or measure.read(b) is not None for a, b in mine):
                continue
            for basis, part in _by_basis(mine):
                overall.append((_change(measure, condition, basis, "", part), measure, part))
            rows = [_change(measure, condition, "", cue, part) for cue, part in _by_cue(mine)]
            if len(rows) > 1:
                key = f"compare/{condition}/{measure.name}/cue"
                by_cue.append(Table(key, f"{measure.label} by cue, {condition}", _adjusted(rows)))
    overall.sort(key=lambda row: row[1].level)
    tables = [Table(f"compare/{ALL}", "All shared items", _adjusted([row for row, _, _ in overall]))] if overall else []
    for measure in wanted:
        if left := named.judges_left_out(measure, [first, second]):
            notes.append(f"{measure.label}: {', '.join(left)} judged only one of the runs and is left out")
    names_of = [{a.condition for a in r.answers if not a.item.part} for r in (first, second)]
    called = first.name, second.name
    if called[0] == called[1]:
        called = f"{first.name} (A)", f"{second.name} (B)"
    told = [f"{name}: {note}" for name, r in zip(called, (first, second), strict=True) for note in r.notes]
    return Comparison(
        first=called[0],
        second=called[1],
        first_model=first.meta.get("model", ""),
        second_model=second.meta.get("model", ""),
        shared=len(pairs),
        only_first=only_first,
        only_second=only_second,
        conditions_apart=tuple(sorted(names_of[0] ^ names_of[1])),
        tables=(*tables, *by_cue),
        flips=tuple(_flips(row, measure, part) for row, measure, part in overall),
        unlike=tuple(found),
        notes=(*told, *notes),
    )


def _wanted(first: Reading, second: Reading, names: Sequence[str]) -> list[Measure]:
    readings = [first, second]
    if not names:
        return named.headline(readings)
    return list({m.name: m for name in names for m in named.find(name, readings)}.values())


def _by_basis(pairs: Pairs) -> list[tuple[str, Pairs]]:
    other = {a.ask: b for a, b in pairs}
    return [(basis, [(a, other[a.ask]) for a in found]) for basis, found in by_status([a for a, _ in pairs])]


def _by_cue(pairs: Pairs) -> list[tuple[str, Pairs]]:
    parts: dict[str, Pairs] = {}
    for a, b in pairs:
        parts.setdefault(a.item.cue or "neutral", []).append((a, b))
    order = [*cues.slugs(), "neutral"]
    return [(cue, parts[cue]) for cue in [*(c for c in order if c in parts), *sorted(parts.keys() - set(order))]]


# ── one row ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def values(measure: Measure, pairs: Pairs) -> tuple[list[float], list[float], list[str]]:
    """The values of both sides where both have one, and their scripts. What has not changed is equal."""
    read = ((measure.read(a), measure.read(b), a.item.group) for a, b in pairs)
    tie = tie_of(measure)
    found = [(x, x if abs(y - x) < tie else y, group) for x, y, group in read if x is not None and y is not None]
    return [x for x, _, _ in found], [y for _, y, _ in found], [group for *_, group in found]


def tie_of(measure: Measure) -> float:
    """Differences below it are none."""
    return TIE * measure.about.length


def _change(measure: Measure, condition: str, basis: str, cue: str, pairs: Pairs) -> Change:
    before, after, scripts = values(measure, pairs)
    tested = paired.permutation(after, before, scripts, seed=SEED, draws=DRAWS, level=LEVEL)
    one_side = [(measure.read(a) is None, measure.read(b) is None) for a, b in pairs]
    low, high = (x if math.isfinite(x) else None for x in (tested.low, tested.high))
    size = len(before)
    by = Estimate(
        value=tested.value if size else None,
        low=low,
        high=high,
        scored=size,
        asked=len(pairs),
        scripts=tested.clusters,
        note=TOO_FEW if size and low is None else "",
    )
    up = sum(y > x for x, y in zip(before, after, strict=True))
    down = sum(y < x for x, y in zip(before, after, strict=True))
    improved, worse = (down, up) if measure.about.better == "lower" else (up, down)
    if cue and any(a.item.status == "unvalidated" for a, _ in pairs):
        basis = "unvalidated"
    return Change(
        key="/".join(("compare", condition, measure.name, *(("cue", cue) if cue else (ALL, *filter(None, [basis]))))),
        condition=condition,
        measure=measure.name,
        label=measure.label,
        level=measure.level,
        basis=basis,
        cue=cue,
        better=measure.about.better,
        shown=measure.about.shown,
        digits=measure.about.digits,
        first=math.fsum(before) / size if size else None,
        second=math.fsum(after) / size if size else None,
        by=by,
        p=tested.p if size else None,
        adjusted=None,
        only_first=sum(not a and b for a, b in one_side),
        only_second=sum(a and not b for a, b in one_side),
        worse=worse,
        improved=improved,
    )


def _adjusted(rows: Sequence[Change]) -> tuple[Change, ...]:
    found = multiple.holm([math.nan if row.p is None else row.p for row in rows])
    return tuple(_with(row, None if math.isnan(p) else float(p)) for row, p in zip(rows, found.tolist(), strict=True))


def _with(row: Change, adjusted: float | None) -> Change:
    return msgspec.structs.replace(row, adjusted=adjusted)


# ── what changed ────────────────────────────────────────────────────────────────────────────────────────────────────


def _flips(row: Change, measure: Measure, pairs: Pairs) -> Flips:
    found = []
    tie = tie_of(measure)
    for a, b in pairs:
        x, y = measure.read(a), measure.read(b)
        if x is not None and y is not None and abs(y - x) >= tie:
            found.append(Flip(a.item_id, a.item.case, a.condition, a.repeat, a.item.cue, x, y, chosen(a), chosen(b)))
    sign = -1 if measure.about.better == "lower" else 1
    found.sort(key=lambda f: (sign * (f.second - f.first), f.item, f.repeat))
    worse = [f for f in found if sign * (f.second - f.first) < 0]
    improved = [f for f in reversed(found) if sign * (f.second - f.first) > 0]
    if measure.right_or_wrong:
        improved.reverse()  # all are alike: in the order of their names
    most = len(found) if measure.right_or_wrong else LARGEST
    return Flips(
        row.key, measure.label, row.condition, row.basis, measure.right_or_wrong,
        tuple(worse[:most]), tuple(improved[:most]), len(worse), len(improved),
    )  # fmt: skip


# ── in words, and back to the cases ─────────────────────────────────────────────────────────────────────────────────


def sentences(found: Comparison) -> list[Sentence]:
    """What the overall table says, a sentence a row."""
    rows = found.tables[0].rows if found.tables else ()
    told = [Sentence(_sentence(found, row, len(rows)), row.key) for row in rows]
    return told or [Sentence("The runs share no item that both have scores for.")]


def _sentence(found: Comparison, row: Change, rows: int) -> str:
    over = {"unvalidated": ", cues not validated", "validated": ", validated cues"}.get(row.basis, "")
    what = f"{row.label} ({row.condition}{over})"
    if row.by.value is None:
        return f"{what}: cannot be told, no item has a score in both runs."
    by = f"{change(row.by.value, row)} {unit(row)}".strip()
    much = by.lstrip("+−")
    between = (
        f"95 % interval {change(row.by.low, row)} to {change(row.by.high, row)}"
        if row.by.low is not None
        else row.by.note
    )
    behind = f"{row.by.scored:,} pairs of {row.by.scripts:,} scripts"
    if not row.verdict:
        return f"{what}: a difference of {by} ({between}; {behind}) cannot be told from none."
    word = "higher" if row.by.value > 0 else "lower"
    side = {"better": ", which is better", "worse": ", which is worse"}.get(row.verdict, "")
    p = f"p {probability(row.adjusted)} after Holm over {rows} row{'s' if rows > 1 else ''}"
    return f"{what}: {found.second} is {word} than {found.first} by {much} ({between}; {p}; {behind}){side}."


def change(x: float | None, row: Change) -> str:
    """A difference with its sign, on the measure's scale: percentage points, or its own unit."""
    if x is None:
        return "–"
    text = f"{100 * x:+,.1f}" if row.shown == "percent" else f"{x:+,.{row.digits}f}"
    return text.lstrip("+-") if not text.strip("+-0.,") else text.replace("-", "−")


def unit(row: Change) -> str:
    return "points" if row.shown == "percent" else ""


def probability(p: float | None) -> str:
    return "–" if p is None else "< 0.001" if p < 0.001 else f"= {p:.3f}"


def behind(first: Reading, second: Reading, key: str) -> list[str]:
    """The cases under a row of a comparison of these two runs, in the order of the first; empty for an unknown key."""
    head, *parts = key.split("/")
    if head != "compare" or len(parts) < 4:
        return []
    condition, name, rest = "/".join(parts[:2]), parts[2], parts[3:]
    pairs = share(first, second, [condition])[0]
    measure = named.find_one(name, [first, second])
    pairs = [(a, b) for a, b in pairs if measure.belongs(a.item)]
    wanted = rest[1] if len(rest) > 1 else ""
    parted = _by_cue(pairs) if rest[0] == "cue" else _by_basis(pairs)
    pairs = dict(parted).get(wanted, [])
    return list(dict.fromkeys(_scored(pairs, measure.read)))


def _scored(pairs: Pairs, read: Callable[[Answer], float | None]) -> Iterable[str]:
    return (a.item.case for a, b in pairs if read(a) is not None and read(b) is not None)
