"""Synthetic stand-ins for recordings of people: for each recording one clip, for each speaker one voice of espeak-ng.

The arm without people learns from them instead. A twin has the words, the labels and the masks of its recording; where
the recording has no known words, it says those of another one, and they stay unlabelled too. Train's own speakers are
not among the voices: each has a vocal tract of its own size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from experiments.people.packs import folded
from experiments.people.rows import SOURCES, labels_of, record_of
from overtone.build.tract import random_of
from overtone.build.voices._records import Sex
from overtone.corpora import Recording
from overtone.echat.data.containers import PACK, PackWriter
from overtone.echat.data.labels import CUE_OF_LABEL, SCENES
from overtone.echat.making.clip_plan import CHILD, STRENGTH, TRAIN, Clip, varied
from overtone.echat.making.sound import Samples16, as_heard, make
from overtone.pool import spread

PREFIX = "twin-"
_ORDER = ("age", "emotion", "event")  # in which cues are applied to a voice
_CHUNK = 64  # clips that a process makes at a time


class _Task(Struct, frozen=True):
    first: int
    clips: tuple[Clip, ...]


def write_twins(rows: Mapping[str, Sequence[Recording]], out: Path, jobs: int) -> dict[str, int]:
    """Write a pack of twins for each pack that is learnt from, if it is not there; return how many clips each has."""
    texts = [row.words for some in rows.values() for row in some if row.words and row.language.startswith("en")]
    counts = {}
    for corpus, recordings in rows.items():
        if not SOURCES[corpus].learnt:
            continue
        for name, some in folded(corpus, recordings):
            folder = out / f"{PREFIX}{name}"
            if not (folder / PACK[0]).is_file():
                _write(folder, corpus, some, texts, jobs)
            counts[folder.name] = len(some)
    return counts


def _write(folder: Path, corpus: str, rows: Sequence[Recording], texts: Sequence[str], jobs: int) -> None:
    rows = [_synthesisable(corpus, row) for row in rows]
    clips = [twin_of(corpus, row, texts) for row in rows]
    tasks = [_Task(at, tuple(clips[at : at + _CHUNK])) for at in range(0, len(clips), _CHUNK)]
    made = {first + at: sound for first, sounds in spread(_speak, tasks, jobs) for at, sound in enumerate(sounds)}
    with PackWriter(folder) as writer:
        for at, row in enumerate(rows):
            record = record_of(corpus, row, test=False)
            extra = record.extra | {key: f"{PREFIX}{record.extra[key]}" for key in ("speaker", "group")}
            record = replace(
                record, key=PREFIX + record.key, dataset=PREFIX + corpus, extra=extra | {"licence": "CC-BY-4.0"}
            )
            writer.add(record, [made[at]])


def _speak(task: _Task) -> tuple[int, list[Samples16]]:
    return task.first, [as_heard(make(clip)) for clip in task.clips]


def _synthesisable(corpus: str, row: Recording) -> Recording:
    """Return the row, with another background sound if its own cannot be synthesised."""
    event = labels_of(row).event
    if not event or ("event", event) in CUE_OF_LABEL:
        return row
    return replace(row, event=SCENES[int(random_of(0, "sound", corpus, row.name).integers(len(SCENES)))])


def twin_of(corpus: str, row: Recording, texts: Sequence[str]) -> Clip:
    """Return the plan of a recording's twin. All twins of a speaker have the same voice."""
    voice = random_of(0, "twin", corpus, row.speaker)
    sex: Sex = "male" if (row.sex or ("male" if voice.random() < 0.5 else "female")) == "male" else "female"
    variants = [name for name in TRAIN[sex] if "@" not in name]
    size = round(float(voice.uniform(0.93, 1.12)), 3)
    speaker = f"{variants[int(voice.integers(len(variants)))]}@{size}"
    hertz, throat = (round(float(voice.uniform(*band[0])), 4) for band in CHILD)
    known = labels_of(row).known()
    cues = [CUE_OF_LABEL[d, known[d]] for d in _ORDER if d in known and (d, known[d]) in CUE_OF_LABEL]
    cues = [slug for slug in cues if slug != "adult"]
    drawn = random_of(0, "twin", corpus, row.name)
    words = row.words if row.language.startswith("en") else ""
    text = words or texts[int(drawn.integers(len(texts)))]
    plain = Clip(
        f"twin/{corpus}/{row.name}", text, "espeak", speaker, sex, tuple(cues),
        strength=round(float(drawn.uniform(*STRENGTH[0])), 4), hertz=hertz, throat=throat,
    )  # fmt: skip
    return varied(plain, drawn, 1.0, 1.0, 1.0)
