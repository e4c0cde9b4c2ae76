"""The ablation of OSUM-EChat, small: four arms, three seeds, the same optimiser steps and target tokens in each.

    python -m experiments.echat.ablation --data PACK/train --data PACK/style --data PACK/words --data PACK/aloud \\
        --data PACK/dev --data plain.jsonl --test PACK/seen --test PACK/recipe --test PACK/engine --test REAL/ravdess \\
        --test REAL/nonverbal --test REAL/speechocean --test EVAL --out out/ablation
    overtone evaluate counts out/ablation/*-[0-9].jsonl.gz --listen --out experiments/echat/runs
    overtone evaluate scores experiments/echat/runs/*.json.gz --out experiments/echat/scores.json

A run is trained and asked in processes of its own; what it said stays as OUT/ARM-SEED.jsonl.gz, its logs beside it, and
its weights go unless --keep. The same command again does what is not there yet.
"""

from __future__ import annotations

import argparse
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

from overtone.echat.exam.answer_file import ARMS
from overtone.errors import EXIT_BUDGET, UsageError
from overtone.spec import suggest

LEAVES_OUT = {name: left for left, name in ARMS.items()}
FIRST = 150.0  # seconds that a run is thought to take before one was seen


class Run(Struct, frozen=True):
    """One arm with one seed."""

    arm: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.arm}-{self.seed}"


class Result(Struct, frozen=True):
    """How a run ended: done, skipped (there before), late (no time for it), stopped (its time was up) or failed."""

    run: Run
    how: str
    training: float = 0.0
    asking: float = 0.0


class Settings(Struct, frozen=True):
    data: tuple[Path, ...]
    tests: tuple[Path, ...]
    out: Path
    preset: str = "short"
    scale: float = 1.0
    minutes: float = math.inf
    parallel: int = 1
    training: tuple[str, ...] = ()  # more flags of `overtone train`
    asking: tuple[str, ...] = ()  # and of `overtone evaluate`
    keep: bool = False


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", metavar="PACK", type=Path, action="append", required=True, help="to learn from")
    parser.add_argument("--test", metavar="PACK", type=Path, action="append", required=True, help="to be asked")
    parser.add_argument("--out", metavar="DIR", type=Path, required=True)
    parser.add_argument("--preset", default="short")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the preset's steps (1)")
    parser.add_argument("--arms", metavar="NAME,…", default=",".join(LEAVES_OUT))
    parser.add_argument("--seeds", metavar="N,…", default="0,1,2")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin nothing that would take longer")
    parser.add_argument("--parallel", type=int, default=1, help="runs at once")
    parser.add_argument("--train", metavar="FLAGS", default="", help="more flags of `overtone train echat`")
    parser.add_argument("--evaluate", metavar="FLAGS", default="--spoken 0", help="more of `overtone evaluate echat`")
    parser.add_argument("--keep", action="store_true", help="keep the weights")
    parser.add_argument("--bundle", metavar="FILE", type=Path, help="all results so far in one tar, after each run")
    args = parser.parse_args(argv)
    settings = Settings(
        tuple(args.data), tuple(args.test), args.out, args.preset, args.scale, args.minutes,
        args.parallel, tuple(args.train.split()), tuple(args.evaluate.split()), args.keep,
    )  # fmt: skip
    runs = planned(args.arms.split(","), [int(seed) for seed in args.seeds.split(",")])
    results = go(runs, settings, args.bundle)
    for result in results:
        print(f"{result.run.name:20} {result.how:8} {result.training:6.0f} s training {result.asking:6.0f} s asking")
    return int(any(result.how == "failed" for result in results))


def planned(arms: Sequence[str], seeds: Sequence[int]) -> list[Run]:
    """Every arm of a seed before the next seed: stopped at any time, the arms have about as many runs."""
    for arm in arms:
        if arm not in LEAVES_OUT:
            raise UsageError(f"--arms {arm!r} is unknown{suggest(arm, LEAVES_OUT)}")
    return [Run(arm, seed) for seed in seeds for arm in arms]


def go(runs: Sequence[Run], settings: Settings, bundle: Path | None = None) -> list[Result]:
    """All runs, some at once, as far as the time goes."""
    settings.out.mkdir(parents=True, exist_ok=True)
    clock = Clock(settings.minutes)
    lock = threading.Lock()

    def one(run: Run) -> Result:
        result = _one(run, settings, clock)
        with lock:
            if bundle and result.how == "done":
                write_bundle(settings.out, bundle)
        print(f"{run.name}: {result.how}", flush=True)
        return result

    with ThreadPoolExecutor(settings.parallel) as pool:
        return list(pool.map(one, runs))


class Clock:
    """How much time is left, and how long a run took so far."""

    def __init__(self, minutes: float) -> None:
        self.end = time.monotonic() + 60 * minutes
        self.longest = 0.0

    @property
    def left(self) -> float:
        return self.end - time.monotonic()

    def enough(self) -> bool:
        return self.left > (self.longest or FIRST)


def predictions_of(run: Run, out: Path) -> Path:
    return out / f"{run.name}.jsonl.gz"


def _one(run: Run, settings: Settings, clock: Clock) -> Result:
    said = predictions_of(run, settings.out)
    if said.is_file():
        return Result(run, "skipped")
    if not clock.enough():
        return Result(run, "late")
    began = time.monotonic()
    folder = settings.out / "runs" / run.name
    code = call(train_words(run, settings, folder, clock.left / 60), settings.out / f"{run.name}.train.log")
    trained = time.monotonic() - began
    if code:
        return Result(run, "stopped" if code == EXIT_BUDGET else "failed", trained)
    code = call(evaluate_words(run, settings, folder, said), settings.out / f"{run.name}.evaluate.log")
    asked = time.monotonic() - began - trained
    if code:
        return Result(run, "failed", trained, asked)
    (settings.out / f"{run.name}.steps.jsonl.gz").write_bytes(gzip.compress(steps_of(folder), mtime=0))
    if not settings.keep:
        shutil.rmtree(folder)
    clock.longest = max(clock.longest, trained + asked)
    return Result(run, "done", trained, asked)


def train_words(run: Run, settings: Settings, folder: Path, minutes: float) -> list[str]:
    """The command that trains a run; a folder that was begun is gone on with."""
    words = ["train", "echat", "--preset", settings.preset, "--out", str(folder), "--seed", str(run.seed)]
    words += [word for pack in settings.data for word in ("--data", str(pack))]
    words += ["--scale", f"{settings.scale:g}", "--ablate", ",".join(LEAVES_OUT[run.arm]), "--resume"]
    words += ["--samples", "0"]  # nobody looks, and they take as long as many steps
    if math.isfinite(minutes):
        words += ["--minutes", f"{minutes:.2f}"]
    return [*words, *settings.training]


def evaluate_words(run: Run, settings: Settings, folder: Path, said: Path) -> list[str]:
    words = ["evaluate", "echat", str(folder), "--out", str(said), "--arm", run.arm]
    return [*words, *(word for pack in settings.tests for word in ("--data", str(pack))), *settings.asking]


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


if __name__ == "__main__":
    sys.exit(main())
