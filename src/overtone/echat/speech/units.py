"""The embedded speech tokens: a unit is one phoneme and its length, about twelve a second; with NumPy and WORLD.

    audio → log-mel spectrogram (100 Hz) → encoder → phonemes and their lengths → nearest code of each         encode
    text → espeak-ng's phonemes and their lengths → the emotion's timing → nearest code of each                 read
    codes → decoder → plain pitch, spectrum and noise (100 Hz) → the emotion's recipe → WORLD vocoder           decode

Decoding applies the emotion's recipe, except for its timing, which is in the units. `scripts/train_units.py` trains the
two networks, and `docs/explanation/speech-tokens.md` has measurements.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overtone import audio
from overtone.build import delivery
from overtone.build.recipes import Recipe, recipe_of
from overtone.echat.data import labels
from overtone.echat.speech import RATES, UNITS, checked_sound, checked_tokens, phoneme_times
from overtone.embedded import require
from overtone.errors import DataError, UsageError
from overtone.spec import suggest

FORMAT = 2  # of the weights; 1 was 1,024 units of 40 ms
ALPHABET = ("phonemes", "code.phoneme", "code.frames")  # arrays of the weights that say what each code means
WEIGHTS = Path(__file__).with_name("units.npz")

# The encoder's input
HEARD = 16_000  # Hz
HOP = 160  # 10 ms
WINDOW = 512
MELS = 40
SILENT = -9 / 4  # minimum of a spectrogram
EDGE = 0.08  # seconds of silence kept before and after the words
QUIET_DB = 45.0  # frames this far below the loudest are silence

# The decoder's output per 10 ms
FRAMES = 100  # per second, in units' lengths and in both networks
BANDS = 64  # points of the spectrum, evenly spaced in mel
FLOOR = 9.0  # frames this far below the loudest, in natural log of power, are silence
NOISES = 3  # aperiodicity bands of WORLD at 24 kHz
OUT = BANDS + NOISES + 2  # plus voicing and pitch

Floats = NDArray[np.float32]
Array = NDArray[np.float64]
Ints = NDArray[np.int64]


class Units:
    """The embedded tokenizer and voice, from one file of weights."""

    name = UNITS
    rate = RATES[UNITS]

    def __init__(self, weights: Path = WEIGHTS) -> None:
        self._w = read_weights(weights)
        self.phonemes = tuple(bytes(self._w["phonemes"].astype(np.uint8)).decode().split())
        self._nearest = nearest_names(self.phonemes)
        self.phoneme_of = self._w["code.phoneme"].astype(np.int64)  # of each code
        self.frames_of = self._w["code.frames"].astype(np.int64)
        self.codes = len(self.phoneme_of)
        gaps = np.flatnonzero(self.phoneme_of == self._nearest(phoneme_times.PAUSE))
        self.quiet: int | None = int(gaps[np.abs(self.frames_of[gaps] - FRAMES * phoneme_times.GAP_SECONDS).argmin()])

    @functools.cached_property
    def identity(self) -> str:
        """The name and a hash of the alphabet. Better networks for the same alphabet can decode the same tokens."""
        alphabet = b"".join(self._w[name].tobytes() for name in ALPHABET)
        return f"{UNITS}@{hashlib.sha256(alphabet).hexdigest()[:12]}"

    def encode(self, samples: Floats, rate: int) -> Ints:
        """Encode mono audio, without silence at its ends. Raises AudioError."""
        x = audio.resample(checked_sound(samples, rate), rate, HEARD)
        return self.codes_of(*self.phonemes_in(mel(trim_silence(x))))

    def phonemes_in(self, heard: Floats) -> tuple[Ints, Ints]:
        """Return the most likely phonemes in a log-mel spectrogram (frames, MELS), and their numbers of frames."""
        path = most_likely(encoder(self._w, heard), self._w["next"])
        starts = np.flatnonzero(np.r_[True, np.diff(path) != 0])
        return path[starts], np.diff(np.r_[starts, len(path)])

    def read(self, text: str, emotion: str = "neutral") -> Ints:
        """Return the tokens of a text in the assistant's voice, without making a sound. Raises UsageError."""
        speech = phoneme_times.spoken(text)
        index, frames = phoneme_times.runs(
            phoneme_times.delivered(speech, emotion_recipe(emotion), phoneme_times.outline(speech))
        )
        pause = self._nearest(phoneme_times.PAUSE)
        found = np.array([pause if at < 0 else self._nearest(speech.names[at]) for at in index], np.int64)
        first = np.r_[True, (found[1:] != pause) | (found[:-1] != pause)]  # an added pause is next to another
        return self.codes_of(found[first], np.add.reduceat(frames, np.flatnonzero(first)))

    def codes_of(self, phonemes: Ints, frames: Ints) -> Ints:
        """Return the codes nearest to phonemes and their lengths. Sounds longer than any code become several codes."""
        out: list[int] = []
        for phoneme, length in zip(phonemes.tolist(), frames.tolist(), strict=True):
            own = np.flatnonzero(self.phoneme_of == phoneme)
            parts = max(1, round(length / int(self.frames_of[own].max())))
            away = np.abs(np.log(self.frames_of[own] * parts / max(length, 1)))
            out += [int(own[away.argmin()])] * parts
        return np.array(out, np.int64)

    def seconds(self, tokens: Ints) -> Array:
        """Return the length of each token. Raises UsageError."""
        return self.frames_of[checked_tokens(tokens, self.codes)] / FRAMES

    def decode(self, tokens: Ints, emotion: str = "neutral") -> tuple[Floats, int]:
        """Decode tokens in an emotion. Raises UsageError."""
        return self._sound(checked_tokens(tokens, self.codes), without_timing(emotion_recipe(emotion))), delivery.RATE

    def rows(self, phonemes: Ints, frames: Ints) -> Array:
        """Return the decoder's parameters of phonemes with these lengths: (frames, OUT)."""
        out = decoder(self._w, phonemes, frames)
        return np.asarray(out * self._w["scale"] + self._w["mean"], np.float64)

    def speak_rows(self, rows: Array, recipe: Recipe) -> Floats:
        """Return the audio of the decoder's parameters, delivered by a recipe, without silence around it."""
        voiced = to_voiced(rows, float(self._w["pitch"]))
        sound = delivery.deliver(voiced, recipe, np.random.default_rng(0))
        edge = int(delivery.EDGE * delivery.RATE)  # remove the silence that deliver adds; units include their own
        return np.asarray(np.clip(sound[edge : len(sound) - edge], -1, 1), np.float32)

    def _sound(self, tokens: Ints, recipe: Recipe) -> Floats:
        """Return the audio of tokens, delivered by a recipe."""
        made = self.speak_rows(self.rows(self.phoneme_of[tokens], self.frames_of[tokens]), recipe)
        out = np.zeros(round(float(self.seconds(tokens).sum()) * delivery.RATE), np.float32)
        kept = made[: len(out)]
        out[: len(kept)] = kept
        return out


