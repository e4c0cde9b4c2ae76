"""Answers as labels of the runs' replies, and the description of the study that the runs keep with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from overtone.judges import rubric as rubrics
from overtone.judges.rubric import Dimension
from overtone.runs.people_labels import LabelStudy, Question, Seen, Value
from overtone.studio import designs
from overtone.studio.designs import LabelRow, label, mushra, transcribe
from overtone.studio.fields import AnyField, Choice, Scale, Slider, Tags
from overtone.studio.labels.given import Given
from overtone.studio.replies import SpokenReply
from overtone.studio.study import Study

TIES = ("both_good", "both_bad")
CANNOT_TELL = "cannot_tell"
PAIR = {"A": 1.0, "both_good": 0.5, "both_bad": 0.5, "B": 0.0}  # cannot_tell has no number: it is missing

HEARD = "What one hears"
YES_NO = {"yes": 1.0, "no": 0.0}


class Draft(Struct, frozen=True, kw_only=True):
    """A label whose reply is identified by its request, because the run is not open yet."""

    run: str
    item: str
    condition: str
    repeat: int
    sound: str  # SHA-256 of what people heard; "" for a clip
    unit: str
    rater: str
    dimension: str
    value: Value
    usable: bool
    at: str
    seen: Seen


def label_study(study: Study) -> LabelStudy:
    """Return the description of a study that its runs store, so that labels can be read without the study file or a
    rubric."""
    design = designs.find(study.design)
    asked = [rubrics.load(name) for name in study.rubrics]
    known = {d.key: (d, one.identity) for one in asked for d in one.dimensions}
    questions = dict(_derived(study))
    for field in design.fields(asked, study):
        dimension, identity = known.get(field.key, (None, ""))
        if (question := _question(field, dimension, identity)) is not None:
            questions.setdefault(field.key, question)
    return LabelStudy(
        id=study.id, title=study.title, design=study.design, questions=questions, shows=study.shows,
        systems=tuple(source.name for source in study.sources),
    )  # fmt: skip


def _derived(study: Study) -> Iterator[tuple[str, Question]]:
    """Yield the dimensions that a design makes of the answers, instead of those that it asks."""
    if study.design == "mushra":
        yield mushra.DIMENSION, Question(label="MUSHRA", question=mushra.QUESTION, low=0, high=100)
    elif study.design == "transcribe":
        question = "Word error rate of what people typed"
        yield transcribe.ERRORS, Question(label="WER by people", question=question, low=0, better="lower")
    elif study.design == "label":
        for slug in (*label.offered(study), label.NONE):
            yield (
                f"{label.HEARD}_{slug}",
                Question(label=HEARD, values=YES_NO, choices=tuple(YES_NO), cue=slug, better="neither"),
            )


def _question(field: AnyField, dimension: Dimension | None, identity: str) -> Question | None:
    """Describe a question; None for free text, which may name people and stays in the study."""
    better = dimension.better if dimension is not None else "neither"
    asked = Question(label=field.label, question=field.question, rubric=identity, better=better)
    match field:
        case Scale() | Slider():
            return replace(asked, low=field.low, high=field.high)
        case Choice() if {"A", "B"} <= field.options.keys():
            return replace(asked, values=PAIR, choices=tuple(field.options), better="neither")
        case Choice():
            values = dict(dimension.values) if dimension is not None else {}
            return replace(asked, values=values, choices=tuple(field.options))
        case Tags():
            return replace(asked, choices=tuple(field.options))
    return None


def drafts(study: Study, given: Sequence[Given]) -> dict[str, list[Draft]]:
    """Return run → labels. Repeated screens, gold questions, traps and free texts give no labels."""
    asked = set(label_study(study).questions)
    runs = [source.name for source in study.sources if source.kind == "run"]
    made: dict[str, list[Draft]] = {name: [] for name in runs}
    for one in given:
        if one.kind == "real":
            for draft in of_screen(study, one):
                if draft.dimension in asked and draft.run in made:
                    made[draft.run].append(draft)
    return made


def label_rows(study: Study, one: Given) -> list[LabelRow]:
    """Return the rows that the design makes of a person's answers."""
    return designs.find(study.design).labels(one.answered, study)


def of_screen(study: Study, one: Given) -> Iterator[Draft]:
    """Yield the labels of one screen, of whatever kind."""
    rows = [row for row in label_rows(study, one) if row.kind == "labels"]
    if designs.find(study.design).layout == "pair":
        yield from _of_pair(rows, one)
        return
    for row in rows:
        if one.unit.replies and row.cells.get("system", row.run) == row.run:  # not a hidden reference or an anchor
            reply = next((r for r in one.unit.replies if (r.run, r.item) == (row.run, row.cells["id"])), None)
            if reply is not None:
                yield _draft(one, reply, str(row.cells["dimension"]), row.cells["value"])
        elif not one.unit.replies and "id" in row.cells:
            yield _of_clip(row, one)


def _of_pair(rows: Sequence[LabelRow], one: Given) -> Iterator[Draft]:
    """Yield every answer about a pair twice: for each of its two runs. Sides are those of the unit, not the screen."""
    values: dict[str, Value] = {str(row.cells["dimension"]): row.cells["value"] for row in rows}
    for key, value in one.values.items():
        if isinstance(value, list) or value in (*TIES, CANNOT_TELL):  # the same from both sides
            values[key] = value
    for side, reply, other in zip("AB", one.unit.replies, one.unit.replies[::-1], strict=True):
        for key, value in values.items():
            yield _draft(one, reply, key, value, side=side, other=other)


def _draft(
    one: Given, reply: SpokenReply, dimension: str, value: Value, *, side: str = "", other: SpokenReply | None = None
) -> Draft:
    seen = Seen(
        order=one.seq, kind=one.kind, group=reply.group, style=reply.style, side=side, swap=one.swap,
        other=other.run if other else "", other_sound=other.sound.sha256 if other else "",
    )  # fmt: skip
    return Draft(
        run=reply.run, item=reply.item, condition=reply.condition, repeat=reply.repeat, sound=reply.sound.sha256,
        unit=one.unit.id, rater=one.rater, dimension=dimension, value=value, usable=one.usable, at=one.date, seen=seen,
    )  # fmt: skip


def _of_clip(row: LabelRow, one: Given) -> Draft:
    """Return a label of what the user said; in a run it is kept with the first request that plays the clip."""
    cells = row.cells
    seen = Seen(
        order=one.seq, kind=one.kind, group=one.unit.group, style=one.unit.style, swap=one.swap, clip=True,
    )  # fmt: skip
    return Draft(
        run=row.run, item=str(cells["id"]), condition="", repeat=0, sound="", unit=one.unit.id, rater=one.rater,
        dimension=str(cells["dimension"]), value=cells["value"], usable=one.usable, at=one.date, seen=seen,
    )  # fmt: skip
