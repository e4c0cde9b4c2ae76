"""The gates between a script and a set: what fails one is listed with the reason and left out."""

from __future__ import annotations

from msgspec import Struct


class Finding(Struct, frozen=True):
    """One thing a gate holds against a script or a clip: what was measured, what was expected, what to do."""

    gate: str
    subject: str  # the script's id, or the clip's path relative to the set's folder
    reason: str
    value: float | None = None
    bound: float | None = None
