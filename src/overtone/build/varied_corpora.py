"""Read utterances that vary from a user's corpora.

They are the same words after different lines (MELD's dialogues), or the same words by one speaker in several tones
(EmoV-DB, RAVDESS, any table of recordings).
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from overtone.build.aeq_texts import EMOV_DB
from overtone.build.script import LONGEST, MAX_BYTES
from overtone.cues import BY_SLUG, find_cue
from overtone.errors import DataError, UsageError
from overtone.paths import inside, read_plain, shown

LEAST_WORDS = 3  # of an utterance of MELD: "Hi." is said everywhere and means nothing without its scene
LINES = 6  # how many lines before an utterance are its context
MOST = 4  # variants of one utterance of MELD
LEAST_TONES = 3
_PROMPTS = "cmuarctic.data"
_SOUND_BYTES = 50_000_000
_SAME_SCENE = 4  # words of a line that, standing before two utterances, makes them the same scene told twice
_MELD = ("Utterance", "Speaker", "Dialogue_ID", "Utterance_ID")
_COLUMNS = {  # of a table of recordings → what else they are called
    "file": ("path", "wav", "audio", "filename"),
    "words": ("text", "sentence", "transcript"),
    "tone": ("emotion", "style"),
    "speaker": ("actor", "speaker_id"),
}
_TONES = {  # other words for our cues
    "anger": "angry", "amused": EMOV_DB["amused"][0], "sleepy": EMOV_DB["sleepy"][0], "sleepiness": "tired",
    "disgusted": "disgust", "fearful": "fear", "sadness": "sad", "happiness": "happy", "joy": "happy",
    "surprised": "surprise", "crying": "sobbing", "whispered": "whisper",
}  # fmt: skip


class Way(Struct, frozen=True):
    """One variant of an utterance: its context or its tone, and the reply to it if that is known."""

    name: str
    context: str = ""
    tone: str = ""  # slug of our cue, "" where it is none of ours
    tone_text: str = ""
    wants: str = ""
    reply: str = ""
    style: str = ""
    file: str = ""  # the recording, where it is not to be spoken here


class Variation(Struct, frozen=True):
    """One utterance with its variants. `file` is the recording that the variants of a context group share."""

    id: str
    setting: str
    source: str
    words: str
    ways: tuple[Way, ...]
    topic: str = ""
    file: str = ""
    recorded_by: str = ""


def cue_of(tone: str) -> str:
    """Return the slug of our cue for a corpus's tone label; "" for a plain voice or an unknown label."""
    plain = " ".join(tone.replace("_", " ").split()).casefold()
    found = BY_SLUG.get(_TONES.get(plain, "")) or find_cue(plain)
    return found.slug if found else ""


# ── MELD ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Line(Struct, frozen=True):
    split: str
    dialogue: int
    place: int
    speaker: str
    words: str
    emotion: str
    episode: str


def meld(folder: Path, clips: Path | None = None) -> list[Variation]:
    """Find the utterances that occur in two or more dialogues of MELD's tables (*.csv) after different lines. `clips`
    holds its recordings as dia<D>_utt<U>.wav; with it, only utterances that have a recording are returned."""
    tables = sorted(folder.glob("*.csv")) if folder.is_dir() else []
    if not tables:
        raise UsageError(f"{shown(str(folder))}: holds no table of MELD; give the folder with train_sent_emo.csv")
    occurrences: dict[str, list[tuple[_Line, tuple[_Line, ...]]]] = {}
    for dialogue in _dialogues(tables):
        for place, line in enumerate(dialogue):
            words = _plain(line.words)
            if place and len(words.split()) >= LEAST_WORDS and len(line.words) <= LONGEST:
                occurrences.setdefault(words, []).append((line, dialogue[max(place - LINES, 0) : place]))
    found: list[Variation] = []
    splits = len(tables)
    for words, all_of_it in occurrences.items():
        chosen = _different(all_of_it)
        if len(chosen) < 2:
            continue
        lines = [line for line, _ in chosen]
        name = f"meld-{hashlib.sha256(words.encode()).hexdigest()[:8]}"
        file = ""
        if clips is not None:  # a plain one where there is one: the words, and not how they are said, are the variant's
            order = sorted(lines, key=lambda line: line.emotion != "neutral")
            file = next((f for line in order if (f := _recording(clips, line, splits))), "")
            if not file:
                continue
        ways = tuple(Way(str(n), _context(line, before)) for n, (line, before) in enumerate(chosen, 1))
        found.append(
            Variation(name, "context", "meld", lines[0].words, ways, file=file, recorded_by="MELD" if file else "")
        )
    if not found:
        lacking = "" if clips is None else f", or {shown(str(clips))} has no dia<D>_utt<U>.wav of one"
        raise DataError(f"{shown(str(folder))}: no utterance stands in two dialogues after different lines{lacking}")
    return found


