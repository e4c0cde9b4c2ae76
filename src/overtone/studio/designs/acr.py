"""Absolute category rating: one reply per screen, rated on the scales and anchors of rubrics."""

from __future__ import annotations

from collections.abc import Sequence

from overtone.errors import UsageError
from overtone.judges.rubric import Rubric
from overtone.studio.designs import Answered, Design, LabelRow, Unit, label_cells
from overtone.studio.fields import AnyField, Value, of_dimension
from overtone.studio.replies import RunReplies
from overtone.studio.study import Study


def units(runs: Sequence[RunReplies]) -> list[Unit]:
    """Return one unit per spoken reply."""
    return [Unit(reply.id, reply.group, run.name, (reply,)) for run in runs for reply in run.replies]


def check_rubric(rubric: Rubric) -> None:
    """Raise UsageError for a rubric that does not rate single replies."""
    if rubric.subject != "reply":
        raise UsageError(f"the rubric {rubric.name} judges a {rubric.subject}; acr rates single replies, e.g. echomind")


def fields(rubrics: Sequence[Rubric], study: Study) -> tuple[AnyField, ...]:
    """Return the rubrics' questions. Those of a rubric that hears the reply come before the words are shown."""
    order = sorted(rubrics, key=lambda rubric: "reply" not in rubric.hears)
    return tuple(of_dimension(d, "voice" if "reply" in r.hears else "words") for r in order for d in r.dimensions)


def gold(fields: Sequence[AnyField], rubrics: Sequence[Rubric], reversed_side: int) -> dict[str, list[Value]]:
    """Return the right answers about speech played backwards: the worst, and the next one on a scale."""
    known = {d.key: d for rubric in rubrics for d in rubric.dimensions}
    right: dict[str, list[Value]] = {}
    for field in fields:
        dimension = known[field.key]
        if dimension.better == "neither":
            continue
        menu = sorted(dimension.menu, key=dimension.number, reverse=dimension.better == "lower")
        right[field.key] = list(menu[: 2 if len(menu) > 3 else 1])
    return right


def labels(answered: Answered) -> list[LabelRow]:
    """Return one label per question, for the run of the reply."""
    (reply,) = answered.unit.replies
    about = {**label_cells(reply, answered.rater), "system": reply.run, **reply.texts}
    sound = {"reply_sound": f"audio/{reply.sound.sha256[:2]}/{reply.sound.sha256}.wav"}
    return [
        LabelRow(reply.run, "labels", {**about, **sound, "dimension": key, "value": value})
        for key, value in answered.values.items()
    ]


DESIGN = Design(
    summary="rate each reply on the scales of rubrics",
    sides=("reply",),
    runs=1,
    rubric="echomind",
    units=units,
    check_rubric=check_rubric,
    fields=fields,
    gold=gold,
    labels=labels,
)
