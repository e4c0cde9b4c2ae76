"""`overtone train text --recipe perspectives`: train one arm on a corpus with two label sets and write the model."""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from safetensors.torch import load_file

from overtone.echat.learn import distributed
from overtone.echat.learn.distributed import World
from overtone.echat.learn.run_stages import check_same_run
from overtone.echat.learn.training_loop import stop_on_sigterm
from overtone.echat.learn.training_report import RUN, RunDescription
from overtone.errors import StoreError, UsageError
from overtone.paths import shown, to_disk, user_path, write_whole
from overtone.rated_sentences import DIMENSIONS, PERSPECTIVES, Array
from overtone.studies.perspectives.design import PROMPTS, Job, Study, job_rows
from overtone.studies.perspectives.inputs import Inputs, read_inputs
from overtone.studies.perspectives.language_model import LanguageModel, open_model, save_model
from overtone.studies.perspectives.one_job import (
    Place,
    device_name,
    keep,
    layers,
    own_replies,
    tenths,
    tokens_of,
)
from overtone.studies.perspectives.recipe import Clock, Ratings, TimeUp, fit, rating_steps
from overtone.studies.perspectives.results import write_file
from overtone.studies.perspectives.stored_predictions import rate
from overtone.studies.perspectives.token_batches import Settings as Schedule
from overtone.studies.perspectives.tokens import Tokens

ARMS = tuple(arm for arm in PROMPTS if arm != "base")
MODEL, MANIFEST, TRAINING, BEST = "model", "manifest.json", "training", "best"
PATIENCE = 3  # looks at dev rows without a gain, after which training stops
_SAME = ("model", "arm", "split", "steps", "lr", "batch", "seed", "lora", "stop_on_dev")  # must be equal on resume


class Settings(Struct, frozen=True):
    """The user's settings of a run. For 0 and None, the study's own value is used."""

    model: str
    data: tuple[Path, ...]
    out: Path
    arm: str = "both"
    split: str = "official"
    steps: int = 0
    lr: float | None = None
    batch: int | None = None
    seed: int = 0
    minutes: float = math.inf
    resume: bool = False
    device: str = "auto"
    log_every: int = 20
    save_minutes: float = 5.0
    lora: bool | None = None
    stop_on_dev: int = 0  # steps between looks at EmoBank's dev rows; 0: train all steps

    def schedule(self, study: Study) -> Schedule:
        """Return the study's training settings with the user's changes."""
        own = {"steps": self.steps or None, "rate": self.lr, "rows": self.batch}
        return Schedule(**study.settings["training"] | {name: value for name, value in own.items() if value})

    def job(self, inputs: Inputs) -> Job:
        """Return the job of the study with this arm and split. Raises UsageError."""
        if self.arm not in ARMS:
            raise UsageError(f"--arm {shown(self.arm)}: give one of {', '.join(ARMS)}")
        split, _, part = self.split.partition("/")
        bank = inputs.bank
        parts = {"official": {""}, "document": set(map(str, range(5))), "genre": set(bank.genres)}
        if split not in parts or part not in parts[split]:
            genres = ", ".join(f"genre/{genre}" for genre in sorted(set(bank.genres)))
            raise UsageError(f"--split {shown(self.split)}: give official, document/0 to document/4, or {genres}")
        if self.stop_on_dev and split != "official":
            raise UsageError("--stop-on-dev needs --split official: the other splits learn the dev rows")
        return Job(split, part, self.arm, self.seed)


