"""How hearing, reasoning and replying correlate over models, cues and cases, within models and between them.

Between models: do models that hear better reply better? Within a model: does the model reply better to cases that it
hears better? The paper's table can answer only the first question. A cue's mean over few scripts is noisy, and noise
pulls correlations towards 0. All correlations here are associations, not causes.
"""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from overtone.results import measure_names, significance
from overtone.results.case_names import KeyedCases, Names
from overtone.results.headline_condition import prompt_notes, talk_condition
from overtone.results.judge_scores import by_status
from overtone.results.load import Answer, Reading
from overtone.results.measures import Estimate, from_interval
from overtone.results.published import COLUMNS, VARIANTS, papers, published
from overtone.results.wording import Sentence, shortfall
from overtone.schema import Item
from overtone.stats import nested_correlation
from overtone.stats.cluster import Interval
from overtone.stats.minimums import CORRELATION
from overtone.text import count, plain

SEED, DRAWS, MODEL_DRAWS = 5, 1000, 2000
FEWEST = CORRELATION.least  # with fewer models or scripts, there is no interval
FEW = 20  # with fewer models, the interval is rough
SIGNATURE = (
    f"levels|v1|pearson+spearman|within:centred-per-model|case:bca-by-script,spearman:linearised|"
    f"cue:bootstrap-error-by-script,atanh|model:bca-by-model|from:{FEWEST}|draws:{DRAWS},{MODEL_DRAWS}|seed:{SEED}"
)
MEASURES = (
    "voice_accuracy", "reasoning_accuracy", "semsim", "reply_semsim", measure_names.C1, measure_names.C4,
    "cspeechrel_implicit", measure_names.VES, "emoalign_reference", "style_margin",
)  # fmt: skip
PAIRS = (  # pairs of measures that get a sentence
    ("voice_accuracy", "reasoning_accuracy"),
    ("voice_accuracy", measure_names.C4),
    ("reasoning_accuracy", measure_names.C4),
    ("voice_accuracy", measure_names.VES),
    ("reasoning_accuracy", measure_names.VES),
    (measure_names.C4, measure_names.VES),
    (measure_names.C1, measure_names.C4),
    (measure_names.VES, "emoalign_reference"),
)

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]


class LevelRow(Struct, frozen=True):
    """The correlation of two measures, `first` and `second`, at one level."""

    key: str
    basis: str
    level: str  # model, cue, case
    scope: str  # between models, or within them
    first: str
    second: str
    pearson: Estimate
    spearman: Estimate
    models: int


class Levels(Struct, frozen=True):
    """All correlations of the given runs."""

    rows: list[LevelRow]
    measures: tuple[str, ...]
    models: tuple[str, ...]
    conditions: tuple[str, ...]  # the condition whose replies represent each run
    notes: list[str]
    signature: str = SIGNATURE

    def row(self, level: str, scope: str, first: str, second: str, basis: str | None = None) -> LevelRow | None:
        """Return the row of two measures, given in any order, or None. Without a `basis`, return the first match."""
        for row in self.rows:
            same = (row.level, row.scope) == (level, scope) and {row.first, row.second} == {first, second}
            if same and basis in (None, row.basis):
                return row
        return None


class _Values(Struct, frozen=True):
    """One measure's values, with the run, case, cue and script of each."""

    value: Array
    run: Codes
    case: Codes
    cue: Codes  # −1 for a clip without a cue
    script: Codes

    @property
    def scripts_with_a_cue(self) -> int:
        return np.unique(self.script[self.cue >= 0]).size


