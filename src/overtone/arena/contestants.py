"""What competes: the replies of several runs to the same items under the same conditions, ready to be put side by side.

Only conversations of one turn in the benchmark's core, the first time they were asked. Cues that are not validated are
left out where there are others: a preference for answering a cue that may not be there says little. Clips of several
sources are not pooled unless the user asks for it, by the rule of `results.headline_condition`.
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
from overtone.judges.judge_run import replies
from overtone.judges.reply_audio import transcript
from overtone.judges.reply_texts import Reply, texts
from overtone.judges.rubric import Rubric
from overtone.languages import text_length
from overtone.paths import inside, shown
from overtone.results.headline_condition import ALL, headline_sources
from overtone.runs.store import Store
from overtone.schema import Item
from overtone.spec import suggest

SHOWS = ("cue", "topic", "words", "context", "reference", "reply_a", "reply_b")
HEARS = ("clip", "a", "b")


class Entry(Struct, frozen=True):
    """One run's reply to a case."""

    reply: Reply
    sound: Path | None
    clip: Path | None

    @property
    def digest(self) -> str:
        """Changes when the reply does: a vote on another reply is a vote on another pair."""
        return hashlib.sha256(f"{self.reply.text}\0{self.reply.audio}".encode()).hexdigest()

    @property
    def words(self) -> int | None:
        return text_length(self.reply.text) if self.reply.text.strip() else None

    @property
    def seconds(self) -> float | None:
        if self.sound is None:
            return None
        try:
            return float(soundfile.info(str(self.sound)).duration)
        except (RuntimeError, OSError):
            return None  # a sound that cannot be read has no known length; a judge that needs it says so


class Field(Struct, frozen=True):
    """The runs by name, and what they all answered. `notes` says what was left out."""

    players: tuple[str, ...]
    cases: tuple[Case, ...]
    entries: dict[str, dict[str, Entry]]  # case key → run → its reply
    notes: tuple[str, ...]
    others: tuple[Case, ...] = ()  # on clips of other sources: votes may name them, and do not count

    def pair(self, case: Case, a: str, b: str, *, drawn: bool) -> Pair:
        """Two runs on a case. Its id says who meets on what, with which replies; not who stands on side A."""
        first, second = (self.entries[case.key][name] for name in (a, b))
        words, seconds = (first.words, second.words), (first.seconds, second.seconds)
        name = self.identify(case.key, a, b)
        return Pair(name, case.key, case.case, case.group, case.cue, a, b, drawn, words, seconds)

    def identify(self, key: str, a: str, b: str) -> str:
        """The id of a pair."""
        both = sorted((name, self.entries[key][name].digest) for name in (a, b))
        return hashlib.sha256(repr((key, both)).encode()).hexdigest()[:12]

    def subject(self, pair: Pair, rubric: Rubric) -> Subject:
        """The pair as it is put before a judge. A reply without text is transcribed where the rubric shows words."""
        sides = {side: self.entries[pair.key][name] for side, name in (("a", pair.a), ("b", pair.b))}
        shown_texts = texts(sides["a"].reply)
        del shown_texts["reply"]
        sounds = {side: entry.sound for side, entry in sides.items() if entry.sound is not None}
        transcribed = False
        for side, entry in sides.items():
            said = entry.reply.text
            if f"reply_{side}" in rubric.shows and not said.strip() and entry.sound is not None:
                said, transcribed = _heard(entry.sound), True
            shown_texts[f"reply_{side}"] = said
        if sides["a"].clip is not None:
            sounds["clip"] = sides["a"].clip
        return Subject(pair.id, pair.group, shown_texts, sounds, transcript=transcribed)


@functools.cache
def _heard(sound: Path) -> str:
    """A transcript, made once however many judges and pairs want it."""
    return transcript(sound)


def check_suits(rubric: Rubric) -> None:
    """UsageError for a rubric that the arena cannot put before a judge."""
    lacking = [name for name in rubric.shows if name not in SHOWS] + [n for n in rubric.hears if n not in HEARS]
    if rubric.subject != "pair" or lacking:
        why = f"it needs {', '.join(lacking)}" if rubric.subject == "pair" else "it judges single replies"
        raise UsageError(f"the rubric {rubric.name} cannot compare two replies: {why}; use pair or pair-voice")
    strange = set(rubric.dimensions[0].choices) - {"A", "B", "tie"}
    if len(rubric.dimensions) > 1 or strange:
        raise UsageError(f"the rubric {rubric.name}: the arena asks one question with the answers A, B and tie")


