"""Requests for the tests of models."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest

from overtone.schema import Key, Message, Request, Sound
from tests.servers import tone

Make = Callable[..., Request]


def sound_of(wav: bytes) -> Sound:
    return Sound(wav, hashlib.sha256(wav).hexdigest(), (len(wav) - 44) / 32_000)


@pytest.fixture
def sound() -> Sound:
    return sound_of(tone(7, rate=16_000))


@pytest.fixture
def request_with(sound: Sound) -> Make:
    """A request with a system message, a question and a sound."""

    def make(*, speech: bool = False, text: str = "How do they feel?", seed: int | None = None) -> Request:
        messages = (Message("system", ("Be brief.",)), Message("user", (sound, text)))
        return Request(Key("test/1", "task/audio"), messages, speech=speech, task="converse", seed=seed)

    return make
