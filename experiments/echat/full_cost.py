"""Estimate memory and hours of the published configuration on several GPUs, from a measured run of `mini`.

    python -m experiments.echat.full_cost [--gpus 8]

Prints the tables of `docs/how-to/train-on-gpus.md` and writes `full_cost.json`. Needs torch.

Memory is counted: parameters, gradients and optimiser state in float32, shared by all processes (a test compares them
with those of a small model); what is gathered at a time; the states that checkpointing keeps for a batch; the logits of
one chunk. What CUDA, NCCL and fragmentation take is not counted.

Hours follow from operations. A stage has as many positions per target as the same stage of `mini` in its log. The slow
end takes the rate that `mini` reached on one H200, and waits for every transfer between GPUs; small matrices use a GPU
badly, so a large model should be faster. The fast end takes a share of the peak that training of large models commonly
reaches, and hides the transfers. Neither end was measured on several GPUs.
"""

from __future__ import annotations

import argparse
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from overtone.echat.learn.stages import Stage, stages
from overtone.echat.net import config as configs
from overtone.echat.net.backbone import build, fused
from overtone.echat.net.config import PARTS, Config
from overtone.echat.net.encoders import open_encoder
from overtone.echat.net.model import CHUNK, EChat

LOG = Path(__file__).with_name("mini.log")  # one H200, recorded kernels
COST = Path(__file__).with_name("full_cost.json")
SAME = {"1": "1b", "2a": "2a", "2b": "2b", "3": "3"}  # stage of full → stage of mini that has its task
PEAK = 989e12  # operations per second of an H200 in bf16, from its data sheet
COMMON = 0.40  # share of the peak that training of large models commonly reaches; not measured here
LINK = 300e9  # bytes per second between the GPUs of one machine; NVLink's data sheet says 450e9 each way
FRAMES = 4  # frames of the encoder per position of a clip
PAIR = 1000  # positions of a preference pair, both replies; an assumption
GB = 1e9


@dataclass(frozen=True)
class Measured:
    """What the log of a stage says: positions per target, and positions per second."""

    per_target: float
    speed: float


