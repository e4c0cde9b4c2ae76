"""The longest text that is aligned with another. Alignments take quadratic time; everything else about text is linear.

A model that loops can reply with megabytes. Such a reply is unscored, with the reason, instead of stopping the scoring.
"""

from __future__ import annotations

from collections.abc import Sized

LONGEST = 10_000  # words or characters of either text
LIMIT = f"longest:{LONGEST}"  # in the signatures of the metrics that align


def too_long(reply: Sized, reference: Sized) -> str:
    """Why two texts are not aligned, or "" where they are."""
    for name, units in (("reply", reply), ("reference", reference)):
        if len(units) > LONGEST:
            return f"the {name} has {len(units):,} tokens; at most {LONGEST:,} are aligned"
    return ""


def english_only(what: str, language: str) -> str:
    """Why a metric that knows English alone has no value, or "" for English."""
    return "" if language == "en" else f"{what} is for English, and this item is in {language!r}"
