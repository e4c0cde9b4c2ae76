"""Count one run's results per script. Every score, and every bootstrap draw of it, is a quotient of these sums.

An unreadable answer counts as wrong; it is never left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from overtone.echat.data import think
from overtone.echat.data.labels import DIMENSIONS, REPLY, label
from overtone.echat.exam.answer_file import REPLIES, Prediction
from overtone.metrics.normalise import english
from overtone.metrics.wer import align

Array = NDArray[np.float64]
Vectors = Mapping[str, NDArray[np.float32]]
Kind = Literal["mean", "accuracy", "uar"]
Listen = Callable[[Prediction], str]  # returns the transcript of a spoken reply

CATEGORIES = ("emotion", "age", "gender", "event", "multi")  # EChat-eval's categories
THOUGHT = ("age", "gender", "emotion", "event")  # dimensions in a thought in tags
_TAG = re.compile(r"<([^<>]{1,40})>")


class Measure(Struct, frozen=True, order=True):
    """A measure of a part, computed from one kind of answer."""

    part: str
    name: str
    source: str


class Tally:
    """Sums by cluster. A mean has the columns sum and count; labels have hits per label, then occurrences per label."""

    def __init__(self, kinds: tuple[Kind, ...], width: int, chance: dict[str, float] | None = None) -> None:
        self.kinds, self.width, self.chance = kinds, width, chance or {}
        self.by: dict[str, Array] = {}
        self.n = 0

    def add(self, cluster: str, *cells: tuple[int, float]) -> None:
        """Add one record's values to some columns of a cluster."""
        row = self.by.setdefault(cluster, np.zeros(self.width))
        for at, value in cells:
            row[at] += value
        self.n += 1


def value(kind: Kind, sums: Array) -> Array:
    """Return the score of summed rows, (…, width) → (…); NaN if the denominator is 0."""
    half = sums.shape[-1] // 2
    if kind == "uar":
        with np.errstate(invalid="ignore", divide="ignore"):
            recalls = sums[..., :half] / sums[..., half:]
        occurs = sums[..., half:] > 0
        total: Array = np.where(occurs, recalls, 0.0).sum(-1)
        return _ratio(total, occurs.sum(-1))
    return _ratio(sums[..., :half].sum(-1), sums[..., half:].sum(-1))


def _ratio(top: Array, bottom: Array) -> Array:
    ratio: Array = np.divide(top, bottom, out=np.full(np.shape(top), np.nan), where=np.asarray(bottom) > 0)
    return ratio


Tallies = dict[Measure, Tally]


def texts(rows: Sequence[Prediction]) -> set[str]:
    """Return every reply and reference whose meaning is compared."""
    return {t for row in rows if row.said for t in (row.reply, *(parsed(row, mode).reply for mode in row.said)) if t}


def parsed(row: Prediction, mode: str) -> think.Thought:
    """Return the parsed reply of a mode."""
    return think.parse(row.said[mode])


def own_mode(modes: Sequence[str]) -> str:
    """Return the mode of the reply that a model was trained to give: after a thought, if it was trained to think."""
    return next(mode for mode in ("label", "natural", "plain", "") if mode in modes or not mode)


def count(rows: Sequence[Prediction], vectors: Vectors, listen: Listen | None = None) -> Tallies:
    """Return the tallies of all measures for one run."""
    out: Tallies = {}
    for part in sorted({row.part for row in rows}):
        of_part = [row for row in rows if row.part == part]
        _labels(out, part, of_part)
        _words(out, part, of_part)
        for mode in REPLIES:
            answered = [row for row in of_part if mode in row.said]
            if answered:
                _replies(out, part, mode, answered, vectors)
        if listen:
            _spoken(out, part, [row for row in of_part if row.codes], listen)
    return {measure: tally for measure, tally in out.items() if tally.by}


