"""Time one training step of stage 3: eager, with recorded kernels, and with torch.compile(mode="reduce-overhead").

    python -m experiments.echat.compile_against_graphs   # one GPU, about two minutes; ends with a Markdown table

The model has the sizes of a preset (default: short) and random weights; batches of two sizes take turns. A step is a
forward and a backward pass without the optimiser, which is the same in all three modes. `recorded` and `compiled` get
the same packed rows in the same few sizes, so they differ only in how the CUDA graphs are made. `first use` is the
extra time that the first steps of all sizes take together. `skipped` counts the functions that torch.compile ran
without a CUDA graph; above 0, its step time is not a fair comparison. Without a GPU, `recorded` is left out and
`compiled` is traced but not compiled, which only checks that the script works.

It needs the packages torch, transformers, numpy and msgspec.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from dataclasses import dataclass
from typing import Any

import msgspec
import torch
from torch import Tensor
from transformers import AttentionInterface

from overtone.echat.learn import gpu_speed
from overtone.echat.learn.graphs import ATTENTION, Ears, Listener, Reader, attend
from overtone.echat.learn.stages import Stage, stages
from overtone.echat.net import checkpoint, config
from overtone.echat.net.config import Config
from overtone.echat.net.model import IGNORE, EChat

SHARES = (0.4, 0.9)  # sizes of the batches, as shares of the stage's maximum number of positions
SECONDS = (1.5, 4.0)  # shortest and longest clip
ANSWER = (60, 200)  # minimum and maximum number of target positions of a row
COLUMNS = ("", "step, ms", "first use, s", "peak memory, GB", "skipped", "loss")


@dataclass
class Batch:
    """Random rows: a clip, then an answer."""

    ids: Tensor
    targets: Tensor
    mask: Tensor
    wave: Tensor
    wave_lengths: Tensor
    clip_at: Tensor
    ctc_ids: Tensor
    ctc_lengths: Tensor
    labels: Tensor
    target_at: Tensor
    slots: Tensor
    rows: list[int]
    holes: bool = False


class Compiled:
    """Stands in for a Recorder: calls a compiled function, which makes its own CUDA graphs."""

    recordings = True  # nothing has to be recorded first

    def __init__(self, function: Any, device: torch.device) -> None:
        options = {"mode": "reduce-overhead"} if device.type == "cuda" else {"backend": "eager"}
        self.function = torch.compile(function, dynamic=False, **options)

    def __call__(self, *tensors: Tensor, **given: Any) -> Tensor:
        out: Tensor = self.function(*tensors, **given)
        return out.clone()  # the next step writes over it


def main() -> None:
    """Measure every mode and print the table."""
    parser = argparse.ArgumentParser(prog="python -m experiments.echat.compile_against_graphs")
    parser.add_argument("--preset", default="short", help="preset that sets the model's sizes (default: short)")
    parser.add_argument("--steps", type=int, default=30, help="measured steps (default: 30)")
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    made = random_weights(config.read(args.preset))
    stage = stages(made.stage, made.name)["3"]
    torch.manual_seed(0)
    batches = [random_batch(made, int(share * stage.positions), device) for share in SHARES]
    torch._dynamo.config.recompile_limit = 64  # one compiled version per size
    rows = []
    for mode in ("eager", "recorded", "compiled") if device.type == "cuda" else ("eager", "compiled"):
        began = time.perf_counter()
        rows.append((mode, *measure(mode, made, stage, batches, args.steps, device)))
        print(f"{time.perf_counter() - began:.0f} s:", *rows[-1], file=sys.stderr, flush=True)
    sizes = " and ".join(str(sum(batch.rows)) for batch in batches)
    name = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    print(f"torch {torch.__version__}, {name}, stage 3 of {args.preset}, batches of {sizes} positions\n")
    for cells in (COLUMNS, ("---", *["---:"] * (len(COLUMNS) - 1)), *rows):
        print("| " + " | ".join(cells) + " |")


def random_weights(made: Config) -> Config:
    """Return the configuration without weights that would have to be installed."""
    lm = msgspec.structs.replace(made.model.lm, source="random", tokenizer="bytes")
    encoder = msgspec.structs.replace(made.model.encoder, source="random")
    return msgspec.structs.replace(made, model=msgspec.structs.replace(made.model, lm=lm, encoder=encoder))


def random_batch(made: Config, positions: int, device: torch.device) -> Batch:
    """Return rows of random clips and answers with about this many positions."""
    rows, samples, heard = [], [], []
    while sum(rows) < positions:
        samples.append(int(torch.randint(*(int(16_000 * s) for s in SECONDS), ())))
        heard.append(config.positions(made.model, samples[-1]))
        rows.append(heard[-1] + int(torch.randint(*ANSWER, ())))
    size, longest = len(rows), max(rows)
    ids = torch.randint(0, made.model.lm.vocab + made.model.speech.codes, (size, longest))
    targets = torch.full_like(ids, IGNORE)
    mask = torch.arange(longest)[None] < torch.tensor(rows)[:, None]
    wave = torch.zeros(size, max(samples))
    for row, (length, clip) in enumerate(zip(rows, heard, strict=True)):
        wave[row, : samples[row]] = 0.1 * torch.randn(samples[row])
        ids[row, 1 : 1 + clip] = -1
        targets[row, 1 + clip : length] = ids[row, 1 + clip : length]
    at = (targets != IGNORE).view(-1).nonzero()[:, 0]
    clip_at = torch.stack((torch.arange(size), torch.ones(size, dtype=torch.long)), 1)
    none = torch.zeros(size, 1, dtype=torch.long)
    moved = (
        x.to(device) for x in (ids, targets, mask, wave, torch.tensor(samples), clip_at, none, none[:, 0], none, at)
    )
    return Batch(*moved, slots=torch.tensor(heard, device=device), rows=rows)


def measure(
    mode: str, made: Config, stage: Stage, batches: list[Batch], steps: int, device: torch.device
) -> tuple[str, ...]:
    """Return the cells of a mode's row."""
    gc.collect()  # frees the model of the mode before
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    torch.manual_seed(0)
    model = checkpoint.make(made).to(device).train()
    model.ctc = model.cues = 0.0
    for part in config.PARTS:
        getattr(model, part).requires_grad_(stage.lr.rate_of(part) > 0)
    prepare(model, mode, stage, device)
    began = time.perf_counter()
    losses = [step(model, batch, device)[1] for batch in batches]
    first = time.perf_counter() - began
    for batch in batches:  # a compiled function records its graphs in the second step
        first += step(model, batch, device)[0]
        step(model, batch, device)
    times = [step(model, batches[n % len(batches)], device)[0] for n in range(steps)]
    usual = sum(statistics.median(times[n :: len(batches)]) for n in range(len(batches)))
    memory = torch.cuda.max_memory_allocated() / 1e9 if device.type == "cuda" else 0.0
    skipped = torch._dynamo.utils.counters["inductor"]["cudagraph_skips"]
    median, loss = 1000 * usual / len(batches), statistics.mean(losses)
    return f"{median:.1f}", f"{max(0.0, first - 2 * usual):.1f}", f"{memory:.1f}", str(skipped), f"{loss:.3f}"


