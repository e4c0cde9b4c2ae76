"""The API of raters: join, state, consent, checks, answers, skip, break, withdrawal.

A handler reads and checks the request, lets one function work in a thread, and sends what that returned.
"""

from __future__ import annotations

import asyncio
import datetime
import time
from collections.abc import Callable
from typing import Any

import msgspec
from aiohttp import web

from overtone.errors import DataError
from overtone.server_guard import Problem, json_response
from overtone.studio import fields as controls
from overtone.studio import stimuli
from overtone.studio.contents import REMARK
from overtone.studio.fields import AnyField, Value
from overtone.studio.server import desks, screens, states
from overtone.studio.server.messages import (
    Answer,
    Consent,
    HeadphoneAnswers,
    Join,
    Joined,
    Nothing,
    QualificationAnswers,
    Saved,
    Setup,
    Skip,
)
from overtone.studio.server.open_study import Studio, message, person_of, studio_of
from overtone.studio.store.store_records import Person, Slot, Source

LONGEST = 200  # characters of an id from outside, and of a client key
MOST_DETAILS = 40  # facts about a device
MOST_MS = 24 * 3_600_000
PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"  # MTurk's, before a worker has accepted
IDS: dict[Source, tuple[str, str, str]] = {  # platform → its names for the person, the session and the submission
    "prolific": ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID"),
    "mturk": ("workerId", "hitId", "assignmentId"),
}


def ready(studio: Studio) -> None:
    """Raise Problem until the runs have been read, which takes a moment at the first start."""
    if not studio.prepared.is_set():
        raise Problem(503, "the study is being prepared; try again in a moment", code="preparing")


def invalid(text: str) -> Problem:
    return Problem(422, text, code="invalid")


# ── joining ───────────────────────────────────────────────────────────────────────────────────────────────────────────
async def join(request: web.Request) -> web.Response:
    """Let a person in through the public link or a platform's link, and answer a new token."""
    studio = studio_of(request)
    ready(studio)
    asked = await message(request, Join)
    if any(len(value) > LONGEST for value in asked.params.values()):
        raise invalid("the address has a parameter that is too long; open the link again")
    source, external, session, submission = identity(asked.params)
    allowed = await studio.call(public_sources, studio)
    if source not in allowed:
        raise Problem(403, "this study is open to invited people only; ask the organiser for a link", code="invited")
    if not studio.joins.take():
        raise Problem(429, "many people are joining; this page tries again in a moment", code="slow_down")
    joined = await studio.call(studio.store.people.join, source, external, session=session, submission=submission)
    return json_response(Joined(joined.token))


def identity(params: dict[str, str]) -> tuple[Source, str, str, str]:
    """Return the source of a person, and the platform's ids: the person's, the session's, the submission's."""
    for source, (person, session, submission) in IDS.items():
        if params.get(person):
            if params.get(submission) == PREVIEW:
                raise Problem(403, "accept the task first; then the study opens", code="preview")
            return source, params[person], params.get(session, ""), params.get(submission, "")
    if params.get("assignmentId") == PREVIEW:
        raise Problem(403, "accept the task first; then the study opens", code="preview")
    return "public", "", "", ""


def public_sources(studio: Studio) -> list[str]:
    """Return from where people may join without an invitation: what the newest public link allows."""
    opened = studio.store.log.events("public")
    return list(opened[-1].detail.get("sources", [])) if opened else []


# ── steps ─────────────────────────────────────────────────────────────────────────────────────────────────────────────
async def state(request: web.Request) -> web.Response:
    """Answer the person's state."""
    person = await person_of(request)
    return await respond(studio_of(request), person)


async def respond(studio: Studio, person: Person, change: Callable[[], Any] | None = None) -> web.Response:
    """Make a change in a thread, if one is given, and answer the state after it."""

    def work() -> bytes:
        if change is not None:
            change()
        return msgspec.json.encode(states.state(studio, person.label))

    ready(studio)
    return web.Response(body=await studio.call_slow(work), content_type="application/json")


