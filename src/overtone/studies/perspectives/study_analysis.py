"""The analysis of a study as plain values: each outcome for each arm, the primary tests, and the state of the jobs.

`analyse` needs the answer key, which must not be published if the data must not. The result holds only numbers, so it
can be kept beside the results as `analysis.json` and shown without the data.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct

from overtone.errors import DataError
from overtone.paths import shown, write_whole
from overtone.stats.multiplicity import holm

from . import estimates, study_power, testability
from .answers import Key
from .design import Job, Study
from .estimates import At, Cell, difference
from .outcomes import Outcome, catalogue, cells
from .results import Result, paths
from .study_folder import planned
from .verdicts import verdict

ANALYSIS = "analysis.json"
VERSION = 1
LEVEL = 0.95  # of the intervals that are shown
TREATMENT = "both"
BASE = "base"


class Number(Struct, frozen=True):
    """An estimate with its 95 % interval. It has no interval if its standard error is unknown."""

    value: float
    low: float | None = None
    high: float | None = None


class Contrast(Struct, frozen=True):
    """The treatment minus another arm, paired. `p` is not corrected; None without a standard error."""

    number: Number
    p: float | None
    kind: str
    text: str  # the verdict in words


class Arm(Struct, frozen=True):
    """One arm's value on one outcome. `cells` is the number of its trained models (for the base model, of the cells
    with which it is compared)."""

    name: str
    number: Number
    cells: int
    seeds: int
    contrast: Contrast | None = None  # none for the treatment itself


class Checked(Struct, frozen=True):
    """The two checks that decide whether an outcome is testable with this model."""

    baseline_name: str = ""
    baseline: Number | None = None
    control_name: str = ""
    control: Number | None = None
    untestable: str = ""  # the verdict of an outcome that is not testable


class Table(Struct, frozen=True):
    """One outcome with all arms that have results."""

    name: str
    title: str
    margin: float
    higher_is_better: bool
    checked: Checked
    arms: list[Arm]

    def arm(self, name: str) -> Arm | None:
        return next((arm for arm in self.arms if arm.name == name), None)


class Primary(Struct, frozen=True):
    """One primary test. `p` is corrected by Holm's method over the primary tests that have results."""

    outcome: str
    title: str
    treatment: str
    control: str
    margin: float
    treated: Number
    number: Number
    p: float | None
    cells: int
    seeds: int
    kind: str
    text: str


class Block(Struct, frozen=True):
    """Jobs of one split and tuning: how many are done and planned, and the mean seconds of those that are done."""

    split: str
    tuned: bool
    done: int
    planned: int
    seconds: float | None


class Analysis(Struct, frozen=True):
    """All numbers of a study, and the hashes of the data behind them."""

    version: int
    study: str  # SHA-256 of the study file
    data: str  # SHA-256 of the data
    results: str  # SHA-256 of the files of results
    model: str
    seeds: list[int]
    items: dict[str, int]  # sentences, genres, documents, questions of each set
    blocks: list[Block]
    primary: list[Primary]
    primary_planned: int
    tables: list[Table]
    power: list[study_power.Power]

    def table(self, name: str) -> Table:
        return next(table for table in self.tables if table.name == name)

    @property
    def done(self) -> int:
        return sum(block.done for block in self.blocks)

    @property
    def planned(self) -> int:
        return sum(block.planned for block in self.blocks)


def analyse(found: Mapping[Job, Result], key: Key, study: Study, digest: str = "") -> Analysis:
    """Compute all numbers from finished jobs, all of a study or some. `digest` is `fingerprint` of their files.

    Raises DataError if there is nothing to analyse.
    """
    if not found:
        raise DataError("there are no results yet; run `overtone study perspectives` first")
    results = {job: result.arrays for job, result in found.items()}
    outcomes = catalogue(key, study.tests)
    read = {outcome.name: cells(results, outcome) for outcome in outcomes}
    checks = {outcome.name: testability.check(results, key, outcome, read[outcome.name]) for outcome in outcomes}
    tables = [
        table
        for outcome in outcomes
        if (table := _table(outcome, read[outcome.name], checks[outcome.name], study)).arms
    ]
    return Analysis(
        version=VERSION, study=study.sha256, data=key.sha256, results=digest, model=_model(found, study),
        seeds=sorted({job.seed for job in found}), items=_items(key), blocks=_blocks(found, key, study),
        primary=primary_tests(outcomes, read, checks, study), primary_planned=len(study.settings["primary"]),
        tables=tables, power=study_power.power(results, key, study),
    )  # fmt: skip


