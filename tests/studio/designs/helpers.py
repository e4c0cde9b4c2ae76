"""Replies, units and studies that need no files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from overtone.judges.rubric import load
from overtone.studio import designs
from overtone.studio.designs import Answered, LabelRow, Unit
from overtone.studio.fields import AnyField, Value
from overtone.studio.replies import RunReplies, Sound, SpokenReply, UserClip
from overtone.studio.study import Database, People, Source, Study


def sound(name: str) -> Sound:
    return Sound(f"{name}.wav", name.ljust(64, "0"))


def reply(run: str, script: int = 1, **more: Any) -> SpokenReply:
    texts = {"cue": "a voice full of sadness", "topic": "work", "words": "I lost my job.", "reply": f"{run} replies."}
    own = f"{run}{script}"
    return SpokenReply(
        run, f"toy/s{script}/target", "enhance/audio", 0, f"s{script}", "target", texts, sound(own),
        sound(f"clip{script}"), **more,
    )  # fmt: skip


def run_of(name: str, scripts: int = 3, **more: Any) -> RunReplies:
    return RunReplies(name, Path(name), tuple(reply(name, number, **more) for number in range(scripts)), 0, "toy")


def clips_of(name: str, *cues: str) -> RunReplies:
    made = tuple(
        UserClip(f"toy/s{number}/target", f"s{number}", "target", cue, "Hello.", "en", f"{number}.wav", sound(cue))
        for number, cue in enumerate(cues)
    )
    return RunReplies(name, Path(name), (), 0, "toy", clips=made)


def study_of(design: str, *runs: str, **more: Any) -> Study:
    kind = designs.find(design)
    rubrics = (kind.rubric,) if kind.rubric else ()
    values: dict[str, Any] = {"rubrics": rubrics, **more}
    return Study(
        id="a1b2c3d4e5f6", title="T", design=design, raters=20, session=4, votes=3, people=People(consent="Yes."),
        store=Database(url="sqlite:s.db"), sources=tuple(Source(name=run, path=run, gain_db=-3.0) for run in runs),
        **values,
    )  # fmt: skip


def units_of(study: Study, *sources: RunReplies) -> list[Unit]:
    return designs.find(study.design).units(study, sources)


def fields_of(study: Study) -> tuple[AnyField, ...]:
    return designs.find(study.design).fields([load(name) for name in study.rubrics], study)


def gold_of(study: Study, side: int) -> dict[str, list[Value]]:
    return designs.find(study.design).gold(fields_of(study), [load(name) for name in study.rubrics], side)


def labels_of(
    study: Study, unit: Unit, values: dict[str, Value], *, rater: str = "k3f9", swap: bool = False, slot: str = ""
) -> list[LabelRow]:
    return designs.find(study.design).labels(Answered(rater, unit, values, swap, slot), study)


def values_of(rows: list[LabelRow], kind: str = "labels") -> dict[str, Any]:
    """The labels' values by dimension."""
    return {row.cells["dimension"]: row.cells["value"] for row in rows if row.kind == kind}