def run(settings: Settings, say: Callable[[str], None]) -> bool:
    """Train, and write OUT/model and OUT/KEY.npz. Return False if the time was up; `--resume` then resumes the
    training.

    Raises UsageError, DataError or StoreError.
    """
    deadline = time.monotonic() + 60 * settings.minutes
    if len(settings.data) != 1:
        raise UsageError("--recipe perspectives reads one folder; give --data once")
    study, inputs = Study.read(), read_inputs(user_path(settings.data[0]))
    job, schedule = settings.job(inputs), settings.schedule(study)
    learnt, held = job_rows(inputs.bank, job)
    if min(len(learnt), len(held)) < 2:
        raise UsageError(f"--split {settings.split}: {len(learnt)} sentences to learn and {len(held)} held out")
    world = distributed.enter(settings.device)
    try:
        if world.first:
            _claim(settings, study, inputs)
        world.wait()
        if (settings.out / MODEL).is_dir():
            say("the run is already done")
            return True
        with stop_on_sigterm() as terminated:
            clock = Clock(
                deadline, 60 * settings.save_minutes, say if world.first else lambda line: None, settings.log_every,
                terminated.is_set,
            )  # fmt: skip
            place = Place(world, settings.out, clock, settings.lora)
            try:
                _train(settings, job, study, schedule, inputs, place)
            except TimeUp as reason:
                clock.say(f"{reason}; continue with --resume")
                return False
        return True
    finally:
        world.leave()


def _claim(settings: Settings, study: Study, inputs: Inputs) -> None:
    """Write run.json. Raises StoreError if the folder has a different run, other data, or a run to be resumed."""
    plain = msgspec.json.decode(msgspec.json.encode(settings, enc_hook=str))
    same = {name: plain[name] for name in _SAME} | {"data_sha256": inputs.sha256, "study": study.sha256}
    if check_same_run(settings.out, same) and not settings.resume:
        where = shown(str(settings.out))
        raise StoreError(f"{where} already holds this run; continue it with --resume, or choose another --out")
    settings.out.mkdir(parents=True, exist_ok=True)
    title = f"Perspectives: {settings.arm}, {settings.model}"
    write_whole(settings.out / RUN, msgspec.json.encode(RunDescription(title, [], plain | same)))


def _train(settings: Settings, job: Job, study: Study, schedule: Schedule, inputs: Inputs, place: Place) -> None:
    world, say = place.world, place.clock.say
    opened = open_model(settings.model, lora=settings.lora, seed=job.seed, device=world.device)
    tokens = tokens_of(inputs, opened)
    learnt, held = job_rows(inputs.bank, job)
    count = sum(p.numel() for p in opened.learning.values())
    say(
        f"{job.arm}: {len(learnt)} sentences, {schedule.steps} steps of {schedule.rows} rows, "
        f"{count:,} parameters{' (LoRA)' if opened.lora else ''}"
    )
    replies = own_replies(opened, inputs, schedule, place)
    distributed.spread(opened.lm, world, layers)
    ratings = Ratings.of(tokens, inputs.bank, job.arm, learnt, job.seed)
    folder = settings.out / TRAINING
    if settings.stop_on_dev:
        place.clock.look_every = settings.stop_on_dev
        place.clock.look = Stopper(folder, inputs, tokens, opened, job.arm, place)
    try:
        steps = rating_steps(ratings, replies, schedule, job.seed, world)
        losses = fit(opened.lm, steps, schedule, folder, world, place.clock)
    except ValueError as error:
        raise UsageError(f"{error}; use a smaller --batch, or more sentences") from None
    if settings.stop_on_dev:
        _load_best(folder, opened, world)
    predicted = rate(opened.lm, tokens, held, job.arm, world)
    trained = distributed.whole_state(opened.lm, world)
    if world.first:
        for name, values in zip(PERSPECTIVES, correlations(predicted, inputs, held), strict=True):
            say(f"held-out {name}: " + ", ".join(f"r({d}) {r:.3f}" for d, r in zip(DIMENSIONS, values, strict=True)))
        about = {
            "split": job.split, "part": job.part, "arm": job.arm, "seed": job.seed, "tuned": False, "key": job.key,
            "study": study.sha256, "data": inputs.sha256, "model": settings.model, "model_sha256": opened.sha256,
            "lora": opened.lora, "steps": schedule.steps, "rate": schedule.rate, "rows": schedule.rows,
            "losses": tenths(losses), "device": device_name(world.device),
        }  # fmt: skip
        write_file(settings.out / f"{job.key}.npz", about, {"emobank": predicted})
        own = {name: trained[name].detach().cpu().contiguous() for name in opened.learning}
        _finish(settings, about, opened, own)
    world.wait()


