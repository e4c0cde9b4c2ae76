"""Speak replies and single sentences in the assistant's voice, and encode them as speech tokens.

Single sentences are included because a model trained only on whole replies memorises their beginnings and then loses
its place in the text.
"""

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
from overtone.echat.making.evaluation_overlap import split
from overtone.echat.speech import SpeechTokens, open_tokens
from overtone.echat.speech.units import Units, emotion_recipe, plain_speech
from overtone.paths import write_whole


class Reply(Struct, frozen=True):
    """A text spoken in one emotion."""

    text: str
    emotion: str
    tokens: tuple[int, ...]
    tokens_of: str  # the tokenizer and its weights
    wav: str = ""  # path of its audio, if stored

    @property
    def id(self) -> str:
        return reply_id(self.text, self.emotion)


def read_aloud(exchanges: Iterable[tuple[str, str, str]]) -> list[tuple[str, str]]:
    """Return the (text, emotion) pairs to read aloud, given (question, reply, reply emotion) triples.

    These are every sentence of the replies in the reply's emotion and, for a larger vocabulary, every question in a
    random emotion.
    """
    pairs: dict[tuple[str, str], None] = {}
    for question, reply, emotion in exchanges:
        pairs |= dict.fromkeys((sentence, emotion) for sentence in split(reply) if sentence)
        pairs[question.strip(), read_in(question)] = None
    return list(pairs)


def read_in(text: str) -> str:
    """Return the emotion that a text without one is read aloud in: any, but always the same."""
    drawn = int(hashlib.sha256(f"aloud/{text}".encode()).hexdigest()[:12], 16)
    return REPLY[drawn % len(REPLY)]


def tokens_identity(speech: str) -> str:
    """Return the identity of a tokenizer: its name and the hash of its weights."""
    return _tokens(speech).identity


def speak_replies(task: tuple[tuple[tuple[str, str], ...], str, str, str]) -> list[Reply]:
    """Speak some replies (text, emotion). Runs in a worker process."""
    asked, speech, identity, folder = task
    made = []
    for text, emotion in asked:
        own = _tokens(speech)
        sound = say(text, emotion) if folder or not isinstance(own, Units) else np.zeros(0, np.float32)
        found = own.read(text, emotion) if isinstance(own, Units) else own.encode(sound, delivery.RATE)
        tokens = tuple(int(t) for t in found)
        wav = ""
        if folder:
            wav = f"replies/{reply_id(text, emotion)}.wav"
            heard = audio.resample(sound, delivery.RATE, 16_000)
            write_whole(Path(folder) / wav, audio.encode_wav(heard, 16_000))
        made.append(Reply(text, emotion, tokens, identity, wav))
    return made


def say(text: str, emotion: str) -> audio.Samples:
    """Speak a reply at delivery.RATE, without vocal events such as sobs, which tokens cannot represent."""
    digest = hashlib.sha256(f"{emotion}/{text}".encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))
    return np.asarray(delivery.deliver(plain_speech(text), emotion_recipe(emotion), rng), np.float32)


@functools.cache
def _tokens(speech: str) -> SpeechTokens:
    return open_tokens(speech)


def reply_id(text: str, emotion: str) -> str:
    """Return the id of a text in an emotion."""
    return hashlib.sha256(f"{emotion}/{text}".encode()).hexdigest()[:12]
