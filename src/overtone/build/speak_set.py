"""Speak a set of any kind: render groups of sounds in several processes, resume killed builds, run the gates.

A group that fails a gate is spoken again by the next speaker. If it fails with every speaker, it is moved out of the
set.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np
from msgspec import Struct

from overtone import audio
from overtone.build import acceptance, room
from overtone.build.acceptance import GateReport
from overtone.build.cue_validation import from_ratings, statuses
from overtone.build.dataset_card import write_card
from overtone.build.datasheet import About, used_cues, write_datasheet
from overtone.build.delivery import RATE
from overtone.build.gates.run_gates import measure_all
from overtone.build.licence import Ingredient, Verdict, derive
from overtone.build.manifest import FILE, LEFT_OUT, Made, Manifest, SpeakerRecord, open_folder, same, write, write_json
from overtone.build.questions import Question
from overtone.build.recipes import VERSION as RECIPES
from overtone.build.render import OURS, Rendered, Renderer, library
from overtone.build.sound_plan import Group, Job, Options
from overtone.build.voices import cast
from overtone.embedded import require
from overtone.errors import UsageError
from overtone.languages import DEFAULT
from overtone.paths import inside
from overtone.pool import Progress, default_jobs, no_progress, spread
from overtone.version import __version__

TAKES = 4  # speakers who try a group before it is left out
_SAVE_EVERY = 2.0  # seconds between two writings of the manifest while sounds are made

Planned = Callable[[Mapping[str, int]], list[Group]]  # take of each group → every sound of the set


class Maker(Protocol):
    """Renders the sounds of one group; `Renderer` does so for single voices."""

    def __init__(self, group: Group, options: Options) -> None: ...

    def make(self, job: Job) -> Rendered:
        """Render one sound of the group."""
        ...


class Source(Struct, frozen=True):
    """The texts of a set: name, licence, and the ids of all groups."""

    name: str
    licence: str
    ids: frozenset[str]


class Built(Struct, frozen=True, kw_only=True):
    """The result of a build."""

    made: int
    kept: int
    sound_seconds: float  # of the sounds that this build made
    making_seconds: float
    wall_seconds: float  # including the gates
    clips: tuple[Made, ...]
    gate_report: GateReport
    verdict: Verdict
    lines: tuple[str, ...] = ()  # the numbers of items, for the terminal
    scripts: int = 0
    questions: tuple[Question, ...] = ()

    @property
    def speed(self) -> float:
        """Seconds of sound rendered per second."""
        return self.sound_seconds / max(self.making_seconds, 1e-9)


def ready(options: Options) -> None:
    """Check everything that a build needs before the first sound is made."""
    require("pyworld", "the WORLD vocoder, for deliveries")
    require("espeakng_loader", "the offline voices")
    if not 0 <= options.strength <= 1.5:
        raise UsageError(f"--strength must be 0 to 1.5, not {options.strength}")
    if not -5 <= options.snr <= 40:
        raise UsageError(f"--snr must be -5 to 40 dB, not {options.snr}")
    if options.room:
        room.check(options.room)
    cast(options.voices)
    library(options.sounds)


def speak(
    work: Work,
    planned: Planned,
    checked: GateReport,
    gates: bool,
    jobs: int | None,
    progress: Progress,
    alone_in: frozenset[str] = acceptance.ALONE,
) -> tuple[list[Group], GateReport]:
    """Render every sound and, with gates, check it. The next speaker repeats groups that fail, up to TAKES speakers."""
    jobs = jobs or default_jobs()
    takes = dict(work.takes) if gates else {}
    retaken: set[str] = set()
    while True:
        groups = [g for g in planned(takes) if g.id not in checked.scripts]
        work.make([g for g in groups if not retaken or g.id in retaken], jobs, progress)
        if not gates:
            return groups, checked
        heard = acceptance.sounds(checked, work.clips(groups), work.options, work.out, jobs, progress, alone_in)
        failed = (heard.scripts | {case for case, _ in heard.clips}) - checked.scripts
        able = {g.id for g in groups if any(j.speaker for j in g.jobs)} if work.retakes else set()
        retaken = {case for case in failed & able if takes.get(case, 0) + 1 < TAKES}
        if not retaken:
            return groups, heard
        takes |= {case: takes.get(case, 0) + 1 for case in retaken}


def speak_set(
    out: Path,
    source: Source,
    planned: Planned,
    write_texts: Callable[[GateReport], About],
    *,
    file: str,
    options: Options,
    jobs: int | None,
    gates: bool,
    recognise: bool = False,
    alone_in: frozenset[str] = frozenset(),
    whole: Callable[[GateReport], GateReport] = lambda checked: checked,
    progress: Progress = no_progress,
    renderer: type[Maker] = Renderer,
) -> Built:
    """Build a set that does not consist of scripts.

    `planned` returns the sounds of the set. `write_texts` writes `file` for the sounds that passed, and returns the
    texts of the datasheet. `whole` may leave out groups of which too few sounds passed. `renderer` makes the sounds.
    """
    if gates or recognise:
        require("moonshine_voice", "the offline recogniser, for the gates")
    work = Work(out, source, options, file, renderer=renderer)
    groups, checked = speak(work, planned, GateReport(ran=gates), gates, jobs, progress, alone_in)
    checked = whole(checked)
    if recognise and not gates:
        records = [acceptance.record(job, made, options) for job, made in work.clips(groups)]
        facts, _ = measure_all(records, out, jobs or default_jobs(), progress)
        checked = msgspec.structs.replace(checked, transcripts={path: f.transcript for path, f in facts.items()})
    work.put_aside(groups, checked)
    about = write_texts(checked)
    acceptance.write_report(out, checked)
    verdict = derive(work.ingredients())
    status = work.statuses()
    clips = work.finish(groups, verdict, status)
    used = used_cues(status, clips)
    write_datasheet(out, about, checked, clips, verdict, used, options)
    write_card(out, source.name, clips, groups, verdict, used, [DEFAULT])
    return work.result(clips, checked, verdict, lines=about.lines)


class Work:
    """The sounds of a set during a build: existing, missing and newly made ones."""

    def __init__(
        self, out: Path, source: Source, options: Options, *files: str, renderer: type[Maker] = Renderer
    ) -> None:
        """Check the options and open the folder. A file named in `files` identifies a set built elsewhere."""
        ready(options)
        before = open_folder(out, source.name, *files)
        for unfinished in out.rglob(".*.part"):  # left by a killed build
            unfinished.unlink(missing_ok=True)
        self.out = out
        self.source = source
        self.options = options
        self.renderer = renderer
        self.done: dict[str, Made] = {m.path.removeprefix(LEFT_OUT): m for m in before.clips} if before else {}
        self.status = before.status if before else {}
        self.takes = before.takes if before else {}
        self.made = 0
        self.kept: int | None = None  # counted for the first take
        self.seconds = self.making = 0.0
        self._began = time.monotonic()

    @property
    def retakes(self) -> bool:
        """Whether another take can differ. With a native engine (recordings, or an engine that acts cues itself), it
        cannot."""
        return not any(engine.native for engine in cast(self.options.voices).engines.values())

    def make(self, groups: Sequence[Group], jobs: int, progress: Progress) -> None:
        """Render the sounds of some groups that are missing or were made from other inputs."""
        began = time.monotonic()
        todo: list[_Task] = []
        kept = 0
        for group in groups:
            missing = {j.path for j in group.jobs if not same(self.out, self.done.get(j.path), j.made_from)}
            kept += len(group.jobs) - len(missing)
            if missing:
                todo.append((group, frozenset(missing), self.out, self.options, self.renderer))
            for path in missing:
                self.done.pop(path, None)
        for engine in cast(self.options.voices).engines.values():
            if hasattr(engine, "used_in"):  # a study notes which sets have its speakers' voices
                engine.used_in(self.out)
        self._save()  # before the first sound, so that a build killed at once can be resumed
        saved = time.monotonic()
        try:
            for count, fresh in enumerate(spread(_render, todo, jobs), 1):
                self.done |= {m.path: m for m in fresh}
                self.made += len(fresh)
                self.seconds += sum(m.seconds for m in fresh)
                if time.monotonic() - saved > _SAVE_EVERY:
                    self._save()
                    saved = time.monotonic()
                progress("scripts spoken", count, len(todo))
        finally:
            self._save()  # so that the next build keeps sounds that were finished before an error
        self.kept = kept if self.kept is None else self.kept
        self.making += time.monotonic() - began

    def clips(self, groups: Sequence[Group]) -> list[tuple[Job, Made]]:
        return [(j, self.done[j.path]) for g in groups for j in g.jobs if j.is_clip and j.path in self.done]

    def put_aside(self, groups: Sequence[Group], checked: GateReport) -> None:
        """Move sounds that failed a gate out of the set, and move sounds that now pass back into it."""
        for job in (j for g in groups for j in g.jobs if j.path in self.done):
            made = self.done[job.path]
            wanted = LEFT_OUT + job.path if checked.out(job.case_id, job.style) else job.path
            if made.path != wanted:
                target = self.out / wanted
                target.parent.mkdir(parents=True, exist_ok=True)
                (self.out / made.path).replace(target)
                self.done[job.path] = msgspec.structs.replace(made, path=wanted)
        known = {m.path for m in self.done.values()}
        for old in (self.out / LEFT_OUT).rglob("*.wav"):
            if old.relative_to(self.out).as_posix() not in known:
                old.unlink()

    def ingredients(self) -> list[Ingredient]:
        texts = Ingredient("texts", self.source.name, self.source.licence)
        return sorted({texts, OURS, *(i for m in self.done.values() if m.kept for i in m.ingredients)})

    def statuses(self, ratings: Path | None = None) -> dict[str, str]:
        """Return the validation status of each cue in this set. Listeners' ratings decide if given. Otherwise the
        embedded voice's measurement applies, if the set uses this voice at strength 1 with synthesised sounds."""
        options = self.options
        if ratings is not None:
            by_cue = from_ratings(ratings, {m.path: m.cue for m in self.done.values() if not m.reply})
        else:
            measured = options.strength == 1 and not options.sounds and not options.room and len(options.voices) == 1
            by_cue = statuses(options.voices[0] if measured else "other")
        return {slug: status.status for slug, status in by_cue.items()}

    def finish(
        self, groups: Sequence[Group], verdict: Verdict, status: dict[str, str], release: bool = False
    ) -> tuple[Made, ...]:
        """Write the final manifest, delete sounds that are no longer planned, and return the sounds in the set."""
        wanted = {j.path: j for g in groups for j in g.jobs}
        planned = {g.id for g in groups}
        for path, made in list(self.done.items()):
            if made.case_id not in self.source.ids or (made.case_id in planned and path not in wanted):
                inside(self.out, made.path).unlink(missing_ok=True)
                del self.done[path]
        self._save(verdict.licence, status, release)
        return tuple(m for path, m in sorted(self.done.items()) if path in wanted and m.kept)

    def result(self, clips: tuple[Made, ...], checked: GateReport, verdict: Verdict, **more: Any) -> Built:
        """Return the result of the build; `more` are the fields of Built that depend on the kind of set."""
        return Built(
            made=self.made,
            kept=self.kept or 0,
            sound_seconds=self.seconds,
            making_seconds=self.making,
            wall_seconds=time.monotonic() - self._began,
            clips=clips,
            gate_report=checked,
            verdict=verdict,
            **more,
        )

    def _speakers(self, clips: Sequence[Made]) -> tuple[SpeakerRecord, ...]:
        """Return what engines know about the people who are heard in the clips."""
        heard = {made.voice for made in clips if made.kept}
        engines = cast(self.options.voices).engines.values()
        known: list[SpeakerRecord] = [one for e in engines for one in getattr(e, "about_speakers", tuple)()]
        return tuple(one for one in known if one.name in heard)

    def _save(self, licence: str = "", status: dict[str, str] | None = None, release: bool = False) -> None:
        clips = tuple(m for _, m in sorted(self.done.items()))
        status = self.status if status is None else status
        used = tuple(self.ingredients())
        licence = licence or derive(used).licence
        manifest = Manifest(
            self.source.name, __version__, RECIPES, licence, self.options, release, status, used, clips,
            self._speakers(clips),
        )  # fmt: skip
        write_json(self.out / FILE, manifest)


