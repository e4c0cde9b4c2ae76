"""The embedded engine, installed with pip alone: espeak-ng, loaded at run time.

espeak-ng is a GPL-3 program; what it says is not covered by its licence. The speakers below were chosen by measurement
(docs/voices.md): plain speech of each variant, re-made by the vocoder as every clip is, read by the embedded
recogniser; of those that it understands best, the ones whose pitch and resonances lie furthest apart.
"""

from __future__ import annotations

from collections.abc import Iterator

from overtone.audio import Samples
from overtone.build.voices._records import PACE, SCALE, SEXES, How, Sex, Speaker, Synthesiser, named, no_name, options
from overtone.embedded.voice import check, identity, speak
from overtone.spec import Spec

LICENCE = "CC0-1.0"  # of what it says: nobody's work but the words'
CHOSEN: dict[Sex, tuple[str, ...]] = {
    "male": ("en-us+m3", "en-us+m5", "en-us+m1", "en-gb+m3"),
    "female": ("en-us+f2", "en-us+f3", "en-us+f5", "en-gb+f2"),
}


def load(spec: Spec) -> Espeak:
    """The engine a SPEC `espeak?male=VOICE,…&female=VOICE,…` names."""
    return Espeak(spec)


class Espeak(Synthesiser):
    """Voices of espeak-ng, each a language and a variant such as `en-us+m3`."""

    native = False
    licence = LICENCE

    def __init__(self, spec: Spec) -> None:
        no_name(spec)
        given = options(spec, dict.fromkeys(SEXES, str))
        self._speakers = tuple(_cast(spec, named(spec, given, CHOSEN)))

    def identity(self) -> str:
        return identity()

    def speak(self, words: str, speaker: Speaker, how: How, *, pace: int = PACE) -> tuple[Samples, int]:
        return speak(words, voice=speaker.name, rate_wpm=pace)


def _cast(spec: Spec, names: dict[Sex, tuple[str, ...]]) -> Iterator[Speaker]:
    for sex in SEXES:
        for name in names[sex]:
            check(name)
            yield Speaker(str(spec), name, sex, SCALE[sex])
