"""`overtone train echat`: run the stages of a preset in order, each starting from the weights of the previous one.

A run's folder has `run.json`, `stage-N/` (log, evaluations, intermediate checkpoints, the finished `model/`) and
`report.html`.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch
from msgspec import Struct
from torch import nn

from overtone.echat.data.layout import Think
from overtone.echat.learn import distributed, gpu_speed
from overtone.echat.learn.batch_stream import Corpus, Stream, survey, workers_for
from overtone.echat.learn.batches import Clips, mel_augmenter
from overtone.echat.learn.distributed import World
from overtone.echat.learn.samples import Samples
from overtone.echat.learn.stages import StageRun, plan, stages
from overtone.echat.learn.training_loop import stop_on_sigterm, train
from overtone.echat.learn.training_report import LOOKS, RUN, Look, Row, RunDescription, write_report
from overtone.echat.net import checkpoint
from overtone.echat.net import config as configs
from overtone.echat.net.config import PARTS, Config, ModelConfig
from overtone.echat.net.model import EChat
from overtone.echat.net.tokenizer import open_tokenizer
from overtone.errors import StoreError, UsageError
from overtone.heard import HeardInTraining, union
from overtone.paths import shown, user_path, write_whole

HELD_OUT = 16  # held-out records per feed whose loss is measured
DATA = "data.json"  # in a stage's folder: the SHA-256 of its data


class Settings(Struct, frozen=True):
    """The user's settings of a run."""

    preset: str
    data: tuple[Path, ...]
    out: Path
    stage: str = ""  # "" = all
    start: Path | None = None  # a checkpoint
    ablate: tuple[str, ...] = ()
    scale: float = 1.0
    steps: int = 0  # steps per stage; 0 = as in the preset
    seed: int = 0
    minutes: float = math.inf
    resume: bool = False
    device: str = "auto"
    encoder: str = ""  # files of weights, if the packages are not installed
    lm: str = ""
    workers: int = -1  # processes that make batches; -1: depends on the device
    log_every: int = 20
    look_every: int = 0  # steps between evaluations; 0: at the end of each stage
    save_minutes: float | None = None  # None: as in the preset
    graphs: bool = True  # record kernels on one GPU
    samples: int = 4  # held-out clips that are answered in every evaluation


@dataclass(frozen=True)
class RunContext:
    """The state that all stages of a run share."""

    settings: Settings
    config: Config
    corpus: Corpus
    clips: Clips
    tok: Any
    world: World
    workers: int  # processes that make batches
    deadline: float
    should_stop: Callable[[], bool]
    say: Callable[[str], None]  # prints on one process only


def run(settings: Settings, say: Callable[[str], None]) -> bool:
    """Train the requested stages. Return False if time ran out or SIGTERM arrived first.

    Raises UsageError, DataError or StoreError.
    """
    with stop_on_sigterm() as terminated:
        return _run(settings, say, terminated.is_set)


