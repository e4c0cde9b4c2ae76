"""Absolute category rating: one reply per screen, rated on the scales and anchors of rubrics."""

from __future__ import annotations

from collections.abc import Sequence

from overtone.errors import UsageError
from overtone.judges.rubric import Rubric
from overtone.studio.designs import REMARK, Answered, Design, LabelRow, Spread, Unit, label_cells, note, sound_cell
from overtone.studio.fields import AnyField, Value, of_dimension
from overtone.studio.replies import RunReplies
from overtone.studio.study import Study


def units(study: Study, runs: Sequence[RunReplies]) -> list[Unit]:
    """Return one unit per spoken reply."""
    return [Unit(reply.id, reply.group, run.name, (reply,)) for run in runs for reply in run.replies]


def check_rubric(rubric: Rubric) -> None:
    """Raise UsageError unless the rubric rates single replies."""
    if rubric.subject != "reply":
        raise UsageError(f"the rubric {rubric.name} judges a {rubric.subject}; acr rates single replies, e.g. echomind")


def fields(rubrics: Sequence[Rubric], study: Study) -> tuple[AnyField, ...]:
    """Return the rubrics' questions. Those of a rubric that hears the reply come before the words are shown."""
    order = sorted(rubrics, key=lambda rubric: "reply" not in rubric.hears)
    return tuple(of_dimension(d, "voice" if "reply" in r.hears else "words") for r in order for d in r.dimensions)


def gold(fields: Sequence[AnyField], rubrics: Sequence[Rubric], reversed_side: int) -> dict[str, list[Value]]:
    """Return the right answers about speech that is played backwards: the lowest and the second lowest step of a
    scale."""
    known = {d.key: d for rubric in rubrics for d in rubric.dimensions}
    right: dict[str, list[Value]] = {}
    for field in fields:
        dimension = known[field.key]
        numbers = [dimension.number(answer) for answer in dimension.menu]
        if dimension.better == "neither" or len(set(numbers)) < len(numbers):  # no answer is the worst
            continue
        menu = sorted(dimension.menu, key=dimension.number, reverse=dimension.better == "lower")
        right[field.key] = list(menu[: 2 if len(menu) > 3 else 1])
    return right


def labels(answered: Answered, study: Study) -> list[LabelRow]:
    """Return one label per question, for the run of the reply."""
    (reply,) = answered.unit.replies
    about = {**label_cells(reply, answered.rater), "system": reply.run, **reply.texts}
    sound = {"reply_sound": sound_cell(reply), **note(answered)}
    return [
        LabelRow(reply.run, "labels", {**about, **sound, "dimension": key, "value": value})
        for key, value in answered.values.items()
        if key != REMARK
    ]


DESIGN = Design(
    summary="rate each reply on the scales of rubrics",
    noun="replies",
    layout="single",
    sides=("reply",),
    rubric="echomind",
    most_rubrics=100,
    spread=Spread(item=0.6, rater=0.3, error=0.85, span=4, unit="points"),
    units=units,
    check_rubric=check_rubric,
    fields=fields,
    gold=gold,
    labels=labels,
)
