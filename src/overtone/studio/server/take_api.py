"""The API of speakers: what a place asks for, takes as WAV uploads with their checks, listening, keeping."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from aiohttp import web
from msgspec import Struct

from overtone.errors import DataError, StoreError
from overtone.paths import shown
from overtone.server_guard import Problem, json_response, read_body
from overtone.studio import replies, take_checks
from overtone.studio.designs.record import ScriptUnit
from overtone.studio.script_parts import Part
from overtone.studio.server import desks
from overtone.studio.server.open_study import Studio, message, person_of, studio_of
from overtone.studio.server.rater_api import check_key, details, invalid, ready
from overtone.studio.store.store_records import Person, Slot, Take
from overtone.studio.take_checker import TakeChecker
from overtone.studio.take_checks import TakeError, Wanted

CHECKER: web.AppKey[TakeChecker] = web.AppKey("checker", TakeChecker)
SETTINGS = "X-Take-Settings"  # JSON: what the microphone really did, and the room's noise
VOICES = ("male", "female")
MOST_TAKES = 50  # of one delivery by one speaker: more would fill the disk
STATUS = {"busy": 503, "large": 413}  # of uploads that are not takes; others: 422


class Heard(Struct, frozen=True):
    """A stored take, as its speaker sees it."""

    id: str
    seconds: float
    verdict: str
    reasons: tuple[str, ...]
    may_keep: bool
    kept: bool | None
    url: str
    words: str  # heard, wrong or unchecked


class Asked(Struct, frozen=True):
    """One delivery of the script, and its newest take."""

    key: str
    label: str
    instruction: str
    shortest: float
    longest: float
    takes: int
    take: Heard | None
    example: str  # address of a sound; "": none


class Task(Struct, frozen=True):
    """The script of a place and its deliveries. `speaker` is false until the speaker has described the voice."""

    slot: str
    words: str
    language: str
    licence: str
    speaker: bool
    parts: tuple[Asked, ...]


class Stored(Struct, frozen=True):
    take: Heard
    task: Task


class Keep(Struct, frozen=True, forbid_unknown_fields=True):
    take: str
    kept: bool


async def task(request: web.Request) -> web.Response:
    """Answer what a place asks for."""
    person, studio = await person_of(request), studio_of(request)
    ready(studio)
    return json_response(await studio.call(_task, studio, person, await studio.call(_slot, studio, person, request)))


async def post_take(request: web.Request) -> web.Response:
    """Check and store a take. It is on disk when this answers; a repeated `client_key` changes nothing."""
    person, studio = await person_of(request), studio_of(request)
    ready(studio)
    slot = await studio.call(_slot, studio, person, request)
    key = request.query.get("client_key", "")
    check_key(key)
    unit = await studio.call(desks.script, studio, slot)
    part = next((one for one in unit.parts if one.key == request.query.get("part")), None)
    if part is None:
        raise invalid("this script has no such delivery; reload the page")
    if slot.state == "done":
        raise Problem(409, "this script is finished; reload the page", code="slot")
    if sum(take.part == part.key for take in await studio.call(studio.store.takes.of_slot, slot.id)) >= MOST_TAKES:
        raise invalid(f"this was recorded {MOST_TAKES} times; keep a recording, or skip the script")
    settings = _settings(request)
    if why := _not_ready(person):
        raise invalid(why)
    data = await read_body(request, take_checks.MOST_BYTES)
    others = await studio.call(_words, studio)
    noise = settings.get("noise_dbfs")
    wanted = Wanted(unit.texts["words"], part.cue, unit.language, _number(noise), others)
    try:
        checked = await request.app[CHECKER].check(data, wanted)
    except TakeError as error:
        raise Problem(STATUS.get(error.code, 422), str(error), code=f"take_{error.code}") from None
    checks = {**msgspec.to_builtins(checked.checks), "may_keep": checked.may_keep}

    def store() -> Stored:
        stored = studio.store.takes.add(
            person.label, slot.id, key, data, part=part.key, seconds=checked.checks.seconds, settings=settings,
            checks=checks, verdict=checked.verdict, reasons=[reason.text for reason in checked.reasons],
        )  # fmt: skip
        return Stored(_heard(stored), _task(studio, person, slot))

    return json_response(await studio.call(store))


async def keep(request: web.Request) -> web.Response:
    """Keep or discard a take, and answer what the place asks for now."""
    person, studio = await person_of(request), studio_of(request)
    given = await message(request, Keep)

    def work() -> Task:
        take = studio.store.takes.get(person.label, given.take)
        slot = studio.store.sessions.slot(person.label, take.slot)
        if slot.state == "done":
            raise Problem(409, "this script is finished; reload the page", code="slot")
        if given.kept and not take.checks.get("may_keep"):
            raise invalid(f"this recording must be made again: {' '.join(take.reasons)}")
        studio.store.takes.decide(person.label, take.id, given.kept)
        return _task(studio, person, slot)

    return json_response(await studio.call(work))


async def listen(request: web.Request) -> web.Response:
    """Answer the sound of one of the person's own takes."""
    person, studio = await person_of(request), studio_of(request)

    def work() -> bytes:
        take = studio.store.takes.get(person.label, request.match_info["id"])
        path = studio.store.takes.path(take)
        try:
            return path.read_bytes()
        except OSError as error:
            raise StoreError(f"{shown(str(path))}: the recording cannot be read ({error.strerror})") from None

    headers = {"Cache-Control": "private, no-store"}
    return web.Response(body=await studio.call(work), content_type="audio/wav", headers=headers)


