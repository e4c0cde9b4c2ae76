"""`overtone train echat`: the stages of a preset one after the other, each from the weights the one before it left.
A run's folder: `run.json`, `stage-N/` (log, looks, checkpoints under way, the finished `model/`), `report.html`."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch
from msgspec import Struct
from torch import nn

from overtone.echat.data.layout import Think
from overtone.echat.learn import fast, launch
from overtone.echat.learn.batches import Clips, mel_augmenter
from overtone.echat.learn.curves import LOOKS, RUN, Look, Row, Told, write_report
from overtone.echat.learn.launch import World
from overtone.echat.learn.speaking import Samples
from overtone.echat.learn.stages import StageRun, plan, stages
from overtone.echat.learn.stream import Corpus, Stream, survey, workers_for
from overtone.echat.learn.train import ending_politely, train
from overtone.echat.net import checkpoint
from overtone.echat.net import config as configs
from overtone.echat.net.config import PARTS, Config, ModelConfig
from overtone.echat.net.model import EChat
from overtone.echat.net.tokenizer import open_tokenizer
from overtone.errors import StoreError, UsageError
from overtone.paths import shown, write_whole

HELD_OUT = 16  # records of each feed whose loss is looked at
DATA = "data.json"  # beside a stage's log: what it learns from


class Settings(Struct, frozen=True):
    """What a user asks for."""

    preset: str
    data: tuple[Path, ...]
    out: Path
    stage: str = ""  # all
    start: Path | None = None  # a checkpoint
    ablate: tuple[str, ...] = ()
    scale: float = 1.0
    steps: int = 0  # of each stage, instead of the preset's
    seed: int = 0
    minutes: float = math.inf
    resume: bool = False
    device: str = "auto"
    encoder: str = ""  # files of weights, where the packages are not installed
    lm: str = ""
    workers: int = -1  # processes that make batches; -1: as the device wants it
    log_every: int = 20
    look_every: int = 0  # steps; 0: at the end of each stage
    save_minutes: float | None = None  # None: as the preset says
    graphs: bool = True  # where one GPU trains, its kernels are recorded
    samples: int = 4  # held-out clips that are answered at every look


@dataclass(frozen=True)
class Whole:
    """What all stages of a run have in common."""

    settings: Settings
    config: Config
    corpus: Corpus
    clips: Clips
    tok: Any
    world: World
    workers: int  # processes that make batches
    deadline: float
    told_to_end: Callable[[], bool]
    say: Callable[[str], None]  # on one process of many


def run(settings: Settings, say: Callable[[str], None]) -> bool:
    """Train; True when all stages asked for are done, False when the time was up, or a SIGTERM came, before."""
    with ending_politely() as told:
        return _run(settings, say, told.is_set)


def _run(settings: Settings, say: Callable[[str], None], told_to_end: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 60 * settings.minutes
    config = given(configs.read(settings.preset), settings)
    table = stages(config.stage, settings.preset)
    planned = plan(table, settings.ablate, settings.scale, each=settings.steps)
    chosen = {r.name for r in plan(table, settings.ablate, settings.scale, settings.stage)}
    corpus = Corpus(settings.data)
    corpus.check(config.model.speech)
    world = launch.enter(settings.device)
    if world.first:
        claim(settings, config, planned)
    world.wait()
    tok = open_tokenizer(config.model)
    workers = settings.workers if settings.workers >= 0 else workers_for(world.device)
    survey(corpus, [r for r in planned if r.name in chosen and not finished(settings, r)], config.model, tok, workers)
    clips = Clips(corpus.packs, world.device)
    told = say if world.first else lambda line: None
    whole = Whole(settings, config, corpus, clips, tok, world, workers, deadline, told_to_end, told)
    try:
        before: Path | None = settings.start
        model: EChat | None = None  # as the stage before left it; None: to be read from `before`, or new
        for number, stage_run in enumerate(planned):
            if finished(settings, stage_run):
                model = None
                if stage_run.name in chosen:
                    told(f"stage {stage_run.name} is done")
            elif stage_run.name in chosen:
                if number and before is None:
                    raise UsageError(
                        f"stage {stage_run.name} starts from what stage {planned[number - 1].name} learnt: train that "
                        "first, or give a checkpoint with --from"
                    )
                model = _stage(whole, stage_run, model, before)
                if model is None:
                    return False
                if world.size > 1:  # in pieces, each on its process
                    model = None
            else:
                continue
            before = folder_of(settings, stage_run) / "model"
    finally:
        if world.first and (settings.out / RUN).is_file():
            say(f"report: {write_report(settings.out)}")
        world.leave()
    return True


def _stage(whole: Whole, run: StageRun, kept: EChat | None, before: Path | None) -> EChat | None:
    """One stage: its data, its model (`kept` from the stage before, or read), the loop, its weights. None: not done."""
    settings, config, corpus, world, say = whole.settings, whole.config, whole.corpus, whole.world, whole.say
    folder = folder_of(settings, run)
    stream = Stream(
        corpus, whole.clips, run, config.model, whole.tok,
        seed=settings.seed, rank=world.rank, world=world.size, workers=whole.workers,
    )  # fmt: skip
    say(f"stage {run.name}: {run.stage.title}; {run.steps} steps, {run.targets} target tokens")
    for line in stream.told():
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
    frozen = world.size == 1 and not run.stage.lr.lm
    exact = fast.freeze(model.lm, narrow=fast.alone_on_gpu(world)) if frozen else []
    launch.spread(model, world, layers)
    fast.record(model, settings.graphs and fast.alone_on_gpu(world), run.stage.positions)
    parts = {name: list(getattr(model, name).parameters()) for name in PARTS}
    held = stream.held_out(HELD_OUT)
    think: Think = ""
    if any(feed.think for feed in run.stage.feeds):
        think = "natural" if run.stage.think == "natural" else "label"
    answers = any(feed.task == "s2s" for feed in run.stage.feeds)
    samples = Samples(corpus, whole.tok, config, settings.samples, think=think if answers else "", answers=answers)

    def look(step: int) -> None:
        losses = {}
        for name, batch in held.items():
            losses[name] = round(float(model(stream.ready(batch, 0)).loss), 4)
        said = samples.take(model, folder, step) if world.size == 1 and run.stage.lr.lm else []
        if world.first:
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / LOOKS).open("ab") as file:
                file.write(msgspec.json.encode(Look(step, losses, said)) + b"\n")
            write_report(settings.out)

    def tell(row: Row, speed: float) -> None:
        named = (("text", row.text), ("speech", row.speech), ("ctc", row.ctc), ("cues", row.cues))
        parts = [f"{name} {value:.3f}" for name, value in named if value]
        spent = f"{speed:,.0f} positions/s  {row.seconds:.0f} s"
        say(f"  step {row.step}/{run.steps}  loss {row.loss:.3f}  {'  '.join(parts)}  {spent}")

    done = train(
        model, parts, stream, run, folder, world, seed=settings.seed, resume=settings.resume, deadline=whole.deadline,
        log_every=settings.log_every, save_every=save_every(settings, config), look_every=settings.look_every,
        look=look, tell=tell, told_to_end=whole.told_to_end,
    )  # fmt: skip
    if world.device.type == "cuda":
        say(f"  at most {torch.cuda.max_memory_reserved() / 1e9:.0f} GB of the GPU were used{fast.sizes(model)}")
    if not done:
        why = "ended by a signal" if whole.told_to_end() else "the time is up"
        say(f"stage {run.name}: {why}; its checkpoint is saved, --resume goes on")
        return None
    if frozen:
        fast.thaw(model.lm, exact)
    notes = {"stage": run.name, "steps": run.steps, "seed": settings.seed, "ablate": list(settings.ablate),
             "recipe": recipe_name(config, settings)}  # fmt: skip
    known = checkpoint.index(before).notes.get("data") if before else ()
    if known is not None:  # of a start that does not say what it learnt from, nobody can
        notes["data"] = sorted({*corpus.digests, *known})
    finish(model, config, folder, world, notes)
    return model


def prepare(model: EChat, run: StageRun, stream: Stream) -> None:
    """What a stage wants of a model: its losses, what is done to the sound, which parts learn."""
    stage = run.stage
    model.ctc, model.cues, model.listen = stage.ctc, stage.cues, stage.listen
    spoilt = stream.mel and (stage.augment.specaug or stage.augment.specsub)
    model.encoder.augment = mel_augmenter(stage.augment, stream.generator) if spoilt else None
    for name in PARTS:
        getattr(model, name).requires_grad_(stage.lr.of(name) > 0)


def folder_of(settings: Settings, run: StageRun) -> Path:
    return settings.out / f"stage-{run.name}"


def finished(settings: Settings, run: StageRun) -> bool:
    return (folder_of(settings, run) / "model" / checkpoint.INDEX).is_file()


def recipe_name(config: Config, settings: Settings) -> str:
    """What all arms and seeds of an ablation have in common: sizes, stages and how they are shortened."""
    told = (_sizes(config), config.stage, settings.scale, settings.steps)
    return hashlib.sha256(msgspec.json.encode(told, order="deterministic")).hexdigest()[:16]


def same_data(folder: Path, digests: list[str], resume: bool) -> None:
    """Keep what a stage learns from, by the SHA-256 of its lists; refuse to go on with anything else."""
    path = folder / DATA
    if resume and path.is_file() and msgspec.json.decode(path.read_bytes()) != digests:
        raise StoreError(
            f"{shown(str(folder))} was begun with other data; give the same --data, or choose another --out"
        )
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(path, msgspec.json.encode(digests))


def save_every(settings: Settings, config: Config) -> float:
    """Seconds between checkpoints under way."""
    return 60 * (config.save_minutes if settings.save_minutes is None else settings.save_minutes)


def first_model(config: Config, before: Path | None) -> EChat:
    """The model a stage starts with: new, or as another stage left it."""
    if before is None:
        return checkpoint.make(config)
    model, found = checkpoint.load(before)
    if _sizes(found) != _sizes(config):
        raise UsageError(f"{shown(str(before))}: its model is not the preset's; train it with the preset it came from")
    return model


def given(config: Config, settings: Settings) -> Config:
    """The configuration with the files of weights that were named."""
    encoder, lm = config.model.encoder, config.model.lm
    if settings.encoder:
        encoder = msgspec.structs.replace(encoder, weights=settings.encoder)
    if settings.lm:
        lm = msgspec.structs.replace(lm, weights=settings.lm)
    return msgspec.structs.replace(config, model=msgspec.structs.replace(config.model, encoder=encoder, lm=lm))


def _sizes(config: Config) -> ModelConfig:
    """The model without where its first weights came from."""
    blank = {"weights": "", "source": ""}
    return msgspec.structs.replace(
        config.model,
        encoder=msgspec.structs.replace(config.model.encoder, **blank),
        lm=msgspec.structs.replace(config.model.lm, **blank),
    )


def layers(model: nn.Module) -> list[nn.Module]:
    """The layers that are sharded one by one: every transformer layer of the three networks."""
    kinds = ("DecoderLayer", "EncoderLayer", "Block")
    return [module for module in model.modules() if type(module).__name__.endswith(kinds)]


def finish(model: EChat, config: Config, folder: Path, world: World, notes: dict[str, Any]) -> None:
    """Write a finished stage's weights and drop its checkpoints under way."""
    state = launch.whole_state(model, world)
    if world.first:
        whole = model
        if world.size > 1:
            whole = checkpoint.emptied(model)
            whole.load_state_dict(state)
        checkpoint.save(whole, folder / "model", config, notes=notes)
        launch.forget(folder)
    world.wait()


