"""Comparisons in sentences: each difference, whether it is significant, and whether it exceeds the run-to-run
spread."""

from __future__ import annotations

from typing import Protocol

from overtone.results import significance
from overtone.results.comparison import Change, Comparison
from overtone.results.wording import Sentence
from overtone.text import by_kind

SHOWN = 3  # differences that the overview names; the sentences have all


def sentences(comparison: Comparison) -> list[Sentence]:
    """Return one sentence for each row over all cues."""
    rows = comparison.tables[0].rows if comparison.tables else ()
    made = [Sentence(_sentence(comparison, row), row.key) for row in rows]
    return made or [Sentence("The runs share no item that both have scores for.")]


def overview(comparison: Comparison) -> str:
    """Return a summary in words: which run is better, on which measures and by how much, and which differences are
    not significant."""
    rows = [row for row in (comparison.tables[0].rows if comparison.tables else ()) if row.by.value is not None]
    rows = [row for row in rows if row.basis != "unvalidated"] or rows
    if not rows:
        return "Not enough data to compare: no item has a score in both runs."
    first, second = comparison.first, comparison.second
    sides = (
        (f"{second} is better than {first} on", [row for row in rows if row.verdict == "better"]),
        (f"{first} is better than {second} on", [row for row in rows if row.verdict == "worse"]),
        ("They differ on", [row for row in rows if row.verdict == "other"]),
    )
    said = [f"{head} {_listed([_by_how_much(row) for row in _ordered(side)])}" for head, side in sides if side]
    same = [row for row in rows if not row.verdict and not row.short_of]
    if same:
        others = "other " if said else ""
        said.append(
            f"No {others}difference is statistically significant: {_listed([_named(row) for row in _ordered(same)])}"
        )
    if untested := [row for row in rows if row.short_of]:
        said.append(f"Too little data to test {_listed([_named(row) for row in untested])}: {too_few(untested[0])}")
    return ". ".join(said) + "."


def _by_how_much(row: Change) -> str:
    much = f"{change(row.by.value, row).lstrip('+−')} {unit(row)}".strip()
    return f"{_named(row)} (by {much}, {significance.p_value(row.adjusted)})"


def _named(row: Change) -> str:
    prompt, _, given = row.condition.partition("/")
    about = [part for part, usual in ((prompt, "task"), (given, "audio")) if part != usual]
    return f"{row.label} under {'/'.join(about)}" if about else row.label


def _ordered(rows: list[Change]) -> list[Change]:
    """Return the rows reordered: first one row of each measure, so that a short list names many measures."""
    firsts = {row.measure: row for row in reversed(rows)}
    return [
        *(row for row in rows if row is firsts[row.measure]),
        *(row for row in rows if row is not firsts[row.measure]),
    ]


def _listed(names: list[str]) -> str:
    if len(names) > SHOWN + 1:
        names = [*names[:SHOWN], f"{len(names) - SHOWN} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _sentence(comparison: Comparison, row: Change) -> str:
    over = {"unvalidated": ", cues not validated", "validated": ", validated cues"}.get(row.basis, "")
    what = f"{row.label} ({row.condition}{over})"
    if row.by.value is None:
        return f"{what}: not enough data, no item has a score in both runs."
    return f"{what}: {outcome(row, comparison.first, comparison.second)}."


def outcome(row: Change, first: str, second: str, of: int | None = None, *, brief: bool = False) -> str:
    """Return a clause on the difference of a row: its size, whether it is significant, and the test.

    `of` is the number of asks of the first run that could have been paired. A `brief` clause does not name the test.
    """
    by = f"{change(row.by.value, row)} {unit(row)}".strip()
    if row.verdict:
        word = "higher" if (row.by.value or 0) > 0 else "lower"
        side = {"better": ", which is better", "worse": ", which is worse"}.get(row.verdict, "")
        much = by.lstrip("+−")
        text = f"{second} is {much} {word} than {first}{side}; the difference is statistically significant"
    elif row.short_of:
        return f"not enough data to test the difference of {by}: {too_few(row)}"
    else:
        text = f"the difference of {by} is not statistically significant"
    test = significance.p_value(row.adjusted) if brief else significance.tested_by(row.adjusted, row.tests, row.family)
    spread = _spread(row).replace(" of this row alone", "") if brief else _spread(row)
    whole = "" if of is None else f" of {first}'s {of:,} asks"
    text = f"{text} ({test}); {spread}, {row.by.scored:,} pairs{whole} from {row.by.scripts:,} scripts"
    return f"{text}; {noise_note(row)}" if row.within_noise else text


def noise_note(row: Change) -> str:
    """Return a note that a difference is smaller than the run-to-run spread."""
    return f"smaller than the run-to-run spread of ±{change(row.noise, row).lstrip('+')} {unit(row)}".strip()


def too_few(row: Change) -> str:
    """Return the reason why the test of a row cannot find a difference."""
    return significance.too_few(row.by.scripts, row.tests, row.family)


def _spread(row: Change) -> str:
    low, high = row.by.low, row.by.high
    if low is None or high is None:
        return row.by.note
    text = f"95 % interval of this row alone {change(low, row)} to {change(high, row)}"
    if not row.verdict and not low <= 0 <= high:
        text += " (uncorrected, so it can exclude 0 although the corrected test is not significant)"
    return text


class Scale(Protocol):
    """The number format of values. A row of a comparison has these fields, and so has the description of a measure."""

    @property
    def shown(self) -> str: ...

    @property
    def digits(self) -> int: ...


def change(x: float | None, row: Scale) -> str:
    """Format a difference with its sign, in percentage points or on the measure's own scale."""
    return by_kind(x, row.shown, row.digits, sign=True)


def unit(row: Scale) -> str:
    """Return the unit of a difference."""
    return "points" if row.shown == "percent" else ""
