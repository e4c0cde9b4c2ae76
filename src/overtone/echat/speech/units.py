"""The embedded speech tokens: 1,024 units at 25 Hz, and the assistant's voice that speaks them, with NumPy and WORLD.

    audio → log-mel spectrogram (100 Hz) → encoder, stride 4 → nearest of 1,024 codes                        encode
    codes → decoder → plain pitch, spectrum and noise (100 Hz) → the emotion's recipe → WORLD vocoder        decode

A unit represents which sound is made and for how long; training made it independent of the emotion. Decoding applies
the emotion's recipe, except for its timing, which is in the units. `scripts/train_units.py` trains the two networks,
and `docs/explanation/speech-tokens.md` has measurements.
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
from overtone.build.voices.espeak import GAP, split_voice
from overtone.echat.data import labels
from overtone.echat.speech import RATE, checked_sound, checked_tokens
from overtone.embedded import require
from overtone.embedded.espeak_voice import speak
from overtone.errors import DataError, UsageError
from overtone.spec import suggest

VOICE = REPLY_VOICE  # the only voice that units are trained on
PACE = 165  # words per minute
WEIGHTS = Path(__file__).with_name("units.npz")

# The encoder's input
HEARD = 16_000  # Hz
HOP = 160  # 10 ms
WINDOW = 512
MELS = 40
SILENT = -9 / 4  # minimum of a spectrogram
STRIDE = 4  # frames of 10 ms per unit
EDGE = 0.08  # seconds of silence kept before and after the words
QUIET_DB = 45.0  # frames this far below the loudest are silence

# The decoder's output per 10 ms
BANDS = 64  # points of the spectrum, evenly spaced in mel
FLOOR = 9.0  # frames this far below the loudest, in natural log of power, are silence
NOISES = 3  # aperiodicity bands of WORLD at 24 kHz
OUT = BANDS + NOISES + 2  # plus voicing and pitch

Floats = NDArray[np.float32]
Array = NDArray[np.float64]


class Units:
    """The embedded tokenizer and voice, from one file of weights."""

    name = "units"
    rate = RATE

    def __init__(self, weights: Path = WEIGHTS) -> None:
        self._path = weights
        self._w = read_weights(weights)
        self.codes = len(self._w["codes"])
        self._half = 0.5 * np.square(self._w["codes"]).sum(1)  # the part of |x - c|² that does not depend on x
        self.quiet: int | None = int(np.bincount(self.codes_of(np.full((100, MELS), SILENT, np.float32))).argmax())

    @functools.cached_property
    def identity(self) -> str:
        """The name and a hash of the weights."""
        return f"units@{hashlib.sha256(self._path.read_bytes()).hexdigest()[:12]}"

    def encode(self, samples: Floats, rate: int) -> NDArray[np.int64]:
        """Encode mono audio, without silence at its ends. Raises AudioError."""
        x = audio.resample(checked_sound(samples, rate), rate, HEARD)
        return self.codes_of(mel(trim_silence(x)))

    def codes_of(self, heard: Floats) -> NDArray[np.int64]:
        """Return the codes of a log-mel spectrogram (frames, MELS)."""
        z = encoder(self._w, heard)  # (frames / 4, width of a code)
        return np.asarray((z @ self._w["codes"].T - self._half).argmax(1), np.int64)

    def decode(self, tokens: NDArray[np.int64], emotion: str = "neutral") -> tuple[Floats, int]:
        """Decode tokens in an emotion, 40 ms per token. Raises UsageError."""
        return self._sound(checked_tokens(tokens, self.codes), without_timing(emotion_recipe(emotion))), delivery.RATE

    def _sound(self, tokens: NDArray[np.int64], recipe: Recipe) -> Floats:
        """Return the audio of tokens, delivered by a recipe."""
        rows = decoder(self._w, self._w["codes"][tokens])  # (frames, OUT)
        voiced = to_voiced(rows * self._w["scale"] + self._w["mean"], float(self._w["pitch"]))
        sound = delivery.deliver(voiced, recipe, np.random.default_rng(0))
        edge = int(delivery.EDGE * delivery.RATE)  # remove the silence that deliver adds; units include their own
        out = np.zeros(_samples(len(tokens)), np.float32)
        kept = sound[edge : len(sound) - edge][: len(out)]
        out[: len(kept)] = kept
        return np.clip(out, -1, 1)


def _samples(tokens: int) -> int:
    return round(tokens / RATE * delivery.RATE)


def say(text: str, emotion: str = "neutral") -> tuple[Floats, int]:
    """Speak a reply in the assistant's voice, for encoding. The same words give the same samples."""
    sound = delivery.deliver(plain_speech(text), emotion_recipe(emotion), np.random.default_rng(0))
    return np.clip(sound, -1, 1).astype(np.float32), delivery.RATE


