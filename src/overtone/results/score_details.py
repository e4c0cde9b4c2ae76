"""The detail fields that results need from stored scores, and a check for missing fields.

In a run of another program, a score may lack these fields or have unusable values in them. If a result needs the
fields, such a score counts as missing, and the ledger of problems names the missing fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from overtone.schema import Score
from overtone.scores import ScoreInfo

ORDERS = (1, 2, 3, 4)
BLEU = ("reply_tokens", "reference_tokens", *(f"correct_{n}" for n in ORDERS), *(f"total_{n}" for n in ORDERS))
ERRORS = ("substitutions", "deletions", "insertions")
COUNTS = ("hits", *ERRORS, "reference_words")
_MOST = 2**53  # larger than any count in a text; sums of such counts stay finite
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")

Value = float | int | str | None
Usable = Callable[[Value], bool]


def _count(value: Value) -> bool:
    return isinstance(value, int | float) and 0 <= value <= _MOST


def _text(value: Value) -> bool:
    return isinstance(value, str)


def _packed(value: Value) -> bool:
    return isinstance(value, str) and _BASE64.fullmatch(value) is not None


Needed = dict[str, Usable]
ALIGNMENT: Needed = dict.fromkeys(COUNTS, _count)
LABELS: Needed = {"reply": _text, "wanted": _text}
NEEDED: dict[str, Needed] = {  # `needs` or `reduce` in a score's declaration → detail fields
    "labels": LABELS,
    "alignment": ALIGNMENT,
    "errors": dict.fromkeys((*ERRORS, "reference_words"), _count),
    "bleu": dict.fromkeys(BLEU, _count),
    "distinct": {"different": _count, "total": _count, "hashes": _packed},
}


def needed_by(info: ScoreInfo) -> Needed:
    """Return the detail fields that results need from scores with this declaration; empty for most."""
    return NEEDED.get(info.needs or info.reduce, {})


def lacking(score: Score, needed: Needed) -> list[str]:
    """Return the needed detail fields that a score lacks, or whose values are unusable."""
    return [name for name, usable in needed.items() if not usable(score.detail.get(name))]


def complete(score: Score | None, needed: Needed) -> bool:
    """Return whether a score has a value and the needed details."""
    return score is not None and score.value is not None and not lacking(score, needed)
