"""Compare two runs: paired differences on the items that both were asked, and the cases that changed.

Two asks are paired if they have the same item, condition and repeat. Intervals and p-values come from one test, which
flips the signs of whole scripts (`stats.paired`). A difference is significant if its p-value is at most 0.05 after
Holm's correction over its family. The headline measures under all conditions are one family, whether or not they are
shown. Rows over unvalidated cues, other measures named by the user, and the single cues of one measure are separate
families. `overtone check` uses the same rows, so the two commands cannot disagree.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from overtone import cues
from overtone.results import measure_names, significance
from overtone.results.case_names import unique
from overtone.results.comparability import Unlike, signatures_apart, unlike
from overtone.results.judge_scores import by_status
from overtone.results.load import Answer, Reading
from overtone.results.measures import TIE, Estimate, Measure, chosen
from overtone.stats import multiplicity, paired
from overtone.stats.minimums import NOISE
from overtone.stats.repeats import NORMAL, noise_of_mean, within_variance

SEED = 7
DRAWS = 10_000
LEVEL = 1 - significance.LEVEL  # confidence level of the intervals
SIGNATURE = (
    f"compare|v2|pair:item,condition,repeat|cluster:script|test:sign-flips|draws:{DRAWS}|seed:{SEED}"
    f"|level:{LEVEL}|adjust:holm-by-family|unchanged:below {TIE:g} of the scale"
)
LARGEST = 10  # number of changes of a score to list in each direction
ALL = "all"
TOO_FEW = "too few scripts"
HEADLINE, OTHER, CUES = "headline tests", "tests of other measures", "tests of single cues"  # families
NOT_VALIDATED = " on cues not validated"  # appended to the name of a family

Pairs = list[tuple[Answer, Answer]]


class Change(Struct, frozen=True):
    """One measure in both runs over the same asks. `by` is the mean of second − first: `by.asked` counts the pairs of
    asks, `by.scored` the pairs with a value on both sides. `p` is two-sided; `adjusted` is `p` corrected for all
    `tests` tests of the family."""

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
    family: str
    tests: int
    only_first: int  # pairs with a value only in the first run
    only_second: int
    worse: int  # pairs of a right-or-wrong measure that went from right to wrong
    improved: int
    noise: float | None = None  # 95 % of differences by chance alone are smaller than this

    @property
    def verdict(self) -> str:
        """better, worse, other (if neither direction is better), or "" if the difference is not significant."""
        if self.by.value is None or not significance.significant(self.adjusted):
            return ""
        if self.better == "neither":
            return "other"
        return "better" if (self.by.value > 0) == (self.better == "higher") else "worse"

    @property
    def within_noise(self) -> bool:
        """Whether the difference is smaller than the run-to-run spread; False if the spread is unknown."""
        return self.by.value is not None and self.noise is not None and abs(self.by.value) < self.noise

    @property
    def short_of(self) -> int:
        """The number of scripts that the test needs to find any difference, if there are fewer; otherwise 0."""
        least = significance.least_scripts(self.tests)
        return least if self.by.scripts < least and not self.verdict else 0


class Tested(NamedTuple):
    """One row with its measure and its pairs."""

    change: Change
    measure: Measure
    pairs: Pairs


class Table(Struct, frozen=True):
    """The rows of all measures over all cues, or the rows of one measure by cue."""

    key: str
    title: str
    rows: tuple[Change, ...]


class Flip(Struct, frozen=True):
    """An ask whose score changed. For a question, `was` and `now` are the chosen letters."""

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
    """The changes behind one row: from right to wrong and back, or the changes of a score, the largest first.

    If neither direction is better, `worse` holds the decreases and `improved` the increases. The totals include changes
    that are not listed.
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
    """Two runs, compared on the asks that both have. `unlike` is empty unless the comparison was forced."""

    first: str
    second: str
    first_model: str
    second_model: str
    shared: int  # asks of the core that both runs have
    only_first: int
    only_second: int
    conditions_apart: tuple[str, ...]  # conditions that only one of the runs has
    tables: tuple[Table, ...]
    flips: tuple[Flips, ...]
    unlike: tuple[Unlike, ...]
    notes: tuple[str, ...]
    signature: str = SIGNATURE


def share(
    first: Reading, second: Reading, conditions: Sequence[str] = (), *, core: bool = True
) -> tuple[Pairs, int, int]:
    """Return the pairs of asks that both runs have, the number of asks only in the first run, and the number only in
    the second. If `core` is false, the asks outside the benchmark's core count too."""

    def asks(reading: Reading) -> dict[tuple[str, str, int], Answer]:
        return {
            (a.item_id, a.condition, a.repeat): a
            for a in reading.answers
            if not (core and a.item.part) and (not conditions or a.condition in conditions)
        }

    here, there = asks(first), asks(second)
    pairs = [(a, there[key]) for key, a in here.items() if key in there]
    return pairs, len(here) - len(pairs), len(there) - len(pairs)