async def consent(request: web.Request) -> web.Response:
    """Store agreement or refusal."""
    person, studio = await person_of(request), studio_of(request)
    given = await message(request, Consent)
    parts = {part.key: bool(given.parts.get(part.key, False)) for part in studio.study.people.parts}
    if given.agree and (missing := [p.key for p in studio.study.people.parts if p.required and not parts[p.key]]):
        raise invalid(f"taking part needs this consent too: {', '.join(missing)}")

    def change() -> None:
        studio.store.people.consent(person.label, given.consent_sha, given.agree, parts, client_key=given.client_key)

    return await respond(studio, person, change)


async def setup(request: web.Request) -> web.Response:
    """Store the output device and the level."""
    person, studio = await person_of(request), studio_of(request)
    given = await message(request, Setup)
    if given.level is not None and not 0 <= given.level <= 1:
        raise invalid("the level must be from 0 to 1")
    device = details(given.device)

    def change() -> None:
        studio.store.people.set_up(person.label, device, given.level, client_key=given.client_key)

    return await respond(studio, person, change)


def details(device: dict[str, Any]) -> dict[str, Any]:
    """Return facts about a device. Raises Problem for too many or too long ones."""
    if len(device) > MOST_DETAILS or any(len(str(value)) > LONGEST for pair in device.items() for value in pair):
        raise invalid(f"at most {MOST_DETAILS} facts of {LONGEST} characters about a device are stored")
    return device


async def headphones(request: web.Request) -> web.Response:
    """Store one attempt at the headphone test."""
    person, studio = await person_of(request), studio_of(request)
    given = await message(request, HeadphoneAnswers)
    asked = states.trials(studio, person)
    if given.test != states.TEST or len(given.answers) != len(asked):
        raise invalid(f"the test {states.TEST} has {len(asked)} trials")
    correct = stimuli.score(asked, given.answers)
    result = {
        "test": given.test, "correct": correct, "trials": len(asked), "at": round(time.time(), 3),
        "passed": correct >= stimuli.NEEDED[given.test], "device": details(given.device),
    }  # fmt: skip

    def change() -> None:
        if studio.store.sessions.step(person.label) == "headphones":  # a repeated request is not another attempt
            studio.store.people.add_headphones(person.label, result, client_key=given.client_key)

    return await respond(studio, person, change)


async def qualification(request: web.Request) -> web.Response:
    """Store the answers about the person. One that the study does not accept ends the session."""
    person, studio = await person_of(request), studio_of(request)
    given = await message(request, QualificationAnswers)
    values, passed = {}, True
    for field, question in zip(states.qualification(studio).fields, studio.study.qualification.questions, strict=True):
        value = checked(field, given.values.get(field.key))
        values[field.key] = value
        passed = passed and (not question.accept or value in question.accept)

    def change() -> None:
        if studio.store.sessions.step(person.label) != "qualification":
            return
        studio.store.people.qualify(person.label, values, passed, client_key=given.client_key)

    return await respond(studio, person, change)


async def rest(request: web.Request) -> web.Response:
    """Store that the person took the break."""
    person, studio = await person_of(request), studio_of(request)
    await message(request, Nothing)
    return await respond(studio, person, lambda: studio.store.sessions.rest(person.label))


async def begin_again(request: web.Request) -> web.Response:
    """Begin another session, if the study allows it and has places left."""
    person, studio = await person_of(request), studio_of(request)
    await message(request, Nothing)

    def change() -> None:
        if studio.store.sessions.step(person.label) == "done":
            studio.store.sessions.start_again(person.label)

    return await respond(studio, person, change)


async def withdraw(request: web.Request) -> web.Response:
    """Delete what the person gave. Raises Problem after the last day on which the study promised it."""
    person, studio = await person_of(request), studio_of(request)
    await message(request, Nothing)
    if not studio.study.withdrawal_open(datetime.datetime.now(datetime.UTC).date()):
        day, contact = studio.study.people.withdraw_until, studio.study.people.contact
        told = f"people could withdraw until {day}" + (f"; write to {contact}" if contact else "")
        raise Problem(409, told, code="late")
    loop = asyncio.get_running_loop()
    return await respond(studio, person, lambda: studio.withdraw(person.label, loop))


# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────────────
def checked(field: AnyField, value: object) -> Value:
    """Return a checked answer. Raises Problem that says which answers the question allows."""
    try:
        return controls.check(field, value)
    except DataError as error:
        raise invalid(str(error)) from None


