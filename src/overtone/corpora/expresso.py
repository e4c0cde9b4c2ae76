"""Expresso: two women and two men read and improvise dialogues in 26 styles; a dialogue has one speaker per channel."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from overtone.corpora import recording
from overtone.corpora.corpus_files import Corpus, files, lines, stem
from overtone.corpora.recording import Recording
from overtone.errors import DataError

_SEXES = {"ex01": "male", "ex02": "female", "ex03": "male", "ex04": "female"}
_READ = re.compile(r"(ex0[1-4])_([a-z_]+?)(?:_(?:emphasis|essentials|longform))?_\d+")
_DIALOGUE = re.compile(r"(ex0[1-4])-(ex0[1-4])_([a-z_]+?)(?:-([a-z_]+))?_\d+")
_FEELINGS = (
    *("angry", "awe", "bored", "calm", "confused", "desire", "disgusted", "fearful", "happy", "sad"),
    *("sarcastic", "sleepy", "sympathetic"),
)
_VAD, _TEXTS = "VAD_segments.txt", "read_transcriptions.txt"
_RANGE = re.compile(r"\(\s*([\d.]*)s?\s*,\s*([\d.]*)s?\s*\)")
_SHORTEST = 0.5  # seconds of a turn, as in the publisher's scripts

Span = tuple[float, float]


def _recognise(folder: Path) -> bool:
    return (folder / "audio_48khz").is_dir() and ((folder / _TEXTS).is_file() or (folder / _VAD).is_file())


def _pairs(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the name before the first tab of each line, and the rest. Lines with # are comments."""
    for line in lines(path) if path.is_file() else ():
        name, _, rest = line.partition("\t")
        if name.strip() and not name.startswith("#"):
            yield name.strip(), rest.strip()


def _spans(text: str) -> list[Span]:
    """Return the times of `(0.5,3.2) (4.0,7.1)` or `(,60.0s)`; an empty time is the beginning or the end."""
    return [(float(a or 0), float(b or "inf")) for a, b in _RANGE.findall(text)]


def _splits(folder: Path) -> dict[str, list[tuple[Span, str]]]:
    """Return the parts of each file; those of a long file are spans of time."""
    parts: dict[str, list[tuple[Span, str]]] = {}
    for part in ("train", "dev", "test"):
        for name, spans in _pairs(folder / "splits" / f"{part}.txt"):
            parts.setdefault(name, []).extend((span, part) for span in _spans(spans) or [(0.0, float("inf"))])
    return parts


def _labelled(base: Recording, style: str) -> Recording:
    """Return the recording with the labels of a style: an emotion, a sound, or a way to speak."""
    if style == "laughing":
        return replace(base, event="laughter", style=style)
    if style == "default":  # read neutrally; a conversation in it may have any emotion
        return replace(base, emotion="neutral" if base.channel is None else "")
    if style in _FEELINGS:
        return replace(base, emotion=recording.emotion(style))
    return replace(base, style=style.replace("_", " "))


def _rows(folder: Path) -> Iterator[Recording | str]:
    texts, turns, parts = dict(_pairs(folder / _TEXTS)), dict(_pairs(folder / _VAD)), _splits(folder)
    for inner in files(folder / "audio_48khz"):
        file, name = f"audio_48khz/{inner}", stem(inner)
        voices: list[tuple[int | None, str, str]]
        if match := _DIALOGUE.fullmatch(name):
            one, two, style, other = match.groups()
            voices = [(0, one, style), (1, two, other or style)]
        elif match := _READ.fullmatch(name):
            voices = [(None, match[1], match[2])]
        else:
            yield f"{folder / file}: the name does not follow the corpus' scheme"
            continue
        for channel, speaker, style in voices:
            base = Recording(
                name=file,
                speaker=speaker,
                sex=_SEXES[speaker],
                channel=channel,
                words=texts.get(name, "").replace("*", ""),
            )
            yield from _turns(_labelled(base, style), folder / file, turns, parts.get(name, []))


def _turns(
    base: Recording, path: Path, turns: dict[str, str], parts: list[tuple[Span, str]]
) -> Iterator[Recording | str]:
    """Yield a short file as one recording, and the turns of a long one."""
    key = path.stem if base.channel is None else f"{path.stem}/channel{base.channel + 1}"
    if key not in turns:
        if base.channel is not None or "_longform_" in key:
            yield f"{path}: {_VAD} has no line {key}, so that its turns are unknown"
        else:
            yield replace(base, split=parts[0][1] if parts else "")
        return
    try:
        spans = _spans(turns[key])
    except ValueError:
        raise DataError(f"{_VAD}: the times of {key} are not numbers") from None
    for start, end in spans:
        if _SHORTEST <= end - start < float("inf"):
            middle = (start + end) / 2
            track = "" if base.channel is None else str(base.channel + 1)
            yield replace(
                base,
                name=f"{base.name}#{track}@{start:.2f}-{end:.2f}",
                start=start,
                end=end,
                words="",
                split=next((part for (low, high), part in parts if low <= middle < high), ""),
            )


CORPUS = Corpus(
    title="Expresso",
    layout="audio_48khz/read/ex01/happy/base/ex01_happy_00001.wav …, audio_48khz/conversational/ex01-ex02/…, "
    f"{_TEXTS}, {_VAD}, splits/train.txt …",
    licence="CC-BY-NC-4.0",
    page="https://speechbot.github.io/expresso/",
    language="en-US",
    recognise=_recognise,
    rows=_rows,
)
