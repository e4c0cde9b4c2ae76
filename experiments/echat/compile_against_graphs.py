"""Time one training step of stage 3: eager, with recorded kernels, and with torch.compile(mode="reduce-overhead").

    python -m experiments.echat.compile_against_graphs   # one GPU, at most two minutes; prints a Markdown table

The model has the sizes of a preset (default: short) and random weights; batches of three sizes take turns. A step is
forward and backward without the optimiser, which is the same in all three. Both `recorded` and `compiled` get the same
packed rows in the same few sizes, so that they differ only in who makes the CUDA graphs. `first use` is the time that
the first step of every size takes in addition. Without a GPU, `compiled` runs uncompiled code: that checks the script.
"""

from __future__ import annotations

import argparse
import statistics
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

SHARES = (0.35, 0.6, 0.9)  # of the stage's positions: the sizes of the batches
SECONDS = (1.5, 4.0)  # of a clip
ANSWER = (60, 200)  # target positions of a row


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
    """Takes the place of a Recorder: calls a compiled function, which makes its own CUDA graphs."""

    recordings = True  # nothing has to be recorded first

    def __init__(self, function: Any, device: torch.device) -> None:
        how = {"mode": "reduce-overhead"} if device.type == "cuda" else {"backend": "eager"}
        self.function = torch.compile(function, dynamic=False, **how)

    def __call__(self, *tensors: Tensor, **given: Any) -> Tensor:
        out: Tensor = self.function(*tensors, **given)
        return out.clone()  # the next step writes over it


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.echat.compile_against_graphs")
    parser.add_argument("--preset", default="short")
    parser.add_argument("--steps", type=int, default=30, help="measured steps (default: 30)")
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    made = random_weights(config.read(args.preset))
    stage = stages(made.stage, made.name)["3"]
    torch.manual_seed(0)
    batches = [random_batch(made, int(share * stage.positions), device) for share in SHARES]
    torch._dynamo.config.cache_size_limit = 64  # one compiled version per size
    print(f"stage 3 of {args.preset}, batches of {', '.join(str(sum(batch.rows)) for batch in batches)} positions")
    print("| | step, ms | first use, s | peak memory, GB | loss |\n|---|---:|---:|---:|---:|")
    for way in ("eager", "recorded", "compiled") if device.type == "cuda" else ("eager", "compiled"):
        measured = measure(way, made, stage, batches, args.steps, device)
        print("| " + " | ".join((way, *measured)) + " |", flush=True)


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
    way: str, made: Config, stage: Stage, batches: list[Batch], steps: int, device: torch.device
) -> tuple[str, ...]:
    """Return the median step in milliseconds, the seconds of first use, the peak memory and the mean loss."""
    torch.manual_seed(0)
    model = checkpoint.make(made).to(device).train()
    model.ctc = model.cues = 0.0
    for part in config.PARTS:
        getattr(model, part).requires_grad_(stage.lr.rate_of(part) > 0)
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    prepare(model, way, stage, device)
    began = time.perf_counter()
    losses = [step(model, batch, device)[1] for batch in batches]
    first = time.perf_counter() - began
    for batch in batches:  # a compiled function records its graphs the second time
        first += step(model, batch, device)[0]
        step(model, batch, device)
    times = [step(model, batches[n % len(batches)], device)[0] for n in range(steps)]
    usual = sum(statistics.median(times[n :: len(batches)]) for n in range(len(batches)))
    memory = torch.cuda.max_memory_allocated() / 1e9 if device.type == "cuda" else 0.0
    median, loss = 1000 * usual / len(batches), statistics.mean(losses)
    return f"{median:.1f}", f"{max(0.0, first - 2 * usual):.1f}", f"{memory:.1f}", f"{loss:.3f}"


def prepare(model: EChat, way: str, stage: Stage, device: torch.device) -> None:
    """Have clips heard and rows read in one of the three ways."""
    if way == "eager":
        return
    if way == "recorded":
        gpu_speed.record(model, True, stage.positions)
        return
    lm = model.lm.base_model
    model.reader, model.listener = object.__new__(Reader), object.__new__(Listener)  # without their recorders
    AttentionInterface.register(ATTENTION, attend)
    lm.config._attn_implementation = ATTENTION

    def read(x: Tensor, positions: Tensor, edges: Tensor, longest: int) -> Any:
        return lm(inputs_embeds=x, position_ids=positions, use_cache=False, cu_seq_lens_q=edges, max_length_q=longest)[
            0
        ]

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
