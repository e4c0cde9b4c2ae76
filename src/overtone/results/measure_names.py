"""Look up measures by name: the measures of a run, the names that a user may type, labels and number formats.

A name means the same measure, over the benchmark's core, in comparisons, checks, plans and findings. A judged dimension
is read from the judges that all given runs have in common; if there are several, from their mean.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from overtone.errors import UsageError
from overtone.results import operations
from overtone.results.corpus_scores import TRANSCRIPTS, WER_CORPUS
from overtone.results.judge_scores import FALSE_CUE, IMPLICIT, ORDER, SPEECH, Dimension, judges_of, read_dimensions
from overtone.results.load import Answer, Reading, reader
from overtone.results.measures import Estimate, Measure, declared_measures
from overtone.runs.measurement_choice import same_signature
from overtone.schema import Item
from overtone.scores import LEVELS, Declared, ScoreInfo, built_in, rating, score_of, with_tasks
from overtone.scores import known as known_scores
from overtone.spec import suggest
from overtone.text import plain, points, rate

C1, C2, C3, C4, VES = "cctxfit", "crespnat", "ccolloqdeg", SPEECH, "ves"
TYPED = {"c1": C1, "c2": C2, "c3": C3, "c4": C4, "ves": VES}  # name that a user may type → dimension
CUED = ("target", "alternative")  # styles of the clips that C4 and VES are asked about, by default
DIMENSIONS = {  # EchoMind's judged dimensions → names in sentences; other runs describe their own
    C1: rating("C1"),
    C2: rating("C2"),
    C3: rating("C3"),
    C4: rating("C4"),
    IMPLICIT: rating("C4, implicit use counted"),
    VES: rating("VES"),
    FALSE_CUE: ScoreInfo("False cue", better="lower"),
}


# ── names ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def about(name: str) -> ScoreInfo:
    """Return the label, scale and other display settings of a measure, given only its name."""
    return _by_name(name)[0]


def short(name: str) -> str:
    """Return the name of a measure for use in a sentence."""
    return _by_name(name)[1]


def _by_name(name: str) -> tuple[ScoreInfo, str]:
    if name in DIMENSIONS:
        return DIMENSIONS[name], DIMENSIONS[name].label
    if (measure := _built_in_measures().get(name)) is not None:
        return measure.about, measure.label if measure.about.measures else measure.about.name
    info = built_in().get(name) or ScoreInfo(name, "mos", "higher", None, None)
    return info, info.name


def questions() -> list[Measure]:
    """Return the headline measures of questions: one for each level."""
    return [m for m in _built_in_measures().values() if m.headline and m.task == "choose"]


@functools.cache
def _built_in_measures() -> dict[str, Measure]:
    return {m.name: m for m in declared_measures(built_in())}


def is_percent(name: str) -> bool:
    """Return whether a measure is shown times 100."""
    return about(name).scale == "percent"


def write(name: str, e: Estimate, *, difference: bool = False) -> str:
    """Format an estimate of a measure for use in a sentence; a difference of rates is in points."""
    if not is_percent(name):
        return plain(e)
    return points(e) if difference else rate(e)


# ── what runs have ──────────────────────────────────────────────────────────────────────────────────────────────────


def declared_in(readings: Sequence[Reading]) -> dict[str, ScoreInfo]:
    """Return score → declaration. If several runs declare a score, the first run counts. Without runs, return the
    declarations of the installed metrics."""
    declared: dict[str, ScoreInfo] = {} if readings else known_scores()
    for reading in reversed(readings):
        declared |= reading.declared
    return declared


def measures_of(readings: Sequence[Reading], only: Collection[str] | None = None) -> dict[str, Measure]:
    """Return name → measure: the headline measures, then the metrics of replies that findings use and that all these
    runs scored in the benchmark's core.

    `only` restricts the scores that measures may read (default: all scores).
    """
    runs = [_looked_at(reading, only) for reading in readings]
    declared = declared_in(readings)
    measures = {m.name: m for m in _headline(runs, declared)}
    replies = [m for m in declared_measures(declared) if m.about.finding]
    return measures | {m.name: m for m in replies if runs and all(m.name in run.styles for run in runs)}


def headline(readings: Sequence[Reading]) -> list[Measure]:
    """Return the headline measures: first those declared by metrics, then every judged dimension with a judge that all
    readings have."""
    return _headline([_looked_at(reading) for reading in readings], declared_in(readings))


def _headline(runs: Sequence[_Run], declared: Declared) -> list[Measure]:
    measures = [m for m in declared_measures(declared) if m.headline]
    if runs:  # measures of replies are in the headline only if replies were scored
        measures = [m for m in measures if m.task != "converse" or any(m.scores[0] in run.styles for run in runs)]
    judged = [_dimension(key, key, "", runs) for key in dict.fromkeys(k for run in runs for k in run.dimensions)]
    return [*measures, *(m for m in judged if m.scores)]


def find(name: str, readings: Sequence[Reading]) -> list[Measure]:
    """Return the measures with a name: one, or two for a metric of two levels. Raises UsageError for an unknown name,
    with the nearest known name.

    DIM@LABEL is a dimension as one judge scored it; DIM alone is the mean of the judges that all readings have.
    """
    declared = declared_in(readings)
    keys = {k for r in readings for k in read_dimensions(r.meta, r.signatures)}
    of_runs = {*declared, *(m.name for m in declared_measures(declared)), *TYPED, *TYPED.values(), *keys}
    if name not in of_runs and "@" not in name:
        declared = {**known_scores(), **declared}
    if name in declared:
        declared[name] = with_tasks(declared[name], LEVELS)
    known = {m.name: m for m in declared_measures(declared)} | operations.MEASURES
    if name in known:
        return [known[name]]
    parts = {score: [m for m in known.values() if m.scores == (score,)] for score in declared}
    if parts.get(name):  # two levels, whose mean would be meaningless
        return parts[name]
    operations.refuse_pairing(name)
    if name == WER_CORPUS or (name in declared and declared[name].corpus):
        instead = TRANSCRIPTS if name == WER_CORPUS else declared[name].instead
        hint = f"; use {instead}" if instead else ""
        raise UsageError(f"{name} is computed over many replies: it has no value for one reply to compare{hint}")
    key, at, label = name.partition("@")
    if key in TYPED or key in keys or key in TYPED.values():
        if at and not label:
            raise UsageError(f"{name!r} does not name a judge; write {key}@LABEL, or {key} for all judges together")
        return [_dimension(name, TYPED.get(key, key), label, [_looked_at(r) for r in readings])]
    names = {*known, *(score for score, of in parts.items() if of), *TYPED, *keys, *operations.TOTALS, WER_CORPUS}
    raise UsageError(f"no measure is called {key!r}{suggest(key, sorted(names))}; known: {', '.join(sorted(names))}")


def find_one(name: str, readings: Sequence[Reading]) -> Measure:
    """Return the only measure with a name. Raises UsageError if the name is unknown or stands for two measures."""
    measures = find(name, readings)
    if len(measures) > 1:
        raise UsageError(f"{name} is two measures, {' and '.join(f.name for f in measures)}; name one of them")
    return measures[0]


def judges_left_out(measure: Measure, readings: Sequence[Reading]) -> list[str]:
    """Return the judges that scored a dimension only in some of the readings, so that their scores are not used."""
    if measure.scores and "@" not in measure.scores[0]:
        return []
    key = measure.scores[0].partition("@")[0] if measure.scores else TYPED.get(measure.name, measure.name)
    used = {score.partition("@")[2] for score in measure.scores}
    labels = {label for r in readings for label in judges_of(key, r.signatures)}
    return [] if "@" in measure.name else sorted(labels - used)


# ── judges ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Run(NamedTuple):
    """The scored replies in a run's core: `styles` maps each score to the styles of the replies with this score."""

    styles: dict[str, set[str]]
    dimensions: dict[str, Dimension]


