"""Train a model that hears how something is said and answers to it (echat), or a language model on text (text)."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from overtone.errors import EXIT_BUDGET, EXIT_OK, MissingExtra, OvertoneError, UsageError
from overtone.paths import shown


def add(parser: argparse.ArgumentParser) -> None:
    """What is trained, and the flags."""
    parser.add_argument("what", metavar="WHAT", choices=("echat", "text"), help="echat, or text")
    parser.add_argument("--data", metavar="PATH", type=Path, action="append", default=[],
                        help="packs of `overtone build echat`; of prefer: pairs; of text: rows.jsonl")  # fmt: skip
    parser.add_argument("--out", metavar="DIR", type=Path, required=True, help="where the run goes")
    parser.add_argument("--steps", metavar="N", type=int, default=0, help="optimiser steps of each stage")
    parser.add_argument("--minutes", metavar="M", type=float, default=math.inf, help="stop and save after so long")
    parser.add_argument("--resume", action="store_true", help="go on with the run in --out")
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of all randomness (0)")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--log-every", metavar="N", type=int, default=20, help="steps between two lines (20)")
    parser.add_argument("--save-minutes", metavar="M", type=float, help="between checkpoints (5; mini 2)")
    echat = parser.add_argument_group("of echat")
    echat.add_argument("--preset", metavar="NAME", default="mini", help="full, mini, tiny, or a file of your own .toml")
    echat.add_argument("--stage", metavar="N", default="", help="1, 2 (2a, 2b) or 3; all when not given; or prefer")
    echat.add_argument("--from", dest="start", metavar="DIR", type=Path, help="begin with this checkpoint or run")
    echat.add_argument("--ablate", metavar="WHAT,…", default="", help="leave out: understanding, think")
    echat.add_argument("--scale", metavar="X", type=float, default=1.0, help="shorten all stages to this share")
    echat.add_argument("--encoder", metavar="FILE", default="", help="the encoder's weights, as safetensors")
    echat.add_argument("--lm", metavar="FILE", default="", help="the language model's weights (SmolLM2's GGUF file)")
    echat.add_argument("--look-every", metavar="N", type=int, default=0, help="steps between looks at held-out records")
    echat.add_argument("--samples", metavar="N", type=int, default=4, help="held-out clips answered at each look (4)")
    echat.add_argument("--workers", metavar="N", type=int, default=-1, help="processes that make batches")
    echat.add_argument(
        "--graphs", choices=("none", "lm", "all"), default="lm", help="whose kernels one GPU records (lm)"
    )
    text = parser.add_argument_group("of text")
    text.add_argument("--model", metavar="NAME", default="smollm2", help="smollm2, or a model of Hugging Face's")
    text.add_argument("--target", choices=("tokens", "regression"), default="tokens", help="what is learnt (tokens)")
    text.add_argument("--held-out", metavar="FILE", type=Path, help="rows to be predicted at the end")
    text.add_argument("--lr", metavar="X", type=float, default=1e-4, help="learning rate (0.0001)")
    text.add_argument("--batch", metavar="N", type=int, default=16, help="rows a step (16)")


def main(args: argparse.Namespace) -> int:
    """Train, with lines of progress on stdout; exits 4 when the time was up first."""
    if not args.data:
        raise UsageError("say what to learn from: --data PATH")
    if args.steps < 0 or args.minutes <= 0 or args.log_every < 1 or args.samples < 0:
        raise UsageError("--steps, --minutes and --log-every must be above 0")
    try:
        import torch
    except ModuleNotFoundError:
        raise MissingExtra("torch is not installed; run \"pip install 'overtone[train]'\"") from None
    try:
        done = _echat(args) if args.what == "echat" else _text(args)
    except torch.OutOfMemoryError as error:
        told = ". ".join(str(error).splitlines()[0].split(". ")[:3]).rstrip(".")  # then it lists every process there is
        less = "a smaller --batch takes" if args.what == "text" else "smaller `positions` in the preset take"
        raise OvertoneError(f"{told}; {less} less, or leave the GPU to it alone; --resume goes on") from None
    return EXIT_OK if done else EXIT_BUDGET


def _echat(args: argparse.Namespace) -> bool:
    from overtone.echat.learn.recipe import Settings, run
    from overtone.models.echat import checkpoint_folder

    if args.stage == "prefer":
        from overtone.echat.learn.prefer import run
    settings = Settings(
        preset=args.preset,
        data=tuple(args.data),
        out=args.out,
        stage=args.stage,
        start=args.start and checkpoint_folder(args.start.expanduser()),
        ablate=tuple(filter(None, (name.strip() for name in args.ablate.split(",")))),
        scale=args.scale,
        steps=args.steps,
        seed=args.seed,
        minutes=args.minutes,
        resume=args.resume,
        device=args.device,
        workers=args.workers,
        encoder=args.encoder,
        lm=args.lm,
        log_every=args.log_every,
        look_every=args.look_every,
        save_minutes=args.save_minutes,
        graphs=args.graphs,
        samples=args.samples,
    )
    return run(settings, _say)


def _text(args: argparse.Namespace) -> bool:
    from overtone.echat.learn.text import Settings, run

    settings = Settings(
        model=args.model,
        data=tuple(args.data),
        out=args.out,
        target=args.target,
        held_out=args.held_out,
        steps=args.steps or 1000,
        lr=args.lr,
        batch=args.batch,
        seed=args.seed,
        minutes=args.minutes,
        resume=args.resume,
        device=args.device,
        log_every=args.log_every,
        save_minutes=5.0 if args.save_minutes is None else args.save_minutes,
    )
    return run(settings, _say)


def _say(line: str) -> None:
    print(shown(line), flush=True)