def levels(readings: Sequence[Reading], *, prompt: str = "", input: str = "audio") -> Levels:
    """Compute the correlation of every pair of MEASURES that the runs have, at every level.

    Only replies under one prompt count. It is the same prompt for all runs, if they have one in common.
    """
    conditions, core = _core(readings, prompt, input)
    notes = _notes(readings, conditions)
    models = [r.meta.get("model", "") or r.name for r in readings]
    rows: list[LevelRow] = []
    names: dict[str, None] = {}
    for basis, values, _ in _by_basis(readings, core, notes):
        names |= dict.fromkeys(values)
        rows += _Table(basis, values, models).rows()
    order = sorted(names, key=lambda n: MEASURES.index(n))
    return Levels(rows, tuple(order), tuple(r.name for r in readings), tuple(conditions), list(dict.fromkeys(notes)))


def published_levels(*, variants: bool = True) -> Levels:
    """Compute the correlations of the paper's columns, over all 14 rows or, without `variants`, over the paper's 12
    models."""
    rows = {model: values for model, values in papers().items() if variants or model not in VARIANTS}
    columns = [c for c in COLUMNS if c.measure in MEASURES]
    columns.sort(key=lambda c: MEASURES.index(c.measure))
    level_rows = []
    for one, other in itertools.combinations(columns, 2):
        pairs = [(values[one.key], values[other.key], model) for model, values in rows.items()]
        known = [(a, b, model) for a, b, model in pairs if a is not None and b is not None]
        models = [model.partition("+")[0].partition("-chat")[0] for *_, model in known]  # variants are one model
        both = _across([a for a, _, _ in known], [b for _, b, _ in known], models, len(rows))
        key = f"levels/published-{len(rows)}/model/between/{one.measure}~{other.measure}"
        level_rows.append(
            LevelRow(key, "published", "model", "between", one.measure, other.measure, *both, models=len(known))
        )
    return Levels(level_rows, tuple(c.measure for c in columns), tuple(rows), (), [published().source])


def cases_by_key(readings: Sequence[Reading], *, prompt: str = "", input: str = "audio") -> Iterator[KeyedCases]:
    """Yield the key of every row with the cases that the row counts.

    At the level of cases, a case counts if it has both measures. At the levels of cues and models, a case counts if it
    has at least one of the measures and its cue or model has both.
    """
    for basis, values, cases in _by_basis(readings, _core(readings, prompt, input)[1], []):
        yield from _Table(basis, values, [r.name for r in readings]).cases_by_key(cases)


def sentences(data: Levels) -> list[Sentence]:
    """Return two sentences for each of PAIRS: on the correlation between models and on the correlation within
    models."""
    lines = []
    few: list[tuple[str, int]] = []
    spoken = set(map(frozenset, PAIRS))
    for row in data.rows:
        if frozenset((row.first, row.second)) not in spoken or row.pearson.value is None:
            continue
        if (row.level, row.scope) in (("model", "between"), ("cue", "within"), ("case", "within")):
            if row.pearson.scripts < CORRELATION.least:
                subject = f"{_among(row)}, {measure_names.short(row.first)} and {measure_names.short(row.second)}"
                few.append((subject, row.pearson.scripts))
            else:
                lines.append(Sentence(_sentence(row), row.key))
    return [*lines, *shortfall(CORRELATION, few)]


def _among(row: LevelRow) -> str:
    scope = {
        "model": f"Across {row.models} {'rows' if row.basis == 'published' else 'models'}",
        "cue": "From cue to cue within a model",
        "case": "From case to case within a model",
    }[row.level]
    return scope + {"unvalidated": " (cues not validated)", "published": " of the paper's table"}.get(row.basis, "")


def _sentence(row: LevelRow) -> str:
    first, second = measure_names.short(row.first), measure_names.short(row.second)
    r = row.pearson
    number = f"r {plain(r)}, ρ {plain(row.spearman)}"
    verdict = "no clear correlation"
    if significance.excludes(r):
        verdict = f"{'positively' if (r.value or 0) > 0 else 'negatively'} correlated"
    interval = significance.by_interval(r, "r for this pair alone")
    return f"{_among(row)}, {first} and {second}: {verdict}, {number}{interval}."


