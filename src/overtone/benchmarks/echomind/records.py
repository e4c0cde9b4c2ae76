"""EchoMind's scripts and questions once read, before they become items."""

from __future__ import annotations

from msgspec import Struct

from overtone.schema import Option


class Spoken(Struct, frozen=True):
    """A script in one style: where its clip lies, and the reference reply to it."""

    clip: str
    reply: str = ""
    reply_audio: str = ""


class Script(Struct, frozen=True):
    """One script with those of its styles whose clips exist. `cue` and `other` are the target's and alternative's."""

    case_id: str
    words: str = ""
    topic: str = ""
    cue: str = ""
    cue_text: str = ""
    other: str = ""
    other_text: str = ""
    dimension: str = ""
    styles: dict[str, Spoken] = {}
    part: str = ""  # of the benchmark, as an item's
    control_of: str = "neutral"  # the style that a clip in style control renders once more
    language: str = ""  # as an item's

    def cues(self, style: str) -> tuple[str, str, str, str]:
        """Slug and text of the cue a clip in `style` carries, then of the one that oracle-false names for it."""
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
    kind: str  # the file it stands in: understanding, reasoning, …
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
