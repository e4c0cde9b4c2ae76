"""An upper bound for perfect hearing: replies with the cue stated in words, minus replies to the same clips without it.

The same difference is measured with a wrong cue. A gain that remains with a wrong cue rewards the mention of any cue,
not the perception of the right one. Only the gain of the right cue over a wrong one can be due to the cue being right.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
from msgspec import Struct

from overtone import cues
from overtone.results import measure_names, significance
from overtone.results.case_names import KeyedCases, unique
from overtone.results.load import Answer, Reading
from overtone.results.measures import TIE, Estimate, Measure, from_interval
from overtone.results.side_measures import by_basis
from overtone.results.wording import Sentence, shortfall
from overtone.stats import cluster
from overtone.stats.minimums import DIFFERENCE

SEED, DRAWS = 17, 4000
SIGNATURE = (
    "upper|v2|conditions:enhance,oracle,oracle-false|clips:cued|pairs:case,repeat|complete:all-conditions-asked|"
    f"test:sign-flips by script,within-the-scale|draws:{DRAWS}|seed:{SEED}|"
    "adjust:holm, overall rows together, of a breakdown by measure|share:student-by-script"
)
BASE, RIGHT, WRONG = "enhance", "oracle", "oracle-false"
MEASURES = (
    measure_names.C4, "cspeechrel_implicit", measure_names.VES, measure_names.C1, "reply_semsim",
    "style_margin", "emoalign_reference",
)  # fmt: skip


class Test(Struct, frozen=True):
    """A test of the null hypothesis that a difference is 0. `adjusted` is corrected for all `tests` of its family."""

    p: float | None
    adjusted: float | None = None
    tests: int = 0


class UpperRow(Struct, frozen=True):
    """One measure, over the cases with a value under every condition. If no prompt stated a wrong cue, `wrong` and the
    numbers derived from it are None."""

    key: str
    basis: str
    by: str  # overall, dimension, cue
    name: str
    measure: str
    base: Estimate
    right: Estimate
    gain: Estimate  # right − base
    wrong: Estimate | None = None
    survives: Estimate | None = None  # wrong − base
    beyond: Estimate | None = None  # right − wrong
    share: Estimate | None = None  # survives ÷ gain, if the interval of the gain is above 0
    gain_test: Test = Test(None)
    beyond_test: Test = Test(None)


class Upper(Struct, frozen=True):
    """The effect of a stated cue on one model's replies."""

    rows: list[UpperRow]
    notes: list[str]
    signature: str = SIGNATURE

    def row(
        self, measure: str, by: str = "overall", name: str = "overall", basis: str | None = None
    ) -> UpperRow | None:
        for row in self.rows:
            if (row.measure, row.by, row.name) == (measure, by, name) and basis in (None, row.basis):
                return row
        return None


class Together(NamedTuple):
    """The clip of one case, and the values of one repeat of this case under each condition. If one value is missing,
    all are None."""

    values: tuple[float | None, ...]
    script: str
    dimension: str
    cue: str
    case: str


def upper(readings: Reading | Sequence[Reading], *, input: str = "audio") -> Upper:
    """Compute the effect from one run with all conditions, or from runs of one model with one condition each."""
    compared, notes = _compared(readings, input)
    rows = [
        _row(f"upper/{basis or 'all'}/{by}/{name}/{measure.name}", basis, by, name, measure, part)
        for basis, measure, together in compared
        for by, name, part in _parts(together)
    ]
    return Upper(_adjusted(rows), notes)


def _compared(
    readings: Reading | Sequence[Reading], input: str
) -> tuple[list[tuple[str, Measure, list[Together]]], list[str]]:
    """Return (basis, measure, values to compare) for every possible comparison, and notes on missing data."""
    answers, measures, notes = measure_names.pooled([readings] if isinstance(readings, Reading) else readings)
    replies = _replies(answers, input)
    asked = {a.condition for a in replies}
    for condition in (BASE, RIGHT):
        if f"{condition}/{input}" not in asked:
            notes.append(f"No clip with a cue was asked under {condition}/{input}.")
    if not {f"{BASE}/{input}", f"{RIGHT}/{input}"} <= asked:
        return [], notes
    conditions = _conditions(asked, input)
    if len(conditions) < 3:
        notes.append(f"Nothing was asked under {WRONG}/{input}, so the gain from a wrong cue is unknown.")
    compared = []
    for basis, part in by_basis(replies, lambda a: a.item.status):
        for name in (n for n in MEASURES if n in measures):
            together = list(_together(part, measures[name], conditions))
            if together:
                compared.append((basis, measures[name], together))
    if not compared:
        notes.append("No case has scores under all of the conditions.")
    return compared, notes


