"""`realtime:` against a real local server: clips out, replies in, both on one clock, and what bad servers do."""

from __future__ import annotations

import asyncio
import io
import wave
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
import pytest

from overtone.audio import load_sound
from overtone.errors import ModelFailure, UsageError
from overtone.models import Piece, _live_socket, _live_turn, realtime
from overtone.schema import Key, Message, Reply, Request, Sound
from overtone.spec import parse_spec
from tests.realtime_servers import RATE, RealtimeServer, Voice
from tests.servers import tone


def clip(*loud_and_quiet: float, rate: int = 16_000) -> Sound:
    """A clip that is loud and quiet in turn, for these seconds."""
    parts = [
        np.frombuffer(tone(9, seconds, rate)[44:], "<i2") * (number % 2 == 0)
        for number, seconds in enumerate(loud_and_quiet)
    ]
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(np.concatenate(parts).astype("<i2").tobytes())
    return load_sound(out.getvalue(), name="a clip")


def request(*parts: str | Sound, speech: bool = True, system: str = "", **more: Any) -> Request:
    messages = (Message("system", (system,)),) if system else ()
    return Request(Key("item", "c"), (*messages, Message("user", parts)), speech=speech, **more)


@pytest.fixture
def server() -> Iterator[RealtimeServer]:
    with RealtimeServer() as running:
        yield running


class Opened:
    """Models that are closed at the end of a test."""

    def __init__(self, server: RealtimeServer) -> None:
        self.server, self.models = server, list[realtime.Realtime]()

    async def __call__(self, keys: str = "") -> realtime.Realtime:
        model = realtime.load(parse_spec(f"realtime:test-model-1?base_url={self.server.base_url}&timeout=5{keys}"))
        await model.open()
        self.models.append(model)
        return model


@pytest.fixture
async def opened(server: RealtimeServer) -> AsyncIterator[Opened]:
    made = Opened(server)
    yield made
    for model in made.models:
        await model.close()


def channels(reply: Reply) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], int]:
    assert reply.session is not None and reply.session.audio is not None
    with wave.open(io.BytesIO(reply.session.audio)) as file:
        both = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, 2)
        return both[:, 0], both[:, 1], file.getframerate()


def onset(channel: np.ndarray[Any, Any], rate: int) -> float:
    return float(np.flatnonzero(np.abs(channel) > 300)[0] / rate)


# ── one turn ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_reply_has_its_words_its_sound_and_its_tokens(opened: Opened, server: RealtimeServer) -> None:
    model, pieces = await opened("&pace=fast"), list[Piece]()
    reply = await model.stream(request(clip(0.4), system="Be kind."), pieces.append)
    assert (reply.text, reply.finish, reply.model) == ("I hear you.", "stop", "test-model-1")
    assert reply.audio is not None
    heard, rate = np.frombuffer(reply.audio[44:], "<i2"), int.from_bytes(reply.audio[24:28], "little")
    assert rate == RATE and np.abs(heard / 32_768 - server.voice.sound()).max() < 1e-3
    assert "".join(piece.text for piece in pieces) == reply.text
    assert b"".join(piece.pcm for piece in pieces) == reply.audio[44:]
    assert (reply.usage.input_tokens, reply.usage.input_audio_tokens) == (50, 40)
    assert (reply.usage.output_tokens, reply.usage.output_audio_tokens) == (6, 3)
    (asked,) = server.voice.asked
    assert [message.role for message in asked.messages] == ["system", "user"]
    assert asked.messages[0].parts == ("Be kind.",) and len(asked.messages[1].parts[0]) == pytest.approx(6400, abs=4)


async def test_the_clip_arrives_as_it_is_in_either_pace(opened: Opened, server: RealtimeServer) -> None:
    sound = clip(0.3, rate=RATE)
    for pace in ("realtime", "fast"):
        await (await opened(f"&pace={pace}")).ask(request(sound))
    sent = [np.concatenate([m.parts[0] for m in asked.messages]) for asked in server.voice.asked]
    assert np.array_equal(sent[0], sent[1])