def _run(settings: Settings, say: Callable[[str], None], should_stop: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 60 * settings.minutes
    config = given(configs.read(settings.preset), settings)
    table = stages(config.stage, settings.preset, config.shares)
    planned = plan(table, settings.ablate, settings.scale, each=settings.steps)
    chosen = {r.name for r in plan(table, settings.ablate, settings.scale, settings.stage)}
    corpus = Corpus(settings.data)
    corpus.check(config.model.speech)
    world = distributed.enter(settings.device)
    if world.first:
        claim(settings, config, planned)
    world.wait()
    tok = open_tokenizer(config.model)
    workers = settings.workers if settings.workers >= 0 else workers_for(world.device)
    survey(corpus, [r for r in planned if r.name in chosen and not finished(settings, r)], config.model, tok, workers)
    clips = Clips(corpus.packs, world.device)
    say_once = say if world.first else lambda line: None
    context = RunContext(settings, config, corpus, clips, tok, world, workers, deadline, should_stop, say_once)
    try:
        before: Path | None = settings.start
        model: EChat | None = None  # from the previous stage; None: load it from `before`, or make a new one
        for number, stage_run in enumerate(planned):
            if finished(settings, stage_run):
                model = None
                if stage_run.name in chosen:
                    say_once(f"stage {stage_run.name} is already done")
            elif stage_run.name in chosen:
                if number and before is None:
                    raise UsageError(
                        f"stage {stage_run.name} needs the result of stage {planned[number - 1].name}: train that "
                        "first, or give a checkpoint with --from"
                    )
                model = _stage(context, stage_run, model, before)
                if model is None:
                    return False
                if world.size > 1:  # sharded over the processes
                    model = None
            else:
                continue
            before = folder_of(settings, stage_run) / "model"
    finally:
        if world.first and (settings.out / RUN).is_file():
            say(f"report: {write_report(settings.out)}")
        world.leave()
    return True


def _stage(context: RunContext, run: StageRun, kept: EChat | None, before: Path | None) -> EChat | None:
    """Train one stage, and return its model, or None if it stopped early. `kept` is the previous stage's model."""
    settings, config, corpus = context.settings, context.config, context.corpus
    world, say = context.world, context.say
    folder = folder_of(settings, run)
    stream = Stream(
        corpus, context.clips, run, config.model, context.tok,
        seed=settings.seed, rank=world.rank, world=world.size, workers=context.workers,
    )  # fmt: skip
    say(f"stage {run.name}: {run.stage.title}; {run.steps} steps, {run.targets} target tokens")
    for line in stream.summary():
        say(f"  {line}")
    if world.first:
        same_data(folder, corpus.digests, settings.resume)
    torch.manual_seed(settings.seed)
    if world.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    model = kept or first_model(config, before)
    prepare(model, run, stream)
    if world.size > 1 and world.device.type == "cuda":
        model.checkpointing()
    frozen = [weight for weight in model.lm.parameters() if world.size == 1 and not weight.requires_grad]
    exact = gpu_speed.freeze(frozen, narrow=gpu_speed.alone_on_gpu(world))
    distributed.spread(model, world, layers)
    gpu_speed.record(model, settings.graphs and gpu_speed.alone_on_gpu(world), run.stage.positions)
    parts = {name: model.learned(name) for name in PARTS}
    held = stream.held_out(HELD_OUT)
    think: Think = ""
    if any(feed.think for feed in run.stage.feeds):
        think = "natural" if run.stage.think == "natural" else "label"
    answers = any(feed.task == "s2s" for feed in run.stage.feeds)
    samples = Samples(corpus, context.tok, config, settings.samples, think=think if answers else "", answers=answers)

    def look(step: int) -> None:
        losses = {}
        for name, batch in held.items():
            losses[name] = round(float(model(stream.ready(batch, 0)).loss), 4)
        replies = samples.take(model, folder, step) if world.size == 1 and run.stage.lr.lm else []
        if world.first:
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / LOOKS).open("ab") as file:
                file.write(msgspec.json.encode(Look(step, losses, replies)) + b"\n")
            write_report(settings.out)

    def tell(row: Row, speed: float) -> None:
        named = (("text", row.text), ("speech", row.speech), ("ctc", row.ctc), ("cues", row.cues))
        parts = [f"{name} {value:.3f}" for name, value in named if value]
        spent = f"{speed:,.0f} positions/s  {row.seconds:.0f} s"
        say(f"  step {row.step}/{run.steps}  loss {row.loss:.3f}  {'  '.join(parts)}  {spent}")

    done = train(
        model, parts, stream, run, folder, world, seed=settings.seed, resume=settings.resume, deadline=context.deadline,
        log_every=settings.log_every, save_every=save_every(settings, config), look_every=settings.look_every,
        look=look, tell=tell, should_stop=context.should_stop,
    )  # fmt: skip
    if world.device.type == "cuda":
        say(f"  peak GPU memory {torch.cuda.max_memory_reserved() / 1e9:.0f} GB{gpu_speed.sizes(model)}")
    if not done:
        why = "stopped by a signal" if context.should_stop() else "time is up"
        say(f"stage {run.name}: {why}; a checkpoint is saved, continue with --resume")
        return None
    gpu_speed.thaw(frozen, exact)
    notes = {"stage": run.name, "steps": run.steps, "seed": settings.seed, "ablate": list(settings.ablate),
             "recipe": recipe_name(config, settings)}  # fmt: skip
    known = checkpoint.index(before).notes.get("data") if before else ()
    if known is not None:  # if the starting checkpoint does not record its data, this one cannot either
        notes["data"] = sorted({*corpus.digests, *known})
    heard = union([*inherited(config, before), stream.heard()]) if world.first else HeardInTraining()
    finish(model, config, folder, world, notes, heard)
    return model


