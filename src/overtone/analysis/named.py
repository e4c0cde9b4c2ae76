"""Measures by the name a user types: the headline's, any metric's of one reply, and judges' dimensions.

`compare` and `check` read the same name in the same way, over the benchmark's core.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from overtone.analysis.corpus import CORPUS
from overtone.analysis.judged import Dimension, judges_of, read_dimensions, value
from overtone.analysis.measures import MEASURES, METRICS, About
from overtone.analysis.reading import Answer, Reading
from overtone.errors import UsageError
from overtone.schema import Item
from overtone.spec import suggest

SHORT = {"c1": "cctxfit", "c2": "crespnat", "c3": "ccolloqdeg", "c4": "cspeechrel", "ves": "ves"}
CUED = ("target", "alternative")  # clips that C4 and VES are asked about, where a run does not say
_LEVELS = {"voice_accuracy": 1, "reasoning_accuracy": 2, "wer_raw": 1, "semsim": 1, "reply_semsim": 3}
_SCORES = {"voice_accuracy": "accuracy", "reasoning_accuracy": "accuracy", "reply_semsim": "semsim"}
_BOTH = {  # a metric of two levels is two measures: their mean would say nothing
    "accuracy": ("voice_accuracy", "reasoning_accuracy"),
    "accuracy_strict": ("voice_accuracy_strict", "reasoning_accuracy_strict"),
}


@dataclass(frozen=True)
class Named:
    """A measure that one number per reply stands behind. `scores` are the names of the scores it reads."""

    name: str
    label: str
    level: int
    belongs: Callable[[Answer], bool]
    read: Callable[[Answer], float | None]
    scores: tuple[str, ...]
    kind: Literal["mean", "proportion"] = "mean"
    better: str = "higher"
    shown: Literal["percent", "number"] = "percent"
    digits: int = 2  # of a number
    low: float | None = 0.0  # ends of the scale, None where it is open
    high: float | None = 1.0

    @property
    def right_or_wrong(self) -> bool:
        """Whether a reply is right or wrong in it; a judge's yes or no may be the mean of several draws."""
        return self.kind == "proportion" and not any("@" in score for score in self.scores)


def headline(readings: Sequence[Reading]) -> list[Named]:
    """The measures a run is known by: those of MEASURES, then every judged dimension that all readings have."""
    plain = _plain()
    found = [plain[m.name] for m in MEASURES]
    for key in dict.fromkeys(k for r in readings for k in read_dimensions(r.meta, r.signatures)):
        dimension = _dimension(key, key, "", readings)
        if dimension.scores:
            found.append(dimension)
    return found


def find(name: str, readings: Sequence[Reading]) -> list[Named]:
    """What a name stands for: one measure, or two for a metric of two levels. A wrong name gets the nearest one.

    A judge's dimension is DIM@LABEL, or DIM alone for the mean of the judges that all the readings have.
    """
    known = _plain()
    if name in _BOTH:
        return [known[part] for part in _BOTH[name]]
    if name in known:
        return [known[name]]
    if name in CORPUS or name == "wer_corpus":
        raise UsageError(
            f"{name} is a score of many replies together: it has no value for one reply to compare; "
            f"use {'wer' if name == 'wer_corpus' else 'bleu' if name == 'bleu_corpus' else 'reply_words'}"
        )
    key, at, label = name.partition("@")
    keys = {k for r in readings for k in read_dimensions(r.meta, r.signatures)}
    if key in SHORT or key in keys or key in SHORT.values():
        if at and not label:
            raise UsageError(f"{name!r} names no judge; write {key}@LABEL, or {key} for all judges together")
        return [_dimension(name, SHORT.get(key, key), label, readings)]
    names = [*known, *_BOTH, *SHORT, *keys]
    raise UsageError(f"no measure is called {key!r}{suggest(key, names)}; known: {', '.join(sorted(set(names)))}")


