"""The application: routes, checks and preparation; and the loop that serves it until it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Callable

from aiohttp import web

from overtone.errors import OvertoneError
from overtone.server_guard import Guard, listening, middlewares
from overtone.studio import contents
from overtone.studio.designs import Unit
from overtone.studio.server import owner_api, rater_api, screens, security, sound_api, states, static_pages, take_api
from overtone.studio.server.open_study import STUDIO, Studio, explain, stimulus
from overtone.studio.sounds import LostSound
from overtone.studio.take_checker import TakeChecker

CONNECTIONS = 900  # below the usual limit of 1024 open files
RENDER_PAUSE = 0.02  # seconds after each sound that nobody waits for, so that answers are saved meanwhile
RELEASE_SECONDS = 30.0  # between two looks for places whose time is over


def application(studio: Studio, guard: Guard) -> web.Application:
    """Return the application over an open study."""

    @web.middleware
    async def check_site(request: web.Request, handler: web.Handler) -> web.StreamResponse:  # type: ignore[name-defined]
        if request.path.startswith("/api/"):
            security.check_site(request)
        answer: web.StreamResponse = await handler(request)
        return answer

    app = web.Application(middlewares=[*middlewares(guard), check_site, explain])
    app[STUDIO] = studio
    app.on_response_prepare.append(security.add_headers)
    app.add_routes([*static_pages.routes(), *rater_api.ROUTES, *sound_api.ROUTES, *owner_api.ROUTES, *take_api.ROUTES])
    app[take_api.CHECKER] = TakeChecker()
    app.on_cleanup.append(take_api.close)
    return app


@contextlib.asynccontextmanager
async def serving(studio: Studio, taken: socket.socket, guard: Guard) -> AsyncIterator[str]:
    """Serve a study on a bound socket inside this context; yield the base URL. The database is closed at the end."""
    try:
        async with listening(application(studio, guard), taken, path="/", connections=CONNECTIONS) as url:
            studio.background(release(studio))
            yield url
    finally:
        await studio.close()


async def serve(studio: Studio, taken: socket.socket, guard: Guard, ready: Callable[[str], None]) -> None:
    """Serve a study until cancelled; call `ready` when people can take part.

    Raises OvertoneError, before `ready`, if its sources cannot be read.
    """
    async with serving(studio, taken, guard) as url:
        await prepare(studio)
        ready(url)
        await asyncio.Event().wait()


async def prepare(studio: Studio) -> None:
    """Prepare the study: read its contents if this is the first start, and render its sounds in the background.

    People wait until the contents are read. Sounds that their sessions need are rendered first.
    """
    units = await studio.call(freeze, studio)
    studio.prepared.set()
    if await studio.call(studio.has_withdrawn_labels):
        studio.remove_labels()
    studio.background(studio.call_slow(render_all, studio, units))


def freeze(studio: Studio) -> list[Unit]:
    """Store the study's units at the first start, and return all units."""
    new = studio.store.state() == "new"
    studio.store.freeze(
        contents.read(studio.study).units if new else (),
        sides=len(studio.contents.design.sides),
        question_groups=studio.contents.question_groups,
    )
    if studio.study.adaptive:
        from overtone.studio import adaptive  # here, because it would slow the start of other studies

        studio.store.sessions.duels = adaptive.duels(studio.study, studio.store)
    for name in ("calibration", *(f"tones-{count}" for count in range(1, 6))):
        stimulus(name)
    return [studio.unit(name) for name in studio.store.units()]


def render_all(studio: Studio, units: list[Unit]) -> None:
    """Render the sounds that sessions will need. Block units whose sounds are lost, and unblock units whose sounds
    are restored."""
    blocked = studio.store.sessions.blocked()
    for unit in units:
        if studio.stopping:
            return
        try:
            for one in studio.contents.played(unit):
                wanted = screens.wanted(studio, one)
                if studio.sounds.known(wanted) is None:
                    studio.sounds.render(wanted)
                    time.sleep(RENDER_PAUSE)
        except LostSound as lost:
            if unit.id not in blocked:
                states.block(studio, unit.id, lost)
        else:
            if unit.id in blocked:
                studio.store.sessions.unblock(unit.id)


async def release(studio: Studio) -> None:
    """Release expired places, periodically."""
    while True:
        await asyncio.sleep(RELEASE_SECONDS)
        try:
            await studio.call(studio.store.sessions.release_expired)
        except OvertoneError as error:  # the database is away for a moment
            studio.warn(str(error))
