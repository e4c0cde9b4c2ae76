"""The studio's server over real sockets, and raters who use its API as the page does."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp

from overtone.server_guard import Guard, bound
from overtone.studio import stimuli
from overtone.studio.server import app, states
from overtone.studio.server.open_study import Studio
from overtone.studio.store import Store
from overtone.studio.study import Study

Values = dict[str, Any]
Chooser = Callable[[dict[str, Any]], Values]


class Server:
    """A served study, with the tokens of its owner and a client."""

    def __init__(self, studio: Studio, url: str, session: aiohttp.ClientSession, owner: str) -> None:
        self.studio, self.url, self.session, self.owner = studio, url, session, owner

    def rater(self, token: str = "") -> Rater:
        """A rater with this token, or a newly invited one."""
        return Rater(self, token or self.studio.store.people.invite(1)[0].token)

    async def raw(self, method: str, path: str, token: str = "", **more: Any) -> tuple[int, Any, Any]:
        """Status, headers and bytes of an answer."""
        headers = {**({"Authorization": f"Bearer {token}"} if token else {}), **more.pop("headers", {})}
        async with self.session.request(method, self.url + path.lstrip("/"), headers=headers, **more) as answer:
            return answer.status, answer.headers, await answer.read()


@contextlib.asynccontextmanager
async def served(study: Study, url: str = "") -> AsyncIterator[Server]:
    """A study that is served in this process."""
    store = Store.open(study, url)
    owner = store.people.own().token
    studio = Studio(study, store)
    async with app.serving(studio, bound("127.0.0.1", 0), Guard(["127.0.0.1"], command="overtone studio serve")) as at:
        await app.prepare(studio)
        async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
            yield Server(studio, at, session, owner)


class Rater:
    """A person with a browser, who does what a page would do. `seen` has every byte that came back."""

    def __init__(self, server: Server, token: str) -> None:
        self.server, self.token = server, token
        self.seen: list[bytes] = []
        self.state: dict[str, Any] = {}

    async def call(self, method: str, path: str, body: Any = None, *, status: int = 200) -> Any:
        more = {} if body is None else {"json": body}
        got, headers, data = await self.server.raw(method, path, self.token, **more)
        self.seen += [repr(dict(headers)).encode(), data]
        assert got == status, (path, got, data[:500])
        if headers["Content-Type"].startswith("application/json"):
            import msgspec

            return msgspec.json.decode(data)
        return data

    async def get(self, path: str, **more: Any) -> Any:
        return await self.call("GET", path, **more)

    async def post(self, path: str, body: Any, **more: Any) -> Any:
        return await self.call("POST", path, body, **more)

    async def enter(self) -> dict[str, Any]:
        """Agree, set up and pass the headphone test, up to the first screen."""
        self.state = await self.get("api/state")
        while (step := self.state["step"]) in ("consent", "setup", "headphones", "break"):
            self.state = await self.pass_step(step)
        return self.state

    async def pass_step(self, step: str) -> dict[str, Any]:
        match step:
            case "consent":
                sha = self.state["study"]["texts"]["consent_sha"]
                return await self.post("api/consent", {"consent_sha": sha, "agree": True, "parts": {}})
            case "setup":
                return await self.post("api/setup", {"device": {"output": "headphones"}, "level": 0.5})
            case "headphones":
                return await self.listen(right=True)
            case "break":
                return await self.post("api/break", {})
        raise AssertionError(step)

    async def listen(self, *, right: bool) -> dict[str, Any]:
        """Take the headphone test, with the right answers or wrong ones."""
        studio = self.server.studio
        person = studio.store.people.find(self.token)
        assert person is not None
        for trial in self.state["headphones"]["trials"]:
            assert (await self.get(trial["url"])).startswith(b"fLaC")
        answers = [one.right if right else one.right % 3 + 1 for one in states.trials(studio, person)]
        assert len(answers) == stimuli.TRIALS
        return await self.post("api/headphones", {"test": "woods", "answers": answers, "device": {}})

    async def play(self, screen: dict[str, Any]) -> dict[str, bytes]:
        """Fetch every sound of a screen."""
        sounds = [*screen["context"]["sounds"], *screen["sounds"]]
        return {sound["name"]: await self.get(sound["url"]) for sound in sounds}

    async def answer(self, choose: Chooser | None = None, **more: Any) -> dict[str, Any]:
        """Listen to the screen, answer all its questions one by one, and go on to the next."""
        screen = self.state["screen"]
        await self.play(screen)
        values = (choose or sensible)(screen)
        plays = dict.fromkeys(screen["must_play"], 1)
        for key, value in values.items():
            body = {"slot": screen["slot"], "client_key": secrets.token_hex(8), "values": {key: value}, "plays": plays}
            assert await self.post("api/answer", body) == {"saved": True}
        end = {"slot": screen["slot"], "client_key": secrets.token_hex(8), "plays": plays, "ms": 4000, "done": True}
        self.state = await self.post("api/answer", {**end, **more})
        return self.state

    async def finish(self, choose: Chooser | None = None) -> dict[str, Any]:
        """Go through the whole session."""
        await self.enter()
        while self.state["step"] in ("rating", "break"):
            if self.state["step"] == "break":
                self.state = await self.post("api/break", {})
            else:
                await self.answer(choose)
        return self.state


def questions(screen: dict[str, Any]) -> list[dict[str, Any]]:
    """All questions of a screen."""
    return [field for stage in screen["stages"] for field in stage["fields"]]


def sensible(screen: dict[str, Any]) -> Values:
    """An allowed answer to every question of a screen."""
    return {field["key"]: allowed(field) for field in questions(screen)}


def allowed(field: dict[str, Any]) -> Any:
    """An allowed answer to a question."""
    match field["type"]:
        case "scale":
            return (field["low"] + field["high"]) // 2
        case "choice":
            return next(iter(field["options"]))
        case "tags":
            return [next(iter(field["options"]))]
        case "slider":
            return field["low"]
    return "some words"
