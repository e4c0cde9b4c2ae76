"""Findings on a page: each question with its sentences, figures and tables, and the commands that supply missing
data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from overtone.display.drawing import Drawing
from overtone.display.table_data import PartTable
from overtone.figures import MM, WIDTH, draw
from overtone.figures import names as figure_names
from overtone.findings.analysis import cases_by_key
from overtone.findings.figure_source import FigureSource, NothingToDraw
from overtone.findings.finding import FindingResult
from overtone.findings.finding_tables import joined, tables_of
from overtone.findings.lookup import known_findings
from overtone.report.links import Links
from overtone.results.wording import Sentence

SEVERAL = "the runs have several benchmarks, whose measures cannot be averaged: give runs of one benchmark"


NARROW = 84 * MM  # a figure for phones: one column of a printed page


class Figure(NamedTuple):
    """A figure drawn for a wide page and for a phone."""

    wide: Drawing
    narrow: Drawing

    @property
    def title(self) -> str:
        return self.wide.title

    def mark_keys(self) -> Iterator[str]:
        """Yield the key of every mark."""
        yield from (mark.key for drawing in self for mark in drawing.marks)


class Answer(NamedTuple):
    """A finding's answer for one run, one model or all runs: sentences with full keys, and notes."""

    label: str
    sentences: tuple[Sentence, ...]
    notes: tuple[str, ...]


class Section(NamedTuple):
    """One finding with its answers for all runs."""

    name: str
    title: str
    question: str
    answers: list[Answer]
    figures: list[Figure]
    tables: list[PartTable]

    @property
    def answered(self) -> bool:
        """Whether there is a sentence or a table."""
        return any(answer.sentences for answer in self.answers) or bool(self.tables)

    @property
    def notes(self) -> list[str]:
        """Notes on missing data and the commands that supply it. A note that all answers share is listed once."""
        shared = [set(answer.notes) for answer in self.answers]
        common = set.intersection(*shared) if shared else set()
        lines = [note for note in dict.fromkeys(n for answer in self.answers for n in answer.notes) if note in common]
        for answer in self.answers:
            own = [note for note in answer.notes if note not in common]
            lines += [f"{answer.label}: {note}" if answer.label else note for note in own]
        return lines

    def keys(self) -> Iterator[str]:
        """Yield the key of every number that is shown."""
        yield from (sentence.key for answer in self.answers for sentence in answer.sentences)
        yield from (cell.key for table in self.tables for line in table.lines for cell in line.cells)
        yield from (key for figure in self.figures for key in figure.mark_keys())


def sections(source: FigureSource, links: Links) -> list[Section]:
    """Return a section for every finding of the runs, in order, and register the links to their cases in `links`."""
    made = []
    several = len({reading.benchmark for reading in source.readings}) > 1
    for name, finding in known_findings().items():
        if several and finding.one_benchmark:
            made.append(Section(name, finding.title, finding.question, [Answer("", (), (SEVERAL,))], [], []))
            continue
        results = source.results(name)
        section = Section(
            name,
            finding.title,
            finding.question,
            [_answer(result, source.labels) for result in results],
            drawn((name, *finding.figures), source),
            joined(table for result in results for table in tables_of(result)),
        )
        wanted = set(section.keys())
        for result in results:
            links.take(cases_by_key(source.readings, result, source.settings), wanted, result.runs)
        made.append(section)
    return made


def _answer(result: FindingResult[Any], labels: Sequence[str]) -> Answer:
    label = "" if result.finding.takes == "all" else ", ".join(labels[n] for n in result.runs)
    sentences = tuple(Sentence(s.text, result.prefix + s.key if s.key else "") for s in result.sentences)
    return Answer(label, sentences, result.notes)


def drawn(names: Iterable[str], source: FigureSource) -> list[Figure]:
    """Draw the named figures, without those that the runs have no data for."""
    made = []
    known = figure_names()
    for name in (name for name in names if name in known):
        try:
            made.append(Figure(draw(name, source, WIDTH), draw(name, source, NARROW)))
        except NothingToDraw:
            continue  # the notes beside it say what is missing, and what to run
    return made
