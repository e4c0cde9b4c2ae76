"""What leaves the arena: pairs for people to vote on, blind, with the key kept apart; and all votes."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from overtone.arena.contestants import Field
from overtone.arena.pairing import Pair
from overtone.arena.vote_store import Vote
from overtone.errors import StoreError, UsageError
from overtone.judges.rubric import Rubric
from overtone.runs.export_rows import cell, json_line

KEY = "key.csv"
FORMATS = (".csv", ".jsonl")


def check(path: Path) -> None:
    """UsageError for a file that cannot be written as CSV or JSON Lines."""
    if path.suffix.lower() not in FORMATS:
        raise UsageError(f"{path}: name a .csv or a .jsonl file")


def blind(field: Field, pairs: Sequence[Pair], rubric: Rubric, out: Path, key: Path) -> int:
    """Write the pairs without the runs' names, the sounds in a folder beside them, and who is who in `key`.

    People fill in `winner` (A, B or tie) and `rater`, and the file comes back with --votes.
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


def votes(found: Sequence[Vote], pairs: Mapping[str, Pair], out: Path) -> int:
    """Write every vote with the case it is about; the file can be taken in again."""
    rows = []
    for vote in found:
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


def write(out: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Rows as CSV, with cells no spreadsheet takes for a formula, or as JSON Lines."""
    held = list(rows)
    temporary = out.with_name(out.name + ".part")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        temporary.unlink(missing_ok=True)
        if out.suffix.lower() == ".jsonl":
            temporary.write_bytes(b"".join(json_line(row) for row in held))
        else:
            with temporary.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, list(held[0]) if held else ["pair"])
                writer.writeheader()
                writer.writerows({name: cell(value) for name, value in row.items()} for row in held)
        temporary.replace(out)
    except OSError as error:
        raise StoreError(f"cannot write {out}: {error.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)


def _copied(sound: Path | None, folder: Path, name: str) -> str:
    """A copy whose name says nothing of the run it comes from."""
    if sound is None:
        return ""
    target = folder / f"{name}{sound.suffix}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(sound, target)
    except OSError as error:
        raise StoreError(f"cannot write {target}: {error.strerror}") from None
    return f"{folder.name}/{target.name}"
