"""Several processes: the same losses as one, sharded checkpoints, and a killed process that costs nothing but time."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
import torch

from overtone.echat.learn import distributed
from overtone.echat.learn.stages import StageRun
from overtone.echat.learn.training_loop import train
from overtone.echat.learn.training_report import LOG, read_log
from tests.conftest import REPOSITORY
from tests.echat.processes import run_together
from tests.echat.toys import STAGE, Numbers, Toy, make_pack

STAGE_RUN = StageRun("1", msgspec.structs.replace(STAGE, targets=100), 8, 800)


class Shared(Numbers):
    """The same batches, dealt out: 50 targets each, so that a step takes two, wherever they are computed."""

    def __init__(self, rank: int, size: int, die_at: int = -1) -> None:
        super().__init__()
        self.rank, self.size, self.die_at = rank, size, die_at

    def batches(self, start: int) -> Iterator[tuple[int, Any]]:
        index = start
        while True:
            if index == self.die_at:
                os.kill(os.getpid(), signal.SIGKILL)
            _, batch = next(super().batches(index * self.size + self.rank))
            batch.n_targets = 50
            yield index, batch
            index += 1


def process(rank: int, size: int, port: int, folder: Path, die_at: int, resume: bool) -> None:
    os.environ |= {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
    }  # fmt: skip
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # a killed neighbour makes much noise
    world = distributed.enter("cpu", timeout_s=30)
    model = Toy()
    model.dropout.p = 0.0
    model.encoder.requires_grad_(False)
    distributed.spread(model, world, lambda m: [m.adapter, m.lm])
    data = Shared(rank, size, die_at if rank == 1 else -1)
    train(model, model.parts(), data, STAGE_RUN, folder, world, resume=resume, log_every=1, save_every=0.0)
    whole = distributed.whole_state(model, world)
    if world.first:
        torch.save(whole, folder / "whole.pt")
    world.leave()


def together(size: int, folder: Path, die_at: int = -1, resume: bool = False) -> list[int | None]:
    return run_together(process, size, folder, die_at, resume, seconds=60)


def losses(folder: Path) -> list[float]:
    return [row.loss for row in read_log(folder / LOG)]


@pytest.mark.timeout(120)
def test_two_processes_learn_what_one_does_and_a_killed_one_is_made_good(tmp_path) -> None:
    assert together(1, tmp_path / "one") == [0]
    assert together(2, tmp_path / "two") == [0, 0]
    assert len(losses(tmp_path / "two")) == 8
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), rel=1e-5)
    one, two = (torch.load(tmp_path / name / "whole.pt") for name in ("one", "two"))
    assert all(torch.allclose(one[name], two[name], atol=1e-5) for name in one)

    codes = together(2, tmp_path / "killed", die_at=5)
    assert codes[1] == -signal.SIGKILL and codes[0] != 0
    kept = distributed.newest(tmp_path / "killed")
    assert kept is not None and kept.name == "step-00000005"
    assert len(list((kept / "state").glob("*.distcp"))) == 2  # a shard of each
    shutil.copytree(tmp_path / "killed", tmp_path / "fewer")
    assert together(2, tmp_path / "killed", resume=True) == [0, 0]
    assert losses(tmp_path / "killed") == losses(tmp_path / "two")
    assert together(1, tmp_path / "fewer", resume=True) == [0]  # one process reads what two have written
    assert losses(tmp_path / "fewer")[:5] == losses(tmp_path / "two")[:5]
    assert len(losses(tmp_path / "fewer")) == 8


@pytest.mark.full
@pytest.mark.timeout(600)
def test_torchrun_trains_tiny_and_survives_the_death_of_a_process(tmp_path, environment) -> None:
    pack = make_pack(tmp_path / "pack")
    common = ["train", "echat", "--preset", "tiny", "--stage", "1", "--data", str(pack), "--steps", "40",
              "--log-every", "1", "--save-minutes", "0", "--device", "cpu"]  # fmt: skip
    runner = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port"]

    def start(out: str, port: int, *more: str) -> subprocess.Popen[str]:
        command = [*runner, str(port), "-m", "overtone", *common, "--out", str(tmp_path / out), *more]
        return subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=REPOSITORY
        )

    whole = start("whole", 29651)
    said, _ = whole.communicate(timeout=300)
    assert whole.returncode == 0, said
    cut = start("cut", 29652)
    assert cut.stdout is not None
    for line in cut.stdout:
        if "step 2/40" in line:
            break
    psutil.Process(cut.pid).children()[-1].kill()
    cut.communicate(timeout=120)
    assert cut.returncode != 0
    again = start("cut", 29653, "--resume")
    said, _ = again.communicate(timeout=300)
    assert again.returncode == 0, said
    assert losses(tmp_path / "cut" / "stage-1") == losses(tmp_path / "whole" / "stage-1")
    assert (tmp_path / "cut" / "stage-1" / "model" / "checkpoint.json").is_file()
