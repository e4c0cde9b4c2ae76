"""The runner: finished jobs are skipped, results of another design are refused, nothing begins after the time is up."""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import math
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from experiments.perspectives import recipe, run
from experiments.perspectives.data import Data
from experiments.perspectives.model import Sizes, random_state
from overtone.errors import DataError
from overtone.studies.perspectives.design import Job, Study, job_rows

SIZES = Sizes(vocab=64, hidden=24, ffn=32, layers=1, heads=3, kv_heads=1)
GROUP = [Job("document", "1", arm, 1) for arm in ("both", "merged")]


@pytest.fixture
def runner(tmp_path: Path, data: Data) -> run.Runner:
    settings = Study.read().settings
    short = {name: settings[name] | {"steps": 2, "rows": 4} for name in ("training", "dream_tuning")}
    args = argparse.Namespace(out=tmp_path / "jobs", compiled=False, state=tmp_path / "state")
    args.out.mkdir()
    return run.Runner(Study("design", settings | short), data, random_state(SIZES), SIZES, args)


def test_a_job_leaves_its_predictions_per_item(runner: run.Runner, data: Data) -> None:
    runner.run(GROUP)
    assert runner.done() == {"document-1.both.1", "document-1.merged.1"}
    with np.load(runner.out / "document-1.both.1.npz") as found:
        held = job_rows(data.bank, GROUP[0])[1]
        assert found["emobank"].shape == (len(held), 2, 3)
        assert found["open/words"].shape == found["dream/none"].shape == (12, 4)
        assert found["perplexity"].shape == (3,)
    assert not list(runner.out.glob("*.part"))


def test_a_tuned_job_starts_from_the_checkpoint_or_trains_again(runner: run.Runner) -> None:
    tuned = [dataclasses.replace(job, tuned=True) for job in (*GROUP, Job("document", "1", "base", 1))]
    runner.run(GROUP)
    runner.run(tuned)
    with np.load(runner.out / "document-1.both.1.tuned.npz") as found:
        kept = found["tuned/words"]
    (runner.state_folder / "document-1.both.1.pt").unlink()
    runner.run(tuned)
    with np.load(runner.out / "document-1.both.1.tuned.npz") as found:
        assert np.allclose(found["tuned/words"], kept, atol=1e-3)


def test_results_of_another_design_are_refused(runner: run.Runner) -> None:
    runner.run(GROUP)
    other = run.Runner(Study("another", runner.study.settings), runner.data, runner.state, SIZES, argparse.Namespace(
        out=runner.out, compiled=False, state=runner.state_folder
    ))  # fmt: skip
    with pytest.raises(DataError, match="another study"):
        other.done()


def test_no_job_begins_that_would_end_too_late(
    tmp_path: Path, data: Data, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run.Data, "read", lambda folder: data)
    monkeypatch.setattr(run, "SMALL", SIZES)
    monkeypatch.setattr(sys, "argv", ["run", "--data", "x", "--out", str(tmp_path), "--small", "--minutes", "0"])
    run.main()
    assert "the time is up" in capsys.readouterr().out
    assert not list(tmp_path.glob("*.npz"))


@pytest.mark.parametrize("tuned", [False, True])
def test_training_that_was_stopped_continues_to_the_same_result(
    runner: run.Runner, monkeypatch: pytest.MonkeyPatch, tuned: bool
) -> None:
    jobs = [dataclasses.replace(job, tuned=tuned) for job in GROUP]
    runner.run(jobs)
    whole = {path.name: dict(np.load(path)) for path in runner.out.glob("*.npz")}
    for path in runner.out.glob("*.npz"):
        path.unlink()
    ticks = itertools.count()
    monkeypatch.setattr(recipe, "time", argparse.Namespace(monotonic=lambda: next(ticks)))
    with pytest.raises(recipe.TimeUp, match="after 1 of 2 steps"):
        runner.run(jobs, 0)
    assert not list(runner.out.glob("*.npz"))
    runner.run(jobs, math.inf)
    for name, arrays in whole.items():
        again = dict(np.load(runner.out / name))
        assert arrays.keys() == again.keys()
        assert all(np.array_equal(arrays[of], again[of]) for of in arrays.keys() - {"about"})
    assert not list(runner.state_folder.glob("*/*.pt"))


def test_a_group_is_split_into_stacks_that_fit_into_a_share_of_the_memory(
    runner: run.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [Job("document", "1", arm, 1) for arm in Study.read().settings["splits"]["document"]["arms"]]
    assert runner.at_once(jobs, 4) == [jobs]
    runner.device = "cuda"
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (0, 150e9))
    assert [len(stack) for stack in runner.at_once(jobs, 4)] == [4, 4]
    assert [len(stack) for stack in runner.at_once([Job("document", "1", j.arm, 1, True) for j in jobs], 4)] == [
        3,
        3,
        2,
    ]
    assert [job for stack in runner.at_once(jobs, 4) for job in stack] == jobs
