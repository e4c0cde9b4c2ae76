"""PandaLM's pairs: two answers to one instruction, with the choices of three people or the verdicts of a model judge.

1 means that the first answer is better, 2 that the second is better, and 0 or "Tie" that neither is. Any other verdict
counts as unread.
"""

from __future__ import annotations

from pathlib import Path

from overtone.errors import DataError
from overtone.judge_trust.labels import UNREAD, Labels, Rating, Row, Unit
from overtone.paths import shown

CHOICES = {"0": "tie", "tie": "tie", "1": "A", "2": "B"}


def recognise(first: dict[str, object]) -> bool:
    pairs = {"response1", "response2", "annotator1", "idx"} <= first.keys()
    return pairs or _result(first) is not None


def _result(cells: dict[str, object]) -> str | None:
    """Return the name of the field with the verdict, e.g. gpt_result; None for a file of people's choices."""
    named = [key for key in cells if key.endswith("_result")]
    return named[0] if "idx" in cells and len(named) == 1 and "response1" not in cells else None


def labels(path: Path, rows: list[Row]) -> Labels:
    verdicts = _result(rows[0].cells)
    units: dict[str, Unit] = {}
    ratings: list[Rating] = []
    for row in rows:
        name = str(row.cells.get("idx"))
        if name in units or "idx" not in row.cells:
            raise DataError(f"{shown(str(path))}, {row.where}: idx {shown(name)} is missing or repeated")
        if verdicts is None:
            units[name] = _pair(row, name)
            raters = sorted(key for key in row.cells if key.startswith("annotator"))
        else:
            units[name] = Unit(name, name, where=row.where)
            raters = [verdicts]
        for rater in raters:
            choice = str(row.cells.get(rater)).strip().lower()
            if verdicts is None and choice not in CHOICES:
                raise DataError(f"{shown(str(path))}, {row.where}: {rater} is {shown(choice)!r}, not 0, 1 or 2")
            ratings.append(Rating(name, rater, "answer_preference", CHOICES.get(choice, UNREAD), row.where))
    return Labels(path, "pandalm" if verdicts is None else "pandalm verdicts", units, ratings, "answers")


def _pair(row: Row, name: str) -> Unit:
    cells = {key: str(value) for key, value in row.cells.items()}
    words = "\n\n".join(filter(None, (cells.get("instruction", ""), cells.get("input", ""))))
    left, _, right = cells.get("cmp_key", "").partition("_")
    systems = {"a": left, "b": right} if left and right else {}
    texts = {"words": words, "reply_a": cells["response1"], "reply_b": cells["response2"]}
    return Unit(name, words, texts, systems=systems, where=row.where)
