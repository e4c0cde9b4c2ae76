"""The stages of training, read from a preset's `[stage.N]` tables: data, trained parts, rates and lengths; ablations.

This module does not need torch.

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
CLIP_SECONDS = (0.2, 200.0)  # limits of a query's clip, as published


class Feed(Struct, frozen=True, forbid_unknown_fields=True):
    """One list of a stage's mix: records for one task. Weight 2 repeats the list, weight 0.1 uses a tenth."""

    task: Literal["s2t", "t2s", "s2s", "t2t"]
    weight: float = 1.0
    style: Literal["understand", "chat"] = "chat"  # for s2t: transcript and labels, or an answer
    think: bool = False  # think before the answer
    streaming: float = 0.0  # share of the sequences whose text and speech are interleaved
    datasets: tuple[str, ...] = ()  # only records of these datasets, as file-name patterns; () = all
    needed: bool = True  # raise an error if there are no such records; otherwise skip the list

    @property
    def name(self) -> str:
        """The list's name in logs."""
        style = "understand" if self.style == "understand" else ""
        return "-".join(filter(None, (self.task, style, "think" if self.think else "", *self.datasets)))


class Rates(Struct, frozen=True, forbid_unknown_fields=True):
    """The learning rate of each part; 0 freezes a part."""

    encoder: float = 0.0
    adapter: float = 0.0
    speech: float = 0.0
    lm: float = 0.0

    def rate_of(self, part: str) -> float:
        """Return the rate of a part."""
        return float(getattr(self, part))

    def learning(self) -> tuple[str, ...]:
        """Return the parts that are trained."""
        return tuple(part for part in PARTS if self.rate_of(part) > 0)


class Augment(Struct, frozen=True, forbid_unknown_fields=True):
    """Augmentation of the audio.

    For encoders that read a log-mel spectrogram, `specaug` masks 2×10 mel bands and 2×50 frames, and `specsub` replaces
    3 sections of up to 30 frames by others. An encoder that reads the waveform gets the same time masks. Instead of
    masked bands, it gets a gain of up to ±`gain` dB and noise at least `noise` dB below the voice.
    """

    specaug: bool = False
    specsub: bool = False
    gain: float = 0.0
    noise: float = 0.0  # 0 = none


class Stage(Struct, frozen=True, forbid_unknown_fields=True):
    """One stage, as in its preset's table."""

    title: str
    steps: int  # optimiser steps
    targets: int  # target tokens per step, over all processes
    lr: Rates
    feeds: tuple[Feed, ...]
    positions: int = 16_384  # maximum per forward pass, padding included
    sequence: int = 2_000  # maximum positions of one sequence
    warmup: int = 0
    schedule: Literal["constant", "root", "cosine"] = "constant"  # after the warm-up
    ctc: float = 0.0  # weight of the helper loss for words on the adapter's outputs
    cues: float = 0.0  # weight of the helper loss for labels
    listen: bool = False  # use only the helper losses; the language model is not run
    think: Literal["label", "natural", "both"] = "label"  # kind of thoughts in a thinking feed
    all_heard: bool = False  # thoughts in tags give all known labels, not only those the exchange is about
    reply_tag: bool = False  # the tag of a reply's emotion precedes it even without a thought
    augment: Augment = field(default_factory=Augment)
    clip: float = 5.0  # maximum gradient norm
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
            raise ValueError("lr: no part is trained; give at least one of " + ", ".join(PARTS) + " a rate above 0")
        if self.listen and (self.lr.lm or self.lr.speech or not (self.ctc or self.cues)):
            raise ValueError("listen: only encoder and adapter can be trained; set ctc, cues or both above 0")
        if self.listen and any(feed.task not in ("s2t", "s2s") for feed in self.feeds):
            raise ValueError("listen: every feed must have audio: s2t or s2s")
        if any(feed.weight <= 0 for feed in self.feeds):
            raise ValueError("feeds: a weight must be above 0; remove the table instead")


class StageRun(Struct, frozen=True):
    """A stage of one run. `targets` is the number of target tokens of the whole stage; step n ends when n·targets/steps
    of them are used."""

    name: str
    stage: Stage
    steps: int
    targets: int


