"""The leak test: the accuracy of solvers that see only text and are trained on the other scripts of the set.

If two clips share a question and its options but have different right answers, a reader gets at most one of the two
right: this is the question's ceiling. If the best solver is significantly above the ceiling of its category, the text
reveals the answers and the set does not pass.
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


ABOUT_WORDS = frozenset({"conflict-words"})  # categories that ask about the words, which a reader may answer


class Row(Struct, frozen=True):
    """One solver's result on one category. `passes` refers to this row; a category passes if its best solver passes."""

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
    """Evaluate every solver on every category: the trained solvers, then the given ones as (name, solver).

    A question that a given solver leaves unanswered counts as wrong. Control clips are excluded because they repeat the
    questions of the neutral clip word for word. `embed` replaces the offline sentence embedder. If no embedder is
    installed, the trained solvers use words only, and each row says so in its note.
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
        for name, (chosen, solver_note) in picks.items():
            right = [float(chosen[i] == questions[i].gold) for i in mine]
            rate = proportion(right, [questions[i].script.id for i in mine])
            ceiling = float(np.mean([top[i] for i in mine]))
            answered = sum(chosen[i] is not None for i in mine)
            passes = not rate.low > ceiling + 1e-9
            numbers = (len(mine), answered, rate.value, rate.low, rate.high, ceiling, passes)
            rows.append(Row(part, category, name, *numbers, solver_note))
    return rows


def failing(rows: Sequence[Row], parts: Sequence[str] = ("",)) -> list[Row]:
    """Return the best solver's row for each failing category of `parts` (default: the headline part)."""
    best: dict[tuple[str, str], Row] = {}
    for row in rows:
        key = row.part, row.category
        if row.part in parts and (key not in best or row.accuracy > best[key].accuracy):
            best[key] = row
    return [row for row in best.values() if not row.passes]


def ceilings(questions: Sequence[Question]) -> list[float]:
    """Return, for each question, the highest accuracy that a reader of the text can expect.

    If several clips of a script share question and options and their right answers differ, the ceiling is the share of
    the most common answer. It is 1 for questions about the words. For any other question it is the chance level.
    """
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
