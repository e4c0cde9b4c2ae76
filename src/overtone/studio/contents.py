"""The contents of a study: its design, rubrics, fields and units, read once from the study file and its sources."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from overtone.cues import cues_in
from overtone.judges import rubric as rubrics
from overtone.judges.rubric import Rubric
from overtone.studio import designs, replies, user_clips
from overtone.studio.designs import Design, Played, Unit
from overtone.studio.fields import AnyField, Choice, Field, Stage, Text
from overtone.studio.replies import RunReplies
from overtone.studio.study import SourceKind, Study

REMARK = Text(key=designs.REMARK, label="Remark", question="Do you want to add something?", required=False)


class ScreenStage(Struct, frozen=True):
    """One part of a screen: texts that appear with it, and its questions."""

    name: Stage
    reveal: dict[str, str]
    fields: tuple[AnyField, ...]


class Contents(Struct, frozen=True):
    """The contents of a study. `fields` are all questions of the study; `fields_of` those about one unit.

    A free remark (REMARK) is not one of them: a screen has it if `study.remark` is true.
    """

    study: Study
    design: Design
    rubrics: tuple[Rubric, ...]
    fields: tuple[AnyField, ...]
    units: tuple[Unit, ...]

    @property
    def question_groups(self) -> int:
        """The number of groups of people that get different questions: 1, or the number of rated questions."""
        return len(_rated(self.fields)) if self.study.one_question_per_person else 1

    def fields_of(self, unit: Unit | None = None, question_group: int = 0) -> tuple[AnyField, ...]:
        """Return the questions that people of a group get about a unit. Without a unit, return those about any unit."""
        asked = self.fields
        if self.study.one_question_per_person:
            rated = _rated(asked)
            one = rated[question_group % len(rated)]
            asked = tuple(field for field in asked if field == one or field not in rated)
        return asked if unit is None else tuple(field for field in asked if _applies(field, unit))

    def stages(
        self, unit: Unit, *, question_group: int = 0, swap: bool = False, slot: str = ""
    ) -> tuple[ScreenStage, ...]:
        """Return the parts of a screen: questions about the voice come before the words of the reply are shown."""
        fields = self.fields_of(unit, question_group)
        words = designs.words(self.design, unit, swap=swap, slot=slot) if "reply" in self.study.shows else {}
        parts = (
            ScreenStage("voice", {}, tuple(field for field in fields if field.stage == "voice")),
            ScreenStage("words", words, tuple(field for field in fields if field.stage == "words")),
        )
        return tuple(part for part in parts if part.fields)

    def context_texts(self, unit: Unit) -> dict[str, str]:
        """Return the texts that are shown from the beginning. The words of the reply are not among them."""
        texts = designs.texts(unit)
        own = self.design.layout in ("record", "review")
        shown = [name for name in texts if own or (name in self.study.shows and name != "reply")]
        return {name: texts[name] for name in shown if texts[name]}

    def played(self, unit: Unit, *, swap: bool = False, slot: str = "") -> tuple[Played, ...]:
        """Return the sounds of a screen in the order of the page, the user's clip first."""
        return designs.played(self.design, unit, self.study, swap=swap, slot=slot)

    def may_skip(self, unit: Unit) -> bool:
        """Return whether a person may skip this unit without loss of pay, because of the cues in its clip."""
        named = {*cues_in(designs.texts(unit).get("cue", "")), unit.cells.get("cue", "")}
        return bool(named & set(self.study.care.skippable))


def read(study: Study) -> Contents:
    """Read the contents of a study. Raises UsageError, DataError or StoreError for sources that cannot be used."""
    design = designs.find(study.design)
    asked = tuple(rubrics.load(name) for name in study.rubrics)
    designs.check_rubrics(study.design, asked)
    fields = design.fields(asked, study)
    units = chosen(askable(design.units(study, read_sources(study)), fields, study), study)
    return Contents(study, design, asked, fields, units)


def read_sources(study: Study) -> list[RunReplies]:
    """Return the study's runs and sets, with their replies or clips. Scripts are read by their designs."""
    return [read_source(study, one.kind, study.folder(one), one.name) for one in study.sources if one.kind != "scripts"]


def read_source(study: Study, kind: SourceKind, folder: Path, name: str = "") -> RunReplies:
    """Read the replies or clips of one run or set."""
    if study.of == "replies":
        return replies.read(folder, name)
    return user_clips.read(folder, name) if kind == "set" else user_clips.of_run(folder, name)


def askable(units: Sequence[Unit], fields: Sequence[AnyField], study: Study) -> list[Unit]:
    """Return the units about which something is asked. A rubric may ask only about clips of some styles.

    With one question per person, all questions must apply, because anyone may get the unit.
    """
    rated = _rated(fields)
    enough = all if study.one_question_per_person else any
    return [unit for unit in units if not rated or enough(_applies(field, unit) for field in rated)]


def chosen(units: Sequence[Unit], study: Study) -> tuple[Unit, ...]:
    """Return the study's units: all, or the number in the study file.

    In the second case, whole scripts are drawn with the study's seed, so that every system keeps the same scripts.
    """
    if not study.units or study.units >= len(units):
        return tuple(units)

    def place(unit: Unit) -> bytes:
        return hashlib.sha256(f"{study.seed}/{unit.group}".encode()).digest()

    return tuple(sorted(units, key=place)[: study.units])


def qualification(study: Study) -> tuple[Choice, ...]:
    """Return the qualification questions, which come before the first rating, as controls."""
    return tuple(
        Choice(key=one.key, label=one.key, question=one.question, options=one.options)
        for one in study.qualification.questions
    )


def _applies(field: Field, unit: Unit) -> bool:
    style = designs.style(unit)
    return not field.styles or not style or style in field.styles


def _rated(fields: Sequence[AnyField]) -> list[Field]:
    """Return the questions that one-question-per-person divides: those that must be answered."""
    return [field for field in fields if field.required]
