"""The marks of a run's items in its store: what the model heard of each in training, readable without the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

from overtone.heard import MARKS, Mark
from overtone.runs.folder_safety import reading, select

if TYPE_CHECKING:
    from overtone.runs.records import Rows
    from overtone.runs.store import Store

STATEMENT = "heard"  # key in the meta table: what the model states that it heard, in short


def read_marks(store: Rows) -> dict[str, Mark]:
    """Return the marks of a run's items by id, without items of which nothing was heard."""
    sql = "SELECT i.id, h.mark, h.origin FROM heard h JOIN items i ON i.seq = h.item WHERE h.mark <> '' ORDER BY h.item"
    with reading(store.folder):
        marks = {item: Mark(level, origin) for item, level, origin in select(store.db, tuple[str, str, str], sql)}
        if unknown := {mark.level for mark in marks.values()} - set(MARKS):
            raise ValueError(f"an unknown mark {min(unknown)[:40]!r}")
        return marks


def marked_items(store: Rows) -> set[str]:
    """Return the ids of all items that were compared with what the model heard."""
    sql = "SELECT i.id FROM heard h JOIN items i ON i.seq = h.item"
    with reading(store.folder):
        return {item for (item,) in select(store.db, tuple[str], sql)}


def write_marks(store: Store, marks: Mapping[str, Mark]) -> None:
    """Add the marks of items that the store has. They are durable after the next `commit`."""
    rows: Iterable[tuple[str, str, str]] = [(mark.level, mark.what, item) for item, mark in marks.items()]
    with reading(store.folder):
        if rows and not store.db.in_transaction:
            store.db.execute("BEGIN IMMEDIATE")
        store.db.executemany("INSERT OR REPLACE INTO heard SELECT seq, ?, ? FROM items WHERE id = ?", rows)


def start_marks(store: Store, statement: Mapping[str, object]) -> None:
    """Store the model's statement. If it differs from the stored one, the marks are forgotten."""
    text = msgspec.json.encode(statement).decode()
    if store.meta().get(STATEMENT) == text:
        return
    with reading(store.folder):
        store.commit()
        store.db.execute("BEGIN IMMEDIATE")
        store.db.execute("DELETE FROM heard")
    store.set_meta({STATEMENT: text})
