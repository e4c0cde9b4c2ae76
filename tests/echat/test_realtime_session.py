"""A realtime session on the server side, without a network or a model: events in, events out."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import msgspec
import numpy as np
import pytest

from overtone.echat.talk.realtime_session import RealtimeSession
from overtone.echat.talk.voice_detection import VoiceDetection
from tests.realtime_servers import Voice

RATE = 24_000
BY_HAND = {"type": "session.update", "session": {"type": "realtime", "audio": {"input": {"turn_detection": None}}}}


def pcm(*loud_and_quiet: float, rate: int = RATE) -> bytes:
    parts = [
        np.full(round(seconds * rate), 0.2 * (number % 2 == 0)) * np.sin(np.arange(round(seconds * rate)) * 0.1)
        for number, seconds in enumerate(loud_and_quiet)
    ]
    return (np.concatenate(parts) * 32767).astype("<i2").tobytes()


class Talk:
    """A session and the events that it sent."""

    def __init__(self, voice: Voice | None = None) -> None:
        self.voice = voice or Voice(text_after=0.01, sound_after=0.02, step=0.01, parts=3)
        self.events: list[dict[str, Any]] = []
        self.session = RealtimeSession(self._sent, self.voice.answer, "echat")

    async def _sent(self, event: dict[str, Any]) -> None:
        self.events.append(event)

    async def say(self, *events: dict[str, Any]) -> None:
        for event in events:
            await self.session.take(msgspec.json.encode(event))

    async def hear(self, sound: bytes, frame: float = 0.02) -> None:
        step = round(frame * RATE) * 2
        for start in range(0, len(sound), step):
            data = base64.b64encode(sound[start : start + step]).decode()
            await self.say({"type": "input_audio_buffer.append", "audio": data})

    async def until(self, kind: str, count: int = 1) -> list[dict[str, Any]]:
        async with asyncio.timeout(10):
            while len(found := self.of(kind)) < count:
                await asyncio.sleep(0.005)
        return found

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]

    def errors(self) -> list[str]:
        return [event["error"]["message"] for event in self.of("error")]


async def test_a_turn_that_is_ended_by_hand_gets_one_response() -> None:
    talk = Talk()
    await talk.session.open()
    await talk.say(BY_HAND)
    await talk.hear(pcm(0.5))
    await talk.say({"type": "input_audio_buffer.commit"}, {"type": "response.create"})
    (done,) = await talk.until("response.done")
    assert done["response"]["status"] == "completed"
    assert done["response"]["output"][0]["content"] == [{"type": "output_audio", "transcript": "I hear you."}]
    assert done["response"]["usage"]["output_token_details"] == {"audio_tokens": 3, "text_tokens": 3}
    sound = b"".join(base64.b64decode(event["delta"]) for event in talk.of("response.output_audio.delta"))
    assert len(sound) == 2 * round(0.3 * RATE)
    assert len(talk.voice.asked[0].messages[0].parts[0]) == 8_000  # half a second at 16 kHz
    assert not talk.errors()


async def test_the_end_of_a_turn_is_detected_after_the_silence_that_was_asked_for() -> None:
    talk = Talk()
    await talk.hear(bytes(RATE) + pcm(0.6, 1.0))  # half a second of silence first
    (started,) = await talk.until("input_audio_buffer.speech_started")
    (stopped,) = await talk.until("input_audio_buffer.speech_stopped")
    assert started["audio_start_ms"] == pytest.approx(500, abs=25)
    assert stopped["audio_end_ms"] == pytest.approx(500 + 600 + 500, abs=45)
    await talk.until("response.done")
    # 0.3 s before the voice, the voice, and the silence by which its end was noticed.
    assert len(talk.voice.asked[0].messages[0].parts[0]) / 16_000 == pytest.approx(0.3 + 0.6 + 0.5, abs=0.05)


async def test_a_user_who_speaks_cancels_the_response() -> None:
    talk = Talk(Voice(text_after=0.01, sound_after=0.02, step=0.05, parts=40))
    await talk.hear(pcm(0.5, 0.7))
    await talk.until("response.output_audio.delta")
    await talk.hear(pcm(0.3))
    (done,) = await talk.until("response.done")
    assert done["response"]["status_details"] == {"type": "cancelled", "reason": "turn_detected"}
    before = len(talk.of("response.output_audio.delta"))
    await asyncio.sleep(0.15)
    assert len(talk.of("response.output_audio.delta")) == before < 40
    await talk.hear(pcm(0.0, 0.7))
    assert len(await talk.until("response.done", 1)) and len(talk.voice.asked) == 2
    roles = [message.role for message in talk.voice.asked[1].messages]
    assert roles == ["user", "assistant", "user"]
    await talk.session.close()


WRONG: list[tuple[Any, str]] = [
    ("{nonsense", "not a valid event"),
    ({"no": "type"}, "not a valid event"),
    ({"type": "response.make"}, "unknown event type 'response.make'"),
    ({"type": "session.update"}, "without a session"),
    ({"type": "session.update", "session": {"type": "transcription"}}, "only sessions of the type realtime"),
    ({"type": "session.update", "session": {"audio": {"input": {"format": {"type": "audio/pcm", "rate": 7}}}}}, "8000"),
    ({"type": "session.update", "session": {"audio": {"output": {"format": {"type": "audio/pcmu"}}}}}, "24000 Hz"),
    ({"type": "session.update", "session": {"audio": {"input": {"turn_detection": {"type": "semantic_vad"}}}}}, "null"),
    ({"type": "session.update", "session": {"audio": {"input": {"turn_detection": {"threshold": 2}}}}}, "0 and 1"),
    ({"type": "session.update", "session": {"max_output_tokens": 0}}, "between 1 and"),
    ({"type": "session.update", "session": {"output_modalities": ["video"]}}, "not a valid event"),
    ({"type": "input_audio_buffer.append", "audio": "?"}, "not valid base64"),
    ({"type": "input_audio_buffer.append", "audio": "AA=="}, "middle of a 16-bit sample"),
    ({"type": "input_audio_buffer.commit"}, "less than 0.1 s"),
    ({"type": "response.create"}, "the conversation is empty"),
    ({"type": "response.cancel"}, "no response to cancel"),
    ({"type": "conversation.item.create", "item": {"type": "function_call"}}, "only items of the type message"),
    ({"type": "conversation.item.create", "item": {"type": "message", "content": [{"type": "image"}]}}, "content type"),
    ({"type": "conversation.item.delete", "item_id": "x"}, "no such item"),
]  # fmt: skip


@pytest.mark.parametrize(("event", "words"), WRONG)
async def test_a_wrong_event_gets_an_error_and_the_session_goes_on(event: Any, words: str) -> None:
    talk = Talk()
    await talk.session.take(event if isinstance(event, str) else msgspec.json.encode(event))
    (error,) = talk.errors()
    assert words in error
    await talk.say(BY_HAND)
    await talk.hear(pcm(0.3))
    await talk.say({"type": "input_audio_buffer.commit"}, {"type": "response.create"})
    assert (await talk.until("response.done"))[0]["response"]["status"] == "completed"


async def test_an_error_names_the_event_that_caused_it() -> None:
    talk = Talk()
    await talk.say({"type": "response.cancel", "event_id": "mine"})
    assert talk.of("error")[0]["error"]["event_id"] == "mine"


async def test_a_second_response_at_a_time_is_refused() -> None:
    talk = Talk(Voice(text_after=0.2))
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello?"}]}
    await talk.say({"type": "conversation.item.create", "item": item}, *[{"type": "response.create"}] * 2)
    assert talk.errors() == ["a response is being made already"]
    await talk.session.close()
    assert (await talk.until("response.done"))[0]["response"]["status"] == "cancelled"


async def test_words_can_be_asked_for_and_instructions_are_passed_on() -> None:
    talk = Talk()
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello?"}]}
    update = {"type": "realtime", "instructions": "Be brief.", "output_modalities": ["text"], "max_output_tokens": 7}
    await talk.say({"type": "session.update", "session": update}, {"type": "conversation.item.create", "item": item})
    await talk.say({"type": "response.create"})
    await talk.until("response.done")
    (asked,) = talk.voice.asked
    assert asked.messages[0].parts == ("Be brief.",) and asked.max_text == 7 and not asked.speech
    assert not talk.of("response.output_audio.delta") and talk.of("response.output_text.delta")


@pytest.mark.parametrize("rate", [16_000, 24_000])
def test_a_click_is_no_speech_and_a_short_pause_no_end(rate: int) -> None:
    ears = VoiceDetection(rate, 0.5, 300)
    assert ears.add(pcm(0.03, 0.5, rate=rate)) == []
    changes = ears.add(pcm(0.4, 0.2, 0.4, 0.5, rate=rate))
    assert [change for change, _ in changes] == ["started", "stopped"]


def test_a_lower_threshold_hears_a_quieter_voice() -> None:
    quiet = (np.frombuffer(pcm(0.5), "<i2") // 60).astype("<i2").tobytes()
    assert VoiceDetection(RATE, 0.5, 300).add(quiet) == []
    assert VoiceDetection(RATE, 0.1, 300).add(quiet)
