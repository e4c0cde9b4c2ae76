"""What our clients and servers say, checked against the event types of the official SDKs in the peers' environment."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from overtone.models import gemini_live, realtime
from overtone.schema import Message, Reply, Request
from overtone.spec import parse_spec
from tests.models.test_realtime import clip, request, second
from tests.peers import peer
from tests.realtime_servers import LiveServer, RealtimeServer, Voice
from tests.servers import tone

pytestmark = [pytest.mark.peers, pytest.mark.full]
# Every event must be of a type that the SDK knows, have all its fields, and no others.
OPENAI = """
import json, sys, typing
from openai.types import realtime
from openai.types.realtime import realtime_client_event, realtime_server_event

def classes(alias):
    inner = typing.get_args(alias)[0] if typing.get_origin(alias) is typing.Annotated else alias
    return {typing.get_args(c.model_fields["type"].annotation)[0]: c for c in typing.get_args(inner)}

KNOWN = {"sent": classes(realtime_client_event.RealtimeClientEvent),
         "received": classes(realtime_server_event.RealtimeServerEvent)}

def extras(model, where):
    for name in getattr(model, "model_extra", None) or {}:
        yield f"{where}.{name}"
    for name in getattr(model, "model_fields_set", ()):
        value = getattr(model, name, None)
        for at, one in enumerate(value if isinstance(value, list) else [value]):
            if hasattr(one, "model_fields_set"):
                yield from extras(one, f"{where}.{name}")

problems, kinds = [], set()
for side, event in json.load(open(sys.argv[1])):
    known = KNOWN[side].get(event["type"])
    kinds.add(event["type"])
    if known is None:
        problems.append(f"{side}: unknown type {event['type']}")
        continue
    try:
        problems += [f"{side}: {x}" for x in extras(known.model_validate(event), event["type"])]
    except Exception as error:
        problems.append(f"{side} {event['type']}: {error}")
print(json.dumps({"problems": sorted(set(problems)), "kinds": sorted(kinds)}))
"""
GOOGLE = """
import json, sys
from google.genai import types
problems, kinds = [], set()
for side, event in json.load(open(sys.argv[1])):
    kinds |= set(event)
    try:  # the SDK's types refuse unknown fields; its converter adds this one to a setup
        if "setup" in event:
            types.RealtimeInputConfig.model_validate(event["setup"].pop("realtimeInputConfig"))
        (types.LiveClientMessage if side == "sent" else types.LiveServerMessage).model_validate(event)
    except Exception as error:
        problems.append(f"{side} {list(event)}: {error}")
print(json.dumps({"problems": sorted(set(problems)), "kinds": sorted(kinds)}))
"""


def log_of(server: RealtimeServer | LiveServer, folder: Path) -> Path:
    """Write every event of a server's connections, by the side of the client."""
    events = [("sent", event) for _, event in server.received] + [("received", event) for _, event in server.sent]
    (folder / "events.json").write_text(json.dumps(events))
    return folder / "events.json"


async def use(model: Any, work: Callable[[Any], Awaitable[None]]) -> None:
    await model.open()
    try:
        await work(model)
    finally:
        await model.close()


async def several(model: realtime.Realtime) -> None:
    first = await model.ask(request(clip(0.3), system="Be kind.", last=False))
    await model.ask(second(first))
    again: Request = request("Listen:", clip(0.2), clip(0.3), "Who speaks?", speech=False)
    await model.ask(again)
    history = (Message("user", (clip(0.2),)), Message("assistant", ("Well.",)), Message("user", ("And?",)))
    await model.ask(Request(again.key, history))


