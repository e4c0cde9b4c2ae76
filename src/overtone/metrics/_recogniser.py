"""Recognisers that transcribe a reply's audio: the package's own, or a Whisper in the measuring environment.

A metric's option `recogniser` is "" for the package's own, which knows only English, or a Whisper's folder or hub id.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from overtone.errors import OvertoneError
from overtone.languages import SEVERAL, primary

if TYPE_CHECKING:
    from overtone.audio import Samples
    from overtone.metrics._helper import Helper


class Recogniser(Protocol):
    def identity(self) -> str:
        """Return the model and its version for the signature, or a text that says the model is missing."""
        ...

    def transcribe(self, samples: Samples, rate: int, language: str = "") -> str:
        """Return the words of a sound. Raises OvertoneError, worded as a score's reason."""
        ...


class Embedded:
    """The recogniser that comes with the package."""

    def identity(self) -> str:
        from overtone.embedded import present
        from overtone.embedded.recogniser import identity

        return identity() if present("moonshine_voice") else "missing"

    def transcribe(self, samples: Samples, rate: int, language: str = "") -> str:
        from overtone.embedded.recogniser import transcribe

        if primary(language) not in ("", "en"):
            raise OvertoneError(
                f"the offline recogniser hears English alone, and this reply is in {language!r}; "
                "name a Whisper model: recogniser=openai/whisper-large-v3"
            )
        return transcribe(samples, rate)


class Whisper:
    """A Whisper model from Hugging Face, run in the measuring environment. It is started when first needed."""

    def __init__(self, model: str) -> None:
        self._model = model

    @cached_property
    def _helper(self) -> Helper:
        from overtone.metrics._helper import Helper

        return Helper("whisper", {"model": self._model}, hub=not Path(self._model).is_dir())

    def identity(self) -> str:
        try:
            return str(self._helper.start_once().facts["model"])
        except OvertoneError:
            return f"{Path(self._model).name}:missing"

    def transcribe(self, samples: Samples, rate: int, language: str = "") -> str:
        import numpy as np

        from overtone.audio import resample

        helper = self._helper.start_once()
        x = np.ascontiguousarray(resample(samples, rate, int(helper.facts["rate"])), np.float32)
        known = "" if primary(language) in SEVERAL else primary(language)
        return str(helper.call({"language": known}, [x.tobytes()])["texts"][0])


def recogniser_of(model: str) -> Recogniser:
    """Return the Whisper with this folder or hub id, or the package's recogniser for ""."""
    return Whisper(model) if model else Embedded()
