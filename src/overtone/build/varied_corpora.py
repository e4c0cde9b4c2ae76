"""Read groups of varied utterances from a user's corpora.

A group has the same words after different lines (MELD's dialogues), or the same words by one speaker in several tones
(EmoV-DB, RAVDESS, any table of recordings).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from overtone.build.aeq_texts import EMOV_DB
from overtone.build.script import LONGEST, MAX_BYTES
from overtone.build.tables import read_table
from overtone.cues import BY_SLUG, find_cue
from overtone.errors import DataError, UsageError
from overtone.paths import inside, read_plain, shown

LEAST_WORDS = 3  # of an utterance of MELD: "Hi." occurs everywhere and depends on nothing
LINES = 6  # number of lines before an utterance that are its context
MOST = 4  # variants of one utterance of MELD
LEAST_TONES = 3
_PROMPTS = "cmuarctic.data"
_SOUND_BYTES = 50_000_000
_SAME_SCENE = 4  # two utterances after the same line with this many words belong to the same scene
_MELD = ("Utterance", "Speaker", "Dialogue_ID", "Utterance_ID")
_COLUMNS = {  # columns of a table of recordings → their other names
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


class Variant(Struct, frozen=True):
    """One variant of an utterance: its context or its tone, and the reply, if known."""

    name: str
    context: str = ""
    tone: str = ""  # slug of our cue; "" if it is not one of ours
    tone_text: str = ""
    wants: str = ""
    reply: str = ""
    style: str = ""
    file: str = ""  # the recording, if it need not be spoken


class Variation(Struct, frozen=True):
    """One utterance with its variants. `file` is the recording that the variants of a context group share."""

    id: str
    setting: str
    source: str
    words: str
    variants: tuple[Variant, ...]
    topic: str = ""
    file: str = ""
    recorded_by: str = ""


def cue_of(tone: str) -> str:
    """Return the slug of our cue for a corpus's tone label; "" for a plain voice or an unknown label."""
    plain = " ".join(tone.replace("_", " ").split()).casefold()
    cue = BY_SLUG.get(_TONES.get(plain, "")) or find_cue(plain)
    return cue.slug if cue else ""


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
    is a folder of MELD's recordings (dia<D>_utt<U>.wav); if given, only utterances with a recording are returned."""
    tables = sorted(folder.glob("*.csv")) if folder.is_dir() else []
    if not tables:
        raise UsageError(f"{shown(str(folder))}: contains no table of MELD; give the folder with train_sent_emo.csv")
    occurrences: dict[str, list[tuple[_Line, tuple[_Line, ...]]]] = {}
    for dialogue in _dialogues(tables):
        for place, line in enumerate(dialogue):
            words = _plain(line.words)
            if place and len(words.split()) >= LEAST_WORDS and len(line.words) <= LONGEST:
                occurrences.setdefault(words, []).append((line, dialogue[max(place - LINES, 0) : place]))
    variations: list[Variation] = []
    splits = len(tables)
    for words, same_words in occurrences.items():
        chosen = _different(same_words)
        if len(chosen) < 2:
            continue
        lines = [line for line, _ in chosen]
        name = f"meld-{hashlib.sha256(words.encode()).hexdigest()[:8]}"
        file = ""
        if clips is not None:  # preferably a neutral one, because the variants share the words and not the delivery
            order = sorted(lines, key=lambda line: line.emotion != "neutral")
            file = next((f for line in order if (f := _recording(clips, line, splits))), "")
            if not file:
                continue
        variants = tuple(Variant(str(n), _context(line, before)) for n, (line, before) in enumerate(chosen, 1))
        variations.append(
            Variation(name, "context", "meld", lines[0].words, variants, file=file, recorded_by="MELD" if file else "")
        )
    if not variations:
        lacking = "" if clips is None else f", or {shown(str(clips))} has no recording dia<D>_utt<U>.wav of one"
        raise DataError(f"{shown(str(folder))}: no utterance occurs in two dialogues after different lines{lacking}")
    return variations


def _dialogues(tables: Sequence[Path]) -> Iterator[tuple[_Line, ...]]:
    for path in tables:
        dialogues: dict[int, list[_Line]] = {}
        for where, row in read_table(path, _MELD):
            try:
                dialogue, place = int(row["Dialogue_ID"]), int(row["Utterance_ID"])
            except ValueError:
                raise DataError(f"{where}: Dialogue_ID and Utterance_ID must be numbers") from None
            words, speaker = (_printed(row[key]) for key in ("Utterance", "Speaker"))
            emotion, episode = row.get("Emotion", "").strip().lower(), f"{row.get('Season')}/{row.get('Episode')}"
            split = path.stem.partition("_")[0]
            dialogues.setdefault(dialogue, []).append(_Line(split, dialogue, place, speaker, words, emotion, episode))
        for lines in dialogues.values():
            yield tuple(sorted(lines, key=lambda line: line.place))


