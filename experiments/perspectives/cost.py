"""Estimate the hours and memory of the study with a larger model, from the measured seconds and the jobs' tokens.

    python -m experiments.perspectives.cost --data out/study

DATA is what `prepare.py` wrote. Writes `cost.json`, which the documentation shows. Operations are 6 per weight and
token that is learnt (all weights of the small model; LoRA with recomputed activations needs as many) and 2 per weight
and token of the outcomes. The small model's jobs, of which four ran at once, give the rate that was reached on one
H200. A larger model uses the GPU better: its rate lies between that and a share of the peak which is common for such
training but was not measured here. Needs torch.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from overtone.studies.perspectives import study_analysis
from overtone.studies.perspectives.design import Job, Study, job_rows
from overtone.studies.perspectives.token_batches import Settings, rounded_up

from . import store
from .data import Data, Questions
from .recipe import Ratings, rating_steps

COST = Path(__file__).with_name("cost.json")
AT_ONCE = 4  # processes that shared the GPU in the measured jobs
PEAK = 989e12  # operations per second of an H200 in bf16, from its data sheet
COMMON = 0.40  # share of the peak that training of large models commonly reaches; not measured here
RATED = 3  # passes over a sentence, one per digit
RANK = 16  # of LoRA, `language_model.RANK`
LOOKED_AT = 100  # steps that are counted


@dataclass(frozen=True)
class Shape:
    """The sizes of a Llama-shaped model."""

    layers: int
    hidden: int
    ffn: int
    kv: int  # width of keys and values
    vocabulary: int
    tied: bool

    @property
    def body(self) -> int:
        return self.layers * (2 * self.hidden**2 + 2 * self.hidden * self.kv + 3 * self.hidden * self.ffn)

    @property
    def head(self) -> int:
        return self.hidden * self.vocabulary

    @property
    def weights(self) -> int:
        """All weights; norms and biases are too few to matter."""
        return self.body + self.head * (1 if self.tied else 2)

    @property
    def lora(self) -> int:
        sides = 2 * 2 * self.hidden + 2 * (self.hidden + self.kv) + 3 * (self.hidden + self.ffn)
        return self.layers * RANK * sides


SMALL = Shape(30, 576, 1536, 192, 49_152, tied=True)
LARGE = Shape(34, 4096, 12_800, 1024, 153_376, tied=False)  # openPangu-Embedded-7B, from its configuration


def learnt_tokens(data: Data, study: Study) -> float:
    """Return the tokens of a training run, padding included."""
    settings = Settings(**study.settings["training"])
    job = Job("document", "0", "both", 0)
    rows, _ = job_rows(data.bank, job)
    ratings = Ratings.of(data, rows, [job.arm], job.seed)
    steps = itertools.islice(rating_steps(ratings, settings, job.seed), LOOKED_AT)
    return settings.steps * float(np.mean([step.tokens for step in steps]))


def packed(prompt: int, options: list[int]) -> int:
    """Return the tokens of a question whose options follow one prompt, as in the stacked training."""
    return rounded_up(prompt + sum(options))


def apart(prompt: int, options: list[int]) -> int:
    """Return the tokens of a question whose options are sequences of their own, as in the package's recipe."""
    return len(options) * rounded_up(prompt + max(options))


Layout = Callable[[int, list[int]], int]


def asked_tokens(questions: Questions, layout: Layout, conditions: set[str]) -> int:
    """Return the tokens of all questions of a set in some conditions."""
    return sum(
        layout(len(prompt), list(map(len, options)))
        for condition in conditions & set(questions.prompts)
        for prompt, options in zip(questions.prompts[condition], questions.options, strict=True)
    )


