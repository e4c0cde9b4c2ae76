"""The worst and best replies as cards: clip, reply and reference, with the judges' reasons."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from overtone.report.media import Media
from overtone.results.extremes import Extreme, Extremes
from overtone.results.judge_scores import Dimension
from overtone.results.load import Answer, Reading, whole
from overtone.results.summary import Summary
from overtone.scores import Declared
from overtone.text import by_kind, number


def ends(
    runs: Iterable[tuple[dict[str, Any], Summary, Reading]], media: Media
) -> tuple[list[dict[str, Any]], list[list[str]]]:
    """Return the cards of every run and condition, and the sounds of each card: clip, reply and reference."""
    made: list[dict[str, Any]] = []
    sounds: list[list[str]] = []
    for run, summary, reading in runs:
        shown = [c.extremes for c in summary.conditions if c.extremes is not None]
        by_ask = whole(reading, (extreme.ask for one in shown for extreme in (*one.worst, *one.best)))
        for c in summary.conditions:
            extremes = c.extremes
            if extremes is None:
                continue
            rows = {row.dimension.key: row.dimension for row in c.judged}
            halves = []
            for title, some in (("Worst", extremes.worst), ("Best", extremes.best)):
                cards = []
                for extreme in some:
                    answer = by_ask[extreme.ask]
                    cards.append(_card(run, extreme, extremes, answer, rows, reading.declared, len(sounds)))
                    sounds.append(_sounds(answer, reading, media))
                halves.append((title, cards))
            made.append(
                {"run": run, "condition": c.condition, "by": extremes.by, "judged": extremes.judged, "halves": halves}
            )
    return made, sounds


def _card(
    run: dict[str, Any],
    extreme: Extreme,
    extremes: Extremes,
    answer: Answer,
    rows: dict[str, Dimension],
    declared: Declared,
    position: int,
) -> dict[str, Any]:
    item = answer.item
    share = rows[extremes.key].share if extremes.key in rows else declared[extremes.key].scale == "percent"
    labels = {d.label: d for d in rows.values()}
    return {
        "number": position,
        "case": f"{run['prefix']}{extreme.case}",
        "name": extreme.case,
        "cue": item.cue_text or extreme.cue or "no cue",
        "style": extreme.style,
        "words": next((turn.words for turn in item.turns if turn.words), ""),
        "reply": answer.replies[-1].text if answer.replies else "",
        "reference": item.references[0] if item.references else "",
        "value": by_kind(extreme.value, "percent" if share else "number"),
        "said": [
            (w.dimension, w.judge, _value(w.value, labels.get(w.dimension)), w.why) for w in extreme.words
        ],
    }  # fmt: skip


def _value(value: float | None, dimension: Dimension | None) -> str:
    if value is None:
        return "no value"
    if dimension is not None and dimension.share:
        return {1.0: "yes", 0.0: "no"}.get(value, by_kind(value, "percent") + " %")
    return number(value, 0 if value == round(value) else 2)


def _sounds(answer: Answer, reading: Reading, media: Media) -> list[str]:
    item = answer.item
    clip = next((turn.clip.path for turn in item.turns if turn.clip), "")
    name = next((reply.audio for reply in reversed(answer.replies) if reply.audio), "")
    return [
        media.clip(reading, clip) if clip else "",
        media.reply(reading, name) if name else "",
        media.clip(reading, item.reference_audio) if item.reference_audio else "",
    ]
