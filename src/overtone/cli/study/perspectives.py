"""Run the study of two perspectives: train every arm with every seed, keep the predictions, and write the report."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from overtone.errors import EXIT_BUDGET, EXIT_OK, MissingExtra, OvertoneError, UsageError, install_line
from overtone.paths import shown

EXAMPLES = """examples:
  overtone study perspectives --data EMOBANK --dream DREAM --open OPEN --out STUDY
  overtone study perspectives --data EMOBANK --dream DREAM --open OPEN --model openpangu:DIR --seeds 5 --out STUDY
"""


def add(parser: argparse.ArgumentParser) -> None:
    flag = parser.add_argument
    flag("--data", metavar="DIR", type=Path, required=True,
         help="EmoBank's files, or your own sentences.csv and ratings.csv")  # fmt: skip
    flag("--dream", metavar="DIR", type=Path, help="DREAM's files, for its outcomes (default: none)")
    flag("--open", metavar="DIR", type=Path, help="folder of `overtone build open`, for its outcomes (default: none)")
    flag("--model", metavar="NAME", default="smollm2",
         help="smollm2, the folder of a causal language model, or openpangu:DIR (default: smollm2)")  # fmt: skip
    flag("--out", metavar="DIR", type=Path, required=True, help="folder of the study; an unfinished one is resumed")
    flag("--seeds", metavar="N", type=int, help="first N seeds of the study file (default: all)")
    flag("--study", metavar="FILE", type=Path,
         help="your own study file: arms, seeds, outcomes, margins, tests (default: the published one)")  # fmt: skip
    flag("--minutes", metavar="M", type=float, default=math.inf,
         help="stop and save after M minutes (default: no limit)")  # fmt: skip
    flag("--save-minutes", metavar="M", type=float, default=5.0, help="minutes between checkpoints (default: 5)")
    flag("--device", choices=("auto", "cpu", "cuda"), default="auto", help="(default: auto)")
    flag("--lora", action=argparse.BooleanOptionalAction,
         help="train small added matrices instead of all weights (default: above 1e9 parameters)")  # fmt: skip
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> int:
    """Run the jobs that are left and print progress. Return 4 if the time limit ended the study early."""
    if args.seeds is not None and args.seeds < 1:
        raise UsageError(f"--seeds {args.seeds}: give 1 or more")
    if not args.minutes > 0:
        raise UsageError(f"--minutes {args.minutes:g}: give a number above 0")
    if not args.save_minutes >= 0:
        raise UsageError(f"--save-minutes {args.save_minutes:g}: give 0 or more")
    try:
        import torch
    except ModuleNotFoundError:
        raise MissingExtra(f"torch is not installed; run: {install_line('train')}") from None
    from overtone.studies.perspectives import run_study

    own = {name: getattr(args, name) for name in run_study.Settings.__struct_fields__}
    try:
        done = run_study.run(run_study.Settings(**own), _say)
    except torch.OutOfMemoryError as error:
        problem = str(error).splitlines()[0].split(". ")[0]
        raise OvertoneError(f"{problem}; free the GPU or use --lora, then run the same command again") from None
    if not done:
        return EXIT_BUDGET
    _say(f"all jobs are done; the results are in {args.out}")
    return EXIT_OK


def _say(line: str) -> None:
    print(shown(line), flush=True)