@pytest.mark.parametrize("keys", ["&pace=fast&voice=alloy&max_tokens=99", "&turn=vad&vad_silence=0.3&pace=fast"])
def test_openais_sdk_knows_every_event_that_our_client_and_our_server_send(tmp_path: Path, keys: str) -> None:
    voice = Voice(text_after=0.02, sound_after=0.04, step=0.01)
    with RealtimeServer(voice) as server:
        spec = f"realtime:test-model-1?base_url={server.base_url}&timeout=20{keys}"
        asyncio.run(use(realtime.load(parse_spec(spec)), several))
        found = peer(OPENAI, log_of(server, tmp_path))
    assert found["problems"] == []
    assert {"session.update", "input_audio_buffer.append", "conversation.item.create", "session.created",
            "response.create", "response.output_audio.delta", "response.done"} <= set(found["kinds"])  # fmt: skip


def test_openais_sdk_knows_what_our_server_says_of_errors_and_cancelled_replies(tmp_path: Path) -> None:
    async def talk(server: RealtimeServer) -> None:
        url = server.base_url.replace("ws://", "http://") + "/realtime?model=test-model-1"
        async with aiohttp.ClientSession() as session, session.ws_connect(url) as socket:
            by_hand = {"input": {"turn_detection": None}}
            sound = base64.b64encode(tone(1, 0.5)[44:]).decode()
            for event in (
                {"type": "response.cancel"},
                {"type": "input_audio_buffer.commit"},
                {"type": "session.update", "session": {"type": "realtime", "audio": by_hand}},
                {"type": "input_audio_buffer.append", "audio": sound},
                {"type": "input_audio_buffer.clear"},
                {"type": "input_audio_buffer.append", "audio": sound},
                {"type": "input_audio_buffer.commit"},
                {"type": "response.create"},
                {"type": "response.cancel"},
            ):
                await socket.send_json(event)
            async with asyncio.timeout(20):
                while (await socket.receive_json())["type"] != "response.done":
                    pass

    with RealtimeServer() as server:
        asyncio.run(talk(server))
        found = peer(OPENAI, log_of(server, tmp_path))
        kinds = [event["type"] for _, event in server.sent]
        (done,) = [event["response"] for _, event in server.sent if event["type"] == "response.done"]
    assert found["problems"] == [] and kinds.count("error") == 2 and "input_audio_buffer.cleared" in kinds
    assert done["status"] == "cancelled" and done["status_details"]["reason"] == "client_cancelled"


@pytest.mark.parametrize("keys", ["&pace=fast&voice=Kore&temperature=0.5", "&turn=vad&vad_silence=0.3"])
def test_googles_sdk_knows_every_message_that_our_client_sends(tmp_path: Path, keys: str) -> None:
    async def work(model: gemini_live.GeminiLive) -> None:
        first: Reply = await model.ask(request("Listen:", clip(0.3), "Who speaks?", system="Be kind.", last=False))
        await model.ask(second(first))
        await model.ask(request("Are you there?", speech=False))

    with LiveServer(Voice(text_after=0.02, sound_after=0.04, step=0.01)) as server:
        spec = f"gemini-live:any?base_url={server.base_url}&timeout=20{keys}"
        asyncio.run(use(gemini_live.load(parse_spec(spec)), work))
        found = peer(GOOGLE, log_of(server, tmp_path))
    assert found["problems"] == []
    assert {"setup", "realtimeInput", "clientContent", "serverContent", "setupComplete"} <= set(found["kinds"])


def test_the_check_itself_notices_an_event_that_is_wrong(tmp_path: Path) -> None:
    wrong = [
        ("sent", {"type": "input_audio_buffer.append"}),
        ("sent", {"type": "response.make"}),
        ("received", {"type": "response.output_audio.delta", "delta": "", "odd": 1}),
        ("sent", {"type": "session.update", "session": {"type": "realtime", "colour": "red"}}),
    ]
    (tmp_path / "events.json").write_text(json.dumps(wrong))
    assert len(peer(OPENAI, tmp_path / "events.json")["problems"]) >= 4
    (tmp_path / "events.json").write_text(
        json.dumps([("sent", {"setup": {"realtimeInputConfig": {}, "colour": "red"}})])
    )
    assert len(peer(GOOGLE, tmp_path / "events.json")["problems"]) == 1
