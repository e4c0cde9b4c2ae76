"""Does the length of a reply depend on the delivery? Mean words per reply to each style of the scripts."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from overtone.display.axes import Spot, close, page
from overtone.display.drawing import Drawing
from overtone.display.table_data import Line, PartTable
from overtone.display.value_rows import Block, Panel, Place, Row, rows
from overtone.findings.figure_source import FigureSource, NothingToDraw
from overtone.findings.finding import Finding, FindingResult, Inputs, Settings
from overtone.findings.finding_cells import cell, representing
from overtone.results.load import Answer
from overtone.results.measures import Estimate, estimate
from overtone.results.wording import Sentence, shortfall
from overtone.stats.minimums import RATE
from overtone.text import plain

ROOM = "findings"
NAME = "my-finding"  # the file's name: keys begin with it
MISSING = "no replies: run with --levels 3"


class StyleRow(Struct, frozen=True):
    """The replies to the clips of one style under one condition."""

    key: str
    condition: str
    style: str
    words: Estimate


class Lengths(Struct, frozen=True):
    """What the finding computes. Every finding has `notes` and a `signature`."""

    rows: list[StyleRow]
    notes: list[str]
    signature: str = f"{NAME}|v1|words:split at spaces"


def replies_by_key(inputs: Inputs) -> dict[tuple[str, str, str], list[Answer]]:
    """Group the replies of a run by key, condition and style."""
    groups: dict[tuple[str, str, str], list[Answer]] = {}
    for answer in inputs.run.answers:
        if answer.item.task == "converse" and answer.answered and not answer.item.part:
            key = f"{NAME}/{answer.condition}/{answer.item.style}"
            groups.setdefault((key, answer.condition, answer.item.style), []).append(answer)
    return groups


def words(answer: Answer) -> float:
    """Count the words of a reply, over all its turns."""
    return float(sum(len(reply.text.split()) for reply in answer.replies))


def compute(inputs: Inputs) -> Lengths:
    """Estimate the mean words per reply, with intervals clustered by script (`item.group`)."""
    made = [
        StyleRow(key, condition, style, estimate([(words(a), a.item.group) for a in answers]))
        for (key, condition, style), answers in replies_by_key(inputs).items()
    ]
    return Lengths(made, [])


def cases(inputs: Inputs) -> Iterator[tuple[str, list[str]]]:
    """Yield the cases behind every number, by its key."""
    for (key, _, _), answers in replies_by_key(inputs).items():
        yield key, list(dict.fromkeys(a.item.case for a in answers))


def sentences(data: Lengths) -> list[Sentence]:
    """Write a sentence for each row that has enough scripts, and one on those that have not."""
    enough = [row for row in data.rows if row.words.scripts >= RATE.least]
    few = [(f"{row.condition}, {row.style} clips", row.words.scripts) for row in data.rows if row not in enough]
    lines = [
        Sentence(
            f"{row.condition}: replies to {row.style} clips have {plain(row.words, 1)} words.", row.key, row.condition
        )
        for row in enough
    ]
    return [*lines, *shortfall(RATE, few)]


def tables(result: FindingResult[Lengths], by: str, settings: Settings) -> list[PartTable]:
    """Make one table: a line for each condition and style."""
    shown = representing([row.condition for row in result.data.rows], by, settings)
    lines = [
        Line(result.runs[0], row.condition, (row.style,), (cell(result, row.words, row.key, "number", digits=1),))
        for row in result.data.rows
        if row.condition in shown
    ]
    hint = "Words per reply, with 95 % intervals clustered by script."
    return [PartTable(NAME, "Length of replies", hint, ("Style",), ("Words",), tuple(lines))]


def draw(source: FigureSource, width: float) -> Drawing:
    """Draw the words per reply to each style."""
    blocks = []
    for result in source.results_of(NAME, Lengths):
        run = result.runs[0]
        own = [row for row in result.data.rows if row.condition == source.conditions[run]]
        spots = [Spot(row.words, f"{source.labels[run]}, {row.style}", result.prefix + row.key) for row in own]
        made = [Row(row.style, (Place((spot,)),)) for row, spot in zip(own, spots, strict=True)]
        blocks += [Block(source.labels[run], tuple(made))] if made else []
    if not blocks:
        raise NothingToDraw(MISSING)
    drawing, y = page(width, "Length of replies", "Lines are 95 % intervals, clustered by script.")
    return close(drawing, rows(drawing, y, blocks, [Panel("Words per reply", "number")]), [], Lengths([], []).signature)


FINDING = Finding(
    title="Length of replies",
    question="Does the length of a reply depend on the delivery?",
    order=200,
    takes="run",
    compute=compute,
    sentences=sentences,
    cases=cases,
    tables=tables,
    advice=lambda data: [] if data.rows else [MISSING],
    minimums=(RATE,),
    draw=draw,
)
