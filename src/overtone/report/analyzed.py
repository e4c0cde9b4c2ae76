"""What runs found, finding by finding: the question, sentences, what cannot be told, and the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple

import msgspec
from rich.table import Table

from overtone.analysis import findings as fnd
from overtone.analysis.findings import FINDINGS, Finding, Settings
from overtone.analysis.funnel import TOLD
from overtone.analysis.reading import Reading
from overtone.analysis.said import Sentence
from overtone.analysis.standing import of_source, over_headline
from overtone.errors import UsageError
from overtone.report import where
from overtone.report.findings import breakdowns, joined, tables_of
from overtone.report.findings._cells import ALL, standing
from overtone.report.findings.advice import advice
from overtone.report.html import run_labels
from overtone.report.table import PartTable
from overtone.report.written import make_console, markdown, plain, safe, to_terminal

NOTHING = "Not enough data to answer this; the notes say what is missing and what to run."
ASK = "The cases under a number: --behind KEY; --format json has every number's key."


class Analyzed(NamedTuple):
    """The findings of some runs. `notes` are of the runs themselves, and of what was not asked of them."""

    labels: list[str]
    readings: list[Reading]
    settings: Settings
    findings: list[Finding]
    notes: list[str]


class Part(NamedTuple):
    """One finding over all runs it was made for, as it is shown."""

    name: str
    told: list[tuple[str, list[str]]]  # whose, and the sentences
    notes: list[str]
    tables: list[PartTable]


def analyze(readings: list[Reading], names: Sequence[str], settings: Settings, told: int | None = None) -> Analyzed:
    """The findings by name of the first `told` readings (all); the others stand beside: they only hear the words."""
    told = len(readings) if told is None else told
    own = readings[:told]
    notes = list(_states([of_source(reading, settings.source) for reading in own], run_labels(own)))
    benchmarks = list(dict.fromkeys(r.benchmark for r in own))
    if "levels" in names and len(benchmarks) > 1:
        refused = f"the runs are of several benchmarks ({', '.join(benchmarks)}), which do not average"
        if list(names) == ["levels"]:
            raise UsageError(f"levels: {refused}; give runs of one benchmark")
        names = [name for name in names if name != "levels"]
        notes.append(f"levels are left out: {refused}; give the runs of one benchmark for them")
    found: list[Finding] = []
    for name in names:
        made = fnd.findings(_readings_for(name, readings, told), [name], settings)
        found += [one for one in made if one.about.of == "all" or one.runs[0] < told]
    return Analyzed(run_labels(own), own, settings, found, notes)


def behind(readings: list[Reading], key: str, settings: Settings, told: int | None = None) -> list[str]:
    """The cases under one number of these findings, or of a run's plain tables."""
    told = len(readings) if told is None else told
    if key.startswith("where="):
        return _where([of_source(reading, settings.source) for reading in readings[:told]], key)
    name = key.rpartition(":")[2].partition("/")[0]
    return fnd.behind(_readings_for(name, readings, told), key, settings)


def _where(readings: Sequence[Reading], key: str) -> list[str]:
    """The cases under a number of the plain tables."""
    fields = where.read(key)
    run = fields.get("run", "1" if len(readings) == 1 else "")
    if not run.isascii() or not run.isdigit() or not 1 <= int(run) <= len(readings):
        raise UsageError(f"{key!r} is of no run given; write run:1 for the first of the {len(readings)}")
    try:
        return where.Under(readings[int(run) - 1]).cases(key)
    except KeyError as missing:
        raise UsageError(f"no number is named {key!r}: {missing.args[0]} is missing or not known") from None


def _readings_for(name: str, readings: list[Reading], told: int) -> list[Reading]:
    """Only what the words alone give is told from the runs that stand beside."""
    return readings if name == "text-only" else readings[:told]


def _states(readings: Sequence[Reading], labels: Sequence[str]) -> Iterator[str]:
    for reading, label in zip(readings, labels, strict=True):
        failed = sum(a.failed for a in reading.answers)
        pending = sum(not a.answered and not a.failed for a in reading.answers)
        if failed or pending:
            what = [f"{n:,} {word}" for n, word in ((failed, "failed"), (pending, "not asked yet")) if n]
            more = "; the command that ran it goes on" if pending else ""
            yield f"{label}: of {len(reading.answers):,} asks {' and '.join(what)}{more}"
        (narrowed,) = over_headline([reading])
        yield from (f"{label}: {note}" for note in narrowed.notes)


