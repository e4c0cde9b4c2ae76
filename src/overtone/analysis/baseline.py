"""A run held against an earlier one: not significantly worse, or worse by less than a margin.

Without a margin a measure fails where `compare` calls it significantly worse: the same rows, the same test, the same
correction. A margin is another question with a one-sided test of its own: it holds where the paired difference is shown
to be better than minus the margin, so that too few items make it fail.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from overtone.analysis import named, operations
from overtone.analysis.compare import (
    DRAWS,
    LEVEL,
    SEED,
    Pairs,
    Tested,
    change,
    changes,
    corrected,
    outcome,
    share,
    tie_of,
    too_few,
    unit,
    values,
    wanted,
)
from overtone.analysis.measures import About, Estimate, Measure
from overtone.analysis.reading import Reading
from overtone.analysis.requirements import Checked, Margin, Requirement, State, limit, margin_on
from overtone.analysis.thresholds import NOTHING, WER_CORPUS, headline_asks, why_unscored
from overtone.errors import UsageError
from overtone.stats import paired

ONE_SIDED = 0.95
NO_SCORE = "no shared item has a score in both runs"
NO_WORSE, NOT_WORSE = "no-worse", "not-worse"  # in a key: with a margin, and by significance
_TYPED = {dimension: name for name, dimension in named.TYPED.items()}
Sides = tuple[list[float], list[float], list[str]]  # of the baseline, of the run, and their scripts


class Baseline:
    """What is asked of a run beside its baseline. Raises UsageError for a wrong name or margin."""

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
        for one in margins:
            measure = named.find_one(one.name, both)
            if measure.about.better == "neither":
                raise UsageError(f"{one.name}: neither more nor less of it is better, so it cannot be worse")
            self.margins[one.name] = measure, margin_on(one, measure.about)
        apart = {*self.margins, WER_CORPUS, *operations.MEASURES, *operations.TOTALS}
        names = dict.fromkeys(one.name for one in requirements if one.name not in apart)
        names = {name: None for name in names if named.find_one(name, both).about.better != "neither"}
        self.whole = not names and not self.margins  # nothing is named: the headline is meant
        self.required = {name: wanted(baseline, run, [name])[0] for name in names}
        if self.whole:
            self.required = {_TYPED.get(m.name, m.name): m for m in named.headline(both)}
        self.pairs, self.alone, _ = share(baseline, run, conditions)
        self.tested = changes(baseline, run, tuple(names), conditions) if self.required else []

    @property
    def measures(self) -> list[Measure]:
        return [*(measure for measure, _ in self.margins.values()), *self.required.values()]

    def rows(self) -> list[Checked]:
        """Return the rows of the margins, then those of the other measures, each by condition."""
        made = [row for name in self.margins for row in self._margin_rows(name)]
        made += [row for name in self.required for row in self._significance_rows(name)]
        if self.whole:
            made += self._unjudged()
        if self.whole and not made:
            why = "not enough data: the runs share no item with a score of a headline measure"
            required = "headline measures not significantly worse"
            made.append(Checked("check/headline", required, "", "undecided", NOTHING, why))
        return made

    def notes(self) -> list[str]:
        found = []
        for measure in self.measures:
            if left := named.judges_left_out(measure, [self.run, self.baseline]):
                found.append(f"{measure.label}: {', '.join(left)} judged only one of the runs and is left out")
        if self.alone:
            found.append(f"{self.alone:,} asks are in the baseline alone and are not compared")
        return found

    def _unjudged(self) -> list[Checked]:
        """Headline measures that only the baseline was judged by: without a row, a regression in them would pass."""
        known = {m.name for m in self.required.values()}
        lost = [m for m in named.headline([self.baseline]) if m.name not in known]
        return [_undecided(_TYPED.get(m.name, m.name), "", 0, "no judge of the baseline scored the run") for m in lost]

    # ── by significance ─────────────────────────────────────────────────────────────────────────────────────────────

    def _significance_rows(self, name: str) -> list[Checked]:
        measure = self.required[name]
        first: dict[str, Tested] = {}  # the row of each condition; that of validated cues comes first
        for row in self.tested:
            if row.measure.name == measure.name:
                first.setdefault(row.change.condition, row)
        if first or self.whole:
            return [self._significance(name, row) for row in first.values()]
        why = "the runs share no item with a score of it" if measure.scores else why_unscored(self.run, measure)
        return [_undecided(name, "", 0, why)]

    def _significance(self, name: str, row: Tested) -> Checked:
        found, by = row.change, row.change.by
        if by.value is None:
            return _undecided(name, found.condition, by.asked, NO_SCORE)
        if found.short_of:
            return _undecided(name, found.condition, by.asked, too_few(found))
        worse = found.verdict == "worse"
        parts = [outcome(found, "the baseline", "the run")]
        state: State = "fails" if worse else "holds"
        filled = _filled(row.measure, row.pairs, worst=not worse)
        lost = len(filled[0]) - by.scored
        if lost and self._worse_with(row, filled) != worse:
            parts.append(_could_turn(lost))
            state = "undecided"
        if found.basis == "unvalidated":
            parts.append("over cues that are not validated")
        key = "/".join(("check", found.condition, name, NOT_WORSE))
        return Checked(key, _not_worse(name), found.condition, state, by, "; ".join(parts), found.adjusted)

    def _worse_with(self, row: Tested, filled: Sides) -> bool:
        """Whether the row would be significantly worse with these values, beside the other tests of its family."""
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
        pairs = [(b, r) for b, r in self.pairs if measure.belongs(b.item)]
        rows = []
        for condition in dict.fromkeys(b.condition for b, _ in pairs):
            other = {b.ask: r for b, r in pairs if b.condition == condition}
            over, head = headline_asks([b for b, _ in pairs if b.condition == condition])
            rows.append(_within_margin(name, measure, margin, condition, over, [(b, other[b.ask]) for b in head]))
        why = "the runs share no such item" if measure.scores else why_unscored(self.run, measure)
        return rows or [_undecided(name, "", 0, why, (margin, measure.about))]


def _not_worse(name: str, margin: tuple[float, About] | None = None) -> str:
    return f"{name} not significantly worse" if margin is None else f"{name} worse by less than {_amount(*margin)}"


def _amount(margin: float, about: About) -> str:
    if about.scale != "percent":
        return limit(margin, about)
    return f"{100 * margin:g} point{'' if margin == 0.01 else 's'}"


def _undecided(name: str, condition: str, asked: int, why: str, margin: tuple[float, About] | None = None) -> Checked:
    kind = NOT_WORSE if margin is None else f"{NO_WORSE}:{margin[0]:g}"
    key = "/".join(filter(None, ("check", condition, name, kind)))
    nothing = Estimate(None, None, None, 0, asked)
    return Checked(key, _not_worse(name, margin), condition, "undecided", nothing, f"not enough data: {why}")


def _could_turn(pairs: int) -> str:
    return f"{pairs:,} pair{'s' if pairs > 1 else ''} without a value on both sides could turn the verdict"


def _filled(measure: Measure, pairs: Pairs, *, worst: bool) -> Sides:
    """Return `compare.values` with the missing ones filled in: the worst for the run, or the best for it.

    A pair is missing where a reply is, or where only one side has a value. Where both runs answered and neither has a
    value, the measure does not apply. An end that the scale does not have is taken from the values seen.
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
    """Test gains: where less is better the sides are swapped. The lower end of the interval is the one-sided bound."""
    before, after, scripts = sides
    gain, loss = (before, after) if measure.about.better == "lower" else (after, before)
    level = 2 * ONE_SIDED - 1
    tested = paired.permutation(
        gain, loss, scripts, seed=SEED, draws=DRAWS, level=level, null=-margin, alternative="greater"
    )
    return tested, tested.low > -margin + 1e-12


