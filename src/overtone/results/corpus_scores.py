"""Corpus scores, which are not means of the scores of single replies: word error rates, corpus BLEU, distinctness.

Corpus scores are computed from the counts in the details of each score; no text is read again. Intervals are clustered
by script. The effect of a missing reply is unknown, so only word error rates of transcripts have bounds.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from overtone.languages import text_length
from overtone.results.load import Answer
from overtone.results.measures import Estimate, estimate, from_interval, from_scale, on_scale
from overtone.results.score_details import ALIGNMENT, BLEU, COUNTS, ERRORS, complete, needed_by
from overtone.schema import Score
from overtone.scores import ScoreInfo
from overtone.stats import cluster, corpus_sums

Detail = Mapping[str, float | int | str | None]
Row = tuple[Detail, str]  # the details of a reply's score, and the reply's script

TRANSCRIPTS = "wer"  # the score whose details count a transcript's errors
WER_CORPUS = "wer_corpus"  # the measure that is computed from these details
NO_INTERVAL = "falls as replies are added: compare equal numbers of replies only; no interval"


def over(metric: str, answers: Sequence[Answer], info: ScoreInfo, turn: int | None = None) -> Estimate:
    """Compute a metric over the last reply of each answer, or over the replies to one turn: the metric's corpus score
    if it has one, otherwise the mean."""
    scores = [(_score(a, metric, turn), a.item.group) for a in answers]
    if info.corpus:
        needed = needed_by(info)
        rows = [(score.detail, group) for score, group in scores if score is not None and complete(score, needed)]
        return REDUCERS[info.reduce](rows, len(scores))
    good, bad = (info.high, info.low) if info.bounds else (None, None)
    valued = [(None if score is None else score.value, group) for score, group in scores]
    known = [value for value, _ in valued if value is not None]
    made = estimate(valued, kind="proportion" if info.reduce == "share" else "mean", good=good, bad=bad)
    if info.scale == "percent":  # for error rates too, 100 % is the natural end
        made = from_scale(made, 0.0, 1.0)
    return on_scale(made, *info.ends(known))


def _score(answer: Answer, metric: str, turn: int | None) -> Score | None:
    last = turn is None or turn == len(answer.item.turns) - 1
    scores = answer.scores if last else answer.earlier.get(turn or 0, {})
    return scores.get(metric) if answer.answered else None


def bleu(rows: Sequence[Row], asked: int) -> Estimate:
    """Compute sacreBLEU's corpus score (0 to 1) from the counts in the details, with a jackknife interval over
    scripts."""
    if not rows:
        return Estimate(None, None, None, 0, asked)
    counts = [[_number(detail, name) for name in BLEU] for detail, _ in rows]
    interval = corpus_sums.jackknife(
        counts, [group for _, group in rows], lambda s: corpus_sums.bleu(s[0], s[1], list(s[2:6]), list(s[6:]))
    )
    return from_scale(from_interval(interval, _within(interval.low), _within(interval.high), asked), 0.0, 1.0)


def distinct(rows: Sequence[Row], asked: int) -> Estimate:
    """Compute the number of distinct n-grams ÷ the number of all n-grams in the replies, from hashes in the details."""
    different: set[bytes] = set()
    total = 0.0
    for detail, _ in rows:
        packed, count = base64.b64decode(str(detail.get("hashes") or "")), int(_number(detail, "different"))
        size = len(packed) // count if count else 0
        different.update(packed[i : i + size] for i in range(0, len(packed), size or 1))
        total += _number(detail, "total")
    value = len(different) / total if total else None
    scripts = len({group for _, group in rows})
    return Estimate(value, None, None, len(rows), asked, scripts=scripts, note=NO_INTERVAL)


def word_errors(rows: Sequence[Row], asked: int) -> Estimate:
    """Compute Σ errors ÷ Σ words of the replies' texts, from the counts in the details."""
    errors = [math.fsum(_number(detail, name) for name in ERRORS) for detail, _ in rows]
    words = [_number(detail, "reference_words") for detail, _ in rows]
    rate = cluster.ratio(errors, words, [group for _, group in rows])
    return from_scale(from_interval(rate, max(rate.low, 0.0), rate.high, asked), 0.0, 1.0)


REDUCERS: dict[str, Callable[[Sequence[Row], int], Estimate]] = {
    "bleu": bleu,
    "distinct": distinct,
    "errors": word_errors,
}


def _number(detail: Detail, name: str) -> float:
    value = detail.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _within(x: float) -> float:
    return x if math.isnan(x) else min(max(x, 0.0), 1.0)


# ── word error rate ─────────────────────────────────────────────────────────────────────────────────────────────────


def counts(answer: Answer) -> dict[str, float] | None:
    """Return the alignment counts of a transcript's normalised words, or None if the transcript has no such counts."""
    score = answer.scores.get(TRANSCRIPTS) if answer.answered else None
    if score is None or not complete(score, ALIGNMENT):
        return None
    return {name: _number(score.detail, name) for name in COUNTS}


def corpus_wer(answers: Iterable[Answer]) -> Estimate:
    """Compute Σ errors ÷ Σ reference words. In the bounds, a missing transcript counts as all right or all wrong."""
    errors: list[float] = []
    words: list[float] = []
    groups: list[str] = []
    asked, open_words = 0, 0
    for answer in answers:
        if answer.item.task != "transcribe":
            continue
        asked += 1
        if (aligned := counts(answer)) is None:
            open_words += text_length((answer.item.references or ("",))[0])
            continue
        errors.append(sum(aligned[name] for name in ERRORS))
        words.append(aligned["reference_words"])
        groups.append(answer.item.group)
    result = cluster.ratio(errors, words, groups)
    total = sum(words) + open_words
    best, worst = (sum(errors) / total, (sum(errors) + open_words) / total) if total else (None, None)
    return from_scale(from_interval(result, max(result.low, 0.0), result.high, asked, best, worst), 0.0, 1.0)