def _dialogues(tables: Sequence[Path]) -> Iterator[tuple[_Line, ...]]:
    for path in tables:
        by: dict[int, list[_Line]] = {}
        for number, row in _rows(path, _MELD):
            try:
                at, place = int(row["Dialogue_ID"]), int(row["Utterance_ID"])
            except ValueError:
                raise DataError(f"{shown(str(path))}: row {number}: Dialogue_ID and Utterance_ID are numbers") from None
            words, speaker = (_printed(row[key]) for key in ("Utterance", "Speaker"))
            emotion, episode = row.get("Emotion", "").strip().lower(), f"{row.get('Season')}/{row.get('Episode')}"
            split = path.stem.partition("_")[0]
            by.setdefault(at, []).append(_Line(split, at, place, speaker, words, emotion, episode))
        for lines in by.values():
            yield tuple(sorted(lines, key=lambda line: line.place))


def _different(occurrences: Sequence[tuple[_Line, tuple[_Line, ...]]]) -> list[tuple[_Line, tuple[_Line, ...]]]:
    """Choose at most MOST occurrences from different scenes.

    Each is from another dialogue, no two share a long preceding line or the last one, and a long utterance occurs once
    per episode: otherwise they may be one scene, cut twice.
    """
    chosen: list[tuple[_Line, tuple[_Line, ...]]] = []
    seen: set[str] = set()
    for line, before in occurrences:
        telling = {w for b in before if len((w := _plain(b.words)).split()) >= _SAME_SCENE}
        last = _plain(before[-1].words)
        long = len(line.words.split()) >= 2 * _SAME_SCENE
        others = [other for other, _ in chosen]
        if (line.split, line.dialogue) in {(other.split, other.dialogue) for other in others}:
            continue
        if long and line.episode in {other.episode for other in others}:
            continue
        if telling & seen or any(_plain(b[-1].words) == last for _, b in chosen) or len(chosen) == MOST:
            continue
        chosen.append((line, before))
        seen |= telling
    return chosen


def _context(line: _Line, before: Sequence[_Line]) -> str:
    said = "\n".join(f"{b.speaker}: {b.words}" for b in before)
    return f"What was said before:\n{said}\nNow {line.speaker} speaks."


def _recording(clips: Path, line: _Line, splits: int) -> str:
    """Return the path of the utterance's recording, or "". Utterance numbers count within one table. With several
    tables each needs its own folder."""
    name = f"dia{line.dialogue}_utt{line.place}.wav"
    for home in (f"{line.split}/", *(() if splits > 1 else ("",))):
        if (path := inside(clips, home + name)).is_file():
            return str(path)
    if splits > 1 and (clips / name).is_file():
        raise UsageError(
            f"{shown(str(clips))}: {name} may belong to any of {splits} tables; put the recordings of each into a "
            f"folder of its own, such as {shown(line.split)}/"
        )
    return ""


# ── one sentence in many tones ──────────────────────────────────────────────────────────────────────────────────────


class _Take(Struct, frozen=True):
    where: str
    file: str  # below the table's folder
    words: str
    tone: str
    speaker: str
    context: str = ""


