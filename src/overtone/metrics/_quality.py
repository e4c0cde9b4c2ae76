"""Shared code of the speech quality predictors: check sounds, resample them, send them to the measuring environment.

Such a predictor is trained on listeners' ratings and predicts the mean rating, from 1 (bad) to 5 (excellent). It needs
no reference recording.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from overtone.audio import Samples, resample
from overtone.errors import OvertoneError
from overtone.metrics import Answered, ReplyMetric
from overtone.metrics._helper import Helper, HelperDied
from overtone.schema import Score
from overtone.scores import ScoreInfo, of_replies

Values = dict[str, float] | str  # a text is the reason why they are missing
SILENT = 10 ** (-70 / 20)  # a sound whose peak is below −70 dBFS has nothing to rate
_BATCH = 64  # maximum sounds in one call
_BATCH_BYTES = 64 << 20
_DEATHS = 3  # consecutive crashes after which the predictor is abandoned


def predicted(label: str, order: int, **more: Any) -> ScoreInfo:
    """Declare a score that is a predicted rating from 1 to 5."""
    return of_replies(label, scale="mos", low=1.0, high=5.0, unit="1 to 5", table="quality", order=order, **more)


class Quality(ReplyMetric):
    """A predictor as a metric. `hear` rates any sounds; `score` rates the audio of replies to conversation items."""

    def __init__(
        self,
        name: str,
        version: int,
        rate: int,
        names: Sequence[str],
        options: Mapping[str, Any] | None = None,
        *,
        hub: bool = False,
        wrong: str = "",
    ) -> None:
        self.name = name
        self.version = version
        self.rate = rate
        self.names = tuple(names)
        self._helper = Helper("quality", {"predictor": name, **(options or {})}, hub=hub)
        self._wrong = wrong  # why it cannot be used, if that is known before the start
        self._weights = "missing"
        self._least, self._most = 0.0, float("inf")
        self._deaths = 0

    def open(self) -> None:
        """Start the predictor. Raises OvertoneError that says what is missing and how to install it."""
        if self._wrong:
            raise OvertoneError(self._wrong)
        self._helper.start()
        facts = self._helper.facts
        self.names, self._weights = tuple(facts["names"]), facts["weights"]
        self._least, self._most = facts["least"], facts["most"] or float("inf")

    def close(self) -> None:
        """End the predictor's process. It starts again when it is needed."""
        self._helper.close()

    def signature(self, name: str) -> str:
        """Return the signature of a score. It names the weights once the predictor has started."""
        return f"{name}|v{self.version}|weights:{self._weights}|rate:{self.rate}|resampler:soxr-hq"

    def hear(self, sounds: Sequence[tuple[Samples, int]]) -> list[Values]:
        """Return for each sound (mono samples, rate) its values by name, or the reason why they are missing."""
        try:
            self.open()
        except OvertoneError as error:
            return [_brief(error)] * len(sounds)
        heard: list[Values] = [""] * len(sounds)
        ready: list[tuple[int, bytes]] = []
        for n, (samples, rate) in enumerate(sounds):
            if why := self._unfit(samples, rate):
                heard[n] = why
            else:
                ready.append((n, resample(samples, rate, self.rate).tobytes()))
        for batch in _batches(sorted(ready, key=lambda r: len(r[1]))):
            for (n, _), values in zip(batch, self._rated([blob for _, blob in batch]), strict=True):
                heard[n] = values
        return heard

    def score(self, answered: Sequence[Answered]) -> list[list[Score]]:
        sounds: list[tuple[Samples, int]] = []
        reasons: dict[int, str] = {}
        for n, a in enumerate(answered):
            try:
                sounds.append(a.sound())
            except OvertoneError as error:
                reasons[n] = str(error)
        rated = iter(self.hear(sounds))
        return [self._scores(reasons[n] if n in reasons else next(rated)) for n in range(len(answered))]

    def _scores(self, values: Values) -> list[Score]:
        if isinstance(values, str):
            return [Score(name, self.signature(name), None, values) for name in self.names]
        return [Score(name, self.signature(name), value) for name, value in values.items()]

    def _unfit(self, samples: Samples, rate: int) -> str:
        """Return the reason why a sound cannot be rated, or ""."""
        if not len(samples):
            return "the sound is empty"
        seconds = len(samples) / rate
        if seconds < self._least:
            return f"too short to rate: {seconds:.3g} s, and {self.name} needs {self._least:g}"
        if seconds > self._most:
            return f"too long to rate: {seconds:.3g} s, and {self.name} takes {self._most:g} at most"
        if not np.isfinite(samples).all():
            return "the sound has NaN or infinite samples"
        return "the sound is silent" if float(np.abs(samples).max()) < SILENT else ""

    def _rated(self, blobs: list[bytes]) -> list[Values]:
        """Return the values of these sounds. If a batch fails, each sound is tried alone, so that a sound that crashes
        the predictor does not affect the others."""
        if self._deaths >= _DEATHS:
            return [f"{self.name} died {_DEATHS} times in a row and was given up"] * len(blobs)
        try:
            values: list[dict[str, float]] = self._helper.call({}, blobs)["values"]
        except OvertoneError as error:
            if len(blobs) > 1:
                return [values for blob in blobs for values in self._rated([blob])]
            self._deaths += isinstance(error, HelperDied)
            return [_brief(error)]
        self._deaths = 0
        return [v if all(map(np.isfinite, v.values())) else f"{self.name} gave no number" for v in values]


def _batches(ready: Sequence[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    batch: list[tuple[int, bytes]] = []
    size = 0
    for one in ready:
        if batch and (len(batch) == _BATCH or size + len(one[1]) > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += len(one[1])
    if batch:
        yield batch


def _brief(error: OvertoneError) -> str:
    """Return the first line of an error, and the last line if there are several (the end of a log)."""
    lines = str(error).splitlines()
    return lines[0] if len(lines) == 1 else f"{lines[0]} {lines[-1].strip()}"
