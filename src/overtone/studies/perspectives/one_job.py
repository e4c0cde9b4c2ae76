"""One job of the study: train an arm, then predict its outcomes, in one step.

A machine without permanent storage can run a job and return only its predictions, `KEY.npz`. The folder `state` beside
the results holds the checkpoints that resume a killed job.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from safetensors.torch import load_file, save
from torch import nn

from overtone.echat.learn import distributed
from overtone.echat.learn.distributed import World
from overtone.paths import write_whole
from overtone.rated_sentences import Array
from overtone.studies.perspectives.design import (
    CONTROL_CONDITIONS,
    CONTROL_SPLIT,
    Job,
    Study,
    job_rows,
    tested_questions,
)
from overtone.studies.perspectives.inputs import Inputs
from overtone.studies.perspectives.language_model import LanguageModel, open_model, replies
from overtone.studies.perspectives.recipe import Clock, Ratings, Reply, Step, choice_steps, fit, rating_steps
from overtone.studies.perspectives.results import write_file
from overtone.studies.perspectives.stored_predictions import choose, perplexity, rate
from overtone.studies.perspectives.token_batches import Settings
from overtone.studies.perspectives.tokens import Tokens, tokenise

ROOM = 8  # times the trained weights that must be free on the disk: checkpoints need them as well
_TOKENS: dict[tuple[str, str], Tokens] = {}  # of the last inputs and model


@dataclass(frozen=True)
class Place:
    """Where and how long jobs run: the processes and their device, the folder of results, and the clock."""

    world: World
    out: Path
    clock: Clock
    lora: bool | None = None  # None: for models above a billion parameters

    @property
    def state(self) -> Path:
        """The folder of the checkpoints that resume jobs. It can be removed when all jobs are done."""
        return self.out / "state"

    def weights(self, job: Job) -> Path:
        """Return the file of an arm's trained weights. The arm's tuning on DREAM begins with them."""
        return self.state / f"{replace(job, tuned=False).key}.safetensors"


def run_job(
    job: Job,
    study: Study,
    inputs: Inputs,
    model: str,
    out: Path,
    *,
    device: str = "auto",
    minutes: float = math.inf,
    lora: bool | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Train a job's arm, predict its outcomes, and return the file of predictions, `OUT/KEY.npz`.

    A finished job is not run again. Raises TimeUp if `minutes` are over before the outcomes are predicted; the same
    call then resumes the job.
    """
    stop = time.monotonic() + 60 * minutes
    world = distributed.enter(device)
    try:
        return run_at(Place(world, out, Clock(stop, say=say), lora), job, study, inputs, model)
    finally:
        world.leave()


def run_at(place: Place, job: Job, study: Study, inputs: Inputs, model: str) -> Path:
    """Run a job like `run_job`, but at a place that is already set up: its processes, clock and folder."""
    began = time.monotonic()
    path = place.out / f"{job.key}.npz"
    if path.is_file():
        return path
    opened, losses = trained(job, study, inputs, model, place)
    learnt = time.monotonic()
    arrays = outcomes(job, study, inputs, tokens_of(inputs, opened), opened.lm, place)
    if place.world.first:
        about = {
            **asdict(job), "key": job.key, "study": study.sha256, "data": inputs.sha256, "model": model,
            "model_sha256": opened.sha256, "lora": opened.lora, "losses": tenths(losses),
            "seconds": round(time.monotonic() - began, 2), "train_s": round(learnt - began, 2), "runs": 1,
            "compiled": False, "torch": torch.__version__, "device": device_name(place.world.device),
        }  # fmt: skip
        write_file(path, about, arrays)
        shutil.rmtree(place.state / job.key, ignore_errors=True)
        if job.tuned:
            place.weights(job).unlink(missing_ok=True)
    place.world.wait()
    return path


def trained(job: Job, study: Study, inputs: Inputs, model: str, place: Place) -> tuple[LanguageModel, list[float]]:
    """Return the job's model after its training, and the losses. A tuned job is then also tuned on DREAM."""
    world = place.world
    losses: list[float] = []
    opened = open_model(model, lora=place.lora, seed=job.seed, device=world.device)
    tokens = tokens_of(inputs, opened)
    kept = place.weights(job)
    if job.arm != "base" and job.tuned and kept.is_file():
        opened.lm.load_state_dict(load_file(kept), strict=False)
        distributed.spread(opened.lm, world, layers)
    elif job.arm != "base":
        settings = Settings(**study.settings["training"])
        replies = own_replies(opened, inputs, settings, place)
        distributed.spread(opened.lm, world, layers)
        ratings = Ratings.of(tokens, inputs.bank, job.arm, job_rows(inputs.bank, job)[0], job.seed)
        steps = rating_steps(ratings, replies, settings, job.seed, world)
        losses = fit(opened.lm, steps, settings, place.state / job.key / "training", world, place.clock)
        if job.split == "document" and not job.tuned and "tuned" in inputs.outcomes and room_for(opened, place):
            keep(opened, kept, world)
    else:
        distributed.spread(opened.lm, world, layers)
    if job.tuned:
        settings = Settings(**study.settings["dream_tuning"])
        steps = tuning_steps(job, tokens, settings, world)
        losses = fit(opened.lm, steps, settings, place.state / job.key / "tuning", world, place.clock)
    return opened, losses


