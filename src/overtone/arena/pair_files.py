"""The arena's export files: blind pairs for people to vote on, a separate key with the runs' names, and all votes."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from overtone.arena.contestants import Field
from overtone.arena.pairing import Pair
from overtone.arena.vote_store import Vote
from overtone.errors import StoreError, UsageError
from overtone.judges.rubric import Rubric
from overtone.paths import write_whole
from overtone.runs.export_rows import cell, json_line

KEY = "key.csv"
FORMATS = (".csv", ".jsonl")


def check(path: Path) -> None:
    """Raise UsageError for a file that is neither CSV nor JSON Lines."""
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"{path}: name a .csv or a .jsonl file")


def blind(field: Field, pairs: Sequence[Pair], rubric: Rubric, out: Path, key: Path) -> int:
    """Write the pairs without the runs' names to `out`, sounds to a folder next to it, and the runs' names to `key`.

    People fill in `winner` (A, B or tie) and `rater`; the file is then read with --votes. Return the number of pairs.
    """
    sounds = out.with_name(f"{out.stem}-sounds")
    rows = []
    for pair in pairs:
        subject = field.subject(pair, rubric)
        row: dict[str, Any] = {"pair": pair.id}
        row |= {name: subject.texts.get(name, "") for name in ("cue", "topic", "words", "reply_a", "reply_b")}
        for name, label in (("clip", "user"), ("a", "a"), ("b", "b")):
            row[f"{label}_sound"] = _copied(subject.sounds.get(name), sounds, f"{pair.id}-{label}")
        rows.append({**row, "winner": "", "rater": ""})
    write(out, rows)
    write(key, [{"pair": pair.id, "a": pair.a, "b": pair.b, "case": pair.case, "key": pair.key} for pair in pairs])
    return len(rows)


def votes(cast: Sequence[Vote], pairs: Mapping[str, Pair], out: Path) -> int:
    """Write every vote with its case, in a form that --votes reads. Return the number of votes."""
    rows = []
    for vote in cast:
        pair = pairs[vote.pair]
        rows.append(
            {
                "pair": vote.pair,
                "case": pair.case,
                "condition": pair.key.rpartition("|")[2],
                "group": pair.group,
                "cue": pair.cue,
                "a": vote.a,
                "b": vote.b,
                "winner": vote.winner,
                "rater": vote.rater,
                "kind": vote.kind,
                "rubric": vote.rubric,
                "repeat": vote.repeat,
            }
        )
    write(out, rows)
    return len(rows)


def write(out: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as JSON Lines or as CSV. In CSV, texts that a spreadsheet would run as formulas are escaped. Raises
    StoreError."""
    if out.suffix.lower() == ".jsonl":
        data = b"".join(json_line(row) for row in rows)
    else:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, list(rows[0]) if rows else ["pair"])
        writer.writeheader()
        writer.writerows({name: cell(value) for name, value in row.items()} for row in rows)
        data = text.getvalue().encode()
    try:
        write_whole(out, data)
    except OSError as error:
        raise StoreError(f"cannot write {out}: {error.strerror}") from None


def _copied(sound: Path | None, folder: Path, name: str) -> str:
    """Copy a sound to `folder` as `name`, which does not reveal the run. Return the copy's path for the export."""
    if sound is None:
        return ""
    target = folder / f"{name}{sound.suffix}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(sound, target)
    except OSError as error:
        raise StoreError(f"cannot write {target}: {error.strerror}") from None
    return f"{folder.name}/{target.name}"
