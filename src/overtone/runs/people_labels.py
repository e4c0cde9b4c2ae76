"""People's answers about a run's replies: pseudonymous labels in the run's store, written by `overtone studio sync`.

A study replaces all its labels of a run at once, so syncing twice changes nothing, and labels that the study no longer
has (a person withdrew, a run was restored from a backup) are removed. Removed labels leave no bytes in the file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from overtone.runs.folder_safety import reading, select
from overtone.runs.records import Rows
from overtone.runs.store import Store

Value = int | float | str | list[str]
Kind = Literal["reply", "pair", "clip"]
MAX_LABEL_TEXT = 20_000  # characters of one answer
_WAIT_MS = 500  # for readers of the write-ahead log


class Question(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One question of a study, described so that its answers can be read without the rubric.

    `values` maps each choice to its number, for choices that have an order. `better` is higher, lower or neither. A
    question with `cue` is one of many yes-or-no questions: whether this cue was heard.
    """

    label: str
    question: str = ""
    low: float | None = None
    high: float | None = None
    values: dict[str, float] = {}
    choices: tuple[str, ...] = ()
    better: str = "higher"
    rubric: str = ""  # the rubric's identity: name, version and hash
    cue: str = ""

    def number(self, value: Value) -> float | None:
        """Return an answer as a number; None for an answer without an order, e.g. a list or free text."""
        if isinstance(value, str):
            return self.values.get(value)
        return None if isinstance(value, list) else float(value)


class LabelStudy(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A study whose labels a run holds: what was asked, and what people saw besides the sounds. `system` is what the
    study calls this run."""

    id: str
    title: str
    design: str
    questions: dict[str, Question]
    shows: tuple[str, ...] = ()
    systems: tuple[str, ...] = ()
    system: str = ""


class Seen(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the rater met the reply. In a pair, `side` is this reply's side of the unit, and `other` names the other run
    and the SHA-256 of its sound. `swap`: the second reply of the unit was played first. `clip`: people heard what the
    user said, not the reply."""

    order: int = 0  # place in the person's session, from 1
    kind: str = "real"  # or anchor, repeat
    group: str = ""
    style: str = ""
    side: str = ""
    other: str = ""
    other_sound: str = ""
    swap: bool = False
    clip: bool = False


class Label(Struct, frozen=True, kw_only=True):
    """One person's answer to one question about one reply, or about a pair with this reply. In a pair, "A" is the
    unit's first reply, whatever the order on the screen. `usable` is the verdict of the study's rules."""

    ask: int
    study: str
    unit: str
    rater: str
    dimension: str
    value: Value
    usable: bool
    at: str  # the date, without the time
    seen: Seen = Seen()

    @property
    def kind(self) -> Kind:
        return "pair" if self.seen.side else "clip" if self.seen.clip else "reply"


class Changes(Struct, frozen=True):
    """The changes that a sync made in one run. `leftover` says why removed labels may still be in a file, or is ""."""

    added: int = 0
    removed: int = 0
    changed: int = 0
    leftover: str = ""

    @property
    def any(self) -> bool:
        return bool(self.added or self.removed or self.changed)


_encode = msgspec.json.Encoder().encode
_value = msgspec.json.Decoder(Value)
_seen = msgspec.json.Decoder(Seen)
_study = msgspec.json.Decoder(LabelStudy)
_COLUMNS = "ask, study, unit, rater, dimension, value, usable, at, body"
_Row = tuple[int, str, str, str, str, bytes, int, str, bytes]


def read_labels(store: Rows, asks: Sequence[int] | None = None) -> Iterator[Label]:
    """Yield the labels of a run in the order of its asks, all or those of some asks."""
    with reading(store.folder):
        if asks is None:
            yield from map(_label, _rows(store, "1"))
        else:
            chosen = _encode(list(asks)).decode()
            yield from map(_label, _rows(store, "ask IN (SELECT value FROM json_each(?))", chosen))


def read_studies(store: Rows) -> dict[str, LabelStudy]:
    """Return the studies whose labels the run holds, by id."""
    with reading(store.folder):
        rows = select(store.db, tuple[str, bytes], "SELECT id, body FROM studies ORDER BY id")
        return {name: _study.decode(body) for name, body in rows}


def write_labels(store: Store, study: LabelStudy, labels: Sequence[Label]) -> Changes:
    """Replace the study's labels of an open run in one transaction. Without a difference, nothing is written."""
    wanted = {_key(label): _row(label) for label in labels}
    with reading(store.folder):
        stored = {(row[0], *row[2:5]): row for row in _rows(store, "study = ?", study.id)}
        removed = stored.keys() - wanted.keys()
        added = wanted.keys() - stored.keys()
        changed = [key for key in wanted.keys() & stored.keys() if wanted[key] != stored[key]]
        described = read_studies(store).get(study.id)
        is_new = described != (study if labels else None)
        if not (removed or added or changed or is_new):
            return Changes(leftover=_truncate_log(store.db))
        store.db.execute("PRAGMA secure_delete=ON")
        store.commit()
        store.db.execute("BEGIN IMMEDIATE")
        gone = [(key[0], study.id, *key[1:]) for key in (*removed, *changed)]
        store.db.executemany(
            "DELETE FROM labels WHERE ask = ? AND study = ? AND unit = ? AND rater = ? AND dimension = ?", gone
        )
        marks = ",".join("?" * 9)
        store.db.executemany(f"INSERT INTO labels VALUES ({marks})", [wanted[key] for key in (*added, *changed)])
        store.db.execute("DELETE FROM studies WHERE id = ?", (study.id,))
        if labels:
            store.db.execute("INSERT INTO studies VALUES (?, ?)", (study.id, _encode(study)))
        store.commit()
        leftover = ""
        if removed or changed:
            store.db.execute("VACUUM")
            leftover = _truncate_log(store.db)
    return Changes(len(added), len(removed), len(changed), leftover)


def _truncate_log(db: sqlite3.Connection) -> str:
    """Empty the write-ahead log, which holds earlier versions of rows. Return why this was not possible, or ""."""
    if db.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        return ""
    db.execute(f"PRAGMA busy_timeout={_WAIT_MS}")  # a report may read the run for minutes
    busy = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    db.execute("PRAGMA busy_timeout=30000")
    return "another process is reading the run, so run.db-wal may still hold removed labels; sync again" if busy else ""


def _rows(store: Rows, where: str, *given: str) -> Iterator[_Row]:
    sql = f"SELECT {_COLUMNS} FROM labels WHERE {where} ORDER BY ask, study, unit, rater, dimension"
    return select(store.db, tuple[int, str, str, str, str, bytes, int, str, bytes], sql, given)


def _key(label: Label) -> tuple[Any, ...]:
    return label.ask, label.unit, label.rater, label.dimension


def _row(label: Label) -> _Row:
    value, body = _encode(label.value), _encode(label.seen)
    key = (label.ask, label.study, label.unit, label.rater, label.dimension)
    return (*key, value, int(label.usable), label.at, body)


def _label(row: _Row) -> Label:
    ask, study, unit, rater, dimension, value, usable, at, body = row
    decoded = _value.decode(value)
    if isinstance(decoded, str) and len(decoded) > MAX_LABEL_TEXT:
        raise ValueError(f"a label of {len(decoded)} characters")
    return Label(
        ask=ask, study=study, unit=unit, rater=rater, dimension=dimension, value=decoded, usable=bool(usable), at=at,
        seen=_seen.decode(body),
    )  # fmt: skip