def plain_speech(text: str) -> delivery.Voiced:
    """Speak a text without an emotion, and return WORLD's analysis. Raises UsageError if there is nothing to say."""
    voice, size, pitch = split_voice(VOICE)
    samples, rate = speak(text, voice=voice, rate_wpm=round(PACE / size), pitch=pitch, gap=GAP)
    if not samples.size:
        raise UsageError(f"nothing to say in {text!r}")
    return delivery.analyse(audio.resample(samples, round(rate * size), delivery.RATE).astype(np.float64))


@functools.cache
def emotion_recipe(emotion: str) -> Recipe:
    """Return the recipe of a reply emotion, without vocal events such as sobs. Raises UsageError."""
    known = labels.SPOKEN
    if emotion not in known:
        raise UsageError(f"unknown reply emotion {emotion!r}{suggest(emotion, known)}; known: {', '.join(known)}")
    slug, strength = known[emotion]
    return replace(recipe_of(slug, strength=strength), events=())


def without_timing(recipe: Recipe) -> Recipe:
    """Return the recipe without changes of pace, because units already include it."""
    return replace(recipe, rate=1.0, pauses=1.0, halts=0.0, drawl=0.0)


def read_weights(path: Path) -> dict[str, Floats]:
    """Read every array of a file of weights as float32. Raises DataError."""
    try:
        with np.load(path) as held:
            return {name: held[name].astype(np.float32) for name in held.files}
    except FileNotFoundError:
        raise DataError(f"{path} is missing; run 'python -m scripts.train_units'") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is not a valid file of unit weights: {error}") from None


# ---- encoder input ---------------------------------------------------------------------------------------------------


def trim_silence(x: Floats) -> Floats:
    """Cut or pad the silence at both ends to EDGE seconds."""
    first, last = span(x)
    return np.pad(x[max(first, 0) : last], (max(-first, 0), max(last - len(x), 0)))


