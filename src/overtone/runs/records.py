"""Read a run's store as typed records. Invalid rows raise a StoreError."""

from __future__ import annotations

import re
import sqlite3
import sys
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from overtone.errors import StoreError
from overtone.paths import inside
from overtone.runs.folder_safety import MAX_TOKENS, Finite, Words, reading, select
from overtone.runs.measurement_choice import Measurement, Selection, read_history, select_measurements
from overtone.runs.spread_order import Place
from overtone.runs.spread_order import spread as spread_order
from overtone.runs.stored_asks import Ask, Failure, Part, StoredReply
from overtone.schema import Item, Key, Likelihood, Score, SessionEvent, Timings, Usage
from overtone.scores import ScoreInfo, known, undeclared
from overtone.suite import Suite, find_suite, is_installed

T = TypeVar("T")
PENDING, ANSWERED, FAILED = 0, 1, 2  # states of an ask
SHA = re.compile(r"[0-9a-f]{64}")
_item_decoder = msgspec.json.Decoder(Item)
_notes_decoder = msgspec.json.Decoder(tuple[str, ...])
_usage_decoder = msgspec.json.Decoder(Usage)
_likelihoods_decoder = msgspec.json.Decoder(tuple[tuple[Likelihood, ...], ...])
_timings_decoder = msgspec.json.Decoder(Timings)
_events_decoder = msgspec.json.Decoder(tuple[SessionEvent, ...])
_info_decoder = msgspec.json.Decoder(ScoreInfo)
_suite_decoder: msgspec.json.Decoder[Suite | None] = msgspec.json.Decoder(Suite | None)
_detail_decoder = msgspec.json.Decoder(dict[str, float | int | str | None])


def _was_asked(body: bytes) -> bool:
    """Return whether the detail of a judge's score shows that a verdict was requested."""
    detail = _detail_decoder.decode(body) if body else {}
    draws, skipped = detail.get("draws"), detail.get("skipped", 0)
    return isinstance(draws, int) and isinstance(skipped, int) and draws > skipped


def decode_item(body: bytes) -> Item:
    item = _item_decoder.decode(body)
    if not item.turns:
        raise ValueError(f"item {item.id!r} has no turn")
    return item


def _of(part: Part | None, column: str) -> tuple[str, Sequence[Any]]:
    """Return an SQL condition that `column`, an ask's id, belongs to the part, and its parameters."""
    if part is None:
        return "1", ()
    if part.case is not None:
        ids = "SELECT a.id FROM items i JOIN asks a ON a.item = i.seq WHERE i.case_id = ?"
        return f"{column} IN ({ids})", (part.case,)
    return f"{column} IN (SELECT value FROM json_each(?))", (msgspec.json.encode(part.asks).decode(),)


class Beside(Generic[T]):
    """Joins rows to their asks without keeping them in memory. Both must be sorted by ask. Skips rows of missing
    asks."""

    def __init__(self, rows: Iterable[tuple[int, T]]) -> None:
        self._rows = iter(rows)
        self._next = next(self._rows, None)

    def of(self, ask: int) -> list[T]:
        found = []
        while self._next is not None and self._next[0] <= ask:
            if self._next[0] == ask:
                found.append(self._next[1])
            self._next = next(self._rows, None)
        return found


def sound_path(folder: Path, name: str) -> Path:
    """Return the path of a sound in a run folder; see `Rows.audio_path`."""
    if not SHA.fullmatch(name):
        raise StoreError(f"{folder}: {name[:80]!r} is not the name of a stored sound")
    return inside(folder / "audio", f"{name[:2]}/{name}.wav")


