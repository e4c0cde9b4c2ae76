"""Text metrics as functions: `overtone.wer(references, hypotheses)`, `bleu`, `rouge_l`, `meteor` and `bertscore`.

Each function scores pairs with the metric that runs use, so the numbers and signatures are the same. A result has the
number of the whole corpus, its components, and the score of every pair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from importlib import import_module
from typing import Any

from overtone.errors import UsageError
from overtone.metrics import Answered, Metric
from overtone.schema import Item, Key, Score, Turn
from overtone.stats.corpus_sums import bleu as corpus_bleu
from overtone.stats.corpus_sums import brevity

Texts = str | Sequence[str]


@dataclass(frozen=True)
class TextScore:
    """The score of a corpus of text pairs. `value` is the corpus's number, `mean` the mean over its pairs.

    `scores` has one `Score` per pair, in order. A pair that cannot be scored has no value but a reason.
    """

    value: float
    mean: float
    pairs: int
    signature: str = field(repr=False)
    scores: tuple[Score, ...] = field(repr=False)

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        shown = ((f.name, getattr(self, f.name)) for f in fields(self) if f.repr)
        parts = (f"{name}={part:.4f}" if isinstance(part, float) else f"{name}={part}" for name, part in shown)
        return f"{type(self).__name__}({', '.join(parts)})"


@dataclass(frozen=True, repr=False)
class WordErrors(TextScore):
    """Word error rate: errors per reference word. Counts characters in languages that are written without spaces."""

    hits: int
    substitutions: int
    deletions: int
    insertions: int
    reference_words: int


@dataclass(frozen=True, repr=False)
class Bleu(TextScore):
    """BLEU-4 from 0 to 1. `value` is sacreBLEU's corpus score, `mean` the mean of NLTK's sentence scores."""

    precisions: tuple[float, float, float, float]
    brevity_penalty: float
    hypothesis_tokens: int
    reference_tokens: int


@dataclass(frozen=True, repr=False)
class RougeL(TextScore):
    """ROUGE-L: the mean F1 of the longest common subsequence of words, with its mean precision and recall."""

    precision: float
    recall: float


@dataclass(frozen=True, repr=False)
class Meteor(TextScore):
    """METEOR: the mean over pairs, with the number of matched words and of chunks they form."""

    matches: int
    chunks: int


@dataclass(frozen=True, repr=False)
class BertScore(TextScore):
    """BERTScore: the mean F1 of greedily matched token embeddings, with its mean precision and recall."""

    precision: float
    recall: float


def wer(references: Texts, hypotheses: Texts, *, normalise: bool = True, language: str = "") -> WordErrors:
    """Return the word error rate of transcripts.

    `normalise=False` compares the texts without changes, as jiwer does by default. `language` is a BCP-47 tag (default:
    guessed from the script of the texts). Raises UsageError if no pair can be scored.
    """
    name = "wer" if normalise else "wer_raw"
    scores = _score("wer", "transcribe", references, hypotheses, language)[name]
    common = _common(scores)
    hits, *edits = (int(_total(scores, key)) for key in ("hits", "substitutions", "deletions", "insertions"))
    words = int(_total(scores, "reference_words"))
    substitutions, deletions, insertions = edits
    return WordErrors(sum(edits) / words, *common, hits, substitutions, deletions, insertions, words)


def bleu(references: Texts, hypotheses: Texts, *, language: str = "") -> Bleu:
    """Return BLEU-4 of the hypotheses against one reference each, from 0 to 1."""
    by_name = _score("bleu", "converse", references, hypotheses, language)
    corpus = by_name["bleu_corpus"]
    _, pairs, signature, scores = _common(corpus)
    ours, theirs = (int(_total(corpus, key)) for key in ("reply_tokens", "reference_tokens"))
    correct, total = ([int(_total(corpus, f"{key}_{n}")) for n in range(1, 5)] for key in ("correct", "total"))
    precisions = tuple(c / t if t else 0.0 for c, t in zip(correct, total, strict=True))
    value = corpus_bleu(ours, theirs, correct, total)
    mean = _mean([score.value for score in by_name["bleu"]])
    return Bleu(value, mean, pairs, signature, scores, precisions, brevity(ours, theirs), ours, theirs)  # type: ignore[arg-type]


def rouge_l(references: Texts, hypotheses: Texts, *, stemmed: bool = False, language: str = "") -> RougeL:
    """Return ROUGE-L of the hypotheses. `stemmed=True` compares Porter stems (English only)."""
    name = "rouge_l_stemmed" if stemmed else "rouge_l"
    scores = _score("rouge", "converse", references, hypotheses, language)[name]
    common = _common(scores)
    scored = [score.detail for score in scores if score.value is not None]
    precision, recall = (
        _mean([_ratio(detail["common"], detail[key]) for detail in scored])
        for key in ("reply_words", "reference_words")
    )
    return RougeL(common[0], *common, precision, recall)


def meteor(references: Texts, hypotheses: Texts) -> Meteor:
    """Return METEOR of English hypotheses. Raises UsageError if WordNet is missing."""
    scores = _score("meteor", "converse", references, hypotheses, "en")["meteor"]
    common = _common(scores)
    return Meteor(common[0], *common, int(_total(scores, "matches")), int(_total(scores, "chunks")))


def bertscore(references: Texts, hypotheses: Texts, *, language: str = "", **options: str) -> BertScore:
    """Return BERTScore of the hypotheses.

    `options` are those of the metric: `model` (default: the embedded MiniLM), `layer`, `rescale`. Raises UsageError if
    the encoder is missing.
    """
    scores = _score("bertscore", "converse", references, hypotheses, language, **options)["bertscore"]
    common = _common(scores)
    scored = [score.detail for score in scores if score.value is not None]
    precision, recall = (_mean([_number(detail[key]) for detail in scored]) for key in ("precision", "recall"))
    return BertScore(common[0], *common, precision, recall)


def _score(
    module: str, task: str, references: Texts, hypotheses: Texts, language: str, **options: str
) -> dict[str, tuple[Score, ...]]:
    """Score pairs with a metric of runs; return the scores of all pairs by the names of the metric's scores."""
    first, second = _texts(references, "references"), _texts(hypotheses, "hypotheses")
    if len(first) != len(second):
        raise UsageError(
            f"{len(first)} references but {len(second)} hypotheses; give one hypothesis for each reference"
        )
    if not first:
        raise UsageError("no texts; give at least one reference and one hypothesis")
    metric: Metric = import_module(f"overtone.metrics.{module}").load(**options)
    rows = metric.score([_pair(n, task, *pair, language) for n, pair in enumerate(zip(first, second, strict=True))])
    return {row[0].metric: row for row in map(tuple, zip(*rows, strict=True))}


