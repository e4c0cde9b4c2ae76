"""A run's replies and scores as rows for other tools: JSON lines, CSV or Parquet."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from overtone import registry
from overtone.errors import MissingExtra, UsageError
from overtone.languages import is_unspaced, language_of
from overtone.runs.records import Beside
from overtone.runs.store import ANSWERED, FAILED, Store, StoredReply
from overtone.schema import Score
from overtone.scores import CHOICE, ScoreInfo
from overtone.spec import suggest

ROW_GROUP = 10_000  # rows of a Parquet file that are held in memory at a time
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n\r"}
_FORMULA = "=+-@＝＋－＠"  # some spreadsheets take the wide ones for the narrow
_STATES = {ANSWERED: "answered", FAILED: "failed"}


def rows(store: Store, condition: str | None = None) -> Iterator[dict[str, Any]]:
    """One row for each ask and turn: what was asked, what came back, what it scored; all, or those of one condition."""
    replies = Beside((reply.ask, reply) for reply in store.replies())
    failures = Beside((failure.ask, failure) for failure in store.failures())
    scores = Beside(store.scores())
    earlier: dict[tuple[int, int], list[Score]] = {}  # of replies to earlier turns than the last
    for ask_id, turn, score in store.turn_scores():
        earlier.setdefault((ask_id, turn), []).append(score)
    for ask, state in store.asks():
        if condition not in (None, ask.condition):
            continue
        item = ask.item
        failure = next(iter(failures.of(ask.id)), None)
        last_scores = scores.of(ask.id)
        base: dict[str, Any] = {
            "item": item.id,
            "condition": ask.condition,
            "repeat": ask.repeat,
            "benchmark": item.benchmark,
            "level": item.level,
            "task": item.task,
            "category": item.category,
            "case": item.case,
            "group": item.group,
            "style": item.style,
            "cue": item.cue,
            "part": item.part or "core",
            "status": item.status,
            "source": item.source,
            "question": item.question,
            "gold": item.gold,
            "state": _STATES.get(state, "pending"),
            "failure": failure.reason if failure else "",
            "failure_detail": failure.detail if failure else "",
        }
        said: list[StoredReply | None] = [*replies.of(ask.id)] or [None]
        for reply in said:
            turn = reply.key.turn if reply else 0
            given = last_scores if turn >= len(item.turns) - 1 else earlier.get((ask.id, turn), [])
            spoken = item.turns[min(turn, len(item.turns) - 1)]
            reference = spoken.reference or (item.references[0] if item.references else "")
            language = language_of(item.language, reference or spoken.words or item.question)
            choice = next((s.detail for s in given if s.metric == CHOICE), None)
            yield {
                **base,
                "language": language,
                "unit": "characters" if is_unspaced(language) else "words",
                "turn": turn,
                "clip": spoken.clip.path if spoken.clip else "",
                "reference": reference,
                "text": reply.text if reply else "",
                "audio": reply.audio if reply else "",
                "finish": reply.finish if reply else "",
                "refused": bool(reply and reply.refused),
                "latency": reply.latency if reply else None,
                "attempts": reply.attempts if reply else (failure.attempts if failure else 0),
                "input_tokens": reply.usage.input_tokens if reply else 0,
                "output_tokens": reply.usage.output_tokens if reply else 0,
                "answer": str((choice or {}).get("answer") or ""),
                "answer_status": str((choice or {}).get("status") or ""),
                "read_by": "" if choice is None else str(choice.get("read_by") or "rules"),
                "scores": {s.metric: s.value for s in given},
                "signatures": sorted({s.signature for s in given}),
            }


def flat_rows(store: Store) -> Iterator[dict[str, Any]]:
    """Yield the same rows without nesting: each metric is a column `score_<metric>`, as in CSV and Parquet."""
    metrics = store.scored_metrics()
    return (_flat(row, metrics) for row in rows(store))


def export(store: Store, form: str, out: Path, condition: str | None = None) -> int:
    """Write the rows, all or those of one condition; returns how many. In CSV and Parquet each metric is a column
    `score_<metric>`. Raises UsageError for a condition that the run does not have."""
    if condition is not None:
        _check_condition(condition, {ask.condition for ask, _ in store.asks()})
    _check_not_folder(out)
    metrics = store.scored_metrics()
    temporary = out.with_name(out.name + ".part")
    try:
        temporary.unlink(missing_ok=True)  # in a stranger's folder it may be a link to elsewhere
        count = {"jsonl": _jsonl, "csv": _csv, "parquet": _parquet}[form](rows(store, condition), metrics, temporary)
        temporary.replace(out)
    finally:
        temporary.unlink(missing_ok=True)
    return count


def _check_not_folder(out: Path) -> None:
    if out.is_dir():
        raise UsageError(f"{out} is a folder; give the export a file name")


def export_scores(store: Store, out: Path) -> int:
    """Write what each metric's score is, as JSON: label, scale, direction, where it applies; returns how many. A
    judge's scores are described by its rubric."""
    _check_not_folder(out)
    declared = store.declared()
    known = [name for name in store.scored_metrics() if "@" not in name]
    made = [{"score": name, "column": f"score_{name}", **_described(declared[name])} for name in known]
    _write_json(made, out)
    return len(made)


