"""A small cue classifier: describes a voice's measures in plain words, and says which of several cues they fit best.

It is a regularised linear discriminant over standardised measures (`hearing.json`, written by
`scripts/fit_hearing.py`). It was fitted to synthetic clips made by the recipes of this project's builder, with voices
and sentences that no built set uses. It is a baseline that hears something, not a judge of people. The table gives its
accuracy in choosing one of up to four options. The clips have held-out voices and sentences, but the same recipes and
scenes. (The script writes this table and `load().table`.)

| task | held-out clips | accuracy | chance |
|---|---|---|---|
| coarse | 630 | 0.992 | 0.250 |
| gender | 36 | 1.000 | 0.500 |
| age | 72 | 0.792 | 0.333 |
| style | 108 | 1.000 | 0.250 |
| emotion | 108 | 0.769 | 0.250 |
| pace | 36 | 1.000 | 0.500 |
| nonverbal | 90 | 1.000 | 0.250 |
| background | 288 | 0.965 | 0.250 |
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from overtone import audio
from overtone.audio import Measures
from overtone.cues import BY_SLUG
from overtone.errors import DataError
from overtone.heard import HeardInTraining, decode
from overtone.paths import read_plain

Array = NDArray[np.float64]

_RATE = 16_000
_SIZE, _HOP = 512, 160
_EDGES = (60, 150, 250, 400, 630, 1000, 1600, 2500, 4000, 5600, 8000)
_MEASURED = (
    "rms_dbfs", "peak_dbfs", "noise_floor_dbfs", "snr_db", "active", "pauses", "pause_seconds",
    "longest_pause", "voiced", "f0_hz", "f0_range_st", "f0_sd_st", "rate_hz", "tilt_db_oct", "centroid_hz", "hnr_db",
    "modulation",
)  # fmt: skip
_PER_SECOND = frozenset({"pauses", "pause_seconds"})  # a longer script has more of them in every delivery
_LOGARITHMIC = frozenset({"f0_hz", "rate_hz", "centroid_hz"})
_BANDS = tuple(f"{low}-{high}Hz" for low, high in pairwise(_EDGES))
_SUMMARIES = ("mean", "low", "spread", "flutter", "onset")
FEATURES: tuple[str, ...] = (*_MEASURED, *(f"{band} {name}" for name in _SUMMARIES for band in _BANDS))
SILENT_DBFS = -65.0
_MOST_BYTES = 16 << 20
DATA = Path(__file__).with_name("hearing.json")


class Accuracy(Struct, frozen=True):
    """The classifier's accuracy on held-out clips of one understanding task, and the accuracy of guessing."""

    task: str
    clips: int
    accuracy: float
    chance: float


class Head(Struct, frozen=True, forbid_unknown_fields=True):
    """One discriminant. A class's score is its row of weights times the standardised features, plus its bias."""

    classes: tuple[str, ...]  # cue slugs
    weights: tuple[tuple[float, ...], ...]
    bias: tuple[float, ...]


class Hearing(Struct, frozen=True, forbid_unknown_fields=True):
    """The fitted classifier. Its first head distinguishes men from women in any delivery; its last covers every cue."""

    version: str
    features: tuple[str, ...]
    centre: tuple[float, ...]
    scale: tuple[float, ...]
    heads: tuple[Head, ...]
    table: tuple[Accuracy, ...]
    cannot_hear: dict[str, str] = {}  # cue → why, on people; written by bench/hearing_people.py
    training: bytes = b""  # what it was fitted to, as `heard.encode` writes it; b"" if it does not state that

    def heard(self) -> HeardInTraining | None:
        """Return the statement of its training data; None if it has none. Raises DataError."""
        return decode(self.training, "the classifier of voices") if self.training else None

    @property
    def classes(self) -> tuple[str, ...]:
        """The slugs of the cues that it covers."""
        return self.heads[-1].classes

    def posterior(self, features: Array, among: Sequence[str]) -> dict[str, float]:
        """Return the probability of each cue in `among`, given that one of them is present. All must be in
        `classes`."""
        standard = (features - np.array(self.centre)) / np.array(self.scale)
        # A missing measure becomes the mean; one far outside the training data is clipped to its border.
        standard = np.clip(np.nan_to_num(standard), -4.0, 4.0)
        head = next(head for head in self.heads if set(among) <= set(head.classes) or head is self.heads[-1])
        rows = [head.classes.index(slug) for slug in among]
        scores = np.array(head.weights)[rows] @ standard + np.array(head.bias)[rows]
        likely = np.exp(scores - scores.max())
        return dict(zip(among, (likely / likely.sum()).tolist(), strict=True))

    def describe(self) -> dict[str, object]:
        """Return what a model that uses it says of it: its identity, and the cues that it cannot hear in people."""
        return {"ear": self.version, "ear_cannot_hear": sorted(self.cannot_hear)}

    def evidence(self, samples: audio.Samples, rate: int, measures: Measures | None = None) -> tuple[float, ...]:
        """Return all that it needs to know of a sound."""
        return tuple(features(samples, rate, measures).tolist())

    def guesses(self, evidence: Array) -> list[tuple[str, float]]:
        """Return the likelier sex and its probability, then the most probable of all other cues."""
        sex = self.posterior(evidence, ("male", "female"))
        others = self.posterior(evidence, [slug for slug in self.classes if slug not in ("male", "female")])
        return [max(each.items(), key=lambda item: item[1]) for each in (sex, others)]


@functools.cache
def load() -> Hearing:
    """Load the classifier that comes with the package."""
    return read_file(DATA)


