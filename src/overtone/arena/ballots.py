"""Files of votes: CSV or JSON Lines with one vote per row, checked line by line and read completely or not at all.

A row has a pair (the id of an exported pair, or a case and two runs), the winner and the rater. A file may also have
votes about players that are not stored runs, e.g. votes from a leaderboard. Such a file is read without a field.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from overtone.arena.contestants import Field
from overtone.arena.pairing import Case, Pair
from overtone.arena.vote_store import Kind, Vote
from overtone.errors import DataError
from overtone.judge_trust.labels import Row, table_rows
from overtone.paths import shown
from overtone.spec import suggest

COLUMNS = {  # our name → names in files
    "pair": ("pair",),
    "case": ("case", "item", "prompt", "question_id"),
    "condition": ("condition",),
    "group": ("group", "script"),
    "a": ("a", "run_a", "left", "model_a"),
    "b": ("b", "run_b", "right", "model_b"),
    "winner": ("winner", "vote"),
    "rater": ("rater", "worker", "judge"),
    "kind": ("kind",),
    "rubric": ("rubric",),
    "repeat": ("repeat",),
}
WINNERS = {"a": "A", "left": "A", "b": "B", "right": "B", "tie": "tie", "both": "tie", "neither": "tie", "draw": "tie"}
SOUND_COLUMNS = ("reply_a", "reply_b")  # in a blind export, whose a and b are sounds, not names


class Ballots(msgspec.Struct, frozen=True):
    """The votes of one file. `pairs` are those that the arena had not drawn; `blank` is the number of rows without a
    winner."""

    votes: list[Vote]
    pairs: list[Pair]
    blank: int


def read(path: Path, field: Field | None, known: Mapping[str, Pair], *, kind: Kind = "person") -> Ballots:
    """Read a file of votes. `known` maps ids to the arena's stored pairs. Raises DataError with the faulty line."""
    return _Reader(path, field, known, kind).read()