def cases_by_key(readings: Reading | Sequence[Reading], *, input: str = "audio") -> Iterator[KeyedCases]:
    """Yield the key of every row with the cases that have its measure under every condition.

    The suffixes `gained` and `lost` select the cases that are better or worse with the true cue stated; `wrong-gained`
    and `wrong-lost` select the cases that are better or worse with a wrong cue stated.
    """
    for basis, measure, together in _compared(readings, input)[0]:
        for by, name, part in _parts(together):
            key = f"upper/{basis or 'all'}/{by}/{name}/{measure.name}"
            known = [(values, one.case) for one in part if None not in (values := one.values)]
            yield key, unique(case for _, case in known)
            for place, better, worse in ((1, "gained", "lost"), (2, "wrong-gained", "wrong-lost")):
                if part and len(part[0].values) > place:
                    moved = [((values[place] or 0.0) - (values[0] or 0.0), case) for values, case in known]
                    yield f"{key}/{better}", unique(case for by_, case in moved if by_ > TIE)
                    yield f"{key}/{worse}", unique(case for by_, case in moved if by_ < -TIE)


def sentences(data: Upper) -> list[Sentence]:
    """Return a sentence for every measure overall, and one on the number of cues with a significant difference."""
    lines = []
    few: list[tuple[str, int]] = []
    for row in data.rows:
        if row.by == "overall" and row.gain.value is not None:
            if row.gain.scripts < DIFFERENCE.least:
                few.append((f"{measure_names.short(row.measure)} with the cue stated", row.gain.scripts))
                continue
            lines.append(Sentence(_sentence(row), row.key))
            if line := _by_cue(
                row, [r for r in data.rows if r.by == "cue" and (r.basis, r.measure) == (row.basis, row.measure)]
            ):
                lines.append(Sentence(line, row.key))
    return [*lines, *shortfall(DIFFERENCE, few)]


def _sentence(row: UpperRow) -> str:
    basis = " (cues not validated)" if row.basis == "unvalidated" else ""
    name = row.measure
    text = (
        f"{measure_names.short(name)}{basis} is {measure_names.write(name, row.base)} and, with the cue stated in "
        f"words, {measure_names.write(name, row.right)}: a difference of "
        f"{measure_names.write(name, row.gain, difference=True)}"
    )
    text += significance.by_test(row.gain, row.gain_test.adjusted, row.gain_test.tests)
    if row.survives is None or row.beyond is None:
        return f"{text}."
    text += f"; with a wrong cue stated, the difference is {measure_names.write(name, row.survives, difference=True)}"
    beyond = measure_names.write(name, row.beyond, difference=True)
    text += f"; right minus wrong cue: {beyond}"
    text += significance.by_test(row.beyond, row.beyond_test.adjusted, row.beyond_test.tests)
    if significance.significant(row.beyond_test.adjusted):
        return f"{text}."
    return f"{text}. The gain may come from mentioning any cue."


def _by_cue(row: UpperRow, cue_rows: Sequence[UpperRow]) -> str:
    known = [r for r in cue_rows if r.gain.low is not None and r.gain.scripts >= DIFFERENCE.least]
    if len(known) < 2:
        return ""
    moved = [r.gain.value or 0.0 for r in known if significance.significant(r.gain_test.adjusted)]
    up, down = sum(value > 0 for value in moved), sum(value < 0 for value in moved)
    tests = known[0].gain_test.tests
    return (
        f"{measure_names.short(row.measure)}: of {len(known)} cues, the difference is significantly above 0 for {up} "
        f"and below 0 for {down} (each by a {significance.TEST}, Holm correction over {tests} tests)."
    )


def _replies(answers: Iterable[Answer], input: str) -> list[Answer]:
    wanted = {f"{c}/{input}" for c in (BASE, RIGHT, WRONG)}
    return [
        a for a in answers if a.item.task == "converse" and not a.item.part and a.item.cue and a.condition in wanted
    ]