def claim(settings: Settings, config: Config, planned: list[StageRun], **more: Any) -> None:
    """Write run.json, or refuse a folder that holds another run: `more` must be the same as well."""
    asked = {
        "preset": config,
        "ablate": sorted(settings.ablate),
        "scale": settings.scale,
        "steps": settings.steps,
        "seed": settings.seed,
        **more,
    }
    said = msgspec.json.decode(msgspec.json.encode(asked))  # as it will be read again
    rows = [
        {"name": r.name, "title": r.stage.title, "steps": r.steps, "targets": r.targets,
         "learning": list(r.stage.lr.learning())}
        for r in planned
    ]  # fmt: skip
    arm = "".join(f" − {name}" for name in sorted(settings.ablate))
    told = Told(f"EChat, {config.name}{arm}, seed {settings.seed}", rows, said)
    path = settings.out / RUN
    if path.is_file():
        try:
            old = msgspec.json.decode(path.read_bytes(), type=Told)
        except msgspec.DecodeError as error:
            raise StoreError(f"{shown(str(path))}: not a run's: {error}; choose another --out") from None
        other = [key for key, value in said.items() if value != old.settings.get(key)]
        if other:
            raise StoreError(
                f"{shown(str(settings.out))} holds a run with another {', '.join(other)}; choose another --out"
            )
    for stage_run in planned:
        folder = folder_of(settings, stage_run)
        begun = (folder / "log.jsonl").is_file() and not (folder / "model").exists()
        if begun and not settings.resume and (not settings.stage or stage_run.name.startswith(settings.stage)):
            raise StoreError(
                f"{shown(str(folder))} was begun before; --resume goes on with it, or choose another --out"
            )
    write_whole(path, msgspec.json.format(msgspec.json.encode(told), indent=1))
