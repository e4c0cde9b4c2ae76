"""Look up which cues are validated: recognised by listeners, or by a classifier trained only on real recordings.

`cue_validation.json` is written by `python -m experiments.realness --write` and applies only to the embedded voice and
the synthesised sounds. With another voice or other sounds, cues must be measured or rated first.
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from overtone.build.tables import read_table
from overtone.cues import BY_SLUG, CUES, find_cue
from overtone.errors import DataError
from overtone.spec import parse_spec, suggest
from overtone.stats import cluster

FILE = Path(__file__).with_name("cue_validation.json")
EMBEDDED = "espeak"  # the kind of engine whose clips were measured
LEAST_LISTENERS = 3
_UNMEASURED = "clips of this engine were not measured; import listeners' ratings"


class Status(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Whether a cue is recognised as intended, and the measurement behind this."""

    status: str  # validated | unvalidated
    recall: float | None = None
    low: float | None = None
    high: float | None = None
    chance: float | None = None
    n: int = 0
    by: str = ""
    recipes: str = ""  # version of the recipes that were measured

    @property
    def validated(self) -> bool:
        return self.status == "validated"


def statuses(engine: str = EMBEDDED) -> dict[str, Status]:
    """Return the status of every cue for one engine (a SPEC or its kind). Only the embedded engine was measured."""
    if parse_spec(engine).kind != EMBEDDED:
        return {cue.slug: Status("unvalidated", by=_UNMEASURED) for cue in CUES}
    return dict(_measured())


@functools.cache
def _measured() -> Mapping[str, Status]:
    try:
        return msgspec.json.decode(FILE.read_bytes(), type=dict[str, Status])
    except (OSError, msgspec.MsgspecError) as error:
        raise DataError(
            f"{FILE.name}: cannot be read ({error}); run 'python -m experiments.realness --write'"
        ) from error


def from_ratings(path: Path, clips: Mapping[str, str], options: int = 4) -> dict[str, Status]:
    """Return statuses from listeners' answers: a CSV with columns listener, clip, heard and optionally options.

    `clips` maps each clip's name in the file to its cue ("" for a neutral one). `heard` is a cue's slug or label, or
    "none". A cue is validated if the share of right answers, clustered by listener, is significantly above chance.
    Chance is the mean of 1 / options over the rows; rows without a number of options use `options`. A listener rates a
    clip once.
    """
    right: dict[str, list[float]] = defaultdict(list)
    who: dict[str, list[str]] = defaultdict(list)
    chance: dict[str, list[float]] = defaultdict(list)
    for listener, clip, heard, choices in _ratings(path, clips, options):
        slug = clips[clip]
        if not slug:
            continue
        right[slug].append(float(heard == slug))
        who[slug].append(listener)
        chance[slug].append(1 / choices)
    out = {cue.slug: Status("unvalidated", by="no listener rated it") for cue in CUES}
    for slug, values in right.items():
        rate = cluster.proportion(values, who[slug])
        guess = sum(chance[slug]) / len(chance[slug])
        enough = rate.clusters >= LEAST_LISTENERS
        clear = enough and rate.low > guess
        by = f"{rate.clusters} listeners" if enough else f"only {rate.clusters} of {LEAST_LISTENERS} listeners"
        low, high = (None if math.isnan(v) else round(v, 3) for v in (rate.low, rate.high))
        out[slug] = Status(
            "validated" if clear else "unvalidated", round(rate.value, 3), low, high, round(guess, 3), rate.rows, by
        )
    return out


def _ratings(path: Path, clips: Mapping[str, str], options: int) -> list[tuple[str, str, str, int]]:
    """Read and check every row of the file. Errors name the line."""
    columns = ("listener", "clip", "heard")
    rows = read_table(path, columns)
    if not rows:
        raise DataError(f"{path}: contains no ratings; its columns are listener,clip,heard[,options]")
    out: list[tuple[str, str, str, int]] = []
    seen: set[tuple[str, str]] = set()
    for where, row in rows:
        listener, clip, heard = (row[name].strip() for name in columns)
        if not listener or not clip or not heard:
            raise DataError(f"{where}: listener, clip and heard must not be empty; write 'none' for a plain voice")
        if clip not in clips:
            raise DataError(f"{where}: no clip {clip!r}{suggest(clip, clips)}")
        if (listener, clip) in seen:
            raise DataError(f"{where}: {listener} has rated {clip} before; keep one of the two rows")
        seen.add((listener, clip))
        out.append((listener, clip, _cue(heard, where), _choices(row.get("options", "").strip(), options, where)))
    return out


def _cue(heard: str, where: str) -> str:
    if heard.casefold() == "none":
        return ""
    cue = find_cue(heard)
    if cue is None:
        raise DataError(f"{where}: no cue {heard!r}{suggest(heard, BY_SLUG)}; write 'none' for a plain voice")
    return cue.slug


def _choices(text: str, default: int, where: str) -> int:
    if text and (not text.isdigit() or int(text) < 2):
        raise DataError(f"{where}: options is the number of answers to choose from, 2 or more, not {text!r}")
    return int(text or default)
