"""One turn of a realtime session, whatever protocol it speaks: the user's clip on its way to the model, and the model's
reply as it arrives, both on one clock.

The clock starts with the first sample of the clip. If the clip is paced, a sample is spoken when its time has come, as
by a microphone. Otherwise the clip is sent as fast as the server accepts it; the recording then shows it at its own
pace, and everything after the last sample keeps its distance to it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import numpy as np

from overtone.audio import audible, decode, encode_wav, load_sound, resample, stereo_wav
from overtone.errors import ModelFailure
from overtone.models import OnPiece, Piece, _speech
from overtone.models.reply_clock import Arrival, measured, now, play
from overtone.schema import Origin, Session, SessionEvent, Sound, Timings, Usage

FRAME = 0.02  # seconds of sound in one event
TAIL = 10.0  # seconds after a clip in which the server must notice the end of the turn
SILENCE = 2.0  # seconds of silence after a clip that is sent as fast as possible
GRACE = 2.0  # seconds after the clip in which a server that ended the turn too early may hear the rest
MOST_EVENTS = 2000  # of a turn that are kept; equal events in a row count once

Send = Callable[[bytes], Awaitable[None]]


class LiveTurn:
    """The state of one turn. The protocol's session calls it for everything that happens."""

    def __init__(self, sound: Sound | None, rate: int, paced: bool, on_piece: OnPiece) -> None:
        self._rate, self._paced, self._on_piece = rate, paced, on_piece
        self.pcm = load_sound(sound.wav, rate=rate, name="the clip").wav[44:] if sound else b""
        voiced = audible(np.frombuffer(self.pcm, "<i2").astype(np.float32) / 32_768.0, rate) if sound else None
        self._voiced = voiced[1] if voiced else None  # seconds of the clip up to its last voiced sample
        self._began = now()
        self.spoke_until: float | None = None  # when that sample was spoken
        self.sent_at: float | None = None  # when the whole clip was spoken
        self.over_at: float | None = None  # when the turn was over
        self.detected = False  # whether the server noticed that
        self._stopped = asyncio.Event()
        self._events: list[SessionEvent] = []
        self.notes: list[str] = []
        self.usage = Usage()
        self.model = self.finish = ""
        self.refused = False
        self._texts: list[str] = []
        self._first_text: float | None = None
        self._arrivals: list[Arrival] = []
        self._pcm: list[bytes] = []
        self._out_rate = rate
        self._bytes = 0
        self.done_at: float | None = None

    # ── the user's side ─────────────────────────────────────────────────────────────────────────────────────────────
    @property
    def seconds(self) -> float:
        """The length of the clip."""
        return len(self.pcm) / 2 / self._rate

    async def speak(self, send: Send) -> None:
        """Send the clip, paced or as fast as it is accepted."""
        step = round(FRAME * self._rate) * 2
        self._began = now()
        for start in range(0, len(self.pcm), step):
            frame = self.pcm[start : start + step]
            if self._paced:  # a microphone has a frame only when it is over
                await _until(self._began + (start + len(frame)) / 2 / self._rate)
            await send(frame)
            if self._voiced is None or self.spoke_until is not None:
                continue
            if self._paced:
                self.spoke_until = self._began + self._voiced
            elif (start + len(frame)) / 2 / self._rate >= self._voiced:
                self.spoke_until = now()
        self.sent_at = self._began + self.seconds if self._paced else now()

    async def stay_silent(self, send: Send) -> None:
        """Send silence until the server has noticed the end of the turn. Raises ModelFailure if it does not."""
        step = round(FRAME * self._rate) * 2
        began = now()
        for frame in range(round((TAIL if self._paced else SILENCE) / FRAME)):
            if self._stopped.is_set() and self.rest_was_heard:
                return
            if self._paced:
                await _until(began + (frame + 1) * FRAME)
            await send(bytes(step))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(asyncio.get_running_loop().time() + max(0.1, began + TAIL - now())):
                await self._stopped.wait()
                return
        raise ModelFailure("timeout", f"the server did not notice the end of the turn in {TAIL:g} s of silence")

    def end(self) -> None:
        """Note that we ended the turn."""
        self.over_at = now()

    def noticed_start(self) -> None:
        """Note that the server heard the user begin to speak."""
        self._stopped.clear()
        if self._texts or self._arrivals:
            self.drop("the server answered before the clip was over; what it said until then was dropped")

    def noticed_reply(self) -> None:
        """Note that the server answers, which also says that it noticed the end of the turn."""
        self._stopped.set()

    def noticed_end(self) -> None:
        """Note that the server heard the user stop."""
        self.over_at, self.detected = now(), True
        self._stopped.set()

    @property
    def voiced(self) -> bool:
        """Whether the clip has a voiced sample."""
        return self._voiced is not None

    @property
    def rest_was_heard(self) -> bool:
        """Whether the server ended the turn after the last voiced sample, and not in a pause before it."""
        return self.over_at is None or (self.spoke_until is None or self.over_at >= self.spoke_until)

    def patience(self) -> float | None:
        """Return for how many seconds to wait for the next event; None if no reply waits for the rest of the clip."""
        if self.done_at is None:
            return None
        return GRACE if self.sent_at is None else max(0.01, self.sent_at + GRACE - now())

    @property
    def waited_enough(self) -> bool:
        """Whether a complete reply to a turn that ended too early counts, because the server does not hear the rest."""
        return self.done_at is not None and self.sent_at is not None and now() >= self.sent_at + GRACE

    # ── the model's side ────────────────────────────────────────────────────────────────────────────────────────────
    def text(self, text: str) -> None:
        """Add words of the reply."""
        if text:
            self._first_text = self._first_text or now()
            self._texts.append(text)
            self._on_piece(Piece(text))

    def whole_text(self, text: str) -> None:
        """Take the words of a reply that came without pieces of text."""
        if text and not self._texts:
            self.text(text)

    def sound(self, pcm: bytes, rate: int) -> None:
        """Add sound of the reply: mono 16-bit PCM. Raises ModelFailure if it is too long."""
        at = now()
        self._bytes += len(pcm)
        if self._bytes > _speech.MAX_SPEECH_BYTES:
            raise ModelFailure("too_large", f"the reply's speech is over {_speech.MAX_SPEECH_BYTES >> 20} MB")
        self._out_rate = rate
        self._arrivals.append(Arrival(at, len(pcm) / 2 / rate))
        self._pcm.append(pcm)
        self._on_piece(Piece(pcm=pcm, rate=rate))

    def drop(self, note: str) -> None:
        """Forget the reply so far, because it is not the reply to the whole turn."""
        if note not in self.notes:
            self.notes.append(note)
        self._texts, self._arrivals, self._pcm = [], [], []
        self._first_text = self.done_at = None
        self._bytes = 0

    def note_event(self, kind: str, *, sent: bool = False) -> None:
        """Add an event to the session's record."""
        at = round(self._at(now()), 6)
        last = self._events[-1] if self._events else None
        if last is not None and (last.type, last.sent) == (kind, sent):
            self._events[-1] = SessionEvent(last.at, kind, sent, last.count + 1, at)
        elif len(self._events) < MOST_EVENTS:
            self._events.append(SessionEvent(at, kind, sent))

    # ── the results ─────────────────────────────────────────────────────────────────────────────────────────────────
    @property
    def words(self) -> str:
        return "".join(self._texts)

    @property
    def speech(self) -> bytes | None:
        """The reply's sound as a WAV, or None. Raises ModelFailure if it ends in the middle of a sample."""
        pcm = b"".join(self._pcm)
        return _speech.pcm_to_wav(pcm, self._out_rate) if pcm else None

    def timings(self) -> Timings | None:
        """Return the timings; None if no part of the reply arrived."""
        done = self.done_at or now()
        turn_over = self.over_at if self.detected else None
        origin: Origin = "voice" if self.over_at is None else "turn"
        start = self.over_at or self.spoke_until or self.sent_at or self._began
        texts, sounds = self._first_text, self._arrivals
        return measured(
            origin, start, texts, sounds, self._pcm, self._out_rate, done, self.spoke_until, turn_over
        )  # fmt: skip

    def session(self) -> Session:
        """Return the record of the turn: both channels as heard, and the events."""
        rate = self._out_rate
        clip = self.pcm
        if clip and rate != self._rate:
            clip = encode_wav(resample(decode(_speech.pcm_to_wav(clip, self._rate))[0], self._rate, rate), rate)[44:]
        heard = bytearray()
        for part, pcm in zip(play(self._arrivals).parts, self._pcm, strict=True):
            start = max(0, round(self._at(part.at) * rate)) * 2
            heard += bytes(max(0, start - len(heard)))
            heard += pcm
        audio = stereo_wav(clip, bytes(heard), rate) if clip or heard else None
        return Session(audio, tuple(self._events))

    def _at(self, moment: float) -> float:
        """Return the time of a moment on the session's clock."""
        if self._paced:
            return moment - self._began
        if self.sent_at is None:  # the clip is being sent
            return min(moment - self._began, self.seconds)
        return self.seconds + moment - self.sent_at


async def _until(moment: float) -> None:
    if (rest := moment - now()) > 0:
        await asyncio.sleep(rest)
