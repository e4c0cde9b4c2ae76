"""A conversation through the API of `overtone talk`: what the page gets, and what the run holds afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from overtone.api import open_run
from overtone.benchmarks import Selection
from overtone.benchmarks import talk as benchmark
from overtone.cli import main
from overtone.errors import DataError
from overtone.models import openai
from overtone.runs.people_labels import read_labels
from overtone.runs.session import identify
from overtone.runs.settings import resolve
from overtone.runs.store import Store
from overtone.schema import Condition
from overtone.server_guard import Guard, bound, listening
from overtone.spec import parse_spec
from overtone.talk.conversations import Conversations, Recorded
from overtone.talk.server import PAGES, TalkServer
from overtone.tasks import load_prompts
from tests.servers import OpenAIServer, tone

TOKEN = "a-token-of-the-test"


class Page:
    """What the page does: requests with the token."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session, self.url = session, url

    async def post(self, path: str, body: bytes = b"", kind: str = "audio/wav", **headers: str) -> tuple[int, str]:
        sent = {"Authorization": f"Bearer {TOKEN}", "Content-Type": kind} | headers
        async with self.session.post(self.url + path, data=body, headers=sent) as response:
            return response.status, await response.text()

    async def begin(self) -> str:
        return str(msgspec.json.decode((await self.post("/api/conversation"))[1])["conversation"])

    async def say(self, conversation: str, wav: bytes) -> list[dict[str, Any]]:
        status, text = await self.post(f"/api/conversation/{conversation}", wav)
        assert status == 200, text
        return [msgspec.json.decode(line) for line in text.splitlines()]


