"""A/B: two runs' replies to the same clip, in balanced order, with room for "both" and "cannot tell"."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from overtone.errors import UsageError
from overtone.judges.rubric import Rubric
from overtone.studio.designs import Answered, Design, LabelRow, Unit, label_cells
from overtone.studio.fields import AnyField, Choice, Tags, Value
from overtone.studio.replies import RunReplies
from overtone.studio.study import Study

OPTIONS = {
    "A": "A is better",
    "B": "B is better",
    "both_good": "Both are good",
    "both_bad": "Both are bad",
    "cannot_tell": "I cannot tell",
}
REASONS = {"understood": "how well the user was understood", "content": "what was said", "voice": "how it was said"}
TIES = ("both_good", "both_bad")  # ties in a ranking; "cannot tell" is missing


def units(runs: Sequence[RunReplies]) -> list[Unit]:
    """Return one unit per pair of runs and request that both answered."""
    pairs = []
    for one, other in itertools.combinations(runs, 2):
        by_key = {reply.key: reply for reply in other.replies}
        for reply in one.replies:
            if (match := by_key.get(reply.key)) is not None:
                pairs.append(Unit(reply.id + match.id, reply.group, f"{one.name}|{other.name}", (reply, match)))
    return pairs


def check_rubric(rubric: Rubric) -> None:
    """Raise UsageError for a rubric that does not compare two replies with one question."""
    if rubric.subject != "pair" or len(rubric.dimensions) > 1 or not {"A", "B"} <= set(rubric.dimensions[0].choices):
        raise UsageError(f"the rubric {rubric.name} does not choose between two replies; ab needs pair or pair-voice")


def fields(rubrics: Sequence[Rubric], study: Study) -> tuple[AnyField, ...]:
    """Return the rubric's question with our answers and, if the study asks for them, reasons."""
    dimension = rubrics[0].dimensions[0]
    asked: list[AnyField] = [
        Choice(key=dimension.key, label=dimension.label, question=dimension.question, options=OPTIONS)
    ]
    if study.reasons:
        question = "What decided? Choose all that apply."
        asked.append(Tags(key="reasons", label="Reasons", question=question, options=REASONS, required=False))
    return tuple(asked)


def gold(fields: Sequence[AnyField], rubrics: Sequence[Rubric], reversed_side: int) -> dict[str, list[Value]]:
    """Return the right answers if one side is played backwards: the other one, or that both are bad."""
    return {fields[0].key: ["BA"[reversed_side], "both_bad"]}


def labels(answered: Answered) -> list[LabelRow]:
    """Return a label for the first run and a vote for both runs. "Cannot tell" is a missing answer and gives none."""
    key, chosen = next(iter(answered.values.items()))
    if chosen == "cannot_tell":
        return []
    first, second = answered.unit.replies
    winner = "tie" if chosen in TIES else str(chosen)
    if answered.swap and winner in ("A", "B"):
        winner = {"A": "B", "B": "A"}[winner]
    about = label_cells(first, answered.rater)
    systems = {"system_a": first.run, "system_b": second.run}
    words = {name: first.texts[name] for name in ("cue", "topic", "words")}
    replies = {"reply_a": first.texts["reply"], "reply_b": second.texts["reply"]}
    label = LabelRow(first.run, "labels", {**about, **systems, **words, **replies, "dimension": key, "value": winner})
    vote = {"case": first.item, "condition": first.condition, "group": first.group, "a": first.run, "b": second.run}
    cast = {**vote, "winner": winner, "rater": answered.rater, "answer": chosen, "second_first": int(answered.swap)}
    return [label, *(LabelRow(run, "votes", cast) for run in (first.run, second.run))]


DESIGN = Design(
    summary="choose between two runs' replies to the same clip",
    sides=("A", "B"),
    runs=2,
    rubric="pair-voice",
    units=units,
    check_rubric=check_rubric,
    fields=fields,
    gold=gold,
    labels=labels,
)
