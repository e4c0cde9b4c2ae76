"""The subject of a verdict: the texts and sounds that a judge may get, each under the name that rubrics use."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from overtone.schema import Item


class Subject(Struct, frozen=True):
    """One reply, one pair of replies, or one group. Subjects with the same `group` are not independent (one script)."""

    id: str
    group: str
    texts: dict[str, str]
    sounds: dict[str, Path] = {}
    style: str = ""  # of the clip; "" asks every dimension
    transcript: bool = False  # the reply's text is a transcript of its audio
    heard_by: str = ""  # recogniser of the transcript; "" is the package's own
    felt_by: str = ""  # predictor of the emotion in the reply's voice, if that is shown
    item: Item | None = None  # the item that was answered; None asks every dimension
