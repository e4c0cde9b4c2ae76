"""The static files: page shells, scripts and styles. All people get the same bytes."""

from __future__ import annotations

from importlib import resources

from aiohttp import web

from overtone.server_guard import Problem
from overtone.studio.server.open_study import fingerprint
from overtone.studio.server.security import MTURK_PATH

KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
RATER = ("/", "/join", MTURK_PATH)
PACKAGE = "overtone.studio"


class Files:
    """The files of the folder pages, read once."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[bytes, str, str]] = {}
        folder = resources.files(PACKAGE).joinpath("pages")
        for file in folder.iterdir():
            kind = KINDS.get(f".{file.name.rpartition('.')[2]}")
            if kind and file.is_file():
                data = file.read_bytes()
                self._files[file.name] = (data, kind, f'"{fingerprint(data)}"')

    def answer(self, request: web.Request, name: str) -> web.Response:
        """Return a file, or 304 if the browser has it."""
        if name not in self._files:
            raise Problem(404, "there is no such page", code="unknown")
        data, kind, tag = self._files[name]
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        if tag in request.headers.get("If-None-Match", ""):
            return web.Response(status=304, headers=headers)
        return web.Response(body=data, content_type=kind, charset="utf-8", headers=headers)


def routes() -> list[web.RouteDef]:
    """Return the routes of pages, scripts and styles."""
    files = Files()

    async def rater(request: web.Request) -> web.Response:
        return files.answer(request, "rater.html")

    async def owner(request: web.Request) -> web.Response:
        return files.answer(request, "owner.html")

    async def asset(request: web.Request) -> web.Response:
        return files.answer(request, request.match_info["name"])

    return [
        *(web.get(path, rater) for path in RATER),
        web.get("/owner", owner),
        web.get("/pages/{name}", asset),
    ]
