"""One voice in several sizes: `slt@1.08` is slt with pitch and resonances 8 % higher, as from a smaller throat."""

from __future__ import annotations

import re
from collections.abc import Mapping

from overtone.build.voices._records import SCALE, SEXES, Sex, Speaker
from overtone.errors import UsageError
from overtone.spec import Spec

LEAST, MOST = 0.8, 1.25


def sized(name: str) -> tuple[str, float]:
    """Split a name into the engine's voice and the factor on its pitch and resonances."""
    voice, at, size = name.partition("@")
    if not at:
        return voice, 1.0
    if not re.fullmatch(r"[01]\.\d{1,3}|1", size) or not LEAST <= float(size) <= MOST:
        raise UsageError(f"{name!r}: the size after @ is a number from {LEAST} to {MOST}, such as {voice}@1.08")
    return voice, float(size)


def speakers_in_sizes(spec: Spec, names: Mapping[Sex, tuple[str, ...]]) -> tuple[Speaker, ...]:
    """Return speakers whose names may include a size, men first."""
    return tuple(
        Speaker(str(spec), name, sex, round(SCALE[sex] * sized(name)[1], 4)) for sex in SEXES for name in names[sex]
    )
