"""Training runs that are each asked the same questions, several at once, as far as the time goes.

A job is trained and asked in processes of its own. What it said stays as OUT/NAME.jsonl.gz, its logs beside it, and its
weights go unless they are kept. The same jobs again do what is not there yet.
"""

from __future__ import annotations

import gzip
import math
import shutil
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct

from overtone.errors import EXIT_BUDGET

FIRST = 150.0  # seconds that a job is thought to take before one was seen


class Job(Struct, frozen=True):
    """One run: the flags of `overtone train echat` and of `overtone evaluate echat` that are its own."""

    name: str
    training: tuple[str, ...]
    asking: tuple[str, ...]


class Result(Struct, frozen=True):
    """How a job ended: done, skipped (there before), late (no time for it), stopped (its time was up) or failed."""

    job: Job
    how: str
    training: float = 0.0
    asking: float = 0.0


class Limits(Struct, frozen=True):
    """Where jobs work, and how long."""

    out: Path
    minutes: float = math.inf
    parallel: int = 1
    keep: bool = False  # the weights


class Clock:
    """How much time is left, and how long a job took so far."""

    def __init__(self, minutes: float) -> None:
        self.end = time.monotonic() + 60 * minutes
        self.longest = 0.0

    @property
    def left(self) -> float:
        return self.end - time.monotonic()

    def enough(self) -> bool:
        return self.left > (self.longest or FIRST)


def go(jobs: Sequence[Job], limits: Limits, bundle: Path | None = None, clock: Clock | None = None) -> list[Result]:
    """Do all jobs, some at once, as far as the time goes; `clock` is that of earlier jobs."""
    limits.out.mkdir(parents=True, exist_ok=True)
    clock = clock or Clock(limits.minutes)
    lock = threading.Lock()

    def one(job: Job) -> Result:
        result = _one(job, limits, clock)
        with lock:
            if bundle and result.how == "done":
                write_bundle(limits.out, bundle)
        print(f"{job.name}: {result.how}", flush=True)
        return result

    with ThreadPoolExecutor(limits.parallel) as pool:
        return list(pool.map(one, jobs))


def report(results: Sequence[Result]) -> int:
    """Print how jobs ended; return 1 if one failed."""
    for result in results:
        print(f"{result.job.name:20} {result.how:8} {result.training:6.0f} s training {result.asking:6.0f} s asking")
    return int(any(result.how == "failed" for result in results))


def predictions_of(name: str, out: Path) -> Path:
    return out / f"{name}.jsonl.gz"


def _one(job: Job, limits: Limits, clock: Clock) -> Result:
    said = predictions_of(job.name, limits.out)
    if said.is_file():
        return Result(job, "skipped")
    if not clock.enough():
        return Result(job, "late")
    began = time.monotonic()
    folder = limits.out / "runs" / job.name
    code = call(train_words(job, folder, clock.left / 60), limits.out / f"{job.name}.train.log")
    trained = time.monotonic() - began
    if code:
        return Result(job, "stopped" if code == EXIT_BUDGET else "failed", trained)
    words = ["evaluate", "echat", str(folder), "--out", str(said), *job.asking]
    code = call(words, limits.out / f"{job.name}.evaluate.log")
    asked = time.monotonic() - began - trained
    if code:
        return Result(job, "failed", trained, asked)
    (limits.out / f"{job.name}.steps.jsonl.gz").write_bytes(gzip.compress(steps_of(folder), mtime=0))
    if not limits.keep:
        shutil.rmtree(folder)
    clock.longest = max(clock.longest, trained + asked)
    return Result(job, "done", trained, asked)


def train_words(job: Job, folder: Path, minutes: float) -> list[str]:
    """The command that trains a job; a folder that was begun is resumed."""
    words = ["train", "echat", "--out", str(folder), "--resume", "--samples", "0"]  # nobody looks at samples
    if math.isfinite(minutes):
        words += ["--minutes", f"{minutes:.2f}"]
    return [*words, *job.training]


def call(words: Sequence[str], log: Path) -> int:
    """Run our command line in a process of its own; its output goes to a file, and its end is shown when it fails."""
    with log.open("ab") as file:
        file.write(f"$ overtone {' '.join(words)}\n".encode())
        file.flush()
        code = subprocess.run([sys.executable, "-m", "overtone", *words], stdout=file, stderr=file, check=False)
    if code.returncode not in (0, EXIT_BUDGET):
        print(f"! {log}:", *log.read_text(errors="replace").splitlines()[-15:], sep="\n  ", flush=True)
    return code.returncode


def steps_of(folder: Path) -> bytes:
    """The logs of a run's stages, one after the other; each is headed by its name."""
    parts = []
    for log in sorted(folder.glob("stage-*/log.jsonl")):
        parts += [f'{{"stage":"{log.parent.name.removeprefix("stage-")}"}}\n'.encode(), log.read_bytes()]
    return b"".join(parts)


def write_bundle(out: Path, bundle: Path) -> None:
    """Everything but weights, in one file that is whole at any time."""
    part = bundle.with_name(f".{bundle.name}.part")
    with tarfile.open(part, "w") as tar:
        for path in sorted(p for p in out.iterdir() if p.is_file() and not p.name.startswith(".")):
            if path.absolute() not in (bundle.absolute(), part.absolute()):
                tar.add(path, arcname=path.name)
    part.replace(bundle)
