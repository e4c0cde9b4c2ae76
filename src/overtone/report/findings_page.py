"""The findings of a report: each question with sentences, pictures and tables, all linked to the cases behind them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from overtone.analysis.findings import FINDINGS, Finding, under
from overtone.analysis.said import Sentence
from overtone.report.drawing import Drawing
from overtone.report.figures import WIDTH, NothingToDraw, Source, draw
from overtone.report.figures import names as pictures
from overtone.report.findings import joined, tables_of
from overtone.report.findings.advice import advice
from overtone.report.links import Links
from overtone.report.table import PartTable

VISIBLE = 2  # sentences of a run; the others stand behind "more"
TOGETHER = 3  # with more runs each has its sentences behind its name
SEVERAL = "the runs are of several benchmarks, whose measures do not average: give runs of one"
PICTURES = {"funnel": ("funnel", "cues"), "leaderboard": ("leaderboard", "radar")}  # the others have one of their name


class Told(NamedTuple):
    """What was found of one run, one model or all: sentences with full keys, and what cannot be told."""

    label: str
    sentences: tuple[Sentence, ...]
    notes: tuple[str, ...]


class Section(NamedTuple):
    """One finding of all runs."""

    name: str
    title: str
    question: str
    told: list[Told]
    pictures: list[Drawing]
    tables: list[PartTable]

    @property
    def found(self) -> bool:
        """Whether there is anything to tell."""
        return any(told.sentences for told in self.told) or bool(self.tables)

    @property
    def notes(self) -> list[str]:
        """What cannot be told, and what to run; said once where it is the same for all."""
        shared = [set(told.notes) for told in self.told]
        common = set.intersection(*shared) if shared else set()
        lines = [note for note in dict.fromkeys(n for told in self.told for n in told.notes) if note in common]
        for told in self.told:
            lines += [f"{told.label}: {note}" if told.label else note for note in told.notes if note not in common]
        return lines

    def keys(self) -> Iterator[str]:
        """Every number that is shown."""
        yield from (sentence.key for told in self.told for sentence in told.sentences)
        yield from (cell.key for table in self.tables for line in table.lines for cell in line.cells)
        yield from (mark.key for picture in self.pictures for mark in picture.marks)


def sections(source: Source, links: Links) -> list[Section]:
    """Every finding of the runs that share a benchmark, in the order of the house; links to their cases are kept."""
    made = []
    for name in FINDINGS:
        if name == "levels" and len({r.benchmark for r in source.readings}) > 1:
            told = [Told("", (), (SEVERAL,))]
            made.append(Section(name, FINDINGS[name].title, FINDINGS[name].question, told, [], []))
            continue
        found = source.findings(name)
        section = Section(
            name,
            FINDINGS[name].title,
            FINDINGS[name].question,
            [_told(one, source.labels) for one in found],
            drawn(PICTURES.get(name, (name,)), source),
            joined(table for one in found for table in tables_of(one)),
        )
        wanted = set(section.keys())
        for one in found:
            links.take(under(source.readings, one, source.settings), wanted, one.runs)
        made.append(section)
    return made


def _told(finding: Finding, labels: Sequence[str]) -> Told:
    label = "" if finding.about.of == "all" else ", ".join(labels[n] for n in finding.runs)
    said = tuple(Sentence(s.text, finding.prefix + s.key if s.key else "") for s in finding.sentences)
    return Told(label, said, tuple(dict.fromkeys((*finding.notes, *advice(finding)))))


def drawn(names: Iterable[str], source: Source) -> list[Drawing]:
    """The pictures of these names that the runs have data for."""
    made = []
    for name in names:
        if name in pictures():
            try:
                made.append(draw(name, source, WIDTH))
            except NothingToDraw:
                continue  # the notes beside it say what is missing, and what to run
    return made
