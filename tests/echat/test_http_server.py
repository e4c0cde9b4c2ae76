"""A checkpoint behind real sockets: OpenAI's format in and out, streamed and not, and what is refused."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import json
import re
import struct
import sys
import threading
import time
import wave
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pytest

from overtone.audio import encode_wav, load_sound
from overtone.cli import main
from overtone.echat.net import config
from overtone.echat.net.decode import Sampling
from overtone.echat.talk import http_server, openai_format
from overtone.echat.talk.answer import open_answerer
from overtone.echat.talk.reply_settings import ReplySettings
from overtone.errors import MissingExtra, UsageError
from overtone.models import openai
from overtone.schema import Key, Message, Request
from overtone.server_guard import MAX_BODY, Guard, bound
from overtone.spec import parse_spec

pytestmark = pytest.mark.local
SETTINGS = ReplySettings(think="", interleave=True, max_text=14, max_speech=60, speech=Sampling(1.0, 50))


class Running:
    """A server in a thread of this process."""

    def __init__(self, folder: Path, token: str = "") -> None:
        self.answerer = open_answerer(folder, SETTINGS, device="cpu")
        self.url = ""
        self.steps = 0
        step, logits = self.answerer.model.step, self.answerer.model.logits

        def letters(hidden: Any) -> Any:  # an untrained model would say bytes that are no text
            out = logits(hidden)
            out[..., ord("a") : ord("z") + 1] += 20
            return out

        self.answerer.model.logits = letters

        def counted(*args: Any, **more: Any) -> Any:
            self.steps += 1
            return step(*args, **more)

        self.answerer.model.step = counted
        self.loop = asyncio.new_event_loop()
        up = threading.Event()

        def ready(url: str) -> None:
            self.url = url
            up.set()

        def run() -> None:
            asyncio.set_event_loop(self.loop)
            self.task = self.loop.create_task(
                http_server.serve(self.answerer, bound("127.0.0.1", 0), "echat", 4, ready, Guard(token=token))
            )
            with contextlib.suppress(asyncio.CancelledError):
                self.loop.run_until_complete(self.task)

        self.thread = threading.Thread(target=run)
        self.thread.start()
        assert up.wait(30)

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.task.cancel)
        self.thread.join(20)
        assert not self.thread.is_alive()


@pytest.fixture(scope="module")
def server(tiny: Path) -> Iterator[Running]:
    running = Running(tiny)
    yield running
    running.stop()


def noise(seconds: float = 0.5) -> bytes:
    return encode_wav((0.1 * np.random.default_rng(0).standard_normal(round(16_000 * seconds))), 16_000)


def loud(peak: float) -> bytes:
    """A WAV file of floats of that size."""
    data = np.full(8_000, peak, "<f4").tobytes()
    form = struct.pack("<HHIIHH", 3, 1, 16_000, 64_000, 4, 32)
    return b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + struct.pack("<I", 16) + form + b"data" + \
        struct.pack("<I", len(data)) + data  # fmt: skip


def said(wav: bytes | None = None) -> dict[str, Any]:
    data = base64.b64encode(noise() if wav is None else wav).decode()
    return {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}


def body(*parts: Any, **more: Any) -> dict[str, Any]:
    return {"model": "echat", "messages": [{"role": "user", "content": list(parts) or [said()]}], **more}


JSON = {"Content-Type": "application/json"}
SPOKEN = {"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "wav"}}
STREAMED = {"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "pcm16"}, "stream": True}


async def post(server: Running, told: Any, path: str = "/chat/completions") -> tuple[int, Any]:
    async with aiohttp.ClientSession() as session, session.post(server.url + path, json=told) as answer:
        return answer.status, await answer.json()


async def events(server: Running, told: Any) -> list[Any]:
    async with aiohttp.ClientSession() as session, session.post(f"{server.url}/chat/completions", json=told) as answer:
        assert answer.status == 200 and answer.content_type == "text/event-stream"
        lines = [line.decode().strip() async for line in answer.content if line.strip()]
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


async def test_it_tells_what_it_is(server: Running) -> None:
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{server.url}/models") as answer:
            assert [m["id"] for m in (await answer.json())["data"]] == ["echat"]
        async with session.get(f"{server.url}/models/echat") as answer:
            assert (await answer.json())["object"] == "model"
        async with session.get(server.url.removesuffix("/v1") + "/health") as answer:
            assert await answer.json() == {"status": "ok", "waiting": 0}


async def test_a_spoken_reply_comes_with_its_words(server: Running) -> None:
    status, answer = await post(server, body(**SPOKEN, seed=3))
    assert status == 200 and answer["object"] == "chat.completion"
    message = answer["choices"][0]["message"]
    assert message["role"] == "assistant" and message["content"] is None
    with wave.open(io.BytesIO(base64.b64decode(message["audio"]["data"]))) as sound:
        assert sound.getframerate() == 24_000
        spoken = answer["usage"]["completion_tokens_details"]["audio_tokens"]
        assert 0.02 < sound.getnframes() / 24_000 / spoken < 1  # seconds per unit, which is one phoneme
    assert message["audio"]["expires_at"] > time.time() and "transcript" in message["audio"]
    assert answer["usage"]["prompt_tokens_details"]["audio_tokens"] == config.positions(
        server.answerer.config.model, 8_000
    )
    assert (await post(server, body(**SPOKEN, seed=3)))[1]["choices"][0]["message"]["audio"]["data"] == message[
        "audio"
    ]["data"]


async def test_a_dialogue_goes_on_with_the_voice_it_had(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    _, answer = await post(server, body(**SPOKEN))
    audio = answer["choices"][0]["message"]["audio"]
    laid = []
    lay = server.answerer.lay_out
    monkeypatch.setattr(server.answerer, "lay_out", lambda *a, **k: laid.append(lay(*a, **k)) or laid[-1])
    user = {"role": "user", "content": [said()]}
    messages = [user, {"role": "assistant", "audio": {"id": audio["id"]}}, user]
    status, _ = await post(server, {"model": "echat", "messages": messages, **SPOKEN})
    vocab, edge = server.answerer.tok.vocab, server.answerer.tok.edge
    codes = [i for i in laid[-1].sequence.ids if vocab <= i < edge]
    assert status == 200 and len(codes) == answer["usage"]["completion_tokens_details"]["audio_tokens"]
    messages[1] = {"role": "assistant", "audio": {"id": "audio-unknown"}}
    status, wrong = await post(server, {"model": "echat", "messages": messages})
    assert status == 400 and "send the words" in wrong["error"]["message"]


async def test_a_stream_gives_words_and_sound_in_turn(server: Running) -> None:
    told = await events(server, body(**STREAMED, seed=5, stream_options={"include_usage": True}))
    assert all(event["object"] == "chat.completion.chunk" for event in told)
    deltas = [event["choices"][0]["delta"] for event in told if event["choices"]]
    name = deltas[0]["audio"]["id"]
    sounds = [base64.b64decode(d["audio"]["data"]) for d in deltas if d.get("audio", {}).get("data")]
    assert len(sounds) > 1 and all(sounds)
    units = told[-1]["usage"]["completion_tokens_details"]["audio_tokens"]
    assert 0.02 < sum(map(len, sounds)) / 2 / 24_000 / units < 1  # seconds per unit, which is one phoneme
    assert told[-2]["choices"][0]["finish_reason"] in ("stop", "length")
    text = "".join(d["audio"].get("transcript", "") for d in deltas if "audio" in d)
    assert len(text) == 14
    first_sound = next(i for i, d in enumerate(deltas) if "data" in d.get("audio", {}))
    assert sum(len(d["audio"].get("transcript", "")) for d in deltas[:first_sound]) == 6
    user = {"role": "user", "content": [said()]}
    again = [user, {"role": "assistant", "audio": {"id": name}}, user]
    assert (await post(server, {"model": "echat", "messages": again, **SPOKEN}))[0] == 200


async def test_text_is_streamed_as_content(server: Running) -> None:
    told = await events(server, body({"type": "text", "text": "Hello"}, stream=True))
    whole = (await post(server, body({"type": "text", "text": "Hello"})))[1]
    text = "".join(event["choices"][0]["delta"].get("content") or "" for event in told)
    assert text.strip() == whole["choices"][0]["message"]["content"].strip()


async def test_who_goes_away_is_answered_no_further(server: Running) -> None:
    server.answerer.settings = ReplySettings(
        think="", interleave=True, max_text=4, max_speech=1500, speech=Sampling(1.0, 50)
    )
    try:
        async with aiohttp.ClientSession() as session:
            answer = await session.post(f"{server.url}/chat/completions", json=body(**STREAMED))
            await answer.content.readline()
            answer.close()
        await asyncio.sleep(1.0)
        before = server.steps
        await asyncio.sleep(0.5)
        assert server.steps == before < 1400
    finally:
        server.answerer.settings = SETTINGS
    assert (await post(server, body()))[0] == 200


@contextlib.asynccontextmanager
async def kept_busy(server: Running, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[int]]:
    """Its thread does nothing while requests come; the seeds of those it begins with are counted up."""
    begun: list[int] = []
    busy, over = threading.Event(), threading.Event()
    lay = server.answerer.lay_out

    def waits(asked: Any, **more: Any) -> Any:
        begun.append(asked.seed)
        if asked.seed == -1:
            busy.set()
            assert over.wait(30)
        return lay(asked, **more)

    monkeypatch.setattr(server.answerer, "lay_out", waits)
    first = asyncio.create_task(post(server, body(seed=-1, max_tokens=1)))
    assert await asyncio.to_thread(busy.wait, 30)
    try:
        yield begun
    finally:
        over.set()
    assert (await first)[0] == 200


async def until_waiting(server: Running, count: int) -> None:
    async with aiohttp.ClientSession() as session:
        for _ in range(500):
            async with session.get(server.url.removesuffix("/v1") + "/health") as answer:
                if (await answer.json())["waiting"] == count:
                    return
            await asyncio.sleep(0.01)
    pytest.fail(f"never did {count} wait")


async def test_who_hangs_up_while_waiting_is_not_begun_and_frees_a_place(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "MAX_WAITING", 3)
    async with kept_busy(server, monkeypatch) as begun:
        waiting = [asyncio.create_task(post(server, body(seed=seed))) for seed in (1, 2, 3)]
        await until_waiting(server, 3)
        assert (await post(server, body(seed=4)))[0] == 503
        for task in waiting[1:]:  # the connection is closed, as of a client that was stopped
            task.cancel()
        await until_waiting(server, 1)
        later = asyncio.create_task(post(server, body(seed=5)))
        await until_waiting(server, 2)
    assert [(await task)[0] for task in (waiting[0], later)] == [200, 200]
    assert set(begun) == {-1, 1, 5}


async def test_who_hangs_up_is_left_out_of_a_batch_that_goes_on(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server.answerer, "settings", ReplySettings(think="", max_text=150))
    found: list[Any] = []
    answer = server.answerer.answer
    monkeypatch.setattr(server.answerer, "answer", lambda *a: found.append(answer(*a)) or found[-1])
    async with kept_busy(server, monkeypatch):
        gone, stays = (asyncio.create_task(post(server, body(seed=seed))) for seed in (1, 2))
        await until_waiting(server, 2)
        before = server.steps
    while server.steps < before + 20:
        await asyncio.sleep(0.001)
    gone.cancel()
    status, told = await stays
    assert status == 200 and told["usage"]["completion_tokens"] == 150
    few, all_of_them = sorted(one.said for one in found[-1])
    assert 0 < few < 150 == all_of_them


async def test_a_request_that_breaks_the_model_breaks_no_other(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    respond = server.answerer._respond

    def broken(laid: Any, go_on: Any) -> Any:
        if any(prompt.asked.seed == 13 for prompt in laid):
            raise RuntimeError("thirteen")
        return respond(laid, go_on)

    monkeypatch.setattr(server.answerer, "_respond", broken)
    async with kept_busy(server, monkeypatch):
        asked = [asyncio.create_task(post(server, body(seed=seed))) for seed in (12, 13, 14)]
        await until_waiting(server, 3)
    assert [(await task)[0] for task in asked] == [200, 500, 200]


async def test_requests_that_wait_are_answered_together(server: Running) -> None:
    alone = server.steps
    await post(server, body(seed=1))
    alone = server.steps - alone
    before = server.steps
    answers = await asyncio.gather(*(post(server, body(seed=1)) for _ in range(9)))
    assert {status for status, _ in answers} == {200}
    assert len({json.dumps(answer["choices"]) for _, answer in answers}) == 1
    assert server.steps - before <= 6 * alone


async def test_a_run_can_talk_to_it(server: Running) -> None:
    model = openai.load(parse_spec(f"openai:echat?base_url={server.url}&speech=yes"))
    await model.open()
    try:
        sound = load_sound(noise())
        reply = await model.ask(Request(Key("i", "c"), (Message("user", (sound,)),), speech=True, task="converse"))
        with wave.open(io.BytesIO(reply.audio or b"")) as spoken:
            assert spoken.getframerate() == 24_000 and spoken.getnframes()
        asked = Request(Key("i", "c"), (Message("user", ("Which? A. sad B. happy", sound)),), task="choose")
        assert (await model.ask(asked)).audio is None
        pcm = openai.load(parse_spec(f"openai:echat?base_url={server.url}&speech_format=pcm16"))
        await pcm.open()
        same = await pcm.ask(Request(Key("i", "c"), (Message("user", (sound,)),), speech=True, task="converse"))
        await pcm.close()
        assert same.audio == reply.audio
    finally:
        await model.close()


@pytest.mark.parametrize(
    ("told", "status", "message"),
    [
        ([1, 2], 400, "not a valid chat completion request"),
        ({"model": "echat"}, 400, "messages"),
        ({"model": "gpt-4o", "messages": []}, 404, "this server has 'echat'"),
        (body(said(b"")), 400, "empty"),
        (body(said(b"RIFF nonsense")), 400, r"messages\[0\].content\[0\]"),
        (body(said(noise(0.01))), 400, "too short"),
        (body({"type": "input_audio", "input_audio": {"data": "%%%"}}), 400, "not valid base64"),
        (body(said(loud(1e30))), 400, "too large"),
        (body({"type": "input_audio", "input_audio": None}), 400, "input_audio must have data and format"),
        (body({"type": "image_url", "image_url": {}}), 400, "unknown part type 'image_url'"),
        (body({"type": "audio_url", "audio_url": {"url": "http://x/a.wav"}}), 400, "the server fetches nothing"),
        (body({"type": "text", "text": "x" * 6000}), 400, "positions, but at most"),
        ({"model": "echat", "messages": [{"role": "assistant", "content": "x"}]}, 400, "must be from the user"),
        ({"model": "echat", "messages": [{"role": "robot", "content": "x"}]}, 400, "unknown role 'robot'"),
        (body(**{**SPOKEN, "stream": True}), 400, "must be pcm16"),
        (body(modalities=["text", "audio"], audio={"format": "mp3"}), 400, "wav or pcm16"),
        (body(modalities=["video"]), 400, "text or audio"),
        (body(temperature=3), 400, "between 0 and 2"),
        (body(n=2), 400, "n must be 1"),
        (body(tools=[{"type": "function"}]), 400, "tools is not supported"),
        (body(stop="."), 400, "stop is not supported"),
        (body(stop=["."]), 400, "stop is not supported"),
        (body(frequency_penalty=0.5), 400, "frequency_penalty is not supported"),
        (body(presence_penalty=-1), 400, "presence_penalty is not supported"),
        (body(logit_bias={"50256": -100}), 400, "logit_bias is not supported"),
        (body(web_search_options={}), 400, "web_search_options is not supported"),
    ],
)
async def test_what_cannot_be_answered_is_told_in_openais_form(
    server: Running, told: Any, status: int, message: str
) -> None:
    found, answer = await post(server, told)
    assert found == status
    assert set(answer["error"]) == {"message", "type", "param", "code"}
    assert answer["error"]["type"] == "invalid_request_error"
    assert re.search(message, answer["error"]["message"]), answer


async def test_keys_that_ask_for_nothing_are_let_pass(server: Running) -> None:
    nothing = {"stop": None, "logit_bias": {}, "frequency_penalty": 0, "presence_penalty": 0.0, "tools": []}
    status, _ = await post(server, body(**nothing, response_format={"type": "text"}, logprobs=False))
    assert status == 200
    assert (await post(server, body(stop=[])))[0] == 200


BAD_NUMBERS = ("NaN", "Infinity", "-1", "1e999", "1" + 400 * "0", "1" + 5000 * "0", "true", '"1"', "[1]", "{}")


@pytest.mark.parametrize("key", ["temperature", "top_p", "max_tokens", "max_completion_tokens", "n"])
async def test_what_is_no_number_or_too_much_is_told(server: Running, key: str) -> None:
    text = json.dumps(body({"type": "text", "text": "Hello"}))
    async with aiohttp.ClientSession() as session:
        for value in (*BAD_NUMBERS, *(("0", "0.5") if key != "temperature" else ("2.1",))):
            if (key, value) == ("top_p", "0.5"):
                continue
            told = f'{text[:-1]}, "{key}": {value}}}'
            async with session.post(f"{server.url}/chat/completions", data=told, headers=JSON) as answer:
                assert answer.status == 400, (key, value)
                assert (await answer.json())["error"]["message"]


@pytest.mark.parametrize(
    "more",
    [
        {"temperature": 1e-40}, {"temperature": 1e-320}, {"temperature": 0.0101, "top_p": 0.001}, {"temperature": 2},
        {"seed": 10**300}, {"seed": -(10**30), "temperature": 1}, {"max_tokens": 1, "temperature": 1e-9},
    ],
)  # fmt: skip
async def test_the_smallest_and_largest_numbers_are_answered(server: Running, more: dict[str, Any]) -> None:
    for way in ({}, SPOKEN):
        status, answer = await post(server, body(**way, **more))
        assert status == 200, answer
    assert (await events(server, body(**STREAMED, **more)))[-1]["choices"][0]["finish_reason"]


async def test_other_paths_large_bodies_and_a_crowd_are_refused(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await post(server, {}, "/embeddings"))[0] == 404
    async with aiohttp.ClientSession() as session:
        url = f"{server.url}/chat/completions"
        async with session.post(url, data=b"x" * (MAX_BODY + 10), headers=JSON) as answer:
            assert answer.status == 413 and "send less" in (await answer.json())["error"]["message"]
    monkeypatch.setattr(http_server, "MAX_WAITING", 0)
    async with aiohttp.ClientSession() as session, session.post(url, json=body()) as answer:
        assert answer.status == 503 and answer.headers["Retry-After"] == "2"
        assert (await answer.json())["error"]["type"] == "server_error"


async def test_much_sound_in_few_bytes_is_refused_before_it_fills_the_memory(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_format, "MAX_SECONDS", 1.2)
    for told in (
        body(said(), said(), said()),
        {"model": "echat", "messages": [{"role": "user", "content": [said()]} for _ in range(3)]},
    ):
        status, answer = await post(server, told)
        assert status == 400 and "more than 1.2 s of audio" in answer["error"]["message"]
    assert (await post(server, body(said(), said())))[0] == 200


async def test_a_request_that_breaks_the_model_is_told_and_the_next_is_answered(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: Any, **more: Any) -> Any:
        raise RuntimeError("a secret of the machine")

    with monkeypatch.context() as patch:
        patch.setattr(server.answerer, "_respond", broken)
        status, answer = await post(server, body())
    assert status == 500 and "secret" not in answer["error"]["message"]
    assert (await post(server, body()))[0] == 200


async def test_a_package_that_is_missing_is_the_servers_fault(
    server: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(*args: Any, **more: Any) -> Any:
        raise MissingExtra("the package 'pyworld' is not installed")

    with monkeypatch.context() as patch:
        patch.setattr(server.answerer.tokens, "decode", missing)
        status, answer = await post(server, body(**SPOKEN))
        assert status == 500 and answer["error"]["type"] == "server_error"
        *_, last = await events(server, body(**STREAMED))
        assert last["error"]["type"] == "server_error"
    assert "pyworld" in capsys.readouterr().err
    assert (await post(server, body(**SPOKEN)))[0] == 200


def test_a_package_that_is_missing_is_found_before_the_server_listens(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyworld", None)
    assert main(["serve", str(tiny), "--port", "0"]) == 2
    told = capsys.readouterr()
    assert "the package 'pyworld' is not installed" in told.err and "overtone setup local" in told.err
    assert "answers at" not in told.out


async def test_what_is_under_way_when_the_server_stops_is_not_answered_as_if_it_was_whole(tiny: Path) -> None:
    running = Running(tiny)
    running.answerer.settings = ReplySettings(think="", interleave=True, max_text=2000, max_speech=1500)
    batch = asyncio.create_task(post(running, body()))
    while running.steps < 10:
        await asyncio.sleep(0.001)
    waiting = asyncio.create_task(post(running, body(stream=True)))
    await until_waiting(running, 1)
    await asyncio.to_thread(running.stop)
    for status, answer in (await batch, await waiting):
        assert status == 503 and "the server is stopping" in answer["error"]["message"]


async def test_a_stream_that_the_server_stops_ends_with_an_error(tiny: Path) -> None:
    running = Running(tiny)
    running.answerer.settings = ReplySettings(think="", interleave=True, max_text=2000, max_speech=1500)
    stream = asyncio.create_task(events(running, body(stream=True)))
    while running.steps < 10:
        await asyncio.sleep(0.001)
    await asyncio.to_thread(running.stop)
    *pieces, last = await stream
    assert "the server is stopping" in last["error"]["message"]
    assert pieces and {piece["choices"][0]["finish_reason"] for piece in pieces} == {None}


async def test_a_stranger_and_a_web_page_get_nothing(tiny: Path) -> None:
    token = "a-token-of-some-length"
    running = Running(tiny, token)
    url = f"{running.url}/chat/completions"
    right = {"Authorization": f"Bearer {token}"}
    told = json.dumps(body(max_tokens=1)).encode()
    try:
        async with aiohttp.ClientSession() as session:
            for headers, wanted in (
                (JSON, 401),
                ({**JSON, "Authorization": "Bearer a-token-of-some-lengtH"}, 401),
                ({**JSON, **right, "Host": "attacker.example"}, 403),
                ({"Content-Type": "text/plain", **right}, 415),
                ({**JSON, **right}, 200),
            ):
                async with session.post(url, data=told, headers=headers) as answer:
                    assert answer.status == wanted
                    assert set(await answer.json()) >= ({"error"} if wanted != 200 else {"choices"})
            async with session.get(f"{running.url}/models") as answer:
                assert answer.status == 401
    finally:
        running.stop()


async def test_what_a_reader_should_know_is_noted(server: Running) -> None:
    told = body({"type": "text", "text": "Hello"})
    assert "notes" not in (await post(server, told))[1]
    told["messages"].insert(0, {"role": "system", "content": "Be brief."})
    _, whole = await post(server, told)
    *before, last = await events(server, {**told, "stream": True})
    assert whole["notes"] == last["notes"] == ["the request's system prompt was ignored: this model uses its own"]
    assert last["choices"][0]["finish_reason"] and not any("notes" in event for event in before)


async def test_a_body_that_is_not_what_its_headers_tell_is_told(server: Running) -> None:
    data, headers = json.dumps(body()).encode(), {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    url = f"{server.url}/chat/completions"
    async with aiohttp.ClientSession() as session, session.post(url, data=data, headers=headers) as answer:
        assert answer.status == 400 and "cannot be read" in (await answer.json())["error"]["message"]


def test_spoken_replies_are_forgotten_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = openai_format.Memory()
    for n in range(openai_format.REMEMBERED + 1):
        memory.keep(str(n), "text", (n,))
    assert memory.find("0") is None and memory.find("1") == ("text", (1,))
    later = time.monotonic() + openai_format.EXPIRES + 1
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert memory.find("1") is None


def test_a_taken_port_is_told_before_the_model_is_loaded(server: Running) -> None:
    port = int(server.url.split(":")[2].split("/")[0])
    with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1:{port}"):
        bound("127.0.0.1", port).listen()
    with pytest.raises(UsageError, match="no port 99999"):
        bound("127.0.0.1", 99999)
    with pytest.raises(UsageError, match="cannot listen on"):
        bound("192.0.2.1", 0)


def test_the_command_tells_what_is_wrong(tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, wrong in (
        ([str(tmp_path / "nowhere")], "no such folder"),
        ([str(tmp_path)], "neither a checkpoint"),
        ([str(tiny), "--batch", "0"], "--batch must be between 1 and 1024, not 0"),
        ([str(tiny), "--temperature", "nan"], "--temperature must be between 0 and 2, not nan"),
        ([str(tiny), "--speech-temperature", "inf"], "--speech-temperature must be between 0 and 2, not inf"),
        ([str(tiny), "--max-speech", "inf"], "--max-speech must be between 0.04 and 600, not inf"),
        ([str(tiny), "--max-tokens", "9" * 400], "--max-tokens must be between"),
        ([str(tiny), "--threads", "-3"], "--threads must be between"),
        ([str(tiny), "--max-speech", "600", "--port", "0"], "the model has 4096 positions"),
        ([str(tiny), "--max-speech", "310", "--port", "0"], "lower max_tokens or max_speech"),
        ([str(tiny), "--device", "tpu", "--port", "0"], "device must be"),
        ([str(tiny), "--token-file", str(tmp_path / "nowhere")], "--token-file"),
        ([str(tiny), "--host", "0.0.0.0", "--port", "0", "--device", "tpu"], "warning: anyone who can reach 0.0.0.0"),
    ):
        assert main(["serve", *arguments]) == 2
        assert wrong in capsys.readouterr().err
