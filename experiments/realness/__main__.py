"""How real are the built cues? A classifier trained on real recordings is asked about ours, and the other way round.

A linear discriminant over forty plain measures (scenes: the ear's sixty-seven), fixed once on real recordings alone.
Emotions and events in speech are judged as a listener judges them, against the same speaker's plain voice. Real against
real, with speakers left out, shows what the measures can do at all.

    python -m experiments.realness [--data ../shared/data] [--clips 48] [--only emotion,age] [--write]

`--write` writes the result to src/overtone/build/cue_validation.json: a cue is `validated` where the classifier that
has heard only real ones recognises ours, in clips as they are built, and recognises real ones it has not heard, each
with a 95 % interval clear of chance.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import msgspec

from experiments.realness import people as people
from experiments.realness import scenes as scenes
from experiments.realness import voice as voice
from experiments.realness.rows import HEAD, Found, Row, compared
from overtone.build import cue_validation
from overtone.build.recipes import VERSION
from overtone.cues import CUES

SHRINK = 0.3  # of the voice's families, set on real recordings alone
MEASURED_BY = {  # families that decide a cue's status; a later one counts more
    "emotion": "RAVDESS, actors kept apart, against the speaker's neutral voice",
    "gender": "RAVDESS, speechocean762 and Common Voice speakers",
    "age": "speechocean762 speakers",
    "pace": "LibriSpeech, speechocean762 and RAVDESS, the fastest against the slowest third",
    "event in speech": "Deeply Nonverbal Vocalization inside real speech, recordings kept apart",
    people.EMOTION: "RAVDESS, SAVEE, EMO-DB and TESS, a half of the speakers kept apart, against their neutral voices",
    people.EVENT: "Deeply Nonverbal Vocalization inside real speech, a half of the speakers drawn by a seed",
    scenes.STATUS: "ESC-50 and crowds of real readers, behind real speech",
    scenes.UNSEEN: "ESC-50 behind real speech, recordings kept apart",
}
NO_DATA = "no real recordings to compare with"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--clips", type=int, default=48, help="voices with a sentence each for every class of ours")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="", help="families, with commas between; --write then keeps the others")
    parser.add_argument(
        "--half", choices=("set", "test"), default="test", help="the speakers of `people` (default: test)"
    )
    parser.add_argument("--write", action="store_true", help="keep the result as build/cue_validation.json")
    args = parser.parse_args()
    people.read_half = args.half
    for cue, (one, other) in people.short(args.data).items():
        print(f"{cue}: {one} and {other} real speakers or sources in the halves, fewer than {people.LEAST}")
    found = list(measured(args.data, args.clips, args.jobs, [f for f in args.only.split(",") if f]))
    print(HEAD)
    for row in found:
        print(row.line())
    print("\nrecall with its 95 % interval by speaker or recording; * where the interval is clear of chance")
    if args.write and args.half == "test":
        cue_validation.FILE.write_bytes(
            msgspec.json.format(msgspec.json.encode(statuses(found, cue_validation.FILE)), indent=1) + b"\n"
        )


def measured(data: Path, clips: int, jobs: int, only: list[str]) -> Iterable[Found]:
    for part in (voice, people, scenes):
        files = {family: work for family, work in part.families(data).items() if not only or family in only}
        if not files:
            continue
        with ProcessPoolExecutor(jobs) as pool:
            ours = list(pool.map(part.built, range(clips)))
            real = {family: list(pool.map(part.read, work, chunksize=8)) for family, work in files.items()}
        for family, rows in real.items():
            mine: list[Row] = [row for made in ours for row in made[family]]
            if part is not scenes:
                relative = part is people or family in voice.RELATIVE
                yield from compared(family, rows, mine, relative=relative, shrink=SHRINK)
            else:
                yield from compared(family, rows, mine)


def validated(rows: list[Found]) -> set[str]:
    """The classes of a family that count as recognised: the judge can tell real ones, and tells ours, each clear of
    chance; and over all classes it tells ours, so that it does not merely say one class of everything."""
    if not any(row.slug == "all" and row.real_ours.low > row.chance for row in rows):
        return set()
    return {row.slug for row in rows if min(row.real_real.low, row.real_ours.low) > row.chance}


def statuses(found: list[Found], before: Path) -> dict[str, cue_validation.Status]:
    """One for every cue: what the family that decides found; what was known before, where it was not measured now; or
    that there is nothing to decide by."""
    out = {cue.slug: cue_validation.Status("unvalidated", by=NO_DATA, recipes=VERSION) for cue in CUES}
    if before.exists():
        kept = msgspec.json.decode(before.read_bytes(), type=dict[str, cue_validation.Status])
        out |= {slug: s for slug, s in kept.items() if slug in out and s.by in MEASURED_BY.values()}
    for family in MEASURED_BY:
        good = validated([row for row in found if row.family == family])
        for row in found:
            decides = row.slug in people.DECIDES.get(family, (row.slug,))
            if row.family == family and row.slug in out and decides:
                i = row.real_ours
                value, low, high = (round(v, 3) for v in (i.value, i.low, i.high))
                out[row.slug] = cue_validation.Status(
                    "validated" if row.slug in good else "unvalidated", value, low, high,
                    chance=round(row.chance, 3), n=i.rows, by=MEASURED_BY[family], recipes=VERSION,
                )  # fmt: skip
    return out


if __name__ == "__main__":
    main()
