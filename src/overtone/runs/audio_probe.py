"""Detect whether an endpoint passes the audio to its model. Some servers drop it and answer from the words alone.

Prompt-token counts that differ between clips prove that the audio arrives. Constant counts prove nothing, because an
encoder with a fixed window of 30 seconds gives them too. Then a probe decides: the same prompt with two clips and with
silence, answered without sampling.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec
from msgspec import Struct

from overtone.audio import silence
from overtone.errors import ModelFailure
from overtone.schema import Key, Message, Reply, Request, Sound

ENOUGH = 8  # replies to clips after which a probe is made, if the token counts have not decided it
META = "audio_probe"  # key of the result in the run's meta table
PROMPT = (
    "Describe this recording in two sentences: the words that are spoken, the voice that speaks them, "
    "and anything else that can be heard."
)
Ask = Callable[[Request], Awaitable[tuple[Reply, int, float]]]


class Probe(Struct, frozen=True, omit_defaults=True):
    """The result for an endpoint. `tokens` and `replies` are those of the probe: first clip, second clip, silence."""

    verdict: Literal["heard", "dropped", "undecided"]
    why: str
    endpoint: str = ""
    seconds: tuple[float, ...] = ()
    tokens: tuple[int, ...] = ()
    replies: tuple[str, ...] = ()

    @property
    def warning(self) -> str:
        """The warning for readers of the run, or ""."""
        if self.verdict != "dropped":
            return ""
        counted = f" ({self.tokens[0]} prompt tokens each time)" if any(self.tokens) else ""
        return (
            "The server seems to drop the audio: it gave the same reply to two different clips and to silence"
            f"{counted}. The replies then say nothing about what the model hears. Check that the served model takes "
            "audio input and that the server passes it on."
        )


class Hearing:
    """Watches the first replies of a run. If `due()`, the caller must `await probe(…)`. `result` is None until then."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.result: Probe | None = None
        self._claimed = False
        self._replies = 0
        self._tokens: dict[str, dict[str, int]] = {}  # prompt → clip → prompt tokens
        self._shortest: Sound | None = None
        self._longest: Sound | None = None

    def note(self, request: Request, reply: Reply) -> None:
        """Take a reply into account, unless its request has no clip."""
        sounds = [part for message in request.messages for part in message.parts if isinstance(part, Sound)]
        if self.result is not None or not sounds:
            return
        self._replies += 1
        for sound in sounds:
            if self._shortest is None or sound.seconds < self._shortest.seconds:
                self._shortest = sound
            if self._longest is None or sound.seconds >= self._longest.seconds:
                self._longest = sound
        if reply.usage.input_audio_tokens > 0:
            self.result = Probe("heard", "the endpoint counts audio tokens", self.endpoint)
        elif reply.usage.input_tokens > 0:
            words = "\n".join(f"{message.role}: {message.text}" for message in request.messages)
            by_clip = self._tokens.setdefault(words, {})
            by_clip["+".join(sound.sha256 for sound in sounds)] = reply.usage.input_tokens
            if len(set(by_clip.values())) > 1:
                self.result = Probe("heard", "the prompt tokens differ between clips", self.endpoint)

    def due(self, *, last: bool = False) -> bool:
        """Return whether a probe is needed now. Only one caller gets True. With `last`, no more replies will come."""
        two = self._shortest is not None and self._longest is not None and self._shortest.sha256 != self._longest.sha256
        if self._claimed or self.result is not None or not two or not (last or self._replies >= ENOUGH):
            return False
        self._claimed = True
        return True

    async def probe(self, ask: Ask) -> Probe:
        """Ask the same question about two clips and silence. The verdict is `undecided` if the endpoint fails."""
        assert self._shortest is not None
        assert self._longest is not None
        rate = int.from_bytes(self._longest.wav[24:28], "little")  # some servers accept only one rate
        sounds = (self._longest, self._shortest, silence(self._longest.seconds, rate))
        replies: list[Reply] = []
        verdict: Literal["heard", "dropped", "undecided"] = "dropped"
        why = "two clips and silence got the same reply"
        for number, sound in enumerate(sounds):
            message = Message("user", (PROMPT, sound))
            request = Request(Key("audio-probe", "probe", number), (message,), greedy=True)
            try:
                reply, _, _ = await ask(request)
            except ModelFailure as failure:
                verdict, why = "undecided", f"the probe was not answered: {failure}"
                break
            replies.append(reply)
            if reply.refused or not reply.text.strip():
                verdict, why = "undecided", "the probe got no words"
                break
            if len({_plain(one.text) for one in replies}) > 1:
                verdict, why = "heard", "the same prompt got different replies with different sounds"
                break
            if len({one.usage.input_tokens for one in replies}) > 1:
                verdict, why = "heard", "the prompt tokens differ between sounds"
                break
        self.result = Probe(
            verdict,
            why,
            self.endpoint,
            tuple(round(sound.seconds, 2) for sound in sounds[: len(replies)]),
            tuple(reply.usage.input_tokens for reply in replies),
            tuple(reply.text[:300] for reply in replies),
        )
        return self.result


def read(stored: str | None) -> Probe | None:
    """Decode the result in a run's meta table; None if it is missing or unreadable."""
    try:
        return msgspec.json.decode(stored, type=Probe) if stored else None
    except (msgspec.MsgspecError, RecursionError):
        return None


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
