"""Label Studio's JSON: a list of tasks, each with `data` and `annotations`, each with a list of results.

A result names its control (`from_name`: our question), what it is about (`to_name`: "reply"), its type and its value.
Annotations made there come back through `read`. A task keeps the unit's id in its data, which is all that is needed to
find it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from overtone.errors import DataError
from overtone.judges import rubric as rubrics
from overtone.paths import read_plain, shown
from overtone.studio import designs, fields
from overtone.studio.designs import REMARK, Unit
from overtone.studio.fields import AnyField, Choice, Scale, Slider, Tags, Value
from overtone.studio.labels.given import Given
from overtone.studio.study import Study

LARGEST = 512 * 1024 * 1024
ABOUT = "reply"  # the name of the object tag in the labelling interface
UNIT = "overtone_unit"
SWAP = "overtone_second_first"


class Annotated(Struct, frozen=True):
    """One annotation of one unit. `person` identifies the annotator in the file."""

    person: str
    unit: str
    values: dict[str, Value]
    swap: bool
    where: str


def tasks(study: Study, given: Sequence[Given]) -> list[dict[str, Any]]:
    """Return one task per unit and order on the screen, with an annotation per answer."""
    asked = {field.key: field for field in _fields(study)}
    made: dict[tuple[str, bool], dict[str, Any]] = {}
    for one in given:
        if one.kind != "real":
            continue
        key = one.unit.id, one.swap
        task = made.setdefault(key, {"id": len(made) + 1, "data": _data(one.unit, one.swap), "annotations": []})
        results = [_result(asked.get(name), name, value, one) for name, value in one.values.items()]
        task["annotations"].append(
            {
                "result": results, "was_cancelled": False, "ground_truth": False, "lead_time": one.ms / 1000,
                "created_at": f"{one.date}T00:00:00Z", "meta": {"rater": one.rater, "usable": one.usable},
            }
        )  # fmt: skip
    return list(made.values())


def _fields(study: Study) -> tuple[AnyField, ...]:
    return designs.find(study.design).fields([rubrics.load(name) for name in study.rubrics], study)


def _data(unit: Unit, swap: bool) -> dict[str, Any]:
    sounds = {f"audio_{at}": reply.sound.path for at, reply in enumerate(unit.replies, 1)}
    texts = {name: text for name, text in designs.texts(unit).items() if text}
    return {UNIT: unit.id, SWAP: swap, "group": unit.group, **sounds, **texts}


def _result(field: AnyField | None, name: str, value: Value, one: Given) -> dict[str, Any]:
    kind, content = _value(field, value)
    return {"id": f"{one.slot}-{name}"[:60], "from_name": name, "to_name": ABOUT, "type": kind, "value": content}


def _value(field: AnyField | None, value: Value) -> tuple[str, dict[str, Any]]:
    """Return the type and the value of a result: a rating begins at 1 there, so other scales are numbers."""
    match field:
        case Scale() if field.low == 1:
            return "rating", {"rating": value}
        case Scale() | Slider():
            return "number", {"number": value}
        case Choice():
            return "choices", {"choices": [value]}
        case Tags():
            return "choices", {"choices": value}
    return "textarea", {"text": [str(value)]}


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def read(path: Path, study: Study, units: Mapping[str, Unit]) -> list[Annotated]:
    """Read annotations that were made in Label Studio. Raises DataError with the task that is wrong.

    Tasks need the unit's id in their data, as exports have it. Skipped ("cancelled") annotations are left out.
    """
    where = shown(str(path))
    try:
        found = msgspec.json.decode(read_plain(path, LARGEST), type=list[dict[str, Any]])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise DataError(f"{where}: is not a JSON list of tasks ({error}); export JSON from Label Studio") from None
    asked = {field.key: field for field in _fields(study)}
    made = [one for at, task in enumerate(found, 1) for one in _task(f"{where}, task {at}", task, asked, units)]
    if not made:
        raise DataError(f"{where}: has no annotation of a unit of this study")
    return made


def _task(
    where: str, task: Mapping[str, Any], asked: Mapping[str, AnyField], units: Mapping[str, Unit]
) -> Iterator[Annotated]:
    data, annotations = task.get("data"), task.get("annotations") or []
    unit = data.get(UNIT) if isinstance(data, dict) else None
    if not isinstance(unit, str) or unit not in units:
        raise DataError(
            f"{where}: its data has no {UNIT} of this study; make the tasks with 'overtone studio export STUDY "
            "--format label-studio'"
        )
    if not isinstance(annotations, list):
        raise DataError(f"{where}: annotations is not a list")
    for annotation in annotations:
        if not isinstance(annotation, dict) or not isinstance(annotation.get("result"), list):
            raise DataError(f"{where}: an annotation has no list of results")
        if annotation.get("was_cancelled"):
            continue
        values = dict(_answers(where, annotation["result"], asked))
        missing = [key for key, field in asked.items() if field.required and not field.styles and key not in values]
        if missing:
            raise DataError(f"{where}: an annotation has no answer to {', '.join(missing)}")
        yield Annotated(_person(annotation), unit, values, bool(data.get(SWAP)), where)  # type: ignore[union-attr]


def _person(annotation: Mapping[str, Any]) -> str:
    """Return what identifies an annotator: our pseudonym, or Label Studio's user (a number, or an object)."""
    meta, by = annotation.get("meta"), annotation.get("completed_by")
    if isinstance(meta, dict) and isinstance(meta.get("rater"), str):
        return str(meta["rater"])
    return str(by.get("id") or by.get("email") or "") if isinstance(by, dict) else str(by or "")


def _answers(where: str, results: Sequence[Any], asked: Mapping[str, AnyField]) -> Iterator[tuple[str, Value]]:
    for result in results:
        if not isinstance(result, dict) or not isinstance(result.get("value"), dict):
            raise DataError(f"{where}: a result has no value")
        key, kind, content = str(result.get("from_name")), str(result.get("type")), result["value"]
        value = content.get({"textarea": "text"}.get(kind, kind))
        if key == REMARK:
            continue  # a remark may name somebody, and nobody here asked for it
        if key not in asked:
            raise DataError(f"{where}: the study has no question {shown(key)!r}; its questions are {', '.join(asked)}")
        if isinstance(value, list) and not isinstance(asked[key], Tags):
            value = value[0] if len(value) == 1 else None
        try:
            yield key, fields.check(asked[key], value)
        except DataError as error:
            raise DataError(f"{where}: {error}") from None
