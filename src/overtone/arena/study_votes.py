"""Votes of a study: people's answers about pairs, read from the runs that hold them as labels.

They are read at every command and never stored in the arena, so that a withdrawal removes them here too. Raters are
numbered, because standings are written to files. "Both good" and "both bad" are ties in the ranking; "cannot tell" is
missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from overtone.arena.contestants import Field
from overtone.arena.pairing import Case, Pair
from overtone.arena.vote_store import StudyVote
from overtone.errors import DataError
from overtone.paths import shown
from overtone.runs.people_labels import Label, LabelStudy, read_labels, read_studies
from overtone.runs.store import Store
from overtone.text import count

TIES = ("both_good", "both_bad")
MISSING = "cannot_tell"
PAIRED = ("ab", "cmos")


class StudyVotes(Struct, frozen=True):
    """The votes of usable sessions, those of unusable sessions, their pairs, and what was left out."""

    votes: list[StudyVote]
    unusable: list[StudyVote]
    pairs: dict[str, Pair]
    notes: list[str]


class _Run(Struct, frozen=True):
    """A run of the field as the study knows it."""

    name: str
    study: LabelStudy
    labels: list[tuple[str, Label]]  # case key → label


def read(study: str, runs: Sequence[Path], field: Field, known: Mapping[str, Pair], path: Path) -> StudyVotes:
    """Read the votes of a study between these runs. `known` are the arena's pairs, `path` is the study file.

    Raises DataError if the runs hold no votes of the study.
    """
    held = [run for folder in runs if (run := _run(study, folder)) is not None]
    if not held:
        raise DataError(
            f"the runs hold no labels of the study {shown(str(path))}; bring people's answers there: "
            f"overtone studio sync {shown(str(path))}"
        )
    if held[0].study.design not in PAIRED:
        raise DataError(
            f"the study {shown(str(path))} rates single replies ({held[0].study.design}); the arena ranks votes on "
            "pairs. Its means are in: overtone analyze RUN RUN --finding people"
        )
    names = {run.study.system: run.name for run in held}
    cases = {case.key: case for case in field.cases}
    raters: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    votes: tuple[list[StudyVote], list[StudyVote]] = [], []
    pairs: dict[str, Pair] = {}
    left: set[tuple[str, str]] = set()
    unsure: set[tuple[str, str]] = set()
    for run in held:
        for key, label in run.labels:
            answer = (label.unit, label.rater)  # both runs hold it
            if label.value == MISSING:
                unsure.add(answer)
            if answer in seen or (told := _winner(label)) is None:
                continue
            other = names.get(label.seen.other)
            if other is None or key not in cases:
                left.add(answer)
                continue
            seen.add(answer)
            rater = raters.setdefault(label.rater, f"rater {len(raters) + 1}")
            ours = (run.name, other) if label.seen.side == "A" else (other, run.name)
            pair = _pair(field, cases[key], *ours, known)
            pairs[pair.id] = pair
            votes[0 if label.usable else 1].append(_vote(pair, ours, label, told, rater))
    return StudyVotes(*votes, pairs, _tally(len(votes[0]), len(votes[1]), len(left - seen), len(unsure - seen - left)))


def _tally(used: int, unusable: int, left: int, unsure: int) -> list[str]:
    """Return a note that assigns every answer of the study to one use, unless all are votes."""
    parts = [
        f"{left} about other runs, or about cases that are left out here" if left else "",
        f"{unusable} of unusable sessions" if unusable else "",
        f"{unsure} “cannot tell”" if unsure else "",
    ]
    rest = ", ".join(part for part in parts if part)
    whole = count(used + unusable + left + unsure, "answer")
    return [f"the study has {whole} about these runs: {count(used, 'vote')}; not counted: {rest}"] if rest else []


def _run(study: str, folder: Path) -> _Run | None:
    with Store.read(folder) as store:
        found = read_studies(store).get(study)
        if found is None:
            return None
        keys = {ask.id: f"{ask.item.id}|{ask.condition}" for ask, _ in store.asks() if not ask.repeat}
        labels = [
            (keys[label.ask], label)
            for label in read_labels(store)
            if label.study == study and label.kind == "pair" and label.ask in keys
        ]
        return _Run(store.meta().get("label") or folder.resolve().name, found, labels)


def _winner(label: Label) -> str | None:
    """Return A, B or tie, of the unit's order; None for a missing answer and for reasons."""
    value = label.value
    if isinstance(value, list) or value == MISSING:
        return None
    if isinstance(value, str):
        return "tie" if value in TIES else value if value in ("A", "B") else None
    return "B" if value > 0 else "A" if value < 0 else "tie"  # how much better B is


def _pair(field: Field, case: Case, a: str, b: str, known: Mapping[str, Pair]) -> Pair:
    pair = field.pair(case, a, b, drawn=False)
    return known.get(pair.id, pair)


def _vote(pair: Pair, ours: tuple[str, str], label: Label, winner: str, rater: str) -> StudyVote:
    """Return the vote from the rater's sides: with `swap`, the unit's second reply was played first."""
    a, b = ours[::-1] if label.seen.swap else ours
    if label.seen.swap and winner in ("A", "B"):
        winner = {"A": "B", "B": "A"}[winner]
    answer = label.value if label.value in TIES else ""
    return StudyVote(
        pair.id, a, b, winner, rater, "person", answer=str(answer), graded=not isinstance(label.value, str)
    )