def prepare(model: EChat, run: StageRun, stream: Stream) -> None:
    """Configure a model for a stage: its losses, augmentation and trained parts."""
    stage = run.stage
    model.ctc, model.cues, model.listen = stage.ctc, stage.cues, stage.listen
    augmented = stream.mel and (stage.augment.specaug or stage.augment.specsub)
    model.encoder.augment = mel_augmenter(stage.augment, stream.generator) if augmented else None
    for name in PARTS:
        for weight in model.learned(name):
            weight.requires_grad_(stage.lr.rate_of(name) > 0)


def folder_of(settings: Settings, run: StageRun) -> Path:
    """Return the folder of a stage."""
    return settings.out / f"stage-{run.name}"


def finished(settings: Settings, run: StageRun) -> bool:
    """Return whether a stage has been completed."""
    return (folder_of(settings, run) / "model" / checkpoint.INDEX).is_file()


def recipe_name(config: Config, settings: Settings) -> str:
    """Return a hash of the settings that all arms and seeds of an ablation share: sizes, stages and step counts."""
    shared: tuple[Any, ...] = (_sizes(config), config.stage, settings.scale, settings.steps)
    if config.shares:
        shared = (*shared, config.shares)
    return hashlib.sha256(msgspec.json.encode(shared, order="deterministic")).hexdigest()[:16]


def same_data(folder: Path, digests: list[str], resume: bool) -> None:
    """Store the SHA-256 of a stage's data. Raises StoreError if a resumed stage has other data."""
    path = folder / DATA
    if resume and path.is_file() and msgspec.json.decode(path.read_bytes()) != digests:
        raise StoreError(
            f"{shown(str(folder))} was started with other data; give the same --data, or choose another --out"
        )
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(path, msgspec.json.encode(digests))


def save_every(settings: Settings, config: Config) -> float:
    """Return the seconds between intermediate checkpoints."""
    return 60 * (config.save_minutes if settings.save_minutes is None else settings.save_minutes)


def first_model(config: Config, before: Path | None) -> EChat:
    """Return the initial model of a stage: new, or loaded from `before`. Raises UsageError if `before` does not fit."""
    if before is None:
        return checkpoint.make(config)
    model, loaded = checkpoint.load(before, merged=False)
    if _sizes(loaded) != _sizes(config):
        raise UsageError(f"{shown(str(before))}: its model does not fit the preset; use the one it was trained with")
    return model


def inherited(config: Config, before: Path | None) -> Iterator[HeardInTraining]:
    """Yield what was heard by the checkpoints that a stage begins with: `before`, or else that of the encoder's
    weights. An incomplete statement stands for a checkpoint that does not state what it heard."""
    weights = user_path(config.model.encoder.weights).parent if config.model.encoder.weights else None
    if before is not None:
        yield checkpoint.heard(before) or HeardInTraining(complete=False)
    elif weights is not None and (weights / checkpoint.INDEX).is_file():
        yield checkpoint.heard(weights) or HeardInTraining(complete=False)