def primary_tests(
    outcomes: Sequence[Outcome],
    read: Mapping[str, dict[str, dict[At, Cell]]],
    checks: Mapping[str, testability.Check],
    study: Study,
) -> list[Primary]:
    """Return the primary tests that have results, in the study file's order, with Holm's correction over them."""
    by_name = {outcome.name: outcome for outcome in outcomes}
    rows = []
    for wanted in study.settings["primary"]:
        outcome = by_name.get(wanted["outcome"])
        arms = read.get(wanted["outcome"], {})
        both = difference(arms.get(wanted["treatment"], {}), arms.get(wanted["control"], {}))
        if outcome is not None and both:
            rows.append((wanted, outcome, estimates.estimate(both), estimates.estimate(arms[wanted["treatment"]])))
    corrected = holm(np.array([e.p for _, _, e, _ in rows]))
    out = []
    for (wanted, outcome, e, treated), p in zip(rows, corrected, strict=True):
        untestable = checks[outcome.name].text
        judged = verdict(e, float(p), outcome.margin, study.tests, untestable, outcome.higher_is_better)
        out.append(Primary(
            **wanted, title=outcome.title, margin=outcome.margin, treated=_number(treated), number=_number(e),
            p=_known(float(p)), cells=e.cells, seeds=e.seeds, kind=judged.kind, text=judged.text,
        ))  # fmt: skip
    return out


def _table(outcome: Outcome, arms: dict[str, dict[At, Cell]], check: testability.Check, study: Study) -> Table:
    rows = []
    for name in sorted(arms, key=lambda arm: (arm != TREATMENT, arm == BASE, arm)):
        e = estimates.estimate(arms[name])
        both = difference(arms.get(TREATMENT, {}), arms[name]) if name != TREATMENT else {}
        contrast = None
        if both:
            d = estimates.estimate(both)
            judged = verdict(d, d.p, outcome.margin, study.tests, check.text, outcome.higher_is_better)
            contrast = Contrast(_number(d), _known(d.p), judged.kind, judged.text)
        rows.append(Arm(name, _number(e), e.cells, e.seeds, contrast))
    checked = Checked(
        check.baseline_name, None if check.baseline is None else _number(check.baseline),
        check.control_name, None if check.control is None else _number(check.control), check.text,
    )  # fmt: skip
    return Table(outcome.name, outcome.title, outcome.margin, outcome.higher_is_better, checked, rows)


def _number(e: estimates.Estimate) -> Number:
    low, high = e.interval(LEVEL) if e.error > 0 else (None, None)
    return Number(e.value, low, high)


def _known(p: float) -> float | None:
    return None if np.isnan(p) else p


def _model(found: Mapping[Job, Result], study: Study) -> str:
    names = sorted({str(result.about["model"]) for result in found.values() if "model" in result.about})
    return ", ".join(names) or str(study.settings.get("model", ""))


def _items(key: Key) -> dict[str, int]:
    sizes = {"sentences": len(key.ids), "genres": len(set(key.genres)), "documents": len(set(key.clusters.tolist()))}
    return sizes | {f"questions of {name}": len(answers) for name, answers in key.answers.items()}


def _blocks(found: Mapping[Job, Result], key: Key, study: Study) -> list[Block]:
    allowed = {"emobank"} | set(key.answers) | ({"perplexity", "tuned"} if "dream" in key.answers else set())
    every = planned(study, allowed, sorted(set(key.genres)))
    out = []
    for name, tuned in dict.fromkeys((_block_of(job), job.tuned) for job in every):
        jobs = [job for job in every if (_block_of(job), job.tuned) == (name, tuned)]
        done = [found[job] for job in jobs if job in found]
        seconds = [float(result.about["seconds"]) for result in done if "seconds" in result.about]
        out.append(Block(name, tuned, len(done), len(jobs), float(np.mean(seconds)) if seconds else None))
    return out


def _block_of(job: Job) -> str:
    return BASE if job.arm == BASE and not job.tuned else job.split


# ── the file ──────────────────────────────────────────────────────────────────────────────────────────────────────────
def fingerprint(folder: Path) -> str:
    """Return the SHA-256 of the names and bytes of a folder's results."""
    digest = hashlib.sha256()
    for path in paths(folder):
        digest.update(f"{path.name}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def write(folder: Path, analysis: Analysis) -> Path:
    """Write FOLDER/analysis.json atomically, with ten significant digits, and return its path."""
    plain = _rounded(msgspec.to_builtins(analysis))
    write_whole(folder / ANALYSIS, msgspec.json.format(msgspec.json.encode(plain), indent=1) + b"\n")
    return folder / ANALYSIS


def read(folder: Path, study: Study) -> Analysis:
    """Read FOLDER/analysis.json. Raises DataError if it is damaged, or if it belongs to other results than those in
    the folder."""
    path = folder / ANALYSIS
    where = shown(str(path))
    again = "Write it again from the answer key: overtone study report FOLDER --key KEY.npz"
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Analysis)
    except (OSError, msgspec.MsgspecError) as error:
        raise DataError(f"{where}: not an analysis, or damaged ({error}). {again}") from None
    if found.version != VERSION:
        raise DataError(f"{where}: has version {found.version}; this version of Overtone reads {VERSION}. {again}")
    if found.study != study.sha256 or found.results != fingerprint(folder):
        problem = "comes from another study file or from other results than those in the folder"
        raise DataError(f"{where}: {problem}. {again}")
    return found


def _rounded(value: object) -> object:
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value
