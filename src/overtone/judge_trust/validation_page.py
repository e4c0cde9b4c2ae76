"""One self-contained HTML page of a validation: no script, no network, no trust in what labels and models say."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import jinja2

from overtone.judge_trust.people_agreement import MEASURES, Measure
from overtone.judge_trust.validation import Validation
from overtone.paths import shown, write_whole


def write(validation: Validation, out: Path) -> Path:
    """Write the page; it is complete or not there."""
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {"number": number, "interval": interval, "shown": shown}
    source = resources.files("overtone.judge_trust").joinpath("validation.html.j2").read_text(encoding="utf-8")
    text = environment.from_string(source).render(v=validation, measures=MEASURES)
    write_whole(out, text.encode())
    return out


def number(x: float | None, digits: int = 2) -> str:
    return "–" if x is None else f"{round(x, digits) + 0.0:.{digits}f}".replace("-", "−")


def interval(found: Measure | None) -> str:
    """`0.49 [0.43 to 0.55]`, or what is known of it."""
    if found is None or found.value is None:
        return "–"
    if found.low is None or found.high is None:
        return number(found.value)
    return f"{number(found.value)} [{number(found.low)} to {number(found.high)}]"
