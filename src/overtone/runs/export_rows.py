"""Export a run's replies and scores as rows for other tools: JSON lines, CSV or Parquet."""

from __future__ import annotations

import csv
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from overtone import registry
from overtone.errors import MissingExtra, OvertoneError, UsageError, install_line
from overtone.heard import Mark
from overtone.languages import is_unspaced, language_of
from overtone.paths import inside
from overtone.runs.marks import read_marks
from overtone.runs.people_labels import Label, LabelStudy, read_labels, read_studies
from overtone.runs.records import Beside
from overtone.runs.store import ANSWERED, FAILED, Store, StoredReply
from overtone.schema import Likelihood, Score, Timings
from overtone.scores import CHOICE
from overtone.spec import suggest

ROW_GROUP = 10_000  # rows of a Parquet file that are kept in memory at a time
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n\r"}
_FORMULA = "=+-@＝＋－＠"  # some spreadsheets treat the full-width characters like the others
_STATES = {ANSWERED: "answered", FAILED: "failed"}
TIMINGS = tuple(name for name in Timings.__struct_fields__ if name != "origin")
_NESTED = ("messages", "options", "likelihoods")  # lists that are one text of JSON in CSV and Parquet


def rows(store: Store, condition: str | None = None, beside: Path | None = None) -> Iterator[dict[str, Any]]:
    """Yield a row per ask and turn, with the item, the reply and its scores, for all conditions or for one.

    Paths of sounds are relative to the folder `beside`, or absolute without it.
    """
    meta = store.meta()
    run = {"run": meta.get("label") or store.folder.resolve().name, "model": meta.get("model", "")}
    paths = SoundPaths(store, meta.get("root", ""), beside)
    replies = Beside((reply.ask, reply) for reply in store.replies())
    failures = Beside((failure.ask, failure) for failure in store.failures())
    scores = Beside(store.scores())
    studies = read_studies(store)
    marks = read_marks(store)
    labels = Beside((label.ask, label) for label in (read_labels(store) if studies else ()))
    earlier: dict[tuple[int, int], list[Score]] = {}  # (ask, turn) → scores, for turns before the last
    for ask_id, turn, score in store.turn_scores():
        earlier.setdefault((ask_id, turn), []).append(score)
    for ask, state in store.asks():
        if condition not in (None, ask.condition):
            continue
        item = ask.item
        failure = next(iter(failures.of(ask.id)), None)
        last_scores = scores.of(ask.id)
        people = _people(labels.of(ask.id), studies)
        base: dict[str, Any] = {
            **run,
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
            "heard": marks.get(item.id, Mark()).level,
            "heard_origin": marks.get(item.id, Mark()).what,
            "question": item.question,
            "options": [{"letter": option.letter, "text": option.text} for option in item.options],
            "gold": item.gold,
            "state": _STATES.get(state, "pending"),
            "failure": failure.reason if failure else "",
            "failure_detail": failure.detail if failure else "",
        }
        by_turn: list[StoredReply | None] = [*replies.of(ask.id)] or [None]
        for reply in by_turn:
            turn = reply.key.turn if reply else 0
            turn_scores = last_scores if turn >= len(item.turns) - 1 else earlier.get((ask.id, turn), [])
            spoken = item.turns[min(turn, len(item.turns) - 1)]
            reference = spoken.reference or (item.references[0] if item.references else "")
            language = language_of(item.language, reference or spoken.words or item.question)
            choice = next((s.detail for s in turn_scores if s.metric == CHOICE), None)
            yield {
                **base,
                "language": language,
                "unit": "characters" if is_unspaced(language) else "words",
                "turn": turn,
                "clip": spoken.clip.path if spoken.clip else "",
                "clip_file": paths.clip(spoken.clip.path) if spoken.clip else "",
                "messages": store.sent(ask.id, turn) if reply else [],
                "reference": reference,
                "text": reply.text if reply else "",
                "audio": reply.audio if reply else "",
                "audio_file": paths.reply(reply.audio) if reply and reply.audio else "",
                "session_file": paths.reply(reply.recording) if reply and reply.recording else "",
                "finish": reply.finish if reply else "",
                "refused": bool(reply and reply.refused),
                "notes": "\n".join(reply.notes) if reply else "",
                "latency": reply.latency if reply else None,
                **_timed(reply),
                "attempts": reply.attempts if reply else (failure.attempts if failure else 0),
                "input_tokens": reply.usage.input_tokens if reply else 0,
                "output_tokens": reply.usage.output_tokens if reply else 0,
                "input_audio_tokens": reply.usage.input_audio_tokens if reply else 0,
                "output_audio_tokens": reply.usage.output_audio_tokens if reply else 0,
                "reported_model": reply.model if reply else "",
                "answer": str((choice or {}).get("answer") or ""),
                "answer_status": str((choice or {}).get("status") or ""),
                "read_by": "" if choice is None else str(choice.get("read_by") or "rules"),
                "likelihoods": [[_likelihood(one) for one in step] for step in reply.likelihoods] if reply else [],
                "scores": {s.metric: s.value for s in turn_scores},
                "signatures": sorted({s.signature for s in turn_scores}),
                "people": people if turn >= len(item.turns) - 1 else {},
            }


