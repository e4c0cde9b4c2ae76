"""Spoken replies for the metrics of the voice: sounds kept as a run keeps them, in a folder of the test's own."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import numpy as np

from overtone.audio import encode_wav
from overtone.metrics import Answered, Sounds
from overtone.schema import Turn
from tests.metrics.answers import answered, item

Sound = tuple[np.ndarray, int]


def spoken(folder: Path, text: str, sound: Sound | None, reference: Sound | None = None) -> Answered:
    """A reply with its audio, to a conversation item whose reference reply was spoken too."""
    of = item("converse", references=("A reference.",))
    if reference is not None:
        (folder / "reference.wav").write_bytes(encode_wav(*reference))
        of = msgspec.structs.replace(of, turns=(Turn(None),), reference_audio="reference.wav")
    sha = ""
    if sound is not None:
        data = encode_wav(*sound)
        sha = hashlib.sha256(data).hexdigest()
        (folder / f"{sha}.wav").write_bytes(data)
    reply = answered(of, text)
    return msgspec.structs.replace(reply, audio_sha=sha, sounds=Sounds(lambda name: folder / f"{name}.wav", folder))