class _Reader:
    def __init__(self, path: Path, field: Field | None, known: Mapping[str, Pair], kind: Kind) -> None:
        self.path, self.field, self.known, self.kind = path, field, known, kind
        self.new_pairs: dict[str, Pair] = {}
        self.columns: dict[str, str] = {}
        self.cases: dict[tuple[str, str], list[Case]] = {}
        for case in (*field.cases, *field.others) if field else ():
            for name in (case.case, case.key.removesuffix(f"|{case.condition}")):
                cases = self.cases.setdefault((name, case.condition), [])
                if case not in cases:
                    cases.append(case)

    def fail(self, row: Row, text: str) -> DataError:
        return DataError(f"{shown(str(self.path))}, {row.where}: {shown(text)}")

    def read(self) -> Ballots:
        rows = table_rows(self.path)
        names = list(dict.fromkeys(name for row in rows for name in row.cells))
        self.columns = {ours: next((n for n in theirs if n in names), "") for ours, theirs in COLUMNS.items()}
        if "pair" in names and set(SOUND_COLUMNS) & set(names):
            self.columns |= {"a": "", "b": "", "case": ""}
        if not rows or not self.columns["winner"] or not (self.columns["pair"] or self._by_names()):
            has = f"it has {', '.join(map(shown, names[:12]))}" if names else "it is empty"
            raise DataError(
                f"{shown(str(self.path))}: votes need the columns winner and pair, or winner, case, a and b; {has}"
            )
        votes: dict[tuple[object, ...], Vote] = {}
        blank = 0
        for row in rows:
            if not self._cell(row, "winner"):
                blank += 1
                continue
            vote = self._vote(row)
            once = () if vote.kind == "person" else (vote.a, vote.rubric, vote.repeat)
            mark = (vote.pair, vote.rater, vote.kind, *once)
            if mark in votes:
                raise self.fail(row, f"{vote.rater!r} votes on this pair again, after {votes[mark].place}")
            votes[mark] = vote
        if not votes:
            raise DataError(f"{shown(str(self.path))}: no row has a winner; write A, B or tie there")
        return Ballots(list(votes.values()), list(self.new_pairs.values()), blank)

    def _by_names(self) -> bool:
        return all(self.columns[name] for name in ("case", "a", "b"))

    def _cell(self, row: Row, name: str) -> str:
        value = row.cells.get(self.columns[name]) if self.columns[name] else None
        return "" if value is None else str(value).strip().removeprefix("'")

    def _vote(self, row: Row) -> Vote:
        pair, a, b = self._pair(row)
        text = self._cell(row, "winner")
        winner = WINNERS.get(text.lower()) or {a: "A", b: "B"}.get(text)
        if winner is None:
            raise self.fail(row, f"the winner is {text!r}; write A, B or tie{suggest(text, ['A', 'B', 'tie'])}")
        rater = self._cell(row, "rater") or self.path.stem
        kind = self._cell(row, "kind") or self.kind
        if kind not in ("person", "judge"):
            raise self.fail(row, f"the kind is {kind!r}; write person or judge, or leave it empty")
        repeat = self._cell(row, "repeat") or "0"
        if not repeat.isdecimal():
            raise self.fail(row, f"repeat must be a whole number from 0, not {repeat!r}")
        rubric = self._cell(row, "rubric")
        voter: Kind = "judge" if kind == "judge" else "person"
        return Vote(pair.id, a, b, winner, rater, voter, rubric, int(repeat), place=row.where)

    def _pair(self, row: Row) -> tuple[Pair, str, str]:
        """Return the pair that a row is about, the run on side A, and the run on side B."""
        name = self._cell(row, "pair")
        if name and not (self.field is None and self._by_names()):
            pair = self.known.get(name)
            if pair is None:
                raise self.fail(row, f"there is no pair {name!r} in this arena; was it exported with another --out?")
            a, b = self._cell(row, "a") or pair.a, self._cell(row, "b") or pair.b
            if {a, b} != {pair.a, pair.b}:
                raise self.fail(row, f"pair {name!r} is between {pair.a!r} and {pair.b!r}, not {a!r} and {b!r}")
            return pair, a, b
        if not self._by_names():
            raise self.fail(row, "does not name a pair")
        case, a, b = (self._cell(row, name) for name in ("case", "a", "b"))
        for what, text in (("case", case), ("a", a), ("b", b)):
            if not text:
                raise self.fail(row, f"has no {what}")
        if a == b:
            raise self.fail(row, f"compares {a!r} with itself")
        pair = self._of_field(row, case, a, b) if self.field else self._free(row, case, a, b)
        return self.known.get(pair.id) or self.new_pairs.setdefault(pair.id, pair), a, b

    def _free(self, row: Row, case: str, a: str, b: str) -> Pair:
        key = f"{case}|{self._cell(row, 'condition')}"
        digest = hashlib.sha256(repr((key, sorted((a, b)))).encode()).hexdigest()[:12]
        return Pair(digest, key, case, self._cell(row, "group") or case, "", a, b, drawn=False)

    def _of_field(self, row: Row, case: str, a: str, b: str) -> Pair:
        assert self.field is not None
        for name in (a, b):
            if name not in self.field.players:
                near = suggest(name, self.field.players)
                raise self.fail(row, f"no run is called {name!r}{near}; the runs are {', '.join(self.field.players)}")
        condition = self._cell(row, "condition")
        conditions = [condition] if condition else list(dict.fromkeys(c for _, c in self.cases))
        matching = [one for c in conditions for one in self.cases.get((case, c), ())]
        if not matching:
            raise self.fail(
                row, f"the runs share no answered case {case!r}{f' under {condition}' if condition else ''}"
            )
        if len(matching) > 1:
            names = ", ".join(sorted({c.condition for c in matching}))
            raise self.fail(row, f"case {case!r} means {len(matching)} pairs ({names}); add the column condition")
        return self.field.pair(matching[0], a, b, drawn=False)
