"""The ablation of OSUM-EChat, small: arms with the same optimiser steps and target tokens, several seeds each.

    python -m experiments.echat.ablation --data PACK/train --data PACK/style --data PACK/words --data PACK/aloud \\
        --data PACK/dev --data plain.jsonl --test PACK/seen --test PACK/recipe --test PACK/engine --test REAL/ravdess \\
        --test REAL/nonverbal --test REAL/speechocean --test EVAL --out out/ablation
    overtone evaluate counts out/ablation/*-[0-9].jsonl.gz --listen --out experiments/echat/runs
    overtone evaluate scores experiments/echat/runs/*.json.gz --out experiments/echat/scores.json

`jobs.py` says what a run leaves, and how it is continued. `experiments/people/README.md` has the ablation with
recordings of people: `--preset people --arms full,no-people,frozen,no-think,no-understanding --by arm`.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from experiments.echat.jobs import Job, Limits, go, report
from overtone.echat.exam.answer_file import ARMS
from overtone.errors import UsageError
from overtone.spec import suggest

LEAVES_OUT = {name: left for left, name in ARMS.items()}
USUAL = ("full", "no-understanding", "no-think", "neither")


class Settings(Struct, frozen=True):
    """What all runs of an ablation share."""

    data: tuple[Path, ...]
    tests: tuple[Path, ...]
    preset: str = "short"
    scale: float = 1.0
    training: tuple[str, ...] = ()  # more flags of `overtone train`
    asking: tuple[str, ...] = ()  # and of `overtone evaluate`


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", metavar="PACK", type=Path, action="append", required=True, help="to learn from")
    parser.add_argument("--test", metavar="PACK", type=Path, action="append", required=True, help="to be asked")
    parser.add_argument("--out", metavar="DIR", type=Path, required=True)
    parser.add_argument("--preset", default="short")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the preset's steps (1)")
    parser.add_argument("--arms", metavar="NAME,…", default=",".join(USUAL), help=f"of {', '.join(LEAVES_OUT)}")
    parser.add_argument("--seeds", metavar="N,…", default="0,1,2")
    parser.add_argument("--by", choices=("seed", "arm"), default="seed", help="what is completed first (seed)")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin nothing that would take longer")
    parser.add_argument("--parallel", type=int, default=1, help="runs at once")
    parser.add_argument("--train", metavar="FLAGS", default="", help="more flags of `overtone train echat`")
    parser.add_argument("--evaluate", metavar="FLAGS", default="--spoken 0", help="more of `overtone evaluate echat`")
    parser.add_argument("--keep", action="store_true", help="keep the weights")
    parser.add_argument("--bundle", metavar="FILE", type=Path, help="all results so far in one tar, after each run")
    args = parser.parse_args(argv)
    settings = Settings(
        tuple(args.data), tuple(args.test), args.preset, args.scale, tuple(args.train.split()),
        tuple(args.evaluate.split()),
    )  # fmt: skip
    jobs = planned(args.arms.split(","), [int(seed) for seed in args.seeds.split(",")], settings, args.by)
    return report(go(jobs, Limits(args.out, args.minutes, args.parallel, args.keep), args.bundle))


def planned(arms: Sequence[str], seeds: Sequence[int], settings: Settings, by: str = "seed") -> list[Job]:
    """Every arm of a seed before the next seed: stopped at any time, the arms have about as many runs. Or, by arm,
    every seed of an arm before the next arm: stopped at any time, the first arms have all their seeds."""
    for arm in arms:
        if arm not in LEAVES_OUT:
            raise UsageError(f"--arms {arm!r} is unknown{suggest(arm, LEAVES_OUT)}")
    pairs = [(arm, seed) for arm in arms for seed in seeds] if by == "arm" else [(a, s) for s in seeds for a in arms]
    return [job_of(arm, seed, settings) for arm, seed in pairs]


def job_of(arm: str, seed: int, settings: Settings) -> Job:
    """One arm with one seed."""
    training = ["--preset", settings.preset, "--seed", str(seed)]
    training += [word for pack in settings.data for word in ("--data", str(pack))]
    training += ["--scale", f"{settings.scale:g}", "--ablate", ",".join(LEAVES_OUT[arm]), *settings.training]
    asking = ["--arm", arm, *(word for pack in settings.tests for word in ("--data", str(pack))), *settings.asking]
    return Job(f"{arm}-{seed}", tuple(training), tuple(asking))


if __name__ == "__main__":
    sys.exit(main())