def say(text: str, emotion: str = "neutral") -> tuple[Floats, int]:
    """Speak a reply in the assistant's voice. The same words give the same samples."""
    sound = delivery.deliver(plain_speech(text), emotion_recipe(emotion), np.random.default_rng(0))
    return np.clip(sound, -1, 1).astype(np.float32), delivery.RATE


def plain_speech(text: str) -> delivery.Voiced:
    """Speak a text without an emotion, and return WORLD's analysis. Raises UsageError if there is nothing to say."""
    return delivery.analyse(phoneme_times.spoken(text).samples)


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


def nearest_names(phonemes: Sequence[str]) -> Callable[[str], int]:
    """Return a function that gives the number of a phoneme or, if it is not among these, of the most similar one."""
    number = {name: at for at, name in enumerate(phonemes)}

    @functools.cache
    def nearest(name: str) -> int:
        bare = name.lstrip("',")
        short = bare.rstrip("@#:23L-")
        similar = (name, bare, f"'{bare}", short, f"'{short}", bare[:1], phoneme_times.PAUSE)
        return next(number[one] for one in similar if one in number)

    return nearest


def read_weights(path: Path) -> dict[str, Floats]:
    """Read every array of a file of weights as float32. Raises DataError."""
    try:
        with np.load(path) as held:
            weights = {name: held[name].astype(np.float32) for name in held.files}
    except FileNotFoundError:
        raise DataError(f"{path} is missing; run 'python -m scripts.train_units'") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is not a valid file of unit weights: {error}") from None
    found = int(weights.get("format", np.float32(1)))
    if found != FORMAT:
        raise DataError(
            f"{path} has unit weights of format {found}, but this version reads format {FORMAT}; "
            "run 'python -m scripts.train_units'"
        )
    return weights


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
    """Run the encoder: (frames, MELS) → the log probability of each phoneme (frames, phonemes)."""
    x = _silu(_conv(w, "enc.ear", x))
    x = _conv(w, "enc.out", _normalised(_blocks(w, "enc.blocks", x)))
    x = x - x.max(1, keepdims=True)
    return np.asarray(x - np.log(np.exp(x).sum(1, keepdims=True)), np.float32)


