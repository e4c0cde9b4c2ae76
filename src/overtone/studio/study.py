"""The study file: TOML that a person can read and edit. Read completely and checked, or refused with the reason."""

from __future__ import annotations

import hashlib
import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from overtone.errors import DataError, UsageError
from overtone.paths import read_plain, shown, user_path

MOST_BYTES = 1 << 20
SHOWS = ("cue", "topic", "words", "reply")  # texts that raters may see
REQUIRED_BEYOND_LOOPBACK = ("controller", "contact", "approval", "retention", "debriefing")
_ID = re.compile(r"[a-z0-9]{12}")


class Source(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run whose replies are heard. `path` is relative to the study file; `gain_db` applies to all its replies."""

    name: str
    path: str
    gain_db: float = 0.0


class People(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Texts that raters read before they begin and at the end."""

    consent: str
    controller: str = ""
    contact: str = ""
    approval: str = ""
    retention: str = ""
    debriefing: str = ""
    warning: str = ""


class Checks(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many questions of each kind a session has besides the rated ones, and whether headphones are tested."""

    headphones: bool = True
    require_headphones: bool = False
    training: int = 2
    traps: int = 1
    gold: int = 1


class Database(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where answers are stored: sqlite:FILE, relative to the study file, or postgresql://…"""

    url: str


class Study(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"sources": "run"}):
    """One study. `sha256` covers everything that decides what is asked; texts for people may change."""

    id: str
    title: str
    design: str
    rubrics: tuple[str, ...] = ()
    raters: int
    session: int
    votes: int
    overlap: int = 0
    units: int = 0
    seed: int = 0
    reserve_minutes: float = 30.0
    shows: tuple[str, ...] = ()
    reasons: bool = False
    people: People
    checks: Checks = Checks()
    store: Database
    sources: tuple[Source, ...]
    path: Path = Path()

    @property
    def sha256(self) -> str:
        """A hash of the settings that must not change once there are answers."""
        content = (self.id, self.design, self.rubrics, self.units, self.seed, self.shows, self.reasons)
        runs = [(run.name, run.gain_db) for run in self.sources]
        return hashlib.sha256(msgspec.json.encode((content, runs))).hexdigest()

    @property
    def consent_sha(self) -> str:
        """The version of the text to which people consent."""
        return hashlib.sha256(msgspec.json.encode(self.people)).hexdigest()[:16]

    @property
    def missing_notices(self) -> list[str]:
        """The notices that a study needs before people elsewhere can take part."""
        return [name for name in REQUIRED_BEYOND_LOOPBACK if not getattr(self.people, name).strip()]

    def folder(self, source: Source) -> Path:
        """Return the folder of a run."""
        return self.path.parent / user_path(source.path)


def read(path: Path) -> Study:
    """Read a study file. Raises UsageError if it does not exist, DataError with the place of a mistake."""
    where = shown(str(path))
    if not path.is_file():
        raise UsageError(f"the study {where} does not exist; 'overtone studio new {where} --from RUN' makes one")
    try:
        tree: dict[str, Any] = tomllib.loads(read_plain(path, MOST_BYTES).decode("utf-8"))
        if "path" in tree:
            raise DataError(f"{where}: unknown key path; correct the file")
        study = msgspec.convert(tree, Study)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{where}: is not valid TOML ({error}); correct the file") from None
    except msgspec.ValidationError as error:
        raise DataError(f"{where}: {error}; correct the file") from None
    study = msgspec.structs.replace(study, path=path.resolve())
    _check(study, where)
    return study


def _check(study: Study, where: str) -> None:
    def wrong(what: str) -> DataError:
        return DataError(f"{where}: {what}")

    if not _ID.fullmatch(study.id):
        raise wrong("id must be the twelve characters that 'overtone studio new' wrote")
    for name in ("raters", "session", "votes"):
        if not 1 <= getattr(study, name) <= 100_000:
            raise wrong(f"{name} must be a whole number from 1 to 100000")
    for name, value in (("overlap", study.overlap), ("units", study.units)):
        if value < 0:
            raise wrong(f"{name} must be 0 or more")
    if study.overlap > study.session:
        raise wrong(f"overlap ({study.overlap}) must not be larger than session ({study.session})")
    if not 1 <= study.reserve_minutes <= 24 * 60:
        raise wrong("reserve_minutes must be from 1 to 1440")
    for name in ("training", "traps", "gold"):
        if not 0 <= getattr(study.checks, name) <= 20:
            raise wrong(f"checks.{name} must be from 0 to 20")
    if strange := [name for name in study.shows if name not in SHOWS]:
        raise wrong(f"shows has {strange[0]!r}; raters can see {', '.join(SHOWS)}")
    if not study.people.consent.strip():
        raise wrong("people.consent is empty; write what raters agree to")
    names = [run.name for run in study.sources]
    if not names or len(set(names)) < len(names):
        raise wrong("it needs at least one [[run]], each with a name of its own")
    if not re.match(r"sqlite:.|postgres(ql)?://.", study.store.url):
        raise wrong("store.url must be sqlite:FILE or postgresql://…")


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────────────
CONSENT = """\
You will listen to short recordings of a voice assistant and answer questions about them.
We store your answers, how long they took, and the results of the sound check, under a random number: neither your \
name nor your network address. You can stop at any time by closing the page. You can withdraw on every page: your \
answers are then deleted.
I am an adult, I have read this, and I take part of my own free will."""

_FILE = """\
# A study of Overtone's studio. Everything can be edited before the first answer; afterwards only [people],
# raters, session, votes, overlap, reserve_minutes and [checks].
id = {id}
title = {title}
design = {design}            # acr: rate each reply; ab: choose between two
rubrics = {rubrics}      # whose questions are asked, with their scales and anchors
raters = {raters}              # people expected
session = {session}             # replies or pairs that one person rates
votes = {votes}                # wanted per reply or pair
overlap = {overlap}              # rated by everybody, to measure agreement
units = {units}              # replies or pairs in the study, drawn with the seed; 0: all
seed = {seed}
reserve_minutes = 30     # without an answer, a person's open places go back to the others
shows = {shows}        # texts that raters see: cue, topic, words (of the user), reply
reasons = false          # ab: also ask what decided

[people]
# All notices are needed before the server listens beyond this machine.
consent = {consent}
controller = ""          # who is responsible for the data
contact = ""             # an address for questions and withdrawal
approval = ""            # number of the ethics approval, or why none is needed
retention = ""           # when the data will be deleted
debriefing = ""          # shown at the end: what the study is about
warning = ""             # e.g. that some recordings contain crying

[checks]
headphones = true        # six trials; the result is stored with the answers
require_headphones = false
training = {training}             # answered first and not counted
traps = {traps}                # "how many tones do you hear?"
gold = {gold}                 # questions with a known answer: one reply is played backwards

[store]
url = {url}              # or postgresql://USER@HOST/DATABASE, password in PGPASSWORD
"""


def toml(value: object) -> str:
    """Return a value as TOML: text, a number, or a list of texts."""
    if isinstance(value, str):
        if "\n" in value and "'''" not in value:
            return '"""\n' + value.replace("\\", "\\\\").replace('"', '\\"') + '"""'
        return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml(one) for one in value) + "]"
    return str(value)


def text_of(values: dict[str, Any], sources: list[Source]) -> str:
    """Return the text of a new study file, with comments for its editor."""
    body = _FILE.format(**{name: toml(value) for name, value in values.items()})
    for source in sources:
        body += "\n[[run]]\n"
        body += f"name = {toml(source.name)}\npath = {toml(source.path)}\n"
        body += f"gain_db = {source.gain_db}         # for all replies of this run; keeps differences within it\n"
    return body
