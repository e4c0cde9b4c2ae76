"""Measure which cues the classifier of voices that comes with Overtone hears in people, whom it was not fitted to.

    python -m bench.hearing_people --corpus ravdess:DIR --corpus nonverbal:DIR … [--write]

Each clip is put to it with the cues of its kind that the corpora have as options. `--write` stores in hearing.json
which cues it cannot hear: those whose recall has an interval that includes chance, and those not tested on people.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor

import msgspec

from overtone import audio, corpora
from overtone.cues import CUES
from overtone.ear.clips import Clip, chosen, without_small_classes
from overtone.embedded import hearing
from overtone.embedded.fitted_ear import cue_of
from overtone.stats import cluster

UNTESTED = "not tested on people"


def features(clip: Clip) -> list[float]:
    return hearing.features(*audio.read(clip.recording.path)).tolist()


def measured(clips: list[Clip], jobs: int) -> dict[str, tuple[cluster.Interval, float]]:
    """Per cue: its recall, clustered by speaker, and the chance of guessing it."""
    ear = hearing.load()
    with ProcessPoolExecutor(jobs) as pool:
        rows = list(pool.map(features, clips, chunksize=32))
    out = {}
    for head in ("sex", "age", "emotion", "event"):
        slugs = sorted({cue_of(head, clip.labels[head]) for clip in clips if head in clip.labels} - {""})
        for slug in slugs:
            mine = [
                n for n, clip in enumerate(clips) if head in clip.labels and cue_of(head, clip.labels[head]) == slug
            ]
            right = []
            for n in mine:
                likely = ear.posterior(hearing.array(rows[n]), slugs)
                right.append(float(max(likely, key=likely.__getitem__) == slug))
            out[slug] = cluster.proportion(right, [clips[n].speaker for n in mine]), 1 / len(slugs)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", action="append", default=[], required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="store the result in hearing.json")
    args = parser.parse_args()
    clips, _ = without_small_classes(chosen([corpora.read(*corpora.parse(text)) for text in args.corpus]))
    found = measured(clips, args.jobs)
    print("| cue | clips | speakers | recall | chance |\n|---|---|---|---|---|")
    for slug, (recall, chance) in found.items():
        edges = f"{recall.value:.2f} [{recall.low:.2f}, {recall.high:.2f}]"
        print(f"| {slug} | {recall.rows} | {recall.clusters} | {edges} | {chance:.2f} |")
    if args.write:
        unheard = {cue.slug: UNTESTED for cue in CUES if cue.slug not in found}
        for slug, (recall, chance) in found.items():
            if not recall.low > chance:
                edges = f"{recall.value:.2f} [{recall.low:.2f}, {recall.high:.2f}]"
                unheard[slug] = f"recall {edges} of people, chance {chance:.2f}"
        ear = msgspec.structs.replace(hearing.load(), cannot_hear=unheard)
        hearing.DATA.write_bytes(msgspec.json.encode(ear) + b"\n")


if __name__ == "__main__":
    main()
