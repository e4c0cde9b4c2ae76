"""A new study from runs: which replies it has, how long it takes a person, and how precise it will be."""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from overtone.errors import DataError, UsageError
from overtone.judges import rubric as rubrics
from overtone.paths import shown, write_whole
from overtone.studio import designs, replies
from overtone.studio.designs import Unit
from overtone.studio.replies import RunReplies
from overtone.studio.study import CONSENT, Source, text_of

SESSION = 12  # rated replies or pairs per person
VOTES = 3  # more clips with three votes compare systems better than more votes per clip
OVERLAP = 2
CHECKS = {"training": 2, "traps": 1, "gold": 1}
SECONDS_PER_QUESTION = 8.0
SETUP_SECONDS = 180.0
SPREAD = {"acr": 1.0, "ab": 0.5}  # assumed standard deviation of one answer, in points or as a share


class Plan(Struct, frozen=True):
    """The size, cost and precision of a study, reported before anyone takes part."""

    units: int
    groups: int
    systems: tuple[str, ...]
    people: int  # needed for all votes
    minutes: float  # per person
    half_width: float  # expected, of a difference between two systems
    notes: tuple[str, ...] = ()


def create(
    path: Path, runs: Sequence[Path], *, design: str, rubric_names: Sequence[str], raters: int, title: str = "",
    session: int = SESSION, votes: int = VOTES, limit: int = 0, seed: int = 0, shows: Sequence[str] = (),
) -> Plan:  # fmt: skip
    """Write a study file and return its plan. Raises UsageError or DataError, and then writes nothing."""
    if path.suffix != ".toml":
        raise UsageError(f"{shown(str(path))}: a study is a .toml file; write e.g. {shown(path.stem or 'study')}.toml")
    if path.exists():
        raise UsageError(f"{shown(str(path))} exists; choose another name, or delete it to start again")
    found = designs.find(design)
    names = list(rubric_names) or [found.rubric]
    asked = [rubrics.load(name) for name in names]
    for one in asked:
        found.check_rubric(one)
    sources = [replies.read(run) for run in runs]
    units = found.units(sources)
    _check_runs(sources, found.runs, design, units)
    chosen = _limited(units, limit)
    groups = len({unit.group for unit in chosen})
    reserve = CHECKS["training"] + CHECKS["gold"]
    if groups < 1 + reserve:
        raise DataError(
            f"the runs have {groups} different scripts with spoken replies; a session needs "
            f"{1 + reserve}: one to rate, {CHECKS['training']} for training and {CHECKS['gold']} "
            "for a gold question. Run more items"
        )
    size = min(session, groups - reserve)
    notes = [] if size == session else [f"a session has {size} questions, because there are {groups} scripts"]
    notes += [f"{run.name}: {run.silent} answered conversations have no audio" for run in sources if run.silent]
    spoken = [Source(name=run.name, path=_relative(run.folder, path), gain_db=_gain(run)) for run in sources]
    values = {
        "id": secrets.token_hex(6), "title": title or "A listening test", "design": design, "rubrics": names,
        "raters": raters, "session": size, "votes": votes, "overlap": min(OVERLAP, size), "units": limit,
        "seed": seed, "shows": list(shows), "consent": CONSENT, "url": f"sqlite:{path.stem}.db", **CHECKS,
    }  # fmt: skip
    write_whole(path, text_of(values, spoken).encode())
    questions = sum(len(one.dimensions) for one in asked)
    return _plan(chosen, size, votes, raters, questions, design, notes)


def _check_runs(runs: Sequence[RunReplies], least: int, design: str, units: Sequence[Unit]) -> None:
    names = [run.name for run in runs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"two runs are called {shown(twice)!r}; a study needs runs with different labels")
    if len(runs) < least:
        raise UsageError(f"the design {design} needs at least {least} runs; name them with --from RUN RUN")
    for run in runs:
        if not run.replies:
            why = f"none of its {run.silent} answered conversations" if run.silent else "it has no answered one that"
            raise DataError(
                f"{shown(str(run.folder))}: {why} has audio; people need spoken replies. Use a model that speaks"
            )
    if not units:
        raise DataError("the runs share no spoken reply to the same request; compare runs of the same benchmark")


def _limited(units: list[Unit], limit: int) -> list[Unit]:
    return units[:limit] if limit else units


def _gain(run: RunReplies) -> float:
    return replies.gain_db([reply.sound for reply in run.replies])


def _relative(folder: Path, study: Path) -> str:
    """Return a run's path from the study's folder, so that both can be moved together."""
    try:
        return Path(os.path.relpath(folder.resolve(), study.resolve().parent)).as_posix()
    except ValueError:  # another drive on Windows
        return folder.resolve().as_posix()


def _plan(
    units: Sequence[Unit], session: int, votes: int, raters: int, questions: int, design: str, notes: Sequence[str]
) -> Plan:
    heard = [sound for unit in units for reply in unit.replies for sound in (reply.sound, reply.clip) if sound]
    per_unit = replies.seconds(heard) / len(units) + SECONDS_PER_QUESTION * questions
    extra = sum(CHECKS.values())
    systems = sorted({unit.system for unit in units})
    answers = min(raters * session, len(units) * votes)
    per_system = max(answers / len(systems), 1.0)
    arms = 1 if design == "ab" else 2
    return Plan(
        units=len(units),
        groups=len({unit.group for unit in units}),
        systems=tuple(systems),
        people=math.ceil(len(units) * votes / session),
        minutes=(SETUP_SECONDS + (session + extra) * per_unit) / 60,
        half_width=1.96 * SPREAD[design] * math.sqrt(arms / per_system),
        notes=tuple(notes),
    )
