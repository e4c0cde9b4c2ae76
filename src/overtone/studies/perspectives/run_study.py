"""Run all jobs of a study, one after the other, until they are done or the time is up, then write its report.

The same call resumes it.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from overtone.echat.learn import distributed
from overtone.echat.learn.training_loop import stop_on_sigterm
from overtone.errors import DataError
from overtone.paths import user_path
from overtone.studies.perspectives import report_tables, results, study_report
from overtone.studies.perspectives.answers import KEY_FILE, Answers, Key
from overtone.studies.perspectives.design import Job, Study
from overtone.studies.perspectives.inputs import Inputs, read_inputs
from overtone.studies.perspectives.language_model import fingerprint, open_model
from overtone.studies.perspectives.one_job import Place, run_at, tokens_of
from overtone.studies.perspectives.recipe import Clock, TimeUp
from overtone.studies.perspectives.study_folder import Description, check, claimed, read_study
from overtone.studies.perspectives.tokens import Tokens


class Settings(Struct, frozen=True):
    """The user's settings of a study. None means the study file's own value."""

    data: Path
    out: Path
    model: str = "smollm2"
    dream: Path | None = None
    open: Path | None = None
    study: Path | None = None
    seeds: int | None = None
    minutes: float = math.inf
    save_minutes: float = 5.0
    device: str = "auto"
    lora: bool | None = None


def run(settings: Settings, say: Callable[[str], None]) -> bool:
    """Run the jobs that are left and write one file of predictions for each, with the answer key beside them.

    When all are done, the report is written. Return False if the time was up; the same call continues. Raises
    UsageError, DataError or StoreError.
    """
    deadline = time.monotonic() + 60 * settings.minutes
    out, given = user_path(settings.out), settings.study and user_path(settings.study)
    study = read_study(out, given)
    inputs = read_inputs(
        user_path(settings.data),
        settings.dream and user_path(settings.dream),
        settings.open and user_path(settings.open),
    )
    jobs = check(study, inputs, settings.seeds)
    now = Description(study.sha256, inputs.sha256, settings.model, fingerprint(settings.model), settings.lora)
    world = distributed.enter(settings.device)
    try:
        with stop_on_sigterm() as terminated:
            shown = say if world.first else lambda line: None
            clock = Clock(deadline, 60 * settings.save_minutes, shown, should_stop=terminated.is_set)
            place = Place(world, out, clock, settings.lora)
            if not world.first:
                world.wait()  # until the first process has claimed the folder
                return _run_jobs(jobs, study, inputs, settings.model, place)
            with claimed(out, study, now, given):
                world.wait()
                done = _run_jobs(jobs, study, inputs, settings.model, place)
                if done:
                    _report(out, say)
                return done
    finally:
        world.leave()


def _run_jobs(jobs: Sequence[Job], study: Study, inputs: Inputs, model: str, place: Place) -> bool:
    world, clock = place.world, place.clock
    done = results.read(place.out, study, inputs.sha256)
    left = [job for job in jobs if job not in done]
    clock.say(f"{len(jobs) - len(left)} of {len(jobs)} jobs are done, seeds {_seeds(jobs)}")
    if world.first and not (place.out / KEY_FILE).is_file():
        opened = open_model(model, lora=False)
        answer_key(inputs, tokens_of(inputs, opened)).write(place.out / KEY_FILE)
        del opened
    world.wait()
    for number, job in enumerate(left, 1 + len(jobs) - len(left)):
        if world.agree(time.monotonic() > clock.stop or clock.should_stop()):
            clock.say(f"stopped before job {number} of {len(jobs)}; continue with the same command")
            return False
        clock.say(f"[{number}/{len(jobs)}] {job.key}")
        began = time.monotonic()
        try:
            run_at(place, job, study, inputs, model)
        except TimeUp as reason:
            clock.say(f"{reason} of {job.key}; continue with the same command")
            return False
        except ValueError as error:  # too few rows that are short enough
            raise DataError(
                f"{job.key}: {error}. Use a smaller `rows` or a larger `longest` in a copy of the study file, given as "
                "--study, with another --out"
            ) from error
        clock.say(f"  {time.monotonic() - began:.1f} s")
    if world.first:
        shutil.rmtree(place.state, ignore_errors=True)
    return True


def _report(out: Path, say: Callable[[str], None]) -> None:
    analysis = study_report.analysis_of(out)
    page = study_report.write_report(analysis, out / study_report.REPORT)
    say(report_tables.answer(analysis))
    say(f"report: {page}")


def _seeds(jobs: Sequence[Job]) -> str:
    return ", ".join(map(str, sorted({job.seed for job in jobs})))


def answer_key(inputs: Inputs, tokens: Tokens) -> Key:
    """Return the labels, right options and clusters that the results of these inputs are analysed with."""
    answers = {
        name: Answers.of(
            [list(map(len, options)) for options in questions.options],
            questions.gold,
            [str(about["cluster"]) for about in questions.about],
            [about.get("level") or 0 for about in questions.about],
            inputs.baselines.get(name),
        )
        for name, questions in tokens.questions.items()
        if name in ("open", "dream")
    }
    return Key.of(inputs.sha256, inputs.bank, answers)
