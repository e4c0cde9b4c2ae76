"""Recordings of people as packs to test a checkpoint on, each also as one small file for another machine.

    python -m experiments.echat.real_pack DATA out/real  # → out/real/ravdess and out/real/ravdess.tar.xz, …
    python -m tarfile -e out/real/ravdess.tar.xz out/real  # there

DATA holds the corpora (`overtone build echat-real` reads the same). A test only hears them: nothing is trained on them,
and nothing of them is passed on. The label map is that of `overtone.echat.data.labels`; what it leaves out is in `MAP`.
With `--echat-eval DIR`, what `overtone build echat-eval` made goes along as a pack of its own.
"""

from __future__ import annotations

import argparse
import hashlib
import lzma
import tarfile
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from overtone import corpora
from overtone.build.voices.espeak import CHOSEN as SPEAKERS
from overtone.corpora import Recording
from overtone.echat.data import containers
from overtone.echat.data.containers import RATE, PackWriter
from overtone.echat.data.exchange_records import UNDERSTANDING, Record, from_raw
from overtone.echat.data.labels import DIMENSIONS, Labels
from overtone.echat.making import real_recordings
from overtone.echat.making.compose import all_heard
from overtone.errors import UsageError
from overtone.paths import shown

MAP = {  # corpus → its labels as ours
    "ravdess": "emotion: angry is anger, fearful is fear, surprised is surprise, calm is neutral, the others are "
    "themselves; gender as told",
    "nonverbal": "event: coughing is cough, crying is cry, laughing is laugh, sighing is sigh; moaning, panting, "
    "screaming and yawning, which our set has not, are left out",
    "speechocean": "age: below 13 years child, from 18 to 59 adult, others left out; gender of adults only",
}
UNTAUGHT = ("other", "screaming")  # events that are no label, or of no clip of our set
QUIET = 40.0  # dB below a clip's loudest 20 ms
MARGIN = 0.1  # seconds kept on either side
_FRAME = RATE // 50
_XZ = [{"id": lzma.FILTER_DELTA, "dist": 2}, {"id": lzma.FILTER_LZMA2, "preset": 6, "lc": 0, "lp": 1, "pb": 1}]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", metavar="DATA", type=Path, help="the folder of the corpora")
    parser.add_argument("out", metavar="OUT", type=Path, help="where the packs go")
    parser.add_argument("--corpora", metavar="NAME,…", default=",".join(MAP))
    parser.add_argument("--echat-eval", metavar="DIR", type=Path, help="the open set of EChat-eval")
    args = parser.parse_args(argv)
    found = write(args.data, args.out, args.corpora.split(","))
    if args.echat_eval:
        found["echat-eval"] = write_eval(args.echat_eval, args.out / "echat-eval")
    for corpus, count in found.items():
        file = args.out / f"{corpus}.tar.xz"
        bundled(args.out / corpus, file)
        print(f"{file}: {file.stat().st_size / 1e6:.1f} MB; {count} clips; {MAP.get(corpus, '')}")


def write(data: Path, out: Path, names: Sequence[str]) -> dict[str, int]:
    """A pack for each corpus; how many clips it has."""
    recordings, warnings = real_recordings.read(data, ())
    for line in warnings:
        print(f"! {line}")
    counts = {}
    for corpus in names:
        mine = [
            (one, labels)
            for one in recordings
            if one.corpus == corpus and (labels := real_recordings.labels(one)).event not in UNTAUGHT
        ]
        if not mine:
            raise UsageError(f"{shown(str(data))}: no corpus {shown(corpus)!r}; leave it out of --corpora")
        varied = [d for d in DIMENSIONS if len({getattr(labels, d) for _, labels in mine} - {""}) > 1]
        with PackWriter(out / corpus) as writer:
            for one, labels in mine:
                record = record_of(one, labels, varied)
                if record.task:
                    writer.add(record, [trimmed(corpora.sound(one, RATE))])
            counts[corpus] = writer.count
    return counts


def write_eval(data: Path, out: Path) -> int:
    """A pack of EChat-eval's open set. A group is a query: the same words in other deliveries."""
    clips = msgspec.json.decode((data / "manifest.json").read_bytes())["clips"]
    voices = {clip["path"]: sex for clip in clips for sex, those in SPEAKERS.items() if clip["voice"] in those}
    with PackWriter(out) as writer:
        for at, raw in enumerate(msgspec.json.decode((data / "echat_eval.json").read_bytes())):
            record = from_raw(raw, f"echat_eval.json, position {at}", str(data))
            group = hashlib.sha256(record.question.casefold().encode()).hexdigest()[:12]
            extra = {"part": "echat-eval", "group": group, "kind": str(record.rest.get("category", "")),
                     "heard": all_heard(record.labels, voices[record.wav]).known()}  # fmt: skip
            writer.add(replace(record, extra=record.extra | extra), [containers.open_audio(record)])
        return writer.count


def record_of(one: Recording, known: Labels, varied: Sequence[str]) -> Record:
    """To be understood. Labels that do not vary in a corpus tell nothing; intervals are drawn over speakers."""
    labels = Labels(**{d: found for d, found in known.known().items() if d in varied})
    tags = [f"<{name}>" for name, dimension in UNDERSTANDING.items() if dimension in labels.known()]
    words = real_recordings.words(one)
    if words:
        tags.insert(0, "<TRANSCRIBE>")
    digest = hashlib.sha256(f"{one.corpus}/{Path(one.path).name}".encode()).hexdigest()[:10]
    who = f"{one.corpus}:{one.speaker}"
    extra = {"part": one.corpus, "group": who, "speaker": who, "licence": one.licence, "clip": one.name}
    plain = Record(f"{one.corpus}_{digest}", wav="x", question=words, dataset=one.corpus, extra=extra)
    return replace(plain, labels=labels, task=" ".join(tags))


def trimmed(sound: NDArray[np.float32]) -> NDArray[np.float32]:
    """Without the silence at both ends."""
    frames = sound[: len(sound) // _FRAME * _FRAME].reshape(-1, _FRAME)
    power = (frames.astype(np.float64) ** 2).mean(1)
    loud = np.flatnonzero(power > power.max(initial=0.0) * 10 ** (-QUIET / 10))
    if not len(loud):
        return sound
    margin = round(MARGIN * RATE)
    return sound[max(0, loud[0] * _FRAME - margin) : (loud[-1] + 1) * _FRAME + margin]


def bundled(folder: Path, out: Path) -> None:
    """A pack in one tar, compressed as sound wants it: any reader of .xz opens it."""
    with lzma.open(out, "wb", format=lzma.FORMAT_XZ, filters=_XZ) as file, tarfile.open(fileobj=file, mode="w") as tar:
        tar.add(folder, arcname=folder.name)


if __name__ == "__main__":
    main()
