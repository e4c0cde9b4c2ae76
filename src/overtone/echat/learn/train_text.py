"""`overtone train text`: train any causal language model on text with the same loop.

Rows are dialogues whose assistant turns are learnt, or texts with numbers that are predicted from the hidden state at
the last position.
"""

from __future__ import annotations

import math
import random
import shutil
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import torch
import torch.nn.functional as F
from msgspec import Struct
from torch import Tensor, nn

from overtone.echat.data import layout
from overtone.echat.data.containers import read_text
from overtone.echat.data.exchange_records import TextRecord
from overtone.echat.learn import distributed
from overtone.echat.learn.batches import IGNORED, Batch, collate
from overtone.echat.learn.distributed import World
from overtone.echat.learn.run_stages import check_same_run, description_of, same_data
from overtone.echat.learn.stages import Feed, Rates, Stage, StageRun
from overtone.echat.learn.training_loop import stop_on_sigterm, train
from overtone.echat.learn.training_report import RUN, Row, RunDescription, write_report
from overtone.echat.net import config as configs
from overtone.echat.net.backbone import open_lm
from overtone.echat.net.model import Out
from overtone.echat.net.tokenizer import open_tokenizer, save_smollm2
from overtone.errors import DataError, StoreError, UsageError
from overtone.paths import sha256, shown, to_disk, write_whole
from overtone.workers.causal_model import open_causal
from overtone.workers.model_source import BadSource

_SAME = ("model", "target", "steps", "lr", "batch", "longest", "seed")  # settings that must be equal on resume
HEAD_RATE = 1e-3  # learning rate of a regression's new layer
MODEL, HEAD = "model", "head.safetensors"


class Settings(Struct, frozen=True):
    """The user's settings of a run."""

    model: str
    data: tuple[Path, ...]
    out: Path
    target: Literal["tokens", "regression"] = "tokens"
    held_out: Path | None = None
    steps: int = 1000
    lr: float = 1e-4
    batch: int = 16
    longest: int = 1024  # maximum tokens of a row; longer ones are left out
    seed: int = 0
    minutes: float = math.inf
    resume: bool = False
    device: str = "auto"
    log_every: int = 20
    save_minutes: float = 5.0


class TextModel(nn.Module):
    """A causal language model and, for regression, a linear layer on its last hidden state.

    Target numbers are standardised, so that all targets have the same weight.
    """

    def __init__(self, lm: Any, targets: Tensor | None) -> None:
        super().__init__()
        self.lm = lm
        self.head: nn.Linear | None = None
        if targets is not None:  # (rows, n)
            self.head = nn.Linear(lm.get_input_embeddings().weight.shape[1], targets.shape[1])
            nn.init.zeros_(self.head.weight)
            nn.init.zeros_(self.head.bias)
            self.register_buffer("mean", targets.mean(0))
            self.register_buffer("spread", targets.std(0, correction=0).clamp(min=1e-6))

    def last(self, batch: Any) -> Tensor:
        """Return the standardised predictions of each row: (B, n)."""
        assert self.head is not None
        hidden = self.lm.base_model(input_ids=batch.ids, attention_mask=batch.mask, use_cache=False).last_hidden_state
        ends = batch.mask.sum(1) - 1  # (B,)
        return self.head(hidden[torch.arange(len(ends), device=ends.device), ends].float())

    def forward(self, batch: Any) -> Out:
        """Compute the loss of a batch."""
        none = torch.zeros((), device=batch.ids.device)
        if self.head is not None:
            goal = (batch.numbers - self.mean) / self.spread
            loss = F.mse_loss(self.last(batch), goal)
            return Out(loss, loss.detach(), none, none, none, torch.tensor(goal.numel()), none)
        at = batch.target_at

        def few(module: nn.Module, given: tuple[Tensor]) -> tuple[Tensor]:
            return (given[0].flatten(0, 1)[at - 1][None],)  # (1, N, d): logits of all positions would not fit

        # Use the model's own logits, because some models scale or cap them after the output table.
        hook = self.lm.get_output_embeddings().register_forward_pre_hook(few)
        try:
            logits = self.lm(input_ids=batch.ids, attention_mask=batch.mask, use_cache=False).logits[0]  # (N, V)
        finally:
            hook.remove()
        loss = F.cross_entropy(logits.float(), batch.targets.flatten()[at])
        return Out(loss, loss.detach(), none, none, none, torch.tensor(len(at)), none)


