"""Checks a run folder from end to end without changing it: the database, every stored sound, every clip it can find."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from overtone.audio import load_sound
from overtone.errors import DataError, OvertoneError, StoreError
from overtone.paths import inside, sha256
from overtone.runs.clips import sent_rates
from overtone.runs.database import clear_errors
from overtone.runs.read_only import connect_reader
from overtone.runs.records import SHA
from overtone.runs.store import Store

NAMED = 3  # examples of one kind of damage
MESSAGES = 100  # of SQLite's own check at most
_DAMAGED = "run.db is damaged"
COPY = "restore it from a copy of the run, or do the run again with another --out"
# What must not be there: (what is wrong, SQL that counts it).
_ORPHANS = (
    ("asks of items that are missing", "SELECT count(*) FROM asks WHERE item NOT IN (SELECT seq FROM items)"),
    ("replies to asks that are missing", "SELECT count(*) FROM replies WHERE ask NOT IN (SELECT id FROM asks)"),
    ("failures of asks that are missing", "SELECT count(*) FROM failures WHERE ask NOT IN (SELECT id FROM asks)"),
    (
        "scores of asks that are missing",
        "SELECT count(*) FROM scores WHERE (kind = 'reply' OR kind LIKE 'turn %') "
        "AND subject NOT IN (SELECT id FROM asks)",
    ),
    (
        "scores whose signature is missing",
        "SELECT count(*) FROM scores WHERE signature NOT IN (SELECT id FROM signatures)",
    ),
    (
        "asks that count as answered and have no reply",
        "SELECT count(*) FROM asks WHERE state = 1 AND id NOT IN (SELECT ask FROM replies)",
    ),
)


class Verified(Struct):
    """What was found in a run folder. Without `damage` the run is fine; `notes` are things to know."""

    folder: Path
    damage: list[str] = []
    notes: list[str] = []
    replies: int = 0
    sounds: int = 0
    clips: int = 0


def verify(folder: Path) -> Verified:
    """Check a run. Raises StoreError where the folder holds no run at all."""
    path = folder / "run.db"
    if not path.is_file():
        raise StoreError(f"{folder} is not a run: it has no run.db")
    found = Verified(folder)
    found.damage += _pages(path)
    verdicts = folder / "verdicts.db"
    if verdicts.is_file():
        found.damage += _pages(verdicts)
    try:
        store = Store.read(folder)
    except StoreError as error:
        return _with(found, str(error).removeprefix(f"{folder}: "))
    with store:
        if not found.damage:  # where pages are damaged, what they hold says nothing
            found.damage += _rows(store)
        steps: tuple[Callable[[Store, Verified], None], ...] = (_count, _sounds, _clips)
        for step in steps:
            try:
                step(store, found)
            except OvertoneError as error:
                _with(found, str(error).removeprefix(f"{folder}: "))
    return found


def _with(found: Verified, sentence: str) -> Verified:
    """Add a sentence, unless it only repeats that the database is damaged."""
    known = sentence in found.damage or (sentence.startswith(_DAMAGED) and found.damage[:1])
    if not known:
        found.damage.append(sentence)
    return found


# ── the database ────────────────────────────────────────────────────────────────────────────────────────────────────


def _pages(path: Path) -> list[str]:
    """What SQLite's own check says of a file."""
    messages: list[str] = []
    try:
        db = connect_reader(path)
        try:
            messages = [str(row[0]) for row in db.execute(f"PRAGMA integrity_check({MESSAGES})")]
        finally:
            db.close()
    except (sqlite3.Error, StoreError) as error:
        messages.append(str(error))
    except UnicodeDecodeError:
        messages.append("the description of its tables is unreadable")
    if messages == ["ok"]:
        return []
    lines = [line for message in messages for line in message.splitlines()]
    count = f"{MESSAGES} or more faults" if len(messages) >= MESSAGES else f"{len(lines)} fault{'s'[: len(lines) != 1]}"
    return [f"{path.name} is damaged ({count}: {'; '.join(lines[:NAMED])}); {COPY}"]


def _rows(store: Store) -> Iterator[str]:
    """Rows that no Overtone wrote, and rows that refer to nothing."""
    readers: tuple[Callable[[], Iterable[Any]], ...] = (
        store.meta,
        store.events,
        store.declarations,
        store.items,
        store.asks,
        store.replies,
        store.failures,
        store.clips,
        lambda: store.scores(every=True),
        lambda: store.turn_scores(every=True),
    )
    for read in readers:
        try:
            for _ in read():
                pass
        except StoreError as error:
            yield str(error).removeprefix(f"{store.folder}: ")
    for what, sql in _ORPHANS:
        with clear_errors(store.folder):
            count = store.db.execute(sql).fetchone()[0]
        if count:
            yield f"run.db holds {count:,} {what}; {COPY}"


# ── sounds and clips ────────────────────────────────────────────────────────────────────────────────────────────────


def _count(store: Store, found: Verified) -> None:
    with clear_errors(store.folder):
        found.replies = store.db.execute("SELECT count(*) FROM replies").fetchone()[0]


def _sounds(store: Store, found: Verified) -> None:
    """Every sound that a reply names, against its name, which is the SHA-256 of its bytes."""
    missing: list[str] = []
    changed: list[str] = []
    named = set()
    with clear_errors(store.folder):
        names = [str(row[0]) for row in store.db.execute("SELECT DISTINCT audio FROM replies WHERE audio <> ''")]
    for name in sorted(names):
        named.add(name)
        try:
            path = store.audio_path(name)
            found.sounds += 1
            if not path.is_file():
                missing.append(f"audio/{name[:2]}/{name}.wav")
            elif sha256(path) != name:
                changed.append(f"audio/{name[:2]}/{name}.wav")
        except (OSError, OvertoneError) as error:
            changed.append(f"{name[:80]!r} ({error})")
    for files, what in ((missing, "missing"), (changed, "changed or unreadable")):
        if files:
            found.damage.append(
                f"{_counted(len(files), 'stored sound')} of replies {_are(files)} {what}: {_some(files)}; {COPY}"
            )
    left = [p for p in (store.folder / "audio").glob("??/*") if not (SHA.fullmatch(p.stem) and p.stem in named)]
    if left:
        found.notes.append(
            f"{_counted(len(left), 'file')} in audio/ {_are(left)} not named by any reply; the next run or score "
            "command removes what a stopped process left there"
        )


def _clips(store: Store, found: Verified) -> None:
    """Every clip that was sent and is still where it was, against the SHA-256 of what was sent."""
    meta, clips = store.meta(), store.clips()
    if not clips:
        return
    root = Path(meta["root"]) if meta.get("root") else None
    rate, max_rate = sent_rates(meta)
    absent: list[str] = []
    changed: list[str] = []
    for name, (sent, *_) in sorted(clips.items()):
        try:
            path = inside(root, name) if root is not None else None
            if path is None or not path.is_file():
                absent.append(name)
                continue
            found.clips += 1
            if load_sound(path, rate=rate, max_rate=max_rate, name=name).sha256 != sent:
                changed.append(name)
        except (DataError, OSError):
            changed.append(name)
    if changed:
        found.damage.append(
            f"{_counted(len(changed), 'clip')} under {root} {_are(changed)} not what was sent: {_some(changed)}; "
            "restore them from the benchmark's own files, or do the run again with another --out"
        )
    if absent:
        where = f"under {root}" if root is not None else "because the run does not say where its clips lie"
        found.notes.append(f"{len(absent):,} of {_counted(len(clips), 'clip')} could not be found {where}: not checked")


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _are(things: list[Any]) -> str:
    return "is" if len(things) == 1 else "are"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