def job_tokens(data: Data, study: Study, layout: Layout) -> dict[str, tuple[float, float]]:
    """Return the tokens that a job of each block learns, and those of its outcomes."""
    learnt = learnt_tokens(data, study)
    sentence = float(np.mean([rounded_up(len(data.heads["reader"]) + len(tail) + 5) for tail in data.tails]))
    held = {
        name: float(np.mean([len(job_rows(data.bank, Job(name, part, "both", 0))[1]) for part in parts]))
        for name, parts in (("genre", sorted(set(data.bank.genres))), ("document", list("01234")), ("official", [""]))
    }
    rated = {name: 2 * RATED * rows * sentence for name, rows in held.items()}
    every = {"words", "heard", "told", "none"}
    questions = sum(asked_tokens(data.questions[name], layout, every) for name in ("open", "dream"))
    texts = sum(map(len, data.windows))
    tuning = Settings(**study.settings["dream_tuning"])
    train = data.questions["dream-train"]
    lengths = [layout(len(p), list(map(len, o))) for p, o in zip(train.prompts["words"], train.options, strict=True)]
    tuned = tuning.steps * tuning.rows * float(np.mean(lengths))
    control = asked_tokens(data.questions["open"], layout, {"words", "told", "none"})
    return {
        "genre": (learnt, rated["genre"]),
        "document": (learnt, rated["document"] + questions + texts),
        "official": (learnt, rated["official"] + questions + texts),
        "document tuned": (tuned, asked_tokens(data.questions["dream"], layout, {"words"})),
        "open-control": (tuned, control),
    }


def operations(shape: Shape, learnt: float, asked: float) -> float:
    """Return the operations of a job. The head counts as if every token were predicted, which is too much."""
    return (6 * learnt + 2 * asked) * (shape.body + shape.head)


def estimate(data: Data, study: Study) -> dict[str, Any]:
    """Return the measured rate and the estimate for the large model."""
    found = study_analysis.read(store.RESULTS, study)
    blocks = {b.split + (" tuned" if b.tuned and b.split == "document" else ""): b for b in found.blocks}
    small, large = (job_tokens(data, study, layout) for layout in (packed, apart))
    measured = {}
    for name in ("genre", "document"):
        seconds = blocks[name].seconds
        assert seconds is not None
        measured[name] = {
            "seconds": round(seconds, 1), "gpu_seconds": round(seconds / AT_ONCE, 1),
            "operations": operations(SMALL, *small[name]),
            "rate": operations(SMALL, *small[name]) / (seconds / AT_ONCE),
        }  # fmt: skip
    slow = max(one["rate"] for one in measured.values())
    work = {name: operations(LARGE, *large[name]) for name in large}
    whole = sum(work[name] * blocks[name].planned for name in work)
    primary = work["genre"] * blocks["genre"].planned + work["document"] * blocks["document"].planned
    primary += work["open-control"] * blocks["open-control"].planned
    rates = {"measured": slow, "common": COMMON * PEAK}
    settings = Settings(**study.settings["training"])
    per_step = learnt_tokens(data, study) / settings.steps
    return {
        "small": {"weights": SMALL.weights, "measured": measured},
        "tokens": {name: {"learnt": round(a), "outcomes": round(b)} for name, (a, b) in large.items()},
        "large": {
            "weights": LARGE.weights, "lora": LARGE.lora,
            "minutes": {name: {of: w / rate / 60 for of, rate in rates.items()} for name, w in work.items()},
            "hours": {of: whole / rate / 3600 for of, rate in rates.items()},
            "hours_primary": {of: primary / rate / 3600 for of, rate in rates.items()},
        },
        "rates": rates,
        "share_of_peak": {"measured": slow / PEAK, "common": COMMON},
        "memory": memory(per_step),
    }  # fmt: skip


def memory(tokens: float) -> dict[str, float]:
    """Return the bytes that one training process of the large model needs, by part."""
    kept = tokens * LARGE.hidden * 2 * LARGE.layers  # the input of each layer, in bf16; the rest is recomputed
    inner = tokens * (8 * LARGE.hidden + 4 * LARGE.ffn) * 4  # one layer while it is recomputed, at most float32
    return {
        "weights in bf16": 2.0 * LARGE.weights,
        "LoRA: weights, gradients and Adam in float32": 16.0 * LARGE.lora,
        "the head in float32, for the logits": 4.0 * LARGE.head,
        "activations of a step": kept + inner,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Estimate hours and memory with a larger model.")
    parser.add_argument("--data", type=Path, required=True, help="folder with data.json.gz")
    args = parser.parse_args()
    found = estimate(Data.read(args.data), Study.read())
    COST.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(COST.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
