"""The API of the owner: progress, people, invitations, deletion of a person, exports, the end of the study."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from aiohttp import web
from msgspec import Struct

from overtone.server_guard import Problem, json_response
from overtone.studio import closing, overview
from overtone.studio.labels.collect import collect
from overtone.studio.server.messages import Nothing
from overtone.studio.server.open_study import Studio, message, owner_of, studio_of
from overtone.studio.store.store_records import Role

MOST_INVITED = 1000
FILES = {  # format of an export → type of its content, end of the file's name
    "csv": ("text/csv", "csv"),
    "jsonl": ("application/x-ndjson", "jsonl"),
    "label-studio": ("application/json", "json"),
}


class Invite(Struct, frozen=True):
    count: int = 1
    role: Role = "rater"


class Link(Struct, frozen=True):
    """An invitation. The page adds its own address: `/#TOKEN`."""

    label: str
    token: str


async def status(request: web.Request) -> web.Response:
    """Answer the state of the study, without people."""
    await owner_of(request)
    found = await _overview(studio_of(request))
    return json_response({name: value for name, value in _plain(found).items() if name != "people"})


async def people(request: web.Request) -> web.Response:
    """Answer all people."""
    await owner_of(request)
    return json_response({"people": _plain(await _overview(studio_of(request)))["people"]})


async def flags(request: web.Request) -> web.Response:
    """Answer the verdicts of the quality rules on every session."""
    await owner_of(request)
    studio = studio_of(request)
    return json_response({"sessions": await studio.call_slow(overview.judged, studio.study, studio.store)})


async def agree(request: web.Request) -> web.Response:
    """Answer agreement between people, people beside judges, and how far each comparison is decided."""
    from overtone.studio import study_results  # here, because it would slow the start

    await owner_of(request)
    studio = studio_of(request)

    def work() -> study_results.StudyResults:
        return study_results.study_results(studio.study, collect(studio.study, studio.store))

    return json_response(await studio.call_slow(work))


async def events(request: web.Request) -> web.Response:
    """Answer the log, newest first: blocked sounds, exports, releases."""
    await owner_of(request)
    studio = studio_of(request)
    found = await studio.call(studio.store.log.events)
    return json_response({"events": list(reversed(found))[:500]})


async def invite(request: web.Request) -> web.Response:
    """Add people, and send their tokens. Tokens are sent only once."""
    await owner_of(request)
    studio = studio_of(request)
    asked = await message(request, Invite)
    if not 1 <= asked.count <= MOST_INVITED or asked.role == "owner":
        raise Problem(422, f"invite from 1 to {MOST_INVITED} raters, speakers or reviewers", code="invalid")
    made = await studio.call(studio.store.people.invite, asked.count, asked.role)
    return json_response({"invitations": [Link(one.label, one.token) for one in made]})


async def revoke(request: web.Request) -> web.Response:
    """Make a person's link invalid. Their answers stay."""
    await owner_of(request)
    await message(request, Nothing)
    studio = studio_of(request)
    await studio.call(studio.store.people.revoke, request.match_info["label"])
    return json_response({"revoked": True})


async def delete(request: web.Request) -> web.Response:
    """Delete a person's data."""
    await owner_of(request)
    await message(request, Nothing)
    studio = studio_of(request)
    label, loop = request.match_info["label"], asyncio.get_running_loop()

    def work() -> Any:
        if studio.store.people.get(label).role == "owner":
            raise Problem(422, "the owner cannot be deleted", code="invalid")
        return studio.withdraw(label, loop)

    return json_response(await studio.call(work))


async def exported(request: web.Request) -> web.Response:
    """Answer a file with all answers of the study."""
    from overtone.studio import answer_export  # here, because it would slow the start

    await owner_of(request)
    studio = studio_of(request)
    form = request.query.get("format", "csv")
    if form not in answer_export.FORMATS:
        raise Problem(422, f"format must be one of {', '.join(answer_export.FORMATS)}", code="invalid")
    data = await studio.call_slow(answer_export.rows_text, studio.study, studio.store, form)
    kind, suffix = FILES[form]
    headers = {"Content-Disposition": f'attachment; filename="study-{studio.study.id}.{suffix}"'}
    return web.Response(body=data, content_type=kind, charset="utf-8", headers=headers)


async def close(request: web.Request) -> web.Response:
    """End the study, and write its labels into the runs."""
    await owner_of(request)
    await message(request, Nothing)
    studio = studio_of(request)
    closed = await studio.call_slow(closing.close, studio.study, studio.store)
    return json_response(closed)


async def _overview(studio: Studio) -> overview.Overview:
    return await studio.call_slow(overview.overview, studio.study, studio.store)


def _plain(found: overview.Overview) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(found)
    return plain


ROUTES = [
    web.get("/api/owner/status", status),
    web.get("/api/owner/people", people),
    web.get("/api/owner/flags", flags),
    web.get("/api/owner/agreement", agree),
    web.get("/api/owner/events", events),
    web.get("/api/owner/export", exported),
    web.post("/api/owner/invite", invite),
    web.post("/api/owner/person/{label}/revoke", revoke),
    web.post("/api/owner/person/{label}/delete", delete),
    web.post("/api/owner/close", close),
]