def prepare(model: EChat, mode: str, stage: Stage, device: torch.device) -> None:
    """Set how the model encodes clips and reads rows in this mode."""
    if mode == "eager":
        return
    if mode == "recorded":
        gpu_speed.record(model, True, stage.positions)
        return
    lm = model.lm.base_model
    model.reader, model.listener = object.__new__(Reader), object.__new__(Listener)  # without their recorders
    gpu_speed.align(model, True)
    AttentionInterface.register(ATTENTION, attend)
    lm.config._attn_implementation = ATTENTION

    def read(x: Tensor, positions: Tensor, edges: Tensor, longest: int) -> Any:
        rows = {"cu_seq_lens_q": edges, "max_length_q": longest}
        return lm(inputs_embeds=x, position_ids=positions, use_cache=False, **rows)[0]

    model.reader.recorder = Compiled(read, device)
    model.listener.ears = Ears(model.encoder, model.adapter)
    model.listener.recorder = Compiled(model.listener.ears, device)


def step(model: EChat, batch: Batch, device: torch.device) -> tuple[float, float]:
    """Return the seconds of one step, and its loss."""
    if device.type == "cuda":
        torch.cuda.synchronize()
        torch.compiler.cudagraph_mark_step_begin()
    began = time.perf_counter()
    model.zero_grad(set_to_none=True)
    with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
        loss = model(batch).loss
    loss.backward()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - began, float(loss.detach())


if __name__ == "__main__":
    main()
