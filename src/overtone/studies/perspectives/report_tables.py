"""The sentences and tables of a study's report, as plain text; the HTML page and the documentation share them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from overtone.text import NONE, count, number, percent

from .study_analysis import BASE, TREATMENT, Analysis, Arm, Checked, Number, Primary, Table
from .verdicts import EQUIVALENT, IMPROVES, NOT_TESTABLE, UNDECIDED, WORSE

_BLOCKS = {
    ("base", False): "base model",
    ("genre", False): "left-out genre",
    ("document", False): "left-out documents",
    ("official", False): "official split",
    ("document", True): "left-out documents, then tuned on DREAM",
    ("open-control", True): "positive control of Overtone-Open",
}
_COUNTED = {
    IMPROVES: "improved",
    WORSE: "worsened",
    EQUIVALENT: "equivalent within the margin",
    UNDECIDED: "undecided",
    NOT_TESTABLE: "not testable",
}
MARKS = "↑ improves, ↓ worse, = equivalent within the margin; none: undecided, not testable, or without a margin"
SECTIONS = (  # title, the first words of the outcomes' names
    ("Ratings of a genre that was not learnt", ("genre",)),
    ("Ratings of documents that were not learnt", ("document",)),
    ("Ratings of the official test rows (for comparison only)", ("official",)),
    ("Overtone-Open: transfer to empathetic speech understanding", ("open",)),
    ("DREAM and plain text: what the tuning costs", ("dream", "nats")),
)


class Grid(NamedTuple):
    """A table of texts."""

    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


# ── the answer ────────────────────────────────────────────────────────────────────────────────────────────────────────
def answer(analysis: Analysis) -> str:
    """Return the verdict on the study's question, in words."""
    tests = analysis.primary
    if len(tests) < analysis.primary_planned:
        finished = analysis.done == analysis.planned
        return f"No verdict: {len(tests)} of {count(analysis.primary_planned, 'primary test')} have results. " + (
            "The study file has no jobs for the others." if finished else "Run the jobs that are left."
        )
    kinds = Counter(test.kind for test in tests)
    counted = ", ".join(f"{n} {_COUNTED[kind]}" for kind, n in kinds.items())
    said = f"Of {count(len(tests), 'primary test')}: {counted}."
    won = [outcome for outcome in dict.fromkeys(test.outcome for test in tests) if _beats_every_control(tests, outcome)]
    if won:
        titles = "; ".join(next(test.title for test in tests if test.outcome == outcome) for outcome in won)
        return f"Yes: {TREATMENT} improves on every control in {titles}. {said}"
    if set(kinds) <= {EQUIVALENT, WORSE}:
        return f"No: {TREATMENT} improves on no control, and an improvement as large as the margin is excluded. {said}"
    if set(kinds) <= {IMPROVES, EQUIVALENT, WORSE}:
        return f"No: {TREATMENT} improves on some controls, but in no outcome on all of them. {said}"
    if set(kinds) == {NOT_TESTABLE}:
        return f"Not testable with this model. {said}"
    return f"Undecided. {said}"


def _beats_every_control(tests: Sequence[Primary], outcome: str) -> bool:
    return all(test.kind == IMPROVES for test in tests if test.outcome == outcome)


def state(analysis: Analysis) -> str:
    """Return how many jobs are done, and which blocks are not complete."""
    left = [f"{_BLOCKS[b.split, b.tuned]}: {b.done} of {b.planned}" for b in analysis.blocks if b.done < b.planned]
    said = f"{analysis.done} of {analysis.planned} jobs are done"
    return f"{said}. Not complete: {'; '.join(left)}." if left else f"{said}."


# ── tables ────────────────────────────────────────────────────────────────────────────────────────────────────────────
def primary_grid(analysis: Analysis) -> Grid:
    """Return the primary tests."""
    head = ("outcome", "control", TREATMENT, f"{TREATMENT} − control, 95 %", "p (Holm)", "margin", "verdict")
    rows = [
        (
            test.title, test.control, ranged(test.treated), ranged(test.number, 4, sign=True), _p(test.p),
            f"±{test.margin:g}", test.text,
        )
        for test in analysis.primary
    ]  # fmt: skip
    return Grid(head, rows)


