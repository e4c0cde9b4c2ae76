"""The positive control of Overtone-Open: can this model learn these questions at all?

    python -m experiments.perspectives.control --data DIR --out DIR [--minutes 9] [--part 1/4]

The base model is tuned on the questions of half of the scripts, with words and cue told, and tested on the other half,
with the settings of the tuning on DREAM. If that does not raise its accuracy, Overtone-Open cannot show a difference
between arms with this model. Each job is one half of one seed, kept like the study's other results, under the split
`open-control`; `design.tested_questions` says which of its questions count.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from pathlib import Path

import torch

from overtone.studies.perspectives import results
from overtone.studies.perspectives.design import CONTROL_CONDITIONS, Job, Study, tested_questions
from overtone.studies.perspectives.token_batches import Settings

from . import outcomes, store
from .data import Data, Questions
from .model import Sizes, Stack, random_state, read_state
from .run import SMALL, smaller


def learnt(questions: Questions, job: Job) -> Questions:
    """Return the questions that a job learns, with the cue told under the name that the tuning reads."""
    tested = tested_questions(questions.answers.clusters, job.seed, int(job.part))
    rows = [i for i, out in enumerate(tested) if not out]
    prompts = {"words": [questions.prompts["told"][i] for i in rows]}
    return Questions(
        prompts, *([part[i] for i in rows] for part in (questions.options, questions.gold, questions.about))
    )


def run(job: Job, study: Study, data: Data, stack: Stack, out: Path) -> str:
    """Tune and test one half; write its likelihoods of all questions. Return a line for the log."""
    start = time.monotonic()
    settings = Settings(**study.settings["dream_tuning"])
    losses = outcomes.tune_choices(stack, learnt(data.questions["open"], job), settings, job.seed)
    arrays = {f"open/{c}": outcomes.choose(stack, data.questions["open"], c)[0] for c in CONTROL_CONDITIONS}
    about = {
        **dataclasses.asdict(job), "key": job.key, "study": study.sha256, "data": data.sha256,
        "losses": [row[0] for row in losses], "seconds": round(time.monotonic() - start, 2), "torch": torch.__version__,
    }  # fmt: skip
    results.write_file(out / f"{job.key}.npz", about, arrays)
    return f"{job.key}: {time.monotonic() - start:.1f} s, losses {about['losses']}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the positive control of Overtone-Open.")
    parser.add_argument("--data", type=Path, required=True, help="folder with data.json.gz and weights.npz")
    parser.add_argument("--out", type=Path, required=True, help="folder of the results, one file per job")
    parser.add_argument("--minutes", type=float, default=9.0, help="begin no job after this time (default: 9)")
    parser.add_argument("--part", default="1/1", help="K/N: every N-th job, from the K-th (default: 1/1)")
    parser.add_argument("--small", action="store_true", help="a tiny random model, to try the path; not the study")
    args = parser.parse_args()
    stop = time.monotonic() + 60 * args.minutes
    torch.set_float32_matmul_precision("high")
    args.out.mkdir(parents=True, exist_ok=True)
    study, data = Study.read(), Data.read(args.data)
    if args.small:
        study, data = smaller(study, data)
    sizes = SMALL if args.small else Sizes()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    state = random_state(sizes) if args.small else read_state(args.data / "weights.npz", sizes)
    state = {name: value.to(device) for name, value in state.items()}
    folders = (args.out,) if args.small else (args.out, store.RESULTS)
    done = {job for folder in folders for job in results.read(folder, study, data.sha256)}
    part, parts = map(int, args.part.split("/"))
    for (job,) in study.control_jobs()[part - 1 :: parts]:
        if job not in done and time.monotonic() < stop:
            print(run(job, study, data, Stack(state, 1, sizes, device), args.out), flush=True)


if __name__ == "__main__":
    main()
