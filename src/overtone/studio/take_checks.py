"""Checks of a take (a speaker's recording of a script): format, length, level, noise, silence, and the words.

The result is keep or retake, with reasons that a speaker understands. Nothing here changes the sound.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from overtone import audio
from overtone.audio._wav import PCM, is_wav, parse_wav
from overtone.build.gates import survive
from overtone.build.gates.facts import heard
from overtone.embedded import present
from overtone.errors import AudioError, DataError, MissingExtra
from overtone.languages import DEFAULT, is_unspaced, primary

MOST_BYTES = 32 << 20
MOST_SECONDS = 120.0
LONGEST = 30.0  # the longest clip that the gates of a set allow
LEAST_RATE = 16_000
RECOGNISER = "moonshine_voice"

FASTEST, FASTEST_FAST = 6.5, 9.0  # words per second
SLOWEST, SLOWEST_SLOW = 0.8, 0.45
ROOM_FOR_EVENTS = 8.0  # seconds for laughing, sobbing, a long breath
QUIETEST, QUIETEST_SOFT = -50.0, -60.0  # dB re full scale, of the speech
SNR, SNR_SOFT = 15.0, 8.0  # dB of the speech over the noise
LEAST_EDGE = 0.02  # seconds before the first and after the last word; less is a word cut off
LONGEST_EDGE = 5.0
CLIPPED = 8  # samples in runs at full scale; fewer cannot be heard
SOFT = frozenset({"whisper", "tired", "sad", "sigh", "breath", "elderly", "hoarse", "moan", "fear"})
_FRAME = 0.02

Array = NDArray[np.float64]


class TakeError(DataError):
    """An upload that is not a take. `code` is format, damaged, large or long; the text is for the speaker."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Wanted(Struct, frozen=True):
    """The words and the delivery that a take should have.

    `noise` is the room's level in dB re full scale, if it was measured.

    `others` are the words of the study's other scripts: a take that sounds more like one of them is of a wrong script.
    """

    words: str
    cue: str = ""
    language: str = ""
    noise: float | None = None
    others: tuple[str, ...] = ()


class Reason(Struct, frozen=True):
    """Why a take should be recorded again. The speaker may keep a take whose reasons are all `doubt`s."""

    code: str
    text: str
    doubt: bool = False


class Words(Struct, frozen=True):
    """The words check: heard, wrong or unchecked; then `why` says what is missing."""

    state: str
    transcript: str = ""
    wer: float | None = None
    most: float | None = None
    why: str = ""


class Checks(Struct, frozen=True):
    """The measurements of a take. Levels are in dB re full scale."""

    seconds: float
    rate: int
    peak: float  # of full scale
    clipped: int  # samples in runs of three or more at full scale
    level: float  # of the speech
    noise: float  # of the quietest tenth, or of the room if that is lower
    lead: float  # seconds before the speech
    trail: float
    words: Words


class Checked(Struct, frozen=True):
    """The result of all checks."""

    checks: Checks
    reasons: tuple[Reason, ...]

    @property
    def verdict(self) -> str:
        return "retake" if self.reasons else "good"

    @property
    def may_keep(self) -> bool:
        """Whether the speaker may keep the take: it is good, or a machine's doubt is the only reason against it."""
        return all(reason.doubt for reason in self.reasons)


def check(data: bytes, wanted: Wanted, *, listen: bool = True) -> Checked:
    """Check an upload. Raises TakeError for bytes that are not a whole 16-bit mono WAV. With `listen=False` the words
    are not checked."""
    samples, rate = read(data)
    level, noise, lead, trail = _levels(samples, rate)
    if wanted.noise is not None:
        noise = min(noise, max(wanted.noise, -120.0))
    peak = float(np.abs(samples).max(initial=0.0))
    clipped = round(audio.measure(samples, rate).clipped * len(samples)) if peak > 0.99 else 0
    seconds = len(samples) / rate
    reasons = _signal_reasons(wanted, seconds, rate, peak, clipped, level, noise, lead, trail)
    words = Words("unchecked", why="the recording has other faults")
    if not reasons:
        words = _words(samples, rate, wanted) if listen else Words("unchecked", why="not asked for")
        if words.state == "wrong":
            reasons.append(_wrong_words(words))
    peak, level, noise, lead, trail, seconds = (round(value, 3) for value in (peak, level, noise, lead, trail, seconds))
    checks = Checks(seconds, rate, peak, clipped, level, noise, lead, trail, words)
    return Checked(checks, tuple(reasons))


def read(data: bytes) -> tuple[NDArray[np.float32], int]:
    """Return the samples of a 16-bit mono WAV that is complete. Raises TakeError."""
    if len(data) > MOST_BYTES:
        raise TakeError("large", f"the recording has more than {MOST_BYTES >> 20} MB; make it shorter")
    if not is_wav(data):
        raise TakeError("format", "what arrived is not a WAV recording; reload the page and record again")
    try:
        wav = parse_wav(data, "the recording")
        if (wav.code, wav.channels, wav.bits) != (PCM, 1, 16):
            raise TakeError("format", "the recording is not a 16-bit mono WAV; reload the page and record again")
        if wav.streamed or wav.start + wav.size != len(data):
            raise TakeError("damaged", "the recording did not arrive whole; the page sends it again")
        if wav.frames > MOST_SECONDS * wav.rate:
            raise TakeError("long", f"the recording is longer than {MOST_SECONDS:g} s; record the sentence alone")
        return audio.decode(data, max_seconds=MOST_SECONDS, name="the recording")
    except AudioError as error:
        raise TakeError("damaged", f"the recording did not arrive whole ({error}); the page sends it again") from None


