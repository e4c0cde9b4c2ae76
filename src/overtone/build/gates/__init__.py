"""The gates between scripts and a finished set. Scripts and clips that fail are reported and left out."""

from __future__ import annotations

from msgspec import Struct

DIALOGUE = "spoken-dialogue"  # style of a clip that holds a whole dialogue in several voices


class Finding(Struct, frozen=True):
    """One failed check on a script or a clip: the gate, the reason, the measured value and the bound."""

    gate: str
    subject: str  # the script's id, or the clip's path relative to the set's folder
    reason: str
    value: float | None = None
    bound: float | None = None
