"""Contradictions in a study file: settings that are out of range, or that exclude each other."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from overtone import cues, registry
from overtone.errors import UsageError
from overtone.languages import tag_problem
from overtone.spec import suggest

if TYPE_CHECKING:
    from overtone.studio.study import Study

SHOWS = ("cue", "topic", "words", "reply")
PAIRED = ("ab", "cmos")  # designs that compare two runs
HINTS = {"label": "cue", "transcribe": "reply"}  # texts that give the answer away
CODES = ("completion_code", "screen_out_code", "no_consent_code")
_ID = re.compile(r"[a-z0-9]{12}")
_KEY = re.compile(r"[a-z][a-z0-9_]*")


class Mistake(Struct, frozen=True):
    """A mistake: the keys of the setting, and what is wrong."""

    place: tuple[str, ...]
    text: str


def mistake(study: Study) -> Mistake | None:
    """Return the first mistake in a study, or None."""
    for check in (_numbers, _texts, _choices, _people, _sources, _contradictions):
        for place, text in check(study):
            return Mistake(place, text)
    return None


Mistakes = Iterator[tuple[tuple[str, ...], str]]


def _numbers(study: Study) -> Mistakes:
    for name in ("raters", "session", "votes"):
        if not 1 <= getattr(study, name) <= 100_000:
            yield (name,), f"{name} must be a whole number from 1 to 100000"
    for name in ("overlap", "units"):
        if getattr(study, name) < 0:
            yield (name,), f"{name} must be 0 or more"
    if study.overlap > study.session:
        yield ("overlap",), f"overlap ({study.overlap}) must not be larger than session ({study.session})"
    if not 1 <= study.reserve_minutes <= 24 * 60:
        yield ("reserve_minutes",), "reserve_minutes must be from 1 to 1440"
    if not 1 <= study.sessions <= 60:
        yield ("sessions",), "sessions must be from 1 to 60 (at most 60 a person, by ITU-T P.808)"
    for name in ("training", "traps", "gold", "repeats", "anchors"):
        if not 0 <= getattr(study.checks, name) <= 20:
            yield ("checks", name), f"checks.{name} must be from 0 to 20"
    if not 0 <= study.care.break_every <= 1000:
        yield ("care", "break_every"), "care.break_every must be from 0 (no breaks) to 1000 screens"
    if not -40 <= study.loudness.cap_db <= 0:
        yield ("loudness", "cap_db"), "loudness.cap_db must be from -40 to 0 dB of full scale"
    gains = {("loudness", "clips_gain_db"): study.loudness.clips_gain_db, ("mushra", "gain_db"): study.mushra.gain_db}
    for place, gain in gains.items():
        if not -60 <= gain <= 60:
            yield place, f"{place[1]} must be from -60 to 60"
    for number, source in enumerate(study.sources):
        if not -60 <= source.gain_db <= 60:
            yield ("source", f"[{number}]", "gain_db"), f"gain_db of {source.name} must be from -60 to 60"


def _texts(study: Study) -> Mistakes:
    if not _ID.fullmatch(study.id):
        yield ("id",), "id must be the twelve characters that 'overtone studio new' wrote"
    try:
        registry.check_name("designs", study.design)
    except UsageError as error:
        yield ("design",), str(error)
    if not study.people.consent.strip():
        yield ("people", "consent"), "people.consent is empty; write what people agree to"
    if not re.match(r"sqlite:.|postgres(ql)?://.", study.store.url):
        yield ("store", "url"), "store.url must be sqlite:FILE or postgresql://…"
    if re.match(r"postgres(ql)?://[^/@]*:[^/@]*@", study.store.url):
        yield ("store", "url"), "store.url must not contain a password; set PGPASSWORD or use ~/.pgpass"


def _choices(study: Study) -> Mistakes:
    if strange := [name for name in study.shows if name not in SHOWS]:
        yield ("shows",), f"shows has {strange[0]!r}; raters can see {', '.join(SHOWS)}"
    slugs = cues.slugs()
    for name in study.label.cues:
        if name not in (*slugs, "all", "emotions"):
            yield (
                ("label", "cues"),
                f"label.cues has {name!r}{suggest(name, slugs)}; write all, emotions, or names of cues",
            )
    if study.review.round not in (1, 2, 3):
        yield ("review", "round"), f"review.round must be 1, 2 or 3, not {study.review.round}"
    if not study.record.licence.strip():
        yield ("record", "licence"), "record.licence is empty; write an SPDX identifier such as CC-BY-4.0"
    for name in study.care.skippable:
        if name not in slugs:
            yield ("care", "skippable"), f"care.skippable has {name!r}{suggest(name, slugs)}, which is not a cue"
    for tag in study.languages:
        if why := tag_problem(tag):
            yield ("languages",), f"languages: {why}"
    keys = [one.key for one in study.qualification.questions]
    for number, one in enumerate(study.qualification.questions):
        place = ("qualification", "question", f"[{number}]")
        if not _KEY.fullmatch(one.key) or keys.count(one.key) > 1:
            yield (*place, "key"), f"the key {one.key!r} must be unique and have only small letters, digits and _"
        if len(one.options) < 2:
            yield (*place, "options"), f"the question {one.key} needs at least two options"
        if wrong := [name for name in one.accept if name not in one.options]:
            yield (*place, "accept"), f"the question {one.key} accepts {wrong[0]!r}, which is not one of its options"


def _people(study: Study) -> Mistakes:
    until = study.people.withdraw_until
    if until:
        try:
            datetime.date.fromisoformat(until)
        except ValueError:
            yield (
                ("people", "withdraw_until"),
                f"people.withdraw_until must be a date such as 2027-01-31, not {until!r}",
            )
    keys = [part.key for part in study.people.parts]
    for number, part in enumerate(study.people.parts):
        if not _KEY.fullmatch(part.key) or keys.count(part.key) > 1:
            place = ("people", "part", f"[{number}]", "key")
            yield place, f"the key {part.key!r} must be unique and have only small letters, digits and _"
    codes = [code for name in CODES if (code := getattr(study.recruitment, name))]
    if len(set(codes)) < len(codes):
        yield ("recruitment",), "two codes of recruitment are the same; the platform could not tell the outcomes apart"
    if study.recruitment.platform and not study.recruitment.completion_code:
        yield ("recruitment", "completion_code"), f"{study.recruitment.platform} needs a completion_code"
    url = study.recruitment.return_url
    if url and not url.startswith("https://"):
        yield ("recruitment", "return_url"), "recruitment.return_url must begin with https://"


def _sources(study: Study) -> Mistakes:
    names = [source.name for source in study.sources]
    if not names:
        yield (), "it needs at least one [[source]]"
    for number, name in enumerate(names):
        if names.index(name) < number:
            yield ("source", f"[{number}]", "name"), f"two sources are called {name!r}; each needs a name of its own"


def _contradictions(study: Study) -> Mistakes:
    from overtone.judges import rubric
    from overtone.studio import designs

    design = designs.find(study.design)
    for number, source in enumerate(study.sources):
        if source.kind not in design.kinds:
            kinds = " or ".join(design.kinds)
            yield (
                ("source", f"[{number}]"),
                f"{source.name} is a {source.kind}; the design {study.design} needs a {kinds}",
            )
    if len(study.sources) < design.runs:
        yield (
            ("design",),
            f"the design {study.design} needs at least {design.runs} sources; there are {len(study.sources)}",
        )
    try:
        asked = [rubric.load(name) for name in study.rubrics]
        designs.check_rubrics(study.design, asked)
    except UsageError as error:
        yield ("rubrics",), str(error)
        return
    if study.one_question_per_person and study.design != "acr":
        yield (
            ("one_question_per_person",),
            f"one_question_per_person divides the questions of rubrics among people; it needs the design acr, "
            f"not {study.design}",
        )
    if (hint := HINTS.get(study.design)) and hint in study.shows:
        yield ("shows",), f"the design {study.design} must not show {hint}: it gives the answer away"
    if study.design != "label" and study.of == "clips":
        yield ("of",), f'of = "clips" belongs to the design label; {study.design} asks about replies'
    if study.of == "replies" and any(source.kind == "set" for source in study.sources):
        yield ("of",), 'a set has no replies; write of = "clips"'
    if study.adaptive and study.design not in PAIRED:
        yield ("adaptive",), f"adaptive chooses pairs; it needs the design ab or cmos, not {study.design}"
    if design.layout in ("record", "review") and (study.checks.training or study.checks.traps):
        yield ("checks",), f"the design {study.design} has neither training nor traps; write training = 0 and traps = 0"
    if study.checks.gold and not designs.has_gold(design, asked, study):
        yield (
            ("checks", "gold"),
            "no question of this study has a right answer about speech played backwards; write gold = 0",
        )
    if study.checks.require_headphones and not study.checks.headphones:
        yield ("checks", "require_headphones"), "require_headphones needs headphones = true"
    if study.loudness.per == "clip" and (why := _level_matters(study)):
        yield (
            ("loudness", "per"),
            f'loudness.per = "clip" would delete the cue that is asked about ({why}); use system or set',
        )


def _level_matters(study: Study) -> str:
    """Return why the loudness of a clip may carry what is asked about, or ""."""
    from overtone.judges import rubric

    if study.design == "label":
        return "cues and emotions"
    for name in study.rubrics:
        one = rubric.load(name)
        if one.hears:
            return f"the rubric {name} asks how a voice sounds"
        if "cue" in one.shows:
            return f"the rubric {name} asks about a cue of the user's voice"
    return ""
