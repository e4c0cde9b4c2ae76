"""`overtone build echat-real`: recordings of people and things, from corpora a user has, as the same records.

For experiments: each row says where it is from and under which licence, the manifest what all of them together leave,
and `open_only` leaves out what may not be passed on.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from overtone import audio
from overtone.build.draw import random_of
from overtone.build.licence import Ingredient, derive
from overtone.build.manifest import FILE, write_json
from overtone.build.script import SET_LICENCE
from overtone.echat.data import containers
from overtone.echat.data.labels import VOCAL, Labels
from overtone.echat.data.records import Record
from overtone.echat.making import packs, texts
from overtone.echat.making.begin import EXCHANGES, refuse
from overtone.echat.making.compose import spoken_answer
from overtone.echat.making.corpora import LICENCES, OPEN, TOLD, Take, read
from overtone.echat.making.ways import Way, ways
from overtone.errors import UsageError
from overtone.paths import sha256, shown, write_whole
from overtone.version import __version__

NAME = "echat-real"
RATE = 16_000
SNR = (6.0, 14.0)  # dB of somebody's words over a sound laid behind them
MIXED = 1.0  # such clips for each sound that has no words
PARTS = (
    ("test", 0.15),
    ("dev", 0.25),
    ("train", 1.0),
)  # a speaker's or a sound's part, by a number drawn from its name
REPLACED = (FILE, packs.MARK, EXCHANGES, "wav", *(f"{part}.list" for part, _ in PARTS))  # what a build writes anew


class Made(Struct, frozen=True):
    """What a build read."""

    corpora: dict[str, tuple[int, str]]  # name → records, licence of most
    warnings: tuple[str, ...]


def build(out: Path, data: Path, *, open_only: bool = False, pack: str = "", wavs: bool = True, seed: int = 0) -> Made:
    """Read every corpus below `data` that is known; write lists, sounds, packs and a manifest as `overtone build echat`
    does."""
    takes, warnings = read(data)
    takes.sort(key=lambda take: (take.corpus, take.name))
    if open_only:
        takes = [take for take in takes if take.licence in OPEN]
    if not takes:
        raise UsageError(
            "; ".join([
                f"{shown(str(data))}: no corpus that is known{' and open' if open_only else ''}",
                *map(shown, warnings[:TOLD]),
                f"there is: {', '.join(LICENCES)} (each in a folder of its own)",
            ])
        )  # fmt: skip
    inputs: packs.Inputs = {"name": NAME, "seed": seed, "open_only": open_only, "recordings": _digest(takes)}
    _refuse_others(out, inputs)
    packs.check(pack, (part for part, _ in PARTS), inputs, {})
    packs.mark(out, inputs)
    every = {way.labels: way for those in ways(texts.read()).values() for way in those}
    rows: list[tuple[Record, tuple[Take, ...]]] = []
    rows += [(record, (take,)) for take in takes for record in _records(take, every, seed)]
    rows += _mixed(takes, every, seed)
    counts: dict[str, tuple[int, str]] = {}
    for record, _ in rows:
        n, licence = counts.get(record.dataset, (0, str(record.extra["licence"])))
        counts[record.dataset] = n + 1, licence
    written: dict[str, str] = {}
    for part in dict.fromkeys(record.part for record, _ in rows):
        mine = [(record, of) for record, of in rows if record.part == part]
        sources = {record.key: of for record, of in mine}
        listed = [replace(record, wav=f"wav/{part}/{record.key}.wav") for record, _ in mine]

        def sound(record: Record, _: str, sources: dict[str, tuple[Take, ...]] = sources) -> containers.Sound:
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
    return Made(counts, tuple(warnings))


def _refuse_others(out: Path, inputs: packs.Inputs) -> None:
    """Nothing of another set, or of somebody else's, must be written over or left among ours."""
    there = packs.marked(out).of
    found = [name for name in REPLACED if (out / name).exists() and not (there and name == packs.MARK)]
    if found and not there:
        raise UsageError(
            f"{shown(str(out))} holds something else ({found[0]}), which would be lost; give another --out"
        )
    if found and (why := packs.differences(there, inputs)):
        refuse(out, why)