async def example(request: web.Request) -> web.Response:
    """Answer how a delivery may sound, if the study has an example of it."""
    person, studio = await person_of(request), studio_of(request)
    slot = await studio.call(_slot, studio, person, request)

    def work() -> bytes:
        sound = desks.script(studio, slot).examples.get(request.query.get("part", ""))
        if sound is None:
            raise Problem(404, "there is no such sound", code="unknown")
        try:
            replies.check(sound)
            return Path(sound.path).read_bytes()
        except (DataError, OSError) as error:
            studio.warn(f"an example cannot be played: {error}")
            raise Problem(404, "this example cannot be played at the moment", code="lost") from None

    headers = {"Cache-Control": "private, no-store"}
    return web.Response(body=await studio.call(work), content_type="audio/wav", headers=headers)


def _slot(studio: Studio, person: Person, request: web.Request) -> Slot:
    if studio.contents.design.layout != "record":
        raise Problem(404, "this study does not record", code="unknown")
    return studio.store.sessions.slot(person.label, request.query.get("slot", ""))


def _not_ready(person: Person) -> str:
    """Return what a speaker has to say before the first take, or ""."""
    if person.device.get("voice") not in VOICES:
        return "please set up your microphone first"
    if not (person.device.get("adult") or person.device.get("guardian")):
        return "a person who is not an adult needs the agreement of a parent or guardian"
    return ""


def _task(studio: Studio, person: Person, slot: Slot) -> Task:
    unit = desks.script(studio, slot)
    made = studio.store.takes.of_slot(slot.id)
    parts = tuple(_asked(part, unit, slot, made) for part in unit.parts)
    known = not _not_ready(studio.store.people.get(person.label))
    return Task(slot.id, unit.texts["words"], unit.language, studio.study.record.licence, known, parts)


def _asked(part: Part, unit: ScriptUnit, slot: Slot, made: list[Take]) -> Asked:
    mine = [take for take in made if take.part == part.key]
    chosen = next((take for take in mine if take.kept), None)
    newest = mine[-1] if mine and mine[-1].kept is None else None
    shown_take = newest or chosen
    shortest, longest = take_checks.limits(unit.texts["words"], part.cue, unit.language)
    heard = _heard(shown_take) if shown_take else None
    example = f"api/record/example?slot={slot.id}&part={part.key}" if part.key in unit.examples else ""
    return Asked(part.key, part.label, part.instruction, shortest, longest, len(mine), heard, example)


def _heard(take: Take) -> Heard:
    may_keep = bool(take.checks.get("may_keep"))
    words = str(take.checks.get("words", {}).get("state", "unchecked"))
    url = f"api/take/{take.id}"
    return Heard(take.id, take.seconds, take.verdict, take.reasons, may_keep, take.kept, url, words)


def _words(studio: Studio) -> tuple[str, ...]:
    """Return the words of all scripts of the study, to which a take is compared."""
    return tuple(studio.unit(name).texts["words"] for name in studio.store.units())


def _settings(request: web.Request) -> dict[str, Any]:
    """Return what the page says about the microphone. Raises Problem for anything but a few short facts."""
    try:
        given = msgspec.json.decode(
            request.headers.get(SETTINGS, "{}"), type=dict[str, str | int | float | bool | None]
        )
    except msgspec.DecodeError:
        raise invalid(f"{SETTINGS} must be a JSON object with simple values") from None
    return details(given)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


async def close(app: web.Application) -> None:
    """End the process that checks takes."""
    app[CHECKER].close()


ROUTES = [
    web.get("/api/record", task),
    web.get("/api/record/example", example),
    web.post("/api/take", post_take),
    web.post("/api/take/keep", keep),
    web.get("/api/take/{id:[0-9a-zA-Z_-]{1,80}}", listen),
]