def tones(source: Path) -> list[Variation]:
    """Group the recordings in which one speaker says the same words in LEAST_TONES tones or more.

    `source` is a table with the columns file, words, tone, speaker and perhaps context, or EmoV-DB's folder. The first
    take in each tone is used.
    """
    if source.is_dir():
        home, takes = source, _emov_db(source)
    elif source.is_file():
        home, takes = source.parent, _table(source)
    else:
        told = f"a table has the columns {', '.join(_COLUMNS)}, EmoV-DB's folder {_PROMPTS}"
        raise UsageError(f"{shown(str(source))}: no such table or folder; {told}")
    groups: dict[tuple[str, str], dict[str, Way]] = {}
    spelt: dict[tuple[str, str], str] = {}
    for take in takes:
        try:
            path = inside(home, take.file)
        except DataError as error:
            raise DataError(f"{take.where}: {error}") from None
        if not path.is_file() or not path.stat().st_size:
            raise DataError(f"{take.where}: {shown(take.file)} does not exist or is empty; correct the table")
        key = (take.speaker, _plain(take.words))
        spelt.setdefault(key, take.words)
        slug = cue_of(take.tone)
        way = Way(_slugged(take.tone), take.context, slug, take.tone, file=str(path))
        groups.setdefault(key, {}).setdefault(slug or way.name, way)
    found = [
        Variation(
            f"tone-{hashlib.sha256('/'.join(key).encode()).hexdigest()[:8]}", "tone", _slugged(home.resolve().name),
            spelt[key], _plain_first(ways.values()), recorded_by=f"speaker {key[0]}",
        )
        for key, ways in groups.items()
        if len(ways) >= LEAST_TONES
    ]  # fmt: skip
    if not found:
        raise DataError(f"{shown(str(source))}: no speaker says the same words in {LEAST_TONES} tones or more")
    return found


def _table(path: Path) -> Iterator[_Take]:
    for number, row in _rows(path, tuple(_COLUMNS), _COLUMNS):
        where = f"{shown(str(path))}: row {number}"
        told = {name: _printed(row[name]) for name in _COLUMNS}
        for name, value in told.items():
            if not value or len(value) > LONGEST:
                raise DataError(f"{where}: {name} must be 1 to {LONGEST} characters")
        yield _Take(where, **told, context=_printed(row.get("context") or ""))


def _emov_db(folder: Path) -> Iterator[_Take]:
    """Read EmoV-DB as unpacked (bea/Angry/anger_1-28_0011.wav or bea_Angry/…), with CMU Arctic's sentences. Some file
    numbers do not belong to a sentence; these files are skipped."""
    prompts = folder / _PROMPTS
    if not prompts.is_file():
        raise UsageError(
            f"{shown(str(folder))}: no {_PROMPTS}, which has EmoV-DB's sentences (CMU Arctic has it); for another "
            f"corpus give a table with the columns {', '.join(_COLUMNS)}"
        )
    text = read_plain(prompts, MAX_BYTES).decode("utf-8", "replace")
    said = dict(re.findall(r'\(\s*arctic_a(\d{4})\s+"(.*)"\s*\)', text))
    for path in sorted(folder.rglob("*.wav")):
        name = re.fullmatch(r"([A-Za-z]+)_.*?(\d{4})", path.stem)
        place = path.relative_to(folder)
        if name and name[2] in said and len(place.parts) > 1:
            speaker = place.parts[0].partition("_")[0]
            yield _Take(shown(str(path)), place.as_posix(), _printed(said[name[2]]), name[1].lower(), speaker)


def _plain_first(ways: Iterable[Way]) -> tuple[Way, ...]:
    return tuple(sorted(ways, key=lambda way: way.tone_text.casefold() != "neutral"))


def sha256(path: str) -> str:
    return hashlib.sha256(read_plain(Path(path), _SOUND_BYTES)).hexdigest()


# ── tables ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _rows(
    path: Path, needed: Sequence[str], known: dict[str, tuple[str, ...]] | None = None
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows of a table with their line numbers; columns get the first of the names they may have."""
    try:
        data = read_plain(path, MAX_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{shown(str(path))}: not UTF-8; save it as such") from None
    reader = csv.DictReader(io.StringIO(data, newline=""))
    there = [name.strip() for name in reader.fieldnames or ()]
    names: dict[str, str] = {}
    for column in needed:
        spelt = (column, *(known or {}).get(column, ()))
        if not (found := next((name for name in spelt if name in there), "")):
            raise DataError(f"{shown(str(path))}: no column {' or '.join(spelt)}; it has: {shown(', '.join(there))}")
        names[column] = found
    try:
        for number, row in enumerate(reader, 2):
            plain = {key.strip(): value or "" for key, value in row.items() if isinstance(key, str)}
            yield number, plain | {column: plain.get(name, "") for column, name in names.items()}
    except csv.Error as error:
        raise DataError(f"{shown(str(path))}: not a table: {error}") from None


def _printed(text: str) -> str:
    """Return the text on one line, with printable characters only."""
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split())).strip()


def _plain(words: str) -> str:
    return " ".join(re.findall(r"[\w']+", words.replace("\u2019", "'").lower()))


def _slugged(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40] or "tones"
