"""What hears the words of a reply: the package's own recogniser, or a Whisper in the measuring environment.

A metric's option `recogniser` is "" for ours, which hears English alone, or a folder or hub id of a Whisper model.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from overtone.errors import OvertoneError
from overtone.languages import SEVERAL, primary

if TYPE_CHECKING:
    from overtone.audio import Samples
    from overtone.metrics._helper import Helper


class Recogniser(Protocol):
    def identity(self) -> str:
        """Model and version, for the signature; says so where it cannot run."""
        ...

    def transcribe(self, samples: Samples, rate: int, language: str = "") -> str:
        """The words of a sound. OvertoneError, fit to be a reason, where they cannot be heard."""
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
    """A Whisper of the Hugging Face library, in the measuring environment; it starts with the first sound."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._helper: Helper | None = None
        self._broken: OvertoneError | None = None  # why it does not start: found out once, not for every reply

    def _started(self) -> Helper:
        if self._broken is not None:
            raise self._broken
        if self._helper is None:
            from overtone.metrics._helper import Helper

            helper = Helper("whisper", {"model": self._model}, hub=not Path(self._model).is_dir())
            try:
                helper.start()
            except OvertoneError as error:
                self._broken = error
                raise
            self._helper = helper
        return self._helper

    def identity(self) -> str:
        try:
            return str(self._started().facts["model"])
        except OvertoneError:
            return f"{Path(self._model).name}:missing"

    def transcribe(self, samples: Samples, rate: int, language: str = "") -> str:
        import numpy as np

        from overtone.audio import resample

        helper = self._started()
        x = np.ascontiguousarray(resample(samples, rate, int(helper.facts["rate"])), np.float32)
        spoken = "" if primary(language) in SEVERAL else primary(language)
        return str(helper.call({"language": spoken}, [x.tobytes()])["texts"][0])


def recogniser_of(model: str) -> Recogniser:
    """Ours, or the Whisper that lies in a folder or has an id on the hub."""
    return Whisper(model) if model else Embedded()
