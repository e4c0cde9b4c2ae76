"""Where a training step's time goes: how long it takes, how long the GPU computes in it, how many kernels it starts.

    python -m experiments.echat.step_times --preset short --data PACK/train --data PACK/aloud [--stages 1a,3]

Each stage begins with fresh weights and is measured over so many steps after as many to get warm; where there is a GPU,
as many again under a profiler, and all of it twice: each kernel started by itself (`--no-graphs`), and with kernels
recorded. Where it computes for a small part of a step, the rest waits for the processor to start kernels: then
several runs at once cost each other little, and larger batches cost nothing.
"""

from __future__ import annotations

import argparse
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from overtone.echat.learn.run_stages import Settings, given, run
from overtone.echat.learn.stages import plan, stages
from overtone.echat.learn.training_report import LOG, read_log
from overtone.echat.net import checkpoint
from overtone.echat.net import config as configs

AT = re.compile(r"\s*step (\d+)/")


class Profiler:
    """Listens to what a run says, and counts the GPU's kernels from one of its lines to another."""

    def __init__(self, begin: int, end: int) -> None:
        self.begin, self.end = begin, end
        self.profile: Any = None
        self.busy, self.kernels, self.memory = 0.0, 0, ""

    def __call__(self, line: str) -> None:
        found = AT.match(line)
        if "of the GPU were used" in line:
            self.memory = line.strip().removeprefix("at most ").replace(" of the GPU were used", "")
        if not found or not torch.cuda.is_available():
            return
        if int(found[1]) == self.begin:
            self.profile = profile(activities=[ProfilerActivity.CUDA])
            self.profile.start()
        elif int(found[1]) == self.end:
            torch.cuda.synchronize()
            self.profile.stop()
            self.count()

    def count(self) -> None:
        """Seconds in which at least one kernel ran, and how many there were."""
        spans = sorted(
            (event.time_range.start, event.time_range.end)
            for event in self.profile.events()
            if event.device_type == torch.autograd.DeviceType.CUDA
        )
        self.kernels, until = len(spans), 0.0
        for start, end in spans:
            self.busy += max(0.0, end - max(start, until)) / 1e6
            until = max(until, end)


def launching(count: int = 20_000) -> float:
    """Seconds the processor takes to start a kernel that does next to nothing."""
    one = torch.ones(1, device="cuda")
    for _ in range(2):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(count):
            one.add_(1)
        torch.cuda.synchronize()
    return (time.perf_counter() - began) / count


def measured(args: argparse.Namespace, stage: str, graphs: bool, start: Path, out: Path) -> str:
    n = args.steps
    listener = Profiler(2 * n, 3 * n)
    settings = Settings(
        args.preset, tuple(args.data), out, stage=stage, start=start, steps=3 * n, log_every=n, samples=0,
        graphs=graphs, encoder=args.encoder, lm=args.lm, device=args.device,
    )  # fmt: skip
    if not run(settings, listener):
        raise SystemExit(f"stage {stage} was ended before it was measured")
    log = read_log(out / f"stage-{stage}" / LOG)
    step = (log[2 * n - 1].seconds - log[n - 1].seconds) / n
    positions = (log[2 * n - 1].positions - log[n - 1].positions) / n
    told = (
        f"{stage:<4} {'graphs' if graphs else '':<6} {1000 * step:>9.1f} {positions:>10.0f} {positions / step:>12,.0f}"
    )
    if listener.kernels:
        told += f" {1000 * listener.busy / n:>9.1f} {listener.busy / n / step:>7.0%} {listener.kernels / n:>9.0f}"
    return f"{told}  {listener.memory}"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.echat.step_times", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--preset", default="short")
    parser.add_argument("--data", metavar="PACK", type=Path, action="append", required=True)
    parser.add_argument("--stages", metavar="NAME,…", help="all of the preset's")
    parser.add_argument("--steps", type=int, default=20, help="measured (20)")
    parser.add_argument("--encoder", default="")
    parser.add_argument("--lm", default="")
    parser.add_argument("--device", default="auto")
    args = parser.parse_args()
    config = configs.read(args.preset)
    names = args.stages.split(",") if args.stages else [r.name for r in plan(stages(config.stage, args.preset))]
    where = torch.cuda.get_device_name() if torch.cuda.is_available() else f"CPU, {torch.get_num_threads()} threads"
    print(f"preset {args.preset}; {where}, torch {torch.__version__}; {args.steps} steps")
    if torch.cuda.is_available():
        print(f"starting a kernel takes {1e6 * launching():.1f} µs")
    heads = ("ms a step", 9), ("positions", 10), ("positions/s", 12), ("GPU, ms", 9), ("share", 7), ("kernels", 9)
    print(f"\n{'stage':<11}", *(f"{head:>{width}}" for head, width in heads))
    with tempfile.TemporaryDirectory() as folder:
        start = Path(folder, "start")
        config = given(config, Settings(args.preset, (), start, encoder=args.encoder, lm=args.lm))
        checkpoint.save(checkpoint.make(config), start, config)
        for name in names:
            for graphs in (False, True) if torch.cuda.is_available() else (False,):
                print(measured(args, name, graphs, start, Path(folder, f"{name}-{graphs}")), flush=True)


if __name__ == "__main__":
    main()
