"""The subject of a verdict: the texts and sounds that a judge may get, each under the name that rubrics use."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from overtone.schema import Item


class Subject(Struct, frozen=True):
    """The subject of one verdict: a reply, a pair of replies, or a group of replies.

    Subjects with the same `group` belong to the same script, so they are not independent.
    """

    id: str
    group: str
    texts: dict[str, str]
    sounds: dict[str, Path] = {}
    style: str = ""  # of the clip; "" asks every dimension
    transcript: bool = False  # the reply's text is a transcript of its audio
    heard_by: str = ""  # recogniser of the transcript; "" is the package's own
    felt_by: str = ""  # predictor of the emotion in the reply's voice, if that is shown
    item: Item | None = None  # the item that was answered; None asks every dimension
