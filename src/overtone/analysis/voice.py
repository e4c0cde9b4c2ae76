"""How the replies sound: predicted quality, pitch, pace, pauses, level, expressiveness, and their fit to the reference.

Per condition over all clips and per style, so that a delivery that moves with the user's voice can be seen to move.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from msgspec import Struct

from overtone.analysis import corpus
from overtone.analysis.judged import by_status, replies_of
from overtone.analysis.measures import METRICS, Estimate, estimate, on_scale
from overtone.analysis.reading import Answer
from overtone.schema import STYLES

QUALITY = (
    "nisqa_mos", "nisqa_noisiness", "nisqa_discontinuity", "nisqa_coloration", "nisqa_loudness", "nisqa_tts",
    "utmos", "dnsmos_ovrl", "dnsmos_sig", "dnsmos_bak", "dnsmos_p808", "distillmos",
)  # fmt: skip


class Measured(Struct, frozen=True):
    """A column: what is measured, in which unit, and which way is better. `detail` is read off expressiveness's; `ends`
    are those of its scale, which its interval does not leave."""

    key: str
    label: str
    unit: str = ""
    kind: Literal["number", "percent", "mos"] = "number"
    better: str = ""
    detail: str = ""
    digits: int = 2
    ends: tuple[float, float] = (0.0, math.inf)


DELIVERY = (
    Measured("expressiveness", "Expressiveness", "neutral acting is 1"),
    Measured("flat", "Flat", "% of replies", "percent", "↓", detail="flat"),
    Measured("prosody_fit", "Fit to the reference", "%", "percent", "↑"),
    Measured("consistency_wer", "Voice against text", "WER, %", "percent", "↓"),
    Measured("f0_hz", "Pitch", "Hz, median", detail="f0_hz", digits=0),
    Measured("f0_range_st", "Pitch range", "semitones", detail="f0_range_st", digits=1),
    Measured("rate_hz", "Rate", "syllables a second", detail="rate_hz"),
    Measured("pause_share", "Pauses", "% of the time", "percent", detail="pause_share", ends=(0.0, 1.0)),
    Measured("level_dbfs", "Level", "dBFS", detail="level_dbfs", digits=1, ends=(-math.inf, math.inf)),
)
COLUMNS = (
    *(Measured(name, METRICS[name].label, "1 to 5", "mos", "↑") for name in QUALITY),
    *DELIVERY,
)


class VoiceRow(Struct, frozen=True):
    """The spoken replies to one style of clips, or to all of them (`style` is empty)."""

    basis: str
    style: str
    measures: dict[str, Estimate]  # by the keys of COLUMNS


def spoken(answers: Iterable[Answer]) -> list[VoiceRow]:
    """A row over all clips and one for each style; none where no reply has a sound that was measured."""
    rows = []
    for basis, found in by_status(replies_of(answers)):
        styles = [s for s in STYLES if any(a.item.style == s for a in found)]
        for style in ("", *(styles if len(styles) > 1 else [])):
            part = [a for a in found if not style or a.item.style == style]
            measures = {c.key: e for c in COLUMNS if (e := _measure(c, part)) is not None}
            if any(e.value is not None for e in measures.values()):
                rows.append(VoiceRow(basis, style, measures))
    return rows


def _measure(column: Measured, answers: Sequence[Answer]) -> Estimate | None:
    name = "expressiveness" if column.detail else column.key
    if not any(name in a.scores for a in answers):
        return None
    if not column.detail:
        return corpus.over(column.key, answers)
    read = _detail(column.detail)
    rows = [(read(a), a.item.group) for a in answers]
    return on_scale(estimate(rows, kind="proportion" if column.key == "flat" else "mean"), *column.ends)


def _detail(name: str) -> Callable[[Answer], float | None]:
    def read(answer: Answer) -> float | None:
        score = answer.scores.get("expressiveness") if answer.answered else None
        found = score.detail.get(name) if score is not None else None
        return float(found) if isinstance(found, int | float) else None

    return read