# ── hearing ─────────────────────────────────────────────────────────────────────────────────────────────────────────
def _labels(out: Tallies, part: str, rows: Sequence[Prediction]) -> None:
    for dimension, inventory in DIMENSIONS.items():
        known = [row for row in rows if dimension in row.heard]
        gold = [row.heard[dimension] for row in known]
        closed = [name for name in inventory if name in gold]
        for source in ("named", "chosen", "thought"):
            for row, truth in zip(known, gold, strict=True):
                answer = _answered_label(row, dimension, source, closed)
                if answer is None:
                    continue
                tally = _labelled(out, part, dimension, source, inventory, gold)
                at = inventory.index(truth)
                tally.add(row.group, (at, float(answer == truth)), (len(inventory) + at, 1.0))
                if dimension == "emotion" and truth == "neutral" and source != "thought":
                    claims = answer in inventory and answer not in ("neutral", "other")
                    _mean(out, part, "false_cue", source).add(row.group, (0, float(claims)), (1, 1.0))


def _answered_label(row: Prediction, dimension: str, source: str, closed: Sequence[str]) -> str | None:
    """Return the model's label, "" if it is not in the inventory, or None if the model was not asked."""
    if source == "named":
        return named(dimension, row.named[dimension]) if dimension in row.named else None
    if source == "chosen":
        if dimension not in row.scored:
            return None
        scores = dict(zip(DIMENSIONS[dimension], row.scored[dimension], strict=True))
        return max(closed, key=lambda name: scores[name])
    if "label" not in row.said or dimension not in THOUGHT:
        return None
    return str(getattr(parsed(row, "label").labels, dimension))


def named(dimension: str, text: str) -> str:
    """Return the label of an answer, from its first tag; "" if it is not in the inventory."""
    first = _TAG.search(text)
    name = label(dimension, first[1] if first else text)
    return name if name in DIMENSIONS[dimension] else ""


def _labelled(
    out: Tallies, part: str, name: str, source: str, inventory: Sequence[str], gold: Sequence[str]
) -> Tally:  # fmt: skip
    tally = out.get(Measure(part, name, source))
    if tally is None:
        often = [gold.count(one) for one in set(gold)]
        chance = {"uar": 1 / len(often), "accuracy": max(often) / sum(often)}
        tally = out[Measure(part, name, source)] = Tally(("accuracy", "uar"), 2 * len(inventory), chance)
    return tally


def _mean(out: Tallies, part: str, name: str, source: str, chance: float | None = None) -> Tally:
    key = Measure(part, name, source)
    if key not in out:
        out[key] = Tally(("mean",), 2, {} if chance is None else {"mean": chance})
    return out[key]


def _words(out: Tallies, part: str, rows: Sequence[Prediction]) -> None:
    for row in rows:
        if row.words is not None:
            _wer(_mean(out, part, "wer", "words"), row.group, row.question, row.words)
        if "label" in row.said:
            _wer(_mean(out, part, "wer", "thought"), row.group, row.question, parsed(row, "label").question)


def _wer(tally: Tally, cluster: str, reference: str, transcript: str) -> None:
    alignment = align(english(reference).split(), english(transcript).split())
    if alignment.reference_words:
        tally.add(cluster, (0, float(alignment.errors)), (1, float(alignment.reference_words)))


# ── replies ─────────────────────────────────────────────────────────────────────────────────────────────────────────
def _replies(out: Tallies, part: str, mode: str, rows: Sequence[Prediction], vectors: Vectors) -> None:
    thoughts = [parsed(row, mode) for row in rows]
    gold = [row.reply_emotion for row in rows if row.reply_emotion]
    tags = mode in ("label", "told", "oracle")
    for row, thought in zip(rows, thoughts, strict=True):
        _mean(out, part, "reply_words", mode).add(row.group, (0, float(len(thought.reply.split()))), (1, 1.0))
        _mean(out, part, "cut", mode).add(row.group, (0, float(mode in row.cut)), (1, 1.0))
        if mode in ("label", "natural"):
            wrong = bool(thought.malformed) or not (thought.natural if mode == "natural" else thought.question)
            _mean(out, part, "malformed", mode).add(row.group, (0, float(wrong)), (1, 1.0))
        if tags and row.reply_emotion:
            tally = _labelled(out, part, "reply_emotion", mode, REPLY, gold)
            at = REPLY.index(row.reply_emotion)
            tally.add(row.group, (at, float(thought.reply_emotion == row.reply_emotion)), (len(REPLY) + at, 1.0))
            if row.reply_emotion == "neutral":
                claims = thought.reply_emotion not in ("", "neutral")
                _mean(out, part, "false_reply", mode).add(row.group, (0, float(claims)), (1, 1.0))
        if mode == "label" and row.heard.get("emotion") == "neutral" and "event" not in row.heard:
            feels, sounds = thought.labels.emotion, thought.labels.event
            claims = feels not in ("", "neutral", "other") or sounds not in ("", "other")
            _mean(out, part, "false_cue", "thought").add(row.group, (0, float(claims)), (1, 1.0))
    _sensitive(out, part, mode, rows, thoughts, vectors)


