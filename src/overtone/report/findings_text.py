"""Findings as text: the question, the answer in sentences, missing data, and tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple

import msgspec
from rich.table import Table

from overtone.display.table_data import PartTable
from overtone.errors import UsageError
from overtone.findings.analysis import compute_findings
from overtone.findings.finding import Finding, FindingResult, Settings
from overtone.findings.finding_cells import ALL, representing
from overtone.findings.finding_tables import joined, tables_of
from overtone.findings.lookup import find
from overtone.report import case_links
from overtone.report.page import run_labels
from overtone.report.table_formats import make_console, markdown, plain, safe, to_terminal
from overtone.results.headline_condition import of_source, over_headline
from overtone.results.load import Reading

NOTHING = "Not enough data to answer this; the notes say what is missing and what to run."
ASK = "List the cases behind a number with --behind KEY; --format json has every number's key."


class Analysis(NamedTuple):
    """The findings of some runs. `notes` are about the runs, and about findings that were left out."""

    labels: list[str]
    readings: list[Reading]
    settings: Settings
    results: list[FindingResult[Any]]
    notes: list[str]


class Section(NamedTuple):
    """One finding over all runs, in the form in which it is shown."""

    finding: Finding[Any]
    answers: list[tuple[str, list[str]]]  # the label of a run or model, and its sentences
    notes: list[str]
    tables: list[PartTable]


def analyze(readings: list[Reading], names: Sequence[str], settings: Settings, shown: int | None = None) -> Analysis:
    """Compute findings by name for the first `shown` runs (default: all). Some findings read the other runs as well."""
    shown = len(readings) if shown is None else shown
    own = readings[:shown]
    notes = list(_states([of_source(reading, settings.source) for reading in own], run_labels(own)))
    benchmarks = list(dict.fromkeys(r.benchmark for r in own))
    refused = [name for name in names if find(name).one_benchmark and len(benchmarks) > 1]
    if refused:
        reason = f"the runs have several benchmarks ({', '.join(benchmarks)}), whose measures cannot be averaged"
        if list(names) == refused:
            raise UsageError(f"{', '.join(refused)}: {reason}; give runs of one benchmark")
        names = [name for name in names if name not in refused]
        notes += [f"{name} is left out: {reason}; give runs of one benchmark for it" for name in refused]
    results = compute_findings(readings, names, settings, shown) if names else []
    return Analysis(run_labels(own), own, settings, results, notes)


def cases_in_tables(readings: Sequence[Reading], key: str, settings: Settings, shown: int) -> list[str]:
    """Return the cases behind a number of the plain tables, by a key that begins with `where=`."""
    own = [of_source(reading, settings.source) for reading in readings[:shown]]
    fields = case_links.read(key)
    run = fields.get("run", "1" if len(own) == 1 else "")
    if not run.isascii() or not run.isdigit() or not 1 <= int(run) <= len(own):
        raise UsageError(f"{key!r} does not name one of the runs; write run:1 for the first of the {len(own)}")
    try:
        return case_links.CaseFinder(own[int(run) - 1]).cases(key)
    except KeyError as missing:
        raise UsageError(f"no number has the key {key!r}: {missing.args[0]} is missing or unknown") from None


def _states(readings: Sequence[Reading], labels: Sequence[str]) -> Iterator[str]:
    for reading, label in zip(readings, labels, strict=True):
        failed = sum(a.failed for a in reading.answers)
        pending = sum(not a.answered and not a.failed for a in reading.answers)
        if failed or pending:
            counts = [f"{n:,} {state}" for n, state in ((failed, "failed"), (pending, "not asked yet")) if n]
            more = "; repeat the command that ran it to resume" if pending else ""
            yield f"{label}: of {len(reading.answers):,} requests {' and '.join(counts)}{more}"
        (narrowed,) = over_headline([reading])
        yield from (f"{label}: {note}" for note in narrowed.notes)


def sections(analysis: Analysis, by: str = "overall") -> list[Section]:
    """Return a section for each finding, in order; the results of several runs share one section."""
    made = []
    asked = {answer.condition for reading in analysis.readings for answer in reading.answers}
    for name in dict.fromkeys(result.name for result in analysis.results):
        results = [result for result in analysis.results if result.name == name]
        finding = results[0].finding
        several = len(analysis.labels) > 1 and finding.takes != "all"
        answers, hidden = [], 0
        labels_by_note: dict[str, list[str]] = {}
        for result in results:
            label = ", ".join(analysis.labels[n] for n in result.runs) if several else ""
            shown = _shown(result, asked, by, analysis.settings)
            answers.append((label, shown))
            hidden += len(result.sentences) - len(shown)
            for note in result.notes:
                labels_by_note.setdefault(note, []).append(label)
        notes = [
            note if len(labels) == len(results) else f"{', '.join(labels)}: {note}"
            for note, labels in labels_by_note.items()
        ]
        if hidden:
            notes.append(f"{hidden} more sentences and the numbers under other conditions: --by all")
        if by not in (ALL, *finding.breakdowns):
            notes.append(f"this finding has no breakdown by {by}; it has {', '.join(finding.breakdowns)}")
        tables = joined(table for result in results for table in tables_of(result, by, analysis.settings))
        made.append(Section(finding, answers, notes, tables))
    return made


def _shown(result: FindingResult[Any], asked: set[str], by: str, settings: Settings) -> list[str]:
    """Return the sentences on the conditions that represent a run; with "all", every sentence."""
    conditions = {*asked, *(s.condition for s in result.sentences if s.condition)}
    wanted = representing(conditions, "overall", settings)
    return [s.text for s in result.sentences if by == ALL or not s.condition or s.condition in wanted]


def print_findings(analysis: Analysis, by: str = "overall", file: IO[str] | None = None) -> None:
    """Print findings to the terminal, or to `file`."""
    console = make_console(file)
    for number, section in enumerate(sections(analysis, by)):
        if number:
            console.print()
        console.rule(f"[bold]{section.finding.title}[/bold]", align="left", characters="─")
        console.print(section.finding.question, style="italic")
        for label, sentences in section.answers:
            if label:
                console.print(safe(label), style="bold")
            for sentence in sentences or [NOTHING]:
                console.print(_item("•", sentence))
        for note in section.notes:
            console.print(_item("note:", note))
        to_terminal(console, section.tables, analysis.labels, hints=True)
    console.print()
    for note in analysis.notes:
        console.print(_item("note:", note))
    console.print(ASK)


def _item(mark: str, text: str) -> Table:
    """Return one list item: a mark, and beside it the text, wrapped."""
    grid = Table.grid(padding=(0, 1))
    grid.add_row(mark, safe(text))
    return grid


def to_markdown(analysis: Analysis, by: str = "overall") -> str:
    """Return findings as Markdown."""
    lines = [f"# {plain(', '.join(analysis.labels))}", ""]
    lines += [*(f"- {plain(note)}" for note in analysis.notes), ""] if analysis.notes else []
    for section in sections(analysis, by):
        lines += [f"## {plain(section.finding.title)}", "", f"*{plain(section.finding.question)}*", ""]
        for label, sentences in section.answers:
            lines += [f"**{plain(label)}**", ""] if label else []
            lines += [*(f"- {plain(sentence)}" for sentence in sentences or [NOTHING]), ""]
        lines += [*(f"- note: {plain(note)}" for note in section.notes), ""] if section.notes else []
        lines += markdown(section.tables, analysis.labels, level=3).splitlines()
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def to_json(analysis: Analysis) -> str:
    """Return the whole analysis as JSON: runs with the signatures of their scores, settings, and findings with the
    keys of their numbers."""
    settings = analysis.settings
    options = {r.name: settings.options.get(r.name, r.finding.options) for r in analysis.results if r.finding.options}
    content = {
        "runs": [_run(label, reading) for label, reading in zip(analysis.labels, analysis.readings, strict=True)],
        "settings": {**msgspec.to_builtins(settings), "options": options, "deaf": [n + 1 for n in settings.deaf]},
        "notes": analysis.notes,
        "findings": [_finding(result) for result in analysis.results],
    }
    return msgspec.json.format(msgspec.json.encode(content)).decode()


def _run(label: str, reading: Reading) -> dict[str, Any]:
    return {
        "label": label,
        "folder": str(reading.folder),
        "model": reading.meta.get("model", ""),
        "benchmark": reading.benchmark,
        "asked": len(reading.answers),
        "answered": sum(a.answered for a in reading.answers),
        "signatures": reading.signatures,
    }


def _finding(result: FindingResult[Any]) -> dict[str, Any]:
    data = msgspec.to_builtins(result.data)
    for rows in data.values():
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, dict) and isinstance(row.get("key"), str):
                row["key"] = result.prefix + row["key"]
    return {
        "name": result.name,
        "title": result.finding.title,
        "question": result.finding.question,
        "runs": [n + 1 for n in result.runs],
        "sentences": [{"text": s.text, "key": result.prefix + s.key if s.key else ""} for s in result.sentences],
        "notes": list(result.notes),
        "found": data,
    }
