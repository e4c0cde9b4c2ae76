"""Questions on scripts whose words and voice conflict: the cue in the words, the cue in the voice, their agreement.

Each question is asked with the same options on two clips: one whose voice contradicts the words, and its twin whose
voice agrees with them. The share of voice questions to which a model answers with the words' cue measures how much the
model relies on text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overtone.build.distractors import BY_DEGREE, Fair, Orders, Question, also_true, true_of
from overtone.build.script import TWO_WAY, Script
from overtone.build.tract import random_of
from overtone.cues import BY_SLUG, CUES, EXTENSION_STEMS
from overtone.schema import Style

PART = "conflict"
_READINGS = ("words", "voice", "first", "second")
_AGREE = TWO_WAY["consistency"]


def conflict(scripts: Sequence[Script], seed: int) -> list[Question]:
    """Ask three questions about each script whose words state a cue (`says`). Each question is asked on both clips."""
    conflicting = [s for s in scripts if s.says]
    cues = [slug for s in conflicting for slug in (s.says, s.cue)]
    fair, orders = Fair(cues), Orders(seed)
    return [q for script in conflicting for q in _asked(script, set(cues), fair, orders, seed)]


def _asked(script: Script, occurring: set[str], fair: Fair, orders: Orders, seed: int) -> Iterator[Question]:
    cues = {"words": BY_SLUG[script.says], "voice": BY_SLUG[script.cue]}
    taken = true_of(script, "target") | true_of(script, "alternative") | also_true(script.says)
    right = tuple(cues.values())
    rng = random_of(seed, PART, script.id)
    for reading in ("first", "second"):
        dimensions = {c.dimension for c in cues.values()}
        pool = [
            c for c in CUES
            if c.dimension in dimensions and c.slug not in taken and c not in cues.values()
            and c.category not in BY_DEGREE
        ]  # fmt: skip
        pool = [c for c in pool if c.task in {r.task for r in right}] or pool
        # Prefer cues that occur in other words or voices: a cue that is never right would be known as wrong.
        pool = [c for c in pool if c.slug in occurring] or pool
        cues[reading] = fair.pick(right, pool, list(cues.values()), rng)
    fair.count(right, (cues["first"], cues["second"]))
    order = orders.next(PART, _READINGS, ("words", "voice"))
    options = tuple(cues[reading].option for reading in order)
    provenance = tuple(reading if reading in ("words", "voice") else "" for reading in order)
    clips: tuple[tuple[Style, str, str], ...] = (
        ("target", "voice", "Inconsistent"),
        ("alternative", "words", "Consistent"),  # the twin's voice agrees with its words
    )
    for style, heard, agreement in clips:
        for category, gold in (("conflict-words", "words"), ("conflict-voice", heard)):
            yield Question(
                f"{script.id}_{style}_{category}", script, style, category, EXTENSION_STEMS[category],
                options, provenance, order.index(gold), PART,
            )  # fmt: skip
        category = "conflict-agreement"
        yield Question(
            f"{script.id}_{style}_{category}", script, style, category, EXTENSION_STEMS[category],
            _AGREE, ("alternative", "target"), _AGREE.index(agreement), PART,
        )  # fmt: skip
