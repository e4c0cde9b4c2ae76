"""A run that was stopped or killed goes on as if nothing had happened."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import shutil
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from overtone.echat.learn import distributed
from overtone.echat.learn.training_loop import stop_on_sigterm
from overtone.echat.learn.training_report import LOG, read_log
from overtone.errors import StoreError
from tests.echat.toys import ALONE, Numbers, Toy, learn


def losses(folder: Path) -> list[tuple[int, float, float]]:
    return [(row.step, row.loss, row.norm) for row in read_log(folder / LOG)]


def test_a_run_stopped_by_the_clock_is_saved_and_resumes_to_the_same_losses(tmp_path) -> None:
    _, whole = learn(tmp_path / "whole")
    done, _ = learn(tmp_path / "cut", Numbers(wait=0.01), deadline=time.monotonic() + 0.2)
    assert not done
    [checkpoint] = (tmp_path / "cut").glob("step-*")
    assert 0 < int(checkpoint.name.removeprefix("step-")) < 30
    done, resumed = learn(tmp_path / "cut", resume=True)
    assert done and losses(tmp_path / "cut") == losses(tmp_path / "whole")
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), resumed.parameters(), strict=True))


def test_steps_after_the_checkpoint_are_done_again(tmp_path) -> None:
    """A kill loses what came after the last save: its lines of the log are replaced by the same ones."""
    learn(tmp_path / "whole")
    learn(tmp_path / "cut", Numbers(wait=0.01), deadline=time.monotonic() + 0.2)
    with (tmp_path / "cut" / LOG).open("ab") as log:
        log.write((tmp_path / "whole" / LOG).read_bytes().splitlines(True)[28] + b'{"step": 30, "lo')
    learn(tmp_path / "cut", resume=True)
    assert losses(tmp_path / "cut") == losses(tmp_path / "whole")


def test_without_resume_a_run_begins_anew(tmp_path) -> None:
    learn(tmp_path, Numbers(wait=0.01), deadline=time.monotonic() + 0.1)
    learn(tmp_path)
    assert [step for step, *_ in losses(tmp_path)] == list(range(1, 31))


def test_a_save_that_was_cut_off_is_swept_up_and_the_one_before_it_used(tmp_path) -> None:
    learn(tmp_path, Numbers(wait=0.01), deadline=time.monotonic() + 0.2)
    [whole] = tmp_path.glob("step-*")
    shutil.copytree(whole, tmp_path / ".step-00000029.part")
    (tmp_path / ".step-00000029.part" / "progress.json").unlink()
    assert distributed.newest(tmp_path) == whole
    assert not list(tmp_path.glob(".step*"))


def test_a_damaged_checkpoint_is_told_of(tmp_path) -> None:
    learn(tmp_path, Numbers(wait=0.01), deadline=time.monotonic() + 0.2)
    [checkpoint] = tmp_path.glob("step-*")
    for file in (checkpoint / "state").glob("*.distcp"):
        file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(StoreError, match="cannot resume"):
        learn(tmp_path, resume=True)
    shutil.rmtree(checkpoint / "state")
    model = Toy()
    with pytest.raises(StoreError, match="cannot resume"):
        distributed.load(checkpoint, model, torch.optim.AdamW(model.parameters()), ALONE)


def ended(folder: Path) -> None:
    with stop_on_sigterm() as told:
        done, _ = learn(folder, Numbers(wait=0.01), should_stop=told.is_set)
    os._exit(0 if done else 4)


@pytest.mark.timeout(60)
def test_a_sigterm_finishes_the_step_and_saves(tmp_path) -> None:
    learn(tmp_path / "whole")
    process = multiprocessing.get_context("fork").Process(target=ended, args=(tmp_path / "cut",))
    process.start()
    while not (tmp_path / "cut" / LOG).is_file():
        time.sleep(0.01)
    time.sleep(0.1)
    process.terminate()
    process.join()
    assert process.exitcode == 4
    assert distributed.newest(tmp_path / "cut") is not None
    learn(tmp_path / "cut", resume=True)
    assert losses(tmp_path / "cut") == losses(tmp_path / "whole")


def test_signals_are_caught_while_training_alone() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stop_on_sigterm() as told:
        os.kill(os.getpid(), signal.SIGTERM)
        assert told.wait(1)
    assert signal.getsignal(signal.SIGTERM) is before
    with ThreadPoolExecutor() as pool:  # where they cannot be, nothing breaks
        assert not pool.submit(lambda: stop_on_sigterm().__enter__().is_set()).result()


def saving(folder: Path) -> None:
    learn(folder, Numbers(wait=0.001), resume=True, save_every=0.0)


@pytest.mark.timeout(120)
def test_a_kill_while_saving_loses_nothing(tmp_path) -> None:
    """The process saves after every step and is killed at odd moments, then left to come to its end."""
    learn(tmp_path / "whole")
    for wait in (0.05, 0.11, 0.23, 0.31, None):
        process = multiprocessing.get_context("fork").Process(target=saving, args=(tmp_path / "killed",))
        process.start()
        if wait is None:
            process.join()
            break
        time.sleep(wait)
        process.kill()
        process.join()
        kept = distributed.newest(tmp_path / "killed")
        assert kept is None or (kept / "state" / ".metadata").is_file()
    assert process.exitcode == 0
    assert losses(tmp_path / "killed") == losses(tmp_path / "whole")


class Trap:
    """What a stranger's pickle may do."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.path),)


def test_a_strangers_checkpoint_runs_nothing(tmp_path) -> None:
    learn(tmp_path / "run", Numbers(wait=0.01), deadline=time.monotonic() + 0.2)
    [checkpoint] = (tmp_path / "run").glob("step-*")
    for name in ("__0.metadata", ".metadata"):  # torch looks for both
        (checkpoint / "state" / name).write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    with pytest.raises(StoreError, match="do not trust it"):
        learn(tmp_path / "run", resume=True)
    assert not (tmp_path / "sprung").exists()


def test_a_strangers_value_in_a_checkpoint_runs_nothing(tmp_path) -> None:
    model = Toy()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    optimiser.param_groups[0]["name"] = Trap(tmp_path / "sprung")
    distributed.save(tmp_path, model, optimiser, distributed.Progress(1), ALONE)
    optimiser.param_groups[0]["name"] = "lm"
    checkpoint = distributed.newest(tmp_path)
    assert checkpoint is not None
    with pytest.raises(StoreError, match="cannot resume"):
        distributed.load(checkpoint, model, optimiser, ALONE)
    assert not (tmp_path / "sprung").exists()
