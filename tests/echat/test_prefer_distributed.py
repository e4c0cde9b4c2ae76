"""The preference stage in several processes: the losses, margins and weights of one process, and a run to continue."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from overtone.echat.learn import prefer
from overtone.echat.learn.run_stages import Settings
from overtone.echat.learn.training_report import LOG, MARGINS, Margin, read_log
from overtone.echat.net import checkpoint
from overtone.echat.net.config import PARTS, read
from tests.echat.processes import run_together
from tests.echat.test_prefer import PREFER, pair, write
from tests.echat.test_run_stages import PRESET

STEPS = 6


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A folder with a preset, a checkpoint of it, and pairs."""
    # without the cross-entropy of the chosen replies, which is a mean over the tokens of one process's pairs
    (tmp_path / "small.toml").write_text(PRESET + PREFER.replace("sft = 0.1", "sft = 0.0"))
    torch.manual_seed(1)
    config = read(str(tmp_path / "small.toml"))
    checkpoint.save(checkpoint.make(config), tmp_path / "start", config, notes={"stage": "3", "data": ["ab" * 32]})
    write(tmp_path / "pairs.jsonl", [pair(number) for number in range(16)])
    return tmp_path


def process(rank: int, size: int, port: int, home: Path, out: Path, given: dict[str, Any]) -> None:
    os.environ |= {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
    }  # fmt: skip
    settings = Settings(
        str(home / "small.toml"), (home / "pairs.jsonl",), out, stage="prefer", start=home / "start", device="cpu",
        samples=0, log_every=1, steps=STEPS, look_every=3, **given,
    )  # fmt: skip
    with (out.with_name(f"{out.name}-{rank}.txt")).open("a") as said:
        done = prefer.run(settings, lambda line: print(line, file=said, flush=True))
    raise SystemExit(0 if done else 4)


def together(size: int, home: Path, out: Path, **given: Any) -> list[int | None]:
    return run_together(process, size, home, out, given, seconds=90)


def losses(out: Path) -> list[float]:
    return [row.loss for row in read_log(out / "stage-prefer" / LOG)]


def margins(out: Path) -> list[Margin]:
    return [
        msgspec.json.decode(line, type=Margin) for line in (out / "stage-prefer" / MARGINS).read_bytes().splitlines()
    ]


@pytest.mark.timeout(200)
def test_two_processes_prefer_what_one_does(made: Path) -> None:
    one, two = made / "one", made / "two"
    assert together(1, made, one) == [0]
    assert together(2, made, two) == [0, 0]
    assert len(losses(two)) == STEPS
    assert losses(two) == pytest.approx(losses(one), rel=1e-4)
    assert [(m.step, m.part, m.pairs) for m in margins(two)] == [(m.step, m.part, m.pairs) for m in margins(one)]
    assert [m.margin for m in margins(two)] == pytest.approx([m.margin for m in margins(one)], rel=1e-3, abs=1e-4)
    assert margins(two)[-2].margin > 0.1, "the model learnt something"
    models = [checkpoint.load(out / "stage-prefer" / "model")[0] for out in (one, two)]
    for name in PARTS:
        for first, second in zip(*(getattr(model, name).parameters() for model in models), strict=True):
            assert torch.allclose(first, second, atol=1e-4)
    assert (made / "two-1.txt").read_text() == "", "one process prints"
    notes = checkpoint.index(two / "stage-prefer" / "model").notes
    assert notes["prefer"]["pairs"] == 12 and len(notes["data"]) > 1


@pytest.mark.full
@pytest.mark.timeout(600)
def test_a_stopped_preference_stage_continues_in_as_many_processes_or_fewer(made: Path) -> None:
    whole, cut, alone = made / "whole", made / "cut", made / "alone"
    assert together(2, made, whole) == [0, 0]
    assert together(2, made, cut, minutes=1e-9) == [4, 4]  # the time is over after one step
    assert len(losses(cut)) == 1
    shutil.copytree(cut, alone)
    assert together(2, made, cut, resume=True) == [0, 0]
    assert losses(cut) == pytest.approx(losses(whole), rel=1e-5)
    assert together(1, made, alone, resume=True) == [0]
    assert losses(alone) == pytest.approx(losses(whole), rel=1e-4), "it uses the pairs that the others had not used"
