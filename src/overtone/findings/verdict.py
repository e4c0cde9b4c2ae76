"""The verdict on a run: one plain sentence on what the model hears and uses, and the data that would allow a fuller
one.

The verdict repeats numbers of the funnel and of the comparison with the words alone, and follows their rules: the
minimums of `stats.minimums` and the one rule for significance. If a benchmark has its own headline tables, the verdict
gives the first numbers of these tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from overtone.findings.analysis import compute_findings, with_supply
from overtone.findings.finding import FindingResult, Settings
from overtone.findings.funnel.compute import LABELS, Funnel, StageRow, rows_by_stage
from overtone.findings.text_only.compute import TextOnly, TextRow
from overtone.results import significance
from overtone.results.headline import has_own_tables, suite_tables
from overtone.results.headline_condition import talk_condition
from overtone.results.load import Reading
from overtone.results.measures import Estimate
from overtone.results.wording import headline, shortfall
from overtone.stats.minimums import RATE
from overtone.text import by_kind, interval, percent

HALF = 0.5  # an interval above it reads as "most", one below it as "few"
VOICE = "voice_accuracy"
SCORE = "overtone score RUN"
LEAST_SCRIPTS = RATE.least  # of a rate in a sentence
SHOWN = 2  # columns of a benchmark's own table in one sentence

Hears = Literal["yes", "no", "unclear", "unknown"]


class Verdict(Struct, frozen=True):
    """The answer for one run: the claim in words, which does not name the run, and the numbers behind it.

    `hears` says whether the model hears the cue. `missing` names further data that is needed, and the commands that
    supply it.
    """

    claim: str
    evidence: str = ""
    hears: Hears = "unknown"
    missing: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The verdict as one sentence."""
        return f"{self.claim}: {self.evidence}." if self.evidence else f"{self.claim}."


class _Clause(NamedTuple):
    """A part of the sentence, and the numbers behind it."""

    text: str
    evidence: str = ""
    hears: Hears = "unknown"


def verdict(reading: Reading, others: Sequence[Reading] = (), settings: Settings | None = None) -> Verdict:
    """Return the verdict on a run. The `others` may hold the same model's answers to transcripts."""
    settings = settings or Settings()
    if has_own_tables(reading):
        return suite_verdict(reading)
    results = compute_findings([reading, *others], ["funnel", "text-only"], settings, 1)
    stages, words = (next(r for r in results if r.name == name) for name in ("funnel", "text-only"))
    (condition,) = talk_condition([reading], settings.prompt, settings.input)
    return verdict_from(reading, stages, words, condition, settings.input)


def verdict_from(
    reading: Reading, stages: FindingResult[Funnel], words: FindingResult[TextOnly], condition: str, input: str
) -> Verdict:
    """Return the verdict on a run from findings that are already computed. `condition` is the condition of the run's
    replies; "" if it has no replies."""
    if (nothing := _unanswered(reading)) is not None:
        return nothing
    rows = rows_by_stage(stages.data, condition, input)
    gain = _gain(words.data)
    few = [(LABELS[stage], row.reached.scripts) for stage, row in rows.items() if row.reached.scripts < RATE.least]
    missing = [s.text for s in with_supply(shortfall(RATE, few), [reading])]
    missing += [*stages.advice, *(words.data.notes if gain is None else ())]
    known = {stage: row for stage, row in rows.items() if row.reached.scripts >= RATE.least}
    if not rows:
        missing = [f"no reply has a score yet: {SCORE}", *missing]
    cue = _cue(known, gain)
    clauses = [_words(known), cue, _used(known)]
    said = [clause for clause in clauses if clause.text]
    if not said:
        return Verdict("Not enough data for a verdict", missing=tuple(missing))
    if not cue.text:
        said.insert(min(1, len(said)), _Clause(_unknown_cue(rows)))
    claim = ", ".join(clause.text for clause in said)
    evidence = "; ".join(clause.evidence for clause in said if clause.evidence)
    return Verdict(claim[:1].upper() + claim[1:], evidence, cue.hears, tuple(dict.fromkeys(missing)))


def _unanswered(reading: Reading) -> Verdict | None:
    """Return the verdict on a run without replies; None if the run has replies."""
    if any(answer.answered for answer in reading.answers):
        return None
    failed, asked = sum(answer.failed for answer in reading.answers), len(reading.answers)
    if failed and failed == asked:
        claim = f"No verdict: all {asked:,} requests failed"
        return Verdict(claim, missing=("the run's `overtone run` command retries what failed",))
    claim = f"No verdict: none of the {asked:,} requests was answered" if asked else "No verdict: nothing was asked"
    return Verdict(claim, missing=("the run's `overtone run` command resumes it",))


# ── the clauses ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _words(rows: Mapping[str, StageRow]) -> _Clause:
    row = rows.get("words")
    if row is None:
        return _Clause("")
    return _Clause(
        _by_half(row.reached, "hears the words", "mishears the words", f"hears the words in {_rate(row)} of cases")
    )