def _conditions(asked: set[str], input: str) -> tuple[str, ...]:
    return tuple(f"{c}/{input}" for c in (BASE, RIGHT, WRONG) if c != WRONG or f"{c}/{input}" in asked)


def _keyed(
    answers: Iterable[Answer], measure: Measure, conditions: tuple[str, ...]
) -> dict[tuple[str, int], tuple[Answer, ...]]:
    """Return (case, repeat) → answers, one for each condition. Cases that lack a condition are left out."""
    by_condition: dict[str, dict[tuple[str, int], Answer]] = {c: {} for c in conditions}
    for answer in answers:
        if answer.condition in by_condition and measure.belongs(answer.item):
            by_condition[answer.condition][answer.item.case, answer.repeat] = answer
    sides = [by_condition[c] for c in conditions]
    return {key: tuple(side[key] for side in sides) for key in sides[0] if all(key in side for side in sides)}


def _together(answers: Iterable[Answer], measure: Measure, conditions: tuple[str, ...]) -> Iterator[Together]:
    for asked in _keyed(answers, measure, conditions).values():
        values = tuple(measure.read(a) for a in asked)
        item = asked[0].item
        whole = values if None not in values else (None,) * len(values)
        yield Together(whole, item.group, item.dimension, item.cue, item.case)


def _parts(together: Sequence[Together]) -> Iterator[tuple[str, str, list[Together]]]:
    """Yield (by, name, part) for all cases together, for each dimension and for each cue."""
    ways: tuple[tuple[str, Sequence[str], Callable[[Together], str]], ...] = (
        ("overall", ("overall",), lambda _: "overall"),
        ("dimension", cues.DIMENSIONS, lambda one: one.dimension),
        ("cue", cues.slugs(), lambda one: one.cue),
    )
    for by, order, of in ways:
        parts: dict[str, list[Together]] = {}
        for one in together:
            parts.setdefault(of(one), []).append(one)
        for name in [n for n in order if n in parts] + sorted(n for n in parts if n and n not in order):
            yield by, name, parts[name]


def _row(key: str, basis: str, by: str, name: str, measure: Measure, part: Sequence[Together]) -> UpperRow:
    def column(number: int) -> Estimate:
        return measure.side([(one.values[number], one.script) for one in part])

    def gap(here: int, there: int) -> tuple[Estimate, float | None]:
        rows = ((one.values[here], one.values[there], one.script) for one in part)
        return measure.tested(rows, seed=SEED, draws=DRAWS)

    gain, p = gap(1, 0)
    row = UpperRow(key, basis, by, name, measure.name, column(0), column(1), gain, gain_test=Test(p))
    if len(part[0].values) < 3:
        return row
    beyond, beyond_p = gap(1, 2)
    return msgspec.structs.replace(
        row,
        wrong=column(2),
        survives=gap(2, 0)[0],
        beyond=beyond,
        share=_share(part) if gain.low is not None and gain.low > 0 else None,
        beyond_test=Test(beyond_p),
    )


def _adjusted(rows: Sequence[UpperRow]) -> list[UpperRow]:
    """Return the rows with corrected p-values.

    Overall, both tests of all measures are one family. In a breakdown, there are two families for each measure, one for
    each test.
    """
    families: list[Hashable] = []
    for row in rows:
        one = (row.basis, row.by)
        families += [one, one] if row.by == "overall" else [(*one, row.measure, test) for test in ("gain", "beyond")]
    p_values = [test.p for row in rows for test in (row.gain_test, row.beyond_test)]
    corrected = iter(significance.holm_by_family(p_values, families))
    made = []
    for row in rows:
        gain, beyond = (Test(test.p, *next(corrected)) for test in (row.gain_test, row.beyond_test))
        made.append(msgspec.structs.replace(row, gain_test=gain, beyond_test=beyond))
    return made


def _share(part: Sequence[Together]) -> Estimate:
    """Return the share of the gain that remains with a wrong cue: Σ(wrong − base) ÷ Σ(right − base)."""
    rows = [(one.values[0], one.values[1], one.values[2], one.script) for one in part]
    known = [(b, r, w, script) for b, r, w, script in rows if b is not None and r is not None and w is not None]
    ratio = cluster.ratio([w - b for b, _, w, _ in known], [r - b for b, r, _, _ in known], [s for *_, s in known])
    return from_interval(ratio, ratio.low, ratio.high, len(part))