def _described(info: ScoreInfo) -> dict[str, Any]:
    fields = ("label", "scale", "better", "low", "high", "reduce", "unit", "tasks")
    return {field: getattr(info, field) for field in fields}


def _write_json(made: Any, out: Path) -> None:
    temporary = out.with_name(out.name + ".part")
    temporary.unlink(missing_ok=True)
    temporary.write_bytes(msgspec.json.format(msgspec.json.encode(made)) + b"\n")
    temporary.replace(out)


def export_predictions(store: Store, out: Path, condition: str | None = None) -> int:
    """Write the replies in the form the benchmark's own evaluation takes; returns how many. A benchmark that has one
    says so by a function `predictions(root, replies)` in its file."""
    name, root = store.meta().get("benchmark", ""), store.meta().get("root", "")
    make = getattr(registry.find("benchmarks", name), "predictions", None)
    if make is None:
        raise UsageError(f"{name} has no form of its own for predictions; use --format jsonl")
    found = [
        (ask, text) for ask, turn, text, *_ in store.answered() if not ask.repeat and turn == len(ask.item.turns) - 1
    ]
    names = sorted({ask.condition for ask, _ in found})
    if condition is None and len(names) > 1:
        raise UsageError(f"the run has several conditions; name one: --condition {' or --condition '.join(names)}")
    if condition is not None:
        _check_condition(condition, set(names))
    _check_not_folder(out)
    made = make(Path(root), [(ask.item, text) for ask, text in found if condition in (None, ask.condition)])
    _write_json(made, out)
    return len(made)


def _check_condition(name: str, known: set[str]) -> None:
    if name not in known:
        has = ", ".join(sorted(known)) or "none"
        raise UsageError(f"the run has no replies under {name!r}{suggest(name, sorted(known))}; it has {has}")


def _jsonl(found: Iterable[dict[str, Any]], metrics: list[str], out: Path) -> int:
    count = 0
    with out.open("wb") as file:
        for row in found:
            file.write(json_line(row))
            count += 1
    return count


def _flat(row: dict[str, Any], metrics: list[str]) -> dict[str, Any]:
    scores, signatures = row.pop("scores"), row.pop("signatures")
    return {**row, **{f"score_{m}": scores.get(m) for m in metrics}, "signatures": "; ".join(signatures)}


def _csv(found: Iterable[dict[str, Any]], metrics: list[str], out: Path) -> int:
    count = 0
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = None
        for row in found:
            flat = {k: cell(v) for k, v in _flat(row, metrics).items()}
            if writer is None:
                writer = csv.DictWriter(file, list(flat))
                writer.writeheader()
            writer.writerow(flat)
            count += 1
    return count


def json_line(row: Any) -> bytes:
    """A row as one line of JSON. The line ends of Unicode are escaped, so that every reader of lines finds one line."""
    data = msgspec.json.encode(row)
    for end in ("\x85", "\u2028", "\u2029"):
        data = data.replace(end.encode(), f"\\u{ord(end):04x}".encode())
    return data + b"\n"


def cell(value: Any) -> Any:
    """A cell that no spreadsheet takes for a formula, with control characters escaped, line ends and tabs apart: text
    from a model is hostile."""
    if not isinstance(value, str):
        return value
    formula = next((c for c in value if c.isprintable() and not c.isspace()), "x") in _FORMULA
    return ("'" if formula else "") + value.translate(_CONTROL)


def _parquet(found: Iterable[dict[str, Any]], metrics: list[str], out: Path) -> int:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("Parquet needs pyarrow: pip install 'overtone[export]'") from None
    types = {f"score_{m}": pyarrow.float64() for m in metrics} | {"latency": pyarrow.float64()}
    stream = (_flat(row, metrics) for row in found)
    count, writer = 0, None
    try:
        while flat := list(itertools.islice(stream, ROW_GROUP)):
            columns = {name: [row[name] for row in flat] for name in flat[0]}
            table = pyarrow.table({k: pyarrow.array(v, type=types.get(k)) for k, v in columns.items()})
            writer = writer or pyarrow.parquet.ParquetWriter(out, table.schema)
            writer.write_table(table)
            count += len(flat)
    finally:
        if writer is not None:
            writer.close()
    if not count:
        pyarrow.parquet.write_table(pyarrow.table({}), out)
    return count
