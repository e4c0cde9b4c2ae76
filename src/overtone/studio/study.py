"""The study file: TOML that a person can read and edit. Read completely and checked, or refused with the place."""

from __future__ import annotations

import datetime
import hashlib
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.inspect import type_info

from overtone.errors import DataError, UsageError
from overtone.paths import read_plain, shown, user_path
from overtone.spec import suggest
from overtone.studio import study_checks

MOST_BYTES = 1 << 20
SHOWS = ("cue", "topic", "words", "reply")  # texts that raters may see
REQUIRED_BEYOND_LOOPBACK = ("controller", "contact", "approval", "retention", "debriefing")
DISTRESSING = ("sobbing", "shout", "moan", "fear")  # cues that a person may skip unless the study says otherwise

SourceKind = Literal["run", "set", "scripts"]


class Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the study file."""


class Source(Section, frozen=True, kw_only=True):
    """A run whose replies are heard, a built set, or scripts. `path` is relative to the study file.

    `gain_db` applies to all sounds of the source.
    """

    kind: SourceKind = "run"
    name: str
    path: str
    gain_db: float = 0.0


class ConsentPart(Section, frozen=True, kw_only=True):
    """A separate consent, besides the one to take part, e.g. to publish recordings."""

    key: str
    text: str
    required: bool = False
    default: bool = False


class People(Section, frozen=True, kw_only=True, rename={"parts": "part"}):
    """Texts that people read before they begin and at the end, and the last day of withdrawal (YYYY-MM-DD)."""

    consent: str
    controller: str = ""
    contact: str = ""
    approval: str = ""
    retention: str = ""
    debriefing: str = ""
    warning: str = ""
    withdraw_until: str = ""
    parts: tuple[ConsentPart, ...] = ()


class Checks(Section, frozen=True, kw_only=True):
    """How many questions of each kind a session has besides the rated ones, and whether headphones are tested."""

    headphones: bool = True
    require_headphones: bool = False
    training: int = 2
    traps: int = 1
    gold: int = 1
    repeats: int = 0
    anchors: int = 2


class Question(Section, frozen=True, kw_only=True):
    """A question before the first rating. Answers outside `accept` screen a person out; empty: all are accepted."""

    key: str
    question: str
    options: dict[str, str]
    accept: tuple[str, ...] = ()


class Qualification(Section, frozen=True, kw_only=True, rename={"questions": "question"}):
    """The questions that decide who can take part."""

    text: str = ""
    questions: tuple[Question, ...] = ()


class Loudness(Section, frozen=True, kw_only=True):
    """The sounds that share one gain: those of a system, all of the study, or each clip. Peaks are always limited.

    The gain of a system is its source's `gain_db`; for the set it is the lowest of these. What the user said has
    a gain of its own. No part of 0.4 s is played louder than `cap_db`, to protect
    the listener's ears.
    """

    per: Literal["system", "set", "clip"] = "system"
    clips_gain_db: float = 0.0
    cap_db: float = -12.0


class Care(Section, frozen=True, kw_only=True):
    """Rules that make a session bearable: a break after that many screens, and cues that can be skipped."""

    break_every: int = 10
    skippable: tuple[str, ...] = DISTRESSING


class Recruitment(Section, frozen=True, kw_only=True):
    """The platform that sends people, and the codes that it expects when they leave."""

    platform: Literal["", "prolific", "mturk"] = ""
    completion_code: str = ""
    screen_out_code: str = ""
    no_consent_code: str = ""
    return_url: str = ""


class LabelSettings(Section, frozen=True, kw_only=True):
    """The controls of the design label: cues by name (or "emotions", or "all"), and further controls."""

    cues: tuple[str, ...] = ("all",)
    intensity: bool = True
    sliders: bool = False


class MushraSettings(Section, frozen=True, kw_only=True):
    """The reference of the design mushra: the benchmark's spoken reply, or the clip that a codec's run was given."""

    reference: Literal["reply", "clip"] = "reply"
    anchor: bool = True
    gain_db: float = 0.0


class RecordSettings(Section, frozen=True, kw_only=True):
    """The licence under which speakers may let their recordings be published, as an SPDX identifier; and a built set
    with an example of each delivery, relative to the study file ("": no examples)."""

    licence: str = "CC-BY-4.0"
    examples: str = ""


class ReviewSettings(Section, frozen=True, kw_only=True):
    """The subject and the round of a review, and the study files of the earlier rounds, relative to this one."""

    subject: Literal["scripts", "questions", "clips"] = "scripts"
    round: int = 1
    earlier: tuple[str, ...] = ()


class Database(Section, frozen=True, kw_only=True):
    """Where answers are stored: sqlite:FILE, relative to the study file, or postgresql://…"""

    url: str


