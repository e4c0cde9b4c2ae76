"""How a reply is spoken: its pitch, rate, pauses and level, how expressive it is, its fit to the reference delivery.

`expressiveness` is the geometric mean of three movements, each over what neutral acting has (REFERENCE): of the pitch
(semitones a second), of the level (standard deviation over mean of the envelope) and of the rhythm (the same of the
spaces between syllables). 1 is like neutral acting, below FLAT is called flat: flatter than almost all acted speech.
How far it can be trusted is measured by `bench/prosody.py` and stands in docs/metrics/prosody.md.

`prosody_fit` says, from 0 to 1, how near the delivery is to that of the reference reply: the mean of five parts, each
0.5 ** (difference / half), where the difference and what halves a part are

    pitch       medians, semitones; an octave halves it, so that another speaker's sex alone costs little
    movement    standard deviations of pitch, semitones; 1
    rate        energy peaks (about syllables) a second outside pauses, octaves of their ratio; 0.5 (1.41 times as fast)
    pauses      share of pauses of 200 ms and more in the time from first to last word, about; 0.15
    level       of the speech in dB; 12, since a recording's gain says little

Every difference (reply minus reference) and every part is in the detail. Where only one of the two has a pitch, pitch
and movement are 0; where neither has, they are left out. A reply whose audio holds no speech fits nothing: 0. A reply
without audio is unscored, and so is the fit where there is no reference audio.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy.typing as npt
from msgspec import Struct

from overtone.errors import OvertoneError
from overtone.metrics import Answered
from overtone.schema import Item, Score
from overtone.scores import DetailInfo, of_replies

VERSION = 2
FLAT = 0.7
REFERENCE = {"f0_speed_st": 11.0, "modulation": 0.7, "rhythm": 0.29}  # medians of neutral acting
LEAST = 0.1  # of a part: four even syllables by chance do not make a voice dead
HALF = {"pitch_st": 12.0, "movement_st": 1.0, "rate_octaves": 0.5, "pause_share": 0.15, "level_db": 12.0}
SIGNATURE = (
    f"prosody|v{VERSION}|pitch:yin|flat:{FLAT:g}|of:"
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
    """One recording's delivery. None where there is nothing to take it from: no pitch, no speech."""

    seconds: float
    f0_hz: float | None  # median
    f0_range_st: float | None  # 10th to 90th percentile
    f0_sd_st: float | None
    rate_hz: float | None
    pauses: int
    pause_seconds: float
    pause_share: float | None
    level_dbfs: float | None  # of the speech, pauses left out
    modulation: float | None  # standard deviation over mean of the amplitude envelope
    f0_speed_st: float | None = None  # semitones a second of voice
    rhythm: float | None = None  # standard deviation over mean of the spaces between syllables

    @property
    def speech(self) -> bool:
        return self.level_dbfs is not None

    @property
    def expressiveness(self) -> float | None:
        """The three movements over neutral acting's, as one; None where one of them cannot be measured."""
        found = [getattr(self, name) for name in REFERENCE]
        if any(value is None for value in found):
            return None
        ratios = [max(value / usual, LEAST) for value, usual in zip(found, REFERENCE.values(), strict=True)]
        return float(math.prod(ratios) ** (1 / len(ratios)))


def delivery(samples: npt.ArrayLike, rate: int) -> Delivery:
    """Measure a recording. Raises AudioError for one that is empty or not finite."""
    from overtone.audio import measure

    found = measure(samples, rate)
    spoken = found.pause_seconds + found.active * found.seconds
    return Delivery(
        seconds=found.seconds,
        f0_hz=found.f0_hz,
        f0_range_st=found.f0_range_st,
        f0_sd_st=found.f0_sd_st,
        rate_hz=found.rate_hz,
        pauses=found.pauses,
        pause_seconds=found.pause_seconds,
        pause_share=found.pause_seconds / spoken if found.active else None,
        level_dbfs=None if found.snr_db is None else found.noise_floor_dbfs + found.snr_db,
        modulation=found.modulation,
        f0_speed_st=found.f0_speed_st,
        rhythm=found.rhythm,
    )


def differences(reply: Delivery, reference: Delivery) -> dict[str, float | None]:
    """Reply minus reference, under the names of HALF; None where only one has the measure, absent where neither has."""

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


def parts(apart: dict[str, float | None]) -> dict[str, float]:
    """Each part's fit: 1 where the two agree, 0.5 where they are a half apart, 0 where only one has the measure."""
    return {name: 0.0 if d is None else 0.5 ** (abs(d) / HALF[name]) for name, d in apart.items()}


class Prosody:
    """Scores the audio of replies to conversation items: `expressiveness` and `prosody_fit`."""

    name = "prosody"
    version = VERSION

    def applies(self, item: Item) -> bool:
        return item.task == "converse"

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        references: dict[str, Delivery | str] = {}  # several replies share one; a text is why there is none
        return [self._one(a, references) for a in answered]

    def _one(self, a: Answered, references: dict[str, Delivery | str]) -> list[Score]:
        try:
            reply = delivery(*a.sound())
        except OvertoneError as error:
            return [Score(name, SIGNATURE, None, str(error)) for name in ("expressiveness", "prosody_fit")]
        path = a.reference_audio
        if path not in references:
            references[path] = _reference(a)
        return [_expressiveness(reply), _fit(reply, references[path])]


def _reference(a: Answered) -> Delivery | str:
    try:
        found = delivery(*a.reference_sound())
    except OvertoneError as error:
        return str(error)
    return found if found.speech else "no speech in the reference audio"


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
    apart = differences(reply, reference)
    fits = parts(apart)
    detail: Detail = {**apart, **{f"fit_{name}": fit for name, fit in fits.items()}}
    if reply.rate_hz and reference.rate_hz:
        detail["rate_ratio"] = reply.rate_hz / reference.rate_hz
    return Score("prosody_fit", SIGNATURE, sum(fits.values()) / len(fits), "", detail)


def load() -> Prosody:
    return Prosody()