def limits(words: str, cue: str = "", language: str = "") -> tuple[float, float]:
    """Return the shortest and the longest plausible duration of some words, in seconds."""
    count = max(len(words) / 2 if is_unspaced(language or DEFAULT) else len(words.split()), 1)
    fastest, slowest = (FASTEST_FAST if cue == "fast" else FASTEST), (SLOWEST_SLOW if cue == "slow" else SLOWEST)
    return round(count / fastest, 2), round(min(count / slowest + ROOM_FOR_EVENTS, LONGEST), 2)


def speech_span(samples: NDArray[np.float32], rate: int) -> tuple[int, int]:
    """Return where the foreground sound begins and ends, in samples; (0, 0) for silence."""
    levels, active = _activity(samples, rate)
    at = np.flatnonzero(active)
    size = max(int(_FRAME * rate), 1)
    return (int(at[0]) * size, min((int(at[-1]) + 1) * size, len(samples))) if levels.size and at.size else (0, 0)


def _activity(samples: NDArray[np.float32], rate: int) -> tuple[Array, NDArray[np.bool_]]:
    """Return the level of each frame, and whether it is clearly above the quietest ones. Single frames are clicks."""
    size = max(int(_FRAME * rate), 1)
    whole = samples[: len(samples) // size * size].reshape(-1, size).astype(np.float64)
    levels = np.asarray(10 * np.log10(np.square(whole - whole.mean()).mean(1) + 1e-12)) if whole.size else np.zeros(0)
    if not levels.size:
        return levels, np.zeros(0, np.bool_)
    floor, loud = np.percentile(levels, (10, 95))
    active = levels > max(min(floor + 8.0, loud - 6.0), loud - 35.0, -75.0)
    beside = np.zeros_like(active)
    beside[1:] |= active[:-1]
    beside[:-1] |= active[1:]
    return levels, active & beside


def _levels(samples: NDArray[np.float32], rate: int) -> tuple[float, float, float, float]:
    """Return the level of the speech, the level of the noise, and the seconds before and after the speech."""
    levels, active = _activity(samples, rate)
    if not active.any():
        quiet = float(levels.mean()) if levels.size else -120.0
        return quiet, quiet, len(samples) / rate, 0.0
    begin, end = speech_span(samples, rate)
    speech = float(10 * np.log10(np.mean(10 ** (levels[active] / 10))))
    return speech, float(np.percentile(levels, 10)), begin / rate, (len(samples) - end) / rate


def _signal_reasons(
    wanted: Wanted, seconds: float, rate: int, peak: float, clipped: int, level: float, noise: float, lead: float,
    trail: float,
) -> list[Reason]:  # fmt: skip
    if peak == 0:
        return [Reason("silent", "The recording is silent. Check that the microphone is not muted, then try again.")]
    soft = wanted.cue in SOFT
    shortest, longest = limits(wanted.words, wanted.cue, wanted.language)
    reasons = []
    if rate < LEAST_RATE:
        text = f"The microphone delivers only {rate // 1000} kHz, like a telephone. Use another one; many wireless"
        reasons.append(Reason("narrow", f"{text} headsets sound better with a cable."))
    if clipped > CLIPPED:
        text = "The recording is distorted because it is too loud. Move away from the microphone, or lower its level."
        reasons.append(Reason("clipped", text))
    if level < (QUIETEST_SOFT if soft else QUIETEST):
        reasons.append(
            Reason("quiet", "The recording is too quiet. Move closer to the microphone, or raise its level.")
        )
    elif level - noise < (SNR_SOFT if soft else SNR):
        text = "There is too much noise behind your voice. Close windows, switch off fans, or move to a quieter room."
        reasons.append(Reason("noise", text))
    if seconds - lead - trail < shortest:
        reasons.append(Reason("short", "The recording is too short for these words. Read the whole sentence."))
    elif seconds - lead - trail > longest:
        reasons.append(Reason("long", "The recording is too long for these words. Read only this sentence."))
    elif lead < LEAST_EDGE:
        reasons.append(Reason("cut start", "The beginning may be cut off. Start to speak a moment after the signal."))
    elif trail < LEAST_EDGE:
        reasons.append(Reason("cut end", "The end may be cut off. Wait a moment before you stop the recording."))
    elif max(lead, trail) > LONGEST_EDGE:
        reasons.append(
            Reason("silence", "There is a long silence before or after the words. Record them more closely.")
        )
    return reasons


def _words(samples: NDArray[np.float32], rate: int, wanted: Wanted) -> Words:
    """Compare what the recogniser hears with the words, by the bounds of the gates of a set."""
    if primary(wanted.language or DEFAULT) != DEFAULT:
        return Words("unchecked", why="the recogniser understands English only")
    if not present(RECOGNISER):
        return Words("unchecked", why="the recogniser is not installed; run 'overtone setup local' on the server")
    from overtone.embedded.recogniser import transcribe

    begin, end = speech_span(samples, rate)
    edge = int(0.25 * rate)
    try:
        transcript = transcribe(samples[max(begin - edge, 0) : end + edge], rate)
    except MissingExtra as error:
        return Words("unchecked", why=str(error))
    wer, most = _rate(wanted.words, transcript), survive.bound(wanted.cue).clip
    wrong = wer > most or (wer > 0 and any(_rate(other, transcript) < wer for other in wanted.others))
    return Words("wrong" if wrong else "heard", transcript, round(wer, 4), most)


def _rate(words: str, transcript: str) -> float:
    aligned = heard(words, transcript)
    return aligned.errors / max(aligned.reference_words, 1)


def _wrong_words(words: Words) -> Reason:
    text = f"The words sound different: the computer understood “{words.transcript}”. Read exactly what is written."
    if not words.transcript:
        text = "The computer understood no words. Speak a little more clearly, exactly as it is written."
    return Reason("words", f"{text} If that is what you said, you may keep the recording.", doubt=True)
