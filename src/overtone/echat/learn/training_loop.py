"""The training loop from start to end: data, forward and backward pass, clip and step, log, evaluate, save.

It is independent of speech: any module that maps a Batch to an Out can be trained with it, alone or under torchrun.
"""

from __future__ import annotations

import contextlib
import math
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, Protocol

import msgspec
import torch
from torch import nn

from overtone.echat.learn import distributed
from overtone.echat.learn.distributed import Progress, World
from overtone.echat.learn.stages import StageRun, rate_at
from overtone.echat.learn.training_report import LOG, Row, read_log
from overtone.errors import OvertoneError
from overtone.paths import write_whole


class Diverged(OvertoneError):
    """The loss or its gradient is NaN or infinite."""


class Out(Protocol):
    """The result of a model's forward: the loss to minimise (a mean over the batch's targets), and its parts."""

    loss: torch.Tensor
    text_loss: torch.Tensor
    speech_loss: torch.Tensor
    ctc_loss: torch.Tensor
    cue_loss: torch.Tensor
    n_text: Any
    n_speech: Any


class Data(Protocol):
    """An endless, seeded sequence of batches."""

    def batches(self, start: int) -> Generator[tuple[int, Any], None, None]:
        """Yield batches from index `start`."""

    def ready(self, batch: Any, step: int) -> Any:
        """Return a batch on the device, with everything it needs."""


def train(
    model: nn.Module,
    parts: dict[str, list[nn.Parameter]],
    data: Data,
    run: StageRun,
    out: Path,
    world: World,
    *,
    seed: int = 0,
    resume: bool = False,
    deadline: float = float("inf"),  # time.monotonic() at which to stop
    log_every: int = 20,
    save_every: float = 180.0,  # seconds
    look_every: int = 0,  # steps; 0 = only at the end
    look: Callable[[int], None] = lambda step: None,  # evaluates held-out records
    tell: Callable[[Row, float], None] = lambda row, speed: None,  # reports progress
    should_stop: Callable[[], bool] = lambda: False,  # called after every step, see stop_on_sigterm
) -> bool:
    """Train one stage. Return False if it stopped early, after saving a checkpoint. Raises Diverged."""
    stage, device = run.stage, world.device
    optimiser = make_optimiser(parts, run, device)
    progress = Progress()
    if resume and (checkpoint := distributed.newest(out)):
        progress = distributed.load(checkpoint, model, optimiser, world)
    log = Log(out / LOG, progress, world)
    began, saved = time.monotonic() - progress.seconds, time.monotonic()
    step, used, at, positions = progress.step, progress.targets, progress.batch, progress.positions
    autocast = torch.autocast("cuda", torch.bfloat16) if device.type == "cuda" else contextlib.nullcontext()
    learning = [p for group in parts.values() for p in group if p.requires_grad]
    stopped = False
    model.train()

    # closed even after an error, so that the processes that make batches end and exit does not wait for them
    with contextlib.closing(data.batches(at)) as stream:
        while step < run.steps and not stopped:
            step += 1

            # data: take batches until this step's share of the target tokens is used. The share counts from the
            # beginning of the stage, so a step that takes too many leaves fewer to the next, and all arms of an
            # ablation end within one batch of each other.
            micro: list[Any] = []
            total = 0.0
            while not micro or used + total < step * run.targets / run.steps:
                index, batch = next(stream)
                micro.append(batch)
                total += world.total(batch.n_targets)
                at = index + 1
                positions += batch.n_positions

            # forward and backward: gradients add up to that of the mean over all targets of the step, on all processes
            torch.manual_seed(step_seed(seed, step, world.rank))  # for dropout; after the data, whose loader draws too
            sums = torch.zeros(7, device=device)
            for batch in micro:
                with autocast:
                    result: Out = model(data.ready(batch, step))
                share = batch.n_targets / max(total, 1)
                (result.loss * share * world.size).backward()
                sums += _parts(result, share, device)

            # clip and step
            norm = nn.utils.clip_grad_norm_(learning, stage.clip)
            rate = rate_at(step, run)
            for group in optimiser.param_groups:
                group["lr"] = group["base"] * rate
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
            used += int(total)

            # log: values stay on the device and are fetched together, to avoid a synchronisation in each step
            tasks = "+".join(sorted({b.task for b in micro}))
            log.keep(step, sums, norm, rate, positions, tasks, time.monotonic() - began)
            ending = step == run.steps
            stopped = not ending and world.agree(time.monotonic() > deadline or should_stop())
            if ending or stopped or step % log_every == 0:
                log.fetch(tell)

            # evaluate: held-out loss and samples
            if ending or (look_every and step % look_every == 0):
                model.eval()
                with torch.no_grad(), autocast:
                    look(step)
                model.train()

            # save
            if stopped or (not ending and world.agree(time.monotonic() - saved > save_every)):
                log.fetch(tell)
                spent = time.monotonic() - began
                distributed.save(out, model, optimiser, Progress(step, used, at, spent, positions), world)
                saved = time.monotonic()
    return not stopped


