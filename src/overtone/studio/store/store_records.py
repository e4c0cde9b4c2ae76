"""Records that the store returns: people, places in sessions, answers, takes and counts, as plain values."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from overtone.errors import OvertoneError
from overtone.studio.assignment import Kind as Kind
from overtone.studio.fields import Value

Role = Literal["rater", "speaker", "reviewer", "owner"]
Source = Literal["invite", "public", "prolific", "mturk", "label-studio"]
SlotState = Literal["open", "done", "released", "skipped"]
Step = Literal[
    "consent", "setup", "headphones", "qualification", "rating", "break", "done",
    "withdrawn", "closed", "full", "screened_out", "refused",
]  # fmt: skip
StudyState = Literal["new", "open", "closed"]


class Refusal(OvertoneError):
    """A request that the store does not carry out. `code` is one word for the page: slot, closed, consent, …"""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class FrozenUnit(Struct, frozen=True):
    """A unit as it was when the study was served first. `content` is the design's unit as JSON."""

    id: str
    group: str
    system: str
    content: bytes


class Invitation(Struct, frozen=True):
    """A new token of a person. The store keeps only its SHA-256, so the token can be shown once."""

    label: str
    token: str


class Person(Struct, frozen=True, kw_only=True):
    """A participant or owner, known by a random pseudonym (`label`)."""

    label: str
    role: Role
    source: Source
    created: float
    number: int  # 0, 1, 2 … in the order of arrival; rotates the orders of presentation
    consent_sha: str = ""  # the version of the text that was agreed to or refused
    consented: float | None = None  # when
    agreed: bool | None = None
    parts: dict[str, bool] = {}  # separate consents: analysis, publication, training, cloning
    device: dict[str, Any] = {}
    level: float | None = None
    headphones: tuple[dict[str, Any], ...] = ()  # results of the test, one per attempt: test, correct, passed, at, …
    qualification: dict[str, Any] = {}  # answers and `passed`
    rested: int = 0  # finished screens at the last break
    ended: Literal["", "screened_out", "withdrawn"] = ""
    reason: str = ""  # why screened out


class Slot(Struct, frozen=True, kw_only=True):
    """One place in a person's session.

    `target` is the right answer of a trap (a number of tones), or the place of the reply that is played backwards in
    a gold question. `unit` is "" for a trap.
    """

    id: str
    person: str
    session: int  # 1, 2, …
    seq: int  # order within the session
    kind: Kind
    unit: str
    swap: bool
    target: int
    state: SlotState
    reserved_until: float
    stage: int = 0  # the last stage that the page reported: 1 once the words were shown


class Given(Struct, frozen=True):
    """One stored answer to one field. The newest of a slot and field counts."""

    number: int
    slot: str
    person: str
    field: str
    value: Value
    plays: dict[str, int]
    ms: int
    at: float
    consent_sha: str


class Answered(Struct, frozen=True, kw_only=True):
    """The newest answers of one slot. `swap`: the second reply was the first on the screen."""

    slot: str
    person: str
    session: int
    seq: int
    kind: Kind
    unit: str
    swap: bool
    target: int
    state: SlotState
    values: dict[str, Value]
    plays: dict[str, int]  # the largest number reported per sound
    ms: int  # time on the screen, as the page reported with the last answer
    at: float  # the newest answer
    consent_sha: str


class Take(Struct, frozen=True, kw_only=True):
    """One recording by a speaker. `path` is relative to the folder of takes."""

    id: str
    person: str
    slot: str
    unit: str
    part: str
    sha256: str
    path: str
    seconds: float
    settings: dict[str, Any]
    checks: dict[str, Any]
    verdict: str  # good or retake
    reasons: tuple[str, ...]
    kept: bool | None  # None: not decided
    at: float


class Flag(Struct, frozen=True, kw_only=True):
    """One finding of a quality rule about a person's session, or about one slot of it. Flags never delete anything."""

    person: str
    session: int
    slot: str = ""
    rule: str
    version: int
    detail: str = ""


class Event(Struct, frozen=True):
    """One line of the study's log."""

    number: int
    at: float
    kind: str
    person: str
    detail: dict[str, Any]


class Progress(Struct, frozen=True):
    """The number of finished screens and of all screens in a person's current session."""

    done: int
    total: int


class Coverage(Struct, frozen=True):
    """The number of counted answers and of reserved places for one unit."""

    unit: str
    group: str
    system: str
    done: int
    reserved: int


class Status(Struct, frozen=True):
    """Counts of a study."""

    state: StudyState
    people: dict[str, int]  # invited, consented, started, finished, refused, screened_out, withdrawn
    answers: int  # finished real screens
    wanted: int  # finished real screens when every unit has its votes: answers + missing
    missing: int  # finished real screens that units still lack; the others have their votes
    reserved: int
    takes: int
    units: int


class Withdrawal(Struct, frozen=True):
    """Counts of the data that a withdrawal removed, and the earlier exports, which still contain the data."""

    label: str
    answers: int
    takes: int
    exports: tuple[str, ...]
