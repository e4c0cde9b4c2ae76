"""Replies aloud and as speech tokens: the assistant's one voice in the emotion of the reply. Single sentences too: a
model that has heard whole replies alone learns how they begin, and then loses its place in the text."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from msgspec import Struct

from overtone import audio
from overtone.build import delivery
from overtone.echat.data.labels import REPLY
from overtone.echat.making.leak import split
from overtone.echat.speech import SpeechTokens, open_tokens
from overtone.echat.speech.units import manner, plain
from overtone.paths import write_whole


class Reply(Struct, frozen=True):
    """A reply said in one emotion."""

    text: str
    emotion: str
    tokens: tuple[int, ...]
    tokens_of: str  # the tokenizer and its weights
    wav: str = ""  # where it was kept

    @property
    def id(self) -> str:
        return reply_id(self.text, self.emotion)


def read_aloud(told: Iterable[tuple[str, str, str]]) -> list[tuple[str, str]]:
    """What is read aloud, of (question, reply, its emotion): every sentence of the replies in their emotion, and, for
    more words than replies have, every question in an emotion that is drawn."""
    found: dict[tuple[str, str], None] = {}
    for question, reply, emotion in told:
        found |= dict.fromkeys((sentence, emotion) for sentence in split(reply) if sentence)
        drawn = int(hashlib.sha256(f"aloud/{question}".encode()).hexdigest()[:12], 16)
        found[question.strip(), REPLY[drawn % len(REPLY)]] = None
    return list(found)


def tokens_identity(speech: str) -> str:
    """A tokenizer by name and weights, wherever they lie."""
    return _tokens(speech).identity


def speak_replies(task: tuple[tuple[tuple[str, str], ...], str, str, str]) -> list[Reply]:
    """Say some replies (text, emotion). Runs in a worker process."""
    asked, speech, identity, folder = task
    made = []
    for text, emotion in asked:
        sound = say(text, emotion)
        tokens = tuple(int(t) for t in _tokens(speech).encode(sound, delivery.RATE))
        wav = ""
        if folder:
            wav = f"replies/{reply_id(text, emotion)}.wav"
            heard = audio.resample(sound, delivery.RATE, 16_000)
            write_whole(Path(folder) / wav, audio.encode_wav(heard, 16_000))
        made.append(Reply(text, emotion, tokens, identity, wav))
    return made


def say(text: str, emotion: str) -> audio.Samples:
    """The reply at delivery.RATE, without what a voice does besides words: no token could say a sob."""
    digest = hashlib.sha256(f"{emotion}/{text}".encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))
    return np.asarray(delivery.deliver(plain(text), manner(emotion), rng), np.float32)


@functools.cache
def _tokens(speech: str) -> SpeechTokens:
    return open_tokens(speech)


def reply_id(text: str, emotion: str) -> str:
    """A name for a reply in its emotion."""
    return hashlib.sha256(f"{emotion}/{text}".encode()).hexdigest()[:12]
