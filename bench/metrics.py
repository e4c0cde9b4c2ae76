"""Time our metrics of the words against NLTK, sacreBLEU and rouge_score on 5,000 pairs, where these are installed.

Values are compared too. NLTK needs its punkt_tab and WordNet where it looks for them (NLTK_DATA); what is not there is
not compared, and said so. Each side is timed with its dictionaries already read; ours forgets between rounds what it
has met before, and so does sacreBLEU.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable

from overtone.embedded.wordnet import wordnet
from overtone.errors import MissingExtra
from overtone.metrics import _porter, _sentences, bleu, meteor, rouge
from overtone.metrics._treebank import words
from overtone.results import corpus_scores

PAIRS, ROUNDS = 5_000, 3
Pairs = list[tuple[str, str]]
Run = Callable[[Pairs], list[float]]

TEXTS = """
oh no, that sounds really hard. I'm so sorry you had to go through that on your own, it must have been frightening.
congratulations! you must be thrilled; I can hear how happy you are about the new job, let's celebrate on Friday.
you sound exhausted... maybe take a short break, drink some water, and call me at 9:30 if you can't sleep?
it's noisy where you are, are you driving? we'll talk when you've parked the car and turned the music down.
that cough doesn't sound good. have you seen a doctor, or are you just resting at home with a warm cup of tea?
I understand why you're worried. many people find that walking helps; try it for a week or two and tell me more.
""".strip().splitlines()


def pairs(seed: int = 0) -> Pairs:
    """Replies and references of some 20 words, about half of them shared, all pairs different."""
    rng = random.Random(seed)
    vocabulary = sorted({word for text in TEXTS for word in text.split()})
    out = []
    for _ in range(PAIRS):
        reference = [w if rng.random() < 0.7 else rng.choice(vocabulary) for w in rng.choice(TEXTS).split()]
        reply = [w if rng.random() < 0.7 else rng.choice(vocabulary) for w in reference if rng.random() > 0.1]
        out.append((" ".join(reply).capitalize(), " ".join(reference).capitalize()))
    return out


def forget() -> None:
    """Empty what our metrics remember of words they have met, so that each round is a first one."""
    _porter.stem.cache_clear()
    _sentences._breaks.cache_clear()
    with contextlib.suppress(MissingExtra):
        wordnet()._known.clear()


def our_bleu(given: Pairs) -> list[float]:
    return [bleu.sentence_bleu(bleu.count(words(a.lower()), words(b.lower()))) for a, b in given]


def our_corpus(given: Pairs) -> list[float]:
    rows = [(bleu.count(bleu.tokens_13a(a), bleu.tokens_13a(b)).detail(), "one script") for a, b in given]
    return [corpus_scores.bleu(rows, len(rows)).value or 0.0]


def our_rouge(stemmed: bool) -> Run:
    def run(given: Pairs) -> list[float]:
        out = []
        for a, b in given:
            first, second = rouge.words(a), rouge.words(b)
            if stemmed:
                first, second = rouge.stems(first), rouge.stems(second)
            out.append(2 * rouge.common(first, second) / (len(first) + len(second)))
        return out

    return run


def our_meteor(given: Pairs) -> list[float]:
    known = wordnet().synonyms
    return [meteor.align(a.lower().split(), b.lower().split(), known).value for a, b in given]


def their_bleu() -> Run:
    from nltk import word_tokenize
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    smooth = SmoothingFunction().method1
    word_tokenize("a sentence. another")
    return lambda given: [
        sentence_bleu([word_tokenize(b.lower())], word_tokenize(a.lower()), smoothing_function=smooth) for a, b in given
    ]


def their_corpus() -> Run:
    from sacrebleu.metrics import BLEU

    # A new one each time, with its memory of lines emptied: else the second round would tokenise nothing.
    def run(given: Pairs) -> list[float]:
        score = BLEU()
        type(score.tokenizer).__call__.cache_clear()
        type(score.tokenizer._post_tokenizer).__call__.cache_clear()
        return [score.corpus_score([a for a, _ in given], [[b for _, b in given]]).score / 100]

    return run


def their_rouge(stemmed: bool) -> Run:
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rougeL"], use_stemmer=stemmed)
    return lambda given: [scorer.score(b, a)["rougeL"].fmeasure for a, b in given]


def their_meteor() -> Run:
    from nltk.translate.meteor_score import meteor_score

    meteor_score([["large"]], ["big"])
    return lambda given: [meteor_score([b.lower().split()], a.lower().split()) for a, b in given]


def best(run: Run, given: Pairs) -> tuple[float, list[float]]:
    seconds, values = float("inf"), []
    for _ in range(ROUNDS):
        forget()
        start = time.perf_counter()
        values = run(given)
        seconds = min(seconds, time.perf_counter() - start)
    return seconds, values


def main() -> None:
    given = pairs()
    print(f"{PAIRS} pairs of about 20 words, best of {ROUNDS}; ratio above 1: overtone is faster")
    table: list[tuple[str, Run, Callable[[], Run]]] = [
        ("bleu", our_bleu, their_bleu),
        ("bleu_corpus", our_corpus, their_corpus),
        ("rouge_l", our_rouge(False), lambda: their_rouge(False)),
        ("rouge_l_stemmed", our_rouge(True), lambda: their_rouge(True)),
        ("meteor", our_meteor, their_meteor),
    ]
    for name, ours, theirs in table:
        try:
            seconds, values = best(ours, given)
        except MissingExtra as missing:
            print(f"{name:16} not measured: {missing}")
            continue
        line = f"{name:16} overtone {seconds:7.3f} s"
        try:
            reference = theirs()
        except (ImportError, LookupError) as missing:
            print(f"{line}   not compared: {str(missing).strip().splitlines()[0]}")
            continue
        took, wanted = best(reference, given)
        apart = max(abs(a - b) for a, b in zip(values, wanted, strict=True))
        assert apart < 1e-6, (name, apart)
        print(f"{line}   reference {took:7.3f} s   ratio {took / seconds:6.2f}   largest difference {apart:.1e}")


if __name__ == "__main__":
    main()
