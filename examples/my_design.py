"""Say whether a reply helps, and how sure one is: one question and one slider per reply."""

from collections.abc import Sequence

from overtone.judges.rubric import Rubric
from overtone.studio import designs
from overtone.studio.designs import Answered, Design, LabelRow, Spread, Unit
from overtone.studio.fields import AnyField, Choice, Slider, Value
from overtone.studio.replies import RunReplies
from overtone.studio.study import Study

ROOM = "designs"


def units(study: Study, runs: Sequence[RunReplies]) -> list[Unit]:
    """Return one unit per reply. A person meets each script once."""
    return [Unit(reply.id, reply.group, run.name, (reply,)) for run in runs for reply in run.replies]


def fields(rubrics: Sequence[Rubric], study: Study) -> tuple[AnyField, ...]:
    """Return the controls of a screen."""
    options = {"yes": "It helps", "no": "It does not help"}
    return (
        Choice(key="helps", label="Help", question="Does the reply help this user?", options=options),
        Slider(key="sure", label="Certainty", question="How sure are you?", low=0, high=100, ends=("not", "fully")),
    )


def gold(fields: Sequence[AnyField], rubrics: Sequence[Rubric], reversed_side: int) -> dict[str, list[Value]]:
    """Return the right answer about a reply that is played backwards."""
    return {"helps": ["no"]}


def labels(answered: Answered, study: Study) -> list[LabelRow]:
    """Return one label per question."""
    (reply,) = answered.unit.replies
    about = {**designs.label_cells(reply, answered.rater), "system": reply.run, **designs.note(answered)}
    given = {key: value for key, value in answered.values.items() if key != designs.REMARK}
    return [LabelRow(reply.run, "labels", {**about, "dimension": key, "value": value}) for key, value in given.items()]


DESIGN = Design(
    summary="say whether a reply helps, and how sure one is",
    noun="replies",
    layout="single",
    sides=("reply",),
    units=units,
    fields=fields,
    gold=gold,
    labels=labels,
    spread=Spread(item=0.25, rater=0.15, error=0.4, span=1, unit="of the replies"),
)
