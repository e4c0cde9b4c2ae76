"""What is put before a judge: texts and sounds by the names a rubric asks for them."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from overtone.schema import Item


class Subject(Struct, frozen=True):
    """One reply, or one pair of replies. `group` is what is not independent of it: its script."""

    id: str
    group: str
    texts: dict[str, str]
    sounds: dict[str, Path] = {}
    style: str = ""  # of the clip; "" where every dimension is to be asked
    transcript: bool = False  # the reply's text is a transcript of its audio
    heard_by: str = ""  # which recogniser made it; "" for the package's own
    felt_by: str = ""  # what heard the emotion of the reply's voice, where that is shown
    item: Item | None = None  # what it replies to; None where every dimension is to be asked
