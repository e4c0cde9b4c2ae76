"""Festival's `text2wave` (apt install festival festvox-…): diphone voices, and the most natural female voice here.

Voices in a second size, `slt@0.94`, are made as in flite.
"""

from __future__ import annotations

import functools
import re

from overtone.audio import Samples
from overtone.build.voices._programs import find_program, plain_ascii, run_program, speech_of, workplace
from overtone.build.voices._records import PACE, SEXES, How, Sex, Speaker, Synthesiser, named, no_name, options
from overtone.build.voices._sizes import sized, speakers_in_sizes
from overtone.errors import MissingExtra, UsageError
from overtone.spec import Spec, suggest

PACKAGES = "festival festvox-kallpc16k festvox-kdlpc16k festvox-us-slt-hts"
CHOSEN: dict[Sex, tuple[str, ...]] = {"male": ("kal", "ked"), "female": ("slt", "slt@0.94", "slt@1.08")}
_FULL = {"kal": "kal_diphone", "ked": "ked_diphone", "slt": "cmu_us_slt_arctic_hts"}
_PACKAGE = {"kal_diphone": "festvox-kallpc16k", "ked_diphone": "festvox-kdlpc16k"}
_PACKAGE["cmu_us_slt_arctic_hts"] = "festvox-us-slt-hts"
_OWN_PACE = {"cmu_us_slt_arctic_hts": 200}  # its default pace on the embedded engine's scale


class Festival(Synthesiser):
    """Voices of Festival by their own names (`kal_diphone`), or by the short ones kal, ked and slt."""

    licence = "CC0-1.0"  # the program and its voices have BSD-like licences; their speech is free

    def __init__(self, spec: Spec) -> None:
        no_name(spec)
        given = options(spec, {**dict.fromkeys(SEXES, str), "timeout": float})
        self._festival = find_program("festival", PACKAGES)
        self._program = find_program("text2wave", PACKAGES)
        self._timeout: float = given.get("timeout", 120.0)
        self._speakers = speakers_in_sizes(spec, named(spec, given, CHOSEN))
        known = _voices(self._festival)
        for speaker in self._speakers:
            voice = _full(speaker.name)
            if voice in known:
                continue
            if voice in _PACKAGE:
                raise MissingExtra(
                    f"{spec}: festival's voice {voice} is not installed; run 'apt install {_PACKAGE[voice]}'"
                )
            raise UsageError(
                f"{spec}: festival has no voice {voice!r}{suggest(voice, known)}; it has {', '.join(known)}"
            )

    def identity(self) -> str:
        return f"festival@{_version(self._festival)}"

    def speak(self, words: str, speaker: Speaker, how: How, *, pace: int = PACE) -> tuple[Samples, int]:
        size = sized(speaker.name)[1]
        voice = _full(speaker.name)
        stretch = size * _OWN_PACE.get(voice, 181) / pace
        paced = f"(Parameter.set 'Duration_Stretch {stretch:.4f})"
        if voice.endswith("_hts"):  # HTS voices support only their own engine's rate
            paced = f'(set! hts_engine_params (append hts_engine_params (list (list "-r" {1 / stretch:.4f}))))'
        set_up = f"(begin (voice_{voice}) {paced})"
        with workplace() as folder:
            (folder / "words.txt").write_text(plain_ascii(words) + "\n", "ascii")
            command = [self._program, "-eval", set_up, "-o", str(folder / "out.wav"), str(folder / "words.txt")]
            samples, rate = speech_of(command, folder / "out.wav", who=f"festival, {voice}", timeout=self._timeout)
        return samples, round(rate * size)


load = Festival


def _full(name: str) -> str:
    voice = sized(name)[0]
    return _FULL.get(voice, voice)


@functools.cache
def _voices(program: str) -> tuple[str, ...]:
    out, _ = run_program([program, "-b", "(print (voice.list))"], who="festival")
    return tuple(re.findall(r"[\w-]+", out))


@functools.cache
def _version(program: str) -> str:
    out, err = run_program([program, "--version"], who="festival")
    found = re.search(r"System:\s*([\d.]+)", out + err)
    return found[1] if found else "unknown"
