"""One person's answers about one unit, as analyses and labels use them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from msgspec import Struct

from overtone.studio import designs
from overtone.studio.designs import Unit
from overtone.studio.fields import Value


class Given(Struct, frozen=True, kw_only=True):
    """A finished screen. `usable` and `payable` are the verdicts on the session in which it was answered.

    `kind` is real, anchor or repeat; traps, gold questions and training are not opinions. With `swap`, the second reply
    was the first on the screen.
    """

    rater: str
    unit: Unit
    values: dict[str, Value]
    slot: str = ""
    swap: bool = False
    kind: str = "real"
    session: int = 1
    seq: int = 0
    at: float = 0.0
    ms: int = 0
    usable: bool = True
    payable: bool = True
    headphones: bool | None = None  # the result of the test; None: not tested
    source: str = "invite"
    failed: tuple[str, ...] = ()  # rules that the session did not keep

    @property
    def date(self) -> str:
        """The day of the answer (UTC), without the time."""
        return dt.datetime.fromtimestamp(self.at, dt.UTC).date().isoformat() if self.at else ""

    @property
    def answered(self) -> designs.Answered:
        return designs.Answered(self.rater, self.unit, self.values, self.swap, self.slot)


def counted(given: Sequence[Given], *, unusable: bool = False) -> list[Given]:
    """Return the answers that analyses count: real ones of usable sessions, or with `unusable`, of all sessions."""
    return [one for one in given if one.kind == "real" and (unusable or one.usable)]


def sessions(given: Sequence[Given]) -> dict[tuple[str, int], bool]:
    """Return (rater, session) → whether it is usable."""
    return {(one.rater, one.session): one.usable for one in given}
