"""The replies that compete: replies of several runs to the same items under the same conditions.

Only first replies (repeat 0) to one-turn conversations in the benchmark's core take part. If the benchmark validates
some cues, clips with other cues are left out, because they may not carry their cue. Clips of several sources are pooled
only if the user asks for it, as in `results.headline_condition`.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import soundfile
from msgspec import Struct

from overtone.arena.pairing import Case, Pair
from overtone.errors import DataError, StoreError, UsageError
from overtone.judges.judge_input import Subject
from overtone.judges.judge_run import answered
from overtone.judges.reply_audio import transcript
from overtone.judges.reply_texts import texts
from overtone.judges.rubric import Rubric
from overtone.languages import text_length
from overtone.paths import inside, shown
from overtone.results.headline_condition import ALL, headline_sources
from overtone.runs.store import Ask, Store
from overtone.schema import Item
from overtone.spec import suggest
from overtone.text import count

SHOWS = ("cue", "topic", "words", "context", "reference", "reply_a", "reply_b")
HEARS = ("clip", "a", "b")


class Entry(Struct, frozen=True):
    """One run's reply to a case."""

    ask: Ask
    sound: Path | None
    clip: Path | None

    @property
    def digest(self) -> str:
        """A hash of the reply, so that a changed reply makes a new pair."""
        return hashlib.sha256(f"{self.ask.reply.text}\0{self.ask.reply.audio}".encode()).hexdigest()

    @property
    def words(self) -> int | None:
        return text_length(self.ask.reply.text) if self.ask.reply.text.strip() else None

    @property
    def seconds(self) -> float | None:
        if self.sound is None:
            return None
        try:
            return float(soundfile.info(str(self.sound)).duration)
        except (RuntimeError, OSError):
            return None  # unreadable audio: a judge that needs it reports the error


class Field(Struct, frozen=True):
    """The runs by name, and the cases that all runs answered. `notes` lists the cases that were left out."""

    players: tuple[str, ...]
    cases: tuple[Case, ...]
    entries: dict[str, dict[str, Entry]]  # case key → run → its reply
    notes: tuple[str, ...]
    others: tuple[Case, ...] = ()  # with clips of other sources; votes on them are read but not counted

    def pair(self, case: Case, a: str, b: str, *, drawn: bool) -> Pair:
        """Return the pair of these two runs' replies to a case."""
        first, second = (self.entries[case.key][name] for name in (a, b))
        words, seconds = (first.words, second.words), (first.seconds, second.seconds)
        name = self.identify(case.key, a, b)
        return Pair(name, case.key, case.case, case.group, case.cue, a, b, drawn, words, seconds)

    def identify(self, key: str, a: str, b: str) -> str:
        """Return the id of a pair, which depends on the case, the runs and their replies, but not on the sides."""
        both = sorted((name, self.entries[key][name].digest) for name in (a, b))
        return hashlib.sha256(repr((key, both)).encode()).hexdigest()[:12]

    def subject(self, pair: Pair, rubric: Rubric) -> Subject:
        """Return the pair as a judge's subject. A reply without text is transcribed if the rubric shows its words."""
        sides = {side: self.entries[pair.key][name] for side, name in (("a", pair.a), ("b", pair.b))}
        shown_texts = texts(sides["a"].ask)
        del shown_texts["reply"]
        sounds = {side: entry.sound for side, entry in sides.items() if entry.sound is not None}
        transcribed = False
        for side, entry in sides.items():
            words = entry.ask.reply.text
            if f"reply_{side}" in rubric.shows and not words.strip() and entry.sound is not None:
                words, transcribed = _transcript(entry.sound), True
            shown_texts[f"reply_{side}"] = words
        if sides["a"].clip is not None:
            sounds["clip"] = sides["a"].clip
        return Subject(pair.id, pair.group, shown_texts, sounds, transcript=transcribed)


@functools.cache
def _transcript(sound: Path) -> str:
    return transcript(sound)


def check_suits(rubric: Rubric) -> None:
    """Raise UsageError if the arena cannot use this rubric."""
    lacking = [name for name in rubric.shows if name not in SHOWS] + [n for n in rubric.hears if n not in HEARS]
    if rubric.subject != "pair" or lacking:
        why = f"it needs {', '.join(lacking)}" if rubric.subject == "pair" else "it judges single replies"
        raise UsageError(f"the rubric {rubric.name} cannot compare two replies: {why}; use pair or pair-voice")
    strange = set(rubric.dimensions[0].choices) - {"A", "B", "tie"}
    if len(rubric.dimensions) > 1 or strange:
        raise UsageError(f"the rubric {rubric.name}: the arena asks one question with the answers A, B and tie")


