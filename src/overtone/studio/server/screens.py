"""One place of a session as a screen: its sounds, texts and questions. A rater cannot tell the system from them.

The same functions determine which sounds a place needs, so that all sounds of a session are rendered before it begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from overtone.studio import stimuli
from overtone.studio.designs import Played
from overtone.studio.fields import AnyField, Choice, Value
from overtone.studio.replies import TARGET_DB
from overtone.studio.server.messages import Context, Named, Screen, SoundLink, Stage
from overtone.studio.server.open_study import Studio
from overtone.studio.session_quality import TRAP_FIELD
from overtone.studio.sounds import Wanted
from overtone.studio.store.store_records import Answered, Person, Slot

TRAP_SOUND = "sound"
TRAP_QUESTION = "How many tones do you hear?"
LABELS = {
    "cue": "What one heard besides the words",
    "topic": "Topic",
    "words": "What the user said",
    "reply": "What the assistant replied",
}
LOWPASS = {"": 0, "lowpass-3500": 3_500, "lowpass-7000": 7_000}


class Heard(NamedTuple):
    """A sound of a screen, with its name and label on the screen. Its bytes come from a source, or from the study
    itself."""

    name: str
    label: str
    wanted: Wanted | str
    context: bool = False


def heard(studio: Studio, slot: Slot) -> tuple[Heard, ...]:
    """Return the sounds of a place in the order of the page."""
    if slot.kind == "trap":
        return (Heard(TRAP_SOUND, "Sound", f"tones-{slot.target}"),)
    sounds = studio.contents.played(studio.unit(slot.unit), swap=slot.swap, slot=slot.id)
    rated = [sound.name for sound in sounds if not sound.context]
    backwards = rated[slot.target] if slot.kind == "gold" else ""
    return tuple(Heard(one.name, one.label, wanted(studio, one, one.name == backwards), one.context) for one in sounds)


def wanted(studio: Studio, one: Played, backwards: bool = False) -> Wanted:
    """Return a sound with the study's loudness."""
    return Wanted(
        path=one.sound.path,
        sha256=one.sound.sha256,
        gain_db=one.gain_db or 0.0,
        level_db=TARGET_DB if one.gain_db is None else None,
        cap_db=studio.study.loudness.cap_db,
        lowpass=LOWPASS[one.process],
        backwards=backwards,
    )


def sound_id(studio: Studio, slot: Slot, name: str) -> str:
    """Return the id of a sound of a place. It does not change while the study exists."""
    return stimuli.name_key(studio.secret, slot.id, name)


def find_sound(studio: Studio, places: list[Slot], name: str) -> tuple[Slot, Heard] | None:
    """Return the sound with this id among those of some places."""
    for slot in places:
        for one in heard(studio, slot):
            if sound_id(studio, slot, one.name) == name:
                return slot, one
    return None


def fields(studio: Studio, slot: Slot, person: Person) -> tuple[AnyField, ...]:
    """Return the questions of a place, without the styles to which they apply."""
    if slot.kind == "trap":
        options = {str(count): str(count) for count in range(1, 6)}
        label = "Attention check"
        return (Choice(key=TRAP_FIELD, label=label, question=TRAP_QUESTION, options=options),)
    asked = studio.contents.fields_of(studio.unit(slot.unit), person.number)
    return tuple(msgspec.structs.replace(field, styles=()) for field in asked)


def screen(studio: Studio, slot: Slot, person: Person, saved: Answered | None, number: int) -> Screen:
    """Return the screen of a place. All its sounds must have been rendered."""
    sounds = heard(studio, slot)
    links = {one.name: _link(studio, slot, one) for one in sounds}
    asked = {field.key: field for field in fields(studio, slot, person)}
    return Screen(
        slot=slot.id,
        layout="single" if slot.kind == "trap" else studio.contents.design.layout,
        number=number,
        sounds=tuple(links[one.name] for one in sounds if not one.context),
        stages=_stages(studio, slot, person, asked, {one.name: one.label for one in sounds}),
        must_play=tuple(one.name for one in sounds),
        context=Context(_context(studio, slot), tuple(links[one.name] for one in sounds if one.context)),
        remark=studio.study.remark and slot.kind != "trap",
        may_skip=slot.kind != "trap",  # its tones distress nobody
        answers=dict(saved.values) if saved else {},
        stage=slot.stage,
    )


def _stages(
    studio: Studio, slot: Slot, person: Person, asked: Mapping[str, AnyField], labels: Mapping[str, str]
) -> tuple[Stage, ...]:
    """Return the parts of a screen. Words of a single reply have that text's label, those of several the sound's."""
    if not slot.unit:
        return (Stage("words", tuple(asked.values())),)
    parts = studio.contents.stages(studio.unit(slot.unit), question_group=person.number, swap=slot.swap, slot=slot.id)
    return tuple(
        Stage(
            part.name,
            tuple(asked[field.key] for field in part.fields),
            tuple(
                Named(name, LABELS["reply"] if len(part.reveal) == 1 else labels.get(name, name), text)
                for name, text in part.reveal.items()
            ),
        )
        for part in parts
    )


def _context(studio: Studio, slot: Slot) -> tuple[Named, ...]:
    if not slot.unit:
        return ()
    texts = studio.contents.context_texts(studio.unit(slot.unit))
    return tuple(Named(name, LABELS.get(name, name.capitalize()), text) for name, text in texts.items())


def _link(studio: Studio, slot: Slot, one: Heard) -> SoundLink:
    url = f"api/sound/{sound_id(studio, slot, one.name)}"
    return SoundLink(one.name, one.label, url, studio.seconds(one.wanted))


def unanswered(asked: tuple[AnyField, ...], values: Mapping[str, Value]) -> Iterator[AnyField]:
    """Yield the required questions without an answer."""
    return (field for field in asked if field.required and field.key not in values)
