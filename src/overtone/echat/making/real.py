"""`overtone build echat-real`: recordings of people and things, from corpora a user has, as the same records.

For experiments: each row says where it is from and under which licence, the manifest what all of them together leave,
and `open_only` leaves out what may not be passed on. A corpus is known by its files, whatever its folder is called;
what is not there is not missed.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
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
from overtone.echat.data.labels import EVENTS, VOCAL, Labels, label
from overtone.echat.data.records import Record
from overtone.echat.making import texts
from overtone.echat.making.compose import spoken_answer
from overtone.echat.making.ways import Way, ways
from overtone.errors import DataError, UsageError
from overtone.paths import inside, read_plain, sha256, shown, write_whole
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
LICENCES = {  # corpus → of its rows; ESC-10's rows of ESC-50 are freer
    "ravdess": "CC-BY-NC-SA-4.0",
    "esc50": "CC-BY-NC-3.0",
    "nonverbal": "CC-BY-NC-ND-4.0",
    "librispeech": "CC-BY-4.0",
    "speechocean": "CC-BY-4.0",
}
ESC10 = "CC-BY-3.0"
OPEN = frozenset({"CC-BY-4.0", ESC10})
_TABLE_BYTES = 50_000_000
_RAVDESS = ("neutral", "calm", "happy", "sad", "angry", "fearful", "disgust", "surprised")
_SAYS = ("Kids are talking by the door.", "Dogs are sitting by the door.")
_SOUNDS = (".wav", ".flac", ".ogg", ".mp3")


class Take(Struct, frozen=True):
    """One recording of a corpus: `words` is "" where nobody speaks."""

    corpus: str
    name: str  # of its file, below the corpus's folder: the same wherever that lies
    path: str
    words: str
    labels: Labels
    speaker: str  # or the recording a sound was cut from: never in two parts
    licence: str


class Made(Struct, frozen=True):
    """What a build read."""

    corpora: dict[str, tuple[int, str]]  # name → records, licence of most
    warnings: tuple[str, ...]


def build(out: Path, data: Path, *, open_only: bool = False, pack: str = "", wavs: bool = True, seed: int = 0) -> Made:
    """Read every corpus below `data` that is known; write lists, sounds, packs and a manifest as `overtone build echat`
    does."""
    _refuse_others(out)
    takes, warnings = read(data)
    takes.sort(key=lambda take: (take.corpus, take.name))
    if open_only:
        takes = [take for take in takes if take.licence in OPEN]
    if not takes:
        raise UsageError(
            f"{shown(str(data))}: no corpus that is known{' and open' if open_only else ''}; "
            f"there is: {', '.join(LICENCES)} (each in a folder of its own)"
        )
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
            containers.pack(listed, Path(pack) / part, sound)
            written |= {f"pack/{part}/{name}": sha256(Path(pack) / part / name) for name in containers.PACK[:2]}
    write_json(out / FILE, _manifest(rows, written, seed))
    return Made(counts, tuple(warnings))


def _refuse_others(out: Path) -> None:
    """Another set's papers must not be written over."""
    path = out / FILE
    if not path.is_file():
        return
    try:
        mine = msgspec.json.decode(read_plain(path, _TABLE_BYTES))["name"] == NAME
    except (msgspec.DecodeError, KeyError, TypeError):
        mine = False
    if not mine:
        raise UsageError(f"{shown(str(out))} holds something else ({FILE}), which would be lost; give another --out")


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


# ── the corpora ─────────────────────────────────────────────────────────────────────────────────────────────────────


def read(data: Path) -> tuple[list[Take], list[str]]:
    """Every recording of every corpus that is found in a folder or below it; and what was passed over."""
    if not data.is_dir():
        raise UsageError(f"{shown(str(data))}: no such folder; give the one that holds your corpora")
    found: list[Take] = []
    names: set[tuple[str, str]] = set()
    warnings: list[str] = []
    for folder in (*sorted(p for p in data.iterdir() if p.is_dir()), data):
        if folder == data and found:
            break  # it holds corpora, and is none
        for reader in (_ravdess, _esc50, _speechocean, _librispeech, _nonverbal):
            before = len(found)
            try:
                for take in reader(folder):
                    if (take.corpus, take.name) in names:
                        warnings.append(f"{take.path} has the name of another in {take.corpus}; it is passed over")
                    elif Path(take.path).is_file():
                        names.add((take.corpus, take.name))
                        found.append(take)
                    else:
                        warnings.append(f"{take.path} is not there; it is passed over")
            except (DataError, KeyError, ValueError) as error:
                warnings.append(f"{folder}: not read as {reader.__name__.strip('_')}: {error}")
            if len(found) > before:
                break
    return found, warnings