def find_one(name: str, readings: Sequence[Reading]) -> Named:
    """`find` where one number is asked for."""
    found = find(name, readings)
    if len(found) > 1:
        raise UsageError(f"{name} stands for {' and '.join(f.name for f in found)}; name one of them")
    return found[0]


# ── metrics ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _plain() -> dict[str, Named]:
    found: dict[str, Named] = {}
    for m in MEASURES:
        score = _SCORES.get(m.name, m.name)
        found[m.name] = _metric(m.name, m.label, _LEVELS[m.name], _item(m.belongs), score, m.kind)
        if m.kind == "proportion":
            strict = f"{m.name}_strict"
            label = f"{m.label}, strict reading"
            found[strict] = _metric(strict, label, _LEVELS[m.name], _item(m.belongs), "accuracy_strict", m.kind)
    for name, about in METRICS.items():
        if name not in found and name not in _BOTH and about.kind == "mean":
            task = "transcribe" if name == "wer" else "converse"
            found[name] = _metric(name, about.label, 1 if name == "wer" else 3, _of_task(task), name)
    return found


def _metric(
    name: str,
    label: str,
    level: int,
    belongs: Callable[[Answer], bool],
    score: str,
    kind: Literal["mean", "proportion"] = "mean",
) -> Named:
    about: About = METRICS[score]
    return Named(
        name,
        label,
        level,
        belongs,
        lambda answer: answer.value(score),
        (score,),
        kind,
        about.better,
        "percent" if about.scale == "percent" else "number",
        {"plain": 3, "words": 1}.get(about.scale, 2),
        about.low,
        about.high,
    )


def _item(belongs: Callable[[Item], bool]) -> Callable[[Answer], bool]:
    return lambda answer: belongs(answer.item)


def _of_task(task: str) -> Callable[[Answer], bool]:
    return lambda answer: answer.item.task == task


# ── judges ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _dimension(name: str, key: str, judge: str, readings: Sequence[Reading]) -> Named:
    """A dimension by one judge, or by the mean of those judges that all readings have; without scores if none."""
    told = [read_dimensions(r.meta, r.signatures).get(key) for r in readings]
    about = next((d for d in told if d is not None), Dimension(key, key, 1.0, 5.0, styles=_usual(key)))
    labels = [set(judges_of(key, r.signatures)) for r in readings]
    common = sorted(set.intersection(*labels)) if labels else []
    judges = ([judge] if judge in common else []) if judge else common
    scores = tuple(f"{key}@{label}" for label in judges)
    styles = set(about.styles) or _scored_styles(scores, readings)
    return Named(
        name,
        about.label + (f", {judge}" if judge else ""),
        3,
        lambda a: a.item.task == "converse" and a.item.style in styles,
        lambda a: value(a, key, judge, judges) if judges else None,
        scores,
        "proportion" if about.share and len(judges) == 1 else "mean",
        about.better,
        "percent" if about.share else "number",
        2,
        about.low,
        about.high,
    )


def judges_left_out(named: Named, readings: Sequence[Reading]) -> list[str]:
    """The judges of a dimension that only some of the readings have; their word is not used."""
    if named.scores and "@" not in named.scores[0]:
        return []
    key = named.scores[0].partition("@")[0] if named.scores else SHORT.get(named.name, named.name)
    used = {score.partition("@")[2] for score in named.scores}
    found = {label for r in readings for label in judges_of(key, r.signatures)}
    return [] if "@" in named.name else sorted(found - used)


def _usual(key: str) -> tuple[str, ...]:
    return CUED if key in (SHORT["c4"], SHORT["ves"]) else ()


def _scored_styles(scores: Sequence[str], readings: Sequence[Reading]) -> set[str]:
    """The styles that have any such score: what a dimension without a description was asked about."""
    wanted = set(scores)
    return {a.item.style for r in readings for a in r.answers if wanted & a.scores.keys()} if wanted else set()
