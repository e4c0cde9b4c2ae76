"""VocalSound: 3,365 people laugh, sigh, cough, sneeze, sniff and clear their throats; with age and sex."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from overtone.corpora import recording
from overtone.corpora.corpus_files import TEXT_BYTES, Corpus, Note, mostly, named
from overtone.corpora.recording import Recording
from overtone.errors import DataError
from overtone.paths import read_plain

_NAME = re.compile(r"([fm]\d{4})_\d+_(laughter|sigh|cough|throatclearing|sneeze|sniff)")
_PARTS = {"tr": "train", "val": "dev", "te": "test"}


def _meta(path: Path) -> dict[str, int | None]:
    """Return the age of each speaker: [spk_id, gender, age, country, native language, health condition]."""
    try:
        found = msgspec.json.decode(read_plain(path, TEXT_BYTES))
    except msgspec.DecodeError as error:
        raise DataError(f"{path}: not JSON ({error})") from None
    listed = found.items() if isinstance(found, dict) else [(None, row) for row in found]
    ages: dict[str, int | None] = {}
    for key, row in listed:
        cells = [str(cell) for cell in (row.values() if isinstance(row, dict) else row)] if row else []
        name = next((cell for cell in (str(key), *cells) if re.fullmatch(r"[fm]\d{4}", cell)), "")
        numbers = [int(cell) for cell in cells if cell.isdecimal() and int(cell) <= 120]
        if name:
            ages[name] = numbers[0] if numbers else None
    return ages


def _rows(folder: Path) -> Iterator[Recording | str]:
    ages: dict[str, int | None] = {}
    splits: dict[str, str] = {}
    for short, part in {"all": "", **_PARTS}.items():
        path = folder / "meta" / f"{short}_meta.json"
        if not path.is_file():
            continue
        try:
            people = _meta(path)
        except (DataError, TypeError, AttributeError) as error:
            yield Note(f"{path}: ages and parts are unknown: {error}")
            continue
        ages |= people
        splits |= dict.fromkeys(people, part) if part else {}
    has_small = (folder / "audio_16k").is_dir()  # audio_44k has the same recordings
    for one in named(folder, _NAME):
        if isinstance(one, str):
            yield one
            continue
        file, (speaker, event) = one[0], one[1].groups()
        if has_small and file.startswith("audio_44k/"):
            continue
        yield Recording(
            name=file,
            speaker=speaker,
            sex="female" if speaker[0] == "f" else "male",
            age=ages.get(speaker),
            event=recording.event(event),
            split=splits.get(speaker, ""),
        )


CORPUS = Corpus(
    title="VocalSound",
    layout="audio_16k/f0003_0_cough.wav … and meta/all_meta.json",
    licence="CC-BY-SA-4.0",
    page="https://github.com/YuanGongND/vocalsound",
    recognise=lambda folder: mostly(folder, _NAME),
    rows=_rows,
)