def _ravdess(folder: Path) -> Iterator[Take]:
    """RAVDESS by a table (file, actor, gender, emotion, text), or by its own file names."""
    table = folder / "labels.csv"
    if table.is_file():
        for row in _rows(table):
            if {"actor", "emotion", "text"} <= row.keys():
                emotion = label("emotion", row["emotion"])
                labels = Labels(emotion=emotion, gender=label("gender", row.get("gender", "")), age="adult")
                yield _take("ravdess", folder, row["file"], row["text"], labels, row["actor"])
        return
    for path in sorted(folder.glob("[Aa]ctor_*/03-01-*")):
        name = re.fullmatch(r"03-01-0([1-8])-0[12]-0([12])-0[12]-(\d\d)", path.stem)
        if name and path.suffix in _SOUNDS:
            actor = int(name[3])
            labels = Labels(
                label("emotion", _RAVDESS[int(name[1]) - 1]), "adult", "female" if actor % 2 == 0 else "male"
            )
            yield _take("ravdess", folder, str(path.relative_to(folder)), _SAYS[int(name[2]) - 1], labels, name[3])


def _esc50(folder: Path) -> Iterator[Take]:
    """ESC-50 as it is unpacked, or by a table (file, category, esc10)."""
    meta, table = folder / "meta" / "esc50.csv", folder / "labels.csv"
    for row in _rows(meta if meta.is_file() else table) if meta.is_file() or table.is_file() else ():
        if "category" not in row or not {"file", "filename"} & row.keys():
            return
        event = label("event", row["category"])
        if event not in EVENTS:
            event = "other"
        file = row.get("file") or f"audio/{row['filename']}"
        source = Path(file).stem.split("-")[1] if "-" in Path(file).stem else file
        licence = ESC10 if row.get("esc10", "").lower() == "true" else LICENCES["esc50"]
        yield replace(_take("esc50", folder, file, "", Labels(event=event), source), licence=licence)


def _speechocean(folder: Path) -> Iterator[Take]:
    """A table (file, speaker, age, gender, text)."""
    table = folder / "labels.csv"
    for row in _rows(table) if table.is_file() else ():
        if not {"speaker", "age", "text"} <= row.keys():
            return
        years = int(row["age"])
        age = "child" if years < 13 else "old" if years >= 60 else "adult" if years >= 18 else ""
        gender = {"m": "male", "f": "female"}.get(row.get("gender", ""), "")
        labels = Labels(age=age, gender="" if age == "child" else gender)
        words = row["text"].capitalize() + "."
        yield _take("speechocean", folder, row["file"], words, labels, row["speaker"])


def _librispeech(folder: Path) -> Iterator[Take]:
    """LibriSpeech as it is unpacked (*.trans.txt), or by a table (transcripts.tsv: file, text)."""
    table = folder / "transcripts.tsv"
    if table.is_file():
        for row in _rows(table, "\t"):
            yield _take("librispeech", folder, row["file"], _sentence(row["text"]), Labels(), row["file"].split("-")[0])
        return
    for path in sorted(folder.rglob("*.trans.txt")):
        for line in read_plain(path, _TABLE_BYTES).decode("utf-8").splitlines():
            name, _, words = line.partition(" ")
            file = str((path.parent / f"{name}.flac").relative_to(folder))
            yield _take("librispeech", folder, file, _sentence(words), Labels(), name.split("-")[0])


def _nonverbal(folder: Path) -> Iterator[Take]:
    """Sounds of the voice, one folder for each kind: coughing/, crying/, laughing/, screaming/, sighing/ …"""
    kinds = {p: label("event", p.name) for p in sorted(folder.iterdir()) if p.is_dir()}
    if "cough" not in kinds.values() or "laugh" not in kinds.values() or "cry" not in kinds.values():
        return
    for kind, event in kinds.items():
        for path in sorted(kind.iterdir()):
            if path.suffix in _SOUNDS:
                told = Labels(event=event if event in VOCAL else "other")
                file = f"{kind.name}/{path.name}"
                yield _take("nonverbal", folder, file, "", told, path.stem.split("_")[0])


def _take(corpus: str, folder: Path, file: str, words: str, labels: Labels, speaker: str) -> Take:
    return Take(corpus, file, str(inside(folder, file)), words, labels, speaker, LICENCES[corpus])


def _sentence(words: str) -> str:
    plain = " ".join(words.lower().split())
    return f"{plain[:1].upper()}{plain[1:]}."


def _rows(path: Path, delimiter: str = ",") -> Iterator[dict[str, str]]:
    try:
        text = read_plain(path, _TABLE_BYTES).decode("utf-8-sig")
        for row in csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter):
            yield {str(key).strip(): (value or "").strip() for key, value in row.items() if isinstance(value, str)}
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{shown(str(path))}: not a table in UTF-8: {error}") from None