class Study(Section, frozen=True, kw_only=True, rename={"sources": "source"}):
    """One study. `sha256` covers everything that decides what is asked; texts for people may change."""

    id: str
    title: str
    design: str
    rubrics: tuple[str, ...] = ()
    of: Literal["replies", "clips"] = "replies"
    raters: int
    session: int
    sessions: int = 1
    votes: int
    overlap: int = 0
    units: int = 0
    seed: int = 0
    reserve_minutes: float = 30.0
    shows: tuple[str, ...] = ()
    play_clip: bool = True
    reasons: bool = False
    remark: bool = False
    one_question_per_person: bool = False
    adaptive: bool = False
    languages: tuple[str, ...] = ()
    people: People
    checks: Checks = Checks()
    qualification: Qualification = Qualification()
    loudness: Loudness = Loudness()
    care: Care = Care()
    recruitment: Recruitment = Recruitment()
    label: LabelSettings = LabelSettings()
    mushra: MushraSettings = MushraSettings()
    record: RecordSettings = RecordSettings()
    review: ReviewSettings = ReviewSettings()
    store: Database
    sources: tuple[Source, ...]
    path: Path = Path()

    @property
    def sha256(self) -> str:
        """A hash of the settings that must not change once there are answers."""
        content = (self.id, self.design, self.rubrics, self.of, self.units, self.seed, self.shows, self.play_clip,
                   self.reasons, self.one_question_per_person, self.loudness, self.label, self.mushra, self.record,
                   self.review)  # fmt: skip
        runs = [(run.kind, run.name, run.gain_db) for run in self.sources]
        return hashlib.sha256(msgspec.json.encode((content, runs))).hexdigest()

    @property
    def consent_sha(self) -> str:
        """The version of the text to which people consent."""
        return hashlib.sha256(msgspec.json.encode(self.people)).hexdigest()[:16]

    @property
    def missing_notices(self) -> list[str]:
        """The notices that a study needs before people elsewhere can take part."""
        return [name for name in REQUIRED_BEYOND_LOOPBACK if not getattr(self.people, name).strip()]

    def withdrawal_open(self, today: datetime.date) -> bool:
        """Return whether people can still withdraw on this day."""
        until = self.people.withdraw_until
        return not until or today <= datetime.date.fromisoformat(until)

    def folder(self, source: Source) -> Path:
        """Return the folder of a source."""
        return self.path.parent / user_path(source.path)


def read(path: Path) -> Study:
    """Read a study file. Raises UsageError if it does not exist, DataError with the place of a mistake."""
    where = shown(str(path))
    if not path.is_file():
        raise UsageError(f"the study {where} does not exist; 'overtone studio new {where} --from RUN' makes one")
    text = ""
    try:
        text = read_plain(path, MOST_BYTES).decode("utf-8")
        tree: dict[str, Any] = tomllib.loads(text)
        if "path" in tree:
            raise DataError(f"{where}{_line(text, 'path')}: unknown setting 'path'; correct the file")
        study = msgspec.convert(tree, Study)
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: is not valid TOML ({error}); correct the file") from None
    except tomllib.TOMLDecodeError as error:
        found = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", str(error), re.S)
        line, what = (f", line {found[2]}", f"{found[1]} at column {found[3]}") if found else ("", str(error))
        raise DataError(f"{where}{line}: is not valid TOML ({shown(what)}); correct the file") from None
    except msgspec.ValidationError as error:
        keys = _path_of(str(error))
        told = _unknown(keys) if "unknown field" in str(error) else str(error)
        raise DataError(f"{where}{_line(text, *keys)}: {told}; correct the file") from None
    study = msgspec.structs.replace(study, path=path.resolve())
    if mistake := study_checks.mistake(study):
        raise DataError(f"{where}{_line(text, *mistake.place)}: {mistake.text}")
    return study


def _unknown(keys: Sequence[str]) -> str:
    """Return the error of a setting that its section does not have, with the most similar one that it has."""
    *sections, name = keys
    kind: Any = type_info(Study)
    for key in sections:
        if not key.startswith("["):
            kind = next(field.type for field in kind.fields if field.encode_name == key)
            kind = getattr(kind, "item_type", kind)  # of a table that can occur several times
    known = [field.encode_name for field in kind.fields if field.encode_name != "path" or sections]
    place = ".".join(key for key in sections if not key.startswith("["))
    return f"unknown setting {shown(name)!r}{f' in [{place}]' if place else ''}{suggest(name, known)}"


def _path_of(message: str) -> tuple[str, ...]:
    """Return the keys that an error of msgspec names: `... unknown field `x` - at `$.checks`` is checks, x."""
    at = re.search(r"at `\$\.?([^`]*)`", message)
    field = re.search(r"unknown field `([^`]+)`", message)
    keys = [key for key in re.split(r"\.|(\[\d+\])|\[\.\.\.\]", at[1]) if key] if at else []
    return (*keys, field[1]) if field else tuple(keys)


def _line(text: str, *keys: str) -> str:
    """Return ", line N" of the setting with these keys (a number in brackets counts tables of one name), or ""."""
    names = [key for key in keys if not key.startswith("[")]
    wanted = [int(key[1:-1]) for key in keys if key.startswith("[")]
    table, seen = "", {}  # type: tuple[str, dict[str, int]]
    found = 0
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]", line):
            table = header[1]
            seen[table] = seen.get(table, -1) + 1
        current = not wanted or seen.get(table, 0) == wanted[0]
        if table == ".".join(names) and header and current:
            found = found or number
        if (
            names
            and table == ".".join(names[:-1])
            and current
            and re.match(rf'\s*"?{re.escape(names[-1])}"?\s*=', line)
        ):
            return f", line {number}"
    return f", line {found}" if found else ""
