"""What the servers that people run answer, played back: the reply or failure that is stored, and what a user reads.

Each file of server_answers is one situation of one server. `origin` says where its body is from: `server` was recorded
from the real server (tests/models/test_real_servers.py asks it again), `source` was written after the server's source
code, and `thread` is quoted from an issue or pull request. Those servers need a GPU and cannot run in these tests.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from bench.data import make
from overtone.cli import main
from overtone.errors import ModelFailure, OvertoneError
from overtone.models import Piece, openai
from overtone.runs.asker import Policy
from overtone.runs.store import Store
from overtone.spec import parse_spec
from tests.models.conftest import Make
from tests.runs.helpers import run
from tests.servers import OpenAIServer

FOLDER = Path(__file__).parent / "server_answers"
SITUATIONS = {path.stem: msgspec.json.decode(path.read_bytes()) for path in sorted(FOLDER.glob("*.json"))}
FAILURES = [name for name, situation in SITUATIONS.items() if "reason" in situation["expect"]]
REPLIES = [name for name in SITUATIONS if name not in FAILURES]


class Playback(OpenAIServer):
    """Gives the answers of a situation in turn, and the last one again and again."""

    def __init__(self, situation: dict[str, Any]) -> None:
        super().__init__()
        self.answers = situation["answers"]

    async def _answer(self, request: web.Request, number: int) -> web.StreamResponse:
        self._read(request, await request.read())
        answer = self.answers[min(number, len(self.answers)) - 1]
        form, body = "application/json", answer.get("text", "")
        if "text" in answer:
            form = "text/plain"
        elif "events" in answer:
            events = [msgspec.json.encode(event).decode() for event in answer["events"]]
            form, body = "text/event-stream", "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"])
        else:
            body = msgspec.json.encode(answer["json"]).decode()
        return web.Response(text=body, status=answer["status"], content_type=form, headers=answer.get("headers"))


def spec_of(situation: dict[str, Any], base_url: str) -> str:
    more = situation.get("spec", "speech=auto")
    return f"openai:tiny?base_url={base_url}&timeout=60&{more}"


async def answered(situation: dict[str, Any], server: OpenAIServer, request_with: Make) -> tuple[Any, list[Piece]]:
    """Ask once, as a run does. Return the reply and its pieces."""
    model, pieces = openai.load(parse_spec(spec_of(situation, server.base_url))), []
    await model.open()
    try:
        request = request_with(speech="speech=" in situation.get("spec", ""))
        reply = await (model.stream(request, pieces.append) if model.streams else model.ask(request))
    finally:
        await model.close()
    return reply, pieces


@pytest.mark.parametrize("name", FAILURES)
async def test_a_failure_has_the_reason_the_retry_and_the_sentence_of_its_situation(
    name: str, request_with: Make
) -> None:
    situation = SITUATIONS[name]
    with Playback(situation) as server, pytest.raises(ModelFailure) as caught:
        await answered(situation, server, request_with)
    failure, expect = caught.value, dict(situation["expect"])
    url = f"{server.base_url}/chat/completions"
    assert expect.pop("sentence").replace("{url}", url) in failure.detail
    assert expect.pop("wait") == failure.retry_after
    assert expect == {field: getattr(failure, field) for field in ("reason", "retry", "fatal", "item")}


@pytest.mark.parametrize("name", REPLIES)
async def test_a_reply_has_the_text_the_thought_and_the_speech_of_its_situation(name: str, request_with: Make) -> None:
    situation = SITUATIONS[name]
    expect = situation["expect"]
    with Playback(situation) as server:
        reply, pieces = await answered(situation, server, request_with)
    assert (reply.text, reply.finish) == (expect["text"], expect["finish"])
    assert list(reply.notes) == expect.get("notes", [])
    if "rate" in expect:
        assert int.from_bytes(reply.audio[24:28], "little") == expect["rate"]
        assert len(reply.audio) == 44 + 2 * expect["samples"]
    else:
        assert reply.audio is None
    if pieces:
        assert "".join(piece.text for piece in pieces) == reply.text
        assert b"".join(piece.pcm for piece in pieces) == (reply.audio or b"")[44:]
        assert {piece.rate for piece in pieces if piece.pcm} <= {expect.get("rate")}


@pytest.mark.parametrize(
    ("name", "requests"),
    [
        ("vllm-audio-extra-hidden", 2),  # a second clip shows that the clip is not at fault
        ("vllm-audio-extra-missing", 1),
        ("sglang-input-audio", 1),
        ("llamacpp-no-mmproj", 1),
        ("transformers-unknown-model", 4),  # two items, two attempts each
        ("litellm-wrong-key", 1),
    ],
)
def test_a_run_against_a_server_that_is_set_up_wrongly_stops_with_that_sentence(
    tmp_path: Path, name: str, requests: int
) -> None:
    situation = SITUATIONS[name]
    data = make(tmp_path / "data", scripts=2, questions=2, seconds=0.1)
    with Playback(situation) as server, pytest.raises(OvertoneError) as caught:
        run(data, server.base_url, tmp_path / "run", levels="1", policy=Policy(attempts=2, base=0.01))
    sentence = situation["expect"]["sentence"].replace("{url}", f"{server.base_url}/chat/completions")
    assert str(caught.value).startswith("the first request failed") and sentence in str(caught.value)
    assert server.count == requests
    with Store.read(tmp_path / "run") as store:
        failures = list(store.failures())
        assert failures and all(sentence in failure.detail for failure in failures)
        assert store.counts()["answered"] == 0


def test_an_export_has_the_thought_of_a_reply_that_was_cut_while_the_model_thought(tmp_path: Path) -> None:
    data = make(tmp_path / "data", scripts=2, questions=2, seconds=0.1)
    with Playback(SITUATIONS["vllm-thinking-cut"]) as server:
        run(data, server.base_url, tmp_path / "run", levels="1", limit=2)
    assert main(["export", str(tmp_path / "run"), "-o", str(tmp_path / "rows.jsonl")]) == 0
    rows = [msgspec.json.decode(line) for line in (tmp_path / "rows.jsonl").read_bytes().splitlines()]
    assert {(row["text"], row["finish"], row["notes"]) for row in rows if row["state"] == "answered"} == {
        ("", "length", "thought: The voice trembles, so")
    }


async def test_a_gateway_that_puts_no_text_under_reasoning_is_still_read(request_with: Make) -> None:
    situation = SITUATIONS["vllm-omni-one-choice"]
    tree = msgspec.json.decode(msgspec.json.encode(situation["answers"][0]["json"]))
    tree["choices"][0]["message"] |= {"reasoning": {"effort": "low"}, "reasoning_content": "A thought."}
    with Playback({**situation, "answers": [{"status": 200, "json": tree}]}) as server:
        reply, _ = await answered(situation, server, request_with)
    assert (reply.text, reply.notes) == ("You sound sad.", ("thought: A thought.",))


async def test_an_answer_that_repeats_the_whole_clip_is_still_understood(request_with: Make) -> None:
    situation = SITUATIONS["sglang-input-audio"]
    body = dict(situation["answers"][0]["json"])
    start, data, end = body["message"].partition("'data': '")
    body["message"] = start + data + 300_000 * "A" + end
    answers = [{"status": 400, "json": body}]
    with (
        Playback({**situation, "answers": answers}) as server,
        pytest.raises(ModelFailure, match="try audio_part=audio_url") as caught,
    ):
        await answered(situation, server, request_with)
    assert caught.value.fatal and len(caught.value.detail) < 600


def test_every_situation_says_which_server_it_is_from_and_where_its_body_was_found() -> None:
    for name, situation in SITUATIONS.items():
        assert situation["origin"] in ("server", "source", "thread"), name
        assert all(situation[field] for field in ("server", "version", "source", "situation", "answers")), name
    assert {situation["server"] for situation in SITUATIONS.values()} == {
        "vLLM", "vllm-omni", "sglang", "transformers serve", "LiteLLM", "llama.cpp",
    }  # fmt: skip
