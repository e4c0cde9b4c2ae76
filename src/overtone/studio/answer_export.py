"""Answers as files: CSV with one label per row, JSON Lines with one screen per line, or Label Studio's JSON.

The CSV is a label file: `overtone judge validate --labels` reads it. Every export is noted in the study's log, so that
a withdrawal can name it, and every export lists the people who have withdrawn, whose rows must be deleted from earlier
copies.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from overtone.errors import UsageError
from overtone.paths import shown, write_whole
from overtone.runs.export_rows import cell, json_line
from overtone.studio import label_studio
from overtone.studio.labels.collect import collect
from overtone.studio.labels.given import Given
from overtone.studio.labels.rows import label_rows
from overtone.studio.store import Store
from overtone.studio.study import Study

Format = Literal["csv", "jsonl", "label-studio"]
FORMATS: tuple[Format, ...] = ("csv", "jsonl", "label-studio")
RENAMED = {"reply_sound": "sound", "note": "remark"}  # sounds lie in the run, and a remark is one person's
ABOUT = ("study", "session", "order", "kind", "usable", "payable", "at", "ms", "headphones", "swap", "unit")


class Exported(Struct, frozen=True):
    """A written export. `withdrawn` are the people to delete from earlier copies, and `copies` where these are."""

    path: Path
    rows: int
    withdrawn: tuple[str, ...]
    copies: tuple[str, ...]


def export(study: Study, store: Store, form: Format, out: Path) -> Exported:
    """Write the answers of a study to a file, and note it in the study's log."""
    if out.is_dir():
        raise UsageError(f"{shown(str(out))} is a folder; give the export a file name")
    store.log.exported(
        form, str(out.resolve())
    )  # before the answers are read: who withdraws meanwhile is named with it
    data, rows = content(study, collect(study, store), form)
    withdrawn = store.withdrawals.all()
    copies = tuple(dict.fromkeys(place for one in withdrawn for place in one.exports))
    write_whole(out, data)
    return Exported(out, rows, tuple(one.label for one in withdrawn), copies)


def rows_text(study: Study, store: Store, form: Format) -> bytes:
    """Return the answers for a download by the owner, and note it in the study's log."""
    store.log.exported(form, "download by the owner")  # before the answers are read, as in `export`
    data, _ = content(study, collect(study, store), form)
    return data


def content(study: Study, given: Sequence[Given], form: Format) -> tuple[bytes, int]:
    """Return the bytes of an export and its number of rows."""
    if form == "csv":
        rows = [row for one in given for row in _labels(study, one)]
        return _csv(rows), len(rows)
    if form == "jsonl":
        return b"".join(json_line(_screen(study, one)) for one in given), len(given)
    tasks = label_studio.tasks(study, given)
    return msgspec.json.format(msgspec.json.encode(tasks)) + b"\n", len(tasks)


def _about(study: Study, one: Given) -> dict[str, Any]:
    values = (study.id, one.session, one.seq, one.kind, one.usable, one.payable, one.date, one.ms, one.headphones)
    return dict(zip(ABOUT, (*values, int(one.swap), one.unit.id), strict=True))


def _labels(study: Study, one: Given) -> list[dict[str, Any]]:
    """Return a row per label, with the design's columns first, as a label file has them.

    The id names the run too, because several runs answered the same item.
    """
    about = _about(study, one)
    rows = []
    for row in label_rows(study, one):
        if row.kind == "labels":
            cells = {RENAMED.get(name, name): value for name, value in row.cells.items()}
            runs = "|".join(str(cells[key]) for key in ("system_a", "system_b") if key in cells) or row.run
            item = cells.get("id", "")
            rows.append({**cells, "id": f"{runs}/{item}", "item": item, "run": row.run, **about})
    return rows


def _screen(study: Study, one: Given) -> dict[str, Any]:
    """Return everything about one screen, with the answers as they were given on it."""
    unit = one.unit
    replies = [
        {"run": r.run, "item": r.item, "condition": r.condition, "repeat": r.repeat, "sound": r.sound.sha256}
        for r in unit.replies
    ]
    return {
        **_about(study, one), "rater": one.rater, "group": unit.group, "system": unit.system, "replies": replies,
        "values": one.values, "failed": list(one.failed), "slot": one.slot, "source": one.source,
    }  # fmt: skip


def _csv(rows: Sequence[dict[str, Any]]) -> bytes:
    names = list(dict.fromkeys(name for row in rows for name in row))
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, names or ["id", "dimension", "value", "rater"], restval="")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: cell(_plain(value)) for name, value in row.items()})
    return file.getvalue().encode()


def _plain(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return " ".join(map(str, value)) if isinstance(value, list) else value
