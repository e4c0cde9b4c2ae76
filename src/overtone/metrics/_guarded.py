"""Guard against exceptions in a metric: a reply that causes one is unscored, with the reason, and scoring continues."""

from __future__ import annotations

import math
from collections.abc import Sequence

from overtone.errors import OvertoneError, UsageError, raised
from overtone.metrics import Answered, Metric
from overtone.schema import Score

IN_A_ROW = 5  # consecutive replies on which a metric raises before it is abandoned


class Guarded:
    """A metric with its guard. `stopped` is the reason why the metric was abandoned, if it was."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.stopped = ""
        self._in_a_row = 0
        self.emits: dict[str, str] = {}  # score name → latest signature

    def score(self, answered: Sequence[Answered], scored: list[list[Score]] | None = None) -> list[list[Score]]:
        """Return the scores of each reply. There are fewer rows than replies if the metric is abandoned before the end.

        `scored` has the metric's rows if another process has already computed them.
        """
        try:
            rows = self._checked(answered, scored)
        except UsageError:  # a wrong option, which concerns every reply
            raise
        except Exception:  # noqa: BLE001 - a plug-in may raise anything; the next line finds which replies
            return self._one_by_one(answered)
        self._in_a_row = 0
        return rows

    def _one_by_one(self, answered: Sequence[Answered]) -> list[list[Score]]:
        rows: list[list[Score] | str] = []
        for one in answered:
            try:
                rows.append(self._checked([one])[0])
                self._in_a_row = 0
            except OvertoneError as error:  # its message is a reason, such as "the reply has no audio"
                rows.append(str(error))
            except Exception as error:  # noqa: BLE001
                rows.append(f"the metric raised {raised(error)}"[:400])
                self._in_a_row += 1
                if self._in_a_row >= IN_A_ROW:
                    self.stopped = f"{self.metric.name} was given up after {IN_A_ROW} replies in a row: {rows[-1]}"
                    break
        return [self._unscored(row) if isinstance(row, str) else row for row in rows]

    def _unscored(self, reason: str) -> list[Score]:
        """Return a missing score for each of the metric's names. A later value with the same signature replaces it."""
        emits = self.emits or {self.metric.name: f"{self.metric.name}|v{self.metric.version}"}
        return [Score(name, signature, None, reason) for name, signature in emits.items()]

    def _checked(self, answered: Sequence[Answered], scored: list[list[Score]] | None = None) -> list[list[Score]]:
        """Return the metric's rows. Raises TypeError or ValueError for scores that cannot be stored."""
        rows = self.metric.score(answered) if scored is None else scored
        if len(rows) != len(answered):
            raise ValueError(f"score() returned {len(rows)} rows for {len(answered)} replies")
        for row in rows:
            for score in row:
                if not isinstance(score, Score):
                    raise TypeError(f"score() returned {type(score).__name__}, not a Score")
                if score.value is not None and not math.isfinite(score.value):
                    raise ValueError(f"{score.metric} is {score.value}, which is not a number that can be averaged")
                for key, value in score.detail.items():
                    if not isinstance(value, float | int | str | None):
                        raise TypeError(f"detail {key!r} of {score.metric} is a {type(value).__name__}")
        self.emits |= {score.metric: score.signature for row in rows for score in row}
        return rows
