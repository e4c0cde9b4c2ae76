"""Tables with a line for each model, as in a paper: main results, sub-tasks, and the paper's questions.

The numbers come from the findings and from the table `tasks`; only the layout follows the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from msgspec.structs import replace

from overtone.display.grid import IN_BRACKETS
from overtone.display.table_data import Cell, Line, PartTable
from overtone.findings.analysis import compute_findings
from overtone.findings.finding import FindingResult, Settings
from overtone.findings.finding_cells import measure_cell, representing
from overtone.findings.leaderboard.compute import Leaderboard
from overtone.findings.prompts.compute import PROMPTS, Prompts
from overtone.findings.source.compute import SourceRow, Sources
from overtone.findings.upper.compute import Upper, UpperRow
from overtone.report.case_links import where
from overtone.report.reply_tables import ARROWS
from overtone.results.headline_condition import of_source
from overtone.results.load import Reading
from overtone.results.measures import Estimate, choice_measure
from overtone.results.published import COLUMNS
from overtone.results.summary import LABELS, summarise_reading
from overtone.suite import ModelTable

MEASURES = {column.key: column.measure for column in COLUMNS}
BETTER = {column.key: column.better for column in COLUMNS}
NAMES = {"prompts": "Prompt", "source": "Speech", "upper": "Cue"}
Rows = list[tuple[int, tuple[str, ...], dict[str, Cell]]]  # run, names, and cells by column


def model_tables(readings: Sequence[Reading], settings: Settings) -> list[PartTable]:
    """Return the tables with a line for each model that the runs' benchmarks define. Runs of the same benchmark
    share tables.

    Columns and tables without a number in these runs are left out. A table's hint names the columns that are left out.
    """
    made = []
    for benchmark in dict.fromkeys(reading.benchmark for reading in readings):
        places = [n for n, reading in enumerate(readings) if reading.benchmark == benchmark]
        suite = readings[places[0]].suite
        if suite is not None and suite.models:
            own = _Runs(places, readings, settings)
            made += [table for one in suite.models if (table := _table(_known(one), own)).lines]
    return made


def _known(one: ModelTable) -> ModelTable:
    """Return the table without columns that Overtone cannot compute. A run from another program may name such
    columns."""
    return one if one.level else replace(one, columns={k: head for k, head in one.columns.items() if k in MEASURES})


class _Runs:
    """The runs of one benchmark with their findings. A finding is computed once, when it is first asked for."""

    def __init__(self, places: Sequence[int], readings: Sequence[Reading], settings: Settings) -> None:
        self.places = places
        self.readings = [readings[place] for place in places]
        self.settings = settings
        self._results: dict[str, list[FindingResult]] = {}  # type: ignore[type-arg]

    def results(self, name: str) -> list[FindingResult]:  # type: ignore[type-arg]
        if name not in self._results:
            self._results[name] = compute_findings(self.readings, [name], self.settings)
        return self._results[name]


def _table(one: ModelTable, runs: _Runs) -> PartTable:
    make: Callable[[ModelTable, _Runs], Rows] = _SHAPES[one.finding] if not one.level else _categories
    rows = make(one, runs)
    measured = {key for *_, cells in rows for key, cell in cells.items() if cell.estimate and cell.estimate.scored}
    others = dict.fromkeys(key for *_, cells in rows for key in cells if key not in one.columns)
    columns = {**one.columns, **{key: LABELS.get(key, key) for key in others}}
    shown = [key for key in columns if key in measured]
    absent = [head for key, head in columns.items() if key not in measured]
    arrow = {key: ARROWS.get(BETTER.get(key, "higher"), "") for key in shown}
    lines = [
        Line(run, "", names, tuple(cells.get(key, Cell()) for key in shown))
        for run, names, cells in rows
        if any(key in cells for key in shown)
    ]
    hint = [IN_BRACKETS, one.hint, *_condition_note(one, runs)]
    hint += [f"Not measured in these runs: {', '.join(absent)}."] if absent else []
    return PartTable(
        f"headline/{one.key}", one.title, " ".join(hint), (NAMES[one.finding],) if one.finding else (),
        tuple(columns[key] + arrow[key] for key in shown), tuple(lines) if shown else (),
        run_head="Model", short={columns[key] + arrow[key]: one.short[columns[key]] + arrow[key]
                                 for key in shown if columns[key] in one.short},
    )  # fmt: skip


def _condition_note(one: ModelTable, runs: _Runs) -> Iterator[str]:
    """Yield a note on the prompt of the replies, if a table has replies under only one prompt."""
    if one.level or one.finding:
        return
    for result in runs.results("leaderboard"):
        prompts = dict.fromkeys(e.condition for e in result.data.entrants if e.run is not None and e.condition)
        if prompts:
            yield f"Replies under {', '.join(prompts)}; the paper takes each model’s best prompt."


# ── one line for each model ─────────────────────────────────────────────────────────────────────────────────────────


def _measures(one: ModelTable, runs: _Runs) -> Rows:
    rows: Rows = []
    digits = {column.key: 1 if column.kind == "percent" else 2 for column in COLUMNS}
    for result in runs.results("leaderboard"):
        data: Leaderboard = result.data
        for entrant in (e for e in data.entrants if e.run is not None):
            cells = {
                key: Cell(e, "number", digits=digits[key], key=f"{entrant.key}/{key}")
                for key in one.columns
                if (e := entrant.cells[key].estimate) is not None
            }
            rows.append((runs.places[entrant.run or 0], (), cells))
    return rows


def _categories(one: ModelTable, runs: _Runs) -> Rows:
    """Return the accuracy in each category of a level, from the audio alone."""
    rows: Rows = []
    for place, reading in zip(runs.places, runs.readings, strict=True):
        wanted = f"task/{runs.settings.input}"
        for c in summarise_reading(of_source(reading, runs.settings.source)).conditions:
            if c.condition == wanted:
                key = partial(where, place, choice_measure(c.declared, one.level), condition=c.condition)
                tasks = [t for t in c.tasks if t.level == one.level]
                rows.append((place, (), {t.key: Cell(t.accuracy.questions, key=key(category=t.key)) for t in tasks}))
    return rows


# ── several lines for each model ────────────────────────────────────────────────────────────────────────────────────


def _prompts(one: ModelTable, runs: _Runs) -> Rows:
    rows: Rows = []
    for result in runs.results("prompts"):
        data: Prompts = result.data
        bases = [row.basis for row in data.rows]
        own = [row for row in data.rows if row.basis == _main(bases)]
        if len({row.prompt for row in own}) < 2:
            continue  # nothing varies
        order = {prompt: place for place, prompt in enumerate(PROMPTS)}
        for row in sorted(own, key=lambda row: order.get(row.prompt, len(order))):
            cells = {
                key: measure_cell(result, name, row.measures[name], f"{row.key}/{name}")
                for key in one.columns
                if (name := MEASURES[key]) in row.measures
            }
            rows.append((runs.places[result.runs[0]], (row.prompt,), cells))
    return rows


def _sources(one: ModelTable, runs: _Runs) -> Rows:
    rows: Rows = []
    for result in runs.results("source"):
        data: Sources = result.data
        shown = representing([row.condition for row in data.rows], "overall", runs.settings)
        own = [row for row in data.rows if row.by == "overall" and row.condition in shown and row.difference.scored]
        own = [row for row in own if row.basis == _main([r.basis for r in own])]
        for first, second in dict.fromkeys(row.sources for row in own):
            pair: dict[str, SourceRow] = {row.measure: row for row in own if row.sources == (first, second)}
            lines: tuple[tuple[str, str, Callable[[SourceRow], Estimate]], ...] = (
                (first, "first", lambda row: row.first),
                (second, "second", lambda row: row.second),
                ("difference", "", lambda row: row.difference),
            )
            for name, side, read in lines:
                cells = {
                    key: measure_cell(
                        result, measure, read(row), f"{row.key}/{side}" if side else row.key, difference=not side
                    )
                    for key in one.columns
                    if (row := pair.get(measure := MEASURES[key])) is not None
                }
                rows.append((runs.places[result.runs[0]], (name,), cells))
    return rows


def _upper(one: ModelTable, runs: _Runs) -> Rows:
    rows: Rows = []
    lines: tuple[tuple[str, bool, Callable[[UpperRow], Estimate]], ...] = (
        ("not stated", False, lambda row: row.base),
        ("stated", False, lambda row: row.right),
        ("gain", True, lambda row: row.gain),
    )
    for result in runs.results("upper"):
        data: Upper = result.data
        own = [row for row in data.rows if row.by == "overall" and row.gain.scored]
        by_measure: dict[str, UpperRow] = {r.measure: r for r in own if r.basis == _main([r.basis for r in own])}
        for name, difference, read in lines:
            cells = {
                key: measure_cell(result, measure, read(row), row.key, difference=difference)
                for key in one.columns
                if (row := by_measure.get(measure := MEASURES[key])) is not None
            }
            if cells:
                rows.append((runs.places[result.runs[0]], (name,), cells))
    return rows


def _main(bases: Sequence[str]) -> str:
    """Return the basis of the headline: validated cues if there are any, otherwise all cues."""
    return next((basis for basis in bases if basis != "unvalidated"), "unvalidated")


_SHAPES: dict[str, Callable[[ModelTable, _Runs], Rows]] = {
    "": _measures,
    "prompts": _prompts,
    "source": _sources,
    "upper": _upper,
}
