"""Collect the findings of every gate, what is left out because of them, and what forbids a release.

If the target or the alternative clip of a script fails, the whole script is left out: its questions are only fair if
both clips are asked about. A neutral or control clip that fails is left out alone.
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
from overtone.build.pool import Tell
from overtone.build.questions import Question
from overtone.build.review_sheets import decide, read_reviews
from overtone.build.script import HERE, Collection, sets
from overtone.build.sound_plan import CLIPS, PLAIN, Job, Options
from overtone.build.voices import cast

FILE = "gates.json"
LEAST = 20  # scripts from which solvers can learn anything
ALONE = frozenset({"neutral", "control", PLAIN})  # styles that are left out without their script

__all__ = ["Sifted", "Solver", "questions", "record", "sounds", "texts", "write_report"]


class Sifted(Struct, frozen=True):
    """The findings so far, and what is left out because of them."""

    ran: bool = False
    findings: tuple[Finding, ...] = ()
    checked: dict[str, int] = {}  # gate → how many it looked at
    scripts: frozenset[str] = frozenset()  # left out whole
    clips: frozenset[tuple[str, str]] = frozenset()  # script and style left out alone
    blocks: tuple[str, ...] = ()  # what forbids a release though nothing is left out for it
    rates: tuple[Rate, ...] = ()  # word error rates by style and cue
    measures: dict[str, Measures] = {}  # of every clip, by its name within audio/
    transcripts: dict[str, str] = {}  # what the recogniser heard, by the clip's path
    leaks: tuple[text_leak.Row, ...] = ()
    predictability: tuple[neutral_words.Predicted, ...] = ()
    told: tuple[telltale.Told, ...] = ()  # how often a reader finds each kind of option

    def out(self, case_id: str, style: str) -> bool:
        """Return whether a clip is left out."""
        return case_id in self.scripts or (case_id, style) in self.clips

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return gate → (number of checked subjects, number of failed subjects)."""
        wrong: dict[str, set[str]] = {gate: set() for gate in self.checked}
        for finding in self.findings:
            wrong.setdefault(finding.gate, set()).add(finding.subject)
        return {gate: (self.checked.get(gate, 0), len(subjects)) for gate, subjects in wrong.items()}


def texts(part: Collection, reviews: Path | None, seed: int) -> Sifted:
    """Run the gates on scripts, before anything is spoken. If there are reviews, only scripts that the reviewers
    accepted are built. The package's own sets come with reviews."""
    found = neutral_words.check(part.scripts)
    blocks = [f"{f.subject}: {f.reason}" for f in found if f.subject == "set"]
    checked = {"words": len(part.scripts)}
    if reviews is None and part.name in sets():
        reviews = HERE / part.name / "reviews"
    if reviews is not None:
        everything = part.everything
        known = {one.id for one in everything}
        decision = decide(everything, [r for r in read_reviews(reviews) if r.script in known], seed=seed)
        checked["review"] = len(everything)
        found += [Finding("review", one, why) for one, why in (decision.pending | decision.rejected).items()]
    left = frozenset(f.subject for f in found if f.subject != "set")
    return Sifted(True, tuple(found), checked, left, blocks=tuple(blocks))


def sounds(
    so_far: Sifted,
    clips: Sequence[tuple[Job, Made]],
    options: Options,
    out: Path,
    jobs: int,
    tell: Tell,
    alone_in: frozenset[str] = ALONE,
) -> Sifted:
    """Run the gates on clips. A clip in a style of `alone_in` is left out alone, any other with its whole group."""
    records = [record(job, made, options) for job, made in clips]
    result = audio_gates(records, out, jobs, tell, strength=options.strength, snr=options.snr)
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
        measures={path.removeprefix(CLIPS): facts.measures for path, facts in result.facts.items()},
        transcripts={path: facts.transcript for path, facts in result.facts.items()},
    )


def record(job: Job, made: Made, options: Options) -> ClipRecord:
    """Describe a clip for the gates. If a clip has several cues, the last applied one is measured, against a twin that
    has the others. A user's recording has no cue here, because no recipe promises anything about it."""
    native = job.speaker is None or cast(options.voices).engine(job.speaker).native
    cue = job.cues[-1] if job.cues and not job.file else ""
    return ClipRecord(
        job.path, job.text, job.case_id, job.style, cue, "" if job.also else job.manner, job.twin, made.voice,
        job.speaker.sex if job.speaker else "", job.scene if job.scene == cue else "", native, at=made.path,
    )  # fmt: skip


def questions(
    so_far: Sifted,
    whole: Collection,
    part: Collection,
    asked: Sequence[Question],
    solvers: Sequence[tuple[str, Solver]],
    seed: int,
    tell: Tell,
) -> Sifted:
    """Run the gates on questions. The leak test runs only on the whole set, because solvers learn from it."""
    found = balance.check(part.scripts, asked) if part == whole else []
    blocks = [f"{f.subject}: {f.reason}" for f in found]
    rows: list[text_leak.Row] = []
    told: list[neutral_words.Predicted] = []
    found_out: list[telltale.Told] = []
    if part == whole and len(part.scripts) >= LEAST:
        tell("leak test", 0, 1)
        rows = text_leak.table(asked, seed, solvers)
        told = neutral_words.predictability(part.scripts, seed)
        found_out = telltale.telltales(asked, seed, embedder(), most=0)[0]
        tell("leak test", 1, 1)
        blocks += [
            f"{row.category}: who only reads ({row.solver}) is right in {row.accuracy:.2f} [{row.low:.2f}, "
            f"{row.high:.2f}], above the ceiling {row.ceiling:.2f}"
            for row in text_leak.failing(rows)
        ]
    checked = so_far.checked | ({"balance": len(asked)} if part == whole else {})
    return replace(
        so_far,
        findings=(*so_far.findings, *found),
        checked=checked,
        blocks=(*so_far.blocks, *blocks),
        leaks=tuple(rows),
        predictability=tuple(told),
        told=tuple(found_out),
    )


def write_report(out: Path, sifted: Sifted) -> None:
    """Write gates.json: what was checked, what was left out and why, and the tables of the leak test."""
    write_json(
        out / FILE,
        {
            "ran": sifted.ran,
            "gates": {gate: {"checked": n, "failed": bad} for gate, (n, bad) in sifted.counts().items()},
            "left_out": {
                "scripts": sorted(sifted.scripts),
                "clips": [f"{case} {style}" for case, style in sorted(sifted.clips)],
            },
            "findings": sifted.findings,
            "not_fit_for_release": sifted.blocks,
            "leak_test": sifted.leaks,
            "words_tell_the_cue": sifted.predictability,
            "options_tell_their_kind": sifted.told,
            "word_error_rates": sifted.rates,
        },
    )