def most_likely(heard: Floats, following: Floats) -> Ints:
    """Return the most likely phoneme of each frame (Viterbi), from the log probabilities of each phoneme per frame
    (frames, phonemes) and of each phoneme after each other one or itself (phonemes, phonemes)."""
    best, back = heard[0], np.zeros((len(heard), heard.shape[1]), np.int64)
    for at in range(1, len(heard)):
        through = best[:, None] + following
        back[at] = through.argmax(0)
        best = through[back[at], np.arange(len(best))] + heard[at]
    path = np.zeros(len(heard), np.int64)
    path[-1] = best.argmax()
    for at in range(len(heard) - 1, 0, -1):
        path[at - 1] = back[at, path[at]]
    return path


def decoder(w: Weights, phonemes: Ints, frames: Ints) -> Floats:
    """Run the decoder: phonemes and their numbers of frames → (frames, OUT), scaled."""
    length = np.log(frames / 8).astype(np.float32)[:, None]
    x = w["dec.phoneme.weight"][phonemes] + length * w["dec.length.weight"].T
    x = _conv(w, "dec.up", _blocks(w, "dec.blocks", x))
    x = np.repeat(x, frames, axis=0) + progress(frames) @ w["dec.place.weight"].T
    return _conv(w, "dec.out", _blocks(w, "dec.fine", x))


def progress(frames: Ints) -> Floats:
    """Return where each frame is within its phoneme: near its beginning, near its end, and which part of it has passed,
    (frames, 3)."""
    after = np.concatenate([np.arange(n) for n in frames])
    whole = np.repeat(frames, frames)
    near = [np.exp(-after / 3), np.exp(-(whole - 1 - after) / 3), (after + 0.5) / whole]
    return np.stack(near, 1).astype(np.float32)


def _blocks(w: Weights, name: str, x: Floats) -> Floats:
    number = 0
    while f"{name}.{number}.wide.weight" in w:
        at = f"{name}.{number}"
        y = _normalised(x) * w[f"{at}.norm.weight"] + w[f"{at}.norm.bias"]
        y = _silu(_conv(w, f"{at}.wide", y, apart=int(w[f"{at}.apart"])))
        x = x + _conv(w, f"{at}.back", y)
        number += 1
    return x


def _conv(w: Weights, name: str, x: Floats, apart: int = 1) -> Floats:
    """Apply a convolution that keeps the number of rows. Weights are (out, in, width), as in torch; width is odd."""
    kernel = w[f"{name}.weight"]
    width = kernel.shape[2]
    edge = (width - 1) * apart // 2
    padded = np.pad(x, ((edge, edge), (0, 0)))
    y = np.tile(w[f"{name}.bias"], (len(x), 1))
    for k in range(width):
        y += padded[k * apart : k * apart + len(x)] @ kernel[:, :, k].T
    return y


def _normalised(x: Floats) -> Floats:
    """Return the rows with mean 0 and variance 1."""
    away = x - x.mean(1, keepdims=True)
    return np.asarray(away / np.sqrt(np.square(away).mean(1, keepdims=True) + 1e-5), np.float32)


def _silu(x: Floats) -> Floats:
    return np.asarray(x / (1 + np.exp(-x)), np.float32)
