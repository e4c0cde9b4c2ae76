"""Check a run against an earlier run, its baseline: not significantly worse, or worse by less than a margin.

Without a margin, a measure fails if `compare` reports it as significantly worse; both use the same rows, test and
correction. With a margin, a one-sided test decides: the measure passes only if the test shows that the run is worse by
less than the margin. So a measure with too few items fails.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from overtone.errors import UsageError
from overtone.results import measure_names, operations, significance
from overtone.results.comparison import (
    DRAWS,
    LEVEL,
    SEED,
    Pairs,
    Tested,
    changes,
    corrected,
    left_out,
    share,
    share_for,
    tie_of,
    values,
    wanted,
)
from overtone.results.comparison_text import change, outcome, too_few, unit
from overtone.results.corpus_scores import WER_CORPUS
from overtone.results.load import Answer, Reading
from overtone.results.measures import Estimate, Measure
from overtone.results.requirements import Checked, Margin, Requirement, State, limit, margin_on
from overtone.results.sample_size import POWER, detectable
from overtone.results.thresholds import NOTHING, asks, headline_asks, why_unscored
from overtone.scores import ScoreInfo
from overtone.stats import paired
from overtone.text import as_given, percent

ONE_SIDED = 0.95
NO_SCORE = "no shared item has a score in both runs"
NO_WORSE, NOT_WORSE = "no-worse", "not-worse"  # kinds of row in a key: with a margin, and by significance
_TYPED = {dimension: name for name, dimension in measure_names.TYPED.items()}
MARGIN_TEST = "one-sided margin test, paired and clustered by script, not corrected for other tests"
_ASK_ALIKE = "run it with the same options of 'overtone run' as the baseline"
Limit = tuple[float, ScoreInfo]  # a margin, and the description of its measure
Sides = tuple[list[float], list[float], list[str]]  # values of the baseline, values of the run, scripts


class Baseline:
    """The checks of a run against its baseline. Raises UsageError for a wrong name or margin."""

    def __init__(
        self,
        run: Reading,
        baseline: Reading,
        requirements: Sequence[Requirement],
        margins: Sequence[Margin],
        conditions: Sequence[str],
    ) -> None:
        self.run, self.baseline, self.conditions = run, baseline, conditions
        both = [run, baseline]
        self.margins: dict[str, tuple[Measure, float]] = {}
        typed: dict[str, Margin] = {}  # keyed by `_meant`, because a measure has several names
        for one in margins:
            measure = measure_names.find_one(one.name, both)
            if measure.about.better == "neither":
                raise UsageError(f"{one.name}: neither direction is better, so it cannot be worse")
            meant = self._meant(one.name)
            if meant in typed:
                raise UsageError(
                    f"--no-worse {typed[meant]} and --no-worse {one} are two margins for one measure; give one"
                )
            typed[meant] = one
            self.margins[one.name] = measure, margin_on(one, measure.about)
        headline = {m.name: m for m in measure_names.headline(both)}
        without_pairs = {WER_CORPUS, *operations.MEASURES, *operations.TOTALS}
        names = dict.fromkeys(one.name for one in requirements if one.name not in without_pairs)
        others = [
            name
            for name in names
            if self._meant(name) not in {*headline, *typed}
            and measure_names.find_one(name, both).about.better != "neither"
        ]
        self.required = {_TYPED.get(name, name): m for name, m in headline.items() if name not in typed}
        self.required |= {name: wanted(baseline, run, [name])[0] for name in others}
        self.pairs = share_for(baseline, run, self.measures, conditions)
        self.tested = changes(baseline, run, tuple(others), conditions)

    def _meant(self, name: str) -> str:
        """Return one common name for all names of the same measure: `c4`, `cspeechrel`, and `c4@JUDGE` if there is
        only one judge."""
        meant = wanted(self.baseline, self.run, [measure_names.find_one(name, [self.run, self.baseline]).name])[0].name
        key, at, label = meant.partition("@")
        return measure_names.TYPED.get(key, key) + at + label

    @property
    def measures(self) -> list[Measure]:
        return [*(measure for measure, _ in self.margins.values()), *self.required.values()]

    def rows(self) -> list[Checked]:
        """Return the rows of measures with a margin, then of other measures. A measure has one row per condition."""
        made = [row for name in self.margins for row in self._margin_rows(name)]
        made += [row for name in self.required for row in self._significance_rows(name)]
        made += self._unjudged()
        if not made:
            why = "not enough data: neither run has a score of a headline measure; 'overtone score RUN' computes them"
            required = "headline measures not significantly worse"
            made.append(Checked("check/headline", required, "", "undecided", NOTHING, why))
        return made

    def notes(self) -> list[str]:
        """Return notes on judges that were left out, and on asks that only the baseline has."""
        notes = []
        for measure in self.measures:
            if left := measure_names.judges_left_out(measure, [self.run, self.baseline]):
                notes.append(left_out(measure, left))
        pairs, alone, _ = share(self.baseline, self.run, self.conditions, core=False)
        if alone:
            whole = len(pairs) + alone
            notes.append(f"{alone:,} of the baseline's {whole:,} asks are not in the run and are not compared")
        return notes

    def _asked(self, measure: Measure, condition: str) -> int:
        """Return how many asks of the baseline count for a measure under a condition."""
        return len(self._headline_asks(measure, condition)[1])

    def _headline_asks(self, measure: Measure, condition: str) -> tuple[str, list[Answer]]:
        every = asks(self.baseline, [condition], core=not measure.every).get(condition, [])
        return headline_asks([a for a in every if measure.belongs(a.item)], measure)

    def _absent(self, name: str, measure: Measure, rows: list[Checked], margin: Limit | None = None) -> list[Checked]:
        """Return an undecided row for each condition in which only the baseline has the measure. Without these rows, a
        run with fewer conditions would pass."""
        known = {row.condition for row in rows}
        made = []
        for condition, answers in asks(self.baseline, self.conditions, core=not measure.every).items():
            if condition not in known and any(measure.belongs(a.item) and measure.read(a) is not None for a in answers):
                count = self._asked(measure, condition)
                why = f"the baseline has {count:,} such items and the run has none of them; {_ASK_ALIKE}"
                made.append(_undecided(name, condition, 0, why, margin))
        return made

    def _unjudged(self) -> list[Checked]:
        """Return an undecided row for each headline measure that was judged only in the baseline. Without these rows, a
        regression in such a measure would pass."""
        known = {self._meant(name) for name in (*self.margins, *self.required)}
        rows = []
        for measure in measure_names.headline([self.baseline]):
            if measure.name in known:
                continue
            name = _TYPED.get(measure.name, measure.name)
            shared = share(self.baseline, self.run, self.conditions)[0]
            if any(measure.belongs(b.item) for b, _ in shared):
                why = "no judge of the baseline scored the run; 'overtone score RUN --judge SPEC' asks one"
                rows.append(_undecided(name, "", 0, why))
            else:
                rows += self._absent(name, measure, [])
        return rows

    # ── by significance ─────────────────────────────────────────────────────────────────────────────────────────────

    def _significance_rows(self, name: str) -> list[Checked]:
        measure = self.required[name]
        first: dict[str, Tested] = {}  # condition → its first row: the one over validated cues, if any
        for row in self.tested:
            if row.measure.name != measure.name:
                continue
            sure = not self._headline_asks(measure, row.change.condition)[0]
            if not (sure and row.change.basis == "unvalidated"):  # does not replace the baseline's validated cues
                first.setdefault(row.change.condition, row)
        rows = [self._significance(name, row) for row in first.values()]
        rows += self._absent(name, measure, rows)
        if rows or measure.headline:  # no row for a headline measure that neither run has
            return rows
        why = "the runs share no item with a score of it" if measure.scores else self._why_unscored(measure)
        return [_undecided(name, "", 0, why)]

    def _why_unscored(self, measure: Measure) -> str:
        return why_unscored(self.run, measure, [r for _, r in self.pairs])

    def _significance(self, name: str, row: Tested) -> Checked:
        change, by = row.change, row.change.by
        if by.value is None:
            return _undecided(name, change.condition, by.asked, NO_SCORE)
        if change.short_of:
            return _undecided(name, change.condition, by.asked, too_few(change))
        worse = change.verdict == "worse"
        asked = self._asked(row.measure, change.condition)
        parts = []
        state: State = "fails" if worse else "holds"
        filled = _filled(row.measure, row.pairs, worst=not worse)
        lost = len(filled[0]) - by.scored
        if lost and self._worse_with(row, filled) != worse:
            parts.append(_could_turn(lost))
            state = "undecided"
        if change.basis == "unvalidated":
            parts.append("over cues that are not validated")
        key = "/".join(("check", change.condition, name, NOT_WORSE))
        full, brief = [outcome(change, "the baseline", "the run", asked, brief=short) for short in (False, True)]
        test = (
            f"p: {significance.method_of(change.tests, change.family)}; the intervals are those of each row alone; "
            f"detectable: the smallest difference that the test detects with {percent(POWER)} power"
        )
        if not change.verdict:
            least = _finds(row)
            full += f"; the smallest difference that this test detects with {percent(POWER)} power is {least}"
            brief += f"; detectable {least}"
        full, brief = ("; ".join([text, *parts]) for text in (full, brief))
        return Checked(key, _not_worse(name), change.condition, state, by, full, change.adjusted, brief, test)

    def _worse_with(self, row: Tested, filled: Sides) -> bool:
        """Return whether the row would be significantly worse with the values `filled`, corrected for the other tests
        of its family."""
        before, after, scripts = filled
        again = paired.permutation(after, before, scripts, seed=SEED, draws=DRAWS, level=LEVEL)
        family = [r.change for r in self.tested if r.change.family == row.change.family]
        p_values = {one.key: one.p for one in family if one.p is not None} | {row.change.key: again.p}
        by = msgspec.structs.replace(row.change.by, value=again.value)
        moved = msgspec.structs.replace(row.change, by=by, adjusted=corrected(p_values)[row.change.key])
        return moved.verdict == "worse"

    # ── by a margin ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _margin_rows(self, name: str) -> list[Checked]:
        measure, margin = self.margins[name]
        pairs = [(b, r) for b, r in self.pairs if (measure.every or not b.item.part) and measure.belongs(b.item)]
        rows = []
        for condition in dict.fromkeys(b.condition for b, _ in pairs):
            other = {b.ask: r for b, r in pairs if b.condition == condition}
            over, head = headline_asks([b for b, _ in pairs if b.condition == condition], measure)
            whole, of_baseline = self._headline_asks(measure, condition)
            if over == whole:
                mine = [(b, other[b.ask]) for b in head]
                rows.append(_within_margin(name, measure, margin, condition, over, mine, len(of_baseline)))
        rows += self._absent(name, measure, rows, (margin, measure.about))
        why = "the runs share no such item" if measure.scores else self._why_unscored(measure)
        return rows or [_undecided(name, "", 0, why, (margin, measure.about))]


def _finds(row: Tested) -> str:
    """Return a text with the smallest difference that the test of a row can detect."""
    smallest = detectable(row.measure, row.pairs, row.change.tests)
    if smallest is not None and row.measure.right_or_wrong:  # at least one item of each of these scripts must differ
        smallest = max(smallest, significance.least_scripts(row.change.tests) / row.change.by.scored)
    if smallest is None or smallest >= row.measure.about.length:
        return "the whole scale"
    return f"about {_signed(smallest, row.measure.about).lstrip('+')}"


def _not_worse(name: str, margin: Limit | None = None) -> str:
    return f"{name} not significantly worse" if margin is None else f"{name} worse by less than {_amount(*margin)}"


def _amount(margin: float, about: ScoreInfo) -> str:
    if about.scale != "percent":
        return limit(margin, about)
    return f"{as_given(100 * margin)} point{'' if margin == 0.01 else 's'}"


def _undecided(name: str, condition: str, asked: int, why: str, margin: Limit | None = None) -> Checked:
    kind = NOT_WORSE if margin is None else f"{NO_WORSE}:{margin[0]:g}"
    key = "/".join(filter(None, ("check", condition, name, kind)))
    nothing = Estimate(None, None, None, 0, asked)
    return Checked(key, _not_worse(name, margin), condition, "undecided", nothing, f"not enough data: {why}")


def _could_turn(pairs: int) -> str:
    return f"{pairs:,} pair{'s' if pairs > 1 else ''} without a value on both sides could change the verdict"


def _filled(measure: Measure, pairs: Pairs, *, worst: bool) -> Sides:
    """Return `comparison.values` with missing values filled in, either as bad as possible for the run or as good.

    A value is filled in if a reply is missing or if only one side has a value. If both runs answered and neither has a
    value, the measure does not apply. If the scale has an open end, the most extreme observed value is used.
    """
    read = [(measure.read(b), measure.read(r), b, r) for b, r in pairs]
    seen = [x for one, other, *_ in read for x in (one, other) if x is not None]
    lower = measure.about.better == "lower"
    good = measure.good if measure.good is not None else min(seen) if lower else max(seen)
    bad = measure.bad if measure.bad is not None else max(seen) if lower else min(seen)
    of_baseline, of_run = (good, bad) if worst else (bad, good)
    tie = tie_of(measure)
    before, after, scripts = [], [], []
    for x, y, b, r in read:
        if x is None and y is None and b.answered and r.answered:
            continue
        was, now = of_baseline if x is None else x, of_run if y is None else y
        before.append(was)
        after.append(was if abs(now - was) < tie else now)
        scripts.append(b.item.group)
    return before, after, scripts


def _margin_test(measure: Measure, margin: float, sides: Sides) -> tuple[paired.Comparison, bool]:
    """Run the one-sided margin test. The sides are swapped if lower is better, so that a positive difference is a gain.
    The lower end of the interval is the one-sided bound."""
    before, after, scripts = sides
    gain, loss = (before, after) if measure.about.better == "lower" else (after, before)
    level = 2 * ONE_SIDED - 1
    tested = paired.permutation(
        gain, loss, scripts, seed=SEED, draws=DRAWS, level=level, null=-margin, alternative="greater"
    )
    return tested, tested.low > -margin + 1e-12


def _within_margin(
    name: str, measure: Measure, margin: float, condition: str, over: str, pairs: Pairs, asked: int
) -> Checked:
    about = measure.about
    sides = values(measure, pairs)
    size = len(sides[0])
    if not size:
        return _undecided(name, condition, len(pairs), NO_SCORE, (margin, about))
    tested, holds = _margin_test(measure, margin, sides)
    sign = -1.0 if about.better == "lower" else 1.0
    low, high = (x if math.isfinite(x) else None for x in sorted(sign * x for x in (tested.low, tested.high)))
    difference = Estimate(sign * tested.value, low, high, size, len(pairs), scripts=tested.clusters)
    by = f"the difference to the baseline is {_signed(sign * tested.value, about)}"
    if low is None or high is None:
        bound = "too few scripts for a bound"
    else:
        side = "at most" if sign < 0 else "at least"
        bound = f"with 95 % confidence {side} {_signed(sign * tested.low, about)}"
        bound += f", {'within' if holds else 'not within'} the margin of {_amount(margin, about)}"
    counts = f"{size:,} pairs of the baseline's {asked:,} asks from {tested.clusters:,} scripts{over}"
    parts = []
    state: State = "holds" if holds else "fails"
    filled = _filled(measure, pairs, worst=holds)
    lost = len(filled[0]) - size
    if lost and _margin_test(measure, margin, filled)[1] != holds:
        parts.append(_could_turn(lost))
        state = "undecided"
    key = "/".join(("check", condition, name, f"{NO_WORSE}:{margin:g}"))
    required = _not_worse(name, (margin, about))
    full, brief = ("; ".join([f"{by}, {bound} ({test}{counts})", *parts]) for test in (f"{MARGIN_TEST}; ", ""))
    return Checked(key, required, condition, state, difference, full, tested.p, brief, f"margins: {MARGIN_TEST}")


def _signed(x: float, about: ScoreInfo) -> str:
    return f"{change(x, about)} {unit(about)}".strip()