def parts(found: Analyzed, by: str = "overall") -> list[Part]:
    """The findings in their order, those of several runs together."""
    made = []
    conditions = sorted({answer.condition for reading in found.readings for answer in reading.answers})
    for name in dict.fromkeys(finding.name for finding in found.findings):
        alike = [finding for finding in found.findings if finding.name == name]
        several = len(found.labels) > 1 and FINDINGS[name].of != "all"
        told, hidden = [], 0
        noted: dict[str, list[str]] = {}
        for finding in alike:
            whose = ", ".join(found.labels[n] for n in finding.runs) if several else ""
            own = [s for s in finding.sentences if by == ALL or _stands(finding, s, conditions, found.settings)]
            spoken = [sentence.text for sentence in own]
            told.append((whose, spoken))
            hidden += len(finding.sentences) - len(spoken)
            for note in dict.fromkeys((*finding.notes, *advice(finding))):
                noted.setdefault(note, []).append(whose)
        notes = [note if len(whose) == len(alike) else f"{', '.join(whose)}: {note}" for note, whose in noted.items()]
        if hidden:
            notes.append(f"{hidden} more sentences and the numbers under other conditions: --by all")
        if by not in (ALL, *breakdowns(name)):
            notes.append(f"no breakdown by {by} here; there is {', '.join(breakdowns(name))}")
        tables = joined(table for finding in alike for table in tables_of(finding, by, found.settings))
        made.append(Part(name, told, notes, tables))
    return made


def _stands(finding: Finding, sentence: Sentence, conditions: Sequence[str], settings: Settings) -> bool:
    """Whether a sentence is of a condition that stands for its run. What comes before the reply is the same under every
    prompt; where prompts are compared, and where a cue is told, each has its say."""
    key = sentence.key
    of = next((c for c in conditions if f"/{c}/" in key), "")
    if not of or finding.name in ("prompts", "upper") or key.startswith(("funnel/gain/", "funnel-coarse/gain/")):
        return True
    if finding.name == "funnel" and key.rpartition("/")[2] not in TOLD:
        return of.endswith(f"/{settings.input}")
    return of in standing(conditions, "overall", settings)


def print_findings(found: Analyzed, by: str = "overall", file: IO[str] | None = None) -> None:
    console = make_console(file)
    for number, part in enumerate(parts(found, by)):
        about = FINDINGS[part.name]
        if number:
            console.print()
        console.rule(f"[bold]{about.title}[/bold]", align="left", characters="─")
        console.print(about.question, style="italic")
        for whose, sentences in part.told:
            if whose:
                console.print(safe(whose), style="bold")
            for sentence in sentences or [NOTHING]:
                console.print(_item("•", sentence))
        for note in part.notes:
            console.print(_item("note:", note))
        to_terminal(console, part.tables, found.labels, hints=True)
    console.print()
    for note in found.notes:
        console.print(_item("note:", note))
    console.print(ASK)


def _item(mark: str, text: str) -> Table:
    """A line whose text folds beside its mark."""
    grid = Table.grid(padding=(0, 1))
    grid.add_row(mark, safe(text))
    return grid


def to_markdown(found: Analyzed, by: str = "overall") -> str:
    lines = [f"# {plain(', '.join(found.labels))}", ""]
    lines += [*(f"- {plain(note)}" for note in found.notes), ""] if found.notes else []
    for part in parts(found, by):
        about = FINDINGS[part.name]
        lines += [f"## {plain(about.title)}", "", f"*{plain(about.question)}*", ""]
        for whose, sentences in part.told:
            lines += [f"**{plain(whose)}**", ""] if whose else []
            lines += [*(f"- {plain(sentence)}" for sentence in sentences or [NOTHING]), ""]
        lines += [*(f"- note: {plain(note)}" for note in part.notes), ""] if part.notes else []
        lines += markdown(part.tables, found.labels, level=3).splitlines()
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def to_json(found: Analyzed) -> str:
    """Everything: runs with the signatures of their scores, settings, and every finding with keys that can be asked."""
    told = {
        "runs": [_run(label, reading) for label, reading in zip(found.labels, found.readings, strict=True)],
        "settings": {**msgspec.to_builtins(found.settings), "deaf": [n + 1 for n in found.settings.deaf]},
        "notes": found.notes,
        "findings": [_finding(finding) for finding in found.findings],
    }
    return msgspec.json.format(msgspec.json.encode(told)).decode()


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


def _finding(finding: Finding) -> dict[str, Any]:
    about = finding.about
    found = msgspec.to_builtins(finding.found)
    for rows in found.values():
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, dict) and isinstance(row.get("key"), str):
                row["key"] = finding.prefix + row["key"]
    return {
        "name": finding.name,
        "title": about.title,
        "question": about.question,
        "runs": [n + 1 for n in finding.runs],
        "sentences": [{"text": s.text, "key": finding.prefix + s.key if s.key else ""} for s in finding.sentences],
        "notes": [*finding.notes, *advice(finding)],
        "found": found,
    }
