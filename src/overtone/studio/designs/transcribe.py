"""Transcription: people type what a reply says. The word error rate of people measures how intelligible a voice is."""

from __future__ import annotations

from collections.abc import Sequence

from overtone.judges.rubric import Rubric
from overtone.languages import language_of
from overtone.metrics._limits import too_long
from overtone.metrics.normalise import units as normalised
from overtone.metrics.wer import align
from overtone.studio import designs
from overtone.studio.designs import Answered, Design, LabelRow, Played, Spread, Unit
from overtone.studio.fields import AnyField, Choice, Text, Value
from overtone.studio.replies import RunReplies
from overtone.studio.study import Study

TYPED, UNDERSTOOD = "typed", "understood"
ERRORS = "wer_people"  # dimension of the labels
OPTIONS = {"all": "every word", "part": "a part of it", "none": "not a word"}


def units(study: Study, runs: Sequence[RunReplies]) -> list[Unit]:
    """Return one unit per spoken reply whose words are known."""
    return [
        Unit(reply.id, reply.group, run.name, (reply,), language=reply.language)
        for run in runs
        for reply in run.replies
        if reply.texts["reply"].strip()
    ]


def fields(rubrics: Sequence[Rubric], study: Study) -> tuple[AnyField, ...]:
    """Return the text, and how much was understood."""
    typed = "Type what you hear, word for word. Guess words that you are not sure of; type ? if you understand nothing."
    return (
        Text(key=TYPED, label="Words", question=typed, stage="voice", rows=4),
        Choice(
            key=UNDERSTOOD, label="Understood", question="How much did you understand?", stage="voice", options=OPTIONS
        ),
    )


def gold(fields: Sequence[AnyField], rubrics: Sequence[Rubric], reversed_side: int) -> dict[str, list[Value]]:
    """Return the right answer about speech played backwards: not a word was understood."""
    return {UNDERSTOOD: ["none"]}


def played(unit: Unit, study: Study, swap: bool, slot: str) -> tuple[Played, ...]:
    """Return the reply alone: what the user said would help to guess it."""
    (reply,) = unit.replies
    return (Played("reply", "Recording", reply.sound, designs.gain_db(study, reply.run)),)


def error_rate(typed: str, said: str, language: str) -> float | None:
    """Return the word error rate by the project's own metric (characters in unspaced languages); None without words."""
    tag = language_of(language, said)
    wanted, written = normalised(said, tag), normalised(typed, tag)
    if not wanted or too_long(written, wanted):
        return None
    return align(wanted, written).rate


def labels(answered: Answered, study: Study) -> list[LabelRow]:
    """Return the word error rate of the typed text, and how much the person reports to have understood."""
    (reply,) = answered.unit.replies
    understood = answered.values.get(UNDERSTOOD)
    typed = str(answered.values.get(TYPED, ""))
    values: dict[str, object] = {UNDERSTOOD: understood} if understood else {}
    known = typed.strip() or understood == "none"
    if known and (rate := error_rate(typed, reply.texts["reply"], answered.unit.language)) is not None:
        values[ERRORS] = rate
    about = {**designs.label_cells(reply, answered.rater), "system": reply.run, **reply.texts, "typed": typed}
    cells = {**about, "reply_sound": designs.sound_cell(reply), **designs.note(answered)}
    return [LabelRow(reply.run, "labels", {**cells, "dimension": key, "value": value}) for key, value in values.items()]


DESIGN = Design(
    summary="type what a reply says, which measures how intelligible it is",
    noun="replies",
    layout="single",
    sides=("reply",),
    units=units,
    fields=fields,
    gold=gold,
    labels=labels,
    played=played,
    spread=Spread(item=0.15, rater=0.05, error=0.15, span=1, unit="word error rate"),
    replays=2.0,
)
