"""A script as its author writes it, and the check that it is whole before anything is spoken."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
from msgspec import Struct

from overtone.build.voices import VOICES, BuildVoice
from overtone.cues import BY_SLUG, REASONING, Cue
from overtone.errors import DataError
from overtone.schema import STYLES, Style
from overtone.spec import suggest

TWO_WAY = {  # reasoning categories with two fixed options, in their order
    "people": ("Yes", "No"),
    "laughter": ("Yes", "No"),
    "shouting": ("Yes", "No"),
    "consistency": ("Consistent", "Inconsistent"),
}


class Reasoning(Struct, frozen=True, forbid_unknown_fields=True):
    """One question for the target and the alternative clip. Options stand under the reading that makes them right."""

    category: str
    question: str
    target: str
    alternative: str
    words: str = ""  # right if one had only the text
    harmful: str = ""  # would hurt, or reads too much into it


class Script(Struct, frozen=True, forbid_unknown_fields=True):
    """Neutral words with two cues that make different sense of them, and what to answer each time."""

    id: str
    cue: str
    alternative: str
    topic: str
    voice: str
    words: str
    reply: dict[str, str]
    style: dict[str, str]
    reasoning: tuple[Reasoning, ...]

    @property
    def styles(self) -> tuple[Style, ...]:
        """The styles it is spoken in: those with a reply."""
        return tuple(s for s in STYLES if s in self.reply)

    def cue_in(self, style: str) -> Cue | None:
        """The cue that a clip in this style carries; None for a neutral one."""
        return {"target": BY_SLUG[self.cue], "alternative": BY_SLUG[self.alternative]}.get(style)

    def voice_in(self, style: str) -> BuildVoice:
        """Who speaks in this style: one voice throughout, but for scripts about the speaker's sex."""
        voice, cue = VOICES[self.voice], self.cue_in(style)
        if cue is not None and cue.category == "gender" and cue.slug != voice.sex:
            return VOICES[voice.partner]
        return voice

    def file_name(self, style: str, ending: str = ".wav") -> str:
        """Relative to `audio/` or `audio_response/`, as EchoMind names files."""
        return f"{self.cue}/{self.id}_{self.cue}_{self.topic}_{style}{ending}"


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    script: tuple[Script, ...]


def sets() -> tuple[str, ...]:
    """The names of the script sets that come with the package: folders here that hold scripts."""
    return tuple(sorted({p.parent.name for p in Path(__file__).parent.glob("*/*.toml")}))


def read_set(name: str) -> tuple[Script, ...]:
    """The scripts of a set by name: all its files, in the order of their names."""
    if name not in sets():
        raise DataError(f"no script set {name!r}{suggest(name, sets())}; there is: {', '.join(sets())}")
    return read_scripts(*sorted((Path(__file__).parent / name).glob("*.toml")))


def read_scripts(*paths: Path) -> tuple[Script, ...]:
    """Read and check files of scripts; DataError names the script and what is wrong with it."""
    found: list[Script] = []
    seen: set[str] = set()
    for path in paths:
        try:
            read = msgspec.convert(tomllib.loads(path.read_text("utf-8")), _File).script
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
            raise DataError(f"{path.name}: cannot be read as scripts: {error}") from error
        for script in read:
            problem = _problem(script, seen)
            if problem:
                raise DataError(f"{path.name}: script {script.id}: {problem}")
            seen.add(script.id)
        found.extend(read)
    return tuple(found)


def _problem(script: Script, seen: set[str]) -> str:
    """What is wrong with a script, or nothing."""
    if script.id in seen:
        return "another script has this id"
    for slug in (script.cue, script.alternative):
        if slug not in BY_SLUG:
            return f"no cue {slug!r}{suggest(slug, BY_SLUG)}"
    if script.cue == script.alternative:
        return "the alternative is the target cue itself"
    if (BY_SLUG[script.cue].dimension == "speaker") != (BY_SLUG[script.alternative].dimension == "speaker"):
        return "a cue about the speaker needs another such cue as its alternative"
    if script.voice not in VOICES:
        return f"no voice {script.voice!r}{suggest(script.voice, VOICES)}"
    if BY_SLUG[script.cue].category == "gender" and VOICES[script.voice].sex != script.cue:
        return f"its voice {script.voice!r} is not {script.cue}"
    missing = {"target", "alternative"} - set(script.reply)
    if missing or set(script.reply) != set(script.style) or set(script.reply) - set(STYLES):
        return "reply and style each need target and alternative, and the same styles"
    kinds = [r.category for r in script.reasoning]
    if not kinds or len(set(kinds)) != len(kinds):
        return "needs at least one reasoning question, and not two of one category"
    return next((p for r in script.reasoning if (p := _reasoning_problem(r))), "")


def _reasoning_problem(r: Reasoning) -> str:
    if r.category not in REASONING:
        return f"no reasoning category {r.category!r}{suggest(r.category, REASONING)}"
    if r.category in TWO_WAY:
        if {r.target, r.alternative} != set(TWO_WAY[r.category]) or r.words or r.harmful:
            return f"{r.category}: target and alternative must be {' and '.join(TWO_WAY[r.category])}, and nothing else"
        return ""
    if len({r.target, r.alternative, r.words, r.harmful} - {""}) != 4:
        return f"{r.category}: needs four different options: target, alternative, words, harmful"
    return ""