_Task = tuple[Group, frozenset[str], Path, Options, type[Maker]]  # the set holds the paths of the sounds to make


def _render(task: _Task) -> list[Made]:
    """Render the missing sounds of one group. Runs in a worker process."""
    group, missing, out, options, maker = task
    renderer = maker(group, options)
    return [_written(job, renderer.make(job), out) for job in group.jobs if job.path in missing]


def _written(job: Job, rendered: Rendered, out: Path) -> Made:
    data = audio.encode_wav(rendered.samples, RATE)
    write(out / job.path, data)
    x = rendered.samples
    rms = float(np.sqrt(np.mean(x**2))) if x.size else 0.0
    return Made(
        path=job.path,
        sha256=hashlib.sha256(data).hexdigest(),
        seconds=round(len(x) / RATE, 4),
        dbfs=round(20 * float(np.log10(rms + 1e-9)), 2),
        peak=round(float(np.abs(x).max(initial=0.0)), 4),
        case_id=job.case_id,
        style=job.style,
        voice=rendered.voice,
        made_from=job.made_from,
        cue=job.cue,
        also=job.also,
        manner=job.manner,
        scene=job.scene,
        take=job.take,
        recipe=rendered.recipe,
        reply=job.voice_style,
        ingredients=rendered.ingredients,
    )
