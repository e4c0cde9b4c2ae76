"""Simulated people: answers with planted preferences, raters' severities and unusable sessions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from overtone.judges import rubric as rubrics
from overtone.studio import contents, designs
from overtone.studio.designs import Unit
from overtone.studio.fields import Choice, Scale, Value
from overtone.studio.labels import Given
from overtone.studio.study import Study

NOON = 1_763_467_200.0  # 2025-11-18


def units_of(study: Study) -> list[Unit]:
    return list(contents.read(study).units)


def simulate(
    study: Study, worth: Mapping[str, float], *, raters: int = 12, each: int = 0, seed: int = 0, careless: int = 0,
    noise: float = 0.7,
) -> list[Given]:  # fmt: skip
    """Answers of raters who meet `each` units (0: all), on a scale around 3 or as choices by the difference in worth.

    The first `careless` raters answer at random, and the rules find their sessions unusable.
    """
    rng = np.random.default_rng(seed)
    units = units_of(study)
    design = designs.find(study.design)
    fields = design.fields([rubrics.load(name) for name in study.rubrics], study)
    script = {unit.group: rng.normal(0, 0.4) for unit in units}
    given = []
    for number in range(raters):
        severity = rng.normal(0, 0.5)
        chosen = rng.permutation(len(units))[: each or len(units)]
        for seq, at in enumerate(chosen.tolist(), 1):
            unit, swap = units[at], bool(rng.integers(2))
            values: dict[str, Value] = {}
            for field in fields:
                if (
                    isinstance(field, Scale) and len(unit.replies) == 2
                ):  # how much better the second one on the screen is
                    first, second = (worth[reply.run] for reply in unit.replies)
                    gap = (first - second if swap else second - first) + rng.normal(0, 1)
                    values[field.key] = int(np.clip(round(float(gap)), -3, 3))
                elif isinstance(field, Scale):
                    rated = worth[unit.system] + severity + script[unit.group] + rng.normal(0, noise)
                    if number < careless:
                        rated = rng.uniform(field.low, field.high)
                    values[field.key] = int(np.clip(round(float(rated)), field.low, field.high))
                elif isinstance(field, Choice) and len(unit.replies) == 2:
                    values[field.key] = _chosen(unit, worth, swap, rng, number < careless)
            given.append(
                Given(
                    rater=f"r{number:03}x{seed}", unit=unit, values=values, swap=swap, seq=seq, at=NOON + number * 60,
                    ms=9_000, usable=number >= careless, slot=f"{number}-{at}",
                )
            )  # fmt: skip
    return given


def _chosen(unit: Unit, worth: Mapping[str, float], swap: bool, rng: np.random.Generator, careless: bool) -> Value:
    """What somebody clicks: A is the reply that was played first."""
    first, second = (worth[reply.run] for reply in unit.replies)
    gap = (second - first if swap else first - second) + rng.normal(0, 1)
    if careless:
        return str(rng.choice(["A", "B", "both_good", "both_bad", "cannot_tell"]))
    if abs(gap) < 0.25:
        return "both_good" if first + second > 6 else "both_bad"
    return "A" if gap > 0 else "B"


def bytes_of(*runs: Path) -> bytes:
    """All bytes of the runs' files."""
    return b"".join(path.read_bytes() for run in runs for path in sorted(run.rglob("*")) if path.is_file())