def stages(tables: Mapping[str, object], where: str) -> dict[str, Stage]:
    """Read a preset's `[stage.N]` tables in order. Raises UsageError with the invalid table and key.

    `[stage.prefer]` is excluded, because it is not part of a normal run (`prefer.py` reads it).
    """
    return {n: convert(table, Stage, f"{where}: [stage.{n}]") for n, table in tables.items() if n != "prefer"}


def plan(
    stages: Mapping[str, Stage], ablate: Iterable[str] = (), scale: float = 1.0, only: str = "", each: int = 0
) -> list[StageRun]:
    """Return the stages of one run. All arms of an ablation have the same optimiser steps and target tokens.

    - understanding: stage 1 is removed. Its steps and target tokens go to the other stages in proportion to their own
      steps, so that arms differ in what they learn, not in how much.
    - think: no feed thinks. Sequences without a thought have fewer targets, so a step has more sequences.

    `scale` multiplies the length of every stage; `each` sets the steps of every stage. `only` selects one stage, or a
    group (2 means 2a and 2b). Raises UsageError.
    """
    ablate = set(ablate)
    for name in sorted(ablate - set(ABLATIONS)):
        raise UsageError(f"unknown --ablate {name!r}{suggest(name, ABLATIONS)}")
    if not 0 < scale <= 1000:
        raise UsageError("--scale must be above 0")
    steps = {name: each or max(1, round(stage.steps * scale)) for name, stage in stages.items()}
    targets = {name: steps[name] * stage.targets for name, stage in stages.items()}
    kept = [name for name in stages if not ("understanding" in ablate and name.startswith("1"))]
    if not kept:
        raise UsageError("nothing to train: the preset has no stage after understanding")
    weights = [steps[name] for name in kept]
    freed = [name for name in stages if name not in kept]
    more_steps = apportion(sum(steps[name] for name in freed), weights)
    more_targets = apportion(sum(targets[name] for name in freed), weights)
    runs = [
        StageRun(
            name,
            _without_thoughts(stages[name]) if "think" in ablate else stages[name],
            steps[name] + more_steps[i],
            targets[name] + more_targets[i],
        )
        for i, name in enumerate(kept)
    ]
    if only:
        chosen = [run for run in runs if run.name == only] or [run for run in runs if run.name.startswith(only)]
        if not chosen:
            names = [run.name for run in runs]
            raise UsageError(f"unknown stage {only!r}{suggest(only, names)}; this run has {', '.join(names)}")
        return chosen
    return runs


def _without_thoughts(stage: Stage) -> Stage:
    """Return the stage with feeds that do not think."""
    return msgspec.structs.replace(
        stage, feeds=tuple(msgspec.structs.replace(feed, think=False) for feed in stage.feeds)
    )


def apportion(whole: int, weights: list[int]) -> list[int]:
    """Split `whole` into integers in proportion to `weights`. Their sum is `whole`."""
    total = sum(weights)
    bounds = [0]
    for weight in weights:
        bounds.append(bounds[-1] + weight)
    return [whole * after // total - whole * before // total for before, after in itertools.pairwise(bounds)]


def warm_up(run: StageRun) -> int:
    """Return the warm-up steps of a run: scaled with its length, at least five, at most half of it."""
    share = round(run.stage.warmup * run.steps / run.stage.steps)
    return min(max(share, min(run.stage.warmup, 5)), run.steps // 2)


def rate_at(step: int, run: StageRun) -> float:
    """Return the factor by which the learning rates are multiplied at an optimiser step. The first step is 1.

    After a linear warm-up the factor stays constant, falls with the square root of the step (WeNet's warmuplr), or
    falls to a tenth along a cosine.
    """
    warmup = warm_up(run)
    if step <= warmup:
        return step / (warmup + 1)
    if run.stage.schedule == "constant":
        return 1.0
    if run.stage.schedule == "root":
        return math.sqrt(max(warmup, 1) / step)
    done = (step - warmup) / max(1, run.steps - warmup)
    return 0.1 + 0.45 * (1 + math.cos(math.pi * min(1.0, done)))
