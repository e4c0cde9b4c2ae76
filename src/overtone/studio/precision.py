"""Time, pay and precision of a study before anyone takes part.

The variance of a difference between two systems has three parts, because items and raters are crossed. One comes from
items on which one system happens to do well, one from raters who prefer one system, and the third is the rest. More
votes per clip reduce only the third part.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from msgspec import Struct

from overtone.errors import UsageError
from overtone.stats.cluster import student_quantile
from overtone.studio.designs import Spread, Unit
from overtone.studio.fields import AnyField, Choice, Scale, Slider, Tags

SETUP_SECONDS = 180.0  # consent, calibration noise, headphones
SECONDS = {"Scale": 6.0, "Choice": 6.0, "Tags": 12.0, "Slider": 8.0, "Text": 20.0}  # to decide and answer
SCREEN_SECONDS = 3.0
_PAY = re.compile(r"(\d+(?:\.\d+)?)\s*([^\d\s]*)")


class Pay(Struct, frozen=True):
    """A wage per hour, in a unit that is only printed."""

    amount: float
    unit: str = ""

    def of(self, minutes: float) -> str:
        """Return the pay for some minutes, e.g. "3.20 GBP"."""
        return f"{self.amount * minutes / 60:.2f} {self.unit}".strip()


def pay(text: str) -> Pay:
    """Read a wage such as "12" or "9.50 GBP". Raises UsageError for anything else."""
    match = _PAY.fullmatch(text.strip())
    if match is None or float(match[1]) <= 0:
        raise UsageError(f"--pay-per-hour must be an amount and a unit, such as '9.50 GBP', not {text!r}")
    return Pay(float(match[1]), match[2])


def screen_seconds(sounds: float, fields: Sequence[AnyField], replays: float) -> float:
    """Return the time on one screen: its sounds, as often as they are heard, and its questions."""
    return SCREEN_SECONDS + replays * sounds + sum(SECONDS[type(field).__name__] for field in fields)


def span(fields: Sequence[AnyField]) -> float:
    """Return the width of the widest scale among the fields; 1 if no field has a scale."""
    widths = [float(field.high - field.low) for field in fields if isinstance(field, Scale | Slider)]
    widths += [float(len(field.options) - 1) for field in fields if isinstance(field, Choice)]
    widths += [1.0 for field in fields if isinstance(field, Tags)]
    return max(widths, default=1.0)


def half_width(spread: Spread, *, items: int, raters: int, answers: float) -> float:
    """Return half of the expected 95 % interval of a difference between two systems.

    `items` is the number of scripts that each system answered, `raters` the number of people who hear the system, and
    `answers` the number of its answers. In a design whose answers are already differences (A/B, CMOS), the result is
    for one mean, otherwise for the difference of two. The quantile is that of the results' own intervals
    (`stats.crossed`): Student's t by the smaller number of scripts and people, or by scripts if one person rates.
    """
    variance = spread.item**2 / items + spread.rater**2 / raters + spread.error**2 / answers
    clusters = items if raters < 2 else min(items, raters)
    return student_quantile(0.975, max(1, clusters - 1)) * math.sqrt((1 if spread.paired else 2) * variance)


class Sample(Struct, frozen=True):
    """The amount of data behind one difference."""

    items: int
    raters: int
    answers: float


def sample(units: Sequence[Unit], raters: int, session: int, votes: int) -> Sample:
    """Return the scripts, people and answers per system, if all people come and complete a session."""
    systems = {unit.system for unit in units}
    total = min(raters * session, len(units) * votes)
    answers = max(total / len(systems), 1.0)
    groups = {system: len({unit.group for unit in units if unit.system == system}) for system in systems}
    items = max(1, min(min(groups.values()), int(answers)))
    people = max(1, min(raters, int(answers)))
    return Sample(items, people, answers)