def _looked_at(reading: Reading, only: Collection[str] | None = None) -> _Run:
    by_style: dict[str, set[str]] = {}
    for answer in reading.answers:
        if answer.scores and answer.item.task == "converse" and not answer.item.part:
            by_style.setdefault(answer.item.style, set()).update(answer.scores.keys() - reading.silent)
    styles: dict[str, set[str]] = {}
    for style, names in by_style.items():
        for name in names if only is None else names & set(only):
            styles.setdefault(name, set()).add(style)
    return _Run(styles, read_dimensions(reading.meta, styles))


def _dimension(name: str, key: str, judge: str, runs: Sequence[_Run]) -> Measure:
    """Return the measure of a dimension, read from one judge, or from the mean of the judges that all runs have. Its
    `scores` are empty if there is no such judge."""
    described = [run.dimensions[key] for run in runs if key in run.dimensions]
    dimension = described[0] if described else Dimension(key, key, 1.0, 5.0, styles=_usual(key))
    labels = [set(judges_of(key, run.styles)) for run in runs]
    common = sorted(set.intersection(*labels)) if labels else []
    judges = ([judge] if judge in common else []) if judge else common
    scores = tuple(f"{key}@{label}" for label in judges)
    label = (short(key) if dimension.label == key else dimension.label) + (f", {judge}" if judge else "")
    better = dimension.better if dimension.better in ("lower", "neither") else "higher"
    return Measure(
        name,
        label,
        "converse",
        3,
        _asked(dimension, {style for run in runs for score in scores for style in run.styles[score]}),
        reader(scores),
        scores,
        ScoreInfo(label, "percent" if dimension.share else "mos", better, dimension.low, dimension.high),  # type: ignore[arg-type]
        "proportion" if dimension.share else "mean",
    )