class Rows:
    """An endless sequence of batches of rows, shuffled in every epoch. Each process has its own."""

    def __init__(self, laid: Sequence[layout.Sequence], numbers: Tensor | None, size: int, seed: int, world: World):
        self.laid, self.numbers, self.size, self.seed, self.world = laid, numbers, size, seed, world
        if len(laid) < world.size:
            raise DataError(f"{len(laid)} rows for {world.size} processes; give more rows, or start fewer processes")
        if len(laid) < size * world.size:
            self.size = max(1, len(laid) // world.size)

    def batches(self, start: int) -> Generator[tuple[int, Batch], None, None]:
        """Yield batches from index `start`."""
        per_round = len(self.laid) // (self.size * self.world.size)
        index = start
        while True:
            order = list(range(len(self.laid)))
            random.Random(self.seed * 1_000_003 + index // per_round).shuffle(order)
            first = (index % per_round * self.world.size + self.world.rank) * self.size
            yield index, self.batch(order[first : first + self.size], index)
            index += 1

    def batch(self, rows: Sequence[int], index: int = 0) -> Batch:
        """Build the batch of some rows."""
        laid = [self.laid[row] for row in rows]
        none: list[list[Any]] = [[] for _ in laid]
        batch = collate(laid, none, none, none, task="t2t", index=index)
        if self.numbers is not None:
            batch.numbers = self.numbers[list(rows)]
            batch.n_targets = batch.numbers.numel()
        return batch

    def ready(self, batch: Batch, step: int) -> Batch:
        """Return the batch on the device."""
        return batch.to(self.world.device)


def run(settings: Settings, say: Callable[[str], None]) -> bool:
    """Train, and predict held-out rows.

    Return False if it stopped early. Raises UsageError, DataError or StoreError.
    """
    deadline = time.monotonic() + 60 * settings.minutes
    records = [record for path in settings.data for record in read_text(path)]
    asked = list(read_text(settings.held_out)) if settings.held_out else []
    world = distributed.enter(settings.device)
    try:
        if settings.held_out and world.size > 1:
            raise UsageError(
                "--held-out needs a single process; remove it under torchrun, and when the run is done, repeat the "
                "command with --held-out and --resume, without torchrun"
            )
        torch.manual_seed(settings.seed)
        lm, tok, save_tokenizer = open_text(settings.model)
        room = getattr(lm.config.get_text_config(), "max_position_embeddings", None) or settings.longest
        longest = min(settings.longest, room)
        laid, numbers = lay_out(records, tok, settings, longest)
        held = _lay_held_out(asked, tok, settings, longest, numbers, world) if settings.held_out else None
        model = TextModel(lm, numbers)
        stage = Stage(
            f"{settings.model}, {settings.target}", settings.steps, 1, Rates(adapter=HEAD_RATE, lm=settings.lr),
            (Feed("t2t"),), warmup=min(100, settings.steps // 10), schedule="cosine", clip=1.0,
        )  # fmt: skip
        planned = StageRun("text", stage, settings.steps, settings.steps)  # a batch is a step
        folder = settings.out / "stage-text"
        if world.first:
            _claim(settings, planned, folder)
            left = f" ({len(records) - len(laid)} left out: over {longest} tokens, or without an assistant turn)"
            say(f"{len(laid)} rows{left if len(laid) < len(records) else ''}, {settings.steps} steps")
        if (folder / MODEL).is_dir():
            say("the run is already done")
            if held:
                _read_back(model.to(world.device), folder / MODEL)
                _held_out(model, held, settings, say)
            return True
        distributed.spread(model, world, _layers)
        parts = {"lm": list(model.lm.parameters()), "adapter": list(model.head.parameters()) if model.head else []}

        def tell(row: Row, speed: float) -> None:
            say(f"  step {row.step}/{settings.steps}  loss {row.loss:.4f}  {speed:,.0f} positions/s")

        rows = Rows(laid, numbers, settings.batch, settings.seed, world)
        with stop_on_sigterm() as should_stop:
            done = train(
                model, parts, rows, planned, folder, world, seed=settings.seed, resume=settings.resume,
                deadline=deadline, log_every=settings.log_every, save_every=60 * settings.save_minutes, tell=tell,
                should_stop=should_stop.is_set,
            )  # fmt: skip
        if done:
            _finish(model, folder, world, save_tokenizer)
        if world.first:
            write_report(settings.out)
        if done and held:
            _held_out(model, held, settings, say)
        return done
    finally:
        world.leave()


def open_text(name: str) -> tuple[Any, Any, Callable[[Path], None]]:
    """Load a language model and its tokenizer, and return a function that saves the tokenizer. Raises UsageError."""
    if name == "smollm2":
        mini = configs.read("mini").model
        return open_lm(mini.lm), open_tokenizer(mini), save_smollm2
    try:
        lm, tokenizer = open_causal(name, hub=True)
    except BadSource as error:
        raise UsageError(f"--model: {shown(str(error))}") from None
    lm.train()

    def save(folder: Path) -> None:
        tokenizer.save_pretrained(folder)

    return lm, HuggingFace(tokenizer, lm.get_input_embeddings().weight.shape[0]), save


class HuggingFace:
    """A tokenizer for layouts. If it does not know the marks of turns, they are encoded as ordinary text."""

    codes = speech_block = 0  # there is no speech

    def __init__(self, tokenizer: Any, vocab: int) -> None:
        self.tokenizer, self.vocab = tokenizer, vocab

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""
        return list(self.tokenizer.encode(text, add_special_tokens=False))


def lay_out(
    records: Sequence[TextRecord], tok: Any, settings: Settings, longest: int
) -> tuple[list[layout.Sequence], Tensor | None]:
    """Return the rows of at most `longest` tokens as sequences, and the rows' regression targets.

    Raises DataError if nothing can be learnt.
    """
    wide = {len(record.targets) for record in records}
    regression = settings.target == "regression"
    if regression and (len(wide) != 1 or 0 in wide):
        raise DataError(
            f"regression needs the same number of targets in every row, but rows have "
            f'{", ".join(map(str, sorted(wide)))}; write a row as {{"text": …, "targets": [1.5, …]}}'
        )
    laid, kept = [], []
    for record in records:
        sequence = layout.build_text(record, tok)
        if len(sequence.ids) <= longest and (regression or any(t != IGNORED for t in sequence.targets)):
            laid.append(sequence)
            kept.append(record.targets)
    if not laid:
        raise DataError(
            f"nothing to learn in {len(records)} rows: none has an assistant turn and at most {longest} tokens; "
            'write a row as {"messages": [{"role": "user", …}, {"role": "assistant", …}]}'
        )
    numbers = torch.tensor(kept) if regression else None
    if numbers is not None and not numbers.isfinite().all():
        raise DataError("regression: some target is not a finite number; correct the rows")
    return laid, numbers


def _lay_held_out(
    records: Sequence[TextRecord], tok: Any, settings: Settings, longest: int, learnt: Tensor | None, world: World
) -> Rows:
    """Return the held-out rows. Raises DataError before the first step if some cannot be predicted."""
    where = f"--held-out {shown(str(settings.held_out))}"
    try:
        laid, numbers = lay_out(records, tok, settings, longest)
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
    if lost := len(records) - len(laid):
        raise DataError(
            f"{where}: {lost} of {len(records)} rows cannot be predicted: over {longest} tokens, or without an "
            "assistant turn; shorten or remove them, or raise --longest if the model allows it"
        )
    if numbers is not None and learnt is not None and numbers.shape[1] != learnt.shape[1]:
        raise DataError(
            f"{where}: {numbers.shape[1]} targets per row, but --data has {learnt.shape[1]}; use the same number"
        )
    return Rows(laid, numbers, settings.batch, 0, world)


def _layers(model: nn.Module) -> list[nn.Module]:
    return [module for module in model.modules() if type(module).__name__.endswith(("DecoderLayer", "Block"))]


def _claim(settings: Settings, planned: StageRun, folder: Path) -> None:
    """Write run.json. Raises StoreError if the folder has a different run, other data, or a run to be resumed."""
    plain = msgspec.json.decode(msgspec.json.encode(settings, enc_hook=str))
    if check_same_run(settings.out, {name: plain[name] for name in _SAME}) and not settings.resume:
        where = shown(str(settings.out))
        raise StoreError(f"{where} already holds this run; continue it with --resume, or choose another --out")
    same_data(folder, [sha256(path) for path in settings.data], settings.resume)  # in order, because rows are numbered
    description = RunDescription(f"Text: {settings.model}", [description_of(planned)], plain)
    write_whole(settings.out / RUN, msgspec.json.encode(description))


def _finish(model: TextModel, folder: Path, world: World, save_tokenizer: Callable[[Path], None]) -> None:
    """Write the model in transformers' format, and the head (weight, bias, mean, spread), atomically."""
    state = distributed.whole_state(model, world)
    if world.first:
        from safetensors.torch import save_file
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()  # there is only one file
        fresh = folder / f".{MODEL}.new"
        shutil.rmtree(fresh, ignore_errors=True)  # left by a killed run
        lm = {k.removeprefix("lm."): v.cpu() for k, v in state.items() if k.startswith("lm.")}
        model.lm.save_pretrained(fresh, state_dict=lm)
        save_tokenizer(fresh)
        head = {k: v.cpu().contiguous() for k, v in state.items() if not k.startswith("lm.")}
        if head:
            save_file(head, fresh / HEAD)
        for path in (*fresh.rglob("*"), fresh):
            to_disk(path)
        fresh.rename(folder / MODEL)  # from here on the run is done
        to_disk(folder)  # before the checkpoints are removed
        distributed.forget(folder)
    world.wait()


def _read_back(model: TextModel, folder: Path) -> None:
    """Load the weights that `_finish` wrote."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM

    try:
        saved = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).state_dict()
        head = load_file(folder / HEAD) if model.head is not None else {}
    except (OSError, ValueError, SafetensorError) as error:
        why = str(error).splitlines()[0]
        raise StoreError(f"{shown(str(folder))}: unreadable: {shown(why)}; remove it and use --resume") from None
    model.load_state_dict({**{f"lm.{name}": value for name, value in saved.items()}, **head})


def _held_out(model: TextModel, rows: Rows, settings: Settings, say: Callable[[str], None]) -> None:
    """Report the loss on held-out rows or, for regression, write the predictions and report their correlation."""
    laid, numbers = rows.laid, rows.numbers
    if numbers is None:
        model.eval()
        with torch.no_grad():
            many = [rows.batch(range(at, min(at + rows.size, len(laid)))) for at in range(0, len(laid), rows.size)]
            total = sum(float(model(rows.ready(batch, 0)).loss) * batch.n_targets for batch in many)
        say(f"held-out loss {total / sum(batch.n_targets for batch in many):.4f}")
        return
    predicted = predict(model, rows)
    lines = [
        msgspec.json.encode({"key": sequence.key, "targets": goal.tolist(), "predicted": values.tolist()}) + b"\n"
        for sequence, goal, values in zip(laid, numbers, predicted, strict=True)
    ]
    write_whole(settings.out / "predictions.jsonl", b"".join(lines))
    centred = [x - x.mean(0) for x in (predicted.double(), numbers.double())]
    r = (centred[0] * centred[1]).sum(0) / (centred[0].norm(dim=0) * centred[1].norm(dim=0)).clamp(min=1e-12)
    say(f"held-out: Pearson's r {', '.join(f'{x:.3f}' for x in r.tolist())} over {len(laid)} rows")


def predict(model: TextModel, rows: Rows) -> Tensor:
    """Return a regression's predictions for all rows, in the original units: (rows, n)."""
    model.eval()
    predictions = []
    with torch.no_grad():
        for first in range(0, len(rows.laid), rows.size):
            chosen = range(first, min(first + rows.size, len(rows.laid)))
            predictions.append(model.last(rows.ready(rows.batch(chosen), 0)) * model.spread + model.mean)
    return torch.cat(predictions).cpu()