def end(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the event that ends the turn. The recognised words come when they are ready, which may be later."""
    return next(event for event in reversed(events) if "heard" not in event)


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(keep_audio=True) as running:
        yield running


@asynccontextmanager
async def talking(folder: Path, server: OpenAIServer, heard: Any = None) -> AsyncIterator[Page]:
    text = f"openai:any?base_url={server.base_url}&timeout=60"
    flags = {"benchmark": "talk", "data": str(folder), "model": [text], "out": str(folder), "prompt": ["basic"]}
    (settings,) = resolve(flags, None, {})
    model = openai.load(parse_spec(text))
    await model.open()
    with Store.create(folder) as store:
        prompts = load_prompts(text, {})
        identify(store, settings, Recorded(folder), model, prompts)
        talk = Conversations(store, model, prompts, condition=Condition("basic"), transcribe=heard)
        app = TalkServer(talk, Guard([], TOKEN, "overtone talk", PAGES), {"model": "any"}).app()
        async with listening(app, bound("127.0.0.1", 0)) as url, aiohttp.ClientSession() as session:
            yield Page(session, url.removesuffix("/v1"))
    await model.close()


@pytest.fixture
async def page(tmp_path: Path, server: OpenAIServer) -> AsyncIterator[Page]:
    async with talking(
        tmp_path / "run", server, lambda samples, rate: f"{len(samples) / rate:.1f} s of speech"
    ) as made:
        yield made


async def test_a_conversation_is_stored_as_a_run_that_reads_like_any(
    page: Page, server: OpenAIServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = await page.begin()
    first = await page.say(name, tone(1, 1.0))
    second = await page.say(name, tone(2, 1.5))
    done = end(first)
    assert done["done"] and done["text"].startswith("I hear you") and done["thought"] == "The voice is calm."
    assert done["timings"]["first_text"] <= done["timings"]["first_audio"] <= done["timings"]["done"]
    assert {"heard": "1.0 s of speech"} in first and {"heard": "1.5 s of speech"} in second
    assert "".join(event.get("text", "") for event in first[:-1]) == done["text"]  # it streamed
    roles = [message["role"] for message in server.asked[1].body["messages"]]
    assert roles == ["system", "user", "assistant", "user"] and len(server.asked[1].sounds) == 2
    with open_run(tmp_path / "run") as run:
        items, replies = list(run.items()), list(run.replies())
    assert [len(item.turns) for item in items] == [1, 2]
    assert items[1].turns[0].given == done["text"] and items[1].turns[0].heard == "1.0 s of speech"
    assert [reply.text for reply in replies] == [done["text"], end(second)["text"]]
    assert main(["verify", str(tmp_path / "run")]) == 0, capsys.readouterr()


def test_another_model_is_asked_about_the_same_conversation(server: OpenAIServer, tmp_path: Path) -> None:
    async def talk() -> list[str]:
        async with talking(tmp_path / "run", server) as page:
            name = await page.begin()
            return [end(await page.say(name, tone(seed, 0.5)))["text"] for seed in (1, 2)]

    said = asyncio.run(talk())
    items = list(benchmark.load(tmp_path / "run").items(Selection()))
    assert len(items) == 2 and items[1].turns[0].given == said[0]
    other = f"openai:other?base_url={server.base_url}"
    command = ["run", "talk", "--data", str(tmp_path / "run"), "--model", other, "--out", str(tmp_path / "b")]
    assert main(command) == 0
    with open_run(tmp_path / "b") as run:
        assert len(list(run.replies())) == 2


async def test_a_rating_becomes_a_label_and_a_second_one_replaces_it(page: Page, tmp_path: Path) -> None:
    turn = (await page.say(await page.begin(), tone(1, 0.5)))[0]["turn"]
    for value in (2, 4):
        body = msgspec.json.encode({"turn": turn, "value": value})
        assert (await page.post("/api/rate", body, "application/json"))[0] == 200
    with Store.read(tmp_path / "run") as store:
        assert [(label.unit, label.value, label.dimension) for label in read_labels(store)] == [(turn, 4, "fit")]
    for body in ({"turn": turn, "value": 9}, {"turn": "talk/converse/none", "value": 3}, {"turn": turn, "value": "5"}):
        assert (await page.post("/api/rate", msgspec.json.encode(body), "application/json"))[0] == 400


async def test_a_model_that_fails_is_reported_and_the_user_can_say_it_again(
    page: Page, server: OpenAIServer, tmp_path: Path
) -> None:
    name = await page.begin()
    server.always = "400:the clip is odd"
    failed = await page.say(name, tone(1, 0.5))
    assert "the clip is odd" in end(failed)["error"]
    server.always = None
    assert end(await page.say(name, tone(1, 0.5)))["done"]
    with open_run(tmp_path / "run") as run:
        (reply,) = run.replies()
    assert reply.key.turn == 0


async def test_a_broken_stream_is_asked_again_and_the_page_forgets_its_beginning(
    page: Page, server: OpenAIServer
) -> None:
    server.behave("cut_stream")
    events = await page.say(await page.begin(), tone(1, 0.5))
    assert [event for event in events if "restart" in event] == [{"restart": True}] * 2
    assert end(events)["done"]


@pytest.mark.parametrize(
    ("wav", "words"),
    [(b"RIFF nothing", "the recording"), (tone(1, 0.05), "hold the button"), (tone(1, 130.0, 8000), "120")],
)
async def test_an_unusable_recording_is_refused_and_nothing_is_stored(
    page: Page, tmp_path: Path, wav: bytes, words: str
) -> None:
    events = await page.say(await page.begin(), wav)
    assert words in end(events)["error"]
    assert not list((tmp_path / "run" / "clips").iterdir())


async def test_requests_without_the_token_or_from_another_name_are_refused(page: Page) -> None:
    assert (await page.post("/api/conversation", Authorization="Bearer wrong-wrong-wrong"))[0] == 401
    assert (await page.post("/api/conversation", Host="evil.example"))[0] == 403
    assert (await page.post("/api/conversation/00000000", tone()))[0] == 409  # unknown, or of an earlier start
    assert (await page.post(f"/api/conversation/{await page.begin()}", b"{}", "application/json"))[0] == 415
    async with page.session.get(page.url + "/") as response:
        assert response.status == 200 and "default-src 'none'" in response.headers["Content-Security-Policy"]
        assert response.headers["Server"] == "overtone"
        assert TOKEN not in await response.text()


async def test_a_damaged_file_of_conversations_is_refused_but_a_cut_last_line_is_not(
    page: Page, tmp_path: Path
) -> None:
    name = await page.begin()
    for seed in (1, 2):
        await page.say(name, tone(seed, 0.5))
    file = tmp_path / "run" / "conversations.jsonl"
    whole = file.read_bytes()
    file.write_bytes(whole[:-40])
    cut = benchmark.load(tmp_path / "run")
    assert len(list(cut.items(Selection()))) == 1 and "cut" in cut.warnings[0]
    file.write_bytes(whole[40:])
    with pytest.raises(DataError, match="line 1"):
        benchmark.load(tmp_path / "run")