def span(x: Floats) -> tuple[int, int]:
    """Return the first and last sample of the words including EDGE. They may lie outside the audio."""
    size = HEARD // 100
    power = np.square(x[: len(x) // size * size].reshape(-1, size), dtype=np.float64).mean(1)
    loud = np.flatnonzero(power > power.max() * 10 ** (-QUIET_DB / 10))
    edge = int(EDGE * HEARD)
    return int(loud[0]) * size - edge, (int(loud[-1]) + 1) * size + edge


@functools.cache
def _filters() -> Floats:
    """Return triangular filters, evenly spaced in mel from 60 Hz to 7.6 kHz: (bins, MELS)."""
    edges = _hertz(np.linspace(_mel(60.0), _mel(7600.0), MELS + 2))
    bins = np.linspace(0, HEARD / 2, WINDOW // 2 + 1)[:, None]
    rise = (bins - edges[:-2]) / (edges[1:-1] - edges[:-2])
    fall = (edges[2:] - bins) / (edges[2:] - edges[1:-1])
    return np.maximum(0, np.minimum(rise, fall)).astype(np.float32)


def mel(x: Floats) -> Floats:
    """Return the log-mel power at 100 Hz, relative to the clip's level: (frames, MELS).

    Frame j is centred on j · 10 ms.
    """
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


# ---- decoder output --------------------------------------------------------------------------------------------------


@functools.cache
def _places(bins: int) -> Array:
    """Return the positions of the spectrum's points among WORLD's bins: (BANDS,)."""
    top = delivery.RATE / 2
    return np.asarray(_hertz(np.linspace(_mel(40.0), _mel(top), BANDS)) / top * (bins - 1))


def parameters(voice: delivery.Voiced) -> Array:
    """Convert plain speech to the decoder's parameters, one row every 5 ms: (frames, OUT).

    Pitch is log2 of the frequency, interpolated over unvoiced frames.
    """
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


def to_voiced(output: Array | Floats, pitch: float) -> delivery.Voiced:
    """Convert the decoder's output (every 10 ms) to plain speech (every 5 ms).

    Pitch is limited to an octave of `pitch`.
    """
    pw = _world()
    frames = 2 * len(output)
    at = np.minimum(np.arange(frames) / 2, len(output) - 1)
    left = at.astype(int)
    right = np.minimum(left + 1, len(output) - 1)
    part = (at - left)[:, None]
    rows = output[left].astype(np.float64) * (1 - part) + output[right].astype(np.float64) * part
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


# ---- the two networks: rows are time, columns are channels -----------------------------------------------------------

Weights = Mapping[str, Floats]


def encoder(w: Weights, x: Floats) -> Floats:
    """Run the encoder: (frames, MELS) → (frames / 4, width of a code)."""
    x = np.pad(x, ((0, -len(x) % STRIDE), (0, 0)), constant_values=float(x.min()))
    x = _silu(_conv(w, "enc.ear", x))
    x = _silu(_conv(w, "enc.two", x, stride=2))
    x = _silu(_conv(w, "enc.four", x, stride=2))
    x = _blocks(w, "enc.blocks", x)
    return _normalised(_conv(w, "enc.out", x))


def decoder(w: Weights, x: Floats) -> Floats:
    """Run the decoder: (units, width of a code) → (4 · units, OUT), scaled."""
    x = _blocks(w, "dec.blocks", _conv(w, "dec.in", x))
    x = _conv(w, "dec.up", x).reshape(STRIDE * len(x), -1)
    return _conv(w, "dec.out", _blocks(w, "dec.fine", x))


def _blocks(w: Weights, name: str, x: Floats) -> Floats:
    number = 0
    while f"{name}.{number}.wide.weight" in w:
        at = f"{name}.{number}"
        y = _normalised(x) * w[f"{at}.norm.weight"] + w[f"{at}.norm.bias"]
        y = _silu(_conv(w, f"{at}.wide", y, apart=int(w[f"{at}.apart"])))
        x = x + _conv(w, f"{at}.back", y)
        number += 1
    return x


def _conv(w: Weights, name: str, x: Floats, stride: int = 1, apart: int = 1) -> Floats:
    """Apply a convolution with ceil(n / stride) output rows. Weights are (out, in, width), as in torch."""
    kernel = w[f"{name}.weight"]
    out, _, width = kernel.shape
    left = (width - stride) * apart // 2
    padded = np.pad(x, ((left, (width - stride) * apart - left), (0, 0)))
    rows = (len(x) + stride - 1) // stride
    y = np.tile(w[f"{name}.bias"], (rows, 1))
    for k in range(width):
        y += padded[k * apart : k * apart + stride * (rows - 1) + 1 : stride] @ kernel[:, :, k].T
    return y.reshape(rows, out)


def _normalised(x: Floats) -> Floats:
    """Return the rows with mean 0 and variance 1."""
    away = x - x.mean(1, keepdims=True)
    return np.asarray(away / np.sqrt(np.square(away).mean(1, keepdims=True) + 1e-5), np.float32)


def _silu(x: Floats) -> Floats:
    return np.asarray(x / (1 + np.exp(-x)), np.float32)
