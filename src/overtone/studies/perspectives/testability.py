"""Is an outcome testable with this model? A model at the floor shows no difference, and that is not equivalence.

Two checks, each with a one-sided 5 % level. The base model has to be above a text baseline that cannot know the answer,
and a positive control, tuning on the task's own training data, has to raise it. On EmoBank all arms that are compared
are tuned, so the tuning itself is the positive control, and the baseline is a constant prediction (r = 0).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .answers import Key
from .design import CONTROL_CONDITIONS, CONTROL_SPLIT, tested_questions
from .estimates import At, Cell, Estimate, difference, estimate, mean_cell
from .outcomes import Outcome, Reader, Results, base_arrays

LEVEL = 0.90  # of the two-sided interval whose lower end has to be above 0


@dataclass(frozen=True)
class Check:
    """Both checks of an outcome. `reason` says why the outcome is not testable; it is "" where it is.

    `pending` means that jobs have yet to run; then the outcome can still become testable.
    """

    baseline_name: str = ""
    baseline: Estimate | None = None  # base − the baseline
    control_name: str = ""
    control: Estimate | None = None  # the positive control − base
    reason: str = ""
    pending: bool = False

    @property
    def text(self) -> str:
        """The reason as a verdict; "" if the outcome is testable."""
        if not self.reason:
            return ""
        return f"not testable {'yet' if self.pending else 'with this model'}: {self.reason}"


def check(results: Results, key: Key, outcome: Outcome, found: dict[str, dict[At, Cell]]) -> Check:
    """Check an outcome. `found` is what `outcomes.cells` returned for it."""
    if not outcome.margin:
        return Check()  # no equivalence is claimed
    if not outcome.questions:
        return _ratings(found)
    return _choices(results, key, outcome)


def _ratings(found: dict[str, dict[At, Cell]]) -> Check:
    name = "merged" if "merged" in found else "both"
    learnt = found.get(name)
    if not learnt or "base" not in found:
        return Check(reason="the base model or a tuned arm has not run", pending=True)
    above = estimate(learnt)
    moved = estimate(difference(learnt, found["base"]))
    reason = ""
    if not _positive(above):
        reason = f"the arm {name} is not above a constant prediction"
    elif not _positive(moved):
        reason = "tuning on EmoBank does not move it"
    return Check(f"{name} − a constant prediction (r = 0)", above, f"{name} − base", moved, reason)


def _choices(results: Results, key: Key, outcome: Outcome) -> Check:
    base = base_arrays(results)
    name = "dream" if outcome.questions == "tuned" else outcome.questions
    if base is None or f"{name}/{outcome.condition}" not in base:
        return Check(reason="the base model has not run", pending=True)
    reader, answers = Reader(key), key.answers[name]
    keep = reader.asked(name, outcome.level)
    scoring = outcome.scoring
    right = reader.right(base, name, outcome.condition, scoring)
    if outcome.questions == "tuned":
        tuned = _tuned(results, key)
        right = np.mean([cells.value for cells in tuned], 0) if tuned else right
    baseline_name, baseline = _text_baseline(reader, base, outcome, name)
    above = estimate({("", 0): mean_cell((right - baseline)[keep], answers.clusters[keep])})
    control_name, control = _positive_control(results, key, outcome, name)
    planned = name != "open" or outcome.condition in CONTROL_CONDITIONS
    reason = ""
    if not _positive(above):
        reason = f"the base model is not above its text baseline ({baseline_name})"
    elif not planned:
        reason = f"the study has no positive control for this condition ({outcome.condition})"
    elif control is None:
        reason = f"the positive control has not run ({control_name})"
    elif not _positive(control):
        reason = f"the positive control does not move it ({control_name})"
    pending = planned and control is None and _positive(above)
    return Check(f"base − {baseline_name}", above, f"{control_name} − base", control, reason, pending)


@dataclass(frozen=True)
class _Right:
    seed: int
    value: np.ndarray  # (questions,) 0 or 1, NaN where a question was not asked


def _tuned(results: Results, key: Key) -> list[_Right]:
    reader = Reader(key)
    return [
        _Right(job.seed, reader.right(arrays, "tuned", "words", "sum"))
        for job, arrays in results.items()
        if job.tuned and job.arm == "base" and job.split != CONTROL_SPLIT
    ]


def _halves(results: Results, key: Key, condition: str) -> list[_Right]:
    """Return the answers of the model tuned on the other half of Overtone-Open's scripts, both halves joined."""
    reader = Reader(key)
    out: dict[int, np.ndarray] = {}
    for job, arrays in results.items():
        if job.split == CONTROL_SPLIT and f"open/{condition}" in arrays:
            asked = tested_questions(key.answers["open"].clusters, job.seed, int(job.part))
            right = np.where(asked, reader.right(arrays, "open", condition, "sum"), np.nan)
            before = out.get(job.seed)
            out[job.seed] = right if before is None else np.where(np.isnan(before), right, before)
    return [_Right(seed, right) for seed, right in sorted(out.items())]


def _positive_control(results: Results, key: Key, outcome: Outcome, name: str) -> tuple[str, Estimate | None]:
    """Return the control's name and its gain over base, paired by question. It is scored by what it was tuned on."""
    if name == "dream":
        title, controls = "base tuned on DREAM's train", _tuned(results, key)
    else:
        title = "base tuned on the other half of Overtone-Open's scripts"
        controls = _halves(results, key, outcome.condition)
    base = base_arrays(results)
    assert base is not None
    if not controls:
        return title, None
    reader, answers = Reader(key), key.answers[name]
    before = reader.right(base, name, outcome.condition, outcome.scoring)
    keep = reader.asked(name, outcome.level)
    asked = np.logical_and.reduce([~np.isnan(one.value) for one in controls])
    keep = keep[asked[keep]]
    if not len(keep):
        return title, None
    gains = {("", one.seed): mean_cell((one.value - before)[keep], answers.clusters[keep]) for one in controls}
    return title, estimate(gains)


def _text_baseline(reader: Reader, base: dict[str, np.ndarray], outcome: Outcome, name: str) -> tuple[str, np.ndarray]:
    """Return the best baseline that cannot know the answer: its name and 0 to 1 per question."""
    answers = reader.key.answers[name]
    keep = reader.asked(name, outcome.level)
    offered = {"guessing": answers.chance, **answers.baselines}
    if f"{name}/none" in base:
        offered["base with question and options alone"] = reader.right(base, name, "none", "sum")
    if outcome.condition == "told":
        offered["base without the cue"] = reader.right(base, name, "words", outcome.scoring)
    best = max(offered, key=lambda of: float(offered[of][keep].mean()))
    return best, offered[best]


def _positive(e: Estimate) -> bool:
    return e.error > 0 and e.interval(LEVEL)[0] > 0
