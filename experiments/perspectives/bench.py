"""Measure how fast the study trains on this machine, with random weights, and write down the fastest way.

    python -m experiments.perspectives.bench --out speed.json

It compares runs per stack, torch.compile for small kernels, and two processes at once. `gpu.sh run` reads the result.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import torch
from torch import Tensor

from overtone.studies.perspectives.design import Study
from overtone.studies.perspectives.token_batches import Settings

from .model import Block, Optimizer, Sizes, Stack, random_state
from .recipe import Step, rating_losses

LENGTHS = (48, 56, 64, 80)  # of the ratings: about what batches of EmoBank have


def made_up(runs: int, settings: Settings, length: int, sizes: Sizes) -> Step:
    """Return a step of the study's shape with random tokens."""
    replies = round(settings.rows * settings.replay)
    ratings = settings.rows - replies
    blocks = [
        Block(torch.randint(sizes.vocab, (runs, ratings, length))),
        Block(torch.randint(sizes.vocab, (1, replies, 120))),
    ]
    places = 3 * ratings + 80 * replies
    at = torch.randint(ratings * length, (places,))
    return Step(blocks, at, torch.randint(sizes.vocab, (runs, places, 2)), torch.rand(runs, places, 2))


def measure(
    state: dict[str, Tensor], runs: int, compiled: bool, device: str, sizes: Sizes, steps: int = 16
) -> dict[str, float]:
    """Return milliseconds per step and run, in all and on the host alone, and the peak memory in GB."""
    settings = Settings(**Study.read().settings["training"])
    begin = time.monotonic()
    stack = Stack(state, runs, sizes, device, compiled=compiled)
    optimizer = Optimizer(stack, settings.rate, 1000)
    made = [made_up(runs, settings, length, sizes).to(device) for length in LENGTHS]

    def go(count: int) -> float:
        start = time.monotonic()
        for i in range(count):
            optimizer.step(rating_losses(stack, made[i % len(made)]))
        return time.monotonic() - start

    def wait() -> None:
        if device == "cuda":
            torch.cuda.synchronize()

    go(2 * len(made))
    wait()
    ready = time.monotonic()
    host = go(steps)
    wait()
    ms = 1000 / steps / runs
    return {
        "ms": (time.monotonic() - ready) * ms, "host_ms": host * ms, "warm_s": ready - begin,
        "gb": torch.cuda.max_memory_allocated() / 1e9 if device == "cuda" else 0.0,
    }  # fmt: skip


def together(runs: int, compiled: bool) -> float:
    """Return milliseconds per step and run with two processes at once."""
    command = [sys.executable, "-m", __spec__.name, "--one", f"{runs},{int(compiled)},48"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    results = [json.loads(process.communicate()[0]) for process in both]
    return sum(float(result["ms"]) for result in results) / len(results) / 2


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure how fast the study trains here.")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", help="RUNS,COMPILED,STEPS: measure this alone and print it")
    parser.add_argument("--small", action="store_true", help="a tiny model, to try the script")
    args = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    sizes = Sizes(vocab=512, hidden=36, ffn=32, layers=2) if args.small else Sizes()
    state = {name: value.to(device) for name, value in random_state(sizes).items()}
    if args.one:
        runs, compiled, steps = map(int, args.one.split(","))
        print(json.dumps(measure(state, runs, bool(compiled), device, sizes, steps)))
        return
    found: dict[tuple[int, bool], float] = {}
    for compiled in (False, True):
        for runs in (4, 8) if compiled else (1, 4, 8):
            try:
                result = measure(state, runs, compiled, device, sizes)
            except Exception as error:  # noqa: BLE001 - whatever stops the compiler, the other way is still there
                print(f"runs {runs}, compiled {compiled}: {type(error).__name__}: {str(error)[:300]}", flush=True)
                break
            found[runs, compiled] = result["ms"]
            print(
                f"runs {runs}, compiled {compiled}: {json.dumps({k: round(v, 2) for k, v in result.items()})}",
                flush=True,
            )
    compiled = found.get((4, True), float("inf")) < 0.95 * found[4, False]
    alone = found[4, compiled]
    beside = together(4, compiled) if device == "cuda" else alone
    print(f"two processes of 4 runs: {beside:.2f} ms per step and run, one: {alone:.2f}")
    speed = {"compiled": compiled, "parts": 2 if beside < 0.93 * alone else 1}
    print(json.dumps(speed))
    if args.out:
        args.out.write_text(json.dumps(speed) + "\n")


if __name__ == "__main__":
    main()
