"""Designs of studies, one file each. A file defines DESIGN; the registry finds it by the file's name. A plug-in is one
file too, with ROOM = "designs".

A design says what is asked (units made of the study's sources), with which controls, which sounds a screen plays, which
answers to a gold question are right, and how answers become labels. Pages, storage, assignment and export do not depend
on the design.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Literal

from msgspec import Struct

from overtone import registry
from overtone.errors import UsageError
from overtone.judges.rubric import Rubric
from overtone.studio.fields import AnyField, Value
from overtone.studio.replies import RunReplies, Sound, SpokenReply
from overtone.studio.study import SourceKind, Study

REMARK = "remark"  # key of the free remark, which becomes the column note of a label
Layout = Literal["single", "pair", "mushra", "record", "review"]
Process = Literal["", "lowpass-3500"]  # what the server does to a sound besides its gain


class Unit(Struct, frozen=True):
    """The subject of one screen: one reply, replies that are compared, or sounds and texts without replies.

    A person meets each `group` (script) at most once. `system` is what assignment is balanced over: a run, or runs
    joined by "|". A screen with `swap` plays the replies in reverse order. `sounds` and `texts` belong to designs
    without replies (record, review, labels of clips), or come in addition (the reference of a MUSHRA screen). `cells`
    are the columns that identify a unit without replies in its labels.
    """

    id: str
    group: str
    system: str
    replies: tuple[SpokenReply, ...] = ()
    sounds: dict[str, Sound] = {}
    texts: dict[str, str] = {}
    cells: dict[str, str] = {}
    sources: tuple[str, ...] = ()  # of a unit without replies: names of the sources that get its labels
    style: str = ""  # of a unit without replies
    language: str = ""  # BCP-47 tag of what is said


class Played(Struct, frozen=True):
    """A sound of a screen. `name` and `label` do not reveal its system.

    `gain_db` is one gain for all sounds of a system or set. If it is None, the server brings this sound to the common
    level.
    """

    name: str
    label: str
    sound: Sound
    gain_db: float | None
    process: Process = ""
    context: bool = False  # heard before the others, and not rated: what the user said


class Answered(Struct, frozen=True):
    """One person's newest answers about one unit. With `swap`, the second reply was the first on the screen.

    `slot` is the id of the person's place, from which the order of more than two sounds follows.
    """

    rater: str
    unit: Unit
    values: dict[str, Value]
    swap: bool = False
    slot: str = ""


class LabelRow(Struct, frozen=True):
    """A row for the file RUN/KIND-STUDY.csv of the source called `run`; `kind` is labels or votes."""

    run: str
    kind: str
    cells: dict[str, Any]


def no_gold(fields: Sequence[AnyField], rubrics: Sequence[Rubric], reversed_side: int) -> dict[str, list[Value]]:
    """Return no right answers, for a design without gold questions."""
    return {}


class Spread(Struct, frozen=True):
    """Assumed standard deviations of one answer, from which the precision of a new study is predicted.

    `item` is how much a system's standing differs from script to script, `rater` how much it differs from person to
    person, and `error` is the rest. They apply to a scale of width `span`, printed as `unit`. If `paired`, an answer is
    already a difference of two systems.
    """

    item: float
    rater: float
    error: float
    span: float
    unit: str
    paired: bool = False

    def on(self, span: float) -> Spread:
        """Convert the spread to a scale of another width."""
        factor = span / self.span
        return Spread(self.item * factor, self.rater * factor, self.error * factor, span, self.unit, self.paired)


class Design(Struct, frozen=True, kw_only=True):
    """One design; see the module. `gold` gets the fields of a screen and the place of the reply played backwards.

    `gold` returns {} if the design has no gold question. `played` gets the unit, the study, `swap` and the slot; None:
    the replies in the order of `order`, and the user's clip as context. `screened` gets all counted answers and returns
    rater → the reason why the design's own rule excludes that person.
    """

    summary: str
    noun: str  # of what a screen asks about, in the plural: replies, pairs, clips
    layout: Layout
    sides: tuple[str, ...]  # names of the sounds that a screen compares, in the order of the page
    units: Callable[[Study, Sequence[RunReplies]], list[Unit]]
    fields: Callable[[Sequence[Rubric], Study], tuple[AnyField, ...]]
    labels: Callable[[Answered, Study], list[LabelRow]]
    gold: Callable[[Sequence[AnyField], Sequence[Rubric], int], dict[str, list[Value]]] = no_gold
    played: Callable[[Unit, Study, bool, str], tuple[Played, ...]] | None = None
    screened: Callable[[Sequence[Answered], Study], dict[str, str]] | None = None
    check_rubric: Callable[[Rubric], None] | None = None  # None: the design takes no rubric
    rubric: str = ""  # the default; "": the design's own questions
    most_rubrics: int = 0
    spread: Spread | None = None  # None: the design does not compare systems
    replays: float = 1.0  # how often a sound is heard
    runs: int = 1  # the least number of sources
    kinds: tuple[SourceKind, ...] = ("run",)  # of sources


def find(name: str) -> Design:
    """Return the design with this name. Raises UsageError with the nearest name for an unknown one."""
    design: Design = registry.find("designs", name).DESIGN
    return design


def check_rubrics(name: str, rubrics: Sequence[Rubric]) -> None:
    """Raise UsageError if a design cannot ask the questions of these rubrics together."""
    design = find(name)
    if not rubrics and design.rubric:
        raise UsageError(f"the design {name} needs a rubric, e.g. {design.rubric}")
    if rubrics and design.check_rubric is None:
        raise UsageError(f"the design {name} has its own questions and takes no rubric")
    if len(rubrics) > design.most_rubrics:
        raise UsageError(f"the design {name} takes one rubric; there are {len(rubrics)}")
    keys: dict[str, str] = {}
    for rubric in rubrics:
        assert design.check_rubric is not None
        design.check_rubric(rubric)
        for dimension in rubric.dimensions:
            if (other := keys.setdefault(dimension.key, rubric.name)) != rubric.name:
                raise UsageError(f"the rubrics {other} and {rubric.name} both ask {dimension.key}; choose one of them")


def has_gold(design: Design, rubrics: Sequence[Rubric], study: Study) -> bool:
    """Return whether this study can ask about a sound that is played backwards, because the right answer is known."""
    return bool(design.gold(design.fields(rubrics, study), rubrics, 0))


def order(count: int, swap: bool, slot: str) -> tuple[int, ...]:
    """Return the index of the reply that is played at each place of a screen.

    `swap` exchanges two replies. More than two are shuffled by the id of the slot, so that the order can be computed
    wherever the id is known.
    """
    if count <= 2:
        return tuple(range(count))[:: -1 if swap else 1]
    return tuple(sorted(range(count), key=lambda place: hashlib.sha256(f"{slot}/{place}".encode()).digest()))


def played(design: Design, unit: Unit, study: Study, *, swap: bool = False, slot: str = "") -> tuple[Played, ...]:
    """Return the sounds of a screen in the order of the page."""
    if design.played is not None:
        return design.played(unit, study, swap, slot)
    places = order(len(unit.replies), swap, slot)
    rated = [(name, unit.replies[place]) for name, place in zip(design.sides, places, strict=True)]
    heard = [Played(name, name.capitalize(), reply.sound, gain_db(study, reply.run)) for name, reply in rated]
    return (*context(unit, study), *heard)


def gain_db(study: Study, source: str) -> float | None:
    """Return the gain of a source's sounds; None if each clip is brought to the common level by itself."""
    if study.loudness.per == "clip":
        return None
    gains = {one.name: one.gain_db for one in study.sources}
    return gains[source] if study.loudness.per == "system" else min(gains.values())


