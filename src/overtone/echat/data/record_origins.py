"""The origins of records: their corpora, speakers and clips, and what a model that learns from them hears.

A record of a recording has its corpus in `dataset`, and in `extra` its `licence`, its `speaker` as CORPUS:NAME and, if
known, the file's name in the corpus as `clip`. A mixture of two recordings joins their names by +.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from overtone.echat.data.containers import open_audio
from overtone.echat.data.exchange_records import Record
from overtone.heard import HeardInTraining, Mark, Origin, heard_clip, sound_hash, union

UNNAMED = "unnamed"  # the corpus of records without a `dataset`


def origins_of(record: Record) -> tuple[Origin, ...]:
    """Return the origins of a record's recordings; empty if its clips were synthesised."""
    if not record.dataset or not ("licence" in record.extra or record.speaker.startswith(f"{record.dataset}:")):
        return ()
    corpora = record.dataset.split("+")
    speaker = record.speaker.removeprefix(f"{record.dataset}:")
    clip = str(record.extra.get("clip", ""))
    clips = [clip] if len(corpora) == 1 else clip.split("+")
    if len(clips) != len(corpora):
        clips = [""] * len(corpora)
    # In a mixture, the speaker is that of the first recording; the others are sounds behind it.
    speakers = [speaker, *[""] * (len(corpora) - 1)]
    return tuple(Origin(*row) for row in zip(corpora, speakers, clips, strict=True))


def wavs_of(record: Record) -> list[str]:
    """Return the names of a record's clips, those of earlier turns first."""
    return [wav for wav in (*(turn.wav for turn in record.history), record.wav) if wav]


def sound_of(record: Record, wav: str) -> bytes:
    """Return the short hash of one of a record's clips."""
    return sound_hash(open_audio(record, wav))


def heard_in(records: Iterable[Record], sound: Callable[[Record, str], bytes] = sound_of) -> HeardInTraining:
    """Return what a model hears that learns from these records. `sound` returns the hash of a clip."""

    def each() -> Iterable[HeardInTraining]:
        for record in records:
            origins = origins_of(record)
            licence = str(record.extra.get("licence", ""))
            for wav in wavs_of(record):
                made = "" if origins else record.dataset or UNNAMED
                yield heard_clip(origins, licence, sound(record, wav), made=made)

    return union(each())


def mark_of(heard: HeardInTraining, record: Record) -> Mark:
    """Return how close a record is to what a model heard."""
    return heard.mark(origins_of(record), (sound_of(record, wav) for wav in wavs_of(record)))