def share_for(first: Reading, second: Reading, measures: Iterable[Measure], conditions: Sequence[str] = ()) -> Pairs:
    """Return the pairs of asks to compare: asks of the core, or all asks if one of the measures counts every ask."""
    return share(first, second, conditions, core=not any(m.every for m in measures))[0]


def differences(
    first: Reading, second: Reading, names: Sequence[str] = (), conditions: Sequence[str] = ()
) -> tuple[list[Unlike], list[str]]:
    """Return the differences that make the two runs incomparable in these measures, and notes."""
    measures = wanted(first, second, names)
    return unlike(first, second, measures, share_for(first, second, measures, conditions))


def compare(first: Reading, second: Reading, names: Sequence[str] = (), conditions: Sequence[str] = ()) -> Comparison:
    """Compare two runs, even if they are not comparable: check `unlike` before using the numbers."""
    pairs, only_first, only_second = share(first, second, conditions)
    measures = wanted(first, second, names)
    compared = share_for(first, second, measures, conditions)
    obstacles, notes = unlike(first, second, measures, compared)
    shown = {measure.name for measure in measures}
    overall = [row for row in changes(first, second, names, conditions) if row.measure.name in shown]
    by_cue: list[Table] = []
    for condition, measure, mine in _scored_pairs(compared, measures):
        rows = [_change(measure, condition, "", cue, part, CUES) for cue, part in _by_cue(mine)]
        if len(rows) > 1:
            key = f"compare/{condition}/{measure.name}/cue"
            by_cue.append(Table(key, f"{measure.label} by cue, {condition}", tuple(_adjusted(rows))))
    tables = [Table(f"compare/{ALL}", "All shared items", tuple(row.change for row in overall))] if overall else []
    for measure in measures:
        if left := measure_names.judges_left_out(measure, [first, second]):
            notes.append(left_out(measure, left))
    names_of = [{a.condition for a in r.answers if not a.item.part} for r in (first, second)]
    called = first.name, second.name
    if called[0] == called[1]:
        called = f"{first.name} (A)", f"{second.name} (B)"
    run_notes = [f"{name}: {note}" for name, r in zip(called, (first, second), strict=True) for note in r.notes]
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
        flips=tuple(_flips(row.change, row.measure, row.pairs) for row in overall),
        unlike=tuple(obstacles),
        notes=(*run_notes, *notes),
    )


def left_out(measure: Measure, judges: Sequence[str]) -> str:
    """Return a note on judges that scored only one of the runs."""
    are = "is" if len(judges) == 1 else "are"
    return f"{measure.label}: {' and '.join(judges)} judged only one of the runs and {are} not used"


def changes(first: Reading, second: Reading, names: Sequence[str] = (), conditions: Sequence[str] = ()) -> list[Tested]:
    """Return the rows of the headline measures and of the measures in `names`, by level, with corrected p-values.

    The headline rows are always included, so that their correction does not depend on `names`. A headline measure
    that the two runs measured differently is left out unless it is in `names`.
    """
    asked = {measure.name: measure for measure in wanted(first, second, names)}
    headline = [
        m
        for m in measure_names.headline([first, second])
        if m.name in asked or not signatures_apart(first, second, set(m.scores))
    ]
    main = {m.name for m in headline}
    rows = []
    measures = [*headline, *(m for m in asked.values() if m.name not in main)]
    for condition, measure, mine in _scored_pairs(share_for(first, second, measures, conditions), measures):
        family = HEADLINE if measure.name in main else OTHER
        for basis, part in _by_basis(measure, mine):
            rows.append(Tested(_change(measure, condition, basis, "", part, family), measure, part))
    adjusted = _adjusted([row.change for row in rows])
    rows = [row._replace(change=change) for row, change in zip(rows, adjusted, strict=True)]
    return sorted(rows, key=lambda row: row.measure.level)


def _scored_pairs(pairs: Pairs, measures: Sequence[Measure]) -> Iterator[tuple[str, Measure, Pairs]]:
    """Yield (condition, measure, pairs of asks), if at least one reply in the pairs has a score."""
    for condition in dict.fromkeys(a.condition for a, _ in pairs):
        here = [(a, b) for a, b in pairs if a.condition == condition]
        for measure in measures:
            mine = [(a, b) for a, b in here if (measure.every or not a.item.part) and measure.belongs(a.item)]
            if any(measure.read(a) is not None or measure.read(b) is not None for a, b in mine):
                yield condition, measure, mine


def wanted(first: Reading, second: Reading, names: Sequence[str]) -> list[Measure]:
    """Return the measures in `names`; without names, the headline measures. A named measure that reads the same judges
    as a headline measure is replaced by the headline measure."""
    readings = [first, second]
    headline = measure_names.headline(readings)
    judged = {m.scores: m for m in headline if "@" in "".join(m.scores)}
    named = [judged.get(m.scores, m) for name in names for m in measure_names.find(name, readings)]
    return list({m.name: m for m in named}.values()) if names else headline


