"""The kept takes of a recording study as a voice: `recordings:STUDY.toml?consent=publication`.

A speaker is used for a script if one person kept a take of every delivery of it and gave the consents that are asked
for (analysis, unless `consent` names others). Speakers have their pseudonyms.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct

from overtone import audio
from overtone.audio import Samples
from overtone.build.licence import UNPUBLISHED
from overtone.build.manifest import SpeakerRecord
from overtone.build.voices._records import PACE, SCALE, How, Sex, Speaker, VoiceError, options
from overtone.errors import AudioError, UsageError
from overtone.paths import sha256, shown, user_path
from overtone.spec import Spec, suggest
from overtone.studio import study as study_file
from overtone.studio import take_checks
from overtone.studio.designs.record import PARTS, ScriptUnit
from overtone.studio.store import Store
from overtone.studio.store.store_records import Person, Take

ANALYSIS, PUBLICATION = "analysis", "publication"
CONSENTS = tuple(part.key for part in PARTS)
EDGE = 0.25  # seconds kept before and after the speech; the rest is waiting, and the click of the key that stops


class Recorded(Struct, frozen=True):
    """One take: its file and the words that it says."""

    path: Path
    sha256: str
    words: str


class StudyRecordings:
    """Takes of a study, found by script and style. Other words cannot be spoken."""

    native = True
    human = True
    any_role = True  # a script's role only suggests a sex; the person who recorded it speaks it

    def __init__(self, spec: Spec) -> None:
        given = options(spec, {"consent": str})
        self._needed = _consents(spec, given.get("consent", ANALYSIS))
        study = study_file.read(user_path(spec.name))
        if study.design != "record":
            raise UsageError(f"{shown(spec.name)}: is a study of the design {study.design}, which has no recordings")
        self._study = study
        with Store.open(study, create=False) as store:
            units = {id: msgspec.json.decode(one.content, type=ScriptUnit) for id, one in store.units().items()}
            people = {one.label: one for one in store.people.all() if not one.ended and self._agreed(one)}
            kept = [take for take in store.takes.all(kept=True) if take.unit in units]
            folder = store.takes.folder
        self._left_out = len({take.person for take in kept} - set(people))
        self._units = units
        self._found = _complete([take for take in kept if take.person in people], units, folder)
        speaking = sorted({person for by_person in self._found.values() for person in by_person})
        self._people = {label: people[label] for label in speaking}
        self._speakers = tuple(Speaker(str(spec), label, (s := _voice(people[label])), SCALE[s]) for label in speaking)
        published = all(person.parts.get(PUBLICATION) for person in self._people.values())
        self.licence: str = study.record.licence if published and speaking else UNPUBLISHED
        if not speaking:
            raise UsageError(
                f"{shown(spec.name)}: no speaker has kept takes of all deliveries of a script and agreed to "
                f"{', '.join(self._needed)}; 'overtone studio status {shown(spec.name)}' shows how far they are"
            )

    def _agreed(self, person: Person) -> bool:
        return bool(person.agreed) and all(person.parts.get(key) for key in self._needed)

    def speakers(self) -> tuple[Speaker, ...]:
        return self._speakers

    def speakers_of(self, script_id: str) -> tuple[Speaker, ...]:
        """Return the people who recorded every delivery of the script."""
        return tuple(speaker for speaker in self._speakers if speaker.name in self._found.get(script_id, {}))

    def recorded(self) -> frozenset[str]:
        """Return the ids of the scripts with a complete recording by one speaker."""
        return frozenset(self._found)

    def identity(self) -> str:
        """Return an identity that changes with the takes, the people and their consents."""
        seen = hashlib.sha256(repr((self._needed, self.licence)).encode())
        for script in sorted(self._found):
            for person, by_style in sorted(self._found[script].items()):
                seen.update(repr((script, person, [(s, t.sha256) for s, t in sorted(by_style.items())])).encode())
        return f"study {self._study.id}@{seen.hexdigest()[:12]}"

    def report(self) -> list[str]:
        """Return lines for the terminal: which takes are used, and which are not."""
        lines = [f"{len(self._found)} of {len(self._units)} scripts recorded, by {len(self._speakers)} speakers"]
        if self._left_out:
            lines.append(f"{self._left_out} speakers left out, who did not agree to {', '.join(self._needed)}")
        return lines

    def about_speakers(self) -> tuple[SpeakerRecord, ...]:
        """Return the consents of the speakers, for the manifest."""
        return tuple(
            SpeakerRecord(
                name=person.label, voice=_voice(person), study=self._study.id,
                consents={key: bool(person.parts.get(key)) for key in CONSENTS}, consent_sha=person.consent_sha,
                licence=self._study.record.licence if person.parts.get(PUBLICATION) else UNPUBLISHED,
                guardian=bool(person.device.get("guardian")),
            )
            for person in self._people.values()
        )  # fmt: skip

    def used_in(self, folder: Path) -> None:
        """Note in the study's log that a set contains takes, so that a withdrawal can name the set."""
        place = str(folder.resolve())
        with Store.open(self._study, create=False) as store:
            known = {str(event.detail.get("place")) for event in store.log.events("exported")}
            if place not in known or place in store.withdrawals.left_in():
                store.log.exported("recordings in a set", place)

    def missing(self, wanted: Iterable[How]) -> list[str]:
        """List the missing takes, each by its script and style."""
        return [
            f"{how.case_id}, {how.style}: not recorded in the study"
            for how in wanted
            if not any(_style(how, by_style) for by_style in self._found.get(how.case_id, {}).values())
        ]

    def speak(self, words: str, speaker: Speaker, how: How, *, pace: int = PACE) -> tuple[Samples, int]:
        by_style = self._found.get(how.case_id, {}).get(speaker.name, {})
        style = _style(how, by_style)
        if not style:
            raise VoiceError(f"{how.case_id}, {how.style}: {speaker.name} did not record it in the study")
        take = by_style[style]
        if " ".join(take.words.split()) != " ".join(words.split()):
            raise VoiceError(
                f"{how.case_id}: its words have changed since it was recorded ({shown(take.words)!r}); restore them, "
                "or record it again in a new study"
            )
        return _read(take)

    def speak_reply(self, text: str, style: str, file: str) -> tuple[Samples, int] | None:
        return None


