"""`overtone train echat --stage prefer`: direct preference optimisation (DPO) on text and speech tokens together.

    p  the sum of a reply's token log-probabilities (thought, text, speech) under the model in training
    r  the same under the frozen model it started from
    loss = −log σ(β · [(p(chosen) − r(chosen)) − (p(rejected) − r(rejected))])  +  sft · cross-entropy of the chosen

A batch has pairs: the chosen replies first, then the rejected ones in the same order. The loop is that of every stage,
with pairs as targets. There is no dropout and no augmentation, because both models must hear the same input. Under
torchrun, both models are sharded, and the processes share the pairs of a step.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
import torch.nn.functional as F
from msgspec import Struct
from torch import Tensor, nn

from overtone.echat.data import layout
from overtone.echat.data.containers import PACK, digests
from overtone.echat.learn import distributed, pairs
from overtone.echat.learn.batch_stream import TRAIN, Corpus, listed
from overtone.echat.learn.batches import RATE, Batch, Clips, collate
from overtone.echat.learn.distributed import World
from overtone.echat.learn.run_stages import (
    DATA,
    Settings,
    claim,
    finish,
    first_model,
    given,
    inherited,
    layers,
    same_data,
    save_every,
)
from overtone.echat.learn.samples import Samples
from overtone.echat.learn.stages import Augment, Stage, StageRun, stages
from overtone.echat.learn.training_loop import stop_on_sigterm, train
from overtone.echat.learn.training_report import LOOKS, MARGINS, RUN, Look, Margin, Row, Sample, write_report
from overtone.echat.net import checkpoint
from overtone.echat.net import config as configs
from overtone.echat.net.config import PARTS, Config, ModelConfig, convert, positions
from overtone.echat.net.model import EChat, Out
from overtone.echat.net.tokenizer import open_tokenizer
from overtone.echat.speech import open_tokens
from overtone.errors import DataError, UsageError
from overtone.heard import HeardInTraining, union
from overtone.paths import shown

NAME = "prefer"
LOOKED_AT = 64  # pairs per part that are evaluated


class PreferStage(Stage, frozen=True, forbid_unknown_fields=True):
    """The settings of `[stage.prefer]`. Here `targets` is the number of pairs per step. A pair uses the first feed that
    suits it."""

    beta: float = 0.1  # penalty for leaving the reference model
    sft: float = 0.0  # weight of the chosen replies' cross-entropy
    per_token: bool = False  # means over a reply's tokens instead of sums, so that length does not matter

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.beta <= 0 or self.sft < 0:
            raise ValueError("beta must be above 0, sft at least 0")
        if self.augment != Augment() or self.ctc or self.cues or self.listen:
            raise ValueError("a preference stage must not have augment, ctc, cues or listen")
        if any(f.task not in ("s2s", "s2t") or f.style != "chat" or f.streaming for f in self.feeds):
            raise ValueError("feeds: a preference stage allows only s2s and s2t, without style and streaming")


def read_stage(config: Config, where: str) -> PreferStage:
    """Read the preset's table. Raises UsageError if it is missing or invalid."""
    if NAME not in config.stage:
        raise UsageError(f"{where}: the preset has no [stage.{NAME}] table; copy the one of mini")
    return convert(config.stage[NAME], PreferStage, f"{where}: [stage.{NAME}]")


# ── the loss ──────────────────────────────────────────────────────────────────────────────────────────────────────────
class LogProbabilities(Struct, frozen=True):
    """The log-probabilities of P pairs under two models, (2P,) with the chosen first, and the replies' token counts."""

    new: Tensor
    old: Tensor
    tokens: Tensor

    def margins(self, per_token: bool) -> Tensor:
        """Return the increase in preference for the chosen reply over the frozen model, in nats: (P,)."""
        gained = self.new - self.old
        chosen, rejected = (gained / self.tokens if per_token else gained).chunk(2)
        return chosen - rejected