@contextlib.contextmanager
def stop_on_sigterm() -> Iterator[threading.Event]:
    """Yield an event that SIGTERM sets instead of ending the process.

    `timeout` and batch systems send SIGTERM before they kill, so the current step can be finished and saved. Outside
    the main thread, signals cannot be caught, and the event is never set.
    """
    terminated = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield terminated
        return
    before = signal.signal(signal.SIGTERM, lambda number, frame: terminated.set())
    try:
        yield terminated
    finally:
        signal.signal(signal.SIGTERM, before)


def make_optimiser(parts: dict[str, list[nn.Parameter]], run: StageRun, device: torch.device) -> torch.optim.AdamW:
    """Build AdamW with one learning rate per part. A part with rate 0 is frozen, without gradients or state."""
    stage, groups = run.stage, []
    for name, parameters in parts.items():
        rate = stage.lr.rate_of(name)
        for parameter in parameters:
            parameter.requires_grad_(rate > 0)
        if rate > 0 and parameters:
            groups.append({"params": parameters, "lr": rate, "base": rate, "name": name})
    fused = device.type == "cuda"
    optimiser = torch.optim.AdamW(groups, betas=stage.betas, eps=stage.eps, weight_decay=stage.decay, fused=fused)
    for group in optimiser.param_groups:
        for p in group["params"]:  # now, not at the first gradient, so that all checkpoints have the same names
            step = torch.zeros((), device=p.device if fused else "cpu")
            optimiser.state[p] = {"step": step, "exp_avg": torch.zeros_like(p), "exp_avg_sq": torch.zeros_like(p)}
    return optimiser


def step_seed(seed: int, step: int, rank: int) -> int:
    """Return the seed of one step on one process, so that a resumed run draws the same random numbers."""
    return ((seed * 1_000_003 + step) * 65_537 + rank) % 2**64  # torch's maximum


def _parts(result: Out, share: float, device: torch.device) -> torch.Tensor:
    """Return the loss, its parts and their counts as sums, which can be added over batches and processes: (7,)."""
    n_text, n_speech = (
        torch.as_tensor(n, dtype=torch.float32, device=device) for n in (result.n_text, result.n_speech)
    )
    return torch.stack(
        [
            result.loss.detach().float() * share,
            result.text_loss.detach().float() * n_text,
            result.speech_loss.detach().float() * n_speech,
            result.ctc_loss.detach().float() * share,
            result.cue_loss.detach().float() * share,
            n_text,
            n_speech,
        ]
    )


class Log:
    """The log of a stage, one line per step. On resume, lines after the checkpoint are removed."""

    def __init__(self, path: Path, progress: Progress, world: World) -> None:
        self.path, self.world = path, world
        self.waiting: list[tuple[torch.Tensor, dict[str, Any]]] = []
        self.mark = (progress.seconds, progress.positions)
        if world.first:
            path.parent.mkdir(parents=True, exist_ok=True)
            kept = [row for row in read_log(path) if row.step <= progress.step] if progress.step else []
            write_whole(path, b"".join(msgspec.json.encode(row) + b"\n" for row in kept))

    def keep(
        self, step: int, sums: torch.Tensor, norm: Any, rate: float, positions: int, tasks: str, seconds: float
    ) -> None:
        """Queue the values of a step without fetching them from the device."""
        norm = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
        known = {"step": step, "rate": rate, "positions": positions, "tasks": tasks, "seconds": round(seconds, 3)}
        self.waiting.append((torch.cat([sums, norm.detach().float().reshape(1)]), known))

    def fetch(self, tell: Callable[[Row, float], None]) -> None:
        """Fetch and write the queued steps, and report the last one. Raises Diverged."""
        if not self.waiting:
            return
        numbers = torch.stack([tensor for tensor, _ in self.waiting])  # (steps, 8)
        norms = numbers[:, 7].cpu()  # already over all processes
        sums = self.world.sum(numbers[:, :7].contiguous()).cpu()
        written = []
        for (loss, text, speech, ctc, cues, n_text, n_speech), norm, (_, known) in zip(
            sums.tolist(), norms.tolist(), self.waiting, strict=True
        ):
            written.append(
                Row(
                    loss=loss,
                    text=text / max(n_text, 1),
                    speech=speech / max(n_speech, 1),
                    ctc=ctc,
                    cues=cues,
                    norm=norm,
                    text_targets=round(n_text),
                    speech_targets=round(n_speech),
                    **known,
                )
            )
        self.waiting.clear()
        if self.world.first:
            with self.path.open("ab") as file:
                file.writelines(msgspec.json.encode(row) + b"\n" for row in written)
        last = written[-1]
        before, self.mark = self.mark, (last.seconds, last.positions)
        speed = (last.positions - before[1]) / max(last.seconds - before[0], 1e-9)
        if self.world.first:
            tell(last, speed * self.world.size)
        for row in written:
            for what, number in (("loss", row.loss), ("gradient's norm", row.norm)):
                if not math.isfinite(number):
                    raise Diverged(
                        f"step {row.step}: the {what} is not finite (loss {row.loss:.3g}, norm {row.norm:.3g}); lower "
                        "the stage's learning rates or lengthen its warm-up, and continue with --resume"
                    )