async def test_timings_are_the_delays_of_the_server(opened: Opened, server: RealtimeServer) -> None:
    server.voice = Voice(text_after=0.2, sound_after=0.4, lead=0.15)
    reply = await (await opened()).ask(request(clip(0.5, 0.3)))
    found = reply.timings
    assert found is not None and found.origin == "turn" and found.first_text and found.first_audio and found.done
    assert found.vad_wait is None and found.voice_to_voice and found.real_time_factor
    assert 0.2 <= found.first_text < 0.7 and 0.4 <= found.first_audio < 1.2  # the machine may be busy
    assert found.done >= server.voice.done_after and found.real_time_factor == pytest.approx(found.done / 0.6, rel=0.01)
    # From the last voiced sample: 0.3 s of silence at the end of the clip, the server's wait, and its silence.
    assert 0.42 <= found.voice_to_voice - found.first_audio < 0.9


@pytest.mark.parametrize("turn", ["manual", "vad"])
async def test_the_voice_of_a_fast_clip_ends_when_it_is_sent(opened: Opened, server: RealtimeServer, turn: str) -> None:
    server.voice = Voice(text_after=0.2, sound_after=0.4)
    found = (await (await opened(f"&pace=fast&turn={turn}")).ask(request(clip(3.0, 0.3)))).timings
    assert found is not None and found.voice_to_voice is not None and found.first_audio is not None
    assert 0 <= found.voice_to_voice - found.first_audio < 1
    assert found.done < 2  # no wait for a voice that is over


@pytest.mark.parametrize("pace", ["realtime", "fast"])
async def test_both_channels_are_recorded_on_one_clock(opened: Opened, server: RealtimeServer, pace: str) -> None:
    reply = await (await opened(f"&pace={pace}")).ask(request(clip(0.5, 0.2)))
    user, model, rate = channels(reply)
    assert rate == RATE and onset(user, rate) < 0.01
    timings = reply.timings
    assert timings is not None and timings.first_audio is not None
    assert -0.02 <= onset(model, rate) - (0.7 + timings.first_audio) < 0.4
    assert np.abs(user[round(0.55 * rate) : round(0.69 * rate)]).max() < 300


async def test_a_paced_clip_takes_its_time_and_a_fast_one_does_not(opened: Opened, server: RealtimeServer) -> None:
    for pace in ("realtime", "fast"):
        await (await opened(f"&pace={pace}")).ask(request(clip(1.0)))
    sent = [at for at, event in server.received if event["type"] == "input_audio_buffer.append"]
    half = len(sent) // 2
    assert 0.9 < sent[half - 1] - sent[0] < 2.0
    assert sent[-1] - sent[half] < 0.8


async def test_words_and_clip_keep_their_order(opened: Opened, server: RealtimeServer) -> None:
    model = await opened("&pace=fast")
    await model.ask(request("Listen:", clip(0.2), clip(0.3), "Who speaks?", speech=False))
    parts = [part for message in server.voice.asked[0].messages for part in message.parts]
    shape = [part if isinstance(part, str) else round(len(part) / 16_000, 1) for part in parts]
    assert shape == ["Listen:", 0.2, 0.3, "Who speaks?"]
    assert not server.voice.asked[0].speech


async def test_a_request_in_writing_needs_no_clip(opened: Opened, server: RealtimeServer) -> None:
    reply = await (await opened()).ask(request("Are you there?", speech=False))
    assert reply.text == "I hear you." and reply.audio is None
    assert reply.timings is not None and reply.timings.first_text is not None and reply.timings.voice_to_voice is None
    assert reply.timings.first_text >= server.voice.text_after


async def test_the_events_of_a_turn_are_recorded_in_their_order(opened: Opened) -> None:
    reply = await (await opened("&pace=fast")).ask(request(clip(0.4)))
    assert reply.session is not None
    sent = [(e.type, e.count) for e in reply.session.events if e.sent]
    assert sent == [("input_audio_buffer.append", 20), ("input_audio_buffer.commit", 1), ("response.create", 1)]
    kinds = [event.type for event in reply.session.events]
    assert kinds[-1] == "response.done" and kinds.index("response.created") < kinds.index("response.output_audio.delta")
    at = [event.at for event in reply.session.events]
    assert at == sorted(at)