class Rows:
    """The methods of a store that read."""

    def __init__(self, folder: Path, db: sqlite3.Connection) -> None:
        self.folder = folder
        self._db = db
        self._selected: tuple[tuple[int, ...], Selection] | None = None  # the state of the database it is true of

    @property
    def db(self) -> sqlite3.Connection:
        return self._db

    def meta(self) -> dict[str, str]:
        with reading(self.folder):
            return dict(select(self.db, tuple[str, str], "SELECT key, value FROM meta"))

    def declarations(self) -> dict[str, ScoreInfo]:
        """Return the declarations of scores that were stored when the run was scored; empty for older runs."""
        with reading(self.folder):
            rows = select(self.db, tuple[str, bytes], "SELECT score, body FROM declarations ORDER BY score")
            return {score: _info_decoder.decode(body) for score, body in rows}

    def declared(self) -> dict[str, ScoreInfo]:
        """Return the declaration of each metric's score, as stored in the run.

        Runs of store version 1 have none: they use those of the installed metrics, and defaults for other scores."""
        found = self.declarations() or known(self.meta().get("benchmark", ""))
        for score in self.selection().shown:
            if "@" not in score and score not in found:
                found[score] = undeclared(score)
        return found

    def suite(self) -> Suite | None:
        """Return the benchmark's description of itself, as stored in the run or else as installed; None if it has
        none."""
        with reading(self.folder):
            for (body,) in select(self.db, tuple[bytes], "SELECT body FROM suite"):
                return _suite_decoder.decode(body)
        name = self.meta().get("benchmark") or next((item.benchmark for item in self.items()), "")
        return find_suite(name) if is_installed(name) else None

    def events(self) -> list[tuple[float, str, str]]:
        with reading(self.folder):
            return list(select(self.db, tuple[Finite, str, str], "SELECT at, kind, detail FROM events ORDER BY at"))

    def items(self) -> Iterator[Item]:
        """Yield every item, in the benchmark's order."""
        with reading(self.folder):
            for (body,) in select(self.db, tuple[bytes], "SELECT body FROM items ORDER BY seq"):
                yield decode_item(body)

    def item_count(self, part: Part | None = None) -> int:
        """Return the number of items that have asks."""
        which, given = _of(part, "id")
        with reading(self.folder):
            ((count,),) = select(self.db, tuple[int], f"SELECT count(DISTINCT item) FROM asks WHERE {which}", given)
        return count

    def cases(self) -> list[tuple[str, str]]:
        """Return every case with its cue, in the benchmark's order."""
        with reading(self.folder):
            sql = "SELECT case_id, cue FROM items GROUP BY case_id ORDER BY min(seq)"
            return list(select(self.db, tuple[str, str], sql))

    def case_of(self, item: str) -> str | None:
        """Return the case of the item with this id, or None."""
        with reading(self.folder):
            found = select(self.db, tuple[str], "SELECT case_id FROM items WHERE id = ?", (item,))
            return next((case for (case,) in found), None)

    def counts(self, *, wanted_only: bool = False) -> dict[str, int]:
        """Return the numbers of pending, answered and failed asks."""
        where = "WHERE wanted" if wanted_only else ""
        with reading(self.folder):
            found = dict(select(self.db, tuple[int, int], f"SELECT state, count(*) FROM asks {where} GROUP BY state"))
        names = {PENDING: "pending", ANSWERED: "answered", FAILED: "failed"}
        return {name: found.get(state, 0) for state, name in names.items()}

    def open_ids(self, *, spread: bool = False) -> array[int]:
        """Return the ids of all wanted asks without a complete reply, by id or spread over levels, tasks and cues.

        Asks that failed come last, so that items which always fail do not block others.
        """
        sql = "SELECT id, item, state FROM asks WHERE state <> 1 AND wanted ORDER BY state, id"
        with reading(self.folder):
            rows = select(self.db, tuple[int, int, int], sql)
            if spread:
                rank = self._spread()
                rows = iter(sorted(rows, key=lambda row: (row[2], rank[row[1]])))
            return array("q", (row[0] for row in rows))

    def _spread(self) -> dict[int, int]:
        """Map the seq of every wanted item to its rank in the spread order."""
        sql = (
            "SELECT seq, level, task, category, style, cue, group_id FROM items "
            "WHERE seq IN (SELECT item FROM asks WHERE wanted) ORDER BY seq"
        )
        seqs = array("q")

        def places() -> Iterator[Place]:
            for row in select(self.db, tuple[int, int, str, str, str, str, str], sql):
                seqs.append(row[0])
                yield Place(*row[1:])

        order = list(spread_order(places()))
        return {seqs[index]: rank for rank, index in enumerate(order)}

    def open_asks(self, after: int, count: int) -> list[Ask]:
        """Return the next `count` wanted asks without a complete reply. Their ids are above `after` and ascend."""
        return self.asks_with([ask for ask in sorted(self.open_ids()) if ask > after][:count])

    def asks_with(self, ids: Sequence[int]) -> list[Ask]:
        """Return the asks with these ids, in this order, with the replies they have so far."""
        found: dict[int, Ask] = {}
        with reading(self.folder):
            marks = ",".join("?" * len(ids))
            replies: dict[int, list[StoredReply]] = {}
            for reply in self._replies(f"WHERE r.ask IN ({marks}) ORDER BY r.ask, r.turn", ids):
                replies.setdefault(reply.ask, []).append(reply)
            sql = "SELECT a.id, i.body, a.condition, a.repeat FROM asks a JOIN items i ON i.seq = a.item"
            for row in select(self.db, tuple[int, bytes, str, int], f"{sql} WHERE a.id IN ({marks})", ids):
                found[row[0]] = Ask(row[0], decode_item(row[1]), *row[2:], tuple(replies.get(row[0], ())))
        return [found[ask] for ask in ids]

    def replies(self, part: Part | None = None, *, light: bool = False) -> Iterator[StoredReply]:
        """Yield every reply in the order of the asks; with `light`, only those that analysis needs besides scores."""
        which, given = _of(part, "r.ask")
        if light:
            which += " AND (i.task = 'converse' OR r.refused OR r.notes <> x'5b5d')"  # x'5b5d': no notes
        return self._replies(f"WHERE {which} ORDER BY r.ask, r.turn", given)

    def reply(self, key: Key) -> StoredReply | None:
        """Return the reply with this key, or None."""
        where = "WHERE i.id = ? AND a.condition = ? AND a.repeat = ? AND r.turn = ?"
        return next(self._replies(where, (key.item, key.condition, key.repeat, key.turn)), None)

    def _replies(self, which: str, given: Sequence[Any] = ()) -> Iterator[StoredReply]:
        sql = (
            "SELECT r.ask, i.id, a.condition, a.repeat, r.turn, r.text, r.audio, r.finish, r.refused, r.model, "
            "r.latency, r.attempts, r.notes, r.usage, l.body, t.body, coalesce(s.audio, '') FROM replies r "
            "JOIN asks a ON a.id = r.ask JOIN items i ON i.seq = a.item "
            "LEFT JOIN likelihoods l ON l.ask = r.ask AND l.turn = r.turn "
            "LEFT JOIN timings t ON t.ask = r.ask AND t.turn = r.turn "
            f"LEFT JOIN sessions s ON s.ask = r.ask AND s.turn = r.turn {which}"
        )
        with reading(self.folder):
            for row in select(
                self.db,
                tuple[
                    int, str, str, int, int, Words, str, str, int, str, Finite, int, bytes, bytes, bytes | None,
                    bytes | None, str,
                ],
                sql,
                given,
            ):  # fmt: skip
                text, audio, finish, refused, model, latency, attempts, notes, usage, likely, timed, both = row[5:]
                spent = _usage_decoder.decode(usage)
                if max(msgspec.structs.astuple(spent)) > MAX_TOKENS:
                    raise ValueError("more tokens than there can be")
                said = _notes_decoder.decode(notes)
                sent = Key(*row[1:5]), text, audio, finish, bool(refused), model
                weighed = () if likely is None else _likelihoods_decoder.decode(likely)
                timings = None if timed is None else _timings_decoder.decode(timed)
                yield StoredReply(row[0], *sent, said, spent, latency, attempts, weighed, timings, both)

    def timings(self) -> Iterator[tuple[int, Timings]]:
        """Yield (ask, timings) for every reply that streamed."""
        with reading(self.folder):
            for ask, body in select(self.db, tuple[int, bytes], "SELECT ask, body FROM timings ORDER BY ask, turn"):
                yield ask, _timings_decoder.decode(body)

    def session(self, ask: int, turn: int) -> tuple[str, tuple[SessionEvent, ...]] | None:
        """Return the name of the sound of both channels, and the events, of a turn in a realtime session."""
        sql = "SELECT audio, events FROM sessions WHERE ask = ? AND turn = ?"
        with reading(self.folder):
            found = next(select(self.db, tuple[str, bytes], sql, (ask, turn)), None)
            return None if found is None else (found[0], _events_decoder.decode(found[1]))

    def sessions(self) -> dict[tuple[int, int], str]:
        """Map (ask, turn) to the name of the sound of both channels, for every turn in a realtime session."""
        with reading(self.folder):
            rows = select(self.db, tuple[int, int, str], "SELECT ask, turn, audio FROM sessions")
            return {(ask, turn): audio for ask, turn, audio in rows}

    def sounds(self) -> set[str]:
        """Return the names of all sounds that replies and sessions use."""
        sql = "SELECT audio FROM replies WHERE audio <> '' UNION SELECT audio FROM sessions WHERE audio <> ''"
        with reading(self.folder):
            return {name for (name,) in select(self.db, tuple[str], sql)}

    def sent(self, ask: int, turn: int) -> list[dict[str, Any]]:
        """Return the messages that were sent for a reply, with each sound as its SHA-256."""
        with reading(self.folder):
            row = self.db.execute("SELECT sent FROM replies WHERE ask = ? AND turn = ?", (ask, turn)).fetchone()
            return msgspec.json.decode(row[0], type=list[dict[str, Any]]) if row else []

    def failures(self, part: Part | None = None) -> Iterator[Failure]:
        which, given = _of(part, "f.ask")
        sql = (
            "SELECT f.ask, i.id, a.condition, a.repeat, f.turn, f.reason, f.detail, f.attempts FROM failures f "
            f"JOIN asks a ON a.id = f.ask JOIN items i ON i.seq = a.item WHERE {which} ORDER BY f.ask"
        )
        with reading(self.folder):
            for row in select(self.db, tuple[int, str, str, int, int, str, str, int], sql, given):
                yield Failure(row[0], Key(row[1], row[2], row[3], row[4]), row[5], row[6], row[7])

    def asks(self, part: Part | None = None) -> Iterator[tuple[Ask, int]]:
        """Yield every ask with its state, in the order of ids."""
        which, given = _of(part, "a.id")
        sql = (
            "SELECT a.id, i.body, a.condition, a.repeat, a.state FROM asks a JOIN items i ON i.seq = a.item "
            f"WHERE {which} ORDER BY a.id"
        )
        body, item = b"", None
        with reading(self.folder):
            for row in select(self.db, tuple[int, bytes, str, int, int], sql, given):
                if item is None or row[1] != body:  # the asks of one item stand together
                    body, item = row[1], decode_item(row[1])
                yield Ask(row[0], item, row[2], row[3]), row[4]

    def answered(self) -> Iterator[Ask]:
        """Yield every answered ask with its replies, in the order of their ids."""
        replies = Beside((reply.ask, reply) for reply in self.replies())
        for ask, state in self.asks():
            found = replies.of(ask.id)
            if state == ANSWERED and found and found[-1].key.turn == len(ask.item.turns) - 1:
                yield Ask(ask.id, ask.item, ask.condition, ask.repeat, tuple(found))

    def audio_path(self, name: str) -> Path:
        """Return the path of a stored sound. Raises for an invalid name and for a link that leaves the folder."""
        return sound_path(self.folder, name)

    def clips(self) -> dict[str, tuple[str, int, int, float]]:
        """Map the path of every clip that the run has used to its SHA-256, size, mtime in ns and seconds."""
        sql = "SELECT path, sha256, size, mtime_ns, seconds FROM clips"
        with reading(self.folder):
            return {row[0]: row[1:] for row in select(self.db, tuple[str, str, int, int, Finite], sql)}

    def scored(self, metric_signature: str) -> set[int]:
        """Return the asks that already have a value with this signature."""
        sql = (
            "SELECT s.subject FROM scores s JOIN signatures t ON t.id = s.signature "
            "WHERE t.text = ? AND s.kind = 'reply' AND s.value IS NOT NULL"
        )
        with reading(self.folder):
            return {ask for (ask,) in select(self.db, tuple[int], sql, (metric_signature,))}

    def silent_judges(self) -> dict[str, bool]:
        """Return the judges' scores (QUESTION@LABEL) without any value, and whether the judge was asked at all."""
        sql = (
            "SELECT metric FROM scores WHERE kind = 'reply' AND instr(metric, '@') > 0 "
            "GROUP BY metric HAVING count(value) = 0"
        )
        details = "SELECT DISTINCT detail FROM scores WHERE kind = 'reply' AND metric = ?"
        with reading(self.folder):
            return {
                name: any(_was_asked(body) for (body,) in select(self.db, tuple[bytes], details, [name]))
                for (name,) in list(select(self.db, tuple[str], sql))
            }

    def scored_metrics(self) -> list[str]:
        """Return the names of all metrics that scored replies."""
        with reading(self.folder):
            sql = "SELECT DISTINCT metric FROM scores WHERE kind = 'reply' ORDER BY metric"
            return [metric for (metric,) in select(self.db, tuple[str], sql)]

    def selection(self) -> Selection:
        """Return which measurement of each metric is shown. The result is cached until the store changes."""
        with reading(self.folder):
            state = (id(self.db), self.db.execute("PRAGMA data_version").fetchone()[0], self.db.total_changes)
        if self._selected is None or self._selected[0] != state:
            self._selected = state, self._select()
        return self._selected[1]

    def _select(self) -> Selection:
        scored = "(kind = 'reply' OR kind LIKE 'turn %')"
        with reading(self.folder):
            texts = dict(select(self.db, tuple[int, str], "SELECT id, text FROM signatures"))
            pairs = f"SELECT DISTINCT metric, signature FROM scores WHERE {scored}"
            held = list(select(self.db, tuple[str, int], pairs))
            several = [m for m, count in Counter(metric for metric, _ in held).items() if count > 1]
            marks = ",".join("?" * len(several))
            sql = f"SELECT metric, signature, count(value) FROM scores WHERE {scored} AND metric IN ({marks})"
            counted = select(self.db, tuple[str, int, int], f"{sql} GROUP BY metric, signature", several)
            values = {(metric, number): count for metric, number, count in counted}
            if any(number not in texts for _, number in held):
                raise ValueError("a score without a signature")
        measurements = [Measurement(m, number, texts[number], values.get((m, number), 0)) for m, number in held]
        return select_measurements(measurements, read_history(self.meta()))

    def scores(self, part: Part | None = None, *, every: bool = False) -> Iterator[tuple[int, Score]]:
        """Yield (ask, score) for last replies: each metric's selected measurement, or with `every`, all. Equal
        scores are one object, which saves memory."""
        return ((ask, score) for ask, _, score in self._scores("s.kind = 'reply'", part, every))

    def turn_scores(self, part: Part | None = None, *, every: bool = False) -> Iterator[tuple[int, int, Score]]:
        """Yield the scores of replies to turns before the last, each with its ask and turn."""
        with reading(self.folder):
            for ask, kind, score in self._scores("s.kind LIKE 'turn %'", part, every):
                yield ask, int(kind.removeprefix("turn ")), score

    def _scores(self, kind: str, part: Part | None, every: bool) -> Iterator[tuple[int, str, Score]]:
        ranks = None if every else self.selection().ranks
        which, given = _of(part, "s.subject")
        known: dict[tuple[Any, ...], Score] = {}
        details: dict[bytes, dict[str, float | int | str | None]] = {}
        sql = (
            "SELECT s.subject, s.kind, s.metric, s.signature, s.value, s.reason, s.detail FROM scores s "
            f"WHERE {kind} AND {which} ORDER BY s.kind, s.subject, s.metric, s.signature"
        )
        with reading(self.folder):
            texts = dict(select(self.db, tuple[int, str], "SELECT id, text FROM signatures"))
            rows = select(self.db, tuple[int, str, str, int, Finite | None, str, bytes], sql, given)
            for row in rows if ranks is None else _selected(rows, ranks):
                told = row[2:]
                score = known.get(told)
                if score is None:
                    metric, signature, value, reason, body = told
                    if (detail := details.get(body)) is None:
                        detail = details[body] = _detail_decoder.decode(body)
                    if signature not in texts:
                        raise ValueError("a score without a signature")
                    score = known[told] = Score(sys.intern(metric), texts[signature], value, reason, detail)
                    if len(known) > 20_000:
                        known.clear()
                        details.clear()
                yield row[0], row[1], score


# subject, kind, metric, signature, value, reason, detail
_ScoreRow = tuple[int, str, str, int, float | None, str, bytes]


def _selected(rows: Iterable[_ScoreRow], ranks: Mapping[tuple[str, int], int]) -> Iterator[_ScoreRow]:
    """Yield the row with a value and the highest rank for each subject and metric. Their rows must be adjacent."""
    held: _ScoreRow | None = None
    best = (False, -1)
    for row in rows:
        rank = ranks.get((row[2], row[3]))
        if rank is None:
            continue
        mine = (row[4] is not None, rank)
        if held is not None and held[:3] != row[:3]:
            yield held
            held = None
        if held is None or mine > best:
            held, best = row, mine
    if held is not None:
        yield held