def _sensitive(
    out: Tallies, part: str, mode: str, rows: Sequence[Prediction], thoughts: Sequence[think.Thought], vectors: Vectors
) -> None:
    """Measure whether a reply changes with the delivery, and whether its meaning fits its own delivery.

    A reply fits if it is closer to the references for its own delivery than to the references for the query's other
    deliveries. A model that ignores the delivery scores 0.5.
    """
    groups: dict[str, list[int]] = {}
    alike: dict[Delivery, list[Prediction]] = {}
    for i, row in enumerate(rows):
        groups.setdefault(row.group, []).append(i)
        alike.setdefault(_delivery(row), []).append(row)
    wanted = [_wanted(row, alike[_delivery(row)], vectors) for row in rows]
    for group, members in groups.items():
        for i in members:
            twins = [j for j in members if rows[j].reply != rows[i].reply]
            if not twins:
                continue
            changes = [_plain(thoughts[i].reply) != _plain(thoughts[j].reply) for j in twins]
            _mean(out, part, "changed", mode).add(group, (0, float(np.mean(changes))), (1, 1.0))
            closer = float(np.mean([_closer(thoughts[i].reply, wanted[i], wanted[j], vectors) for j in twins]))
            for name in ("direction", f"direction.{category(rows[i].kind)}"):
                _mean(out, part, name, mode, 0.5).add(group, (0, closer), (1, 1.0))


Delivery = tuple[str, ...]


def _delivery(row: Prediction) -> Delivery:
    """Return the dimensions that an exchange is about, and the label in each: ("emotion+age", "sad", "old")."""
    return (row.kind, *(row.heard.get(_dimension(kind), "") for kind in row.kind.split("+")))


def _wanted(row: Prediction, alike: Sequence[Prediction], vectors: Vectors) -> NDArray[np.float32]:
    """Return the mean embedding of a delivery's references: the record's own reference and those of other queries.

    The mean cancels the references' content about single queries and keeps their response to the delivery.
    """
    others = [one.reply for one in alike if one.group != row.group and one.reply]
    mean: NDArray[np.float32] = np.mean([vectors[text] for text in (row.reply, *others)], axis=0)
    return mean


def _closer(reply: str, wanted: NDArray[np.float32], other: NDArray[np.float32], vectors: Vectors) -> float:
    if not reply:
        return 0.0
    near, far = float(vectors[reply] @ wanted), float(vectors[reply] @ other)
    return 0.5 if abs(near - far) < 1e-6 else float(near > far)


def category(kind: str) -> str:
    """Return EChat-eval's category of an exchange."""
    if "+" in kind:
        return "multi"
    return _dimension(kind) or "other"


def _dimension(kind: str) -> str:
    """Return the label dimension of a kind; scenes are labelled as events."""
    return {"scene": "event"}.get(kind, kind)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _spoken(out: Tallies, part: str, rows: Sequence[Prediction], listen: Listen) -> None:
    """Count the word errors of spoken replies against their text."""
    for row in rows:
        reply = think.parse(row.spoken).reply or row.spoken  # a thought without an end has no reply
        _wer(_mean(out, part, "speech_wer", "speech"), row.group, reply, listen(row))
