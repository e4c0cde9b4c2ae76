"""When the parts of a streamed reply arrive: a clock for each reply, and the playback of its sound on that clock.

Playback begins with the first part of the sound, and a part that comes late leaves a gap: this is what a person would
hear from a client without a buffer.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec
import numpy as np
from msgspec import Struct

from overtone.audio import audible
from overtone.models import Model, Piece
from overtone.schema import Origin, Reply, Request, Sound, Timings

now = time.perf_counter  # the clock of all timings


class Arrival(Struct, frozen=True):
    """A part of a reply's sound: when it arrived on the clock, and how long it is, in seconds."""

    at: float
    seconds: float


class Playback(Struct, frozen=True):
    """The sound of a reply on a playback clock: when each part begins to sound, and how long playback waited."""

    parts: tuple[Arrival, ...]
    stalled: float

    def heard_at(self, offset: float) -> float:
        """Return when the sample at `offset` seconds of the reply's sound is heard."""
        begins = 0.0
        for part in self.parts:
            if offset < begins + part.seconds:
                return part.at + offset - begins
            begins += part.seconds
        return self.parts[-1].at + self.parts[-1].seconds


def play(arrivals: Sequence[Arrival]) -> Playback:
    """Play the parts of a sound in the order of their arrival: each at once, or after the part before it."""
    parts: list[Arrival] = []
    stalled = 0.0
    free = arrivals[0].at if arrivals else 0.0
    for arrival in arrivals:
        begins = max(arrival.at, free)
        stalled += begins - free
        parts.append(Arrival(begins, arrival.seconds))
        free = begins + arrival.seconds
    return Playback(tuple(parts), stalled)


def first_audible(pcm: Sequence[bytes], rate: int) -> float | None:
    """Return where a sound of mono 16-bit PCM becomes audible, in seconds; None for silence."""
    data = b"".join(pcm)
    samples = np.frombuffer(data[: len(data) // 2 * 2], dtype="<i2").astype(np.float32) / 32_768.0
    found = audible(samples, rate)
    return None if found is None else found[0]


class ReplyClock:
    """Measures one reply. It starts when it is made; `piece` takes each part as it arrives."""

    def __init__(self) -> None:
        self.began = now()
        self._text: float | None = None
        self._arrivals: list[Arrival] = []
        self._pcm: list[bytes] = []
        self._rate = 0

    def piece(self, piece: Piece) -> None:
        """Note that a part of the reply has arrived. Thoughts are not part of what a user gets."""
        at = now()
        if piece.text and self._text is None:
            self._text = at
        if len(piece.pcm) > 1 and piece.rate > 0:
            self._arrivals.append(Arrival(at, len(piece.pcm) // 2 / piece.rate))
            self._pcm.append(piece.pcm)
            self._rate = piece.rate

    def timings(self, done: float, spoke_until: float | None) -> Timings | None:
        """Return the timings of a reply that was complete at `done`, from the request on; None if nothing streamed.

        `spoke_until` is when the user's last voiced sample left, None if the request has no sound.
        """
        return measured("request", self.began, self._text, self._arrivals, self._pcm, self._rate, done, spoke_until)


def streams(model: Model) -> bool:
    """Return whether a run asks this model for replies that stream."""
    return hasattr(model, "stream") and bool(getattr(model, "streams", True))


async def ask_streaming(model: Model, request: Request) -> Reply:
    """Ask a model that streams, once. The reply has the model's own timings, or those of its pieces."""
    clock = ReplyClock()
    reply: Reply = await model.stream(request, clock.piece)  # type: ignore[attr-defined]
    done = now()
    if isinstance(reply, Reply) and reply.timings is None:
        sounds = any(isinstance(part, Sound) for message in request.messages[-1:] for part in message.parts)
        timings = clock.timings(done, clock.began if sounds else None)
        return msgspec.structs.replace(reply, timings=timings)
    return reply


def measured(
    origin: Origin,
    began: float,
    text: float | None,
    arrivals: Sequence[Arrival],
    pcm: Sequence[bytes],
    rate: int,
    done: float,
    spoke_until: float | None,
    turn_over: float | None = None,
) -> Timings | None:
    """Return the timings of a reply whose parts arrived at these moments of the clock; None if no part arrived.

    `turn_over` is when the server reported the end of the user's turn.
    """
    if text is None and not arrivals:
        return None
    playback = play(arrivals)
    seconds = sum(arrival.seconds for arrival in arrivals)
    onset = first_audible(pcm, rate) if arrivals else None
    return Timings(
        origin=origin,
        first_text=_since(began, text),
        first_audio=_since(began, arrivals[0].at) if arrivals else None,
        voice_to_voice=_since(spoke_until, None if onset is None else playback.heard_at(onset)),
        vad_wait=_since(spoke_until, turn_over),
        done=_since(began, done),
        stalled=round(playback.stalled, 6) if arrivals else None,
        real_time_factor=round((done - began) / seconds, 6) if seconds else None,
    )


def _since(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else round(end - start, 6)
