"""Sounds over HTTP, with ranges, from memory. People get only the sounds of their own places, under random ids."""

from __future__ import annotations

from aiohttp import web

from overtone.server_guard import Problem
from overtone.studio.server import screens, states
from overtone.studio.server.open_study import Studio, person_of, stimulus, studio_of
from overtone.studio.sounds import LostSound
from overtone.studio.store.store_records import Person

LOST = "this recording cannot be played at the moment; you get another one"


async def sound(request: web.Request) -> web.Response:
    """Answer a sound of one of the person's places."""
    person, studio = await person_of(request), studio_of(request)
    data = await studio.call(find, studio, person, request.match_info["id"])
    return ranged(request, data)


def find(studio: Studio, person: Person, wanted: str) -> bytes:
    """Return the bytes of a sound. Raises Problem for an unknown one, for another person's, and for a lost one."""
    found = screens.find_sound(studio, studio.store.sessions.places(person.label), wanted)
    if found is None:
        raise unknown()
    slot, one = found
    try:
        return studio.sound(one.wanted)
    except LostSound:
        states.prepare(studio, slot)
        raise Problem(409, LOST, code="lost") from None


async def calibration(request: web.Request) -> web.Response:
    """Answer the noise with which people set the volume."""
    await person_of(request)
    return ranged(request, await studio_of(request).call(stimulus, "calibration"))


async def trial(request: web.Request) -> web.Response:
    """Answer the sound of a trial of the person's headphone test."""
    person, studio = await person_of(request), studio_of(request)
    for number, one in enumerate(states.trials(studio, person)):
        if states.trial_id(studio, person, number) == request.match_info["id"]:
            return ranged(request, await studio.call(stimulus, one.name))
    raise unknown()


def unknown() -> Problem:
    return Problem(404, "there is no such sound", code="unknown")


def ranged(request: web.Request, data: bytes) -> web.Response:
    """Return a sound, or the part of it that the request asks for."""
    headers = {"Accept-Ranges": "bytes", "Cache-Control": "private, no-store"}
    try:
        part = request.http_range
    except ValueError:
        part = slice(None)  # a malformed range is ignored
    if part.start is None and part.stop is None:
        return web.Response(body=data, content_type="audio/flac", headers=headers)
    first, last, _ = part.indices(len(data))
    if first >= last:
        headers["Content-Range"] = f"bytes */{len(data)}"
        return web.Response(status=416, headers=headers)
    headers["Content-Range"] = f"bytes {first}-{last - 1}/{len(data)}"
    return web.Response(status=206, body=data[first:last], content_type="audio/flac", headers=headers)


ROUTES = [
    web.get("/api/sound/{id}", sound),
    web.get("/api/calibration", calibration),
    web.get("/api/headphones/{id}", trial),
]
