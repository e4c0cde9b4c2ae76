"""The folder of a study: its study file, what it was made of, and the results of its jobs. Nothing here needs torch.

study.toml   the study file; every result names its SHA-256
study.json   the hashes of study file, data and model, which must be the same when the study is resumed
key.npz      the answers that results are compared with
JOB.npz      the predictions of one finished job
analysis.json, report.html    all numbers, and the page that shows them
state/       checkpoints of unfinished jobs, removed when all jobs are done
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from overtone import locks
from overtone.errors import DataError, StoreError
from overtone.paths import shown, write_whole

from .design import CONTROL_SPLIT, TOML, Job, Study, job_rows
from .inputs import Inputs

STUDY_FILE, DESCRIPTION, LOCK = "study.toml", "study.json", "lock"
NEEDED = {"open": ("open", "--open"), "dream": ("dream", "--dream"), "nats": ("perplexity", "--dream")}
_NAMES = {"study": "study file", "data": "EmoBank, DREAM or Overtone-Open", "model_sha256": "--model", "lora": "--lora"}


class Description(Struct, frozen=True):
    """The study file, the data and the model behind the results in a folder."""

    study: str  # SHA-256 of the study file
    data: str  # SHA-256 of the inputs
    model: str  # as it was given
    model_sha256: str
    lora: bool | None = None


def read_study(folder: Path, given: Path | None) -> Study:
    """Return the study of a folder: the given file, or else the folder's own, or else the package's."""
    own = folder / STUDY_FILE
    return Study.read(given or (own if own.is_file() else TOML))


def check(study: Study, inputs: Inputs, seeds: int | None) -> list[Job]:
    """Return the study's jobs in the order in which they run. Raises DataError for data that the study cannot use."""
    for test in study.settings["primary"]:
        needs, flag = NEEDED.get(test["outcome"].split(" ")[0], ("emobank", "--data"))
        if needs not in inputs.outcomes:
            raise DataError(
                f"the study file has the primary test {test['outcome']!r}, which needs {flag}. Give it, or remove the "
                "test from a copy of the study file and give that as --study"
            )
    jobs = planned(study, inputs.outcomes, sorted(set(inputs.bank.genres)), seeds)
    for job in jobs:
        learnt, held = job_rows(inputs.bank, job)
        if job.arm != "base" and min(len(learnt), len(held)) < 2:
            where = " ".join(filter(None, (job.split, job.part)))
            raise DataError(
                f"--data: the split {where} has {len(learnt)} sentences to learn and {len(held)} held out. Every "
                "genre, every fold of documents and the official test need at least 2"
            )
    return jobs


def planned(study: Study, outcomes: set[str], genres: Sequence[str], seeds: int | None = None) -> list[Job]:
    """Return all jobs that these outcomes allow: first the base model, then held-out documents and genres, then
    controls, then the rest."""
    jobs = [job for group in study.jobs(genres, seeds) for job in group if not job.tuned or "tuned" in outcomes]
    if "open" in outcomes:
        jobs += [job for group in study.control_jobs(seeds) for job in group]
    return sorted(jobs, key=_rank)


def _rank(job: Job) -> int:
    if job.split == CONTROL_SPLIT:
        return 2
    if job.arm == "base" and not job.tuned:
        return 0
    return 4 if job.tuned else 3 if job.split == "official" else 1


@contextlib.contextmanager
def claimed(folder: Path, study: Study, now: Description, source: Path | None) -> Iterator[None]:
    """Reserve a folder for one study while this context is open.

    A new folder gets the study file and the description. `source` is the study file that the user gave. Raises
    StoreError if the folder holds another study or other files, or if another process is running the study.
    """
    where = shown(str(folder))
    _check_same(folder, now)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("a+") as file:
        if not locks.lock(file):
            raise StoreError(f"{where}: another process is running this study. Wait for it, or end it")
        if not (folder / DESCRIPTION).is_file():
            write_whole(folder / STUDY_FILE, (source or TOML).read_bytes())
            write_whole(folder / DESCRIPTION, msgspec.json.format(msgspec.json.encode(now), indent=2) + b"\n")
        yield


def _check_same(folder: Path, now: Description) -> None:
    where = shown(str(folder))
    path = folder / DESCRIPTION
    if not path.is_file():
        left = {STUDY_FILE, LOCK}  # of a study that was killed at its start
        if folder.exists() and (not folder.is_dir() or {entry.name for entry in folder.iterdir()} - left):
            raise StoreError(f"{where}: not empty and not a study; choose another --out")
        return
    try:
        old = msgspec.json.decode(path.read_bytes(), type=Description)
    except msgspec.MsgspecError as error:
        raise StoreError(f"{shown(str(path))}: damaged ({error}); choose another --out") from None
    for field, name in _NAMES.items():
        before, after = getattr(old, field), getattr(now, field)
        if before != after:
            raise StoreError(
                f"{where} has the results of a different {name} ({_short(before)}, now {_short(after)}). A study is "
                "fixed before its runs: use the same, or choose another --out"
            )


def _short(value: str | bool | None) -> str:
    return f"SHA-256 {value[:12]}…" if isinstance(value, str) else {True: "yes", False: "no", None: "by size"}[value]
