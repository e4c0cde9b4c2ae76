"""The stages of training: what each one hears and says, which parts learn, how fast and how long; and what an ablated
run does instead. Plain values, read from a preset's `[stage.N]` tables; nothing here needs torch.

    1   understanding  speech → words and labels              encoder, adapter
    2a  generation     text → speech tokens                   everything
    2b                 speech → text and speech, text dialogue everything
    3   empathy        the same with and without thinking, and what was learnt before  everything
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec
from msgspec import Struct, field

from overtone.echat.net.config import PARTS, convert
from overtone.errors import UsageError
from overtone.spec import suggest

ABLATIONS = ("understanding", "think")
CLIP_SECONDS = (0.2, 200.0)  # of a query's clip, as published


class Feed(Struct, frozen=True, forbid_unknown_fields=True):
    """One list of a stage's mix: records laid out for one task. A weight of 2 repeats it, one of 0.1 takes a tenth."""

    task: Literal["s2t", "t2s", "s2s", "t2t"]
    weight: float = 1.0
    style: Literal["understand", "chat"] = "chat"  # of s2t: transcript and labels, or an answer
    think: bool = False  # think before the answer
    streaming: float = 0.0  # share of the sequences whose text and speech are interleaved
    datasets: tuple[str, ...] = ()  # only records of these, as file-name patterns; () = all
    needed: bool = True  # an error where there is none of them; else the stage goes without this list

    @property
    def name(self) -> str:
        style = "understand" if self.style == "understand" else ""
        return "-".join(filter(None, (self.task, style, "think" if self.think else "", *self.datasets)))


class Rates(Struct, frozen=True, forbid_unknown_fields=True):
    """The learning rate of each part; a part with none is frozen."""

    encoder: float = 0.0
    adapter: float = 0.0
    speech: float = 0.0
    lm: float = 0.0

    def of(self, part: str) -> float:
        return float(getattr(self, part))

    def learning(self) -> tuple[str, ...]:
        return tuple(part for part in PARTS if self.of(part) > 0)


class Augment(Struct, frozen=True, forbid_unknown_fields=True):
    """What is done to the sound. `specaug` masks 2×10 mel bands and 2×50 frames and `specsub` puts 3 stretches of up to
    30 frames in the place of others, for encoders that take a log-mel; an encoder that takes the wave has the same time
    masks, and instead of bands a gain of up to `gain` dB either way and noise `noise` dB or more below the voice."""

    specaug: bool = False
    specsub: bool = False
    gain: float = 0.0
    noise: float = 0.0  # 0 = none