def given(config: Config, settings: Settings) -> Config:
    """Return the configuration in which the weights are the files that the user named, if any."""
    encoder, lm = config.model.encoder, config.model.lm
    if settings.encoder:
        encoder = msgspec.structs.replace(encoder, weights=settings.encoder)
    if settings.lm:
        lm = msgspec.structs.replace(lm, weights=settings.lm)
    return msgspec.structs.replace(config, model=msgspec.structs.replace(config.model, encoder=encoder, lm=lm))


def _sizes(config: Config) -> ModelConfig:
    """Return the model's configuration without the source of its initial weights, so that only sizes are compared."""
    blank = {"weights": "", "source": ""}
    return msgspec.structs.replace(
        config.model,
        encoder=msgspec.structs.replace(config.model.encoder, **blank),
        lm=msgspec.structs.replace(config.model.lm, **blank),
    )


def layers(model: nn.Module) -> list[nn.Module]:
    """Return the layers that are sharded individually: every transformer layer of the three networks."""
    kinds = ("DecoderLayer", "EncoderLayer", "Block")
    return [module for module in model.modules() if type(module).__name__.endswith(kinds)]


def finish(
    model: EChat, config: Config, folder: Path, world: World, notes: dict[str, Any], heard: HeardInTraining
) -> None:
    """Write a finished stage's weights, and remove its intermediate checkpoints. With `dtype = "float16"`, they
    are rounded first, so that the next stage starts from the weights that are written."""
    state = distributed.whole_state(model, world)
    if world.first:
        gathered = model
        if world.size > 1:
            gathered = checkpoint.random_copy(model)
            gathered.load_state_dict(state)
        half = torch.float16 if config.dtype == "float16" else None
        if half:
            checkpoint.round_weights(gathered, half)
        checkpoint.save(gathered, folder / "model", config, dtype=half, notes=notes, heard=heard)
        distributed.forget(folder)
    world.wait()


def claim(settings: Settings, config: Config, planned: list[StageRun], **more: Any) -> None:
    """Write run.json. Raises StoreError if the folder has a run with other settings; `more` are further settings."""
    asked = {
        "preset": config,
        "ablate": sorted(settings.ablate),
        "scale": settings.scale,
        "steps": settings.steps,
        "seed": settings.seed,
        **more,
    }
    plain = msgspec.json.decode(msgspec.json.encode(asked))  # as it will be read back
    rows = [description_of(stage_run) for stage_run in planned]
    arm = "".join(f" − {name}" for name in sorted(settings.ablate))
    description = RunDescription(f"EChat, {config.name}{arm}, seed {settings.seed}", rows, plain)
    check_same_run(settings.out, plain)
    for stage_run in planned:
        folder = folder_of(settings, stage_run)
        begun = (folder / "log.jsonl").is_file() and not (folder / "model").exists()
        if begun and not settings.resume and (not settings.stage or stage_run.name.startswith(settings.stage)):
            raise StoreError(
                f"{shown(str(folder))} has already been started; continue it with --resume, or choose another --out"
            )
    write_whole(settings.out / RUN, msgspec.json.format(msgspec.json.encode(description), indent=1))


def check_same_run(out: Path, settings: dict[str, Any]) -> bool:
    """Return whether the folder has a run. Raises StoreError if that run has other settings."""
    path = out / RUN
    if not path.is_file():
        return False
    try:
        old = msgspec.json.decode(path.read_bytes(), type=RunDescription).settings
    except msgspec.DecodeError as error:
        raise StoreError(f"{shown(str(path))}: not a training run: {error}; choose another --out") from None
    other = [key for key, value in settings.items() if value != old.get(key)]
    if other:
        raise StoreError(f"{shown(str(out))} holds a run with a different {', '.join(other)}; choose another --out")
    return True


def description_of(run: StageRun) -> dict[str, Any]:
    """Return a stage's entry in run.json."""
    learning = list(run.stage.lr.learning())
    return {
        "name": run.name,
        "title": run.stage.title,
        "steps": run.steps,
        "targets": run.targets,
        "learning": learning,
    }
