"""A run stops early where going on cannot help: at its first request, after many equal failures, after an outage."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from pathlib import Path

import pytest
from aiohttp import web

from bench.data import make
from overtone.cli import main
from overtone.errors import OvertoneError
from overtone.runs.asker import STREAK
from overtone.runs.engine import REFUSED, Engine
from overtone.runs.session import Hooks, execute
from overtone.runs.store import Store
from tests.runs.helpers import QUICK, run, settings
from tests.servers import Asked, OpenAIServer

ALL = 3 + 6 + 9  # the small benchmark's items


class Refusing(OpenAIServer):
    """Answers with `status` and `body` whenever it misbehaves."""

    status, body = 400, ""

    async def _misbehave(self, request: web.Request, asked: Asked, behaviour: str, text: str) -> web.StreamResponse:
        return web.Response(text=self.body, status=self.status, content_type="application/json")


BODIES = [
    (400, '{"error":{"message":"No connected db.","type":"no_db_connection","param":null,"code":"400"}}', "auth"),
    (
        400,
        '{"error":{"message":"Authentication Error, Invalid proxy server token passed.","type":"auth_error",'
        '"param":"None","code":"400"}}',
        "auth",
    ),
    (500, '{"error":{"message":"No api key passed in.","type":"auth_error","param":"None","code":"500"}}', "auth"),
    (
        400,
        '{"error":{"message":"/chat/completions: Invalid model name passed in model=gpt-9. Call `/v1/models` to view '
        'available models for your key.","type":"None","param":"None","code":"400"}}',
        "not_found",
    ),
    (
        400,
        '{"error":{"message":"litellm.BadRequestError: PerplexityException - Invalid model \'perplexity/sonar\'. '
        'Permitted models can be found in the documentation","type":null,"param":null,"code":"400"}}',
        "not_found",
    ),
    (
        500,
        '{"error":{"code":500,"message":"audio input is not supported - hint: if this is unexpected, you may need to '
        'provide the mmproj","type":"server_error"}}',
        "rejected",
    ),
    (400, '{"error":{"code":400,"message":"unsupported content[].type","type":"invalid_request_error"}}', "rejected"),
    (
        500,
        '{"error":{"message":"Please install vllm[audio] for audio support","type":"InternalServerError","param":null,'
        '"code":500}}',
        "rejected",
    ),
    (
        400,
        '{"object":"error","message":"At most 0 audio(s) may be provided in one prompt.","type":"BadRequestError",'
        '"param":null,"code":400}',
        "rejected",
    ),
    (
        400,
        '{"error":{"message":"Qwen/Qwen3-0.6B is not a multimodal model","type":"BadRequestError","param":null,'
        '"code":400}}',
        "rejected",
    ),
]


@pytest.mark.parametrize(("status", "body", "reason"), BODIES)
def test_a_fault_of_the_set_up_is_recognised_in_the_error_body_and_stops_at_one_request(
    small: Path, tmp_path: Path, status: int, body: str, reason: str
) -> None:
    with Refusing() as server:
        server.always, server.status, server.body = "refuse", status, body
        with pytest.raises(OvertoneError, match=rf"the first request failed.*{reason}"):
            run(small, server.base_url, tmp_path / "run", levels="1")
        assert server.count == 1
    with Store.read(tmp_path / "run") as store:
        assert store.counts() == {"pending": 8, "answered": 0, "failed": 1}


@pytest.mark.parametrize("behaviour", ["400:unknown parameter", "500", "malformed", "reset", "429", "422:no"])
def test_a_first_request_that_fails_in_any_other_way_stops_the_run_too(
    small: Path, tmp_path: Path, behaviour: str
) -> None:
    with OpenAIServer() as server:
        server.always = behaviour
        with pytest.raises(OvertoneError, match="the first request failed"):
            run(small, server.base_url, tmp_path / "run", levels="1")
        assert server.count <= 2 * QUICK.attempts, "one item, and where its clip may be at fault one more"


@pytest.mark.parametrize(
    ("behaviour", "most"),
    [
        ("400:max_tokens is too large: 99999. This model supports at most 16384 completion tokens", 2),
        ("400:Input audio is too long: at most 30 s", REFUSED),
        ("413", REFUSED),
    ],
)
def test_what_sounds_like_the_clips_fault_and_holds_for_all_clips_stops_the_run(
    tmp_path: Path, behaviour: str, most: int
) -> None:
    data = make(tmp_path / "data", scripts=12, questions=6, seconds=0.1)
    with OpenAIServer() as server:
        server.always = behaviour
        with pytest.raises(OvertoneError, match=r"the first request failed.*other clips fared no better"):
            run(data, server.base_url, tmp_path / "run", levels="1")
        assert server.count == most


def test_a_first_item_that_fails_by_itself_does_not_stop_the_run(small: Path, tmp_path: Path) -> None:
    next(small.rglob("id_0_sad_work_target.wav")).write_bytes(b"RIFF\0\0\0\0WAVE")
    with OpenAIServer() as server:
        server.behave("400:the audio is too short", "500", "500", "500")
        outcome = run(small, server.base_url, tmp_path / "run", levels="1")
        assert outcome.stopped == ""
        assert outcome.answered == 9 - outcome.failed > 0
    with Store.read(tmp_path / "run") as store:
        assert {failure.reason for failure in store.failures()} == {"bad_clip", "rejected", "server"}


def test_many_equal_failures_without_a_reply_stop_the_run_and_the_rest_stays_open(tmp_path: Path) -> None:
    data = make(tmp_path / "data", scripts=30, questions=6, seconds=0.2)
    with OpenAIServer() as server:
        server.behave("400:no")  # one of the first alone is no proof
        run(data, server.base_url, tmp_path / "run", levels="1", limit=3)
        server.always = "400:no"
        before = server.count
        with pytest.raises(OvertoneError, match=f"no request got a reply.*{STREAK} requests failed"):
            run(data, server.base_url, tmp_path / "run", levels="1", max_connections=2)
        assert server.count - before <= STREAK + 2
        before = server.count
        server.always = None
        rest = run(data, server.base_url, tmp_path / "run", levels="1")
        assert (rest.stopped, rest.failed, server.count - before) == ("", 0, 36 - 2)


def test_failures_after_replies_stop_the_run_with_what_it_has(tmp_path: Path) -> None:
    data = make(tmp_path / "data", scripts=30, questions=6, seconds=0.2)
    with OpenAIServer() as server:
        server.every = (1, "400:no")
        server.behave(*["no_speech"] * 5)  # five good replies, then none
        outcome = run(data, server.base_url, tmp_path / "run", levels="1", max_connections=1)
        assert (outcome.stopped, outcome.answered, outcome.failed) == ("fatal", 5, STREAK)
        server.every = (4, "400:no")  # a reply in between: nothing stops
        outcome = run(data, server.base_url, tmp_path / "run", levels="1", max_connections=1)
        assert outcome.stopped == ""


# ── servers that come late or go away ───────────────────────────────────────────────────────────────────────────────


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def later(seconds: float, server: OpenAIServer) -> threading.Timer:
    timer = threading.Timer(seconds, server.__enter__)
    timer.start()
    return timer


def test_wait_gives_a_server_time_to_start(small: Path, tmp_path: Path) -> None:
    server = OpenAIServer(port=free_port())
    timer = later(0.7, server)
    try:
        outcome = run(small, server.base_url, tmp_path / "run", levels="1", wait=30)
    finally:
        timer.join()
        server.__exit__()
    assert (outcome.answered, outcome.failed, outcome.requests) == (9, 0, 9), "a refused connection is no request"


def test_wait_covers_a_server_that_is_loading_and_ends(small: Path, tmp_path: Path) -> None:
    with Refusing() as server:
        server.status = 503
        server.body = '{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}'
        server.behave(*["refuse"] * 8)  # more often than a request is tried
        assert run(small, server.base_url, tmp_path / "run", levels="1", wait=30).answered == 9
        server.always = "refuse"
        began = time.monotonic()
        with pytest.raises(OvertoneError, match=r"the first request failed.*Loading model"):
            run(small, server.base_url, tmp_path / "other", levels="1", wait=0.5)
        assert 0.4 < time.monotonic() - began < 10


class Going(OpenAIServer):
    """Closes its port after some replies."""

    def after(self, replies: int) -> None:
        plain = self.answer

        def counted(asked: Asked) -> str:
            if self.count >= replies:
                assert self._loop and self._stop
                self._loop.call_soon(self._stop.set)
            return plain(asked)

        self.answer = counted

    def __exit__(self, *_: object) -> None:
        assert self._thread
        self._thread.join(20)


def test_a_server_that_restarts_pauses_the_run_and_no_item_fails(small: Path, tmp_path: Path) -> None:
    first = Going(latency=0.01)
    first.after(4)
    with first:
        second = OpenAIServer(port=first.port)
        timer = later(1.5, second)
        outcome = run(small, first.base_url, tmp_path / "run", max_connections=4)
    timer.join()
    second.__exit__()
    assert (outcome.answered, outcome.failed, outcome.stopped) == (ALL, 0, "")
    with Store.read(tmp_path / "run") as store:
        told = [detail for _, kind, detail in store.events() if kind == "outage"]
        assert "paused" in told[0]
        assert "asking again after a pause" in told[-1]
        assert sum(1 for _ in store.replies()) == ALL


def test_patience_ends(small: Path, tmp_path: Path) -> None:
    with Going(latency=0.01) as server:
        server.after(4)
        began = time.monotonic()
        outcome = run(small, server.base_url, tmp_path / "run", max_connections=4, patience=0.5)
        assert time.monotonic() - began < 20
    assert outcome.stopped == "fatal"
    assert "did not come back within 0.5 s" in outcome.detail
    assert outcome.answered >= 1
    with Store.read(tmp_path / "run") as store:
        counts = store.counts()
        assert counts["answered"] + counts["pending"] + counts["failed"] == ALL
        assert counts["failed"] == 0, "what could not be asked stays open"


def test_a_paused_run_can_be_interrupted(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paused: list[Engine] = []
    plain = Engine._outage

    def outage(self: Engine, line: str) -> None:
        plain(self, line)
        paused.append(self)

    monkeypatch.setattr(Engine, "_outage", outage)

    async def go(server: Going) -> float:
        told = settings(small, server.base_url, tmp_path / "run", max_connections=4)
        working = asyncio.create_task(execute(told, Hooks(policy=QUICK)))
        while not paused:
            await asyncio.sleep(0.01)
        began = time.monotonic()
        paused[0].stop("interrupted", grace=0.2)
        assert (await working).stopped == "interrupted"
        return time.monotonic() - began

    with Going(latency=0.01) as server:
        server.after(4)
        assert asyncio.run(go(server)) < 5


def test_wait_and_patience_are_checked(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "echomind", "--data", str(small), "--model", "openai:any?base_url=http://127.0.0.1:9/v1"]
    assert main([*words, "--out", str(tmp_path / "run"), "--patience", "-1"]) == 2
    assert "patience must be a number of seconds" in capsys.readouterr().err
