"""Collect the gates' findings, the scripts and clips left out because of them, and the reasons against a release.

If the target or the alternative clip of a script fails, the whole script is left out: its questions are only fair if
they are asked on both clips. If a neutral or control clip fails, only that clip is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from overtone.audio import Measures
from overtone.build.gates import Finding, balance, neutral_words, telltale, text_leak
from overtone.build.gates._reader_view import embedder
from overtone.build.gates.run_gates import ClipRecord, audio_gates
from overtone.build.gates.survive import Rate
from overtone.build.gates.text_leak import Solver
from overtone.build.manifest import Made, write_json
from overtone.build.questions import Question
from overtone.build.review_sheets import decide, read_reviews
from overtone.build.script import HERE, Collection, sets
from overtone.build.sound_plan import PLAIN, Job, Options, clip_name
from overtone.build.voices import cast
from overtone.pool import Progress

FILE = "gates.json"
LEAST = 20  # scripts that solvers need to learn anything
ALONE = frozenset({"neutral", "control", PLAIN})  # styles that are left out without their script

__all__ = ["GateReport", "Solver", "questions", "record", "sounds", "texts", "write_report"]


class GateReport(Struct, frozen=True):
    """The gates' findings so far, and the scripts and clips that are left out because of them."""

    ran: bool = False
    findings: tuple[Finding, ...] = ()
    checked: dict[str, int] = {}  # gate → number of checked subjects
    scripts: frozenset[str] = frozenset()  # scripts that are left out with all their clips
    clips: frozenset[tuple[str, str]] = frozenset()  # (script, style) of clips that are left out alone
    blocks: tuple[str, ...] = ()  # reasons against a release that leave nothing out
    rates: tuple[Rate, ...] = ()  # word error rates by style and cue
    measures: dict[str, Measures] = {}  # clip's name within audio/ → its measures
    transcripts: dict[str, str] = {}  # clip's path → the recogniser's transcript
    leaks: tuple[text_leak.Row, ...] = ()
    predictability: tuple[neutral_words.Predicted, ...] = ()
    identified: tuple[telltale.Identified, ...] = ()  # how often a reader identifies each kind of option

    def out(self, case_id: str, style: str) -> bool:
        """Return whether a clip is left out."""
        return case_id in self.scripts or (case_id, style) in self.clips

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return gate → (number of checked subjects, number of failed subjects)."""
        wrong: dict[str, set[str]] = {gate: set() for gate in self.checked}
        for finding in self.findings:
            wrong.setdefault(finding.gate, set()).add(finding.subject)
        return {gate: (self.checked.get(gate, 0), len(subjects)) for gate, subjects in wrong.items()}


def texts(part: Collection, reviews: Path | None, seed: int) -> GateReport:
    """Run the gates on scripts, before anything is spoken. If there are reviews, scripts that the reviewers did not
    accept are left out. The package's own sets come with reviews."""
    findings = neutral_words.check(part.scripts)
    blocks = [f"{f.subject}: {f.reason}" for f in findings if f.subject == "set"]
    checked = {"words": len(part.scripts)}
    if reviews is None and part.name in sets():
        reviews = HERE / part.name / "reviews"
    if reviews is not None:
        everything = part.everything
        known = {one.id for one in everything}
        decision = decide(everything, [r for r in read_reviews(reviews) if r.script in known], seed=seed)
        checked["review"] = len(everything)
        findings += [Finding("review", one, why) for one, why in (decision.pending | decision.rejected).items()]
    left = frozenset(f.subject for f in findings if f.subject != "set")
    return GateReport(True, tuple(findings), checked, left, blocks=tuple(blocks))


