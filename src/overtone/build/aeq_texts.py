"""Read the texts of the open set for AEQ-Bench, as written by their author.

A group is one utterance. In a context group it is said in a neutral voice, and the background determines the speaker's
need. In a tone group the background is fixed and the voice determines the need. A model that ignores the varying part
gives the same answer to all variants. No text reveals whether its speaker is a man or a woman, so any voice may speak
it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from msgspec import Struct

from overtone.build.script import LONGEST, read_toml, unspeakable
from overtone.cues import BY_SLUG, Cue
from overtone.errors import DataError
from overtone.paths import shown
from overtone.spec import suggest

FOLDER = Path(__file__).parent / "aeq"
NEUTRAL = "neutral"
TONES = ("happy", "angry", "sad", "tired", "fear", "surprise", "disgust", "sobbing", "whisper", "laughter")  # our cues
EMOV_DB = {  # EmoV-DB's folder of a tone → our tones that its recordings can represent, the nearest first
    "neutral": (NEUTRAL,),
    "amused": ("laughter", "happy"),  # amused speech there is mostly spoken through laughter
    "angry": ("angry",),
    "sleepy": ("tired",),  # with yawns
    "disgust": ("disgust",),
}
VARIANTS = {"context": (2, 3), "tone": (4, 4)}  # lowest and highest number of variants of a group


class Variant(Struct, frozen=True, forbid_unknown_fields=True):
    """One context or tone, its reference reply, and the speaking style of that reply."""

    wants: str  # the speaker's need in this variant: for judges and people, never shown to a model
    reply: str
    style: str
    context: str = ""  # context groups only
    tone: str = ""  # tone groups only: neutral, or the slug of a cue

    @property
    def cue(self) -> Cue | None:
        """The cue in the voice, or None for a neutral voice."""
        return BY_SLUG.get(self.tone)


class Group(Struct, frozen=True, forbid_unknown_fields=True):
    """One utterance with its variants."""

    id: str
    setting: Literal["context", "tone"]
    topic: str
    words: str
    variant: tuple[Variant, ...]
    context: str = ""  # tone groups only: the same for all variants

    def context_of(self, variant: Variant) -> str:
        """Return the background text that precedes this variant's utterance."""
        return variant.context or self.context

    def name_of(self, variant: Variant) -> str:
        """Return the variant's id: the group's id with the variant's tone, or with its number from 1."""
        return f"{self.id}-{variant.tone or self.variant.index(variant) + 1}"


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    group: tuple[Group, ...]


def read(folder: Path = FOLDER) -> list[Group]:
    """Read the groups of a folder's files, ordered by file name. Raises DataError with the name of an invalid group."""
    groups: list[Group] = []
    seen: set[str] = set()
    paths = sorted(folder.glob("*.toml"))
    if not paths:
        raise DataError(f"{shown(str(folder))}: contains no files of groups (.toml); give a folder that does")
    for path in paths:
        for group in read_toml(path, _File, "groups").group:
            if problem := "another group has this id" if group.id in seen else _problem(group):
                raise DataError(f"{shown(path.name)}: group {shown(group.id)}: {problem}")
            seen.add(group.id)
            groups.append(group)
    return groups


def _problem(group: Group) -> str:
    """Return a message about the fault of a group, or "" if it is valid."""
    if not re.fullmatch(rf"{group.setting}-\d{{1,6}}", group.id):
        return f"an id is the setting and a number, like {group.setting}-07"
    if not re.fullmatch(r"[a-z]{1,40}", group.topic):
        return f"a topic is one word of small letters, not {shown(group.topic)!r}"
    for variant in group.variant:
        for text in (group.words, group.context_of(variant), variant.reply, variant.wants, variant.style):
            if unspeakable(text):
                return f"its words, contexts, wants, replies and styles are 1 to {LONGEST} printable characters each"
        if group.setting == "context" and (variant.tone or group.context):
            return "in a context group each variant has its own context, and no tone"
        if group.setting == "tone" and variant.context:
            return "in a tone group the context is given once, before the variants"
        if group.setting == "tone" and variant.tone not in (NEUTRAL, *TONES):
            known = ", ".join((NEUTRAL, *TONES))
            return f"no tone {shown(variant.tone)!r}{suggest(variant.tone, TONES)}; known: {known}"
    least, most = VARIANTS[group.setting]
    if not least <= len(group.variant) <= most:
        return f"{len(group.variant)} variants; a {group.setting} group has {least} to {most}"
    if len({variant.tone or variant.context for variant in group.variant}) < len(group.variant):
        return "two of its variants are the same"
    if group.setting == "tone" and group.variant[0].tone != NEUTRAL:
        return f"the first variant of a tone group is {NEUTRAL}"
    return ""
