"""Requests to a trained model as messages of text and audio, and the dialogue that they form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from overtone import audio
from overtone.echat.net.config import RATE as HEARD
from overtone.errors import AudioError, UsageError

SPEAK = "speak"  # the task of speaking the text of the last message
GAP = 0.5  # seconds between several clips of one turn
SHORTEST = 0.05  # minimum seconds of a clip
LOUDEST = 2.0**31  # maximum sample, relative to full scale: some files have integers as floats

Floats = NDArray[np.float32]


class Unanswerable(UsageError):
    """The messages contain nothing to answer."""


class Message(Struct, frozen=True):
    """One message: texts, audio (16 kHz), and the codes of the assistant's speech."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[str | Floats | tuple[int, ...], ...]


class Asked(Struct, frozen=True):
    """A request. `task` is a benchmark's task ("transcribe", "choose", "converse"), SPEAK, or "" to infer it."""

    messages: tuple[Message, ...]
    speech: bool = False
    task: str = ""
    seed: int = 0
    temperature: float | None = None  # of the text; None: from the reply settings
    top_p: float | None = None
    max_text: int = 0  # tokens; 0: from the reply settings


class Turn(Struct, frozen=True):
    """A user's message and, if it exists, the reply."""

    text: str = ""
    wave: Floats | None = None
    reply: str = ""
    codes: tuple[int, ...] = ()
    answered: bool = False


class Dialogue(Struct, frozen=True):
    """The system prompt, the turns (the last has no reply yet), and notes for the user."""

    system: str
    turns: list[Turn]
    notes: list[str]


def read(messages: Sequence[Message], longest: float, encode: Callable[[Floats], tuple[int, ...]]) -> Dialogue:
    """Return the dialogue of some messages. Audio is limited to `longest` seconds.

    `encode` converts an earlier reply's audio to codes. Raises Unanswerable if there is nothing to answer.
    """
    system: list[str] = []
    turns: list[Turn] = []
    notes: list[str] = []
    for message in messages:
        texts = [part for part in message.parts if isinstance(part, str) and part]
        waves = [part for part in message.parts if isinstance(part, np.ndarray)]
        if message.role == "system":
            system += texts
        elif message.role == "user":
            wave = _joined(waves, longest, notes)
            if turns and not turns[-1].answered:  # a second message of the same turn
                before = turns.pop()
                texts = [before.text, *texts] if before.text else texts
                wave = _joined([x for x in (before.wave, wave) if x is not None], longest, notes)
            turns.append(Turn("\n".join(texts), wave))
        else:
            codes = [part for part in message.parts if isinstance(part, tuple)]
            spoken = codes[0] if codes else encode(waves[0]) if waves else ()
            user = turns.pop() if turns and not turns[-1].answered else Turn()
            turns.append(Turn(user.text, user.wave, " ".join(texts), spoken, True))
    if not turns or turns[-1].answered:
        raise Unanswerable("nothing to answer: the last message must be from the user")
    if not turns[-1].text and turns[-1].wave is None:
        raise Unanswerable("the user's last message has neither text nor audio")
    return Dialogue("\n".join(system), turns, notes)


def _joined(waves: Sequence[Floats], longest: float, notes: list[str]) -> Floats | None:
    """Join the clips of a turn, limited to the encoder's maximum length."""
    if not waves:
        return None
    gap = np.zeros(round(GAP * HEARD), np.float32)
    joined = np.concatenate([piece for wave in waves for piece in (gap, wave)][1:])
    if len(joined) > longest * HEARD:
        notes.append(f"only the first {longest:g} s of {len(joined) / HEARD:.1f} s of audio were used")
        joined = joined[: round(longest * HEARD)]
    return joined


def to_wave(data: bytes, name: str = "sound") -> Floats:
    """Decode a file to the model's sample rate. Raises AudioError if it is invalid, too short or too loud."""
    wave, _ = audio.decode(data, rate=HEARD, name=name)
    if len(wave) < SHORTEST * HEARD:
        raise AudioError(
            f"{name}: {1000 * len(wave) / HEARD:.0f} ms is too short; give at least {SHORTEST * 1000:.0f} ms"
        )
    if not float(np.abs(wave).max()) <= LOUDEST:
        raise AudioError(f"{name}: sample values are too large; scale them to ±1")
    return wave