class SoundPaths:
    """Paths of a run's clips and spoken replies, for programs that play them. A file that is missing has none."""

    def __init__(self, store: Store, root: str, beside: Path | None) -> None:
        self._store, self._root = store, Path(root) if root else None
        self._beside = beside.resolve() if beside else None
        self._known: dict[str, str] = {}

    def clip(self, name: str) -> str:
        """Return the path of a clip, given its path in the benchmark's folder; "" if there is no such file."""
        if name not in self._known:
            self._known[name] = self._written(inside, self._root, name) if self._root else ""
        return self._known[name]

    def reply(self, name: str) -> str:
        """Return the path of a spoken reply, given its name in the store; "" if there is no such file."""
        return self._written(lambda _, audio: self._store.audio_path(audio), Path(), name)

    def _written(self, find: Callable[[Path, str], Path], root: Path, name: str) -> str:
        try:
            path = find(root, name).resolve()
        except OvertoneError:  # a name that leaves the folder, in a run from elsewhere
            return ""
        if not path.is_file():
            return ""
        return Path(os.path.relpath(path, self._beside)).as_posix() if self._beside else str(path)


def _people(labels: Sequence[Label], studies: Mapping[str, LabelStudy]) -> dict[str, dict[str, float | int]]:
    """Return question → mean and number of people's usable answers about a reply, without saying who gave them."""
    values: dict[str, list[float]] = {}
    for label in labels:
        question = studies[label.study].questions.get(label.dimension) if label.study in studies else None
        number = (
            question.number(label.value) if question is not None and label.usable and label.kind == "reply" else None
        )
        if number is not None:
            values.setdefault(label.dimension, []).append(number)
    return {key: {"mean": sum(given) / len(given), "answers": len(given)} for key, given in values.items()}


def _timed(reply: StoredReply | None) -> dict[str, Any]:
    """Return the columns of a reply's timings; None for those that were not measured."""
    timings = reply.timings if reply else None
    return {
        **{name: getattr(timings, name, None) for name in TIMINGS},
        "timing_origin": timings.origin if timings else "",
    }


def _likelihood(one: Likelihood) -> dict[str, float | int | None]:
    return {"total": one.total, "tokens": one.tokens, "prior": one.prior}


