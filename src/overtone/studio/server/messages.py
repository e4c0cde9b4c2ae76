"""The JSON API of the studio as records: what pages send and what they receive.

A token is sent as `Authorization: Bearer TOKEN`. An error is `{"error": {"message": …, "code": …}}`. Nothing that a
rater receives names a run, a model or a cue, or says whether a screen counts.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from overtone.studio.fields import AnyField, Value

Step = Literal[
    "consent", "setup", "headphones", "qualification", "rating", "break",
    "done", "withdrawn", "closed", "full", "screened_out", "refused",
]  # fmt: skip
Layout = Literal["single", "pair", "mushra", "record", "review"]


class Named(Struct, frozen=True):
    """A text beside a question, e.g. the transcript. `name` is cue, topic, words or reply."""

    name: str
    label: str
    text: str


class SoundLink(Struct, frozen=True):
    """A sound of a screen. `url` is relative to the server and valid for this person alone."""

    name: str
    label: str
    url: str
    seconds: float


class Context(Struct, frozen=True):
    """Texts and sounds that a rater gets before answering and does not rate."""

    texts: tuple[Named, ...] = ()
    sounds: tuple[SoundLink, ...] = ()


class Stage(Struct, frozen=True):
    """Questions that are answered together. `reveal` is shown when the stage begins."""

    name: Literal["voice", "words"]
    fields: tuple[AnyField, ...]
    reveal: tuple[Named, ...] = ()


class Screen(Struct, frozen=True, kw_only=True):
    """One task. `answers` are those saved before, if the screen was left unfinished; `stage` is how far it was.

    From stage 1 on the words are shown, and answers about the voice are final unless `change_voice`.
    """

    slot: str
    layout: Layout
    number: int
    sounds: tuple[SoundLink, ...]
    stages: tuple[Stage, ...]
    must_play: tuple[str, ...] = ()
    context: Context = Context()
    remark: bool = False
    may_skip: bool = True
    note: str = ""
    answers: dict[str, Value] = {}
    stage: int = 0
    change_voice: bool = False
    task: dict[str, Any] | None = None  # what the layouts record and review need besides


class Trial(Struct, frozen=True):
    """One trial of a headphone test: a sound with some intervals. The answer is the number of an interval, from 1."""

    url: str
    seconds: float
    intervals: int = 3


class Headphones(Struct, frozen=True):
    """The headphone test. `needed` trials must be right to pass;"""

    test: Literal["woods", "huggins"]
    trials: tuple[Trial, ...]
    needed: int


class Qualification(Struct, frozen=True):
    """Questions about the person, before the first rating."""

    text: str
    fields: tuple[AnyField, ...]


class ConsentPart(Struct, frozen=True):
    """A consent that is asked for separately, e.g. to publish recordings."""

    key: str
    text: str
    required: bool = False
    default: bool = False


class StudyTexts(Struct, frozen=True, kw_only=True):
    """The notices of a study."""

    consent: str
    consent_sha: str
    controller: str = ""
    contact: str = ""
    approval: str = ""
    retention: str = ""
    debriefing: str = ""
    warning: str = ""
    withdraw_until: str = ""


class StudyInfo(Struct, frozen=True, kw_only=True):
    """A study as pages know it. `debriefing` is empty until the person has ended."""

    title: str
    design: str
    version: str
    texts: StudyTexts
    consents: tuple[ConsentPart, ...] = ()
    reserve_minutes: float = 30.0
    needs_microphone: bool = False
    languages: tuple[str, ...] = ()


class Person(Struct, frozen=True):
    role: str
    label: str


class Progress(Struct, frozen=True):
    done: int
    total: int


class End(Struct, frozen=True):
    """How the person leaves. `submit` has values that the page posts to MTurk as a form, if that sent the person.

    `again` says whether the person may begin another session.
    """

    message: str = ""
    code: str = ""
    redirect_url: str = ""
    again: bool = False
    submit: dict[str, str] | None = None


class State(Struct, frozen=True, kw_only=True):
    """Everything that a page needs to show a person's next step."""

    study: StudyInfo
    person: Person
    step: Step
    progress: Progress
    screen: Screen | None = None
    headphones: Headphones | None = None
    qualification: Qualification | None = None
    end: End | None = None


# ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────────────
class Join(Struct, frozen=True):
    """Parameters of the address that Prolific or MTurk opened, without changes."""

    params: dict[str, str]


class Joined(Struct, frozen=True):
    token: str


class Consent(Struct, frozen=True):
    """`consent_sha` is the version of the text that was shown; the server refuses an older one."""

    consent_sha: str
    agree: bool
    parts: dict[str, bool] = {}
    client_key: str = ""


class Setup(Struct, frozen=True):
    """`device` is what the browser reports about the output; `level` the volume, 0–1."""

    device: dict[str, str | int | float | bool | None] = {}
    level: float | None = None
    client_key: str = ""


class HeadphoneAnswers(Struct, frozen=True):
    """One interval (from 1) per trial, in the order of the trials."""

    test: Literal["woods", "huggins"]
    answers: list[int]
    device: dict[str, str | int | float | bool | None] = {}
    client_key: str = ""


class QualificationAnswers(Struct, frozen=True):
    client_key: str
    values: dict[str, Value]


class Answer(Struct, frozen=True, kw_only=True):
    """Answers to some questions of a screen. `plays` counts complete plays; `ms` is the time since the screen began.

    `stage` is 1 once the words were shown. The key `remark` is a free remark. A repeated `client_key` changes nothing.
    """

    slot: str
    client_key: str
    values: dict[str, Value] = {}
    plays: dict[str, int] = {}
    ms: int = 0
    stage: int = 0
    done: bool = False


class Skip(Struct, frozen=True):
    slot: str
    client_key: str
    reason: str = ""
    values: dict[str, Value] = {}
    plays: dict[str, int] = {}
    ms: int = 0
    stage: int = 0


class Saved(Struct, frozen=True):
    saved: bool = True


class Nothing(Struct, frozen=True):
    """An empty body, of withdraw and break."""
