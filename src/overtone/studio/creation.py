"""Create a study from runs, and state which replies it has, how long it takes a person, and how precise it will be."""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from overtone.cues import cues_in
from overtone.errors import DataError, UsageError
from overtone.judges import rubric as rubrics
from overtone.paths import shown, write_whole
from overtone.studio import contents, designs, precision, replies, study_checks, user_clips
from overtone.studio.designs import Design, Spread, Unit
from overtone.studio.fields import AnyField
from overtone.studio.precision import Sample
from overtone.studio.replies import RunReplies, Sound
from overtone.studio.study import Checks, Database, Loudness, MushraSettings, People, Source, SourceKind, Study
from overtone.studio.study_file import CONSENT, WARNING, text_of
from overtone.text import count

RATERS = 20
SESSION = 12  # rated replies or pairs per person
VOTES = 3  # more clips with three votes compare systems better than more votes per clip
OVERLAP = 2


class Plan(Struct, frozen=True, kw_only=True):
    """The size, cost and precision of a study, reported before anyone takes part."""

    units: int
    noun: str
    groups: int
    systems: tuple[str, ...]
    compared: str = "systems"  # what these are called; "styles" in a study of clips
    session: int
    people: int  # needed for all votes
    minutes: float  # per person
    spread: Spread | None = None  # assumed; None: the design does not compare systems
    sample: Sample | None = None
    half_width: float | None = None  # expected, of a difference between two systems
    notes: tuple[str, ...] = ()


def create(
    path: Path, sources: Sequence[Path], *, design: str, rubric_names: Sequence[str] = (), raters: int = RATERS,
    title: str = "", session: int = SESSION, votes: int = VOTES, limit: int = 0, seed: int = 0,
    shows: Sequence[str] = (), of: Literal["replies", "clips"] = "replies",
    reference: Literal["reply", "clip"] = "reply", one_question: bool = False,
) -> Plan:  # fmt: skip
    """Write a study file and return its plan. Raises UsageError or DataError; nothing is written then."""
    new_path(path)
    kind = designs.find(design)
    names = tuple(rubric_names) or ((kind.rubric,) if kind.rubric else ())
    asked = [rubrics.load(name) for name in names]
    designs.check_rubrics(design, asked)
    if of == "clips" and "set" not in kind.kinds:
        raise UsageError(f"--of clips belongs to the design label; {design} asks about replies")
    draft = Study(
        id=secrets.token_hex(6), title=title or "A listening test", design=design, rubrics=names, of=of,
        raters=raters, session=session, votes=votes, units=limit, seed=seed, shows=tuple(shows),
        mushra=MushraSettings(reference=reference), one_question_per_person=one_question,
        people=People(consent=CONSENT), store=Database(url=f"sqlite:{path.stem}.db"), sources=(), path=path.absolute(),
    )  # fmt: skip
    if not designs.has_gold(kind, asked, draft):
        draft = replace(draft, checks=Checks(gold=0))
    read = [contents.read_source(draft, _kind(folder, draft), folder) for folder in sources]
    _check_runs(read, kind, design)
    fields = kind.fields(asked, draft)
    units, notes = _units(kind, draft, read, fields)
    size = _session(units, draft, kind, notes)
    final = replace(
        draft, session=size, overlap=min(OVERLAP, size), sources=tuple(_source(run, path) for run in read),
        people=replace(draft.people, warning=WARNING) if _distressing(units, draft) else draft.people,
        loudness=Loudness(clips_gain_db=_gain_of_clips(units)),
        mushra=MushraSettings(reference=reference, gain_db=_gain_of_references(units)),
    )  # fmt: skip
    if mistake := study_checks.mistake(final):
        raise UsageError(mistake.text)
    write_whole(path, text_of(final).encode())
    return _plan(units, final, kind, fields, notes)


def new_path(path: Path) -> None:
    """Raise UsageError if a study file cannot be written to this path, e.g. because the file exists."""
    if path.suffix != ".toml":
        raise UsageError(f"{shown(str(path))}: a study is a .toml file; write e.g. {shown(path.stem or 'study')}.toml")
    if path.exists():
        raise UsageError(f"{shown(str(path))} exists; choose another name, or delete it to start again")


def _kind(folder: Path, study: Study) -> SourceKind:
    return "set" if study.of == "clips" and user_clips.is_set(folder) else "run"


def _check_runs(runs: Sequence[RunReplies], kind: Design, design: str) -> None:
    names = [run.name for run in runs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"two runs are called {shown(twice)!r}; a study needs runs with different labels")
    benchmarks = {run.benchmark: run.name for run in runs}
    if len(benchmarks) > 1:
        each = ", ".join(f"{shown(run.name)} of {shown(run.benchmark)}" for run in runs)
        raise UsageError(f"the runs are of different benchmarks ({each}); a study compares systems on the same clips")
    if len(runs) < kind.runs:
        raise UsageError(f"the design {design} needs at least {kind.runs} runs; name them with --from RUN RUN")


