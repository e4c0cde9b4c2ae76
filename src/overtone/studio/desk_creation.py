"""New studies in which people record or review: which scripts they get, how long it takes, and what is left out."""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from overtone.errors import DataError, UsageError
from overtone.paths import shown, write_whole
from overtone.studio import contents, designs, script_parts, study_checks, take_checks
from overtone.studio.creation import new_path, relative
from overtone.studio.designs import Unit, record, review
from overtone.studio.designs.record import ScriptUnit
from overtone.studio.study import Checks, Database, People, RecordSettings, ReviewSettings, Source, Study
from overtone.studio.study_file import text_of

SECONDS_PER_TAKE = 20.0  # reading, speaking, listening to it
SECONDS_PER_REVIEW = 60.0
SETUP_SECONDS = 180.0
RAW = Checks(headphones=False, training=0, traps=0, gold=0)


class DeskPlan(Struct, frozen=True):
    """The size of a study, reported before anyone takes part."""

    units: int
    people: int  # needed for all votes
    minutes: float  # per person
    notes: tuple[str, ...] = ()


def create_desk(
    path: Path, given: Sequence[str], *, design: str, people: int, title: str = "", session: int, votes: int,
    limit: int = 0, seed: int = 0, licence: str = "CC-BY-4.0", examples: Path | None = None,
    subject: str = "scripts", round: int = 1, earlier: Sequence[Path] = (),
) -> DeskPlan:  # fmt: skip
    """Write the study file of a recording or review desk. Raises UsageError or DataError, and then writes nothing."""
    new_path(path)
    if subject not in ("scripts", "questions", "clips"):
        raise UsageError(f"--subject {shown(subject)}: choose scripts, questions or clips")
    recording = design == "record"
    texts = People(consent=record.CONSENT, parts=record.consent_parts(licence)) if recording else People(
        consent=review.CONSENT
    )  # fmt: skip
    study = Study(
        id=secrets.token_hex(6), title=title or ("A recording session" if recording else f"A review, round {round}"),
        design=design, raters=people, session=session, votes=votes, units=limit, seed=seed, checks=RAW, people=texts,
        record=RecordSettings(licence=licence, examples=relative(examples, path) if examples else ""),
        review=ReviewSettings(subject=subject, round=round, earlier=tuple(relative(one, path) for one in earlier)),  # type: ignore[arg-type]
        store=Database(url=f"sqlite:{path.stem}.db"),
        sources=tuple(_source(one, subject, path) for one in given), path=path.absolute(),
    )  # fmt: skip
    if mistake := study_checks.mistake(study):
        raise UsageError(mistake.text)
    units = contents.chosen(designs.find(design).units(study, contents.read_sources(study)), study)
    if not units:
        raise DataError("the scripts have nothing that one speaker can record; give scripts with other cues")
    write_whole(path, text_of(study).encode())
    size = min(session, len(units))
    left_out = script_parts.spoken(study)[1] if recording else []
    notes = [f"{len(left_out)} scripts about the speaker's sex or age are left out"] if left_out else []
    return DeskPlan(len(units), math.ceil(len(units) * votes / size), _minutes(units, size), tuple(notes))


def _source(given: str, subject: str, path: Path) -> Source:
    if subject != "clips":
        return script_parts.source_of(given, path)
    folder = Path(given).expanduser()
    return Source(kind="set", name=folder.resolve().name, path=relative(folder, path))


def _minutes(units: Sequence[Unit], size: int) -> float:
    each = [_seconds(unit) for unit in units]
    return (SETUP_SECONDS + size * sum(each) / len(each)) / 60


def _seconds(unit: Unit) -> float:
    if not isinstance(unit, ScriptUnit):
        return SECONDS_PER_REVIEW
    return sum(SECONDS_PER_TAKE + 2 * take_checks.limits(unit.texts["words"], part.cue)[0] for part in unit.parts)
