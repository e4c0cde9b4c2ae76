"""Time our word error rate against jiwer's, counts included, on 20,000 utterances of 15 words in one process."""

from __future__ import annotations

import random
import time

import jiwer

from overtone.metrics.normalise import english
from overtone.metrics.wer import align, raw_words

UTTERANCES, WORDS, VOCABULARY, ROUNDS = 20_000, 15, 5_000, 3


def utterances(seed: int = 0) -> tuple[list[str], list[str]]:
    """References and transcripts with about a fifth of the words wrong, dropped or added."""
    rng = random.Random(seed)
    vocabulary = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(VOCABULARY)]
    references, transcripts = [], []
    for _ in range(UTTERANCES):
        words = rng.choices(vocabulary, k=WORDS)
        heard = []
        for word in words:
            draw = rng.random()
            if draw > 0.05:
                heard.append(word if draw > 0.15 else rng.choice(vocabulary))
            if draw > 0.97:
                heard.append(rng.choice(vocabulary))
        references.append(" ".join(words))
        transcripts.append(" ".join(heard))
    return references, transcripts


def main() -> None:
    references, transcripts = utterances()
    ours = theirs = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        counts = [align(raw_words(r), raw_words(t)) for r, t in zip(references, transcripts, strict=True)]
        ours = min(ours, time.perf_counter() - start)
        start = time.perf_counter()
        output = jiwer.process_words(references, transcripts)
        theirs = min(theirs, time.perf_counter() - start)
    rate = sum(c.errors for c in counts) / sum(c.reference_words for c in counts)
    assert abs(rate - output.wer) < 1e-12, (rate, output.wer)
    start = time.perf_counter()
    for text in transcripts:
        english(text)
    normalised = UTTERANCES / (time.perf_counter() - start)
    print(f"{UTTERANCES} utterances of {WORDS} words, best of {ROUNDS}; corpus WER {rate:.4f}")
    print(f"overtone {ours:.3f} s   jiwer {theirs:.3f} s   ratio {theirs / ours:.2f} (above 1: overtone is faster)")
    print(f"normaliser {normalised:,.0f} sentences/s")


if __name__ == "__main__":
    main()
