"""CosyVoice-1's speech tokens: the S3 tokenizer and token-to-wave, run by the worker `workers/s3_speech.py`.

For `s3:FOLDER`, FOLDER has the weights of CosyVoice-300M-25Hz. To speak, it also has the voice: prompts/neutral.wav and
optionally prompts/happy.wav and so on for other emotions, at most 30 s each. The environment decides which program
runs, because a SPEC may come from an untrusted checkpoint: OVERTONE_S3_PYTHON is the interpreter of an environment with
onnxruntime and, to speak, CosyVoice's packages (default: the measuring environment); OVERTONE_S3_CODE is a checkout of
CosyVoice.
"""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from overtone import audio
from overtone.echat.data import labels
from overtone.echat.speech import RATES, checked_sound, checked_tokens
from overtone.errors import AudioError, DataError, UsageError
from overtone.metrics._helper import Helper
from overtone.spec import Spec, suggest

CODES = 4096
LONGEST = 30.0  # seconds
HEARD, SPOKEN = 16_000, 22_050
TOKENIZER = "speech_tokenizer_v1.onnx"
PYTHON, CODE = "OVERTONE_S3_PYTHON", "OVERTONE_S3_CODE"


def open_s3(spec: Spec) -> S3:
    """Open the tokens of a SPEC `s3:FOLDER`. Nothing runs before the first call. Raises UsageError or DataError."""
    if spec.options:
        raise UsageError(f"{spec.kind}: only a folder is allowed; set {PYTHON} and {CODE} to choose the program")
    folder = Path(spec.name)
    if not (folder / TOKENIZER).is_file():
        raise DataError(f"{folder}: {TOKENIZER} is missing; give the folder of CosyVoice-300M-25Hz's weights")
    return S3(folder, os.environ.get(PYTHON, ""), os.environ.get(CODE, ""))


class S3:
    """The tokenizer and the voice in a separate process, started at the first call."""

    name = "s3"
    codes = CODES
    rate = RATES["s3"]

    quiet: int | None = None

    def __init__(self, folder: Path, python: str = "", code: str = "") -> None:
        self.folder = folder
        options = {"folder": str(folder.resolve()), "code": str(Path(code).resolve()) if code else ""}
        self._helper = Helper("s3_speech", options, python=Path(python) if python else None)

    @functools.cached_property
    def identity(self) -> str:
        """The name and a hash of the tokenizer."""
        digest = hashlib.sha256((self.folder / TOKENIZER).read_bytes()).hexdigest()
        return f"s3@{digest[:12]}"

    def encode(self, samples: NDArray[np.float32], rate: int) -> NDArray[np.int64]:
        """Encode mono audio of at most 30 s. Raises AudioError."""
        x = audio.resample(checked_sound(samples, rate), rate, HEARD)
        if len(x) > LONGEST * HEARD:
            raise AudioError(
                f"S3 encodes at most {LONGEST:g} s of speech, not {len(x) / HEARD:.1f} s; split it at pauses"
            )
        answer = self._helper.call({"do": "encode"}, [_bytes(x)])
        return np.array(answer["tokens"], np.int64)

    def decode(self, tokens: NDArray[np.int64], emotion: str = "neutral") -> tuple[NDArray[np.float32], int]:
        """Decode tokens, which carry the prosody. The emotion selects the voice prompt, if there is one for it."""
        wanted = [int(t) for t in checked_tokens(tokens, CODES)]
        samples, rate = audio.read(self._prompt(emotion), max_seconds=LONGEST)
        sounds = [_bytes(audio.resample(samples, rate, to)) for to in (HEARD, SPOKEN)]
        answer = self._helper.call({"do": "decode", "tokens": wanted}, sounds)
        return np.frombuffer(answer["blobs"][0], np.float32), SPOKEN

    def seconds(self, tokens: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the length of each token, which is the same for all."""
        return np.full(len(checked_tokens(tokens, CODES)), 1 / self.rate)

    def close(self) -> None:
        """Stop the process."""
        self._helper.close()

    def _prompt(self, emotion: str) -> Path:
        if emotion not in labels.SPOKEN:
            known = ", ".join(labels.SPOKEN)
            raise UsageError(f"unknown reply emotion {emotion!r}{suggest(emotion, labels.SPOKEN)}; known: {known}")
        for name in (emotion, "neutral"):
            path = self.folder / "prompts" / f"{name}.wav"
            if path.is_file():
                return path
        raise DataError(
            f"{self.folder / 'prompts'}: neutral.wav is missing; add a few seconds of the voice to speak with"
        )


def _bytes(x: NDArray[np.float32]) -> bytes:
    return np.ascontiguousarray(x, np.float32).tobytes()