def read(runs: Sequence[Path], *, spoken: bool = False, source: str = "") -> Field:
    """The field of these runs; with `spoken`, only cases that every run answered aloud.

    `source` is whose clips take part: the name of a source, "all", or "" for the headline's among those the runs share.
    Raises UsageError where two runs have one name or the source is unknown, DataError where they share no case.
    """
    if len(runs) < 2:
        raise UsageError("an arena needs at least two runs; name more, or rank votes alone with --votes FILE")
    found: dict[str, dict[tuple[str, str], Entry]] = {}
    for folder in runs:
        with Store.read(folder) as store:
            name = store.meta().get("label") or folder.resolve().name
            if name in found:
                raise UsageError(f"two runs are called {shown(name)!r}; give one of the folders another name")
            found[name] = _entries(store)
    common = set.intersection(*(set(entries) for entries in found.values()))
    notes = []
    most = max(len(entries) for entries in found.values())
    if len(common) < most:
        notes.append(f"{len(common)} of up to {most} cases were answered by every run; the others take no part")
    if not common:
        counts = ", ".join(f"{shown(name)} {len(entries)}" for name, entries in found.items())
        raise DataError(f"no conversation was answered by every run under the same condition ({counts} answered)")
    order = [key for key in next(iter(found.values())) if key in common]  # the benchmark's own
    entries = {_key(*key): {name: by_key[key] for name, by_key in found.items()} for key in order}
    if spoken:
        heard = {
            k: e for k, e in entries.items() if all(x.sound is not None and x.clip is not None for x in e.values())
        }
        if not heard:
            raise DataError("no case was answered aloud by every run; compare their words: --rubric pair")
        if len(heard) < len(entries):
            notes.append(f"{len(heard)} of {len(entries)} shared cases were answered aloud by every run")
        entries = heard
    sources = _sources(entries, source)
    cases = [_case(key, e) for key, e in entries.items() if _item(e).source in sources]
    others = [_case(key, e) for key, e in entries.items() if _item(e).source not in sources]
    left = {_item(e).source for e in entries.values()} - sources
    notes += _source_notes(sources - {""}, left, len(cases), len(entries))
    sure = [case for case in cases if case.status != "unvalidated"]
    if sure and len(sure) < len(cases):
        notes.append(f"{len(cases) - len(sure)} cases of cues that are not validated take no part")
    elif not sure:
        notes.append("every cue here is not validated: whether the clips carry it is not established")
    return Field(tuple(found), tuple(sure or cases), entries, tuple(notes), tuple(others))


def _item(by_run: Mapping[str, Entry]) -> Item:
    return next(iter(by_run.values())).reply.item


def _sources(entries: Mapping[str, Mapping[str, Entry]], wanted: str) -> set[str]:
    """The sources that take part; clips that name none always do."""
    known = {_item(by_run).source for by_run in entries.values()} - {""}
    if wanted in ("", ALL):
        return {"", *(known if wanted == ALL else headline_sources(known))}
    if wanted not in known:
        raise unknown_source(wanted, known)
    return {"", wanted}


def unknown_source(wanted: str, known: Collection[str]) -> UsageError:
    """What to raise where the runs have no clips of the source that was asked for."""
    has = f"they have {', '.join(sorted(known))}" if known else "their clips name no source"
    return UsageError(f"--source {wanted}: the runs have no such clips in common{suggest(wanted, known)}; {has}")


def _source_notes(sources: set[str], left: set[str], cases: int, shared: int) -> list[str]:
    if left:
        taken = f"over the clips of {', '.join(sorted(sources))}, {cases} of {shared} shared cases"
        return [f"{taken}; --source chooses those of {', '.join(sorted(left))}, or all"]
    return [f"over the clips of all sources together: {', '.join(sorted(sources))}"] if len(sources) > 1 else []


def _entries(store: Store) -> dict[tuple[str, str], Entry]:
    root = store.meta().get("root")
    found = {}
    for reply in replies(store):
        if reply.item.part or reply.key.repeat or len(reply.item.turns) > 1:
            continue  # in a dialogue each run has had a conversation of its own: the replies answer different things
        sound = store.audio_path(reply.audio) if reply.audio else None
        try:
            held = sound if sound is not None and sound.is_file() else None
        except OSError as error:
            raise StoreError(f"{store.folder}: {error.strerror}") from None
        found[reply.key.item, reply.key.condition] = Entry(reply, held, _clip(reply.item, root))
    return found


def _clip(item: Item, root: str | None) -> Path | None:
    clip = item.turns[-1].clip
    if clip is None or not root:
        return None
    path = inside(Path(root), clip.path)
    return path if path.is_file() else None


def _key(item: str, condition: str) -> str:
    return f"{item}|{condition}"


def _case(key: str, by_run: Mapping[str, Entry]) -> Case:
    reply = next(iter(by_run.values())).reply
    return Case(key, reply.item.case, reply.item.group, reply.item.cue, reply.key.condition, reply.item.status)