def measured(text: str) -> dict[str, Measured]:
    """Return what a training log says of each stage."""
    found = {}
    for part in re.split(r"^(?=stage )", text, flags=re.M)[1:]:
        head = re.match(r"stage (\w+): .*; \d+ steps, (\d+) target tokens", part)
        if head is None:
            continue
        rows = re.findall(r"([\d,]+) positions/s  (\d+) s$", part, flags=re.M)
        speeds = [float(speed.replace(",", "")) for speed, _ in rows]
        ends = [0.0, *(float(seconds) for _, seconds in rows)]
        # the first line includes the start, so its interval takes the speed of the next
        speeds[0] = speeds[1]
        positions = sum(v * (b - a) for v, a, b in zip(speeds, ends, ends[1:], strict=False))
        found[head[1]] = Measured(positions / int(head[2]), sorted(speeds)[len(speeds) // 2])
    return found


def model_sizes(config: Config) -> dict[str, int]:
    """Return the number of parameters of each part. No memory is used."""
    with torch.device("meta"):
        model = EChat(config.model, open_encoder(config.model.encoder, empty=True), fused(build(config.model.lm)))
    return {name: sum(p.numel() for p in getattr(model, name).parameters()) for name in PARTS}


def state(sizes: dict[str, int], stage: Stage) -> int:
    """Return the bytes of parameters, gradients and optimiser state, over all GPUs."""
    learnt = sum(count for name, count in sizes.items() if stage.lr.rate_of(name) > 0)
    return 4 * sum(sizes.values()) + 12 * learnt


def memory(config: Config, sizes: dict[str, int], stage: Stage, gpus: int, *, frozen_copy: bool = False) -> float:
    """Return the bytes on each GPU. While it is loaded, the whole model is on each GPU."""
    copies = 2 if frozen_copy else 1
    whole = 4 * sum(sizes.values())
    shared = (state(sizes, stage) + (copies - 1) * whole) / gpus
    lm, width = config.model.lm, config.model.lm.hidden
    table = lm.vocab * width
    layer = (sizes["lm"] - table) / lm.layers
    gathered = 2 * copies * (table + sizes["adapter"] + sizes["speech"]) + 2 * 2 * layer
    gradients = 2 * table + 2 * layer  # of the gathered weights, before they are summed
    kept = 2 * stage.positions * width * lm.layers
    within = 2 * stage.positions * (6 * width + 3 * lm.ffn)  # one layer, computed again
    logits = 3 * 4 * min(CHUNK, stage.positions) * (lm.vocab + config.model.speech.codes + 1)
    return max(whole * (1 + (copies - 1) / gpus), shared + gathered + gradients + kept + within + logits)


def operations(sizes: dict[str, int], stage: Stage, heard: float) -> float:
    """Return the operations per position: 2 per weight forwards, again for checkpointing, 2 backwards, 2 if learnt.

    `heard` is the share of positions that are a clip's."""

    def passes(name: str) -> int:
        return 8 if stage.lr.rate_of(name) > 0 else 6 if name in ("lm", "speech") else 2

    spoken = FRAMES * passes("encoder") * sizes["encoder"] + passes("adapter") * sizes["adapter"]
    return passes("lm") * sizes["lm"] + heard * spoken


def transfers(sizes: dict[str, int], gpus: int) -> float:
    """Return the seconds of one batch's transfers: weights in bf16 twice, gradients in float32 once."""
    return 8 * sum(sizes.values()) * (gpus - 1) / gpus / LINK


def estimate(config: Config, gpus: int) -> dict[str, Any]:
    """Return memory and hours of each stage."""
    sizes, log = model_sizes(config), measured(LOG.read_text())
    mini = model_sizes(configs.read("mini"))
    rate = 6 * mini["lm"] * log["3"].speed  # without checkpointing; the encoder is left out, which is small
    rows = {}
    for name, stage in stages(config.stage, "full").items():
        positions = stage.steps * stage.targets * log[SAME[name]].per_target
        batches = positions / stage.positions / gpus
        fast = operations(sizes, stage, 0.0) * positions / (COMMON * PEAK * gpus)
        slow = operations(sizes, stage, 1.0) * positions / (rate * gpus) + batches * transfers(sizes, gpus)
        rows[name] = {
            "steps": stage.steps,
            "positions": round(positions / 1e9, 2),
            "gb": round(memory(config, sizes, stage, gpus) / GB),
            "hours": [round(fast / 3600, 1), round(slow / 3600, 1)],
        }
        last = stage
    # The published recipe has no preference stage: 1,000 pairs with the settings of stage 3, and a frozen copy.
    pairs = 1000 * PAIR * (operations(sizes, last, 0.0) + 2 * sizes["lm"])
    slowly = 1000 * PAIR * (operations(sizes, last, 1.0) + 2 * sizes["lm"])
    waits = 1000 * PAIR / last.positions / gpus * transfers(sizes, gpus) * 1.5
    return {
        "gpus": gpus,
        "host_gb": round(4 * sum(sizes.values()) * gpus / GB),  # every process reads the whole model
        "parameters": {name: round(count / 1e6) for name, count in sizes.items()},
        "measured": {
            "rate": round(rate / 1e12),
            "positions_per_target": {name: round(log[like].per_target, 2) for name, like in SAME.items()},
        },
        "stages": rows,
        "hours": [round(sum(row["hours"][end] for row in rows.values())) for end in (0, 1)],
        "prefer": {
            "gb": round(memory(config, sizes, last, gpus, frozen_copy=True) / GB),
            "minutes_per_1000_pairs": [
                round(pairs / (COMMON * PEAK * gpus) / 60, 1), round((slowly / (rate * gpus) + waits) / 60, 1),
            ],
        },
    }  # fmt: skip


def table(cost: dict[str, Any]) -> list[str]:
    """Return the estimate as lines of a Markdown table."""
    lines = ["| stage | steps | positions | memory per GPU | hours |", "|---|---:|---:|---:|---:|"]
    for name, row in cost["stages"].items():
        low, high = row["hours"]
        lines.append(f"| {name} | {row['steps']:,} | {row['positions']:.2f} · 10⁹ | {row['gb']} GB | {low} to {high} |")
    low, high = cost["hours"]
    return [*lines, f"| all | | | | {low} to {high} |"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.echat.full_cost", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--gpus", type=int, default=8, help="number of GPUs (default: 8)")
    args = parser.parse_args()
    cost = estimate(configs.read("full"), args.gpus)
    if args.gpus == 8:  # the documentation's
        COST.write_text(json.dumps(cost, indent=1) + "\n")
    print("\n".join(table(cost)))
    print(json.dumps(cost["measured"]), json.dumps(cost["prefer"]), json.dumps(cost["parameters"]))


if __name__ == "__main__":
    main()
