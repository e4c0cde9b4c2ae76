"""The leak test: how far somebody gets who only reads. Solvers are trained on the set itself, out of fold by script.

A question asked of two clips with the same options and two right answers cannot be answered by reading in more than one
of two; that is its ceiling. Where the best solver is surely above the ceiling of its category, the text gives the
answers away and the release does not pass.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct

from overtone.build.gates._reader_view import WITHOUT, Embed, embedder
from overtone.build.gates._solvers import answers
from overtone.build.questions import Question
from overtone.stats.cluster import proportion

Solver = Callable[[Sequence[Question]], Sequence[int | None]]


ABOUT_WORDS = frozenset({"conflict-words"})  # categories that ask about the words: whoever reads them may be right


class Row(Struct, frozen=True):
    """One solver on one category. `passes` is about this row; a category passes with its best solver."""

    part: str
    category: str
    solver: str
    n: int
    answered: int
    accuracy: float
    low: float
    high: float
    ceiling: float
    passes: bool
    note: str = ""


def table(
    questions: Sequence[Question], seed: int, solvers: Sequence[tuple[str, Solver]] = (), embed: Embed | None = None
) -> list[Row]:
    """Every solver on every category: the trained ones, then those given as (name, solver).

    What a given solver leaves unanswered is wrong. Control clips are left out: they repeat the neutral clip's questions
    word for word. `embed` replaces the offline sentence embedder; where that is not installed the trained solvers read
    words only, and each row says so.
    """
    questions = [q for q in questions if q.part != "control"]
    note = ""
    if embed is None:
        embed = embedder()
        note = "" if embed else WITHOUT
    top = ceilings(questions)
    picks = {name: (choice, note) for name, choice in answers(questions, seed, embed).items()}
    for name, solver in solvers:
        given = list(solver(questions))
        if len(given) != len(questions):
            raise ValueError(f"solver {name}: {len(given)} answers to {len(questions)} questions")
        picks[name] = given, ""
    places: dict[tuple[str, str], list[int]] = defaultdict(list)
    for i, q in enumerate(questions):
        places[q.part, q.category].append(i)
    rows = []
    for (part, category), mine in places.items():
        for name, (chosen, said) in picks.items():
            right = [float(chosen[i] == questions[i].gold) for i in mine]
            found = proportion(right, [questions[i].script.id for i in mine])
            ceiling = float(np.mean([top[i] for i in mine]))
            answered = sum(chosen[i] is not None for i in mine)
            rows.append(
                Row(
                    part, category, name, len(mine), answered, found.value, found.low, found.high, ceiling,
                    not found.low > ceiling + 1e-9, said,
                )
            )  # fmt: skip
    return rows


def failing(rows: Sequence[Row], parts: Sequence[str] = ("",)) -> list[Row]:
    """The best solver of each category that does not pass, of the parts named (the headline's by itself)."""
    best: dict[tuple[str, str], Row] = {}
    for row in rows:
        key = row.part, row.category
        if row.part in parts and (key not in best or row.accuracy > best[key].accuracy):
            best[key] = row
    return [row for row in best.values() if not row.passes]


def ceilings(questions: Sequence[Question]) -> list[float]:
    """For each question the most a reader can expect: where several clips of a script share question and options and
    their right answers differ, the share of the commonest; 1 for questions about the words; else what a guess gives."""
    groups: dict[tuple[str, str, str, str, frozenset[str]], list[int]] = defaultdict(list)
    for i, q in enumerate(questions):
        groups[q.part, q.script.id, q.category, q.question, frozenset(q.options)].append(i)
    out = [0.0] * len(questions)
    for places in groups.values():
        golds = Counter(questions[i].options[questions[i].gold] for i in places)
        for i in places:
            if questions[i].category in ABOUT_WORDS:
                out[i] = 1.0
            elif len(golds) > 1:
                out[i] = max(golds.values()) / len(places)
            else:
                out[i] = 1 / len(questions[i].options)
    return out
