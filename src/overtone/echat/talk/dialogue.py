"""What is asked of a trained model, as messages of text and sound, and the dialogue in them: who said what in which
turn, and what was answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from overtone import audio
from overtone.echat.net.config import RATE as HEARD
from overtone.errors import AudioError, UsageError

GAP = 0.5  # seconds between several sounds of one turn
SHORTEST = 0.05  # seconds of a sound
LOUDEST = 2.0**31  # of a sample, where 1 is full scale: some files hold whole numbers as floats

Floats = NDArray[np.float32]


class Unanswerable(UsageError):
    """A request whose messages leave nothing to answer."""


class Message(Struct, frozen=True):
    """One message: texts, sounds (16 kHz), and of the assistant's speech the codes."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[str | Floats | tuple[int, ...], ...]


class Asked(Struct, frozen=True):
    """What is asked. `task` as in a benchmark ("transcribe", "choose", "converse") or "": seen from the messages."""

    messages: tuple[Message, ...]
    speech: bool = False
    task: str = ""
    seed: int = 0
    temperature: float | None = None  # of the text; None: as the model's manner has it
    top_p: float | None = None
    max_text: int = 0  # tokens; 0: as the manner has it


class Turn(Struct, frozen=True):
    """What the user says, and the reply to it, once there is one."""

    text: str = ""
    wave: Floats | None = None
    reply: str = ""
    codes: tuple[int, ...] = ()
    answered: bool = False


class Dialogue(Struct, frozen=True):
    """What was told as a system, the turns, the last of which is to be answered, and what a reader should know."""

    system: str
    turns: list[Turn]
    notes: list[str]


def read(messages: Sequence[Message], longest: float, encode: Callable[[Floats], tuple[int, ...]]) -> Dialogue:
    """The dialogue in some messages, their sounds cut to `longest` seconds; `encode` makes codes of an earlier reply's
    sound. Raises Unanswerable where there is nothing to answer."""
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
            if turns and not turns[-1].answered:  # the user goes on
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
        raise Unanswerable("the last message must be the user's: there is nothing to answer")
    if not turns[-1].text and turns[-1].wave is None:
        raise Unanswerable("the user's last message has neither text nor sound")
    return Dialogue("\n".join(system), turns, notes)


def _joined(waves: Sequence[Floats], longest: float, notes: list[str]) -> Floats | None:
    """The sounds of a turn as one, no longer than the encoder hears."""
    if not waves:
        return None
    gap = np.zeros(round(GAP * HEARD), np.float32)
    joined = np.concatenate([piece for wave in waves for piece in (gap, wave)][1:])
    if len(joined) > longest * HEARD:
        notes.append(f"a sound of {len(joined) / HEARD:.1f} s was heard for {longest:g} s")
        joined = joined[: round(longest * HEARD)]
    return joined


def to_wave(data: bytes, name: str = "sound") -> Floats:
    """A file's sound as the model hears it. Raises AudioError for what is none, next to nothing, or beyond numbers."""
    wave, _ = audio.decode(data, rate=HEARD, name=name)
    if len(wave) < SHORTEST * HEARD:
        raise AudioError(
            f"{name}: {1000 * len(wave) / HEARD:.0f} ms is too short; give at least {SHORTEST * 1000:.0f} ms"
        )
    if not float(np.abs(wave).max()) <= LOUDEST:
        raise AudioError(f"{name}: its samples are too large; give it with a full scale of 1")
    return wave