def _core(readings: Sequence[Reading], prompt: str, input: str) -> tuple[list[str], list[tuple[int, Answer]]]:
    """Return the condition that represents each run, and (position of the run, answer) for every answer that counts."""
    conditions = talk_condition(readings, prompt, input)
    core = []
    for number, reading in enumerate(readings):
        wanted = {f"task/{input}", conditions[number]}
        core += [(number, a) for a in reading.answers if not a.item.part and a.condition in wanted]
    return conditions, core


def _notes(readings: Sequence[Reading], conditions: Sequence[str]) -> list[str]:
    notes = prompt_notes(readings, conditions)
    if len({r.meta.get("model", "") or r.name for r in readings}) < len(readings):
        notes.append("Several runs have the same model: intervals over models resample them together.")
    return notes


def _by_basis(
    readings: Sequence[Reading], core: Sequence[tuple[int, Answer]], notes: list[str]
) -> Iterator[tuple[str, dict[str, _Values], list[str]]]:
    """Yield (basis, measure → values, names of the cases) for each basis, a selection of answers by their cues'
    status."""
    of_run = {id(a): number for number, a in core}
    for basis, answers in by_status([a for _, a in core]):
        yield basis, *_read(readings, [(of_run[id(a)], a) for a in answers], notes)


def _read(
    readings: Sequence[Reading], answers: Sequence[tuple[int, Answer]], notes: list[str]
) -> tuple[dict[str, _Values], list[str]]:
    """Return measure → values, from runs that measure it in the same way, and the names of the cases by code."""
    measures = [measure_names.measures_of([reading]) for reading in readings]
    allowed: dict[str, set[int]] = {}
    for name in MEASURES:
        same, others = measure_names.comparable(readings, name)
        if others:
            left = ", ".join(readings[n].name for n in others)
            notes.append(f"{measure_names.short(name)} was measured in another way in {left} and is left out there.")
        allowed[name] = {n for n in same if name in measures[n]}
    cases: dict[str, int] = {}
    cues: dict[str, int] = {"": -1}
    scripts: dict[str, int] = {}
    places = array("q")  # run, case, cue and script of every answer, one after the other
    table = {name: (array("d"), array("q")) for name in MEASURES}  # values, and the index of each value's answer
    by_task: dict[tuple[int, str], list[tuple[Callable[[Item], bool], Callable[[Answer], float | None], str]]] = {}
    for name in MEASURES:
        for number in allowed[name]:
            m = measures[number][name]
            by_task.setdefault((number, m.task), []).append((m.belongs, m.read, name))
    seen = 0
    for number, answer in answers:
        item = answer.item
        wanted = by_task.get((number, item.task))
        if not wanted:
            continue
        case = cases.setdefault(item.case, len(cases))
        cue = cues.setdefault(item.cue, len(cues) - 1)
        places.extend((number, case, cue, scripts.setdefault(item.group, len(scripts))))
        for belongs, read, name in wanted:
            if belongs(item) and (value := read(answer)) is not None and math.isfinite(value):
                values, at = table[name]
                values.append(value)
                at.append(seen)
        seen += 1
    where = np.frombuffer(places, dtype=np.int64).reshape(-1, 4) if seen else np.empty((0, 4), dtype=np.int64)
    values_of = {}
    for name, (values, at) in table.items():
        if values:
            rows = where[np.frombuffer(at, dtype=np.int64)].astype(np.intp)
            values_of[name] = _Values(np.frombuffer(values, dtype=np.float64), *(rows[:, k] for k in range(4)))
    return values_of, list(cases)


