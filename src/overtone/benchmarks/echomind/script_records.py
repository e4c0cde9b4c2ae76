"""EchoMind's scripts and questions as they are read from files, before they become items."""

from __future__ import annotations

from msgspec import Struct

from overtone.schema import Option


class Spoken(Struct, frozen=True):
    """A script in one style: the path of its clip, and the reference reply to it."""

    clip: str
    reply: str = ""
    reply_audio: str = ""


class Script(Struct, frozen=True):
    """One script with the styles whose clips exist. `cue` is the cue of the target clip, `other` that of the
    alternative clip."""

    case_id: str
    words: str = ""
    topic: str = ""
    cue: str = ""
    cue_text: str = ""
    other: str = ""
    other_text: str = ""
    dimension: str = ""
    styles: dict[str, Spoken] = {}
    part: str = ""  # same as Item.part
    control_of: str = "neutral"  # the style that the control clip repeats
    language: str = ""  # same as Item.language

    def cues(self, style: str) -> tuple[str, str, str, str]:
        """Return (slug, text) of the cue in a clip of `style`, followed by (slug, text) of the false cue that the
        oracle-false condition names."""
        mine, other = (self.cue, self.cue_text), (self.other, self.other_text)
        if style == "control":
            style = self.control_of
        if style == "alternative":
            mine, other = other, mine
        elif style == "neutral":
            mine, other = ("", ""), mine
        return *mine, *other


class Question(Struct, frozen=True):
    """One multiple-choice question, linked to its script and style."""

    id: str
    kind: str  # the file it comes from: understanding, reasoning, …
    level: int
    category: str
    script: Script
    style: str
    clip: str
    words: str
    question: str
    options: tuple[Option, ...]
    gold: str
    part: str = ""