def flat_rows(store: Store, condition: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield the same rows without nesting, as in CSV and Parquet: each metric is a column `score_<metric>`, and lists
    are one text of JSON."""
    metrics = store.scored_metrics()
    return (_flat(row, metrics) for row in rows(store, condition))


def export(store: Store, form: str, out: Path, condition: str | None = None) -> int:
    """Write the rows of all conditions or of one; return their number.

    In CSV and Parquet, each metric is a column `score_<metric>`. Raises UsageError for an unknown condition.
    """
    if condition is not None:
        check_condition(condition, {ask.condition for ask, _ in store.asks()})
    check_not_folder(out)
    metrics = store.scored_metrics()
    temporary = out.with_name(out.name + ".part")
    try:
        temporary.unlink(missing_ok=True)  # in an untrusted folder it may be a link to another place
        count = {"jsonl": _jsonl, "csv": _csv, "parquet": _parquet}[form](
            rows(store, condition, out.parent), metrics, temporary
        )
        temporary.replace(out)
    finally:
        temporary.unlink(missing_ok=True)
    return count


def check_not_folder(out: Path) -> None:
    """Raise UsageError if the file to be written is a folder."""
    if out.is_dir():
        raise UsageError(f"{out} is a folder; give the export a file name")


def export_scores(store: Store, out: Path) -> int:
    """Write the declaration of each metric's score as JSON; return their number.

    Judges' scores are left out, because their rubrics describe them.
    """
    check_not_folder(out)
    declared = store.declared()
    names = [name for name in store.scored_metrics() if "@" not in name]
    fields = ("label", "scale", "better", "low", "high", "reduce", "unit", "tasks")
    described = {name: {field: getattr(declared[name], field) for field in fields} for name in names}
    _write_json([{"score": name, "column": f"score_{name}", **described[name]} for name in names], out)
    return len(names)


def _write_json(made: Any, out: Path) -> None:
    temporary = out.with_name(out.name + ".part")
    temporary.unlink(missing_ok=True)
    temporary.write_bytes(msgspec.json.format(msgspec.json.encode(made)) + b"\n")
    temporary.replace(out)


def export_predictions(store: Store, out: Path, condition: str | None = None) -> int:
    """Write the replies in the format of the benchmark's own evaluation; return their number.

    The benchmark's file must define a function `predictions(root, replies)`.
    """
    name, root = store.meta().get("benchmark", ""), store.meta().get("root", "")
    make = getattr(registry.find("benchmarks", name), "predictions", None)
    if make is None:
        raise UsageError(f"{name} defines no format for predictions; use --format jsonl")
    asks = [ask for ask in store.answered() if not ask.repeat]
    names = sorted({ask.condition for ask in asks})
    if condition is None and len(names) > 1:
        raise UsageError(f"the run has several conditions; name one: --condition {' or --condition '.join(names)}")
    if condition is not None:
        check_condition(condition, set(names))
    check_not_folder(out)
    made = make(Path(root), [(ask.item, ask.reply.text) for ask in asks if condition in (None, ask.condition)])
    _write_json(made, out)
    return len(made)


def check_condition(name: str, known: set[str]) -> None:
    """Raise UsageError if the run has no replies under this condition."""
    if name not in known:
        has = ", ".join(sorted(known)) or "none"
        raise UsageError(f"the run has no replies under {name!r}{suggest(name, sorted(known))}; it has {has}")


def _jsonl(stream: Iterable[dict[str, Any]], metrics: list[str], out: Path) -> int:
    count = 0
    with out.open("wb") as file:
        for count, row in enumerate(stream, 1):  # noqa: B007 - the last one is returned
            file.write(json_line(row))
    return count


def _flat(row: dict[str, Any], metrics: list[str]) -> dict[str, Any]:
    scores, signatures = row.pop("scores"), row.pop("signatures")
    row |= {name: msgspec.json.encode(row[name]).decode() if row[name] else "" for name in _NESTED}
    people = row.pop("people")
    row["people"] = "; ".join(f"{key} {one['mean']:.4g} ({one['answers']})" for key, one in people.items())
    return {**row, **{f"score_{m}": scores.get(m) for m in metrics}, "signatures": "; ".join(signatures)}


def _csv(stream: Iterable[dict[str, Any]], metrics: list[str], out: Path) -> int:
    count = 0
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        for count, row in enumerate(stream, 1):
            flat = _flat(row, metrics)
            if count == 1:
                writer.writerow(flat)
            writer.writerow(map(cell, flat.values()))
    return count


def json_line(row: Any) -> bytes:
    """Encode a row as one line of JSON. Unicode line separators are escaped, so that every reader sees one line."""
    data = msgspec.json.encode(row)
    for end in ("\x85", "\u2028", "\u2029"):
        data = data.replace(end.encode(), f"\\u{ord(end):04x}".encode())
    return data + b"\n"


def cell(value: Any) -> Any:
    """Make a value safe for a spreadsheet: text from a model must not become a formula.

    Control characters are escaped too, except line breaks and tabs.
    """
    if not isinstance(value, str):
        return value
    formula = next((c for c in value if c.isprintable() and not c.isspace()), "x") in _FORMULA
    return ("'" if formula else "") + value.translate(_CONTROL)


def _parquet(stream: Iterable[dict[str, Any]], metrics: list[str], out: Path) -> int:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra(f"Parquet needs pyarrow; run: {install_line('export')}") from None
    types = {f"score_{m}": pyarrow.float64() for m in metrics} | dict.fromkeys(("latency", *TIMINGS), pyarrow.float64())
    flat_stream = (_flat(row, metrics) for row in stream)
    count, writer = 0, None
    try:
        while flat := list(itertools.islice(flat_stream, ROW_GROUP)):
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