def dpo(replies: LogProbabilities, beta: float, per_token: bool = False) -> Tensor:
    """Return the loss of each pair: (P,)."""
    return -F.logsigmoid(beta * replies.margins(per_token))


class Preferring(nn.Module):
    """A model that learns from pairs, and the frozen model it started from."""

    def __init__(self, policy: EChat, reference: EChat, stage: PreferStage) -> None:
        super().__init__()
        self.policy, self.stage = policy, stage
        disable_dropout(policy)
        reference.eval().requires_grad_(False)
        self._reference = [reference]  # in a list, so that it is not a submodule that is trained and saved

    def log_probabilities(self, batch: Batch) -> tuple[LogProbabilities, Tensor, Tensor]:
        """Return the batch's log-probabilities under both models, and the loss and id of each target, (N,)."""
        cost, goal, *_ = self.policy.costs(batch)
        row = batch.target_at // batch.ids.shape[1]  # (N,): the row of a target
        with torch.no_grad():
            before, *_ = self._reference[0].costs(batch)
        size = len(batch.ids)
        none = cost.new_zeros(size)
        tokens = none.index_add(0, row, torch.ones_like(cost))
        sums = LogProbabilities(none.index_add(0, row, -cost), none.index_add(0, row, -before), tokens)
        return sums, cost, goal

    def forward(self, batch: Batch) -> Out:
        """Compute the preference loss of a batch."""
        replies, cost, goal = self.log_probabilities(batch)
        loss = dpo(replies, self.stage.beta, self.stage.per_token).mean()
        chosen = batch.target_at < len(batch.ids) // 2 * batch.ids.shape[1]  # (N,)
        if self.stage.sft:
            loss = loss + self.stage.sft * (cost * chosen).sum() / chosen.sum()
        spoken, written = chosen & (goal >= self.policy.vocab), chosen & (goal < self.policy.vocab)
        with torch.no_grad():  # for the log, to see whether the chosen replies stay likely
            text = (cost * written).sum() / written.sum().clamp(min=1)
            speech = (cost * spoken).sum() / spoken.sum().clamp(min=1)
        none = loss.new_zeros(())
        return Out(loss, text, speech, none, none, written.sum(), spoken.sum())


