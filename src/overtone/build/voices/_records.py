"""The interface of a voice engine: its speakers, the instructions for a clip, and the calls that the builder makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from overtone.audio import Samples
from overtone.errors import OvertoneError, UsageError
from overtone.spec import COMMON_KEYS, Spec, suggest

Sex = Literal["male", "female"]
SEXES: tuple[Sex, ...] = ("male", "female")
SCALE: dict[Sex, float] = {"male": 1.0, "female": 1.16}  # size of the resonances against a grown man's
UNKNOWN = "unknown"  # default licence of the clips
PACE = 160  # words per minute of plain speech


class VoiceError(OvertoneError):
    """An engine did not speak: its program or server failed, or a take is missing or broken."""


@dataclass(frozen=True)
class Speaker:
    """One voice of one engine. `engine` is the text of the engine's SPEC, `name` the engine's own name of the voice."""

    engine: str
    name: str
    sex: Sex
    scale: float  # size of the throat's resonances against a grown man's, for vocal events


@dataclass(frozen=True)
class How:
    """Instructions for saying a script. `file` is the clip's path relative to `audio/`, which identifies recordings."""

    case_id: str
    style: str
    cue: str = ""  # slug; "" for a plain voice
    manner: str = ""
    instructions: str = ""  # one sentence for engines that follow instructions (default: the table's)
    file: str = ""


class Engine(Protocol):
    """A voice engine. `native` means that it delivers the cue itself, so no recipe is applied to its speech."""

    native: bool
    licence: str

    def speakers(self) -> tuple[Speaker, ...]:
        """Return all speakers."""

    def speakers_of(self, script_id: str) -> tuple[Speaker, ...]:
        """Return the possible speakers of a script: all speakers or, for recordings, the ones who recorded it."""

    def identity(self) -> str:
        """Return engine and version, for hashes and the manifest."""

    def speak(self, words: str, speaker: Speaker, how: How, *, pace: int = PACE) -> tuple[Samples, int]:
        """Return the spoken words as mono float32 samples, and the sample rate."""

    def speak_reply(self, text: str, style: str, file: str) -> tuple[Samples, int] | None:
        """Return a reference reply in a style described in words; None leaves it to the embedded voice."""


class Synthesiser:
    """Base class of engines whose speakers can say anything."""

    native = False
    licence = UNKNOWN
    _speakers: tuple[Speaker, ...] = ()

    def speakers(self) -> tuple[Speaker, ...]:
        return self._speakers

    def speakers_of(self, script_id: str) -> tuple[Speaker, ...]:
        return self._speakers

    def speak_reply(self, text: str, style: str, file: str) -> tuple[Samples, int] | None:
        return None


def options(spec: Spec, keys: Mapping[str, type]) -> dict[str, Any]:
    """Return the converted options of a voice's SPEC. Unlike models, voices have no options common to all kinds."""
    for key in spec.options:
        if key not in keys:
            head = str(Spec(spec.kind, spec.name, {}))
            known = f"known: {', '.join(sorted(keys))}" if keys else "it has none"
            raise UsageError(f"{head}: unknown key {key!r}{suggest(key, keys)}; {known}")
    values = spec.typed(keys)
    if "timeout" in values and not 0 < values["timeout"] < float("inf"):
        raise UsageError(f"{spec}: timeout must be a positive number of seconds, not {spec.options['timeout']}")
    return values


def no_name(spec: Spec) -> None:
    """Refuse `espeak:NAME` for engines that have no models to choose from."""
    if spec.name:
        raise UsageError(f"{spec}: write {spec.kind!r} alone; voices are chosen with ?male=NAME,…&female=NAME,…")


def named(spec: Spec, given: Mapping[str, Any], defaults: Mapping[Sex, tuple[str, ...]]) -> dict[Sex, tuple[str, ...]]:
    """Return voice names per sex from `male=A,B&female=C`, or the defaults. A name belongs to one sex."""
    if not any(sex in given for sex in SEXES):
        return dict(defaults)
    voices: dict[Sex, tuple[str, ...]] = {}
    for sex in SEXES:
        names = [name.strip() for name in given.get(sex, "").split(",") if name.strip()]
        if len(set(names)) != len(names):
            raise UsageError(f"{spec}: {sex} names a voice twice")
        voices[sex] = tuple(names)
    if both := set(voices["male"]) & set(voices["female"]):
        raise UsageError(f"{spec}: {', '.join(sorted(both))} is named as male and as female")
    if not voices["male"] + voices["female"]:
        raise UsageError(f"{spec}: male and female are empty; write male=NAME,NAME or leave both out")
    return voices


def cast_of(spec: Spec, names: Mapping[Sex, tuple[str, ...]]) -> tuple[Speaker, ...]:
    """Return speakers of ordinary size, men first."""
    return tuple(Speaker(str(spec), name, sex, SCALE[sex]) for sex in SEXES for name in names.get(sex, ()))


assert "timeout" in COMMON_KEYS  # `Spec.typed` converts it for every kind