def check_key(key: str) -> None:
    """Raise Problem for a client key that is missing or too long."""
    if not 8 <= len(key) <= LONGEST:
        raise invalid(f"client_key must have 8 to {LONGEST} characters")


async def answer(request: web.Request) -> web.Response:
    """Store answers; with `done`, check that the screen is complete and answer the next state."""
    person, studio = await person_of(request), studio_of(request)
    given = await message(request, Answer)
    check_key(given.client_key)
    ready(studio)

    def work() -> bytes:
        save(studio, person, given)
        return msgspec.json.encode(states.state(studio, person.label) if given.done else Saved())

    return web.Response(body=await studio.call(work), content_type="application/json")


def save(studio: Studio, person: Person, given: Answer) -> None:
    """Check and store answers. Raises Problem for answers that the questions do not allow, and Refusal."""
    slot = studio.store.sessions.slot(person.label, given.slot)
    asked = screens.fields(studio, slot, person)
    by_key: dict[str, AnyField] = {field.key: field for field in asked}
    if studio.study.remark and slot.kind != "trap":
        by_key[REMARK.key] = REMARK
    if unknown := [key for key in given.values if key not in by_key]:
        raise invalid(f"this screen does not ask for {unknown[0]!r}")
    values = {key: checked(by_key[key], value) for key, value in given.values.items()}
    plays = heard_sounds(studio, slot, given.plays)
    if slot.stage or given.done or slot.state == "done":
        saved = studio.store.answers.of_slot(slot.id)
        before = saved.values if saved else {}
        if slot.state == "done" and any(before.get(key) != value for key, value in values.items()):
            raise Problem(409, "this screen was finished in another window", code="finished")
        if slot.stage:  # the words were shown: what was said about the voice stays
            values = {key: v for key, v in values.items() if key not in before or by_key[key].stage != "voice"}
        if given.done:
            check_complete(studio, slot, asked, {**before, **values}, plays, saved.plays if saved else {})
    studio.store.answers.add(
        person.label, slot.id, given.client_key, values, plays=plays, ms=max(0, min(given.ms, MOST_MS)),
        stage=1 if given.stage else 0, done=given.done,
    )  # fmt: skip
    if given.done:
        desks.finish(studio, person.label)


def heard_sounds(studio: Studio, slot: Slot, plays: dict[str, int]) -> dict[str, int]:
    """Return how often each sound of a place was played, as the page reports it."""
    names = {one.name for one in screens.heard(studio, slot)}
    return {name: max(0, min(count, 10_000)) for name, count in plays.items() if name in names}


def check_complete(
    studio: Studio, slot: Slot, asked: tuple[AnyField, ...], values: dict[str, Value],
    plays: dict[str, int], before: dict[str, int],
) -> None:  # fmt: skip
    """Raise Problem for a screen on which a question is open or a sound was not played to its end."""
    if missing := [field.label or field.question for field in screens.unanswered(asked, values)]:
        raise invalid(f"please answer: {'; '.join(missing)}")
    if why := desks.problem(studio, slot, values):
        raise invalid(why)
    for one in screens.heard(studio, slot):
        if not max(plays.get(one.name, 0), before.get(one.name, 0)):
            raise invalid(f"please listen to the end first: {one.label}")


async def skip(request: web.Request) -> web.Response:
    """Leave a screen out, without loss of pay."""
    person, studio = await person_of(request), studio_of(request)
    given = await message(request, Skip)
    check_key(given.client_key)
    reason = given.reason[:LONGEST]
    return await respond(
        studio, person, lambda: studio.store.answers.skip(person.label, given.slot, given.client_key, reason)
    )


ROUTES = [
    web.post("/api/join", join),
    web.get("/api/state", state),
    web.post("/api/consent", consent),
    web.post("/api/setup", setup),
    web.post("/api/headphones", headphones),
    web.post("/api/qualification", qualification),
    web.post("/api/break", rest),
    web.post("/api/again", begin_again),
    web.post("/api/withdraw", withdraw),
    web.post("/api/answer", answer),
    web.post("/api/skip", skip),
]