def _units(
    kind: Design, study: Study, runs: Sequence[RunReplies], fields: Sequence[AnyField]
) -> tuple[tuple[Unit, ...], list[str]]:
    """Return the units that people can hear and be asked about, and notes on what was left out."""
    for run in runs if study.of == "replies" else ():
        if not run.replies:
            why = f"none of its {run.silent} answered conversations" if run.silent else "it has no answered one that"
            raise DataError(
                f"{shown(str(run.folder))}: {why} has audio; people need spoken replies. Use a model that speaks"
            )
    if not (every := kind.units(study, runs)):
        raise DataError("the runs share no spoken reply to the same request; compare runs of the same benchmark")
    askable = contents.askable(every, fields, study)
    if not askable:
        raise DataError(f"no question applies to the style of any of the {len(every)} {kind.noun}; use another rubric")
    which = "a question does not apply" if study.one_question_per_person else "no question applies"
    out = len(every) - len(askable)
    notes = [f"{out} of {len(every)} {kind.noun} are left out, because {which} to their style"] if out else []
    notes += [f"{run.name}: {run.silent} answered conversations have no audio" for run in runs if run.silent]
    units = contents.chosen(askable, study)
    _check_sounds(units)
    return units, notes


def _check_sounds(units: Sequence[Unit]) -> None:
    """Raise DataError for a sound of the study that is missing or has changed since the run."""
    for sound in {sound.path: sound for unit in units for sound in _sounds(unit)}.values():
        replies.check(sound)


def _sounds(unit: Unit) -> Iterator[Sound]:
    yield from unit.sounds.values()
    for reply in unit.replies:
        yield reply.sound
        if reply.clip is not None:
            yield reply.clip


def _session(units: Sequence[Unit], study: Study, kind: Design, notes: list[str]) -> int:
    """Return how many units a person gets. Adds a note if there are fewer than asked for."""
    reserve = study.checks.training + study.checks.gold
    groups = len({unit.group for unit in units})
    if groups < 1 + reserve:
        raise DataError(
            f"the runs have {groups} different scripts with sound; a session needs {1 + reserve}: one to rate, "
            f"{study.checks.training} for training and {study.checks.gold} for a gold question. Run more items"
        )
    size = min(study.session, groups - reserve)
    if study.raters < study.votes:
        people = count(study.raters, "person", "people")
        notes.append(f"{people} cannot give {study.votes} answers, because a person answers each screen once")
    if size < study.session:
        notes.append(f"a session has {size} {kind.noun}, because there are {groups} scripts")
    return size


def _distressing(units: Sequence[Unit], study: Study) -> bool:
    return any(set(cues_in(designs.texts(unit).get("cue", ""))) & set(study.care.skippable) for unit in units)


def _source(run: RunReplies, study: Path) -> Source:
    gain = replies.gain_db([*(reply.sound for reply in run.replies), *(clip.sound for clip in run.clips)])
    return Source(kind=run.kind, name=run.name, path=relative(run.folder, study), gain_db=gain)


def _gain_of_clips(units: Sequence[Unit]) -> float:
    """Return one gain for everything that users said."""
    said = {reply.clip.path: reply.clip for unit in units for reply in unit.replies if reply.clip}
    return replies.gain_db(list(said.values())) if said else 0.0


def _gain_of_references(units: Sequence[Unit]) -> float:
    references = {sound.path: sound for unit in units for sound in unit.sounds.values() if unit.replies}
    return replies.gain_db(list(references.values())) if references else 0.0


def relative(folder: Path, study: Path) -> str:
    """Return a run's path relative to the study's folder, so that the two can be moved together."""
    try:
        return Path(os.path.relpath(folder.resolve(), study.resolve().parent)).as_posix()
    except ValueError:  # another drive on Windows
        return folder.resolve().as_posix()


def _plan(units: Sequence[Unit], study: Study, kind: Design, fields: Sequence[AnyField], notes: Sequence[str]) -> Plan:
    asked = fields[:1] if study.one_question_per_person else fields
    heard = [one.sound for unit in units for one in designs.played(kind, unit, study)]
    per_screen = precision.screen_seconds(replies.seconds(heard) / len(units), asked, kind.replays)
    extra = study.checks.training + study.checks.traps + study.checks.gold
    plan = Plan(
        units=len(units),
        noun=kind.noun,
        groups=len({unit.group for unit in units}),
        systems=tuple(sorted({unit.system for unit in units})),
        compared="styles" if study.of == "clips" else "systems",
        session=study.session,
        people=math.ceil(len(units) * study.votes * _groups(study, fields) / study.session),
        minutes=(precision.SETUP_SECONDS + (study.session + extra) * per_screen) / 60,
        notes=tuple(notes),
    )
    if kind.spread is None:
        return plan
    sample = precision.sample(units, study.raters // _groups(study, fields) or 1, study.session, study.votes)
    spread = kind.spread.on(precision.span(fields)) if kind.spread.unit == "points" else kind.spread
    width = precision.half_width(spread, items=sample.items, raters=sample.raters, answers=sample.answers)
    return replace(
        plan, spread=spread, sample=sample, half_width=width, notes=(*plan.notes, _advice(plan, spread, sample))
    )


def _groups(study: Study, fields: Sequence[AnyField]) -> int:
    return len(fields) if study.one_question_per_person else 1


def _advice(plan: Plan, spread: Spread, sample: Sample) -> str:
    """Return what makes a comparison more precise with the same number of answers."""
    answers, many = max(round(sample.answers), 10 * VOTES), 10
    scripts = {votes: answers // votes for votes in (VOTES, many)}
    widths = {
        votes: precision.half_width(spread, items=items, raters=sample.raters, answers=answers)
        for votes, items in scripts.items()
    }
    each = (f"{scripts[votes]} scripts with {votes} votes give ± {widths[votes]:.2g}" for votes in (VOTES, many))
    return f"more {plan.noun} compare {plan.compared} better than more votes: {answers} answers on {', on '.join(each)}"