def _different(occurrences: Sequence[tuple[_Line, tuple[_Line, ...]]]) -> list[tuple[_Line, tuple[_Line, ...]]]:
    """Choose at most MOST occurrences from different scenes.

    Each is from another dialogue, no two share a long preceding line or the last one, and a long utterance occurs once
    per episode. Otherwise two occurrences may be the same scene, cut twice.
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
    lines = "\n".join(f"{b.speaker}: {b.words}" for b in before)
    return f"What was said before:\n{lines}\nNow {line.speaker} speaks."


def _recording(clips: Path, line: _Line, splits: int) -> str:
    """Return the path of the utterance's recording, or "". Utterance numbers are unique only within one table, so with
    several tables each needs its own folder."""
    name = f"dia{line.dialogue}_utt{line.place}.wav"
    for home in (f"{line.split}/", *(() if splits > 1 else ("",))):
        if (path := inside(clips, home + name)).is_file():
            return str(path)
    if splits > 1 and (clips / name).is_file():
        raise UsageError(
            f"{shown(str(clips))}: {name} may belong to any of {splits} tables; put the recordings of each table into "
            f"a separate folder, such as {shown(line.split)}/"
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

    `source` is a table with the columns file, words, tone, speaker and optionally context, or EmoV-DB's folder. The
    first take in each tone is used.
    """
    if source.is_dir():
        home, takes = source, _emov_db(source)
    elif source.is_file():
        home, takes = source.parent, _table(source)
    else:
        expected = f"give a table with the columns {', '.join(_COLUMNS)}, or EmoV-DB's folder with {_PROMPTS}"
        raise UsageError(f"{shown(str(source))}: no such table or folder; {expected}")
    groups: dict[tuple[str, str], dict[str, Variant]] = {}
    words: dict[tuple[str, str], str] = {}
    for take in takes:
        try:
            path = inside(home, take.file)
        except DataError as error:
            raise DataError(f"{take.where}: {error}") from None
        if not path.is_file() or not path.stat().st_size:
            raise DataError(f"{take.where}: {shown(take.file)} does not exist or is empty; correct the table")
        key = (take.speaker, _plain(take.words))
        words.setdefault(key, take.words)
        slug = cue_of(take.tone)
        variant = Variant(_slugged(take.tone), take.context, slug, take.tone, file=str(path))
        groups.setdefault(key, {}).setdefault(slug or variant.name, variant)
    variations = [
        Variation(
            f"tone-{hashlib.sha256('/'.join(key).encode()).hexdigest()[:8]}", "tone", _slugged(home.resolve().name),
            words[key], tuple(sorted(variants.values(), key=lambda one: one.tone_text.casefold() != "neutral")),
            recorded_by=f"speaker {key[0]}",
        )
        for key, variants in groups.items()
        if len(variants) >= LEAST_TONES
    ]  # fmt: skip
    if not variations:
        raise DataError(f"{shown(str(source))}: no speaker says the same words in {LEAST_TONES} tones or more")
    return variations


def _table(path: Path) -> Iterator[_Take]:
    for where, row in read_table(path, tuple(_COLUMNS), _COLUMNS):
        fields = {name: _printed(row[name]) for name in _COLUMNS}
        for name, value in fields.items():
            if not value or len(value) > LONGEST:
                raise DataError(f"{where}: {name} must be 1 to {LONGEST} characters")
        yield _Take(where, **fields, context=_printed(row.get("context", "")))


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
    sentences = dict(re.findall(r'\(\s*arctic_a(\d{4})\s+"(.*)"\s*\)', text))
    for path in sorted(folder.rglob("*.wav")):
        name = re.fullmatch(r"([A-Za-z]+)_.*?(\d{4})", path.stem)
        place = path.relative_to(folder)
        if name and name[2] in sentences and len(place.parts) > 1:
            speaker = place.parts[0].partition("_")[0]
            yield _Take(shown(str(path)), place.as_posix(), _printed(sentences[name[2]]), name[1].lower(), speaker)


def sha256(path: str) -> str:
    return hashlib.sha256(read_plain(Path(path), _SOUND_BYTES)).hexdigest()


# ── texts ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _printed(text: str) -> str:
    """Return the text on one line, with printable characters only."""
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split())).strip()


def _plain(words: str) -> str:
    return " ".join(re.findall(r"[\w']+", words.replace("\u2019", "'").lower()))


def _slugged(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40] or "tones"