def room_for(opened: LanguageModel, place: Place) -> bool:
    """Return whether the disk has room to keep trained weights. Without them, the tuning trains the arm again."""
    place.out.mkdir(parents=True, exist_ok=True)
    needed = ROOM * sum(p.numel() * p.element_size() for p in opened.learning.values())
    return not place.world.agree(shutil.disk_usage(place.out).free < needed)


def tuning_steps(job: Job, tokens: Tokens, settings: Settings, world: World) -> Iterator[Step]:
    """Return the steps of a tuning on questions: DREAM's train split, or the half of Overtone-Open that is not tested.

    If tuning on a task's own questions does not raise the accuracy, the task cannot be tested with this model.
    """
    if job.split != CONTROL_SPLIT:
        questions = tokens.questions["dream-train"]
        return choice_steps(questions, "words", range(len(questions.gold)), settings, job.seed, world)
    questions = tokens.questions["open"]
    tested = tested_questions([str(about["cluster"]) for about in questions.about], job.seed, int(job.part))
    return choice_steps(questions, "told", np.flatnonzero(~tested).tolist(), settings, job.seed, world)


def outcomes(job: Job, study: Study, inputs: Inputs, tokens: Tokens, lm: Any, place: Place) -> dict[str, Array]:
    """Return a job's predictions for each item, by outcome and condition. Outcomes that the inputs lack are left
    out."""
    out: dict[str, Array] = {}
    if job.split == CONTROL_SPLIT:
        asked = tokens.questions["open"]
        return {f"open/{condition}": choose(lm, asked, condition, place.world) for condition in CONTROL_CONDITIONS}
    for name in study.outcomes(job):
        if name not in inputs.outcomes:
            continue
        if name == "emobank":
            out[name] = rate(lm, tokens, job_rows(inputs.bank, job)[1], job.arm, place.world)
        elif name == "perplexity":
            out[name] = perplexity(lm, tokens.windows, place.world)
        elif name == "tuned":
            out["tuned/words"] = choose(lm, tokens.questions["dream"], "words", place.world)
        else:
            asked = tokens.questions[name]
            out |= {f"{name}/{condition}": choose(lm, asked, condition, place.world) for condition in asked.prompts}
    return out


def own_replies(opened: LanguageModel, inputs: Inputs, settings: Settings, place: Place) -> list[Reply]:
    """Return the base model's replies to general prompts. They are computed once per model and stored in a file."""
    if not settings.replay:
        return []
    path = place.state / f"replies-{opened.sha256[:12]}.json"
    if place.world.first and not path.is_file():
        place.clock.say(f"{len(inputs.general)} replies of the base model, for the replay")
        made = replies(opened, inputs.general, place.world.device)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, msgspec.json.encode(made))
    place.world.wait()
    return msgspec.json.decode(path.read_bytes(), type=list[Reply])


def tokens_of(inputs: Inputs, opened: LanguageModel) -> Tokens:
    """Return the inputs as tokens of the model. Tokenising takes seconds, so the result for the latest model is
    cached."""
    key = (inputs.sha256, opened.sha256)
    if key not in _TOKENS:
        _TOKENS.clear()
        _TOKENS[key] = tokenise(inputs, opened)
    return _TOKENS[key]


def layers(lm: nn.Module) -> list[nn.Module]:
    """Return the modules that are sharded one by one."""
    return [module for module in lm.modules() if type(module).__name__.endswith("DecoderLayer")]


def keep(opened: LanguageModel, path: Path, world: World) -> None:
    """Write the trained parameters atomically."""
    names = list(opened.learning)
    state = distributed.whole_state(opened.lm, world)
    if world.first:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, save({name: state[name].detach().cpu().contiguous() for name in names}))
    world.wait()


def tenths(losses: Sequence[float]) -> list[float]:
    """Return ten losses: the loss at the end of each tenth of the steps."""
    every = max(1, len(losses) // 10)
    return [round(loss, 4) for loss in losses[every - 1 :: every]]


def device_name(device: torch.device) -> str:
    """Return the name of the hardware."""
    return str(torch.cuda.get_device_name(device)) if device.type == "cuda" else "cpu"
