"""A/B: two runs' replies to the same clip, in balanced order, with room for "both" and "cannot tell"."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from overtone.errors import UsageError
from overtone.judges.rubric import Rubric
from overtone.studio.designs import REMARK, Answered, Design, LabelRow, Spread, Unit, pair_cells, votes
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


def units(study: Study, runs: Sequence[RunReplies]) -> list[Unit]:
    """Return one unit for each pair of runs and each request that both runs answered."""
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
        raise UsageError(
            f"the rubric {rubric.name} does not choose between two replies; use one that does, such as pair-voice"
        )


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
    """Return the right answers if one side is played backwards: the other side, or that both are bad."""
    return {fields[0].key: ["BA"[reversed_side], "both_bad"]}


def labels(answered: Answered, study: Study) -> list[LabelRow]:
    """Return a label for the first run and a vote for both runs; nothing for "cannot tell", which is a missing
    answer."""
    key, chosen = next((key, value) for key, value in answered.values.items() if key not in ("reasons", REMARK))
    if chosen == "cannot_tell":
        return []
    first, _ = answered.unit.replies
    if answered.swap:
        chosen = {"A": "B", "B": "A"}.get(str(chosen), chosen)
    winner = "tie" if chosen in TIES else str(chosen)
    label = LabelRow(first.run, "labels", {**pair_cells(answered), "dimension": key, "value": winner})
    reasons = answered.values.get("reasons")
    why = {"reasons": " ".join(reasons)} if isinstance(reasons, list) and reasons else {}
    return [label, *votes(answered, winner, {"answer": chosen, **why})]


DESIGN = Design(
    summary="choose between two runs' replies to the same clip",
    noun="pairs",
    layout="pair",
    sides=("A", "B"),
    runs=2,
    rubric="pair-voice",
    most_rubrics=1,
    # of a vote worth 1 for A, −1 for B and 0 for a tie, so that the mean is the lead that results show
    spread=Spread(
        item=0.6,
        rater=0.16,
        error=0.6,
        span=2,
        unit="share of the votes for one minus share for the other",
        paired=True,
    ),
    units=units,
    check_rubric=check_rubric,
    fields=fields,
    gold=gold,
    labels=labels,
)
