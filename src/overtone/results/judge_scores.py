"""The judges' scores of replies: per dimension, judge, panel and style, with counts and intervals.

A judge's scores are named DIMENSION@LABEL. The run's meta table describes each dimension (label, scale, clips) under
"rubrics", written when the run was judged; without this entry, only the scores are known. The panel's score of a reply
is the mean over judges, if every judge scored the reply. A judge without any value for a dimension is left out of the
panel for this dimension.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from overtone.results.load import Answer
from overtone.results.measures import Estimate, estimate, within
from overtone.results.side_measures import by_basis
from overtone.schema import STYLES, Score

PANEL = ""  # stands for the panel in place of a judge's label
SPEECH, IMPLICIT, FALSE_CUE = "cspeechrel", "cspeechrel_implicit", "false_cue"
ORDER = ("cctxfit", "crespnat", "ccolloqdeg", SPEECH, IMPLICIT, "ves", FALSE_CUE)
_DID_NOT_COME = ("not judged:", "the judge did not answer:")
_NOT_ASKED = ("the reply has no audio", "there is no sound for", "the benchmark's files do not say")
_HEARS = re.compile(r"\|hears:([a-z]+)")
_JUDGE = re.compile(r"\|judge:(.*?)(?:\|temperature:|\|seed:|\|repeats:|\|calls:|\|hears:|$)")


class Dimension(Struct, frozen=True):
    """One dimension of a rubric. `styles` are the styles of the clips that it is asked about; empty means all."""

    key: str
    label: str
    low: float | None = None
    high: float | None = None
    better: str = "higher"
    styles: tuple[str, ...] = ()
    only: dict[str, tuple[str, ...]] = {}  # field of an item → allowed values; empty: all items
    rubric: str = ""
    unvalidated: dict[str, bool] = {}  # judge's label → whether the judge is not yet validated

    @property
    def share(self) -> bool:
        """Whether the verdicts are yes or no, so that their mean is a rate."""
        return (self.low, self.high) == (0, 1)

    @property
    def cued(self) -> bool:
        """Whether the dimension is only asked about clips with a cue."""
        return bool(self.styles) and "neutral" not in self.styles and len(self.styles) > 1


class JudgedRow(Struct, frozen=True):
    """One dimension by one judge, or by the panel, over one basis of clips."""

    basis: str
    dimension: Dimension
    judge: str  # "" is the panel
    headline: Estimate  # over all clips that the dimension is asked about
    target: Estimate | None  # over target clips only, if the dimension is asked about cued clips
    styles: dict[str, Estimate]
    unvalidated: bool
    signature: str = ""  # the judge's


class Difference(Struct, frozen=True):
    """Two scores of the same replies, and their mean difference."""

    basis: str
    kind: str  # implicit, hears
    dimension: Dimension
    judge: str
    first: str  # the names of the two compared scores
    second: str
    by: Estimate


class Trouble(Struct, frozen=True):
    """The verdicts of one judge in one dimension that are missing or unreadable."""

    dimension: Dimension
    judge: str
    asked: int  # replies that this judge scored, with or without a value
    unscored: int
    unread: int  # unreadable verdicts, also on replies that got a score from other verdicts
    missing: int  # verdicts that the judge did not return
    skipped: int  # verdicts not requested, because there was nothing to judge
    reasons: dict[str, int]  # reason for a missing value → count


def read_dimensions(meta: Mapping[str, str], names: Iterable[str]) -> dict[str, Dimension]:
    """Return key → dimension for the judges' scores in `names`. If the run's meta does not describe a dimension, only
    its key is known."""
    try:
        described: Any = msgspec.json.decode(meta.get("rubrics", "") or "{}")
    except (msgspec.MsgspecError, RecursionError):  # an untrusted run may hold anything there
        described = {}
    keys = {name.partition("@")[0] for name in names if "@" in name}
    dimensions = {}
    for key in sorted(keys, key=lambda k: (ORDER.index(k) if k in ORDER else len(ORDER), k)):
        about = described.get(key) if isinstance(described, dict) else None
        try:
            dimensions[key] = msgspec.convert({"key": key, "label": key, **(about or {})}, Dimension, strict=False)
        except (msgspec.ValidationError, TypeError):
            dimensions[key] = Dimension(key, key)
    return dimensions


def judges_of(key: str, names: Iterable[str]) -> list[str]:
    """Return the labels of the judges that scored the dimension `key`. `names` are score names such as `c4@JUDGE`."""
    return sorted(label for name in names for dimension, at, label in [name.partition("@")] if at and dimension == key)


def judge_names(answers: Iterable[Answer], signatures: Collection[str]) -> set[str]:
    """Return the names of the judges' scores of these replies, such as `c4@JUDGE`.

    Only names in `signatures` are returned, so a judge without any value in the run is left out.
    """
    return {name for a in answers for name in a.scores if "@" in name and name in signatures}


def scored_names(answers: Iterable[Answer]) -> set[str]:
    """Return the names of judges' scores with a value for at least one of these replies."""
    return {name for a in answers for name, score in a.scores.items() if "@" in name and score.value is not None}