def read(runs: Sequence[Path], *, spoken: bool = False, source: str = "") -> Field:
    """Read the field of these runs; with `spoken`, only cases that every run answered with audio.

    `source` selects clips: the name of a source, "all", or "" for the headline's source among those the runs share.
    Raises UsageError if two runs have the same name or the source is unknown, DataError if the runs share no case.
    """
    if len(runs) < 2:
        raise UsageError("an arena needs at least two runs; name more, or rank votes alone with --votes FILE")
    by_run: dict[str, dict[tuple[str, str], Entry]] = {}
    for folder in runs:
        with Store.read(folder) as store:
            name = store.meta().get("label") or folder.resolve().name
            if name in by_run:
                raise UsageError(f"two runs are called {shown(name)!r}; give one of the folders another name")
            by_run[name] = _entries(store)
    common = set.intersection(*(set(entries) for entries in by_run.values()))
    notes = []
    most = max(len(entries) for entries in by_run.values())
    if len(common) < most:
        notes.append(f"{len(common)} of up to {most} cases were answered by every run; the others are left out")
    if not common:
        counts = ", ".join(f"{shown(name)} {len(entries)}" for name, entries in by_run.items())
        raise DataError(f"no conversation was answered by every run under the same condition ({counts} answered)")
    order = [key for key in next(iter(by_run.values())) if key in common]  # the benchmark's order
    entries = {_key(*key): {name: by_key[key] for name, by_key in by_run.items()} for key in order}
    if spoken:
        with_audio = {
            k: e for k, e in entries.items() if all(x.sound is not None and x.clip is not None for x in e.values())
        }
        if not with_audio:
            raise DataError("no case was answered with audio by every run; compare their words: --rubric pair")
        if len(with_audio) < len(entries):
            notes.append(f"{len(with_audio)} of {len(entries)} shared cases were answered with audio by every run")
        entries = with_audio
    sources = _sources(entries, source)
    cases = [_case(key, e) for key, e in entries.items() if _item(e).source in sources]
    others = [_case(key, e) for key, e in entries.items() if _item(e).source not in sources]
    left = {_item(e).source for e in entries.values()} - sources
    notes += _source_notes(sources - {""}, left, len(cases), len(entries))
    sure = [case for case in cases if case.status != "unvalidated"]
    gone = len(cases) - len(sure)
    if sure and gone:
        notes.append(f"{count(gone, 'case')} of cues that are not validated {'is' if gone == 1 else 'are'} left out")
    elif not sure:
        notes.append("no cue is validated: the clips may not carry them")
    return Field(tuple(by_run), tuple(sure or cases), entries, tuple(notes), tuple(others))


def _item(by_run: Mapping[str, Entry]) -> Item:
    return next(iter(by_run.values())).ask.item


def _sources(entries: Mapping[str, Mapping[str, Entry]], wanted: str) -> set[str]:
    """Return the sources whose clips take part. Clips without a source always take part."""
    known = {_item(by_run).source for by_run in entries.values()} - {""}
    if wanted in ("", ALL):
        return {"", *(known if wanted == ALL else headline_sources(known))}
    if wanted not in known:
        raise unknown_source(wanted, known)
    return {"", wanted}


def unknown_source(wanted: str, known: Collection[str]) -> UsageError:
    """Return the error for a source that has no clips in the runs."""
    has = f"they have {', '.join(sorted(known))}" if known else "their clips name no source"
    return UsageError(f"--source {wanted}: the runs have no such clips in common{suggest(wanted, known)}; {has}")


def _source_notes(sources: set[str], left: set[str], cases: int, shared: int) -> list[str]:
    if left:
        taken = f"over the clips of {', '.join(sorted(sources))}, {cases} of {shared} shared cases"
        return [f"{taken}; --source chooses those of {', '.join(sorted(left))}, or all"]
    return [f"over the clips of all sources together: {', '.join(sorted(sources))}"] if len(sources) > 1 else []


def _entries(store: Store) -> dict[tuple[str, str], Entry]:
    root = store.meta().get("root")
    entries = {}
    for ask in answered(store):
        if ask.item.part or ask.repeat or len(ask.item.turns) > 1:
            continue  # in a dialogue, each run had a different conversation
        sound = store.audio_path(ask.reply.audio) if ask.reply.audio else None
        try:
            existing = sound if sound is not None and sound.is_file() else None
        except OSError as error:
            raise StoreError(f"{store.folder}: {error.strerror}") from None
        entries[ask.item.id, ask.condition] = Entry(ask, existing, _clip(ask.item, root))
    return entries


def _clip(item: Item, root: str | None) -> Path | None:
    clip = item.turns[-1].clip
    if clip is None or not root:
        return None
    path = inside(Path(root), clip.path)
    return path if path.is_file() else None


def _key(item: str, condition: str) -> str:
    return f"{item}|{condition}"


def _case(key: str, by_run: Mapping[str, Entry]) -> Case:
    ask = next(iter(by_run.values())).ask
    return Case(key, ask.item.case, ask.item.group, ask.item.cue, ask.condition, ask.item.status)