async def test_the_names_of_the_beta_are_understood(opened: Opened, server: RealtimeServer) -> None:
    server.behave("beta", "chatter")
    model = await opened("&pace=fast")
    for _ in range(2):
        reply = await model.ask(request(clip(0.3)))
        assert reply.text == "I hear you." and reply.audio is not None and len(reply.audio) == 44 + 2 * 14_400


# ── the end of a turn ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_server_that_detects_the_end_of_a_turn_is_timed_apart(opened: Opened, server: RealtimeServer) -> None:
    reply = await (await opened("&turn=vad&vad_silence=0.3")).ask(request(clip(0.6, 0.1)))
    found = reply.timings
    assert found is not None and found.origin == "turn" and found.vad_wait is not None
    assert found.first_audio is not None and found.voice_to_voice is not None
    assert 0.28 <= found.vad_wait < 1.2
    assert found.voice_to_voice == pytest.approx(found.vad_wait + found.first_audio, abs=0.06)
    assert "input_audio_buffer.commit" not in server.kinds() and "response.create" not in server.kinds()


async def test_words_after_the_clip_come_before_the_answer(opened: Opened, server: RealtimeServer) -> None:
    model = await opened("&turn=vad&vad_silence=0.2")
    await model.ask(request(clip(0.5), "Who speaks?", speech=False))
    (asked,) = server.voice.asked
    assert asked.messages[-1].parts == ("Who speaks?",) and len(asked.messages) == 2


async def test_an_answer_to_a_pause_is_dropped_for_the_one_to_the_whole_turn(
    opened: Opened, server: RealtimeServer
) -> None:
    server.voice = Voice(text_after=0.05, sound_after=0.1)
    model = await opened("&turn=vad&vad_silence=0.2")
    reply = await model.ask(request(clip(0.5, 0.6, 0.5)))
    assert len(server.voice.asked) == 2 and reply.text == "I hear you."
    assert reply.audio is not None and len(reply.audio) == 44 + 2 * 14_400
    assert [note for note in reply.notes if "before the clip was over" in note]
    assert reply.timings is not None and reply.timings.vad_wait is not None and 0.18 <= reply.timings.vad_wait < 1.2


async def test_a_server_that_never_hears_the_rest_still_counts(
    opened: Opened, server: RealtimeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_live_turn, "GRACE", 0.3)
    sound = np.frombuffer(clip(0.5, 0.6, 0.4).wav[44:], "<i2").copy()
    sound[round(1.1 * 16_000) :] //= 25  # voiced for the client, too quiet for the server
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(sound.tobytes())
    model = await opened("&turn=vad&vad_silence=0.2")
    reply = await model.ask(request(load_sound(out.getvalue())))
    assert reply.text == "I hear you." and "the server ended the turn before the clip was over" in reply.notes


async def test_a_clip_without_a_voice_is_ended_by_hand(opened: Opened, server: RealtimeServer) -> None:
    model = await opened("&turn=vad&pace=fast")
    silent = load_sound(tone(1, 0.4, 16_000)[:44] + bytes(len(tone(1, 0.4, 16_000)) - 44))
    assert (await model.ask(request(silent))).text == "I hear you."
    assert "input_audio_buffer.commit" in server.kinds()


# ── several turns ───────────────────────────────────────────────────────────────────────────────────────────────────


def second(reply: Reply, **more: Any) -> Request:
    history = (Message("user", (clip(0.3),)), Message("assistant", (reply.text,)))
    return Request(Key("item", "c", turn=1), (*history, Message("user", (clip(0.2),))), speech=True, **more)


async def test_turns_of_a_conversation_share_one_session(opened: Opened, server: RealtimeServer) -> None:
    model = await opened("&pace=fast")
    first = await model.ask(request(clip(0.3), last=False))
    assert server.open == 1
    await model.ask(second(first))
    assert server.connections == 1
    assert [m.role for m in server.voice.asked[1].messages] == ["user", "assistant", "user"]
    assert server.voice.asked[1].messages[1].parts[0] == "I hear you."
    assert await _closed(server)