def context(unit: Unit, study: Study) -> tuple[Played, ...]:
    """Return the user's clip, if the study plays it and its file exists."""
    clip = unit.replies[0].clip if unit.replies else None
    if not study.play_clip or clip is None:
        return ()
    gain = None if study.loudness.per == "clip" else study.loudness.clips_gain_db
    return (Played("clip", "What the user said", clip, gain, context=True),)


def texts(unit: Unit) -> dict[str, str]:
    """Return the texts about a unit by name. Texts of compared replies are left out, because they belong to no side."""
    if len(unit.replies) == 1:
        return {**unit.replies[0].texts, **unit.texts}
    shared = {name: unit.replies[0].texts[name] for name in ("cue", "topic", "words")} if unit.replies else {}
    return {**shared, **unit.texts}


def words(design: Design, unit: Unit, *, swap: bool = False, slot: str = "") -> dict[str, str]:
    """Return the words of the replies on a screen, by the names of their sounds."""
    if design.played is not None or not unit.replies:
        return {}
    places = order(len(unit.replies), swap, slot)
    return {name: unit.replies[place].texts["reply"] for name, place in zip(design.sides, places, strict=True)}


def style(unit: Unit) -> str:
    """Return the style of the unit's clip, which decides which of a rubric's questions are asked."""
    return unit.replies[0].style if unit.replies else unit.style


def label_cells(reply: SpokenReply, rater: str) -> dict[str, Any]:
    """Return the columns of a label that identify the reply and the rater."""
    identity = {"id": reply.item, "condition": reply.condition, "group": reply.group, "style": reply.style}
    return {**identity, "rater": rater}


def sound_cell(reply: SpokenReply) -> str:
    """Return the path of a reply's sound from its run's folder, as a label file names it."""
    return f"audio/{reply.sound.sha256[:2]}/{reply.sound.sha256}.wav"


def pair_cells(answered: Answered) -> dict[str, Any]:
    """Return the columns of a label about two replies. A and B are the unit's order, not the screen's."""
    first, second = answered.unit.replies
    systems = {"system_a": first.run, "system_b": second.run, "second_first": int(answered.swap)}
    words = {name: first.texts[name] for name in ("cue", "topic", "words")}
    said = {"reply_a": first.texts["reply"], "reply_b": second.texts["reply"]}
    return {**label_cells(first, answered.rater), **systems, **words, **said, **note(answered)}


def votes(answered: Answered, winner: str, more: dict[str, Any]) -> list[LabelRow]:
    """Return a person's vote for A, B or a tie, for both runs. A and B are in the unit's order."""
    first, second = answered.unit.replies
    vote = {"case": first.item, "condition": first.condition, "group": first.group, "a": first.run, "b": second.run}
    cast = {**vote, "winner": winner, "rater": answered.rater, **more, "second_first": int(answered.swap)}
    return [LabelRow(run, "votes", cast) for run in (first.run, second.run)]


def note(answered: Answered) -> dict[str, Any]:
    """Return the column with the person's remark about the unit, if there is one."""
    text = answered.values.get(REMARK)
    return {"note": text} if text else {}