def read_file(path: Path) -> Hearing:
    """Read a classifier in the format of `hearing.json`, as scripts/fit_hearing.py writes it.

    Raises DataError if the file is damaged, is something else, or was fitted to other measures or unknown cues.
    """
    refit = "fit it again with scripts/fit_hearing.py"
    try:
        hearing = msgspec.json.decode(read_plain(path, _MOST_BYTES), type=Hearing)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{path}: not a classifier of voices ({error}); {refit}") from error
    if hearing.features != FEATURES:
        raise DataError(f"{path}: fitted to other measures than these; {refit}")
    if why := _invalid(hearing):
        raise DataError(f"{path}: {why}; {refit}")
    return hearing


def _invalid(hearing: Hearing) -> str:
    """Return why the numbers of a classifier do not fit together, or ""."""
    width = len(hearing.features)
    if len(hearing.centre) != width or len(hearing.scale) != width:
        return f"centre and scale must have {width} numbers, one per measure"
    if not hearing.heads:
        return "it has no head"
    numbers = [*hearing.centre, *hearing.scale]
    for head in hearing.heads:
        if unknown := [slug for slug in head.classes if slug not in BY_SLUG]:
            return f"{unknown[0]!r} is not a cue"
        if not head.classes or len(set(head.classes)) < len(head.classes):
            return "a head has no classes, or one of them twice"
        if len(head.weights) != len(head.classes) or len(head.bias) != len(head.classes):
            return f"a head of {len(head.classes)} classes has {len(head.weights)} rows of weights"
        if any(len(row) != width for row in head.weights):
            return f"a row of weights must have {width} numbers"
        numbers += [*head.bias, *(value for row in head.weights for value in row)]
    if not all(map(math.isfinite, numbers)) or min(hearing.scale) <= 0:
        return "a number is not finite, or a scale is not positive"
    if not any({"male", "female"} <= set(head.classes) for head in hearing.heads):
        return "no head tells male from female"
    return "" if len(hearing.classes) > 2 else "its last head must cover more cues than male and female"


def array(values: Sequence[float]) -> Array:
    """Return stored features as the array that the classifier takes."""
    return np.asarray(values, np.float64)


def features(samples: audio.Samples, rate: int, measures: Measures | None = None) -> Array:
    """Return the classifier's input numbers in the order of FEATURES; NaN for a measure that could not be taken."""
    measures = measures or audio.measure(samples, rate)
    out = []
    for name in _MEASURED:
        value = getattr(measures, name)
        if name in _PER_SECOND:
            value /= measures.seconds
        usable = value is not None and (name not in _LOGARITHMIC or value > 0)
        out.append(math.nan if not usable else math.log2(value) if name in _LOGARITHMIC else float(value))
    return np.concatenate([np.array(out), _bands(audio.resample(samples, rate, _RATE))])


def _bands(x: audio.Samples) -> Array:
    """Measure each band of the spectrum, in dB.

    The measures of a band are: its share of the whole; its level in the quietest fifth of the frames, which shows the
    background; how much it varies slowly and from frame to frame; and its level at the beginning, where coughs, sighs
    and yawns are.
    """
    x = np.pad(x, (0, max(0, _SIZE + 10 * _HOP - len(x))))
    frames = np.lib.stride_tricks.sliding_window_view(x, _SIZE)[::_HOP] * np.hanning(_SIZE).astype(np.float32)
    power = np.square(np.abs(np.fft.rfft(frames, axis=1))).astype(np.float64)
    hertz = np.fft.rfftfreq(_SIZE, 1 / _RATE)
    bands = np.stack([power[:, (hertz >= a) & (hertz < b)].sum(1) for a, b in pairwise(_EDGES)], 1)
    total = bands.sum(1)
    whole = 10 * np.log10(total.mean() + 1e-9)
    levels = 10 * np.log10(bands + 1e-9) - whole  # (frames, bands), relative to the sound as a whole
    quiet = levels[total <= np.percentile(total, 20)]
    early = levels[: max(5, min(len(levels), 60))]
    summaries = (
        10 * np.log10(bands.mean(0) + 1e-9) - whole,
        quiet.mean(0),
        levels.std(0),
        np.abs(np.diff(levels, axis=0)).mean(0),
        early.mean(0),
    )
    return np.asarray(np.clip(np.concatenate(summaries), -120.0, 60.0))


def described(measures: Measures) -> str:
    """Describe a voice in one line of plain English: pitch, level, pace, pauses, voicing, background."""
    if not measures.active or measures.rms_dbfs < SILENT_DBFS:
        return "Nothing can be heard."
    traits = []
    if measures.voiced < 0.2:
        traits.append("without pitch, like a whisper")
    elif measures.f0_hz is not None:
        bounds = (("very low-pitched", 95), ("low-pitched", 135), ("of middle pitch", 185), ("high-pitched", 260))
        traits.append(next((name for name, below in bounds if measures.f0_hz < below), "very high-pitched"))
    level = measures.rms_dbfs
    traits.append("loud" if level > -20 else "quiet" if level < -31 else "neither loud nor quiet")
    if measures.rate_hz is not None:
        traits.append("fast" if measures.rate_hz > 5.6 else "slow" if measures.rate_hz < 3.4 else "at a normal pace")
    if measures.f0_range_st is not None and measures.voiced >= 0.2:
        traits += ["lively"] if measures.f0_range_st > 9 else ["monotonous"] if measures.f0_range_st < 3 else []
    if measures.longest_pause > 0.6:
        traits.append("with long pauses")
    line = f"The voice is {', '.join(traits[:-1])} and {traits[-1]}"
    noisy = measures.noise_floor_dbfs > -50 and (measures.snr_db or 0.0) < 25
    return f"{line}; there is sound in the background." if noisy else f"{line}; the background is quiet."