def outcome_grid(table: Table) -> Grid:
    """Return one outcome as a table: each arm's value, and the treatment minus this arm. The p-values are not
    corrected."""
    head = ("arm", "value, 95 %", "models", f"{TREATMENT} − arm, 95 %", "p", "verdict")
    return Grid(head, [_arm_row(arm) for arm in table.arms])


def _arm_row(arm: Arm) -> tuple[str, ...]:
    models = "1" if arm.name == BASE else str(arm.cells)
    if arm.contrast is None:
        return arm.name, ranged(arm.number), models, "", "", ""
    contrast = arm.contrast
    said = contrast.kind if contrast.kind == NOT_TESTABLE else contrast.text  # the reason stands above the table
    return arm.name, ranged(arm.number), models, ranged(contrast.number, 4, sign=True), _p(contrast.p), said


def contrast_grid(tables: Sequence[Table], arms: Sequence[str] = ()) -> Grid:
    """Return several outcomes: the treatment's value, and its difference to other arms with the verdict's mark.

    Without `arms`, these are all other arms.
    """
    names = arms or list(dict.fromkeys(arm.name for table in tables for arm in table.arms if arm.contrast))
    rows = [
        (table.title, _value(table.arm(TREATMENT)), *(_difference(table.arm(name)) for name in names))
        for table in tables
    ]
    return Grid(("outcome", TREATMENT, *(f"− {name}" for name in names)), rows)


def _value(arm: Arm | None) -> str:
    return NONE if arm is None else ranged(arm.number)


def _difference(arm: Arm | None) -> str:
    if arm is None or arm.contrast is None:
        return NONE
    mark = {IMPROVES: " ↑", WORSE: " ↓", EQUIVALENT: " ="}.get(arm.contrast.kind, "")
    return ranged(arm.contrast.number, 4, sign=True) + mark


def testable_grid(analysis: Analysis, names: Sequence[str] = ()) -> Grid:
    """Return the two checks of every outcome that has a margin, or of the outcomes with these names."""
    head = ("outcome", "base or learnt − baseline, 95 %", "positive control, 95 %", "testable")
    rows = [
        (table.title, _checked(c.baseline_name, c.baseline), _checked(c.control_name, c.control), _testable(c))
        for table in analysis.tables
        if table.margin and (not names or table.name in names) and (c := table.checked)
    ]
    return Grid(head, rows)


def _checked(name: str, value: Number | None) -> str:
    return f"{name}: {ranged(value, 3, sign=True)}" if value else (f"{name}: {NONE}" if name else NONE)


def _testable(checked: Checked) -> str:
    return checked.untestable or "yes"


def power_grid(analysis: Analysis) -> Grid:
    """Return the shares of simulated studies that decide, by the number of seeds."""
    seeds = sorted({n for test in analysis.power for n in test.equivalent})
    head = ("outcome", "control", "share that shows", *(count(n, "seed") for n in seeds))
    rows: list[tuple[str, ...]] = []
    for test in analysis.power:
        shown = (("equivalence, no difference", test.equivalent), (f"a difference of {test.margin:g}", test.detected))
        for what, shares in shown:
            rows.append((test.outcome, test.control, what, *(percent(shares[n]) for n in seeds)))
    return Grid(head, rows)


def block_grid(analysis: Analysis) -> Grid:
    """Return the jobs that are done and left."""
    rows = [
        (
            _BLOCKS[block.split, block.tuned], str(block.planned), str(block.done), str(block.planned - block.done),
            NONE if block.seconds is None else number(block.seconds, 0),
        )
        for block in analysis.blocks
    ]  # fmt: skip
    return Grid(("jobs", "planned", "done", "left", "seconds per job"), rows)


def section(analysis: Analysis, words: Sequence[str]) -> list[Table]:
    """Return the tables of outcomes whose names begin with one of these words."""
    return [table for table in analysis.tables if table.name.split(" ")[0] in words]


# ── numbers ───────────────────────────────────────────────────────────────────────────────────────────────────────────
def ranged(value: Number, digits: int = 3, *, sign: bool = False) -> str:
    """Return a number with its interval, like `0.685 [0.665, 0.705]`."""
    shown = number(value.value, digits, sign=sign)
    if value.low is None or value.high is None:
        return shown
    return f"{shown} [{number(value.low, digits, sign=sign)}, {number(value.high, digits, sign=sign)}]"


def _p(p: float | None) -> str:
    return NONE if p is None else "< 0.001" if p < 0.001 else number(p, 3)
