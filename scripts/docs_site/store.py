"""The reference of the store's tables, from runs/schema.sql, its comments, and SQLite's own reading of it."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import overtone
from scripts.docs_site.markdown import block, code, plain, table

SCHEMA = Path(overtone.__file__).parent / "runs" / "schema.sql"
_STATEMENT = re.compile(r"(?P<comment>(?:^--.*\n)*)^CREATE TABLE (?P<name>\w+)", re.M)


def pages() -> dict[str, str]:
    """Return the page by path."""
    sql = SCHEMA.read_text(encoding="utf-8")
    intro = (
        "# Store schema\n\n"
        "A run's `run.db` is an SQLite database with these tables. This page is generated from `runs/schema.sql`\n"
        "and its comments. [Runs](runs.md#what-a-folder-holds) describes what a row of each table is, and\n"
        "[reading a stored run](../how-to/read-a-run.md) has queries.\n"
    )
    return {"reference/store.md": "\n".join([intro, *_tables(sql), "## The statements\n", block(sql, "sql")])}


def comments(sql: str) -> dict[str, str]:
    """Return the comment above each table's statement. The lines that begin a version are not part of it."""
    found = {}
    for match in _STATEMENT.finditer(sql):
        lines = [line.removeprefix("--").strip() for line in match["comment"].splitlines()]
        found[match["name"]] = " ".join(line for line in lines if not re.fullmatch(r"version \d+", line))
    return found


def _tables(sql: str) -> Iterator[str]:
    notes = comments(sql)
    with sqlite3.connect(":memory:") as db:
        db.executescript(sql)
        for name in notes:
            yield f"## `{name}`\n"
            if notes[name]:
                yield plain(notes[name]) + "\n"
            keys = {row[3]: f"{row[2]}.{row[4]}" for row in db.execute(f"PRAGMA foreign_key_list({name})")}
            rows = []
            for _, column, kind, required, default, key in db.execute(f"PRAGMA table_info({name})"):
                notes_of_column = [
                    "key" if key else "",
                    "" if required or key else "may be NULL",
                    f"default {default}" if default is not None else "",
                    f"refers to `{keys[column]}`" if column in keys else "",
                ]
                rows.append([code(column), kind.lower() or "any", ", ".join(filter(None, notes_of_column))])
            yield table(["column", "type", "notes"], rows)
