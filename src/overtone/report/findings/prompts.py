"""How much the prompt matters, as tables: fixed prompts first, the best one chosen fairly, instructions not kept."""

from __future__ import annotations

from overtone.analysis.findings import Finding, Settings
from overtone.analysis.named import short
from overtone.analysis.prompts import KINDS, SHOWN, Prompts
from overtone.report.findings._cells import ALL, DEFAULT, basis, cell, digits_of, head, kind_of, named
from overtone.report.table import Cell, Line, PartTable

BYS = ("overall",)
HINTS = {
    "prompts": "Every reply under one prompt: the table to compare models by. Shares in percent.",
    "choice": (
        "The best prompt, chosen on half of the scripts and shown on the other, both ways round (fair), beside the "
        "best of all chosen on the replies it is then shown for, as the paper does; and what that flatters by. Over "
        "replies that every prompt has."
    ),
    "failures": "What was asked and not done, in percent of what was asked. What never happened has no column.",
}
TASKS = {"converse": "replies", "choose": "answers to questions", "transcribe": "transcripts"}


def tables(finding: Finding, *, by: str = "overall", settings: Settings = DEFAULT) -> list[PartTable]:
    found = finding.found
    assert isinstance(found, Prompts)
    everything = by == ALL
    return [make(finding, found, everything) for make in (_fixed, _choices, _failures)]


def _fixed(finding: Finding, found: Prompts, everything: bool) -> PartTable:
    measured = list(dict.fromkeys(name for row in found.rows for name, e in row.measures.items() if e.scored))
    known = [name for name in SHOWN if name in measured]
    order = [*known, *(name for name in measured if name not in known and (everything or not known))]
    lines = [
        Line(
            finding.runs[0], "", (basis(row.basis), row.prompt),
            tuple(
                cell(finding, row.measures.get(name), f"{row.key}/{name}", kind_of(name), digits=digits_of(name))
                for name in order
            ),
        )
        for row in found.rows
    ]  # fmt: skip
    heads = tuple(map(head, order))
    return named(PartTable("prompts", "Under each prompt", HINTS["prompts"], ("Cues", "Prompt"), heads, tuple(lines)))


def _choices(finding: Finding, found: Prompts, everything: bool) -> PartTable:
    lines = []
    for choice in found.choices:
        first, second = choice.halves
        picked = first if first == second else f"{first}, {second}"
        for name in (n for n in choice.fair if everything or n in choice.by):
            key, digits = f"{choice.key}/{name}", digits_of(name)
            cells = (
                cell(finding, choice.fair[name], key, kind_of(name), digits=digits, small=picked),
                cell(finding, choice.in_sample[name], key, kind_of(name), digits=digits, small=choice.overall),
                cell(finding, choice.optimism[name], key, kind_of(name, difference=True), digits=digits),
            )
            by = " and ".join(map(short, choice.by))
            lines.append(Line(finding.runs[0], "", (basis(choice.basis), by, short(name)), cells))
    heads = ("Chosen fairly", "Chosen on what is shown", "Flattered by")
    names = ("Cues", "Best by", "Measure")
    return named(PartTable("choice", "The best prompt", HINTS["choice"], names, heads, tuple(lines)))


def _failures(finding: Finding, found: Prompts, everything: bool) -> PartTable:
    happened = {kind for row in found.failures for kind, e in row.kinds.items() if e.value or everything}
    kinds = [kind for kind in KINDS if kind in happened]
    lines = []
    for row in found.failures:
        names = (basis(row.basis), row.prompt, TASKS.get(row.task, row.task))
        cells: tuple[Cell, ...] = tuple(cell(finding, row.kinds.get(kind), f"{row.key}/{kind}") for kind in kinds)
        if kinds:
            lines.append(Line(finding.runs[0], "", names, cells))
    heads = tuple(f"{KINDS[kind].capitalize()} ↓ · %" for kind in kinds)
    names = ("Cues", "Prompt", "Of the")
    return named(PartTable("failures", "Instructions not kept", HINTS["failures"], names, heads, tuple(lines)))