def _digest(takes: Sequence[Take]) -> str:
    """What is read, wherever it lies."""
    told = [(*msgspec.structs.astuple(replace(take, path="")), Path(take.path).stat().st_size) for take in takes]
    return hashlib.sha256(repr(told).encode()).hexdigest()[:16]


def _manifest(rows: Sequence[tuple[Record, tuple[Take, ...]]], written: Mapping[str, str], seed: int) -> dict[str, Any]:
    """What a release asks for: the lists by their SHA-256, and the licence that all recordings together leave."""
    used = {Ingredient("recordings", take.corpus, take.licence) for _, of in rows for take in of}
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
            part: {"records": found.total(), "licences": dict(sorted(found.items()))}
            for part, found in licences.items()
        },
        "sha256": dict(sorted(written.items())),
    }


def _records(take: Take, every: dict[Labels, Way], seed: int) -> Iterator[Record]:
    """To be written down and named; and, where there are words and one of the labels has an answer, to be answered."""
    known = take.labels.known()
    tags = {"emotion": "<EMOTION>", "age": "<AGE>", "gender": "<GENDER>", "event": "<CAPTION>"}
    task = " ".join([*(["<TRANSCRIBE>"] if take.words else []), *(tags[name] for name in known)])
    if not task:
        return
    digest = hashlib.sha256(f"{take.corpus}/{take.name}".encode()).hexdigest()[:10]
    plain = Record(
        f"{take.corpus}_{digest}", take.words, question=take.words, labels=take.labels, dataset=take.corpus, task=task,
        extra={"part": _part(take, seed), "speaker": f"{take.corpus}:{take.speaker}", "licence": take.licence,
               "group": f"{take.corpus}/{take.words or take.name}"},
    )  # fmt: skip
    yield plain
    if take.words:
        yield from _answered(plain, every, seed)


def _answered(plain: Record, every: dict[Labels, Way], seed: int) -> Iterator[Record]:
    """The recording as a query: of several labels the strongest is answered."""
    told = plain.labels
    for labels in (Labels(event=told.event), Labels(emotion=told.emotion), Labels(age=told.age)):
        if labels != Labels() and labels in every:
            way = every[labels]
            rng = random_of(seed, "real", plain.key)
            txt, thought = spoken_answer(way, rng)
            yield replace(
                plain, key=f"{plain.key}_chat", txt=txt, think_str=thought, labels=labels,
                reply_emotion=way.strategies[0].reply_emotion, task="<S2TCHAT> <THINKER>",
            )  # fmt: skip
            return


def _mixed(takes: Sequence[Take], every: dict[Labels, Way], seed: int) -> list[tuple[Record, tuple[Take, ...]]]:
    """Sounds that are nobody's voice, each behind somebody's words of the same part."""
    rows: list[tuple[Record, tuple[Take, ...]]] = []
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
        licence = take.licence if voice.licence in OPEN else f"{voice.licence} and {take.licence}"
        both = Take(
            f"{voice.corpus}+{take.corpus}",
            f"{voice.name}+{take.name}",
            "",
            voice.words,
            take.labels,
            voice.speaker,
            licence,
        )
        for record in _records(both, every, seed):
            snr = round(float(rng.uniform(*SNR)), 2)
            rows.append((replace(record, extra=record.extra | {"snr": snr, "part": part}), (voice, take)))
    return rows


def _sound(record: Record, of: tuple[Take, ...]) -> containers.Sound:
    sounds = [audio.read(Path(take.path), rate=RATE)[0] for take in of]
    if len(sounds) == 1:
        return sounds[0]
    return audio.mix(sounds[0], sounds[1], RATE, float(record.extra["snr"]), speech_dbfs=-26.0)


def _part(take: Take, seed: int) -> str:
    drawn = hashlib.sha256(f"{seed}/{take.corpus}/{take.speaker}".encode()).digest()
    at = int.from_bytes(drawn[:4], "big") / 2**32
    return next(part for part, below in PARTS if at < below)