def value(answer: Answer, key: str, judge: str, judges: Sequence[str]) -> float | None:
    """Return the value that `judge` gave to a reply. If `judge` is empty, return the panel's value: the mean over
    `judges`, or None if one of them gave no value."""
    if judge:
        return answer.value(f"{key}@{judge}")
    values = [answer.value(f"{key}@{label}") for label in judges]
    known = [x for x in values if x is not None]
    return math.fsum(known) / len(known) if known and len(known) == len(values) else None


def replies_of(answers: Iterable[Answer]) -> list[Answer]:
    """Return the answers that judges rate: conversations in the benchmark's core."""
    return [a for a in answers if a.item.task == "converse" and not a.item.part]


def by_status(asked: list[Answer]) -> list[tuple[str, list[Answer]]]:
    """Split replies by basis: first validated or unmarked cues and neutral clips, then unvalidated cues.

    If all cues are unvalidated, the neutral clips do not form a basis of their own: all replies are one basis.
    """
    bases = by_basis(asked, lambda a: a.item.status)
    if len(bases) > 1 and not bases[0][0]:
        return [("unvalidated", asked)]
    return bases


def scope_of(dimension: Dimension, judges: Sequence[str], answers: Sequence[Answer]) -> list[Answer]:
    """Return the replies that a dimension is asked about. If the dimension does not name its styles, the styles of
    replies with a score are used."""
    for field, allowed in dimension.only.items():
        answers = [a for a in answers if getattr(a.item, field, None) in allowed]
    if dimension.styles:
        return [a for a in answers if a.item.style in dimension.styles]
    names = {f"{dimension.key}@{label}" for label in judges}
    scored = {a.item.style for a in answers if names & a.scores.keys()}
    return [a for a in answers if a.item.style in scored]


def judged(
    answers: Iterable[Answer], dimensions: Mapping[str, Dimension], signatures: Mapping[str, str]
) -> list[JudgedRow]:
    """Return the rows of every dimension: one for the panel, if there are several judges, and one for each judge."""
    asked = replies_of(answers)
    names = judge_names(asked, signatures)
    rows = []
    for basis, replies in by_status(asked):
        for key, dimension in dimensions.items():
            judges = judges_of(key, names)
            scope = scope_of(dimension, judges, replies)
            for judge in ([PANEL] if len(judges) > 1 else []) + judges:
                if scope:
                    rows.append(_row(basis, dimension, judge, judges, scope, signatures))
    return rows


def _row(
    basis: str,
    dimension: Dimension,
    judge: str,
    judges: Sequence[str],
    scope: Sequence[Answer],
    signatures: Mapping[str, str],
) -> JudgedRow:
    parts: dict[str, list[tuple[float | None, str]]] = {}  # style → (value, script)
    rows = []
    for answer in scope:
        row = value(answer, dimension.key, judge, judges), answer.item.group
        rows.append(row)
        parts.setdefault(answer.item.style, []).append(row)
    styles: dict[str, Estimate] = {style: mean(dimension, parts[style]) for style in STYLES if style in parts}
    of = judges if judge == PANEL else [judge]
    return JudgedRow(
        basis=basis,
        dimension=dimension,
        judge=judge,
        headline=mean(dimension, rows),
        target=(styles.get("target") or mean(dimension, [])) if dimension.cued else None,
        styles=styles,
        unvalidated=any(dimension.unvalidated.get(label, True) for label in of),
        signature=signatures.get(f"{dimension.key}@{judge}", ""),
    )


def mean(dimension: Dimension, rows: Sequence[tuple[float | None, str]]) -> Estimate:
    """Compute the mean over rows (value, script). Missing values are bounded by the ends of the dimension's scale."""
    ends = (dimension.high, dimension.low) if dimension.better != "lower" else (dimension.low, dimension.high)
    return estimate(rows, kind="proportion" if dimension.share else "mean", good=ends[0], bad=ends[1])


# ── differences ─────────────────────────────────────────────────────────────────────────────────────────────────────


def differences(
    answers: Iterable[Answer], dimensions: Mapping[str, Dimension], signatures: Mapping[str, str]
) -> list[Difference]:
    """Return two kinds of differences: between counting and not counting implicit use of the cue, and between
    judging the audio and judging a description of it."""
    asked = replies_of(answers)
    names = judge_names(asked, signatures)
    rows = []
    for basis, replies in by_status(asked):
        rows += _implicit(basis, replies, dimensions, names)
        rows += _hearing(basis, replies, dimensions, names, signatures)
    return rows


