"""Which replies stand for a run where one number is asked for: under which prompt, and over which cues."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from overtone.analysis.reading import Answer, Reading
from overtone.errors import UsageError


def talk_condition(readings: Sequence[Reading], prompt: str = "", input: str = "audio") -> list[str]:
    """The condition whose replies stand for each run: the prompt asked for, else the first all runs have in common.

    Where they have none in common each has its own first; "" for a run without replies. Oracles are never chosen.
    """
    order = ("enhance", "basic", "zero")
    if prompt and prompt not in order:
        raise UsageError(f"no prompt is called {prompt!r}; known: {', '.join(reversed(order))}")
    sets = []
    for reading in readings:
        sets.append({a.condition for a in reading.answers if a.item.task == "converse" and not a.item.part})
    wanted = [f"{p}/{input}" for p in ((prompt,) if prompt else order)]
    talking = [found for found in sets if found & set(wanted)]
    common = [c for c in wanted if all(c in found for found in talking)]
    return [next((c for c in (common or wanted) if c in found), "") for found in sets]


def prompt_notes(readings: Sequence[Reading], conditions: Sequence[str]) -> list[str]:
    """What has to be said where `talk_condition` found no prompt in common."""
    if len({c for c in conditions if c}) < 2:
        return []
    each = ", ".join(f"{r.name}: {c}" for r, c in zip(readings, conditions, strict=True) if c)
    return [f"The runs have no prompt in common; replies are of {each}."]


def headline(answers: Iterable[Answer]) -> list[Answer]:
    """The core, less clips whose cue is not validated; all of the core where no cue is validated."""
    core = [a for a in answers if not a.item.part]
    sure = [a for a in core if a.item.status != "unvalidated"]
    return sure if len(sure) == len(core) or any(a.item.status == "validated" for a in sure) else core
