"""Check a run folder without changing it: the database, every stored sound, and every clip that still exists."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from overtone.audio import load_sound
from overtone.errors import DataError, OvertoneError, StoreError
from overtone.paths import inside, sha256
from overtone.runs.database import clear_errors
from overtone.runs.people_labels import read_labels, read_studies
from overtone.runs.read_only import connect_reader
from overtone.runs.records import SHA
from overtone.runs.sent_clips import sent_rates
from overtone.runs.store import Store
from overtone.text import count

NAMED = 3  # maximum number of examples per kind of damage
MESSAGES = 100  # maximum number of messages from SQLite's own check
_DAMAGED = "run.db is damaged"
COPY = "restore it from a copy of the run, or do the run again with another --out"
# Kinds of invalid rows: (description, SQL that counts them).
_ORPHANS = (
    ("asks of items that are missing", "SELECT count(*) FROM asks WHERE item NOT IN (SELECT seq FROM items)"),
    (
        "likelihoods of replies that are missing",
        "SELECT count(*) FROM likelihoods l "
        "WHERE NOT EXISTS (SELECT 1 FROM replies r WHERE r.ask = l.ask AND r.turn = l.turn)",
    ),
    (
        "timings of replies that are missing",
        "SELECT count(*) FROM timings t "
        "WHERE NOT EXISTS (SELECT 1 FROM replies r WHERE r.ask = t.ask AND r.turn = t.turn)",
    ),
    (
        "sessions of replies that are missing",
        "SELECT count(*) FROM sessions s "
        "WHERE NOT EXISTS (SELECT 1 FROM replies r WHERE r.ask = s.ask AND r.turn = s.turn)",
    ),
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
    ("labels of asks that are missing", "SELECT count(*) FROM labels WHERE ask NOT IN (SELECT id FROM asks)"),
    (
        "labels of studies that are missing",
        "SELECT count(*) FROM labels WHERE study NOT IN (SELECT id FROM studies)",
    ),
    (
        "asks that are marked as answered but have no reply",
        "SELECT count(*) FROM asks WHERE state = 1 AND id NOT IN (SELECT ask FROM replies)",
    ),
)


class Verified(Struct):
    """The result of checking a run folder. The run is intact if `damage` is empty; `notes` are other remarks."""

    folder: Path
    damage: list[str] = []
    notes: list[str] = []
    replies: int = 0
    sounds: int = 0
    clips: int = 0


def verify(folder: Path) -> Verified:
    """Check a run. Raises StoreError if the folder is not a run."""
    path = folder / "run.db"
    if not path.is_file():
        raise StoreError(f"{folder} is not a run: it has no run.db")
    result = Verified(folder)
    result.damage += _pages(path)
    verdicts = folder / "verdicts.db"
    if verdicts.is_file():
        result.damage += _pages(verdicts)
    try:
        store = Store.read(folder)
    except StoreError as error:
        return _with(result, str(error).removeprefix(f"{folder}: "))
    with store:
        if not result.damage:  # the content of damaged pages is meaningless
            result.damage += _rows(store)
        steps: tuple[Callable[[Store, Verified], None], ...] = (_count, _sounds, _clips)
        for step in steps:
            try:
                step(store, result)
            except OvertoneError as error:
                _with(result, str(error).removeprefix(f"{folder}: "))
    return result


def _with(result: Verified, sentence: str) -> Verified:
    """Add a sentence, unless it only repeats that the database is damaged."""
    known = sentence in result.damage or (sentence.startswith(_DAMAGED) and result.damage[:1])
    if not known:
        result.damage.append(sentence)
    return result


# ── the database ────────────────────────────────────────────────────────────────────────────────────────────────────
def _pages(path: Path) -> list[str]:
    """Return the faults that SQLite's own check reports for a file."""
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
    faults = f"{MESSAGES} or more faults" if len(messages) >= MESSAGES else count(len(lines), "fault")
    return [f"{path.name} is damaged ({faults}: {'; '.join(lines[:NAMED])}); {COPY}"]


def _rows(store: Store) -> Iterator[str]:
    """Yield the damage in rows: invalid ones, and references to missing rows."""
    readers: tuple[Callable[[], Iterable[Any]], ...] = (
        store.meta,
        store.events,
        store.declarations,
        lambda: (store.suite(),),
        store.items,
        store.asks,
        store.replies,
        store.timings,
        lambda: [store.session(*key) for key in store.sessions()],
        store.failures,
        store.clips,
        lambda: store.scores(every=True),
        lambda: store.turn_scores(every=True),
        lambda: read_labels(store),
        lambda: read_studies(store),
    )
    for read in readers:
        try:
            for _ in read():
                pass
        except StoreError as error:
            yield str(error).removeprefix(f"{store.folder}: ")
    for what, sql in _ORPHANS:
        with clear_errors(store.folder):
            number = store.db.execute(sql).fetchone()[0]
        if number:
            yield f"run.db contains {number:,} {what}; {COPY}"


# ── sounds and clips ────────────────────────────────────────────────────────────────────────────────────────────────
def _count(store: Store, result: Verified) -> None:
    with clear_errors(store.folder):
        result.replies = store.db.execute("SELECT count(*) FROM replies").fetchone()[0]


def _sounds(store: Store, result: Verified) -> None:
    """Check every reply's sound against its name, which is the SHA-256 of its bytes."""
    missing: list[str] = []
    changed: list[str] = []
    named = store.sounds()
    for name in sorted(named):
        try:
            path = store.audio_path(name)
            result.sounds += 1
            if not path.is_file():
                missing.append(f"audio/{name[:2]}/{name}.wav")
            elif sha256(path) != name:
                changed.append(f"audio/{name[:2]}/{name}.wav")
        except (OSError, OvertoneError) as error:
            changed.append(f"{name[:80]!r} ({error})")
    for files, what in ((missing, "missing"), (changed, "changed or unreadable")):
        if files:
            result.damage.append(
                f"{count(len(files), 'stored sound')} of replies {_are(files)} {what}: {_some(files)}; {COPY}"
            )
    left = [p for p in (store.folder / "audio").glob("??/*") if not (SHA.fullmatch(p.stem) and p.stem in named)]
    if left:
        result.notes.append(
            f"{count(len(left), 'file')} in audio/ {_are(left)} not used by any reply; the next run or score command "
            "removes files that a stopped process left there"
        )


def _clips(store: Store, result: Verified) -> None:
    """Check every clip that was sent and still exists against the SHA-256 of the bytes that were sent."""
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
            result.clips += 1
            if load_sound(path, rate=rate, max_rate=max_rate, name=name).sha256 != sent:
                changed.append(name)
        except (DataError, OSError):
            changed.append(name)
    if changed:
        result.damage.append(
            f"{count(len(changed), 'clip')} under {root} {_are(changed)} not what was sent: {_some(changed)}; "
            "restore them from the benchmark's own files, or do the run again with another --out"
        )
    if absent:
        where = f"under {root}" if root is not None else "because the run does not store the path of its clips"
        result.notes.append(f"{len(absent):,} of {count(len(clips), 'clip')} could not be found {where}: not checked")


def _are(things: list[Any]) -> str:
    return "is" if len(things) == 1 else "are"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