def _consents(spec: Spec, given: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in given.split(",") if name.strip())
    for name in names:
        if name not in CONSENTS:
            known = ", ".join(CONSENTS)
            raise UsageError(f"{spec}: unknown consent {name!r}{suggest(name, CONSENTS)}; known: {known}")
    return tuple(dict.fromkeys((ANALYSIS, *names)))


def _voice(person: Person) -> Sex:
    return "male" if person.device.get("voice") == "male" else "female"


def _complete(
    kept: Iterable[Take], units: dict[str, ScriptUnit], folder: Path
) -> dict[str, dict[str, dict[str, Recorded]]]:
    """Return script → person → style → take, for people who kept a take of every delivery of the script."""
    by_place: dict[tuple[str, str], dict[str, Take]] = defaultdict(dict)
    for take in kept:
        by_place[take.unit, take.person][take.part] = take
    found: dict[str, dict[str, dict[str, Recorded]]] = defaultdict(dict)
    for (script, person), mine in sorted(by_place.items()):
        unit = units[script]
        if all(part.key in mine for part in unit.parts):
            found[script][person] = {
                style: Recorded(folder / mine[part.key].path, mine[part.key].sha256, unit.texts["words"])
                for part in unit.parts
                for style in part.styles
            }
    return dict(found)


def _style(how: How, by_style: dict[str, Recorded]) -> str:
    """Return the style whose take serves a clip: a control repeats the neutral clip, or else the target."""
    wanted = ("neutral", "target") if how.style == "control" else (how.style,)
    return next((style for style in wanted if style in by_style), "")


def _read(take: Recorded) -> tuple[Samples, int]:
    name = shown(str(take.path))
    try:
        same = sha256(take.path) == take.sha256
        samples, rate = audio.read(take.path, name=name)
    except (OSError, AudioError) as error:
        raise VoiceError(f"{name}: a take cannot be read ({error}); restore it from a backup") from None
    if not same:
        raise VoiceError(f"{name}: a take has changed; restore it from a backup")
    begin, end = take_checks.speech_span(samples, rate)
    edge = int(EDGE * rate)
    cut = samples[max(begin - edge, 0) : end + edge]
    return (cut - np.float32(cut.mean(dtype=np.float64))).astype(np.float32), rate
