"""Convert speech to tokens and back: one interface for the embedded units and for CosyVoice's S3.

The language model writes tokens as it writes words. Decoding also gets the reply's emotion.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from overtone.errors import AudioError, UsageError
from overtone.spec import parse_spec

__all__ = ["RATES", "UNITS", "SpeechTokens", "checked_sound", "checked_tokens", "open_tokens"]

UNITS = "units2"  # the embedded units; the first ones, `units`, were 1,024 sounds of 40 ms
RATES = {UNITS: 12.5, "s3": 25.0}  # tokens per second; a unit has its own length, so this is their ordinary rate
_SHORTEST = 0.08  # seconds: two tokens


class SpeechTokens(Protocol):
    """A tokenizer of speech and the voice that speaks its tokens."""

    name: str
    codes: int  # tokens are 0 … codes - 1
    rate: float  # tokens per second, of ordinary speech
    quiet: int | None  # the code of silence, which may repeat; None: unknown

    @property
    def identity(self) -> str:
        """The name and a hash of the weights, for manifests and cache keys.

        Tokens are comparable only if their identities are equal.
        """

    def encode(self, samples: NDArray[np.float32], rate: int) -> NDArray[np.int64]:
        """Encode mono audio at any sample rate. Raises AudioError if it cannot be encoded."""

    def decode(self, tokens: NDArray[np.int64], emotion: str = "neutral") -> tuple[NDArray[np.float32], int]:
        """Decode to audio and its sample rate. Raises UsageError for invalid tokens or emotions."""

    def seconds(self, tokens: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the length of each token. Raises UsageError for invalid tokens."""


def open_tokens(text: str) -> SpeechTokens:
    """Open the speech tokens `units2` (embedded) or `s3:FOLDER` (CosyVoice's; see `s3.py`). Raises UsageError."""
    spec = parse_spec(text)
    if spec.kind == UNITS and not spec.name and not spec.options:
        from overtone.echat.speech.units import Units

        return Units()
    if spec.kind == "s3" and spec.name:
        from overtone.echat.speech.s3 import open_s3

        return open_s3(spec)
    if spec.kind == "units":
        raise UsageError(
            f"the speech tokens 'units' of 40 ms are no longer part of Overtone, which now has {UNITS!r}: build the "
            "set and train the checkpoint again, or use the version that made them"
        )
    raise UsageError(f"unknown speech tokens {text!r}; give {UNITS!r}, or 's3:FOLDER' with CosyVoice's weights")


def tokens_per_second(text: str) -> float:
    """Return the ordinary rate of tokens by their name in a configuration."""
    return RATES.get(text.partition(":")[0], max(RATES.values()))


def quiet_code(text: str) -> int | None:
    """Return the code that means silence, or None if finding it needs the tokenizer's weights."""
    return None if text.startswith("s3:") else open_tokens(text).quiet


def checked_sound(samples: NDArray[np.float32], rate: int) -> NDArray[np.float32]:
    """Return the audio as float32 if it can be encoded. Raises AudioError."""
    x = np.asarray(samples, np.float32)
    if x.ndim != 1:
        raise AudioError(f"speech to encode must be mono, but its shape is {x.shape}; mix the channels first")
    if rate <= 0:
        raise AudioError(f"invalid sample rate: {rate} Hz")
    if x.size < _SHORTEST * rate:
        raise AudioError(
            f"speech to encode must have at least {_SHORTEST * 1000:.0f} ms, not {1000 * x.size / rate:.0f} ms"
        )
    if not np.isfinite(x).all():
        at = int(np.flatnonzero(~np.isfinite(x))[0])
        raise AudioError(f"speech to encode has a NaN or infinite sample at {at / rate:.3f} s; read the file again")
    if float(np.abs(x).max()) < 1e-4:
        raise AudioError("speech to encode is silent (below -80 dB)")
    return x


def checked_tokens(tokens: NDArray[np.int64], codes: int) -> NDArray[np.int64]:
    """Return the tokens as int64 if they are valid. Raises UsageError."""
    t = np.asarray(tokens)
    if t.ndim != 1 or not t.size:
        raise UsageError("no speech tokens to decode; give a 1-D array with at least one")
    if t.dtype.kind not in "iu":
        raise UsageError(f"speech tokens must be integers, not {t.dtype}")
    if int(t.min()) < 0 or int(t.max()) >= codes:
        at = int(np.flatnonzero((t < 0) | (t >= codes))[0])
        raise UsageError(
            f"speech token {int(t[at])} at index {at} is outside 0 … {codes - 1}; strip the end marker first"
        )
    return t.astype(np.int64)