def disable_dropout(model: nn.Module) -> None:
    """Disable dropout, because noise in one of the two models would look like a preference."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        for name in ("dropout", "attention_dropout", "activation_dropout", "layerdrop"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)


# ── the data ──────────────────────────────────────────────────────────────────────────────────────────────────────────
class Laid(Struct, frozen=True):
    """A pair as two sequences."""

    key: str
    task: str
    sides: tuple[layout.Sequence, layout.Sequence]
    length: int  # positions of the longer one


class Pairs:
    """An endless sequence of batches of pairs. Each epoch has a new order, determined by the seed. Of several
    processes, each takes its turn, so that together they use the pairs that one process would use."""

    def __init__(
        self, corpus: Corpus, clips: Clips, stage: PreferStage, model: ModelConfig, tok: Any, seed: int = 0,
        tags: bool = False, rank: int = 0, world: int = 1,
    ) -> None:  # fmt: skip
        self.corpus, self.clips, self.stage, self.model, self.seed = corpus, clips, stage, model, seed
        self.rank, self.world = rank, world
        self.tags = tags  # whether every reply begins with the tag of its emotion, see Both.lay_out
        self.left_out: Counter[str] = Counter()
        every = [both for pack in corpus.packs for both in pairs.of_pack(pack)]
        pairs.check_apart((both.chosen.group, both.chosen.part) for both in every)
        if wrong := pairs.problems(every, model.speech.codes):
            raise DataError(f"{len(wrong)} replies cannot be trained on:{listed(wrong)}")
        self.used = [both for both in every if both.chosen.part in TRAIN]
        self.train = self._laid(self.used, tok)
        self.held_out = self._laid([both for both in every if both.chosen.part not in TRAIN], tok)
        if not self.train:
            why = ", ".join(f"{why} ({count})" for why, count in self.left_out.most_common(3)) or "all are held out"
            raise DataError(f"none of {len(every)} pairs can be used: {why}; give others, or change the stage's feeds")

    def batches(self, start: int) -> Generator[tuple[int, Batch], None, None]:
        """Yield this process's batches from index `start`."""
        at, epoch = 0, 0  # `at` counts the batches of all processes
        most = max(1, self.stage.targets // self.world)
        while True:
            order = np.random.default_rng([self.seed % 2**32, epoch]).permutation(len(self.train))
            for some in self.groups([self.train[i] for i in order], most):
                index, turn = divmod(at, self.world)
                if index >= start and turn == self.rank:
                    yield index, self.collate(some, index)
                at += 1
            epoch += 1

    def groups(self, laid: Sequence[Laid], most: int) -> Iterator[list[Laid]]:
        """Yield batches of pairs, in order. A batch has at most `most` pairs, and as many as fit into the stage's
        positions, padding included."""
        held: list[Laid] = []
        longest = 0
        for one in laid:
            longest = max(longest, one.length)
            if held and (len(held) == most or 2 * (len(held) + 1) * longest > self.stage.positions):
                yield held
                held, longest = [], one.length
            held.append(one)
        if held:
            yield held

    def collate(self, some: Sequence[Laid], index: int = 0) -> Batch:
        """Build a batch of pairs."""
        rows = [one.sides[side] for side in (0, 1) for one in some]
        clips = [[self.corpus.number(clip) for clip in row.clips] for row in rows]
        slots = [[positions(self.model, int(self.clips.sizes[clip])) for clip in row] for row in clips]
        none: list[list[list[int]]] = [[[]] * len(row) for row in clips]
        batch = collate(rows, clips, slots, none, task="+".join(sorted({one.task for one in some})), index=index)
        batch.n_targets = len(some)  # steps are counted and averaged in pairs
        return batch

    def ready(self, batch: Batch, step: int) -> Batch:
        """Return the batch on the device, with the waveforms of its clips."""
        return self.clips.fill(batch.to(self.clips.device))

    def tokens(self) -> float:
        """Return the mean number of targets of a chosen reply."""
        return float(np.mean([sum(t >= 0 for t in one.sides[0].targets) for one in self.train]))

    def _laid(self, some_pairs: Sequence[pairs.Both], tok: Any) -> list[Laid]:
        out = []
        for both in some_pairs:
            why = ""
            for feed in self.stage.feeds:
                try:
                    sides = both.lay_out(feed.task, tok, thinking=feed.think, tags=self.tags)
                except layout.Unfit as error:
                    why = error.why
                    continue
                lengths = []
                for side in sides:
                    seconds = [self.corpus.seconds(clip) for clip in side.clips]
                    why = layout.why_not(side, seconds, self._positions, self.stage.sequence)
                    if why:
                        break
                    lengths.append(layout.length(side, seconds, self._positions))
                if not why:
                    out.append(Laid(both.chosen.key, feed.task, sides, max(lengths)))
                    break
            if why:
                self.left_out[why] += 1
        return out

    def _positions(self, seconds: float) -> int:
        return positions(self.model, round(seconds * RATE))


def measure(model: Preferring, data: Pairs, laid: Sequence[Laid], step: int = 0, part: str = "") -> Margin:
    """Measure the margins of a model on pairs, without training."""
    losses, margins, gains = [], [], []
    stage = model.stage
    for some in data.groups(laid, len(laid)):
        with torch.no_grad():
            replies, *_ = model.log_probabilities(data.ready(data.collate(some), 0))
            losses.append(dpo(replies, stage.beta, stage.per_token).float().cpu())
            margins.append(replies.margins(stage.per_token).float().cpu())
            gains.append(torch.stack((replies.new - replies.old).float().cpu().chunk(2)))  # (2, P)
    margin, gained = torch.cat(margins), torch.cat(gains, 1)
    return Margin(
        step,
        part,
        len(laid),
        round(float(torch.cat(losses).mean()), 5),
        round(float(margin.mean()), 5),
        round(float((margin > 0).float().mean()), 4),
        *(round(float(x), 4) for x in gained.mean(1)),
    )


# ── the run ───────────────────────────────────────────────────────────────────────────────────────────────────────────
def run(settings: Settings, say: Callable[[str], None]) -> bool:
    """Run the preference stage. Return False if it stopped early. Raises UsageError, DataError or StoreError."""
    deadline = time.monotonic() + 60 * settings.minutes
    if settings.start is None:
        raise UsageError("the preference stage needs a trained model; give its checkpoint or run with --from DIR")
    if settings.ablate:
        raise UsageError("--ablate applies to stages 1 to 3 only; remove it for the preference stage")
    config = given(configs.read(settings.preset), settings)
    stage = read_stage(config, settings.preset)
    world = distributed.enter(settings.device)
    try:
        return _run(settings, config, stage, settings.start, world, deadline, say if world.first else lambda line: None)
    finally:
        world.leave()


def _run(
    settings: Settings,
    config: Config,
    stage: PreferStage,
    before: Path,
    world: World,
    deadline: float,
    say: Callable[[str], None],
) -> bool:
    """Run the stage in one of the processes. `say` prints on the first one only."""
    steps = settings.steps or max(1, round(stage.steps * settings.scale))
    planned = StageRun(NAME, stage, steps, steps * stage.targets)
    index = checkpoint.index(before)
    folder = settings.out / f"stage-{NAME}"
    read = digests(settings.data)
    if (folder / DATA).is_file():  # check before the pack of pairs is replaced
        same_data(folder, read, resume=True)
    packs = _packs(settings, config, world, say)
    corpus = Corpus(packs)
    corpus.check(config.model.speech)
    tok = open_tokenizer(config.model)
    clips = Clips(corpus.packs, world.device)
    tags = any(earlier.reply_tag for earlier in stages(config.stage, settings.preset).values())
    data = Pairs(corpus, clips, stage, config.model, tok, settings.seed, tags, world.rank, world.size)
    started = {name: part.sha256 for name, part in index.parts.items()}
    if world.first:
        in_tokens = msgspec.structs.replace(planned, targets=round(planned.targets * data.tokens()))  # for the report
        claim(settings, config, [in_tokens], started=started)
    world.wait()
    if (folder / "model" / checkpoint.INDEX).is_file():
        say(f"stage {NAME} is already done")
        return True
    if world.first:
        same_data(folder, read, settings.resume)
    model = _models(config, before, stage, settings.seed, world)
    parts = {name: model.policy.learned(name) for name in PARTS}
    say(f"stage {NAME}: {stage.title}; {steps} steps of {stage.targets} pairs, β {stage.beta:g}")
    left = "".join(f"; {count} left out ({why})" for why, count in data.left_out.items())
    say(f"  {len(data.train)} training pairs, {len(data.held_out)} held out{left}")
    samples = Samples(corpus, tok, config, settings.samples, think="label" if any(f.think for f in stage.feeds) else "")
    some = {"train": data.train[:LOOKED_AT], "held-out": data.held_out[:LOOKED_AT]}

    def look(step: int) -> None:
        measured = {part: measure(model, data, laid, step, part) for part, laid in some.items() if laid}
        replies = samples.take(model.policy, folder, step) if world.size == 1 else []
        if world.first:
            _write_look(settings, folder, step, measured, replies)
        for part, one in measured.items():
            say(
                f"  step {step}, {part}: margin {one.margin:+.3f} nats, {100 * one.right:.0f} % of {one.pairs} pairs "
                f"correct; chosen {one.chosen:+.2f}, rejected {one.rejected:+.2f}"
            )

    def tell(row: Row, speed: float) -> None:
        parts = [f"{name} {value:.3f}" for name, value in (("text", row.text), ("speech", row.speech)) if value]
        say(f"  step {row.step}/{steps}  loss {row.loss:.4f}  chosen: {'  '.join(parts)}  {speed:,.0f} positions/s")

    try:
        with stop_on_sigterm() as should_stop:
            done = train(
                model, parts, data, planned, folder, world, seed=settings.seed, resume=settings.resume,
                deadline=deadline, log_every=settings.log_every, save_every=save_every(settings, config),
                look_every=settings.look_every, look=look, tell=tell, should_stop=should_stop.is_set,
            )  # fmt: skip
    finally:
        if world.first and (settings.out / RUN).is_file():
            write_report(settings.out)
    if world.device.type == "cuda":
        say(f"  peak GPU memory {torch.cuda.max_memory_reserved() / 1e9:.0f} GB")
    if not done:
        say(f"stage {NAME}: stopped early; a checkpoint is saved, continue with --resume")
        return False
    # The notes of the starting checkpoint stay, because they say how the model thinks and speaks.
    learnt = {"steps": steps, "seed": settings.seed, "beta": stage.beta, "pairs": len(data.train), "from": started}
    notes = {**index.notes, NAME: learnt}
    if "data" in notes:  # if the starting checkpoint does not record its data, this one cannot either
        notes["data"] = sorted({*notes["data"], *read})
    heard = HeardInTraining()
    if world.first:
        heard = union([*inherited(config, before), corpus.heard(both.chosen for both in data.used)])
    finish(model.policy, config, folder, world, notes, heard)
    return True


def _models(config: Config, before: Path, stage: PreferStage, seed: int, world: World) -> Preferring:
    """Return the model in training and its frozen copy, both sharded over the processes."""
    torch.manual_seed(seed)
    policy = first_model(config, before)
    for name in PARTS:
        for weight in policy.learned(name):
            weight.requires_grad_(stage.lr.rate_of(name) > 0)
    if world.size > 1 and world.device.type == "cuda":
        policy.checkpointing()
    distributed.spread(policy, world, layers, called="costs")
    reference = first_model(config, before).requires_grad_(False)  # read when the first one is no longer held whole
    distributed.spread(reference, world, layers, called="costs")
    return Preferring(policy, reference, stage)


def _write_look(
    settings: Settings, folder: Path, step: int, measured: dict[str, Margin], replies: list[Sample]
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / MARGINS).open("ab") as file:
        file.writelines(msgspec.json.encode(one) + b"\n" for one in measured.values())
    losses = {"pairs": measured["held-out"].loss} if "held-out" in measured else {}
    with (folder / LOOKS).open("ab") as file:
        file.write(msgspec.json.encode(Look(step, losses, replies)) + b"\n")
    write_report(settings.out)


def _packs(settings: Settings, config: Config, world: World, say: Callable[[str], None]) -> list[Path]:
    """Return the packs of pairs: the given packs, and one pack that the first process makes from all given files."""
    files = [path for path in settings.data if path.is_file()]
    packs = [path for path in settings.data if not path.is_file()]
    if files:
        folder = settings.out / "pairs"
        mark = folder / "made-of"
        digest = hashlib.sha256(b"".join(hashlib.sha256(path.read_bytes()).digest() for path in files)).hexdigest()
        if world.first and not ((folder / PACK[0]).is_file() and mark.is_file() and mark.read_text() == digest):
            spoken = any(feed.task == "s2s" for feed in read_stage(config, settings.preset).feeds)
            count = pairs.pack(files, folder, open_tokens(config.model.speech.tokens) if spoken else None)
            mark.write_text(digest)
            say(f"{count} pairs and their clips: {shown(str(folder))}")
        world.wait()
        packs.append(folder)
    return packs
