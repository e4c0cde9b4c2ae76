"""Check a run: thresholds, the comparison with a baseline, and missing replies.

Missing replies count as neither good nor bad. If they could change a verdict, the verdict is "undecided". The share of
missing replies has its own limit.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from overtone.errors import UsageError
from overtone.results import measure_names, operations
from overtone.results.baseline import NO_WORSE, NOT_WORSE, ONE_SIDED, Baseline
from overtone.results.case_names import unique
from overtone.results.comparability import Unlike, unlike
from overtone.results.comparison import DRAWS, SEED, share
from overtone.results.corpus_scores import TRANSCRIPTS, WER_CORPUS
from overtone.results.load import Reading
from overtone.results.requirements import Checked, Margin, Requirement, State
from overtone.results.thresholds import MISSING, asks, headline_asks, missing, threshold_rows

SIGNATURE = (
    f"check|v3|cluster:script|baseline:compare|no-worse:one-sided-{ONE_SIDED}|test:sign-flips|draws:{DRAWS}|seed:{SEED}"
    "|basis:headline"
)


class Check(Struct, frozen=True):
    """All rows of a check. If `unlike` is not empty, the run and its baseline are not comparable, and the rows that
    compare them are meaningless."""

    run: str
    baseline: str
    rows: tuple[Checked, ...]
    unlike: tuple[Unlike, ...]
    notes: tuple[str, ...]
    signature: str = SIGNATURE

    @property
    def state(self) -> State:
        states = {row.state for row in self.rows}
        return "fails" if "fails" in states else "undecided" if "undecided" in states else "holds"


def check(
    run: Reading,
    requirements: Sequence[Requirement] = (),
    margins: Sequence[Margin] = (),
    baseline: Reading | None = None,
    conditions: Sequence[str] = (),
    most_missing: float = MISSING,
) -> Check:
    """Check every requirement under every condition that has the measure.

    With a baseline, no headline measure and no other required measure may be significantly worse. If a measure has a
    margin, the margin replaces this test. `most_missing` is the largest allowed share of asks without a reply in a
    condition. Raises UsageError for an unknown name and for a number outside a measure's scale.
    """
    if margins and baseline is None:
        raise UsageError("--no-worse needs a run to compare with: give --baseline RUN")
    rows = [row for one in requirements for row in threshold_rows(run, one, conditions)]
    notes = [f"{r.name}: {note}" for r in (run, baseline) if r is not None for note in r.notes]
    obstacles: list[Unlike] = []
    if baseline is not None:
        beside = Baseline(run, baseline, requirements, margins, conditions)
        obstacles, more = unlike(baseline, run, beside.measures, beside.pairs)
        rows += beside.rows()
        notes += [*more, *beside.notes()]
    rows.append(missing(run, conditions, most_missing))
    return Check(run.name, baseline.name if baseline else "", tuple(rows), tuple(obstacles), tuple(notes))


def sentences(outcome: Check) -> list[str]:
    """Return one sentence for every requirement."""
    word = {"holds": "holds", "fails": "fails", "undecided": "is undecided"}
    return [
        f"{row.required}{f' ({row.condition})' if row.condition else ''} {word[row.state]}: {row.text}."
        for row in outcome.rows
    ]


def behind(run: Reading, key: str, baseline: Reading | None = None) -> list[str]:
    """Return the cases behind the row `key` of a check, in the order of the run; an empty list for an unknown key."""
    head, *parts = key.split("/")
    if head != "check" or len(parts) < 4:
        return []
    condition, name, kind = "/".join(parts[:2]), parts[2], parts[3]
    beside = kind.startswith((NO_WORSE, NOT_WORSE)) and baseline is not None
    if name in {**operations.TOTALS, **operations.MEASURES} and not beside:
        every = asks(run, [condition], core=False).get(condition, [])
        return unique(a.item.case for a in every)
    readings = [run] if baseline is None else [run, baseline]
    measure = None if name == WER_CORPUS else measure_names.find_one(name, readings)
    belongs = measure.belongs if measure else lambda item: item.task == "transcribe"
    read = measure.read if measure else lambda a: a.value(TRANSCRIPTS)
    core = measure is None or not measure.every
    mine = [a for a in asks(run, [condition], core=core).get(condition, []) if belongs(a.item) and read(a) is not None]
    if beside and baseline is not None:
        both = {r.ask for b, r in share(baseline, run, [condition], core=core)[0] if read(b) is not None}
        mine = [a for a in mine if a.ask in both]
    return unique(a.item.case for a in headline_asks(mine, measure)[1])
