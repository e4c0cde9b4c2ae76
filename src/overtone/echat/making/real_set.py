"""`overtone build echat-real`: convert the user's corpora of recordings to records like those of `build echat`.

Each record states its dataset and licence. The manifest states the combined licence. `open_only` leaves out recordings
that may not be redistributed.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from overtone import audio, corpora
from overtone.build.licence import Ingredient, derive
from overtone.build.manifest import FILE, write_json
from overtone.build.script import SET_LICENCE
from overtone.build.tract import random_of
from overtone.corpora import Recording
from overtone.echat.data import containers
from overtone.echat.data.exchange_records import Record
from overtone.echat.data.labels import VOCAL, Labels
from overtone.echat.making import packs, real_recordings, texts
from overtone.echat.making.compose import spoken_answer
from overtone.echat.making.deliveries import Delivery, deliveries
from overtone.echat.making.real_recordings import RATE
from overtone.echat.making.set_identity import EXCHANGES, refuse
from overtone.errors import UsageError
from overtone.paths import sha256, shown, write_whole
from overtone.version import __version__

NAME = "echat-real"
SNR = (6.0, 14.0)  # dB of speech over a background sound
PARTS = (
    ("test", 0.15),
    ("dev", 0.25),
    ("train", 1.0),
)  # upper bounds for a number derived from the name of the speaker or sound
REPLACED = (FILE, packs.MARK, EXCHANGES, "wav", *(f"{part}.list" for part, _ in PARTS))  # files that a build rewrites


class Take(Struct, frozen=True):
    """One recording for training, or a voice with a sound behind it."""

    corpus: str
    name: str
    words: str  # "" if they are unknown or in another language than English
    labels: Labels
    speaker: str  # or the source recording of a sound; never in two parts
    licence: str
    of: tuple[Recording, ...]


class Made(Struct, frozen=True):
    """The result of a build."""

    corpora: dict[str, tuple[int, str]]  # name → number of records, licences
    warnings: tuple[str, ...]


def build(
    out: Path,
    data: Path | None = None,
    named: Sequence[str] = (),
    *,
    open_only: bool = False,
    pack: str = "",
    wavs: bool = True,
    seed: int = 0,
) -> Made:
    """Read every known corpus below `data` and those `named` `kind:DIR`. Write lists, audio, packs and a manifest, like
    `overtone build echat`.

    Raises UsageError if no known corpus is found, no recording becomes a record, or `out` holds another set.
    """
    recordings, warnings = real_recordings.read(data, named)
    wanted = [one for one in recordings if not open_only or corpora.is_open(one.licence)]
    readable, damaged = real_recordings.readable(wanted)
    warnings += damaged
    takes = [_take(one) for one in readable]
    all_takes = Counter(take.corpus for take in takes)
    unlabelled = Counter(take.corpus for take in takes if not _task(take))
    warnings += [
        f"{corpus}: {count} of {all_takes[corpus]} recordings have neither English words nor a label that training "
        "knows, and become no record"
        for corpus, count in sorted(unlabelled.items())
    ]
    if all_takes == unlabelled:
        why = "no usable recording" if wanted or not recordings else "no recording with an open licence"
        raise UsageError("; ".join([f"{why} in the corpora that you named", *warnings]))
    inputs: packs.Inputs = {"name": NAME, "seed": seed, "open_only": open_only, "recordings": _digest(takes)}
    _refuse_others(out, inputs)
    packs.check(pack, (part for part, _ in PARTS), inputs, {})
    packs.mark(out, inputs)
    every = {one.labels: one for several in deliveries(texts.read()).values() for one in several}
    rows: list[tuple[Record, Take]] = []
    rows += [(record, take) for take in takes for record in _records(take, every, seed)]
    rows += _mixed(takes, every, seed)
    licences: dict[str, Counter[str]] = {}
    for record, _ in rows:
        licences.setdefault(record.dataset, Counter())[str(record.extra["licence"])] += 1
    written: dict[str, str] = {}
    for part in dict.fromkeys(record.part for record, _ in rows):
        mine = [(record, take) for record, take in rows if record.part == part]
        sources = {record.key: take for record, take in mine}
        listed = [replace(record, wav=f"wav/{part}/{record.key}.wav") for record, _ in mine]

        def sound(record: Record, _: str, sources: dict[str, Take] = sources) -> containers.Sound:
            return _sound(record, sources[record.key])

        if wavs:
            for record in listed:
                write_whole(out / record.wav, audio.encode_wav(sound(record, ""), RATE))
            containers.write_raw(out / f"{part}.list", listed)
            written[f"{part}.list"] = sha256(out / f"{part}.list")
        if pack:
            packs.mark(Path(pack) / part, inputs)
            containers.pack(listed, Path(pack) / part, sound)
            written |= {f"pack/{part}/{name}": sha256(Path(pack) / part / name) for name in containers.PACK[:2]}
    write_json(out / FILE, _manifest(rows, written, seed))
    counts = {name: (count.total(), ", ".join(sorted(count))) for name, count in licences.items()}
    return Made(counts, tuple(warnings))


def _refuse_others(out: Path, inputs: packs.Inputs) -> None:
    """Refuse a folder with another set or with foreign files, which a build would overwrite or mix with its own."""
    there = packs.marked(out).of
    existing = [name for name in REPLACED if (out / name).exists() and not (there and name == packs.MARK)]
    if existing and not there:
        raise UsageError(
            f"{shown(str(out))} contains other data ({existing[0]}) that would be overwritten; give another --out"
        )
    if existing and (why := packs.differences(there, inputs)):
        refuse(out, why)


def _take(one: Recording) -> Take:
    spoken, known = real_recordings.words(one), real_recordings.labels(one)
    return Take(one.corpus, one.name, spoken, known, one.speaker, one.licence, (one,))


def _digest(takes: Iterable[Take]) -> str:
    """Return a hash of the recordings, independent of where they are stored."""
    rows = [
        (*msgspec.structs.astuple(replace(one, path="")), Path(one.path).stat().st_size)
        for take in takes
        for one in take.of
    ]
    return hashlib.sha256(repr(rows).encode()).hexdigest()[:16]


def _manifest(rows: Sequence[tuple[Record, Take]], written: Mapping[str, str], seed: int) -> dict[str, Any]:
    """Return the manifest: the SHA-256 of the lists, and the combined licence of all recordings."""
    used = {Ingredient("recordings", one.corpus, one.licence) for _, take in rows for one in take.of}
    ingredients = [Ingredient("texts", "echat", SET_LICENCE), *sorted(used)]
    licences: dict[str, Counter[str]] = {}
    for record, _ in rows:
        licences.setdefault(record.part, Counter())[str(record.extra["licence"])] += 1
    return {
        "name": NAME,
        "version": __version__,
        "licence": derive(ingredients).licence,
        "seed": seed,
        "ingredients": ingredients,
        "parts": {
            part: {"records": count.total(), "licences": dict(sorted(count.items()))}
            for part, count in licences.items()
        },
        "sha256": dict(sorted(written.items())),
    }


def _task(take: Take) -> str:
    """Return the tags of what a recording teaches; "" without words and labels."""
    tags = {"emotion": "<EMOTION>", "age": "<AGE>", "gender": "<GENDER>", "event": "<CAPTION>"}
    return " ".join([*(["<TRANSCRIBE>"] if take.words else []), *(tags[name] for name in take.labels.known())])


def _records(take: Take, every: dict[Labels, Delivery], seed: int) -> Iterator[Record]:
    """Yield a record that asks for words and labels. If the words have a label that a reply can respond to, also yield
    the recording as a query with a reply."""
    task = _task(take)
    if not task:
        return
    digest = hashlib.sha256(f"{take.corpus}/{take.name}".encode()).hexdigest()[:10]
    one = take.of[0]
    stated = {"intensity": one.intensity, "language": one.language, "split": one.split}
    plain = Record(
        f"{take.corpus}_{digest}", take.words, question=take.words, labels=take.labels, dataset=take.corpus, task=task,
        extra={"part": _part(take, seed), "speaker": f"{take.corpus}:{take.speaker}", "licence": take.licence,
               "clip": take.name, "group": f"{take.corpus}/{take.words or take.name}",
               **{name: text for name, text in stated.items() if text}},
    )  # fmt: skip
    yield plain
    if take.words:
        yield from _answered(plain, every, seed)


def _answered(plain: Record, every: dict[Labels, Delivery], seed: int) -> Iterator[Record]:
    """Yield the recording as a query. The reply answers the strongest of its labels."""
    own = plain.labels
    for labels in (Labels(event=own.event), Labels(emotion=own.emotion), Labels(age=own.age)):
        if labels != Labels() and labels in every:
            delivery = every[labels]
            rng = random_of(seed, "real", plain.key)
            txt, thought = spoken_answer(delivery, rng)
            yield replace(
                plain, key=f"{plain.key}_chat", txt=txt, think_str=thought, labels=labels,
                reply_emotion=delivery.strategies[0].reply_emotion, task="<S2TCHAT> <THINKER>",
            )  # fmt: skip
            return


def _mixed(takes: Sequence[Take], every: dict[Labels, Delivery], seed: int) -> list[tuple[Record, Take]]:
    """Return records of non-vocal sounds, each mixed behind speech of the same part."""
    rows: list[tuple[Record, Take]] = []
    voices: dict[str, list[Take]] = {}
    for take in takes:
        if take.words and not take.labels.emotion and "ND" not in take.licence:
            voices.setdefault(_part(take, seed), []).append(take)
    for take in takes:
        part = _part(take, seed)
        if take.words or not take.labels.event or take.labels.event in VOCAL or part not in voices:
            continue
        rng = random_of(seed, "mixed", take.corpus, take.name)
        voice = voices[part][int(rng.integers(len(voices[part])))]
        licence = take.licence if corpora.is_open(voice.licence) else f"{voice.licence} and {take.licence}"
        both = Take(
            f"{voice.corpus}+{take.corpus}",
            f"{voice.name}+{take.name}",
            voice.words,
            take.labels,
            voice.speaker,
            licence,
            (*voice.of, *take.of),
        )
        for record in _records(both, every, seed):
            snr = round(float(rng.uniform(*SNR)), 2)
            rows.append((replace(record, extra=record.extra | {"snr": snr, "part": part}), both))
    return rows


def _sound(record: Record, take: Take) -> containers.Sound:
    sounds = [corpora.sound(one, RATE) for one in take.of]
    if len(sounds) == 1:
        return sounds[0]
    return audio.mix(sounds[0], sounds[1], RATE, float(record.extra["snr"]), speech_dbfs=-26.0)


def _part(take: Take, seed: int) -> str:
    drawn = hashlib.sha256(f"{seed}/{take.corpus}/{take.speaker}".encode()).digest()
    at = int.from_bytes(drawn[:4], "big") / 2**32
    return next(part for part, below in PARTS if at < below)
