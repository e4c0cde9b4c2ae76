"""How many questions a set has by part, category, style, cue and right letter: what tests of its balance look at."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from msgspec import Struct

from overtone.build.questions import Question


def positions(questions: Iterable[Question]) -> dict[str, dict[str, int]]:
    """How often each letter is right, per category."""
    found: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for q in questions:
        found[q.category][q.answer] += 1
    return {category: dict(sorted(letters.items())) for category, letters in found.items()}


class Counts(Struct, frozen=True):
    """How many questions there are: of each part and category by style and by right letter; of each cue a clip
    carries ("" is none) by category. A category outside the headline goes by its part as well."""

    style: dict[str, dict[str, int]]
    position: dict[str, dict[str, int]]
    cue: dict[str, dict[str, int]]

    def rows(self) -> list[dict[str, str | int]]:
        """One row for a category: its name, how many, then styles and letters."""
        return [
            {"category": name, "questions": sum(styles.values()), **styles, **self.position[name]}
            for name, styles in self.style.items()
        ]


def counts(questions: Iterable[Question]) -> Counts:
    """Count questions by cue, category, style and position of the right answer."""
    table = Counts({}, {}, {})
    for q in questions:
        name = q.category if not q.part or q.category.startswith(q.part) else f"{q.category} ({q.part})"
        cue = q.script.cue_in(q.style)
        for where, row, column in (
            (table.style, name, q.style),
            (table.position, name, q.answer),
            (table.cue, cue.slug if cue else "", name),
        ):
            where.setdefault(row, {})
            where[row][column] = where[row].get(column, 0) + 1
    return table
