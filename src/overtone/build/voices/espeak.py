"""The embedded engine, installed with pip alone: espeak-ng, loaded at run time.

espeak-ng is a GPL-3 program; its licence does not cover its speech. A voice is a language and a variant, and may have a
size and a pitch: `en-us+m7@1.17^95` is the variant m7 with resonances 17 % higher, at espeak's pitch 95. The speakers
below were chosen by measurement (docs/how-to/voices.md): the recogniser read each variant's plain speech after the
vocoder, and of the best understood variants the most different ones were taken.
"""

from __future__ import annotations

import re

from overtone.audio import Samples
from overtone.build.voices._records import PACE, SEXES, How, Sex, Speaker, Synthesiser, cast_of, named, no_name, options
from overtone.build.voices._sizes import sized
from overtone.embedded.espeak_voice import check, identity, speak
from overtone.errors import UsageError
from overtone.languages import primary
from overtone.spec import Spec, parse_spec

LICENCE = "CC0-1.0"  # of its speech, in which only the author of the words has rights
CHOSEN: dict[Sex, tuple[str, ...]] = {
    "male": ("en-us+Mike", "en-us+sandro", "en-us+m7", "en-us+Mike@1.08^65", "en-us+rob@1.04^65"),
    "female": ("en-us+f2^35", "en-us+f5", "en-us+f3", "en-us+f2@1.06", "en-us+f5@1.08"),
}
_OWN_NAMES = {"cmn": "zh"}  # espeak-ng's name of a language → ours
GAP = 4  # steps of 10 ms between words, which a recogniser would otherwise join


class Espeak(Synthesiser):
    """Voices of espeak-ng, each a language and a variant: `espeak?male=en-us+m3,…&female=…`."""

    licence = LICENCE

    def __init__(self, spec: Spec) -> None:
        no_name(spec)
        given = options(spec, dict.fromkeys(SEXES, str))
        self._speakers = cast_of(spec, named(spec, given, CHOSEN))
        for speaker in self._speakers:
            check(split_voice(speaker.name)[0])
        self.languages = frozenset(_language(split_voice(speaker.name)[0]) for speaker in self._speakers)

    def identity(self) -> str:
        return identity()

    def speak(self, words: str, speaker: Speaker, how: How, *, pace: int = PACE) -> tuple[Samples, int]:
        voice, size, pitch = split_voice(speaker.name)
        samples, rate = speak(words, voice=voice, rate_wpm=round(pace / size), pitch=pitch, gap=GAP)
        return samples, round(rate * size)  # played faster, pitch and resonances rise together


load = Espeak


def spec_for(language: str) -> str:
    """Return the SPEC of the usual voices in another language. Raises UsageError if espeak-ng does not speak it."""
    names = (f"{sex}={','.join(in_language(voice, language) for voice in CHOSEN[sex])}" for sex in SEXES)
    spec = f"espeak?{'&'.join(names)}"
    load(parse_spec(spec))
    return spec


def in_language(name: str, language: str) -> str:
    """Return the name of an American voice's variant in another language."""
    spoken = next((own for own, ours in _OWN_NAMES.items() if ours == language), language)
    return name.replace("en-us", spoken, 1)


def _language(voice: str) -> str:
    """Return the primary language of a voice."""
    own = primary(voice.partition("+")[0])
    return _OWN_NAMES.get(own, own)


def split_voice(name: str) -> tuple[str, float, int]:
    """Split a voice's name into espeak-ng's own name, its size and its pitch."""
    head, caret, pitch = name.partition("^")
    if caret and not re.fullmatch(r"\d\d?", pitch):
        raise UsageError(f"{name!r}: the pitch after ^ is a number from 0 to 99, such as {head}^70")
    return *sized(head), int(pitch) if caret else 50