def _by_basis(measure: Measure, pairs: Pairs) -> list[tuple[str, Pairs]]:
    if measure.every:
        return [("", pairs)]
    other = {a.ask: b for a, b in pairs}
    return [(basis, [(a, other[a.ask]) for a in answers]) for basis, answers in by_status([a for a, _ in pairs])]


def _by_cue(pairs: Pairs) -> list[tuple[str, Pairs]]:
    parts: dict[str, Pairs] = {}
    for a, b in pairs:
        parts.setdefault(a.item.cue or "neutral", []).append((a, b))
    order = [*cues.slugs(), "neutral"]
    return [(cue, parts[cue]) for cue in [*(c for c in order if c in parts), *sorted(parts.keys() - set(order))]]


# ── one row ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def values(measure: Measure, pairs: Pairs) -> tuple[list[float], list[float], list[str]]:
    """Return the first values, the second values and the scripts of all pairs with a value on both sides. Values that
    differ by less than `tie_of` are made equal."""
    read = ((measure.read(a), measure.read(b), a.item.group) for a, b in pairs)
    tie = tie_of(measure)
    both = [(x, x if abs(y - x) < tie else y, group) for x, y, group in read if x is not None and y is not None]
    return [x for x, _, _ in both], [y for _, y, _ in both], [group for *_, group in both]


def noise_of(measure: Measure, pairs: Pairs) -> float | None:
    """Return the run-to-run spread of the mean difference: if two runs on these items differ only by chance, 95 % of
    their differences are smaller. None unless enough scripts were repeated in both runs."""
    rows = [(measure.read(a), measure.read(b), a) for a, b in pairs]
    known = [(y - x, a.item_id, a.item.group) for x, y, a in rows if x is not None and y is not None]
    variance = within_variance([d for d, _, _ in known], [item for _, item, _ in known], [group for *_, group in known])
    if variance.clusters < NOISE.least:
        return None
    return NORMAL * noise_of_mean(variance, len(known)).value


def tie_of(measure: Measure) -> float:
    """Return the difference below which two values count as equal."""
    return TIE * measure.about.length


def _change(measure: Measure, condition: str, basis: str, cue: str, pairs: Pairs, family: str) -> Change:
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
        family=family + (NOT_VALIDATED if basis == "unvalidated" else ""),
        tests=0,
        only_first=sum(not a and b for a, b in one_side),
        only_second=sum(a and not b for a, b in one_side),
        worse=worse,
        improved=improved,
        noise=noise_of(measure, pairs),
    )


def _adjusted(rows: Sequence[Change]) -> list[Change]:
    """Return the rows with Holm's correction over each family."""
    return significance.adjust(rows, [row.family for row in rows])


def corrected(p_values: Mapping[str, float]) -> dict[str, float]:
    """Return Holm's corrected p-values of one family, with the same keys."""
    return dict(zip(p_values, multiplicity.holm(list(p_values.values())).tolist(), strict=True))


# ── what changed ────────────────────────────────────────────────────────────────────────────────────────────────────


def _flips(row: Change, measure: Measure, pairs: Pairs) -> Flips:
    flips = []
    tie = tie_of(measure)
    for a, b in pairs:
        x, y = measure.read(a), measure.read(b)
        if x is not None and y is not None and abs(y - x) >= tie:
            flips.append(Flip(a.item_id, a.item.case, a.condition, a.repeat, a.item.cue, x, y, chosen(a), chosen(b)))
    sign = -1 if measure.about.better == "lower" else 1
    flips.sort(key=lambda f: (sign * (f.second - f.first), f.item, f.repeat))
    worse = [f for f in flips if sign * (f.second - f.first) < 0]
    improved = [f for f in reversed(flips) if sign * (f.second - f.first) > 0]
    if measure.right_or_wrong:
        improved.reverse()  # all have the same size: order them by name
    most = len(flips) if measure.right_or_wrong else LARGEST
    return Flips(
        row.key, measure.label, row.condition, row.basis, measure.right_or_wrong,
        tuple(worse[:most]), tuple(improved[:most]), len(worse), len(improved),
    )  # fmt: skip


# ── back to the cases ───────────────────────────────────────────────────────────────────────────────────────────────


def behind(first: Reading, second: Reading, key: str) -> list[str]:
    """Return the cases behind the row `key` of a comparison, in the order of the first run; an empty list for an
    unknown key."""
    head, *parts = key.split("/")
    if head != "compare" or len(parts) < 4:
        return []
    condition, name, rest = "/".join(parts[:2]), parts[2], parts[3:]
    measure = measure_names.find_one(name, [first, second])
    pairs = share_for(first, second, [measure], [condition])
    pairs = [(a, b) for a, b in pairs if measure.belongs(a.item)]
    part = rest[1] if len(rest) > 1 else ""
    parted = _by_cue(pairs) if rest[0] == "cue" else _by_basis(measure, pairs)
    pairs = dict(parted).get(part, [])
    return unique(a.item.case for a, b in pairs if measure.read(a) is not None and measure.read(b) is not None)