def _within_margin(name: str, measure: Measure, margin: float, condition: str, over: str, pairs: Pairs) -> Checked:
    about = measure.about
    sides = values(measure, pairs)
    size = len(sides[0])
    if not size:
        return _undecided(name, condition, len(pairs), NO_SCORE, (margin, about))
    tested, holds = _margin_test(measure, margin, sides)
    sign = -1.0 if about.better == "lower" else 1.0
    low, high = (x if math.isfinite(x) else None for x in sorted(sign * x for x in (tested.low, tested.high)))
    found = Estimate(sign * tested.value, low, high, size, len(pairs), scripts=tested.clusters)
    by = f"the difference to the baseline is {_signed(sign * tested.value, about)}"
    if low is None or high is None:
        bound = "too few scripts to show anything"
    else:
        side = "at most" if sign < 0 else "at least"
        bound = f"with 95 % confidence {side} {_signed(sign * tested.low, about)}"
        bound += f", {'within' if holds else 'not within'} the margin of {_amount(margin, about)}"
    test = "one-sided margin test, paired and clustered by script, not corrected for other tests"
    parts = [f"{by}, {bound} ({test}; {size:,} pairs from {tested.clusters:,} scripts{over})"]
    state: State = "holds" if holds else "fails"
    filled = _filled(measure, pairs, worst=holds)
    lost = len(filled[0]) - size
    if lost and _margin_test(measure, margin, filled)[1] != holds:
        parts.append(_could_turn(lost))
        state = "undecided"
    key = "/".join(("check", condition, name, f"{NO_WORSE}:{margin:g}"))
    required = _not_worse(name, (margin, about))
    return Checked(key, required, condition, state, found, "; ".join(parts), tested.p)


def _signed(x: float, about: About) -> str:
    return f"{change(x, about)} {unit(about)}".strip()