def _asked(dimension: Dimension, scored: Collection[str]) -> Callable[[Item], bool]:
    """Return a function that returns whether a dimension is asked about an item. If the run does not describe the
    dimension, it is asked about the styles in `scored`."""
    styles = frozenset(dimension.styles or scored)
    if not dimension.only:
        return lambda item: item.task == "converse" and item.style in styles
    only = tuple((field, frozenset(allowed)) for field, allowed in dimension.only.items())

    def belongs(item: Item) -> bool:
        fits = all(getattr(item, field, None) in allowed for field, allowed in only)
        return fits and item.task == "converse" and item.style in styles

    return belongs


def _usual(key: str) -> tuple[str, ...]:
    return CUED if key in (C4, VES) else ()


# ── several runs ────────────────────────────────────────────────────────────────────────────────────────────────────


def measured_by(reading: Reading, name: str) -> tuple[str, ...]:
    """Return the signatures of the scores that a measure reads in a run: one, or one for each judge of a panel; empty
    if the run does not have these scores."""
    score = score_of(reading.declared, name) or name
    if score in reading.signatures:
        return (reading.signatures[score],)
    return tuple(reading.signatures[f"{name}@{judge}"] for judge in judges_of(name, reading.signatures))


def comparable(readings: Sequence[Reading], name: str) -> tuple[list[int], list[int]]:
    """Return the positions of the runs that compute the measure `name` as most runs do, and of those that compute it
    differently. Runs without the measure are in neither list."""
    groups: list[tuple[tuple[str, ...], list[int]]] = []
    for number, reading in enumerate(readings):
        signatures = measured_by(reading, name)
        if not signatures:
            continue
        for known, numbers in groups:
            if len(known) == len(signatures) and all(map(same_signature, known, signatures)):
                numbers.append(number)
                break
        else:
            groups.append((signatures, [number]))
    groups.sort(key=lambda group: (-len(group[1]), group[1][0]))
    return (groups[0][1] if groups else []), [n for _, numbers in groups[1:] for n in numbers]


def pooled(readings: Sequence[Reading]) -> tuple[list[Answer], dict[str, Measure], list[str]]:
    """Combine several runs, e.g. of one model. Return all answers, the measures that no two runs compute differently,
    and notes, e.g. on the measures that are left out."""
    answers = [a for reading in readings for a in reading.answers]
    measures: dict[str, Measure] = {}
    notes = []
    for reading in reversed(readings):  # reversed: the first run with a name counts
        measures |= measures_of([reading])
    for name in list(measures):
        if comparable(readings, name)[1]:
            del measures[name]
            notes.append(f"{short(name)} was measured differently in the runs and is left out.")
    models = sorted({reading.meta.get("model", "") or reading.name for reading in readings})
    if len(models) > 1:
        notes.append(f"The runs have different models ({', '.join(models)}), so differences may come from the models.")
    return answers, {name: measures[name] for name in sorted(measures, key=lambda n: _order(measures[n]))}, notes


def _order(measure: Measure) -> tuple[int, int, str]:
    """Return a sort key: hearing, reasoning, judges' scores, then other metrics."""
    if measure.declared is not None:
        return 0 if measure.headline else 2, measure.order, measure.name
    return (1, ORDER.index(measure.name), "") if measure.name in ORDER else (3, 0, measure.name)