def _cue(rows: Mapping[str, StageRow], gain: TextRow | None) -> _Clause:
    """Return a clause on whether the model hears the cue. It is compared with the same model without sound if that
    was measured, otherwise with guessing."""
    row = rows.get("cue")
    if gain is not None:
        return _against_words(gain)
    if row is None:
        return _Clause("")
    evidence = f"{_rate(row)} of cues named"
    if row.corrected is None or row.chance is None:
        return _Clause(_by_half(row.reached, "hears the cue", "misses the cue", "hears some cues"), evidence, "unclear")
    evidence += f"; blind guessing names {percent(row.chance)}"
    if significance.excludes(row.corrected) and (row.corrected.value or 0.0) > 0:
        return _Clause(_by_half(row.reached, "hears the cue", "hears few cues", "hears some cues"), evidence, "yes")
    if row.corrected.high is not None and row.corrected.high < HALF:
        return _Clause("misses the cue", evidence, "no")
    return _Clause("may or may not hear the cue", evidence, "unclear")


def _against_words(gain: TextRow) -> _Clause:
    by = gain.difference.value or 0.0
    evidence = (
        f"{percent(gain.audio.value)} of questions about the voice answered correctly; the same model without sound "
        f"answers {percent(gain.text.value)}"
    )
    tested = significance.p_value(gain.adjusted)
    if significance.significant(gain.adjusted):
        evidence += f", a statistically significant difference ({tested})"
        if by > 0:
            return _Clause(_by_half(gain.audio, "hears the cue", "hears few cues", "hears some cues"), evidence, "yes")
    elif by > 0:
        evidence += f"; the difference is not statistically significant ({tested})"
        return _Clause("may or may not hear the cue", evidence, "unclear")
    if (gain.audio.low or 0.0) > HALF:
        return _Clause("gains nothing from the sound", evidence, "no")
    return _Clause("misses the cue", evidence, "no")


def _used(rows: Mapping[str, StageRow]) -> _Clause:
    row = rows.get("used")
    if row is None:
        return _Clause("")
    if row.corrected is None or row.chance is None:
        some = f"takes up the delivery in {_rate(row)} of its replies"
        most, few = "takes up the delivery in its replies", "rarely takes up the delivery in its replies"
        return _Clause(_by_half(row.reached, most, few, some))
    if significance.excludes(row.corrected) and (row.corrected.value or 0.0) > 0:
        return _Clause(
            "its replies follow the delivery", f"{_rate(row)} of replies fit it, chance {percent(row.chance)}"
        )
    return _Clause(
        "its replies follow the delivery no more than chance",
        f"{_rate(row)} of replies fit it, chance {percent(row.chance)}",
    )


def _unknown_cue(rows: Mapping[str, StageRow]) -> str:
    row = rows.get("cue")
    if row is None:
        return "whether it hears the cue was not measured"
    return f"too little data on the cue ({row.reached.scripts} of {RATE.least} scripts)"


def _by_half(e: Estimate, most: str, few: str, between: str) -> str:
    if e.low is not None and e.low > HALF:
        return most
    return few if e.high is not None and e.high < HALF else between


def _rate(row: StageRow) -> str:
    return percent(row.reached.value)


def _gain(data: TextOnly) -> TextRow | None:
    """Return the row of voice accuracy with and without sound, if it has enough data for a sentence and was tested."""
    for row in headline(data.rows):
        tested = row.adjusted is not None and row.difference.scripts >= significance.least_scripts(row.tests)
        if row.measure == VOICE and tested and row.difference.scripts >= RATE.least:
            return row
    return None


# ── benchmarks with their own tables ────────────────────────────────────────────────────────────────────────────────


def suite_verdict(reading: Reading) -> Verdict:
    """Return the first numbers of a benchmark's own headline tables as a sentence."""
    if (nothing := _unanswered(reading)) is not None:
        return nothing
    few: list[tuple[str, int]] = []
    for table in suite_tables(reading):
        for row in table.rows:
            numbers = list(zip(table.headline.columns, row.cells, strict=True))
            valued = [(column, e) for column, e in numbers if e is not None and e.value is not None]
            few += [(column.label, e.scripts) for column, e in valued if e.scripts < RATE.least]
            enough = [(column, e) for column, e in valued if e.scripts >= RATE.least]
            if enough:
                parts = [f"{column.label} {_value(column, e)}" for column, e in enough[:SHOWN]]
                over = f" ({row.name})" if row.name else ""
                return Verdict(f"{table.headline.title}{over}", "; ".join(parts))
    missing = [s.text for s in with_supply(shortfall(RATE, few), [reading])]
    return Verdict("Not enough data for a verdict", missing=tuple(missing) or (f"no reply has a score yet: {SCORE}",))


def _value(column: Any, e: Estimate) -> str:
    unit = " %" if column.kind == "percent" else " points" if column.kind == "points" else ""
    between = interval(e, column.kind, column.digits)
    return by_kind(e.value, column.kind, column.digits) + unit + (f" ({between})" if between else "")
