"""The HTML page of a judge's validation: agreement with people, and audits."""

from __future__ import annotations

from pathlib import Path

from overtone.html_page import write_page
from overtone.judge_trust.people_agreement import MEASURES, Measure
from overtone.judge_trust.validation import Validation
from overtone.text import NONE, number

NO_CEILING = (
    "No ceiling: no unit has two raters, so it is unknown how far people agree with each other. "
    "The judge may be as close to one person as another person would be."
)


def write_validation(validation: Validation, out: Path) -> Path:
    """Write the page atomically and return its path."""
    title = f"{validation.judge} compared with people"
    context = {"title": title, "v": validation, "measures": MEASURES, "number": number, "interval": interval}
    context["no_ceiling"] = NO_CEILING
    return write_page(out, "overtone.report", "validation.html.j2", context)


def interval(measure: Measure | None) -> str:
    """Format a measure as `0.49 [0.43 to 0.55]`; only the value if it has no interval, and a dash if it has no
    value."""
    if measure is None or measure.value is None:
        return NONE
    limits = "" if measure.low is None else f" [{number(measure.low)} to {number(measure.high)}]"
    return number(measure.value) + limits
