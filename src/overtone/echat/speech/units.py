"""The embedded speech tokens: 1,024 units at 25 Hz, and the assistant's voice that speaks them. NumPy and WORLD alone.

    sound → log-mel spectrogram (100 Hz) → encoder, stride 4 → nearest of 1,024 codes                        encode
    codes → decoder → plain pitch, spectrum and noise (100 Hz) → the emotion's recipe → WORLD vocoder        decode

A unit says which sound is made and how long; it was taught to be the same in whatever emotion the words are said. The
manner comes back from the recipe that delivers the emotion everywhere else, but for its timing, which units have kept.
`scripts/train_units.py` trains the two networks; `docs/speech-tokens.md` says what they do to words.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overtone import audio
from overtone.build import delivery
from overtone.build.recipes import Recipe, recipe_of
from overtone.build.voices import REPLY_VOICE
from overtone.build.voices.espeak import GAP, parts
from overtone.echat.data import labels
from overtone.echat.speech import RATE, checked_sound, checked_tokens
from overtone.embedded import require
from overtone.embedded.voice import speak
from overtone.errors import DataError, UsageError
from overtone.spec import suggest

VOICE = REPLY_VOICE  # who speaks: units are trained on this voice alone
PACE = 165  # words a minute
WEIGHTS = Path(__file__).with_name("units.npz")

# What the encoder sees
HEARD = 16_000  # Hz
HOP = 160  # 10 ms
WINDOW = 512
MELS = 40
SILENT = -9 / 4  # the least of a spectrogram
STRIDE = 4  # frames of 10 ms to a unit
EDGE = 0.08  # seconds of silence kept before and after the words
QUIET_DB = 45.0  # below the loudest frame is silence

# What the decoder says, per 10 ms
BANDS = 64  # places, evenly spaced in mel, at which the spectrum is given
FLOOR = 9.0  # natural log of power below a clip's loudest frame that is silence
NOISES = 3  # bands of aperiodicity of WORLD at 24 kHz
OUT = BANDS + NOISES + 2  # + has a pitch, pitch

Floats = NDArray[np.float32]
Array = NDArray[np.float64]


class Units:
    """Speech tokens and voice in one file of weights beside this one."""

    name = "units"
    rate = RATE

    def __init__(self, weights: Path = WEIGHTS) -> None:
        self._path = weights
        self._w = read_weights(weights)
        self.codes = len(self._w["codes"])
        self._half = 0.5 * np.square(self._w["codes"]).sum(1)  # of |x - c|², what x has no part in
        self.quiet: int | None = int(np.bincount(self.codes_of(np.full((100, MELS), SILENT, np.float32))).argmax())

    @functools.cached_property
    def identity(self) -> str:
        return f"units@{hashlib.sha256(self._path.read_bytes()).hexdigest()[:12]}"

    def encode(self, samples: Floats, rate: int) -> NDArray[np.int64]:
        x = audio.resample(checked_sound(samples, rate), rate, HEARD)
        return self.codes_of(mel(trimmed(x)))

    def codes_of(self, heard: Floats) -> NDArray[np.int64]:
        """The codes of a log-mel spectrogram (frames, MELS)."""
        z = encoder(self._w, heard)  # (frames / 4, width of a code)
        return np.asarray((z @ self._w["codes"].T - self._half).argmax(1), np.int64)

    def decode(self, tokens: NDArray[np.int64], emotion: str = "neutral") -> tuple[Floats, int]:
        return self._sound(checked_tokens(tokens, self.codes), untimed(manner(emotion))), delivery.RATE

    def _sound(self, tokens: NDArray[np.int64], recipe: Recipe) -> Floats:
        """So many tokens, 40 ms each, in a manner."""
        rows = decoder(self._w, self._w["codes"][tokens])  # (frames, OUT)
        voiced = spoken(rows * self._w["scale"] + self._w["mean"], float(self._w["pitch"]))
        sound = delivery.deliver(voiced, recipe, np.random.default_rng(0))
        edge = int(delivery.EDGE * delivery.RATE)  # the silence deliver adds: units bring their own
        out = np.zeros(_samples(len(tokens)), np.float32)
        kept = sound[edge : len(sound) - edge][: len(out)]
        out[: len(kept)] = kept
        return np.clip(out, -1, 1)


def _samples(tokens: int) -> int:
    return round(tokens / RATE * delivery.RATE)


def say(text: str, emotion: str = "neutral") -> tuple[Floats, int]:
    """A reply as the assistant delivers it: what there is to encode. The same words give the same samples."""
    sound = delivery.deliver(plain(text), manner(emotion), np.random.default_rng(0))
    return np.clip(sound, -1, 1).astype(np.float32), delivery.RATE


def plain(text: str) -> delivery.Voiced:
    """The assistant's voice without an emotion, taken apart by WORLD."""
    voice, size, pitch = parts(VOICE)
    samples, rate = speak(text, voice=voice, rate_wpm=round(PACE / size), pitch=pitch, gap=GAP)
    if not samples.size:
        raise UsageError(f"nothing to say in {text!r}")
    return delivery.analyse(audio.resample(samples, round(rate * size), delivery.RATE).astype(np.float64))


