"""Train a speech model that responds to how something is said (echat), or a language model on text (text)."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from overtone.errors import EXIT_BUDGET, EXIT_OK, MissingExtra, OvertoneError, UsageError, install_line
from overtone.paths import shown, user_path
from overtone.processes import usable_cores

# Flags of one kind only, by their names in Settings, which has their defaults. A flag that was not given is None.
_ECHAT = ("preset", "stage", "start", "ablate", "scale", "encoder", "lm", "look_every", "samples", "workers", "graphs")
_TEXT = ("model", "target", "held_out", "lr", "batch", "longest")
_RECIPE = ("recipe", "arm", "split", "lora", "stop_on_dev")
_NOT_RECIPE = ("target", "held_out", "longest")
_LEAST = {
    "steps": 0,
    "log_every": 1,
    "save_minutes": 0,
    "look_every": 0,
    "samples": 0,
    "batch": 1,
    "longest": 1,
    "stop_on_dev": 1,
}
EXAMPLES = (
    "overtone train echat --data packs/synthetic --out runs/mini",
    "overtone train text --data rows.jsonl --out runs/text --steps 500",
    "overtone train text --recipe perspectives --data EMOBANK --arm both --out runs/both",
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    flag = parser.add_argument
    flag("what", metavar="WHAT", choices=("echat", "text"), help="echat (a speech model) or text (a language model)")
    flag("--data", metavar="PATH", type=Path, action="append", default=[],
                        help="training data: packs of `overtone build echat`, pairs (--stage prefer), "
                             "rows.jsonl (text) or EmoBank's folder (--recipe perspectives); repeatable")  # fmt: skip
    flag("--out", metavar="DIR", type=Path, required=True, help="folder of the training run")
    flag(
        "--steps",
        metavar="N",
        type=int,
        default=0,
        help="optimiser steps per stage (default: by preset or recipe; text: 1000)",
    )
    flag(
        "--minutes", metavar="M", type=float, default=math.inf, help="stop and save after M minutes (default: no limit)"
    )
    flag("--resume", action="store_true", help="resume the run in --out")
    flag("--seed", metavar="N", type=int, default=0, help="random seed (default: 0)")
    flag("--device", choices=("auto", "cpu", "cuda"), default="auto", help="(default: auto)")
    flag("--log-every", metavar="N", type=int, default=20, help="steps between two progress lines (default: 20)")
    flag("--save-minutes", metavar="M", type=float, help="minutes between checkpoints (default: 5; mini: 2)")
    echat = parser.add_argument_group("only for echat")
    echat.add_argument(
        "--preset",
        metavar="NAME",
        help="preset: full, mini, mini-lora, people, short, tiny, or your own .toml file (default: mini)",
    )
    echat.add_argument("--stage", metavar="N", help="stage: 1, 2 (2a, 2b), 3 or prefer (default: 1 to 3)")
    echat.add_argument(
        "--from", dest="start", metavar="DIR", type=Path, help="checkpoint or training run to start from"
    )
    echat.add_argument("--ablate", metavar="WHAT,…", help="parts to leave out: understanding, think, people, tuning")
    echat.add_argument("--scale", metavar="X", type=float, help="shorten all stages to this share of their steps")
    echat.add_argument("--encoder", metavar="FILE", help="weights of the encoder (.safetensors, or Moonshine's folder)")
    echat.add_argument("--lm", metavar="FILE", help="weights of the language model (GGUF file of SmolLM2)")
    echat.add_argument("--look-every", metavar="N", type=int, help="steps between evaluations on held-out records")
    echat.add_argument(
        "--samples", metavar="N", type=int, help="held-out clips answered at each evaluation (default: 4)"
    )
    echat.add_argument("--workers", metavar="N", type=int, help="number of processes that prepare batches")
    echat.add_argument(
        "--no-graphs", dest="graphs", action="store_const", const=False, help="do not use CUDA graphs on a single GPU"
    )
    text = parser.add_argument_group("only for text")
    text.add_argument("--model", metavar="NAME", help="smollm2, a model from Hugging Face, or with --recipe a folder "
                      "(default: smollm2)")  # fmt: skip
    text.add_argument("--target", choices=("tokens", "regression"), help="training target (default: tokens)")
    text.add_argument("--held-out", metavar="FILE", type=Path, help="rows to predict after training")
    text.add_argument("--lr", metavar="X", type=float, help="learning rate (default: 0.0001)")
    text.add_argument("--batch", metavar="N", type=int, help="rows per step (default: 16; recipe: 32)")
    text.add_argument(
        "--longest", metavar="N", type=int, help="maximum tokens per row; longer rows are skipped (default: 1024)"
    )
    recipe = parser.add_argument_group("only for text with --recipe")
    recipe.add_argument(
        "--recipe", choices=("perspectives",), help="recipe: perspectives (ratings by readers and writers, see --arm)"
    )
    recipe.add_argument("--arm", metavar="NAME", help="labels to learn: reader, writer, both, merged, matched, pseudo, "
                        "shuffled or permuted (default: both)")  # fmt: skip
    recipe.add_argument("--split", metavar="NAME", help="held-out sentences: official, document/K or genre/NAME "
                        "(default: official)")  # fmt: skip
    recipe.add_argument("--lora", action=argparse.BooleanOptionalAction,
                        help="train small added matrices instead of all weights "
                             "(default: above 1e9 parameters)")  # fmt: skip
    recipe.add_argument("--stop-on-dev", metavar="N", type=int,
                        help="rate the dev rows every N steps and keep the best weights "
                             "(default: train all steps)")  # fmt: skip


def main(args: argparse.Namespace) -> int:
    """Train and print progress to stdout. Return 4 if the time limit ended the training early."""
    if args.what == "echat":
        _refuse(args, "text", _TEXT + _RECIPE)
    else:
        _refuse(args, "echat", _ECHAT)
        _refuse_other_recipe(args)
    if not args.data:
        raise UsageError("--data is missing; name the training data with --data PATH")
    for name, least in _LEAST.items():
        if (given := getattr(args, name)) is not None and not given >= least:
            raise UsageError(f"--{name.replace('_', '-')} {given}: give {least} or more")
    for name in ("minutes", "lr"):
        if (given := getattr(args, name)) is not None and not given > 0:
            raise UsageError(f"--{name} {given:g}: give a number above 0")
    if args.lr == math.inf:
        raise UsageError("--lr inf: give a number")
    most = 4 * usable_cores()
    if args.workers is not None and not 0 <= args.workers <= most:
        raise UsageError(f"--workers {args.workers}: give a number from 0 to {most} on this machine")
    if not 0 <= args.seed < 2**63:
        raise UsageError(f"--seed {args.seed}: give a whole number from 0 to {2**63 - 1}")
    try:
        import torch
    except ModuleNotFoundError:
        raise MissingExtra(f"torch is not installed; run: {install_line('train')}") from None
    try:
        done = _echat(args) if args.what == "echat" else _text(args)
    except torch.OutOfMemoryError as error:
        problem = ". ".join(str(error).splitlines()[0].split(". ")[:3])  # the rest lists every process on the GPU
        way_out = "a smaller --batch" if args.what == "text" else "smaller `positions` in the preset"
        raise OvertoneError(f"{problem.rstrip('.')}; use {way_out} or free the GPU, then add --resume") from None
    return EXIT_OK if done else EXIT_BUDGET


def _echat(args: argparse.Namespace) -> bool:
    from overtone.echat.learn.run_stages import Settings, run
    from overtone.models.echat import checkpoint_folder

    if args.stage == "prefer":
        from overtone.echat.learn.prefer import run
    given = {"preset": "mini"} | _given(args, _ECHAT)
    if args.start:
        given["start"] = checkpoint_folder(user_path(args.start))
    if args.ablate is not None:
        given["ablate"] = tuple(filter(None, (name.strip() for name in args.ablate.split(","))))
    return run(Settings(**given, **_both(args), steps=args.steps), _say)


def _text(args: argparse.Namespace) -> bool:
    if args.recipe:
        from overtone.studies.perspectives import train_arm

        own = _given(args, ("model", "lr", "batch", "arm", "split", "lora", "stop_on_dev"))
        return train_arm.run(train_arm.Settings(**{"model": "smollm2"} | own, **_both(args), steps=args.steps), _say)
    from overtone.echat.learn.train_text import Settings, run

    given = {"model": "smollm2"} | _given(args, _TEXT)
    return run(Settings(**given, **_both(args), steps=args.steps or 1000), _say)


def _both(args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings that both kinds of training share."""
    plain = {name: getattr(args, name) for name in ("out", "seed", "minutes", "resume", "device", "log_every")}
    return {"data": tuple(args.data), **plain, **_given(args, ("save_minutes",))}


def _given(args: argparse.Namespace, flags: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name in flags if (value := getattr(args, name)) is not None}


def _refuse(args: argparse.Namespace, whose: str, flags: tuple[str, ...]) -> None:
    for name in _given(args, flags):
        flag = {"start": "from", "graphs": "no-graphs"}.get(name, name.replace("_", "-"))
        raise UsageError(f"--{flag} applies to {whose} only; remove it for {args.what!r}")


def _refuse_other_recipe(args: argparse.Namespace) -> None:
    """Raise UsageError for a flag of a recipe without --recipe, or one that the recipe does not have."""
    if args.recipe:
        flags: tuple[str, ...] = _NOT_RECIPE
        why = f"does not apply to --recipe {args.recipe}; remove it"
    else:
        flags, why = _RECIPE, "needs --recipe perspectives"
    for name in _given(args, flags):
        raise UsageError(f"--{name.replace('_', '-')} {why}")


def _say(line: str) -> None:
    print(shown(line), flush=True)
