"""`gemini-live:` against a local server that speaks Google's protocol as its SDK describes it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from overtone.errors import ModelFailure
from overtone.models import gemini_live
from overtone.schema import Key, Message, Reply, Request
from overtone.spec import parse_spec
from tests.models.test_realtime import channels, clip, onset, request
from tests.realtime_servers import LiveServer, Voice


@pytest.fixture
def server() -> Iterator[LiveServer]:
    with LiveServer() as running:
        yield running


class Opened:
    def __init__(self, server: LiveServer) -> None:
        self.server, self.models = server, list[gemini_live.GeminiLive]()

    async def __call__(self, keys: str = "") -> gemini_live.GeminiLive:
        model = gemini_live.load(parse_spec(f"gemini-live:any?base_url={self.server.base_url}&timeout=5{keys}"))
        await model.open()
        self.models.append(model)
        return model


@pytest.fixture
async def opened(server: LiveServer) -> AsyncIterator[Opened]:
    made = Opened(server)
    yield made
    for model in made.models:
        await model.close()


async def test_a_reply_has_its_words_its_sound_its_tokens_and_its_timings(opened: Opened, server: LiveServer) -> None:
    server.voice = Voice(text_after=0.2, sound_after=0.4)
    reply = await (await opened("&voice=Kore&temperature=0.5")).ask(request(clip(0.5, 0.2), system="Be kind."))
    assert (reply.text, reply.finish, reply.model) == ("I hear you.", "stop", "any")
    assert reply.audio is not None and len(reply.audio) == 44 + 2 * 14_400
    assert (reply.usage.input_audio_tokens, reply.usage.output_tokens, reply.usage.output_audio_tokens) == (40, 9, 7)
    found = reply.timings
    assert found is not None and found.origin == "turn" and found.first_text and found.first_audio
    assert 0.2 <= found.first_text < 0.7 and 0.4 <= found.first_audio < 1.2
    user, model, rate = channels(reply)
    assert onset(user, rate) < 0.01 and -0.02 <= onset(model, rate) - (0.7 + found.first_audio) < 0.4
    setup = server.received[0][1]["setup"]
    assert (
        setup["generationConfig"]["temperature"] == 0.5 and setup["systemInstruction"]["parts"][0]["text"] == "Be kind."
    )


async def test_the_clip_is_sent_at_sixteen_kilohertz_between_the_marks_of_a_turn(
    opened: Opened, server: LiveServer
) -> None:
    sound = clip(0.4)
    await (await opened("&pace=fast")).ask(request(sound))
    assert bytes(server.pcm) == sound.wav[44:]
    kinds = [next(iter(event.get("realtimeInput", {"": 0}))) for _, event in server.received]
    assert (kinds[1], kinds[-1], set(kinds[2:-1])) == ("activityStart", "activityEnd", {"audio"})


async def test_the_server_may_detect_the_end_of_the_turn(opened: Opened, server: LiveServer) -> None:
    reply = await (await opened("&turn=vad&vad_silence=0.3")).ask(request(clip(0.5)))
    found = reply.timings
    assert found is not None and found.origin == "voice" and found.vad_wait is None  # Google does not report the end
    assert found.voice_to_voice is not None and found.first_audio is not None
    assert found.voice_to_voice == pytest.approx(found.first_audio, abs=0.06)
    assert found.voice_to_voice >= 0.28 + server.voice.sound_after


async def test_a_conversation_has_its_history_and_one_session(opened: Opened, server: LiveServer) -> None:
    model = await opened("&pace=fast")
    first: Reply = await model.ask(request(clip(0.3), last=False, speech=False))
    history = (Message("user", (clip(0.3),)), Message("assistant", (first.text,)))
    again = Request(Key("item", "c", turn=1), (*history, Message("user", ("And now?",))))
    other = Request(Key("other", "c", turn=1), again.messages)
    server.received.clear()
    await model.ask(other)
    (content,) = [event["clientContent"] for _, event in server.received if "clientContent" in event][:1]
    assert [turn["role"] for turn in content["turns"]] == ["user", "model"] and server.connections == 2


@pytest.mark.parametrize(
    ("behaviour", "reason", "words"),
    [
        ("403", "auth", "HTTP 403"),
        ("hang", "timeout", "no complete reply"),
        ("no_reply", "timeout", "no complete reply"),
        ("close:1007:Request contains an invalid argument.", "rejected", "invalid argument"),
        ("close:1008:API key not valid. Please pass a valid API key.", "auth", "closed with code 1008"),
        ("close:1011:Internal error", "server", "Internal error"),
    ],
)
async def test_a_bad_server_is_a_failure(
    opened: Opened, server: LiveServer, behaviour: str, reason: str, words: str
) -> None:
    server.behave(behaviour)
    model = await opened("&pace=fast")
    assert model._endpoint is not None
    model._endpoint.timeout = 0.6 if reason == "timeout" else 5.0
    with pytest.raises(ModelFailure) as caught:
        await model.ask(request(clip(0.2)))
    assert caught.value.reason == reason and words in caught.value.detail


async def test_a_refusal_is_an_answer(opened: Opened, server: LiveServer) -> None:
    server.behave("refusal")
    reply = await (await opened("&pace=fast")).ask(request(clip(0.2)))
    assert reply.refused and reply.finish == "prohibited_input_content"


def test_the_address_has_the_version_and_the_method(monkeypatch: pytest.MonkeyPatch) -> None:
    method = "google.ai.generativelanguage.{}.GenerativeService.BidiGenerateContent"
    for base, version in (("", "v1beta"), ("?base_url=wss://generativelanguage.googleapis.com/v1alpha", "v1alpha")):
        url = gemini_live.load(parse_spec(f"gemini-live:x{base}")).url()
        assert str(url) == f"wss://generativelanguage.googleapis.com/ws/{method.format(version)}"
