"""The tables of prompts: each fixed prompt, the best prompt chosen fairly, and instructions not followed."""

from __future__ import annotations

from overtone.display.table_data import Cell, Line, PartTable
from overtone.findings.finding import FindingResult, Settings
from overtone.findings.finding_cells import ALL, DEFAULT, basis, cell, head, measure_cell, named
from overtone.findings.prompts.compute import KINDS, SHOWN, Prompts
from overtone.results.measure_names import short

BREAKDOWNS = ("overall",)
HINTS = {
    "prompts": "All replies under one prompt. Use this table to compare models. Shares are in percent.",
    "choice": (
        "The best prompt: each half of the scripts under the prompt that the other half chose (fair), all scripts "
        "under the prompt that they chose themselves, as in the paper, and the optimism of the latter. Over replies "
        "that every prompt has."
    ),
    "failures": "Instructions not followed, in percent of the requests. Problems that never occurred have no column.",
}
TASKS = {"converse": "replies", "choose": "answers to questions", "transcribe": "transcripts"}


def make_tables(result: FindingResult[Prompts], by: str = "overall", settings: Settings = DEFAULT) -> list[PartTable]:
    """Make three tables: the fixed prompts, the best prompt chosen fairly, and instructions not followed."""
    return [make(result, by == ALL) for make in (_fixed, _choices, _failures)]


def _fixed(result: FindingResult[Prompts], everything: bool) -> PartTable:
    data = result.data
    measured = list(dict.fromkeys(name for row in data.rows for name, e in row.measures.items() if e.scored))
    known = [name for name in SHOWN if name in measured]
    order = [*known, *(name for name in measured if name not in known and (everything or not known))]
    lines = [
        Line(
            result.runs[0], "", (basis(row.basis), row.prompt),
            tuple(measure_cell(result, name, row.measures.get(name), f"{row.key}/{name}") for name in order),
        )
        for row in data.rows
    ]  # fmt: skip
    heads = tuple(map(head, order))
    return named(PartTable("prompts", "Under each prompt", HINTS["prompts"], ("Cues", "Prompt"), heads, tuple(lines)))


def _choices(result: FindingResult[Prompts], everything: bool) -> PartTable:
    lines = []
    for choice in result.data.choices:
        first, second = choice.halves
        picked = first if first == second else f"{first}, {second}"
        for name in (n for n in choice.fair if everything or n in choice.by):
            key = f"{choice.key}/{name}"
            cells = (
                measure_cell(result, name, choice.fair[name], key, small=picked),
                measure_cell(result, name, choice.in_sample[name], key, small=choice.overall),
                measure_cell(result, name, choice.optimism[name], key, difference=True),
            )
            by = " and ".join(map(short, choice.by))
            lines.append(Line(result.runs[0], "", (basis(choice.basis), by, short(name)), cells))
    heads = ("Chosen fairly", "Chosen in sample", "Optimism")
    names = ("Cues", "Best by", "Measure")
    return named(PartTable("choice", "The best prompt", HINTS["choice"], names, heads, tuple(lines)))


def _failures(result: FindingResult[Prompts], everything: bool) -> PartTable:
    data = result.data
    happened = {kind for row in data.failures for kind, e in row.kinds.items() if e.value or everything}
    kinds = [kind for kind in KINDS if kind in happened]
    lines = []
    for row in data.failures:
        names = (basis(row.basis), row.prompt, TASKS.get(row.task, row.task))
        cells: tuple[Cell, ...] = tuple(cell(result, row.kinds.get(kind), f"{row.key}/{kind}") for kind in kinds)
        if kinds:
            lines.append(Line(result.runs[0], "", names, cells))
    heads = tuple(f"{KINDS[kind].capitalize()} ↓ · %" for kind in kinds)
    names = ("Cues", "Prompt", "Task")
    return named(PartTable("failures", "Instructions not followed", HINTS["failures"], names, heads, tuple(lines)))