def _implicit(
    basis: str, replies: Sequence[Answer], dimensions: Mapping[str, Dimension], names: Iterable[str]
) -> list[Difference]:
    if not {SPEECH, IMPLICIT} <= dimensions.keys():
        return []
    plain, quiet = dimensions[SPEECH], dimensions[IMPLICIT]
    both = [j for j in judges_of(SPEECH, names) if j in judges_of(IMPLICIT, names)]
    scope = scope_of(quiet, both, replies)
    rows = []
    for judge in ([PANEL] if len(both) > 1 else []) + both:
        by = _paired(quiet, scope, lambda a: value(a, IMPLICIT, judge, both), lambda a: value(a, SPEECH, judge, both))  # noqa: B023
        rows.append(Difference(basis, "implicit", quiet, judge, quiet.label, plain.label, by))
    return rows


def _hearing(
    basis: str,
    replies: Sequence[Answer],
    dimensions: Mapping[str, Dimension],
    names: Iterable[str],
    signatures: Mapping[str, str],
) -> list[Difference]:
    rows = []
    for key, dimension in dimensions.items():
        for model, labels in judges_by_ear_and_text(key, names, signatures).items():
            ear, eye = f"{key}@{labels['audio']}", f"{key}@{labels['description']}"
            scope = scope_of(dimension, list(labels.values()), replies)
            by = _paired(dimension, scope, lambda a: a.value(ear), lambda a: a.value(eye))  # noqa: B023
            rows.append(Difference(basis, "hears", dimension, model, "hears the audio", "reads a description", by))
    return rows


def judges_by_ear_and_text(key: str, names: Iterable[str], signatures: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return model → kind of input → label, for judge models that scored a dimension from audio and from a
    description."""
    labels_of: dict[str, dict[str, str]] = {}
    for label in judges_of(key, names):
        signature = signatures.get(f"{key}@{label}", "")
        hears, model = _HEARS.search(signature), _JUDGE.search(signature)
        if hears and model:
            labels_of.setdefault(model[1], {})[hears[1]] = label
    return {name: labels for name, labels in labels_of.items() if {"audio", "description"} <= labels.keys()}


def _paired(
    dimension: Dimension,
    scope: Iterable[Answer],
    first: Callable[[Answer], float | None],
    second: Callable[[Answer], float | None],
) -> Estimate:
    rows: list[tuple[float | None, str]] = []
    for answer in scope:
        a, b = first(answer), second(answer)
        rows.append((None if a is None or b is None else a - b, answer.item.group))
    if dimension.low is None or dimension.high is None:
        return estimate(rows)
    return within(estimate(rows), dimension.low - dimension.high, dimension.high - dimension.low)


# ── what was left unanswered ────────────────────────────────────────────────────────────────────────────────────────


def troubles(answers: Iterable[Answer], dimensions: Mapping[str, Dimension]) -> list[Trouble]:
    """Count, for each dimension and judge, the verdicts that are unreadable, missing or were not requested. Rows
    without such verdicts are left out."""
    asked = replies_of(answers)
    names = {name for a in asked for name in a.scores if "@" in name}
    rows = []
    for key, dimension in dimensions.items():
        for judge in judges_of(key, names):
            scores = [s for a in asked if (s := a.scores.get(f"{key}@{judge}")) is not None]
            reasons: dict[str, int] = {}
            for score in scores:
                if score.value is None:
                    reasons[score.reason] = reasons.get(score.reason, 0) + 1
            counts = [absent(s) for s in scores]
            unread, missing, skipped = (sum(one[place] for one in counts) for place in range(3))
            if reasons or unread or missing:
                most = dict(sorted(reasons.items(), key=lambda kv: (-kv[1], kv[0]))[:3])
                row = Trouble(dimension, judge, len(scores), sum(reasons.values()), unread, missing, skipped, most)
                rows.append(row)
    return rows


def absent(score: Score) -> tuple[int, int, int]:
    """Return three counts of the verdicts behind a judge's score: unreadable, not returned, and not requested.

    Older runs count all three as unread. There, if a reply has no value, the stored reason decides which one it is.
    """
    unread, missing, skipped = (_count(score.detail.get(name)) for name in ("unread", "missing", "skipped"))
    if "missing" in score.detail:
        return unread, missing, skipped
    unread = max(0, unread - skipped)
    if score.value is None and score.reason.startswith(_DID_NOT_COME):
        return 0, unread, skipped
    if score.value is None and score.reason.startswith(_NOT_ASKED):
        return 0, 0, skipped + unread
    return unread, 0, skipped


def _count(value: object) -> int:
    return max(0, value) if isinstance(value, int) else 0
