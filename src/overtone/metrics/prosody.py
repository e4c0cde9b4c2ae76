"""How a reply is spoken: pitch, rate, pauses, level, expressiveness, and similarity to the reference delivery.

`expressiveness` is the geometric mean of three variations, each divided by that of neutral acting (REFERENCE): of pitch
(semitones per second), of level (standard deviation over mean of the envelope) and of rhythm (the same for the gaps
between syllables). 1 is like neutral acting; below FLAT is called flat, which is flatter than almost all acted speech.
`bench/prosody.py` measures how reliable it is; the results are in docs/reference/metrics/prosody.md.

`prosody_fit` is the similarity of the delivery to the reference reply's, from 0 to 1: the mean of five parts, each
0.5 ** (difference / half). The differences and halves are

    pitch       medians, in semitones; half: 12, so that a speaker of another sex costs little
    movement    standard deviations of pitch, in semitones; half: 1
    rate        ratio of energy peaks (about syllables) per second outside pauses, in octaves; half: 0.5 (1.41 times)
    pauses      share of pauses of at least 200 ms in the time from about the first to the last word; half: 0.15
    level       of the speech, in dB; half: 12, because a recording's gain means little

Every difference (reply minus reference) and every part is in the detail. If only one of the two has a pitch, pitch and
movement are 0; if neither has one, they are left out. A reply whose audio has no speech scores 0. A reply without audio
is unscored, and so is the fit without reference audio.

Silence before the first and after the last sound is cut first: how long a server's silence lasts says nothing about the
voice, and it would change what counts as speech.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from overtone.errors import OvertoneError
from overtone.metrics import Answered, ReplyMetric
from overtone.schema import Score
from overtone.scores import DetailInfo, of_replies

VERSION = 3
FLAT = 0.7
EDGE_DB, EDGE_SECONDS = 50.0, 0.025  # the ends of a sound that are this far below its loudest 25 ms are cut
REFERENCE = {"f0_speed_st": 11.0, "modulation": 0.7, "rhythm": 0.29}  # medians of neutral acting
LEAST = 0.1  # minimum of a part, so that four accidentally even syllables do not give 0
HALF = {"pitch_st": 12.0, "movement_st": 1.0, "rate_octaves": 0.5, "pause_share": 0.15, "level_db": 12.0}
SIGNATURE = (
    f"prosody|v{VERSION}|pitch:yin|edges:-{EDGE_DB:g}dB|flat:{FLAT:g}|of:"
    + ",".join(f"{k}={v:g}" for k, v in REFERENCE.items())
    + "|half:"
    + ",".join(f"{k}={v:g}" for k, v in HALF.items())
)
SCORES = {
    "expressiveness": of_replies(
        "Expressiveness", scale="plain", better="neither", high=None, table="delivery", unit="neutral acting is 1",
        order=50, finding=True,
        details=(
            DetailInfo("flat", "Flat", "% of replies", "percent", "lower", order=51, share=True),
            DetailInfo("f0_hz", "Pitch", "Hz, median", digits=0, order=54),
            DetailInfo("f0_range_st", "Pitch range", "semitones", digits=1, order=55),
            DetailInfo("rate_hz", "Rate", "syllables a second", order=56),
            DetailInfo("pause_share", "Pauses", "% of the time", "percent", high=1.0, order=57),
            DetailInfo("level_dbfs", "Level", "dBFS", digits=1, low=None, order=58),
        ),
    ),
    "prosody_fit": of_replies(
        "Fit to the reference delivery", table="delivery", short="Fit to the reference", unit="%", order=52,
        finding=True,
    ),
}  # fmt: skip

Detail = dict[str, float | int | str | None]


class Delivery(Struct, frozen=True):
    """The delivery of one recording. Values are None if they cannot be measured, without pitch or speech."""

    seconds: float
    f0_hz: float | None  # median
    f0_range_st: float | None  # 10th to 90th percentile
    f0_sd_st: float | None
    rate_hz: float | None
    pauses: int
    pause_seconds: float
    pause_share: float | None
    level_dbfs: float | None  # of the speech without pauses
    modulation: float | None  # standard deviation over mean of the amplitude envelope
    f0_speed_st: float | None = None  # semitones per second of voice
    rhythm: float | None = None  # standard deviation over mean of the gaps between syllables

    @property
    def speech(self) -> bool:
        return self.level_dbfs is not None

    @property
    def expressiveness(self) -> float | None:
        """The geometric mean of the three variations relative to neutral acting; None if one is missing."""
        values = [getattr(self, name) for name in REFERENCE]
        if any(value is None for value in values):
            return None
        ratios = [max(value / usual, LEAST) for value, usual in zip(values, REFERENCE.values(), strict=True)]
        return float(math.prod(ratios) ** (1 / len(ratios)))


def delivery(samples: npt.ArrayLike, rate: int) -> Delivery:
    """Measure a recording. Raises AudioError for one that is empty or not finite."""
    from overtone.audio import measure

    m = measure(_without_edges(np.asarray(samples, np.float32), rate), rate)
    spoken = m.pause_seconds + m.active * m.seconds
    return Delivery(
        **{name: getattr(m, name) for name in Delivery.__struct_fields__ if hasattr(m, name)},
        pause_share=m.pause_seconds / spoken if m.active else None,
        level_dbfs=None if m.snr_db is None else m.noise_floor_dbfs + m.snr_db,
    )


def _without_edges(samples: npt.NDArray[np.float32], rate: int) -> npt.NDArray[np.float32]:
    """Return the sound without the quiet blocks at its ends."""
    size = max(1, int(EDGE_SECONDS * rate))
    blocks = samples[: len(samples) // size * size].reshape(-1, size).astype(np.float64)
    power = np.square(blocks).mean(axis=1)
    heard = np.flatnonzero(power > power.max(initial=0.0) * 10 ** (-EDGE_DB / 10))
    return samples[heard[0] * size : (heard[-1] + 1) * size] if len(heard) else samples


def differences(reply: Delivery, reference: Delivery) -> dict[str, float | None]:
    """Return reply minus reference for each name in HALF.

    The value is None if only one of the two has the measure. If neither has it, the name is left out.
    """

    def semitones(hz: float | None) -> float | None:
        return None if hz is None else 12.0 * math.log2(hz)

    def octaves(hz: float | None) -> float | None:
        return None if not hz else math.log2(hz)

    measures = {
        "pitch_st": (semitones(reply.f0_hz), semitones(reference.f0_hz)),
        "movement_st": (reply.f0_sd_st, reference.f0_sd_st),
        "rate_octaves": (octaves(reply.rate_hz), octaves(reference.rate_hz)),
        "pause_share": (reply.pause_share, reference.pause_share),
        "level_db": (reply.level_dbfs, reference.level_dbfs),
    }
    return {
        name: None if a is None or b is None else a - b
        for name, (a, b) in measures.items()
        if a is not None or b is not None
    }


def similarities(differences: dict[str, float | None]) -> dict[str, float]:
    """Return each part of the fit: 1 for no difference, 0.5 for a difference of HALF, 0 if only one side has the
    measure."""
    return {name: 0.0 if d is None else 0.5 ** (abs(d) / HALF[name]) for name, d in differences.items()}


class Prosody(ReplyMetric):
    """Scores the audio of replies to conversation items: `expressiveness` and `prosody_fit`."""

    name = "prosody"
    version = VERSION
    page = 16
    slow = True

    def __init__(self) -> None:
        self._references: dict[str, Delivery | str] = {}  # by path; a text is the reason why it is missing

    def one(self, a: Answered) -> list[Score]:
        try:
            reply = delivery(*a.sound())
        except OvertoneError as error:
            return [Score(name, SIGNATURE, None, str(error)) for name in ("expressiveness", "prosody_fit")]
        path = a.reference_audio
        if path not in self._references:
            self._references[path] = _reference(a)
        return [_expressiveness(reply), _fit(reply, self._references[path])]


def _reference(a: Answered) -> Delivery | str:
    try:
        reference = delivery(*a.reference_sound())
    except OvertoneError as error:
        return str(error)
    return reference if reference.speech else "no speech in the reference audio"


def _expressiveness(reply: Delivery) -> Score:
    detail: Detail = {name: getattr(reply, name) for name in Delivery.__struct_fields__}
    value = reply.expressiveness
    if value is None:
        why = "no speech" if not reply.speech else "no pitch" if reply.f0_speed_st is None else "too few syllables"
        return Score("expressiveness", SIGNATURE, None, f"{why} in the reply's audio", detail)
    detail["flat"] = int(value < FLAT)
    return Score("expressiveness", SIGNATURE, value, "", detail)


def _fit(reply: Delivery, reference: Delivery | str) -> Score:
    if isinstance(reference, str):
        return Score("prosody_fit", SIGNATURE, None, reference)
    if not reply.speech:
        return Score("prosody_fit", SIGNATURE, 0.0, "", {"silent": 1})
    different = differences(reply, reference)
    fits = similarities(different)
    detail: Detail = {**different, **{f"fit_{name}": fit for name, fit in fits.items()}}
    if reply.rate_hz and reference.rate_hz:
        detail["rate_ratio"] = reply.rate_hz / reference.rate_hz
    return Score("prosody_fit", SIGNATURE, sum(fits.values()) / len(fits), "", detail)


def load() -> Prosody:
    return Prosody()
