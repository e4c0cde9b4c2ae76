"""The `flite` program (apt install flite): Carnegie Mellon's small voices, clearer than the embedded ones.

Flite has one female voice, so each voice is also available in a second size (`slt@1.08`): played at another rate and
stretched back, which moves pitch and resonances together as a smaller or larger throat does.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

from overtone.audio import Samples
from overtone.build.voices._programs import find_program, plain_ascii, run_program, speech_of, workplace
from overtone.build.voices._records import (
    PACE,
    SEXES,
    How,
    Sex,
    Speaker,
    Synthesiser,
    VoiceError,
    named,
    no_name,
    options,
)
from overtone.build.voices._sizes import sized, speakers_in_sizes
from overtone.errors import UsageError
from overtone.spec import Spec, suggest

CHOSEN: dict[Sex, tuple[str, ...]] = {
    "male": ("rms", "kal16", "awb", "rms@0.93"),
    "female": ("slt", "slt@0.94", "slt@1.08"),
}
_OWN_PACE = {"rms": 159, "slt": 203, "kal16": 208, "kal": 208, "awb": 187}  # on the embedded engine's scale


class Flite(Synthesiser):
    """Flite's built-in voices, or a voice file's path."""

    licence = "CC0-1.0"  # the program and its voices have BSD-like licences; their speech is free

    def __init__(self, spec: Spec) -> None:
        no_name(spec)
        given = options(spec, {**dict.fromkeys(SEXES, str), "timeout": float})
        self._program = find_program("flite", "flite")
        self._timeout: float = given.get("timeout", 120.0)
        self._speakers = speakers_in_sizes(spec, named(spec, given, CHOSEN))
        if not any(sized(speaker.name)[0].endswith(".flitevox") for speaker in self._speakers):
            self.languages = frozenset({"en"})  # of the built-in voices
        known = _voices(self._program)
        for speaker in self._speakers:
            name, _ = sized(speaker.name)
            if name not in known and not name.endswith(".flitevox"):
                raise UsageError(
                    f"{spec}: flite has no voice {name!r}{suggest(name, known)}; it has {', '.join(known)}"
                )

    def identity(self) -> str:
        return f"flite@{_version(self._program)}"

    def speak(self, words: str, speaker: Speaker, how: How, *, pace: int = PACE) -> tuple[Samples, int]:
        voice, size = sized(speaker.name)
        stretch = size * _OWN_PACE.get(voice, 185) / pace
        with workplace() as folder:
            (folder / "words.txt").write_text(plain_ascii(words) + "\n", "ascii")
            command = [self._program, "-voice", voice, "--setf", f"duration_stretch={stretch:.4f}",
                       "-f", str(folder / "words.txt"), "-o", str(folder / "out.wav")]  # fmt: skip
            samples, rate = speech_of(command, folder / "out.wav", who=f"flite, {voice}", timeout=self._timeout)
        return samples, round(rate * size)


load = Flite


@functools.cache
def _voices(program: str) -> tuple[str, ...]:
    out, _ = run_program([program, "-lv"], who="flite")
    found = re.search(r"Voices available:(.*)", out)
    if not found:
        raise VoiceError(f"{Path(program).name} -lv lists no voices; install flite again")
    return tuple(found[1].split())


@functools.cache
def _version(program: str) -> str:
    out, _ = run_program([program, "--version"], who="flite", fine=(0, 1))
    found = re.search(r"version:\s*(\S+)", out)
    return found[1].removeprefix("flite-") if found else "unknown"
