"""Deeply Nonverbal Vocalization: people cough, laugh, sigh, yawn …; also folders named after such sounds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from overtone.corpora import recording
from overtone.corpora.corpus_files import Corpus, files, stem
from overtone.corpora.recording import Recording

# speaker, class, trial, sex, age, location, quality, noise
_NAME = re.compile(r"([0-9A-Z]{4})_(\d{1,2})_\d+_([01])_(\d{1,3})_[01]_[01]_[01]")
_CLASSES = (
    "teeth-chattering",
    "teeth-grinding",
    "tongue-clicking",
    "nose-blowing",
    "coughing",
    "yawning",
    "throat-clearing",
    "sighing",
    "lip-popping",
    "lip-smacking",
    "panting",
    "crying",
    "laughing",
    "sneezing",
    "moaning",
    "screaming",
)
_NEEDED = {"cough", "crying", "laughter"}  # folders of one's own must have at least these


def _folders(folder: Path) -> dict[str, str]:
    """Return the event of each folder of sounds."""
    return {path.name: recording.event(path.name) for path in sorted(folder.iterdir()) if path.is_dir()}


def _recognise(folder: Path) -> bool:
    names = [bool(_NAME.fullmatch(stem(file))) for file in files(folder)]
    return len(names) > 0 and (len(names) <= 2 * sum(names) or set(_folders(folder).values()) >= _NEEDED)


def _rows(folder: Path) -> Iterator[Recording | str]:
    for file in files(folder):
        if name := _NAME.fullmatch(stem(file)):
            speaker, kind, sex, age = name.groups()
            if int(kind) >= len(_CLASSES):
                yield f"{folder / file}: there is no class {kind}"
                continue
            yield Recording(
                name=file,
                speaker=speaker,
                sex="female" if sex == "0" else "male",
                age=int(age),
                event=recording.event(_CLASSES[int(kind)]),
            )
            continue
        parts = file.split("/")
        if len(parts) < 2:
            yield f"{folder / file}: neither its name nor its folder says which sound it is"
            continue
        event = recording.event(parts[-2])
        first = stem(file).split("_")[0]  # the speaker, unless it names the sound
        yield Recording(name=file, speaker=stem(file) if recording.event(first) == event else first, event=event)


CORPUS = Corpus(
    title="Deeply Nonverbal Vocalization",
    layout="coughing/5MSY_4_4_0_30_0_0_0.wav … or coughing/NAME.wav, crying/NAME.wav, laughing/NAME.wav …",
    licence="CC-BY-NC-ND-4.0",
    page="https://github.com/deeplyinc/Nonverbal-Vocalization-Dataset",
    recognise=_recognise,
    rows=_rows,
)