@functools.cache
def manner(emotion: str) -> Recipe:
    """How a reply's emotion is delivered. Without the sounds a recipe may insert: an assistant does not sob."""
    if emotion not in labels.SPOKEN:
        raise UsageError(f"no reply emotion {emotion!r}{suggest(emotion, labels.SPOKEN)}: {', '.join(labels.SPOKEN)}")
    slug, strength = labels.SPOKEN[emotion]
    return replace(recipe_of(slug, strength=strength), events=())


def untimed(recipe: Recipe) -> Recipe:
    """The same manner at the pace that is there."""
    return replace(recipe, rate=1.0, pauses=1.0, halts=0.0, drawl=0.0)


def read_weights(path: Path) -> dict[str, Floats]:
    """Every array of a file of weights as float32."""
    try:
        with np.load(path) as held:
            return {name: held[name].astype(np.float32) for name in held.files}
    except FileNotFoundError:
        raise DataError(f"{path} is not there: run 'python -m scripts.train_units'") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as weights of the speech units: {error}") from None


# ---- what is heard ---------------------------------------------------------------------------------------------------


def trimmed(x: Floats) -> Floats:
    """Without the silence before and after, but for EDGE; padded to it where there is less."""
    first, last = span(x)
    return np.pad(x[max(first, 0) : last], (max(-first, 0), max(last - len(x), 0)))


