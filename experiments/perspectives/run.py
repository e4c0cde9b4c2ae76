"""Run the study's jobs, several arms at a time, until all are done or the time is up.

    python -m experiments.perspectives.run --data DIR --out DIR [--minutes 9] [--part 1/2] [--compiled]

DATA is what `prepare.py` wrote. Every finished job is one file in OUT, with its predictions per item. Jobs that are
there or in the repository's results are not run again, so the same command continues. Training that is not over when
the time is up is saved in STATE and continued on the same machine. Results of another `study.toml` or other data are
refused.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import shutil
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from overtone.rated_sentences import Array
from overtone.studies.perspectives import results
from overtone.studies.perspectives.design import Job, Study, job_rows
from overtone.studies.perspectives.token_batches import Settings

from . import outcomes, store
from .data import Data, Questions
from .model import Sizes, Stack, random_state, read_state
from .recipe import Clock, Ratings, TimeUp, train_ratings

LAST = 45.0  # seconds at the end in which nothing is trained: for the outcomes, or for saving what was trained
GB = {False: 5.5, True: 10.0}  # GPU memory of one run: in training, in the tuning on DREAM
MOST_FAILURES = 3
SMALL = Sizes(hidden=36, ffn=32, layers=2)


class Runner:
    """The data, the base model's weights and the folder of results."""

    def __init__(
        self, study: Study, data: Data, state: dict[str, Tensor], sizes: Sizes, args: argparse.Namespace
    ) -> None:
        self.study, self.data, self.sizes = study, data, sizes
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.state = {name: value.to(self.device) for name, value in state.items()}
        self.out, self.compiled, self.state_folder = args.out, args.compiled, args.state
        self.state_folder.mkdir(parents=True, exist_ok=True)
        self.training = Settings(**study.settings["training"])
        self.tuning = Settings(**study.settings["dream_tuning"])

    def done(self, *packed: Path) -> set[str]:
        """Return the keys of finished jobs, here and in the repository. Raises DataError for those of other data."""
        return {job.key for folder in (self.out, *packed) for job in results.read(folder, self.study, self.data.sha256)}

    def at_once(self, jobs: Sequence[Job], parts: int) -> list[list[Job]]:
        """Split a group into stacks that fit into this process's share of the GPU's memory."""
        if self.device != "cuda" or not jobs:
            return [list(jobs)] if jobs else []
        room = 0.95 * torch.cuda.mem_get_info()[1] / 1e9 / parts
        most = max(1, int(room / GB[jobs[0].tuned]))
        count = -(-len(jobs) // most)
        return [[jobs[i] for i in at] for at in np.array_split(np.arange(len(jobs)), count)]

    def run(self, jobs: Sequence[Job], stop: float = math.inf) -> str:
        """Run jobs of one group in lockstep and write their results. Return a line for the log.

        Raises TimeUp when training is not over by `stop`; the same call continues it.
        """
        start = time.monotonic()
        torch.manual_seed(0)
        stack, losses = self._trained(jobs, stop)
        trained = time.monotonic() - start
        if jobs[0].tuned:
            clock = self._clock("tuning", jobs, len(jobs), stop)
            losses = outcomes.tune_choices(stack, self.data.questions["dream-train"], self.tuning, jobs[0].seed, clock)
        found = self._outcomes(stack, jobs)
        seconds = (time.monotonic() - start) / len(jobs)
        for i, job in enumerate(jobs):
            about = {
                **dataclasses.asdict(job), "key": job.key, "study": self.study.sha256, "data": self.data.sha256,
                "losses": [row[i] for row in losses], "seconds": round(seconds, 2), "runs": len(jobs),
                "train_s": round(trained / len(jobs), 2), "compiled": self.compiled,
                "torch": torch.__version__, "device": self._device_name(),
            }  # fmt: skip
            results.write_file(self.out / f"{job.key}.npz", about, {name: value[i] for name, value in found.items()})
        shutil.rmtree(self.state_folder / jobs[0].key, ignore_errors=True)
        names = " ".join(job.arm for job in jobs)
        return f"{jobs[0].key} ({names}): {seconds:.1f} s a job, of it training {trained / len(jobs):.1f} s"

    def _device_name(self) -> str:
        return torch.cuda.get_device_name() if self.device == "cuda" else "cpu"

    def _trained(self, jobs: Sequence[Job], stop: float) -> tuple[Stack, list[list[float]]]:
        """Return the trained arms of a group. The tuning begins with weights in half precision, kept or trained now."""
        stack, losses = self._stack(len(jobs)), []
        learners = [job for job in jobs if job.arm != "base" and not (job.tuned and self._weights(job).exists())]
        if learners:
            learner = stack if len(learners) == len(jobs) else self._stack(len(learners))
            learnt, _ = job_rows(self.data.bank, learners[0])
            ratings = Ratings.of(self.data, learnt, [job.arm for job in learners], jobs[0].seed)
            clock = self._clock("training", jobs, len(learners), stop)
            losses = train_ratings(learner, ratings, self.training, jobs[0].seed, clock)
            if jobs[0].split == "document":
                for i, job in enumerate(learners):
                    weights = {name: value[i].detach().bfloat16() for name, value in learner.weights.items()}
                    torch.save(weights, self._weights(job))
        for i, job in enumerate(jobs):
            if job.tuned and job.arm != "base":
                saved = torch.load(self._weights(job), map_location=self.device)
                with torch.no_grad():
                    for name, value in stack.weights.items():
                        value[i] = saved[name].float()
        return stack, losses

    def _stack(self, runs: int) -> Stack:
        return Stack(self.state, runs, self.sizes, self.device, compiled=self.compiled)

    def _weights(self, job: Job) -> Path:
        """The trained weights of an arm of `document`, which the tuning begins with."""
        return self.state_folder / f"{dataclasses.replace(job, tuned=False).key}.pt"

    def _clock(self, name: str, jobs: Sequence[Job], runs: int, stop: float) -> Clock:
        folder = self.state_folder / jobs[0].key
        folder.mkdir(exist_ok=True)
        return Clock(stop, folder / f"{name}.{runs}.pt")

    def _outcomes(self, stack: Stack, jobs: Sequence[Job]) -> dict[str, Array]:
        """Return arrays with one entry per job."""
        out: dict[str, Array] = {}
        questions = self.data.questions
        for name in self.study.outcomes(jobs[0]):
            if name == "emobank":
                _, held = job_rows(self.data.bank, jobs[0])
                out["emobank"] = outcomes.rate(stack, self.data, held, [job.arm for job in jobs])
            elif name == "tuned":
                out["tuned/words"] = outcomes.choose(stack, questions["dream"], "words")
            elif name == "perplexity":
                out["perplexity"] = outcomes.perplexity(stack, self.data.windows)
            else:
                for condition in questions[name].prompts:
                    out[f"{name}/{condition}"] = outcomes.choose(stack, questions[name], condition)
        return out


def smaller(study: Study, data: Data) -> tuple[Study, Data]:
    """Return a few steps, rows and questions, to try the whole path on a CPU. Its results are not the study's."""
    settings = dict(study.settings)
    for name in ("training", "dream_tuning"):
        settings[name] = settings[name] | {"steps": 2, "rows": 8}
    bank = data.bank
    keep = list(range(0, len(bank), max(1, len(bank) // 400)))
    part = dataclasses.replace(
        bank,
        **{name: [getattr(bank, name)[i] for i in keep] for name in ("ids", "documents", "genres", "splits")},
        means={who: values[keep] for who, values in bank.means.items()},
        ratings={who: [values[i] for i in keep] for who, values in bank.ratings.items()},
    )

    def few(q: Questions, count: int = 24) -> Questions:
        at = range(0, len(q.gold), max(1, len(q.gold) // count))
        prompts = {c: [rows[i] for i in at] for c, rows in q.prompts.items()}
        return Questions(prompts, *([rows[i] for i in at] for rows in (q.options, q.gold, q.about)))

    return Study("small", settings), dataclasses.replace(
        data, sha256="small", bank=part, tails=[data.tails[i] for i in keep], windows=data.windows[:2],
        questions={name: few(q) for name, q in data.questions.items()},
    )  # fmt: skip


def in_order(groups: Sequence[list[list[Job]]]) -> list[list[Job]]:
    """Return the stacks of all groups in the order in which they run.

    Of the tuning on DREAM, the first stack of every seed comes before the second of any: the base model and the first
    arms of all seeds say more than all arms of some seeds.
    """
    ranked = [(rank if stack[0].tuned else 0, stack) for group in groups for rank, stack in enumerate(group)]
    return [stack for _, stack in sorted(ranked, key=lambda pair: pair[0])]


def share(stacks: Sequence[list[Job]], parts: int) -> list[list[list[Job]]]:
    """Share the stacks among processes, so that each has about as many jobs. Their order is kept."""
    shares: list[list[int]] = [[] for _ in range(parts)]
    for i in sorted(range(len(stacks)), key=lambda i: -len(stacks[i])):
        min(shares, key=lambda at: sum(len(stacks[k]) for k in at)).append(i)
    return [[stacks[i] for i in sorted(at)] for at in shares]


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the study's jobs.")
    parser.add_argument("--data", type=Path, required=True, help="folder with data.json.gz and weights.npz")
    parser.add_argument("--out", type=Path, required=True, help="folder of the results, one file per job")
    parser.add_argument("--minutes", type=float, default=9.0, help="time in all (default: 9)")
    parser.add_argument("--part", default="1/1", help="K/N: the K-th of N shares of what is left (default: 1/1)")
    parser.add_argument("--state", type=Path, help="folder of what continues on this machine (default: OUT/state)")
    parser.add_argument("--compiled", action="store_true", help="fuse small kernels with torch.compile")
    parser.add_argument("--only", default="", help="only groups of this split: genre, document, official")
    parser.add_argument("--arms", default="", help="only these arms, separated by commas")
    parser.add_argument("--small", action="store_true", help="a tiny random model, to try the path; not the study")
    args = parser.parse_args()
    args.state = args.state or args.out / "state"
    stop = time.monotonic() + 60 * args.minutes - LAST
    torch.set_float32_matmul_precision("high")
    args.out.mkdir(parents=True, exist_ok=True)
    study, data = Study.read(), Data.read(args.data)
    if args.small:
        study, data = smaller(study, data)
    sizes = SMALL if args.small else Sizes()
    state = random_state(sizes) if args.small else read_state(args.data / "weights.npz", sizes)
    runner = Runner(study, data, state, sizes, args)
    done = runner.done() if args.small else runner.done(store.RESULTS)
    part, parts = map(int, args.part.split("/"))
    arms = [name for name in args.arms.split(",") if name]
    left = [
        [j for j in jobs if j.key not in done and args.only in ("", j.split) and (j.arm in arms or not arms)]
        for jobs in study.jobs(sorted(set(data.bank.genres)))
    ]
    stacks = in_order([runner.at_once(jobs, parts) for jobs in left])
    failed: list[str] = []
    for jobs in share(stacks, parts)[part - 1]:
        try:
            if time.monotonic() > stop:
                raise TimeUp("not begun")
            print(runner.run(jobs, stop), flush=True)
        except TimeUp as reason:
            print(f"{jobs[0].key}: the time is up, {reason}; the same command continues", flush=True)
            return
        except RuntimeError:  # such as too little memory: other groups are smaller, and minutes on a GPU are few
            failed.append(jobs[0].key)
            traceback.print_exc()
            if len(failed) == MOST_FAILURES:
                break
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")
    print("all jobs of this part are done", flush=True)


if __name__ == "__main__":
    main()
