"""Speech as tokens, 25 a second, and back as sound: one interface for the embedded units and for CosyVoice's S3.

The language model writes tokens as it writes words; what turns them into sound is told, besides, which emotion the
reply has.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from overtone.errors import AudioError, UsageError
from overtone.spec import parse_spec

__all__ = ["RATE", "SpeechTokens", "checked_sound", "checked_tokens", "open_tokens"]

RATE = 25.0  # tokens a second
_SHORTEST = 0.08  # seconds: two tokens


class SpeechTokens(Protocol):
    """A tokenizer of speech and the voice that speaks its tokens."""

    name: str
    codes: int  # tokens are 0 … codes - 1
    rate: float  # tokens a second
    quiet: int | None  # the code of silence, which may last; None: not known

    @property
    def identity(self) -> str:
        """What tokens mean depends on it: the name and a hash of the weights, for manifests and cache keys."""

    def encode(self, samples: NDArray[np.float32], rate: int) -> NDArray[np.int64]:
        """The tokens of a mono sound at any sample rate. AudioError where there is nothing to encode."""

    def decode(self, tokens: NDArray[np.int64], emotion: str = "neutral") -> tuple[NDArray[np.float32], int]:
        """Sound and its sample rate, 40 ms a token. UsageError for what is no token or no emotion."""


def open_tokens(text: str) -> SpeechTokens:
    """`units`: the embedded ones. `s3:FOLDER`: CosyVoice's, from a folder with its weights (see `s3.py`)."""
    spec = parse_spec(text)
    if spec.kind == "units" and not spec.name and not spec.options:
        from overtone.echat.speech.units import Units

        return Units()
    if spec.kind == "s3" and spec.name:
        from overtone.echat.speech.s3 import open_s3

        return open_s3(spec)
    raise UsageError(f"no speech tokens {text!r}; give 'units', or 's3:FOLDER' with CosyVoice's weights")


def quiet_code(text: str) -> int | None:
    """The code of silence of the tokens that are named so, where it is known without their weights."""
    return open_tokens(text).quiet if text == "units" else None


def checked_sound(samples: NDArray[np.float32], rate: int) -> NDArray[np.float32]:
    """The sound, if it can be encoded at all."""
    x = np.asarray(samples, np.float32)
    if x.ndim != 1:
        raise AudioError(f"speech to encode must be mono, not of shape {x.shape}; mix its channels first")
    if rate <= 0:
        raise AudioError(f"a sample rate of {rate} Hz is none")
    if x.size < _SHORTEST * rate:
        raise AudioError(f"speech to encode must last {_SHORTEST * 1000:.0f} ms, not {1000 * x.size / rate:.0f} ms")
    if not np.isfinite(x).all():
        at = int(np.flatnonzero(~np.isfinite(x))[0])
        raise AudioError(f"speech to encode has a sample that is no number, at {at / rate:.3f} s; read the file again")
    if float(np.abs(x).max()) < 1e-4:
        raise AudioError("speech to encode is silent: nothing in it is above -80 dB")
    return x


def checked_tokens(tokens: NDArray[np.int64], codes: int) -> NDArray[np.int64]:
    """The tokens, if all of them are."""
    t = np.asarray(tokens)
    if t.ndim != 1 or not t.size:
        raise UsageError("no speech tokens to decode: give a row of at least one")
    if t.dtype.kind not in "iu":
        raise UsageError(f"speech tokens are whole numbers, not {t.dtype}")
    if int(t.min()) < 0 or int(t.max()) >= codes:
        at = int(np.flatnonzero((t < 0) | (t >= codes))[0])
        raise UsageError(
            f"speech token {int(t[at])} at place {at} is outside 0 … {codes - 1}; strip the end marker first"
        )
    return t.astype(np.int64)