def sounds(
    so_far: GateReport,
    clips: Sequence[tuple[Job, Made]],
    options: Options,
    out: Path,
    jobs: int,
    progress: Progress,
    alone_in: frozenset[str] = ALONE,
) -> GateReport:
    """Run the gates on clips. A failing clip is left out with its group, or alone if its style is in `alone_in`."""
    records = [record(job, made, options) for job, made in clips]
    result = audio_gates(records, out, jobs, progress, strength=options.strength, snr=options.snr)
    owner = {r.path: (r.case_id, r.style) for r in records}
    scripts, alone = set(so_far.scripts), set(so_far.clips)
    for path in result.clips:
        if owner[path][1] in alone_in:
            alone.add(owner[path])
        else:
            scripts.add(owner[path][0])
    return replace(
        so_far,
        findings=(*so_far.findings, *result.findings),
        checked=so_far.checked | result.checked,
        scripts=frozenset(scripts),
        clips=frozenset(alone),
        blocks=(*so_far.blocks, *(f"{f.subject}: {f.reason}" for f in result.wholes)),
        rates=result.rates,
        measures={clip_name(path): facts.measures for path, facts in result.facts.items()},
        transcripts={path: facts.transcript for path, facts in result.facts.items()},
    )


def record(job: Job, made: Made, options: Options) -> ClipRecord:
    """Describe a clip for the gates. If a clip has several cues, only the cue applied last is measured, against a twin
    that has all the other cues. A user's recording has no cue here, because no recipe promises anything about it."""
    native = job.speaker is None or cast(options.voices).engine(job.speaker).native
    cue = job.cues[-1] if job.cues and not job.file else ""
    return ClipRecord(
        job.path, job.text, job.case_id, job.style, cue, "" if job.also else job.manner, job.twin, made.voice,
        job.speaker.sex if job.speaker else "", job.scene if job.scene == cue else "", native, at=made.path,
    )  # fmt: skip


def questions(
    so_far: GateReport,
    whole: Collection,
    part: Collection,
    asked: Sequence[Question],
    solvers: Sequence[tuple[str, Solver]],
    seed: int,
    progress: Progress,
) -> GateReport:
    """Run the gates on questions, if `part` is the whole set. The leak test also needs at least LEAST scripts, because
    its solvers learn from them."""
    if part != whole:
        return so_far
    findings = balance.check(part.scripts, asked)
    report = replace(
        so_far,
        findings=(*so_far.findings, *findings),
        checked=so_far.checked | {"balance": len(asked)},
        blocks=(*so_far.blocks, *(f"{f.subject}: {f.reason}" for f in findings)),
    )
    if len(part.scripts) < LEAST:
        return report
    progress("leak test", 0, 1)
    rows = text_leak.table(asked, seed, solvers)
    predicted = neutral_words.predictability(part.scripts, seed)
    identified = telltale.telltales(asked, seed, embedder(), most=0)[0]
    progress("leak test", 1, 1)
    leaks = (
        f"{row.category}: who only reads ({row.solver}) is right in {row.accuracy:.2f} [{row.low:.2f}, "
        f"{row.high:.2f}], above the ceiling {row.ceiling:.2f}"
        for row in text_leak.failing(rows)
    )
    return replace(
        report,
        blocks=(*report.blocks, *leaks),
        leaks=tuple(rows),
        predictability=tuple(predicted),
        identified=tuple(identified),
    )


def write_report(out: Path, report: GateReport) -> None:
    """Write gates.json: the counts of each gate, left-out scripts and clips, findings, and tables of the leak test."""
    write_json(
        out / FILE,
        {
            "ran": report.ran,
            "gates": {gate: {"checked": n, "failed": bad} for gate, (n, bad) in report.counts().items()},
            "left_out": {
                "scripts": sorted(report.scripts),
                "clips": [f"{case} {style}" for case, style in sorted(report.clips)],
            },
            "findings": report.findings,
            "not_fit_for_release": report.blocks,
            "leak_test": report.leaks,
            "words_tell_the_cue": report.predictability,
            "options_tell_their_kind": report.identified,
            "word_error_rates": report.rates,
        },
    )
