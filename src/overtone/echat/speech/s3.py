"""CosyVoice-1's speech tokens: the S3 tokenizer and token-to-wave, run by `workers/s3_speech.py` beside Overtone.

`s3:FOLDER`: FOLDER holds the weights of CosyVoice-300M-25Hz and, for sound, the voice to speak with:
prompts/neutral.wav, and where it should sound different, prompts/happy.wav and so on, at most 30 s each. What runs is
told by the environment, not by a name that may stand in a stranger's checkpoint: OVERTONE_S3_PYTHON is the interpreter
of an environment with onnxruntime and, for sound, CosyVoice's packages (else the measuring environment's),
OVERTONE_S3_CODE a checkout of CosyVoice.
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
from overtone.echat.speech import RATE, checked_sound, checked_tokens
from overtone.errors import AudioError, DataError, UsageError
from overtone.metrics._helper import Helper
from overtone.spec import Spec, suggest

CODES = 4096
LONGEST = 30.0  # seconds
HEARD, SPOKEN = 16_000, 22_050
TOKENIZER = "speech_tokenizer_v1.onnx"
PYTHON, CODE = "OVERTONE_S3_PYTHON", "OVERTONE_S3_CODE"


def open_s3(spec: Spec) -> S3:
    """The tokens a SPEC `s3:FOLDER` names. Nothing runs before the first call."""
    if spec.options:
        raise UsageError(f"{spec.kind}: takes a folder alone; what runs is told by {PYTHON} and {CODE}")
    folder = Path(spec.name)
    if not (folder / TOKENIZER).is_file():
        raise DataError(f"{folder}: no {TOKENIZER} there; give the folder of CosyVoice-300M-25Hz's weights")
    return S3(folder, os.environ.get(PYTHON, ""), os.environ.get(CODE, ""))


class S3:
    """The tokenizer and the voice in a process of their own, started at the first call."""

    name = "s3"
    codes = CODES
    rate = RATE

    quiet: int | None = None

    def __init__(self, folder: Path, python: str = "", code: str = "") -> None:
        self.folder = folder
        options = {"folder": str(folder.resolve()), "code": str(Path(code).resolve()) if code else ""}
        self._helper = Helper("s3_speech", options, python=Path(python) if python else None)

    @functools.cached_property
    def identity(self) -> str:
        digest = hashlib.sha256((self.folder / TOKENIZER).read_bytes()).hexdigest()
        return f"s3@{digest[:12]}"

    def encode(self, samples: NDArray[np.float32], rate: int) -> NDArray[np.int64]:
        x = audio.resample(checked_sound(samples, rate), rate, HEARD)
        if len(x) > LONGEST * HEARD:
            raise AudioError(f"S3 takes at most {LONGEST:g} s of speech, not {len(x) / HEARD:.1f} s; cut it in pauses")
        found = self._helper.call({"do": "encode"}, [_bytes(x)])
        return np.array(found["tokens"], np.int64)

    def decode(self, tokens: NDArray[np.int64], emotion: str = "neutral") -> tuple[NDArray[np.float32], int]:
        """Tokens carry the prosody; the emotion chooses the prompt whose voice is imitated, where there is one."""
        wanted = [int(t) for t in checked_tokens(tokens, CODES)]
        samples, rate = audio.read(self._prompt(emotion), max_seconds=LONGEST)
        sounds = [_bytes(audio.resample(samples, rate, to)) for to in (HEARD, SPOKEN)]
        found = self._helper.call({"do": "decode", "tokens": wanted}, sounds)
        return np.frombuffer(found["blobs"][0], np.float32), SPOKEN

    def close(self) -> None:
        self._helper.close()

    def _prompt(self, emotion: str) -> Path:
        if emotion not in labels.SPOKEN:
            known = ", ".join(labels.SPOKEN)
            raise UsageError(f"no reply emotion {emotion!r}{suggest(emotion, labels.SPOKEN)}: {known}")
        for name in (emotion, "neutral"):
            path = self.folder / "prompts" / f"{name}.wav"
            if path.is_file():
                return path
        raise DataError(
            f"{self.folder / 'prompts'}: no neutral.wav; put there a few seconds of the voice to speak with"
        )


def _bytes(x: NDArray[np.float32]) -> bytes:
    return np.ascontiguousarray(x, np.float32).tobytes()