async def test_a_lost_session_is_opened_again_with_its_history(opened: Opened, server: RealtimeServer) -> None:
    model = await opened("&pace=fast")
    first = await model.ask(request(clip(0.3), last=False))
    ((_, kept),) = model._kept.items()
    await kept.session.socket.close()
    await model.ask(second(first))
    assert server.connections == 2
    roles = [(m.role, type(m.parts[0]).__name__) for m in server.voice.asked[1].messages]
    assert roles == [("user", "ndarray"), ("assistant", "str"), ("user", "ndarray")]


async def test_a_session_is_not_shared_by_two_conversations(opened: Opened, server: RealtimeServer) -> None:
    model = await opened("&pace=fast")
    first = await model.ask(request(clip(0.3), last=False))
    other = second(first)
    await model.ask(Request(Key("another", "c", turn=1), other.messages, speech=True))
    assert server.connections == 2


async def _closed(server: RealtimeServer) -> bool:
    for _ in range(100):
        if not server.open:
            return True
        await asyncio.sleep(0.02)
    return False


# ── bad servers ─────────────────────────────────────────────────────────────────────────────────────────────────────

BAD: list[tuple[str, str, dict[str, bool], str]] = [
    ("401", "auth", {"fatal": True}, "HTTP 401"),
    ("404", "not_found", {"fatal": True}, "HTTP 404"),
    ("429:2", "rate_limited", {"retry": True, "overload": True}, "HTTP 429"),
    ("503", "server", {"retry": True, "overload": True}, "HTTP 503"),
    ("not_a_socket", "rejected", {"fatal": True}, "is not a WebSocket; check base_url"),
    ("redirect:ws://127.0.0.1:1/v1", "rejected", {"fatal": True}, "redirects"),
    ("hang", "timeout", {"retry": True, "overload": True}, "no complete reply from"),
    ("no_reply", "timeout", {"retry": True, "overload": True}, "no complete reply from"),
    ("close:1011:it broke", "server", {"retry": True}, "closed with code 1011"),
    ("close:1013:later", "server", {"retry": True, "overload": True}, "later"),
    ("close:1008:Incorrect API key", "auth", {"fatal": True}, "Incorrect API key"),
    ("close:1000:bye", "connection", {"retry": True}, "closed before the reply was complete (1000: bye)"),
    ("reset", "connection", {"retry": True}, "ws://127.0.0.1"),
    ("malformed", "malformed", {"retry": True}, "not an event of the Realtime protocol"),
    ("not_an_event", "malformed", {"retry": True}, "not an event of the Realtime protocol"),
    ("no_delta", "malformed", {"retry": True}, "without a delta"),
    ("bad_base64", "truncated_audio", {"retry": True}, "not valid base64"),
    ("half_sample", "truncated_audio", {"retry": True}, "middle of a sample"),
    ("huge_frame", "too_large", {"item": True}, "sent a frame over 16 MB"),
    ("error:invalid_value", "rejected", {}, "the server reports an error (invalid_value): about invalid_value"),
    ("error:rate_limit_exceeded:rate_limit_error", "rate_limited", {"retry": True, "overload": True}, "about"),
    ("error:session_expired:server_error", "server", {"retry": True}, "session_expired"),
    ("error:invalid_api_key", "auth", {"fatal": True}, "invalid_api_key"),
    ("failed", "server", {"retry": True}, "the model broke"),
    ("cancelled", "server", {"retry": True}, "cancelled the reply (client_cancelled)"),
    ("wrong_rate", "rejected", {"fatal": True}, "takes sound at 16000 Hz, not 24000 Hz; give audio_rate=16000"),
    ("odd_rate", "malformed", {"retry": True}, "sends sound at 12 Hz"),
    ("early", "malformed", {"retry": True}, "answered before the turn was over"),
]  # fmt: skip


@pytest.mark.parametrize(("behaviour", "reason", "flags", "words"), BAD, ids=[row[0][:30] for row in BAD])
async def test_a_bad_server_is_a_failure_that_says_what_happened(
    opened: Opened, server: RealtimeServer, behaviour: str, reason: str, flags: dict[str, bool], words: str
) -> None:
    server.behave(behaviour)
    model = await opened("" if behaviour == "early" else "&pace=fast")
    assert model._endpoint is not None
    model._endpoint.timeout = 0.6 if reason == "timeout" else 5.0
    with pytest.raises(ModelFailure) as caught:
        await model.ask(request(clip(0.2)))
    failure = caught.value
    assert failure.reason == reason and words in failure.detail
    named = ("retry", "fatal", "overload", "item")
    assert {name: getattr(failure, name) for name in named} == dict.fromkeys(named, False) | flags
    assert (await model.ask(request(clip(0.2)))).text == "I hear you."  # the next attempt is whole
    assert await _closed(server) or behaviour in ("hang", "no_reply")


