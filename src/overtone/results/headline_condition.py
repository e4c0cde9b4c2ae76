"""Choose the replies that represent a run in a single number: by prompt, by validated cues, by source of the clips, and
by what the model heard in training.

A benchmark can hold the same scripts as synthesised and as human speech. These sources are pooled only if the user asks
for it. By default the headline is over the synthesised clips, as in EchoMind's paper; other sources have separate rows.
Items that the model heard in training have separate rows too, see `heard_items`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from overtone.errors import UsageError
from overtone.results.heard_items import ROWS, heard_note, without_heard
from overtone.results.load import Answer, Reading
from overtone.spec import suggest

SYNTHESIS, HUMAN = "synthesis", "human"
ALL = "all"  # in place of a source: the clips of all sources together


def talk_condition(readings: Sequence[Reading], prompt: str = "", input: str = "audio") -> list[str]:
    """Return, for each run, the condition whose replies represent the run; "" for a run without replies.

    The condition has the prompt `prompt` or, without one, the first prompt that all runs have. If the runs have no
    prompt in common, each run gets its own first prompt. Prompts that state the cue are never chosen.
    """
    order = ("enhance", "basic", "zero")
    if prompt and prompt not in order:
        raise UsageError(f"no prompt is called {prompt!r}; known: {', '.join(reversed(order))}")
    sets = []
    for reading in readings:
        sets.append({a.condition for a in reading.answers if a.item.task == "converse" and not a.item.part})
    wanted = [f"{p}/{input}" for p in ((prompt,) if prompt else order)]
    talking = [asked for asked in sets if asked & set(wanted)]
    common = [c for c in wanted if all(c in asked for asked in talking)]
    return [next((c for c in (common or wanted) if c in asked), "") for asked in sets]


def prompt_notes(readings: Sequence[Reading], conditions: Sequence[str]) -> list[str]:
    """Return a note if `talk_condition` found no common prompt for the runs, otherwise an empty list."""
    if len({c for c in conditions if c}) < 2:
        return []
    each = ", ".join(f"{r.name}: {c}" for r, c in zip(readings, conditions, strict=True) if c)
    return [f"The runs have no prompt in common; replies are of {each}."]


def headline(answers: Iterable[Answer]) -> list[Answer]:
    """Return the answers of the core without unvalidated cues; if no cue is validated, all answers of the core."""
    core = [a for a in answers if not a.item.part]
    sure = [a for a in core if a.item.status != "unvalidated"]
    return sure if len(sure) == len(core) or any(a.item.status == "validated" for a in sure) else core


# ── whose clips ─────────────────────────────────────────────────────────────────────────────────────────────────────


def headline_sources(sources: Iterable[str]) -> frozenset[str]:
    """Return the sources of the headline: synthesis or, without it, all sources except human recordings."""
    known = frozenset(sources) - {""}
    return frozenset({SYNTHESIS}) if SYNTHESIS in known else (known - {HUMAN}) or known


def sources_of(reading: Reading) -> list[str]:
    """Return the sources of a run's clips, the sources of the headline first; empty if no clip has a source."""
    known = {a.item.source for a in reading.answers} - {""}
    return sorted(known, key=lambda source: (source not in headline_sources(known), source))


def check_source(readings: Iterable[Reading], source: str) -> None:
    """Raise UsageError if a run has no clips of the requested source."""
    for reading in readings:
        known = sources_of(reading)
        if source and source != ALL and source not in known:
            has = f"it has {', '.join(known)}" if known else "its benchmark does not name the sources of its clips"
            raise UsageError(f"--source {source}: {reading.folder} has no such clips{suggest(source, known)}; {has}")


def of_source(reading: Reading, source: str) -> Reading:
    """Restrict a run to the clips of one source and those without a source. With "all", every clip is kept and sources
    are pooled; with "", the run is returned unchanged."""
    if not source:
        return reading
    kept = reading.answers if source == ALL else [a for a in reading.answers if a.item.source in ("", source)]
    return msgspec.structs.replace(reading, answers=kept, source=source)


def over_headline(readings: Sequence[Reading], source: str = "") -> list[Reading]:
    """Restrict runs to items that no model heard, and to the clips of the requested source or, without one, of the
    headline. If the runs have sources in
    common, the headline is chosen among these sources, so that all runs use the same clips."""
    readings = [without_heard(reading) for reading in readings]
    if source:
        return [of_source(reading, source) for reading in readings]
    held = [set(sources_of(reading)) for reading in readings]
    named = [sources for sources in held if sources]
    common = set.intersection(*named) if named else set()
    return [
        _narrowed(r, headline_sources(common or sources)) if r.source != ALL and len(sources) > 1 else r
        for r, sources in zip(readings, held, strict=True)
    ]


def _narrowed(reading: Reading, sources: frozenset[str]) -> Reading:
    kept = [a for a in reading.answers if not a.item.source or a.item.source in sources]
    others = [source for source in sources_of(reading) if source not in sources]
    if not others:
        return reading
    note = f"Over the clips of {', '.join(sorted(sources))}; --source chooses those of {', '.join(others)}, or all."
    return msgspec.structs.replace(reading, answers=kept, notes=[*reading.notes, note])


def by_condition(reading: Reading) -> dict[str, list[Answer]]:
    """Group a run's answers into the rows of its tables: by condition, with separate rows for sources outside the
    headline, as `task/audio (human)`, and for items that the model heard, as `task/audio (clip heard)`."""
    apart = frozenset(sources_of(reading)) - headline_sources(sources_of(reading)) if reading.source != ALL else ()
    rows: dict[str, list[Answer]] = {}
    for answer in sorted(reading.answers, key=lambda answer: bool(answer.heard)):  # rows of the headline come first
        source = answer.item.source if answer.item.source in apart else ""
        aside = ", ".join(filter(None, (source, ROWS.get(answer.heard, ""))))
        rows.setdefault(f"{answer.condition} ({aside})" if aside else answer.condition, []).append(answer)
    return rows


def clips_note(reading: Reading) -> str:
    """Return a note on the clips of the headline: their sources, and those that the model heard in training."""
    return " ".join(filter(None, (_source_note(reading), heard_note(reading))))


def _source_note(reading: Reading) -> str:
    """Return a note that names the clips of the headline if the run has several sources; otherwise ""."""
    known = sources_of(reading)
    if len(known) < 2:
        return ""
    if reading.source == ALL:
        return f"Over the clips of all sources together: {', '.join(known)}."
    own = headline_sources(known)
    others = ", ".join(source for source in known if source not in own)
    if not others:
        return ""
    return (
        f"The headline is over the clips of {', '.join(s for s in known if s in own)}. Clips of {others} have rows of "
        "their own; --source NAME shows one source alone, --source all pools them."
    )
