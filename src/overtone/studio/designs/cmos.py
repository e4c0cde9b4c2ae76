"""Comparison (CMOS, CCR of ITU-T P.800): how much better is the second reply than the first, from -3 to +3.

The order is random and stored. A label's number is about the unit's order, not the screen's: positive if the second
run's reply is better.
"""

from __future__ import annotations

from collections.abc import Sequence

from overtone.judges.rubric import Rubric
from overtone.studio.designs import Answered, Design, LabelRow, Spread, Unit, ab, pair_cells, votes
from overtone.studio.fields import AnyField, Scale, Value
from overtone.studio.replies import RunReplies
from overtone.studio.study import Study

ANCHORS = {
    "-3": "B is much worse",
    "-2": "B is worse",
    "-1": "B is slightly worse",
    "0": "about the same",
    "1": "B is slightly better",
    "2": "B is better",
    "3": "B is much better",
}
QUESTION = "Compared with A, how good is B?"
KEY = "cmos"


def units(study: Study, runs: Sequence[RunReplies]) -> list[Unit]:
    """Return one unit for each pair of runs and each request that both runs answered."""
    return ab.units(study, runs)


def fields(rubrics: Sequence[Rubric], study: Study) -> tuple[AnyField, ...]:
    """Return the scale, with the question of the rubric if there is one."""
    asked = QUESTION
    if rubrics:
        asked = f"{rubrics[0].dimensions[0].question} {QUESTION}"
    return (Scale(key=KEY, label="Comparison", question=asked, stage="voice", low=-3, high=3, anchors=ANCHORS),)


def gold(fields: Sequence[AnyField], rubrics: Sequence[Rubric], reversed_side: int) -> dict[str, list[Value]]:
    """Return the right answers if one side is played backwards: the other one is better or much better."""
    return {KEY: [-2, -3] if reversed_side else [2, 3]}


def labels(answered: Answered, study: Study) -> list[LabelRow]:
    """Return a label for the first run and a vote for both runs, with the sign of the unit's order."""
    first, _ = answered.unit.replies
    given = int(answered.values[KEY])  # type: ignore[arg-type]
    value = -given if answered.swap else given
    winner = "B" if value > 0 else "A" if value < 0 else "tie"
    label = LabelRow(first.run, "labels", {**pair_cells(answered), "dimension": KEY, "value": value})
    return [label, *votes(answered, winner, {"answer": value})]


DESIGN = Design(
    summary="say how much better one of two replies is",
    noun="pairs",
    layout="pair",
    sides=("A", "B"),
    runs=2,
    most_rubrics=1,
    spread=Spread(item=0.8, rater=0.3, error=1.0, span=6, unit="points", paired=True),
    units=units,
    check_rubric=ab.check_rubric,
    fields=fields,
    gold=gold,
    labels=labels,
)