async def test_a_peer_that_is_gone_without_a_word_is_noticed(
    opened: Opened, server: RealtimeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_live_socket, "HEARTBEAT", 0.4)
    server.behave("deaf")
    model = await opened("&pace=fast")
    with pytest.raises(ModelFailure, match="no longer answers pings") as caught:
        await model.ask(request(clip(0.2)))
    assert caught.value.reason == "connection" and caught.value.retry


@pytest.mark.parametrize(
    ("behaviour", "finish", "refused"),
    [("length", "length", False), ("content_filter", "content_filter", True)],
)
async def test_a_reply_that_was_cut_says_why(
    opened: Opened, server: RealtimeServer, behaviour: str, finish: str, refused: bool
) -> None:
    server.behave(behaviour)
    reply = await (await opened("&pace=fast")).ask(request(clip(0.2)))
    assert (reply.finish, reply.refused) == (finish, refused)


async def test_no_server_is_a_failure_to_connect() -> None:
    model = realtime.load(parse_spec("realtime:any?base_url=ws://127.0.0.1:9/v1"))
    await model.open()
    try:
        with pytest.raises(ModelFailure, match="no server listens there") as caught:
            await model.ask(request("Hello?"))
        assert caught.value.unavailable
    finally:
        await model.close()


async def test_the_key_goes_into_a_header_and_nowhere_else(
    opened: Opened, server: RealtimeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "my-very-secret-key-123"
    monkeypatch.setenv("MY_KEY", secret)
    model = await opened("&pace=fast&api_key_env=MY_KEY")
    server.behave("echo_key")
    with pytest.raises(ModelFailure) as caught:
        await model.ask(request(clip(0.2)))
    assert server.headers[0]["Authorization"] == f"Bearer {secret}"
    assert "you sent" in caught.value.detail and secret not in str(caught.value) and secret not in repr(model)
    assert secret not in str(server.received) and caught.value.__cause__ is None and caught.value.__context__ is None


# ── SPECs ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("realtime:", "the model's name is missing; write realtime:NAME"),
        ("realtime:x?pace=slow", "pace must be realtime or fast, not 'slow'"),
        ("realtime:x?turn=auto", "turn must be manual or vad"),
        ("realtime:x?temperature=1", "this protocol has no temperature"),
        ("realtime:x?vad_silence=0.5", "vad_silence is for turn=vad"),
        ("realtime:x?turn=vad&vad_silence=60", "at most 10"),
        ("realtime:x?base_url=ftp://a/v1", "it must begin with"),
        ("openai:x?base_url=wss://a/v1", "not an http(s) URL: it must begin with http:// or https://"),
    ],
)
def test_a_wrong_spec_says_what_is_right(spec: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parsed = parse_spec(spec)
        if parsed.kind == "openai":
            from overtone.models import openai

            openai.load(parsed)
        realtime.load(parsed)
    assert words in str(caught.value)


def test_a_key_is_not_sent_over_plain_ws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "my-very-secret-key-123")
    spec = parse_spec("realtime:x?base_url=ws://example.org/v1&api_key_env=MY_KEY")
    with pytest.raises(UsageError, match="over plain ws, readable on the way; use wss"):
        realtime.check_key(spec)
    realtime.check_key(parse_spec("realtime:x?base_url=wss://example.org/v1&api_key_env=MY_KEY"))
    realtime.check_key(parse_spec("realtime:x?base_url=ws://example.org/v1"))  # no key is sent there


def test_the_vendors_key_goes_to_the_vendor_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match="OPENAI_API_KEY is not set"):
        realtime.check_key(parse_spec("realtime:gpt-realtime"))
    assert str(realtime.load(parse_spec("realtime:gpt-realtime")).url()) == (
        "wss://api.openai.com/v1/realtime?model=gpt-realtime"
    )