def correlations(predicted: Array, inputs: Inputs, rows: Array) -> list[list[float]]:
    """Return Pearson's r of (rows, 2, 3) predictions with each perspective's labels: two lists of three."""
    labels = np.stack([np.asarray(inputs.bank.means[who])[rows] for who in PERSPECTIVES], 1)
    a, b = (x - x.mean(0) for x in (np.asarray(predicted, float), labels))
    r = (a * b).sum(0) / np.maximum(np.sqrt((a**2).sum(0) * (b**2).sum(0)), 1e-12)
    return [[float(x) for x in row] for row in r]


# ── stopping on dev rows ──────────────────────────────────────────────────────────────────────────────────────────────
@dataclass
class Stopper:
    """Rates EmoBank's dev rows during training, keeps the best weights, and ends the training when the ratings no
    longer improve."""

    folder: Path
    inputs: Inputs
    tokens: Tokens
    opened: LanguageModel
    arm: str
    place: Place

    def __call__(self, step: int) -> bool:
        rows = np.flatnonzero(np.array(self.inputs.bank.splits) == "dev")
        if len(rows) < 2:
            raise UsageError("--stop-on-dev: the corpus has no dev rows; remove the flag, or add some")
        predicted = rate(self.opened.lm, self.tokens, rows, self.arm, self.place.world)
        r = float(np.mean(correlations(predicted, self.inputs, rows)))
        path = self.folder / f"{BEST}.json"
        looks = [look for look in json.loads(path.read_text()) if look[0] < step] if path.is_file() else []
        self.place.clock.say(f"  dev rows: mean r {r:.3f} after {step} steps")
        if all(r > before for _, before in looks):
            keep(self.opened, self.folder / f"{BEST}.safetensors", self.place.world)
        looks.append([step, r])
        if self.place.world.first:
            write_whole(path, json.dumps(looks).encode())
        self.place.world.wait()
        best = max(range(len(looks)), key=lambda i: looks[i][1])
        return len(looks) - 1 - best >= PATIENCE


def _load_best(folder: Path, opened: LanguageModel, world: World) -> None:
    """Load the weights that were best on the dev rows."""
    path = folder / f"{BEST}.safetensors"
    if not path.is_file():
        return
    from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict

    options = StateDictOptions(full_state_dict=world.size > 1, strict=False)
    set_model_state_dict(opened.lm, load_file(path), options=options)


# ── the model folder ──────────────────────────────────────────────────────────────────────────────────────────────────
def _finish(settings: Settings, about: dict[str, Any], opened: LanguageModel, state: dict[str, Any]) -> None:
    """Write the model in transformers' format with its manifest, atomically, and remove the checkpoints."""
    fresh = settings.out / f".{MODEL}.new"
    shutil.rmtree(fresh, ignore_errors=True)  # left by a killed run
    save_model(opened, state, fresh)
    own = (user_path(settings.data[0]) / "emobank.csv").is_file()
    licence = "CC BY-SA 4.0 (EmoBank, JULIELab)" if own else "that of the corpus given as --data"
    manifest = {"recipe": "perspectives", **about, "licence_of_labels": licence}
    write_whole(fresh / MANIFEST, json.dumps(manifest, indent=2).encode() + b"\n")
    for path in (*fresh.rglob("*"), fresh):
        to_disk(path)
    fresh.rename(settings.out / MODEL)  # from here on the run is done
    to_disk(settings.out)
    distributed.forget(settings.out / TRAINING)
    (settings.out / TRAINING / f"{BEST}.safetensors").unlink(missing_ok=True)
