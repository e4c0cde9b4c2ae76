"""The headline tables that a benchmark defines, for the terminal and the page, and the results that its authors
published."""

from __future__ import annotations

from collections.abc import Sequence

from overtone import registry
from overtone.display.table_data import Cell, Line, PartTable, text_cell
from overtone.report.reply_tables import ARROWS
from overtone.results.headline import SuiteTable, cases_by_key, suite_tables
from overtone.results.load import Reading
from overtone.results.measures import Estimate
from overtone.suite import Column, Published, Suite, find_suite
from overtone.text import as_given, number


def headlines(readings: Sequence[Reading]) -> list[PartTable]:
    """Return the headline tables of every benchmark among the runs; runs of the same benchmark share tables."""
    by_table: dict[tuple[str, str], list[list[tuple[int, SuiteTable]]]] = {}
    for run, reading in enumerate(readings):
        for table in suite_tables(reading):
            versions = by_table.setdefault((reading.benchmark, table.headline.key), [])
            same = next((tables for tables in versions if tables[0][1].headline == table.headline), None)
            if same is None:  # the first run, or one of a benchmark that has changed its table since
                versions.append(same := [])
            same.append((run, table))
    return [
        _table(benchmark, f"{key}-{version}" if version > 1 else key, tables)
        for (benchmark, key), versions in by_table.items()
        for version, tables in enumerate(versions, 1)
    ]


def first_screen(reading: Reading) -> tuple[list[PartTable], list[str]]:
    """Return the headline tables for the first screen, and the titles of the other tables. A table is among the
    others if earlier tables already cover all its cases, e.g. a breakdown or another scale."""
    cases = dict(cases_by_key(reading))
    seen: set[str] = set()
    first, others = [], []
    for table in suite_tables(reading):
        columns = table.headline.columns
        here = {case for row in table.rows for c in columns for case in cases.get(f"{row.key}/{c.key}", ())}
        if seen and here <= seen:
            others.append(table.headline.title)
        else:
            first.append(_table(reading.benchmark, table.headline.key, [(0, table)]))
        seen |= here
    return first, others


def wants_judge(reading: Reading, own: Sequence[PartTable]) -> bool:
    """Return whether the headline tables of a run are empty because its replies were not judged."""
    suite = reading.suite
    if suite is None or not suite.rubrics or any("@" in name for name in reading.signatures):
        return False
    cells = [cell.estimate for table in own for line in table.lines for cell in line.cells]
    return bool(own) and not any(estimate is not None and estimate.scored for estimate in cells)


def _table(benchmark: str, key: str, tables: Sequence[tuple[int, SuiteTable]]) -> PartTable:
    headline = tables[0][1].headline
    lines = []
    for run, table in tables:
        for row in table.rows:
            cells = [
                _cell(column, cell, f"{run + 1}:{row.key}/{column.key}")
                for column, cell in zip(headline.columns, row.cells, strict=True)
            ]
            lines.append(Line(run, row.condition, (row.name,) if headline.rows else (), tuple(cells)))
    heads = tuple(column.label + ARROWS.get(column.better, "") for column in headline.columns)
    names = (headline.rows.capitalize(),) if headline.rows else ()
    return PartTable(f"suite-{benchmark}-{key}", headline.title, headline.hint, names, heads, tuple(lines))


def _cell(column: Column, e: Estimate | None, key: str) -> Cell:
    if e is None:
        return Cell(None, column.kind)
    shown = key if e.scored else ""
    return Cell(e, column.kind, digits=column.digits, title=column.help, key=shown)


def published(readings: Sequence[Reading]) -> list[PartTable]:
    """Return the published results of the runs' benchmarks, as printed. Without runs, return those of all installed
    benchmarks."""
    suites: dict[str, Suite | None] = {}
    for reading in readings:
        suites.setdefault(reading.benchmark, reading.suite)
    if not readings:
        suites = {name: find_suite(name) for name in registry.listing("benchmarks")}
    return [
        _published(f"published-{name}-{place}", one)
        for name, suite in suites.items()
        for place, one in enumerate(suite.published if suite is not None else ())
    ]


def _published(key: str, one: Published) -> PartTable:
    hint = f"{one.source}." + (f" Not comparable: {one.comparable}." if one.comparable else "")
    digits = [one.digits.get(column) for column in one.columns]
    lines = []
    for model, values in one.rows:
        cells = [text_cell(as_given(x) if n is None else number(x, n)) for x, n in zip(values, digits, strict=True)]
        lines.append(Line(None, "", (model,), tuple(cells)))
    return PartTable(key, one.title, hint, ("Model",), tuple(one.columns.values()), tuple(lines))