class _Table:
    """Compute the rows of one basis."""

    def __init__(self, basis: str, values: dict[str, _Values], models: Sequence[str]) -> None:
        self.basis, self.values, self.models = basis, values, models
        self.runs = len(models)
        self.cases = 1 + max((int(v.case.max()) for v in values.values()), default=0)
        self.cues = 1 + max((int(v.cue.max()) for v in values.values()), default=-1)
        self.scripts = 1 + max((int(v.script.max()) for v in values.values()), default=0)
        self.by_run = {n: _cells(v.value, v.run, self.runs) for n, v in values.items()}
        self.by_case = {
            n: _cells(v.value, v.run * self.cases + v.case, self.runs * self.cases) for n, v in values.items()
        }
        self.script_of = np.zeros(self.cases, dtype=np.intp)
        self.cue_of = np.full(self.cases, -1, dtype=np.intp)
        for v in values.values():
            self.script_of[v.case], self.cue_of[v.case] = v.script, v.cue
        self.by_cue: dict[str, nested_correlation.Means] = {}

    def _means(self, v: _Values) -> nested_correlation.Means:
        some = v.cue >= 0
        shape = (self.runs, self.cues, self.scripts)
        return nested_correlation.Means(
            v.value[some], v.run[some], v.cue[some], v.script[some], shape, seed=SEED, draws=DRAWS
        )

    def _combined(self) -> Iterator[tuple[str, str]]:
        return itertools.combinations([n for n in MEASURES if n in self.values], 2)

    def _key(self, level: str, scope: str, first: str, second: str) -> str:
        return f"levels/{self.basis or 'all'}/{level}/{scope}/{first}~{second}"

    def cases_by_key(self, cases: Sequence[str]) -> Iterator[KeyedCases]:
        """Yield the key of every row with its cases."""
        names = Names(cases)
        has = {n: ~np.isnan(cells).reshape(self.runs, self.cases) for n, cells in self.by_case.items()}
        on_cue = {n: self._known(v) for n, v in self.values.items()}
        between = ("between",) if self.runs > 1 else ()
        for first, second in self._combined():
            a, b = has[first], has[second]
            runs = a.any(1) & b.any(1)
            yield self._key("model", "between", first, second), names.of(np.flatnonzero((a | b)[runs].any(0)))
            if self.cues > 1:
                cells = on_cue[first] & on_cue[second]
                some = (a | b) & cells[:, self.cue_of] & (self.cue_of >= 0)
                for scope in ("within", *between):
                    yield self._key("cue", scope, first, second), names.of(np.flatnonzero(some.any(0)))
            for scope in ("within", *between):
                yield self._key("case", scope, first, second), names.of(np.flatnonzero((a & b).any(0)))

    def _known(self, v: _Values) -> npt.NDArray[np.bool_]:
        """Return a mask (runs, cues): whether the run has a value of the measure for the cue."""
        known = np.zeros((self.runs, self.cues), dtype=bool)
        known[v.run[v.cue >= 0], v.cue[v.cue >= 0]] = True
        return known

    def rows(self) -> list[LevelRow]:
        self.by_cue = {n: self._means(v) for n, v in self.values.items()} if self.cues > 1 else {}
        made = []
        for first, second in self._combined():
            made.append(self._models("model", first, second, self.by_run[first], self.by_run[second]))
            if self.by_cue:
                made += self._cue(first, second)
            made += self._case(first, second)
        return made

    def _row(
        self, level: str, scope: str, first: str, second: str, both: tuple[Estimate, Estimate], models: int
    ) -> LevelRow:
        key = self._key(level, scope, first, second)
        return LevelRow(key, self.basis, level, scope, first, second, *both, models=models)

    def _models(self, level: str, first: str, second: str, a: Array, b: Array) -> LevelRow:
        some = np.flatnonzero(~np.isnan(a) & ~np.isnan(b))
        both = _across(a[some], b[some], [self.models[int(n)] for n in some], self.runs)
        return self._row(level, "between", first, second, both, len(some))

    def _cue(self, first: str, second: str) -> Iterable[LevelRow]:
        a, b = self.by_cue[first], self.by_cue[second]
        known = (a.known & b.known)[0]
        scripts = self.scripts
        both_coefficients = nested_correlation.of_means(a, b, int(known.sum()), scripts)
        asked = int((a.known | b.known)[0].sum())
        few = "" if known.sum(1).max(initial=0) > 2 else "fewer than three cues"
        if not few and scripts < 3 * self.cues:
            few = "fewer than three scripts per cue: see the case level"
        with_cue = min(self.values[n].scripts_with_a_cue for n in (first, second))
        both = _of_scripts(both_coefficients, with_cue, asked, few)
        yield self._row("cue", "within", first, second, both, int(known.any(1).sum()))
        if self.runs > 1:
            count = np.maximum(known.sum(1), 1)
            means = [np.where(known.any(1), np.where(known, s.all[0], 0).sum(1) / count, np.nan) for s in (a, b)]
            yield self._models("cue", first, second, *means)

    def _case(self, first: str, second: str) -> Iterable[LevelRow]:
        a, b = self.by_case[first], self.by_case[second]
        some = np.flatnonzero(~np.isnan(a) & ~np.isnan(b))
        asked = int((~np.isnan(a) | ~np.isnan(b)).sum())
        runs, scripts = some // self.cases, self.script_of[some % self.cases]
        pearson = nested_correlation.pearson(a[some], b[some], runs, scripts, seed=SEED, draws=DRAWS)
        spearman = nested_correlation.spearman(a[some], b[some], runs, scripts)
        both = _of_scripts((pearson, spearman), np.unique(scripts).size, asked)
        yield self._row("case", "within", first, second, both, np.unique(runs).size)
        if self.runs > 1:
            yield self._models(
                "case", first, second, _cells(a[some], runs, self.runs), _cells(b[some], runs, self.runs)
            )


