"""The stages of training, read from a preset's `[stage.N]` tables: data, trained parts, rates and lengths; ablations.

This module does not need torch.

    1   understanding  speech → words and labels              encoder, adapter
    2a  generation     text → speech tokens                   everything
    2b                 speech → text and speech, text dialogue everything
    3   empathy        the same with and without thinking, and what was learnt before  everything
"""

from __future__ import annotations

import fnmatch
import itertools
import math
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from overtone.echat.net.config import PARTS, Share, convert
from overtone.errors import UsageError
from overtone.spec import suggest

ABLATIONS = ("understanding", "think", "people", "tuning")
CLIP_SECONDS = (0.2, 200.0)  # limits of a query's clip, as published


class Feed(Struct, frozen=True, forbid_unknown_fields=True):
    """One list of a stage's mix: records for one task. Weight 2 repeats the list, weight 0.1 uses a tenth."""

    task: Literal["s2t", "t2s", "s2s", "t2t"]
    weight: float = 1.0
    share: float = 0.0  # of the records of all lists with this task, style and thinking that have a share; 0 = none
    style: Literal["understand", "chat"] = "chat"  # for s2t: transcript and labels, or an answer
    think: bool = False  # think before the answer
    streaming: float = 0.0  # share of the sequences whose text and speech are interleaved
    datasets: tuple[str, ...] = ()  # only records of these datasets, as file-name patterns; () = all
    without: tuple[str, ...] = ()  # no records of these datasets
    stand_in: tuple[str, ...] = ()  # if `datasets` are recordings of people: the synthetic ones for the arm without
    needed: bool = True  # raise an error if there are no such records; otherwise skip the list
    label: str = ""  # in logs, in place of the datasets

    @property
    def name(self) -> str:
        """The list's name in logs."""
        style = "understand" if self.style == "understand" else ""
        of = (self.label,) if self.label else self.datasets
        return "-".join(filter(None, (self.task, style, "think" if self.think else "", *of)))

    def has(self, dataset: str) -> bool:
        """Return whether the list takes records of a dataset."""
        listed = not self.datasets or _fits(dataset, self.datasets)
        return listed and not _fits(dataset, self.without)


def _fits(dataset: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatch(dataset, pattern) for pattern in patterns)


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
    masked bands, it gets a gain of up to ±`gain` dB and noise at least `noise` dB below the voice. For all encoders,
    clips are played up to the share `speed` slower or faster, which changes their pitch too, and half of them get up to
    `silence` seconds of silence before and after.
    """

    specaug: bool = False
    specsub: bool = False
    gain: float = 0.0
    noise: float = 0.0  # 0 = none
    speed: float = 0.0  # 0.15: 15 %
    silence: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.speed < 0.5:
            raise ValueError(f"augment: speed must be at least 0 and below 0.5, not {self.speed:g}")
        if not 0 <= self.silence <= 5:
            raise ValueError(f"augment: silence must be 0 to 5 s, not {self.silence:g}")

    def longest(self, seconds: float) -> float:
        """Return the maximum length of an augmented clip."""
        return seconds / (1 - self.speed) + 2 * self.silence


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
        if any(not 0 <= feed.share <= 1 for feed in self.feeds):
            raise ValueError("feeds: a share must be above 0 and at most 1")


class StageRun(Struct, frozen=True):
    """A stage of one run. `targets` is the number of target tokens of the whole stage; step n ends when n·targets/steps
    of them are used."""

    name: str
    stage: Stage
    steps: int
    targets: int


def stages(tables: Mapping[str, object], where: str, shares: Sequence[Share] = ()) -> dict[str, Stage]:
    """Read a preset's `[stage.N]` tables in the order of their names. Raises UsageError with the invalid table and key.

    Understanding tasks are divided by `shares`. `[stage.prefer]` is excluded, because it is not part of a normal run
    (`prefer.py` reads it).
    """
    names = sorted(name for name in tables if name != "prefer")
    return {n: _shared(convert(tables[n], Stage, f"{where}: [stage.{n}]"), shares) for n in names}


def _shared(stage: Stage, shares: Sequence[Share]) -> Stage:
    """Return the stage with a list per share in place of each understanding list that takes all datasets."""
    every = {name for share in shares for name in (*share.datasets, *share.stand_in)}
    feeds: list[Feed] = []
    for feed in stage.feeds:
        if not shares or feed.style != "understand" or feed.datasets:
            feeds.append(feed)
            continue
        for share in shares:
            changes: dict[str, Any] = {
                "share": share.share,
                "datasets": share.datasets,
                "without": () if share.datasets else tuple(sorted(every)),
                "stand_in": share.stand_in,
                "needed": False,
                "label": share.name,
            }
            feeds.append(msgspec.structs.replace(feed, **changes))
    return msgspec.structs.replace(stage, feeds=tuple(feeds))


def plan(
    stages: Mapping[str, Stage], ablate: Iterable[str] = (), scale: float = 1.0, only: str = "", each: int = 0
) -> list[StageRun]:
    """Return the stages of one run. All arms of an ablation have the same optimiser steps and target tokens.

    - understanding: stage 1 is removed. Its steps and target tokens go to the other stages in proportion to their own
      steps, so that arms differ in what they learn, not in how much.
    - think: no feed thinks. Sequences without a thought have fewer targets, so a step has more sequences.
    - people: lists of recordings of people are replaced by their synthetic stand-ins.
    - tuning: the language model's weights never change.

    `scale` multiplies the length of every stage; `each` sets the steps of every stage. `only` selects one stage, or a
    group (2 means 2a and 2b). Raises UsageError.
    """
    ablate = set(ablate)
    for name in sorted(ablate - set(ABLATIONS)):
        raise UsageError(f"unknown --ablate {name!r}{suggest(name, ABLATIONS)}")
    if "people" in ablate and not any(feed.stand_in for stage in stages.values() for feed in stage.feeds):
        raise UsageError("--ablate people: no feed of this preset has `stand_in`; use the preset people")
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
        StageRun(name, _ablated(stages[name], ablate), steps[name] + more_steps[i], targets[name] + more_targets[i])
        for i, name in enumerate(kept)
    ]
    if only:
        chosen = [run for run in runs if run.name == only] or [run for run in runs if run.name.startswith(only)]
        if not chosen:
            names = [run.name for run in runs]
            raise UsageError(f"unknown stage {only!r}{suggest(only, names)}; this run has {', '.join(names)}")
        return chosen
    return runs


def _ablated(stage: Stage, ablate: Container[str]) -> Stage:
    """Return the stage without thoughts, people or a trained language model."""
    feeds: Iterable[Feed] = stage.feeds
    if "think" in ablate:
        feeds = [msgspec.structs.replace(feed, think=False) for feed in feeds]
    if "people" in ablate:
        people = tuple(sorted({name for feed in feeds for name in feed.datasets if feed.stand_in}))
        feeds = [_without_people(feed, people) for feed in feeds]
    rates = msgspec.structs.replace(stage.lr, lm=0.0) if "tuning" in ablate else stage.lr
    return msgspec.structs.replace(stage, feeds=tuple(feeds), lr=rates)


def _without_people(feed: Feed, people: tuple[str, ...]) -> Feed:
    """Return the list with stand-ins, or without recordings of people."""
    if feed.stand_in:
        return msgspec.structs.replace(feed, datasets=feed.stand_in, stand_in=())
    return msgspec.structs.replace(feed, without=tuple(sorted({*feed.without, *people})))


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