def span(x: Floats) -> tuple[int, int]:
    """Where the words begin and end, EDGE included: the first may lie before the sound, the last behind it."""
    size = HEARD // 100
    power = np.square(x[: len(x) // size * size].reshape(-1, size), dtype=np.float64).mean(1)
    loud = np.flatnonzero(power > power.max() * 10 ** (-QUIET_DB / 10))
    edge = int(EDGE * HEARD)
    return int(loud[0]) * size - edge, (int(loud[-1]) + 1) * size + edge


@functools.cache
def _filters() -> Floats:
    """Triangles evenly spaced in mel from 60 Hz to 7.6 kHz: (bins, MELS)."""
    edges = _hertz(np.linspace(_mel(60.0), _mel(7600.0), MELS + 2))
    bins = np.linspace(0, HEARD / 2, WINDOW // 2 + 1)[:, None]
    rise = (bins - edges[:-2]) / (edges[1:-1] - edges[:-2])
    fall = (edges[2:] - bins) / (edges[2:] - edges[1:-1])
    return np.maximum(0, np.minimum(rise, fall)).astype(np.float32)


def mel(x: Floats) -> Floats:
    """Log-mel power at 100 Hz with the clip's own level taken out: (frames, MELS). Frame j is centred on j · 10 ms."""
    count = -(-len(x) // HOP)
    padded = np.pad(x.astype(np.float32), (WINDOW // 2, WINDOW))
    cut = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[::HOP][:count]
    power = np.square(np.abs(np.fft.rfft(cut * np.hanning(WINDOW).astype(np.float32), axis=1))).astype(np.float32)
    log = np.log(power @ _filters() + 1e-10)
    log -= np.percentile(log.mean(1), 90)
    return np.asarray(np.maximum(log / 4, SILENT), np.float32)


def _mel(hertz: float) -> float:
    return float(1127 * np.log1p(hertz / 700))


def _hertz(mels: Array) -> Array:
    return np.asarray(700 * np.expm1(mels / 1127))


# ---- what is said ----------------------------------------------------------------------------------------------------


@functools.cache
def _places(bins: int) -> Array:
    """Where, among WORLD's bins, the spectrum is given: (BANDS,)."""
    top = delivery.RATE / 2
    return np.asarray(_hertz(np.linspace(_mel(40.0), _mel(top), BANDS)) / top * (bins - 1))


def parameters(voice: delivery.Voiced) -> Array:
    """Plain speech as the decoder has it, every 5 ms: (frames, OUT). The pitch is its log2, held over gaps."""
    pw = _world()
    log = np.log(voice.envelope + 1e-16)
    at = _places(log.shape[1])
    left = np.minimum(at.astype(int), log.shape[1] - 2)
    spectrum = log[:, left] * (1 - (at - left)) + log[:, left + 1] * (at - left)
    spectrum = np.maximum(spectrum - log.mean(1).max(), -FLOOR - 4)
    noise = pw.code_aperiodicity(np.ascontiguousarray(voice.aperiodicity), delivery.RATE)
    voiced = voice.f0 > 0
    pitch = np.full(len(voiced), np.log2(voice.pitch))
    if voiced.any():
        pitch = np.interp(np.arange(len(voiced)), np.flatnonzero(voiced), np.log2(voice.f0[voiced]))
    return np.column_stack([spectrum, noise, voiced, pitch])


def spoken(said: Array | Floats, pitch: float) -> delivery.Voiced:
    """The decoder's words as plain speech, every 5 ms, from rows every 10 ms; `pitch` is the threshold's neutral."""
    pw = _world()
    frames = 2 * len(said)
    at = np.minimum(np.arange(frames) / 2, len(said) - 1)
    left = at.astype(int)
    right = np.minimum(left + 1, len(said) - 1)
    part = (at - left)[:, None]
    rows = said[left].astype(np.float64) * (1 - part) + said[right].astype(np.float64) * part
    size = pw.get_cheaptrick_fft_size(delivery.RATE, 71.0)
    bins = size // 2 + 1
    places = _places(bins)
    over = np.arange(bins)
    right_place = np.clip(np.searchsorted(places, over), 1, BANDS - 1)
    share = np.clip((over - places[right_place - 1]) / (places[right_place] - places[right_place - 1]), 0, 1)
    log = rows[:, right_place - 1] * (1 - share) + rows[:, right_place] * share
    voiced = rows[:, BANDS + NOISES] > 0.5
    noise = np.where(voiced[:, None], np.minimum(rows[:, BANDS : BANDS + NOISES], 0.0), 0.0)
    aperiodicity = pw.decode_aperiodicity(np.ascontiguousarray(noise), delivery.RATE, size)
    aperiodicity[~voiced] = 1 - 1e-12
    f0 = np.where(voiced, np.clip(2 ** rows[:, -1], 0.5 * pitch, 2.0 * pitch), 0.0)
    return delivery.Voiced(f0, np.exp(log) * 1e-4, aperiodicity)


def _world() -> Any:
    require("pyworld", "the WORLD vocoder, for speech tokens")
    import pyworld

    return pyworld


# ---- the two networks: rows are time, columns channels ---------------------------------------------------------------

Weights = Mapping[str, Floats]


def encoder(w: Weights, x: Floats) -> Floats:
    """(frames, MELS) → (frames / 4, width of a code)."""
    x = np.pad(x, ((0, -len(x) % STRIDE), (0, 0)), constant_values=float(x.min()))
    x = _silu(_conv(w, "enc.ear", x))
    x = _silu(_conv(w, "enc.two", x, stride=2))
    x = _silu(_conv(w, "enc.four", x, stride=2))
    x = _blocks(w, "enc.blocks", x)
    return _even(_conv(w, "enc.out", x))


def decoder(w: Weights, x: Floats) -> Floats:
    """(units, width of a code) → (4 · units, OUT), scaled."""
    x = _blocks(w, "dec.blocks", _conv(w, "dec.in", x))
    x = _conv(w, "dec.up", x).reshape(STRIDE * len(x), -1)
    return _conv(w, "dec.out", _blocks(w, "dec.fine", x))


def _blocks(w: Weights, name: str, x: Floats) -> Floats:
    number = 0
    while f"{name}.{number}.wide.weight" in w:
        at = f"{name}.{number}"
        y = _even(x) * w[f"{at}.norm.weight"] + w[f"{at}.norm.bias"]
        y = _silu(_conv(w, f"{at}.wide", y, apart=int(w[f"{at}.apart"])))
        x = x + _conv(w, f"{at}.back", y)
        number += 1
    return x


def _conv(w: Weights, name: str, x: Floats, stride: int = 1, apart: int = 1) -> Floats:
    """A convolution whose output has ceil(n / stride) rows; weights are (out, in, width), as torch keeps them."""
    kernel = w[f"{name}.weight"]
    out, _, width = kernel.shape
    left = (width - stride) * apart // 2
    padded = np.pad(x, ((left, (width - stride) * apart - left), (0, 0)))
    rows = (len(x) + stride - 1) // stride
    y = np.tile(w[f"{name}.bias"], (rows, 1))
    for k in range(width):
        y += padded[k * apart : k * apart + stride * (rows - 1) + 1 : stride] @ kernel[:, :, k].T
    return y.reshape(rows, out)


def _even(x: Floats) -> Floats:
    """Each row with mean 0 and variance 1."""
    away = x - x.mean(1, keepdims=True)
    return np.asarray(away / np.sqrt(np.square(away).mean(1, keepdims=True) + 1e-5), np.float32)


def _silu(x: Floats) -> Floats:
    return np.asarray(x / (1 + np.exp(-x)), np.float32)