def _across(
    a: Sequence[float] | Array, b: Sequence[float] | Array, models: Sequence[object], asked: int
) -> tuple[Estimate, Estimate]:
    different = len(set(models))
    if different < 3:
        none = Estimate(None, None, None, len(a), asked, note="needs at least three models")
        return none, none
    coefficients = nested_correlation.across(a, b, [str(m) for m in models], seed=SEED, draws=MODEL_DRAWS)
    if different < FEWEST:
        return _bare(coefficients, asked, f"only {different} models: too few for an interval", different)
    note = f"{different} models: the interval is rough" if different < FEW else ""
    return _estimate(coefficients[0], asked, note), _estimate(coefficients[1], asked, note)


def _of_scripts(
    coefficients: Sequence[Interval], scripts: int, asked: int, note: str = ""
) -> tuple[Estimate, Estimate]:
    """Return both coefficients with intervals over scripts; without intervals if there are too few scripts."""
    if scripts < FEWEST:
        note = f"only {count(scripts, 'script')}: too few for an interval"
        return _bare(coefficients, asked, note, scripts)
    return _estimate(coefficients[0], asked, note), _estimate(coefficients[1], asked, note)


def _bare(coefficients: Sequence[Interval], asked: int, note: str, clusters: int) -> tuple[Estimate, Estimate]:
    bare = [Interval(r.value, math.nan, math.nan, math.nan, r.rows, clusters) for r in coefficients]
    return _estimate(bare[0], asked, note), _estimate(bare[1], asked, note)


def _estimate(interval: Interval, asked: int, note: str = "") -> Estimate:
    e = from_interval(interval, interval.low, interval.high, asked)
    if e.value is None:
        note = "one of the two does not vary" if interval.rows > 1 else "fewer than two have both"
    return Estimate(e.value, e.low, e.high, e.scored, e.asked, scripts=e.scripts, note=note or e.note)


def _cells(values: Array, place: Codes, size: int) -> Array:
    """Return the mean of the values in each of `size` cells, NaN for an empty cell. `place` is the cell of a value."""
    counts = np.bincount(place, minlength=size)
    sums = np.bincount(place, weights=values, minlength=size)
    means: Array = np.divide(sums, counts, out=np.full(size, np.nan), where=counts > 0)
    return means
