"""Limits of text metrics: the maximum length of texts to align, which takes quadratic time, and metrics for English
only.

A model that loops can reply with megabytes. Such a reply is unscored, with the reason, and scoring continues.
"""

from __future__ import annotations

from collections.abc import Sized

LONGEST = 10_000  # words or characters of either text
LIMIT = f"longest:{LONGEST}"  # in the signatures of the metrics that align


def too_long(reply: Sized, reference: Sized) -> str:
    """Return a reason for leaving a reply unscored if one of the texts is too long to be aligned, else ""."""
    for name, units in (("reply", reply), ("reference", reference)):
        if len(units) > LONGEST:
            return f"the {name} has {len(units):,} tokens; at most {LONGEST:,} are aligned"
    return ""


def english_only(what: str, language: str) -> str:
    """Return the reason why an English-only metric does not score this language, or "" for English."""
    return "" if language == "en" else f"{what} is for English, and this item is in {language!r}"