def _pair(number: int, task: str, reference: str, hypothesis: str, language: str) -> Answered:
    name = str(number)
    item = Item(name, "", 3, task, "", name, name, "", (Turn(None),), references=(reference,), language=language)
    return Answered(Key(name, ""), item, hypothesis)


def _texts(texts: Texts, what: str) -> list[str]:
    listed = [texts] if isinstance(texts, str) else list(texts)
    for number, text in enumerate(listed):
        if not isinstance(text, str):
            raise UsageError(f"{what}[{number}] is {type(text).__name__}, not a text")
    return listed


def _common(scores: Sequence[Score]) -> tuple[float, int, str, tuple[Score, ...]]:
    """Return the mean, the number of pairs, the signature and the scores.

    Raises UsageError if no pair could be scored.
    """
    if all(score.value is None for score in scores):
        raise UsageError(f"{scores[0].metric}: no pair can be scored: {scores[0].reason}")
    return _mean([score.value for score in scores]), len(scores), scores[0].signature, tuple(scores)


def _total(scores: Sequence[Score], key: str) -> float:
    return math.fsum(_number(score.detail.get(key)) for score in scores if score.value is not None)


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known)


def _ratio(part: Any, whole: Any) -> float:
    return _number(part) / _number(whole) if whole else 0.0


def _number(value: Any) -> float:
    return float(value or 0)