class Stage(Struct, frozen=True, forbid_unknown_fields=True):
    """One stage as its preset's table has it."""

    title: str
    steps: int  # of the optimiser
    targets: int  # target tokens a step, over all processes
    lr: Rates
    feeds: tuple[Feed, ...]
    positions: int = 16_384  # at most in one forward pass, padding counted
    sequence: int = 2_000  # positions of one sequence at most
    warmup: int = 0
    schedule: Literal["constant", "root", "cosine"] = "constant"  # after the warm-up
    ctc: float = 0.0  # weight of the helper loss on the adapter's outputs that finds the words in them
    cues: float = 0.0  # and of the one that finds the labels
    listen: bool = False  # these two alone: the language model is not asked
    think: Literal["label", "natural", "both"] = "label"  # which thoughts a thinking feed is taught
    all_heard: bool = False  # thoughts in tags name all that data know to be heard, not what an exchange is about
    reply_tag: bool = False  # the tag of a reply's emotion stands before it also where it was not thought about
    augment: Augment = field(default_factory=Augment)
    clip: float = 5.0  # of the gradient's norm
    betas: tuple[float, float] = (0.9, 0.99)
    eps: float = 1e-6
    decay: float = 0.01

    def __post_init__(self) -> None:
        for name in ("steps", "targets", "positions"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        if not self.feeds:
            raise ValueError("a stage needs at least one [[feeds]] table")
        if not self.lr.learning():
            raise ValueError("lr: no part learns; give at least one of " + ", ".join(PARTS) + " a rate above 0")
        if self.listen and (self.lr.lm or self.lr.speech or not (self.ctc or self.cues)):
            raise ValueError("listen: only encoder and adapter can learn, by ctc, cues or both: give these a weight")
        if self.listen and any(feed.task not in ("s2t", "s2s") for feed in self.feeds):
            raise ValueError("listen: every feed must have something to be heard: s2t or s2s")
        if any(feed.weight <= 0 for feed in self.feeds):
            raise ValueError("feeds: a weight must be above 0; leave the table out instead")


class StageRun(Struct, frozen=True):
    """A stage as one run goes through it. `targets` is of the whole run: step n ends when n·targets/steps are used."""

    name: str
    stage: Stage
    steps: int
    targets: int


def stages(tables: Mapping[str, object], where: str) -> dict[str, Stage]:
    """A preset's `[stage.N]` tables, in their order. Raises UsageError with the table and key that are wrong.

    `[stage.prefer]` is not among them: it is no part of a run from data to model (`prefer.py` reads it)."""
    return {n: convert(table, Stage, f"{where}: [stage.{n}]") for n, table in tables.items() if n != "prefer"}


def plan(
    stages: Mapping[str, Stage], ablate: Iterable[str] = (), scale: float = 1.0, only: str = "", each: int = 0
) -> list[StageRun]:
    """The stages of one run. All arms of an ablation take the same optimiser steps and the same target tokens.

    - understanding: stage 1 is left out; its steps and target tokens go to the other stages, in proportion to their own
      steps, so that what differs is what was learnt with them, not how much.
    - think: no feed thinks. A sequence without a thought has fewer targets, so more of them make a step.

    `scale` shortens (or lengthens) every stage, `each` gives every stage so many steps; `only` is one stage, or a group
    of them (2 is 2a and 2b).
    """
    ablate = set(ablate)
    for name in sorted(ablate - set(ABLATIONS)):
        raise UsageError(f"--ablate {name!r} is unknown{suggest(name, ABLATIONS)}")
    if not 0 < scale <= 1000:
        raise UsageError("--scale must be above 0")
    steps = {name: each or max(1, round(stage.steps * scale)) for name, stage in stages.items()}
    targets = {name: steps[name] * stage.targets for name, stage in stages.items()}
    kept = [name for name in stages if not ("understanding" in ablate and name.startswith("1"))]
    if not kept:
        raise UsageError("nothing is left to train: the preset has no stage after understanding")
    weights = [steps[name] for name in kept]
    freed = [name for name in stages if name not in kept]
    more_steps = apportion(sum(steps[name] for name in freed), weights)
    more_targets = apportion(sum(targets[name] for name in freed), weights)
    runs = [
        StageRun(
            name,
            _thoughtless(stages[name]) if "think" in ablate else stages[name],
            steps[name] + more_steps[i],
            targets[name] + more_targets[i],
        )
        for i, name in enumerate(kept)
    ]
    if only:
        chosen = [run for run in runs if run.name == only] or [run for run in runs if run.name.startswith(only)]
        if not chosen:
            names = [run.name for run in runs]
            raise UsageError(f"this run has no stage {only!r}{suggest(only, names)}: it has {', '.join(names)}")
        return chosen
    return runs


def _thoughtless(stage: Stage) -> Stage:
    """The stage with every thought left out, its feeds as they were otherwise."""
    return msgspec.structs.replace(
        stage, feeds=tuple(msgspec.structs.replace(feed, think=False) for feed in stage.feeds)
    )


def apportion(whole: int, weights: list[int]) -> list[int]:
    """`whole` in parts that follow `weights` and add up to it."""
    total = sum(weights)
    bounds = [0]
    for weight in weights:
        bounds.append(bounds[-1] + weight)
    return [whole * after // total - whole * before // total for before, after in itertools.pairwise(bounds)]


def warm_up(run: StageRun) -> int:
    """The steps of a run's warm-up: the same share of a shortened run as of a whole one, but five, and at most half."""
    share = round(run.stage.warmup * run.steps / run.stage.steps)
    return min(max(share, min(run.stage.warmup, 5)), run.steps // 2)


def rate_at(step: int, run: StageRun) -> float:
    """What the learning rates are multiplied by at an optimiser step, counted from 1: a straight warm-up, then as the
    schedule says: constant, falling with the root of the step (WeNet's warmuplr), or a cosine that ends at a tenth."""
    warmup = warm_up(run)
    if step <= warmup:
        return step / (warmup + 1)
    if run.stage.schedule == "constant":
        return 1.0
    if run.stage.schedule == "root":
        return math.sqrt(max(warmup, 1) / step)
    done = (step - warmup) / max(1, run.steps - warmup)
    return 0.1 + 0.45 * (1 + math.cos(math.pi * min(1.0, done)))
