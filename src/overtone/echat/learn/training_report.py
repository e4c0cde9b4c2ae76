"""The log of a training run, and its report: one self-contained HTML file.

The report has the losses of all stages, the speed, and the model's replies to held-out clips during training.
"""

from __future__ import annotations

import base64
import contextlib
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from markupsafe import Markup
from msgspec import Struct

from overtone.html_page import visible, write_page

LOG, LOOKS, MARGINS, RUN, REPORT = "log.jsonl", "looks.jsonl", "margins.jsonl", "run.json", "report.html"
COLOURS = {
    "text": "#0072b2",
    "speech": "#d55e00",
    "ctc": "#009e73",
    "cues": "#cc79a7",
    "held-out": "#1b1b1b",
}  # the Okabe–Ito palette
WIDTH, HEIGHT, LEFT, RIGHT, BOTTOM = 760.0, 240.0, 46.0, 24.0, 28.0
POINTS = 300  # maximum points of a curve, each a mean over several steps
_EMBEDDED = 24_000_000  # maximum bytes of embedded audio


class Row(Struct, omit_defaults=True):
    """One optimiser step. Losses are means over their own targets, on all processes.

    `positions` and `seconds` count from the beginning of the stage.
    """

    step: int
    loss: float
    text: float
    speech: float
    ctc: float
    norm: float  # gradient norm before clipping
    rate: float  # factor on the learning rates
    text_targets: int
    speech_targets: int
    positions: int
    tasks: str
    seconds: float
    cues: float = 0.0


class Sample(Struct, omit_defaults=True):
    """A model's reply to a held-out clip."""

    key: str
    question: str
    labels: str = ""
    thought: str = ""
    text: str = ""
    wav: str = ""  # name of an audio file in the log's folder
    reference: str = ""
    failure: str = ""


class Look(Struct, omit_defaults=True):
    """An evaluation on held-out records: the loss by feed, and samples."""

    step: int
    losses: dict[str, float] = {}
    said: list[Sample] = []


class Margin(Struct):
    """Margins of a preference-trained model on a set of pairs."""

    step: int
    part: str  # train, held-out
    pairs: int
    loss: float
    margin: float  # mean increase of the preference for the chosen reply since the start, in nats
    right: float  # share of pairs whose chosen reply gained more than the rejected one
    chosen: float  # mean change of the chosen replies' log-probability, which may fall while the margin rises
    rejected: float


class RunDescription(Struct, omit_defaults=True):
    """The contents of run.json, written at the start of a run."""

    title: str
    stages: list[dict[str, Any]]  # name, title, steps, targets, learning
    settings: dict[str, Any]


def read_log(path: Path) -> list[Row]:
    """Read a stage's log. Incomplete lines of a killed run are skipped."""
    return _lines(path, Row)


def read_looks(path: Path) -> list[Look]:
    """Read a stage's evaluations: only the latest one of each step."""
    return list({look.step: look for look in _lines(path, Look)}.values())


def _lines(path: Path, kind: Any) -> list[Any]:
    rows = []
    for line in path.read_bytes().splitlines() if path.is_file() else ():
        with contextlib.suppress(msgspec.DecodeError):
            rows.append(msgspec.json.decode(line, type=kind))
    return rows


class Table(NamedTuple):
    """A table of the page."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


def write_report(out: Path) -> Path:
    """Write OUT/report.html from the files in OUT."""
    run = msgspec.json.decode((out / RUN).read_bytes(), type=RunDescription)
    names = [str(stage["name"]) for stage in run.stages]
    logs = {name: read_log(out / f"stage-{name}" / LOG) for name in names}
    looks = {name: read_looks(out / f"stage-{name}" / LOOKS) for name in names}
    stages = [
        {
            "name": name,
            "title": str(stage["title"]),
            "picture": picture(logs[name], looks[name], f"Loss of stage {name}"),
            "losses": _losses(looks[name]),
            "margins": _margins(out / f"stage-{name}" / MARGINS),
        }
        for name, stage in zip(names, run.stages, strict=True)
        if logs[name]
    ]
    return write_page(
        out / REPORT,
        "overtone.echat.learn",
        "training_report.html.j2",
        {
            "title": run.title,
            "summary": _summary(run, logs, looks),
            "stages": stages,
            "samples": _samples(out, names, looks),
            "settings": msgspec.json.format(msgspec.json.encode(run.settings), indent=1).decode(),
        },
    )


def _summary(run: RunDescription, logs: dict[str, list[Row]], looks: dict[str, list[Look]]) -> Table:
    rows = []
    for stage in run.stages:
        name = str(stage["name"])
        log = logs[name]
        last = log[-1] if log else None
        used = sum(row.text_targets + row.speech_targets for row in log)
        tail = log[-max(1, len(log) // 10) :]
        held = [x for look in looks[name][-1:] for x in look.losses.values()]
        rows.append(
            [
                f"{name}: {stage['title']}",
                ", ".join(stage["learning"]),
                f"{last.step if last else 0:,} of {stage['steps']:,}",
                f"{used:,} of {stage['targets']:,}" if used or not log else "helper losses only",
                _mean([row.text for row in tail if row.text_targets]),
                _mean([row.speech for row in tail if row.speech_targets]),
                _mean(held),
                f"{last.seconds / 60:.1f}" if last else "",
                f"{last.positions / last.seconds:,.0f}" if last and last.seconds else "",
            ]
        )
    head = ("stage", "learning", "steps", "target tokens", "text loss", "speech loss", "held-out loss", "minutes",
            "positions/s")  # fmt: skip
    return Table(head, rows)


def _losses(looks: Sequence[Look]) -> Table:
    names = sorted({name for look in looks for name in look.losses})
    rows = [
        [f"{look.step:,}", *(f"{look.losses[name]:.3f}" if name in look.losses else "" for name in names)]
        for look in looks
    ]
    return Table(("step", *names), rows if names else ())


def _margins(path: Path) -> Table:
    margins: list[Margin] = _lines(path, Margin)
    rows = [
        [f"{one.step:,}", one.part, f"{one.pairs}", f"{one.loss:.3f}", f"{one.margin:+.2f}", f"{100 * one.right:.0f} %",
         f"{one.chosen:+.2f}", f"{one.rejected:+.2f}"]
        for one in {(one.step, one.part): one for one in margins}.values()
    ]  # fmt: skip
    return Table(("step", "part", "pairs", "loss", "margin, nats", "correct", "chosen", "rejected"), rows)


def _samples(out: Path, names: Sequence[str], looks: dict[str, list[Look]]) -> Iterator[tuple[list[str], str]]:
    """Yield the cells of each sample and its audio in base64. Embedded audio has at most _EMBEDDED bytes in total."""
    left = _EMBEDDED
    samples = [(name, look, sample) for name in names for look in looks[name] for sample in look.said]
    for name, look, sample in samples:
        sound = ""
        path = out / f"stage-{name}" / Path(sample.wav).name  # a log may be untrusted: only files of its own folder
        if sample.wav and path.is_file() and path.stat().st_size < left:
            left -= path.stat().st_size
            sound = base64.b64encode(path.read_bytes()).decode()
        query = sample.question + (f" [{sample.labels}]" if sample.labels else "")
        texts = [query, sample.thought, sample.text or sample.failure, sample.reference]
        yield [f"{name}, {look.step:,}", sample.key, *texts], sound


def picture(log: Sequence[Row], looks: Sequence[Look], title: str) -> Markup:
    """Draw the losses of a stage as SVG: lines for training losses, dots for held-out losses."""
    curves = {
        "text": [(row.step, row.text) for row in log if row.text_targets],
        "speech": [(row.step, row.speech) for row in log if row.speech_targets],
        "ctc": [(row.step, row.ctc) for row in log if row.ctc],
        "cues": [(row.step, row.cues) for row in log if row.cues],
        "held-out": [(x.step, sum(x.losses.values()) / len(x.losses)) for x in looks if x.losses],
    }
    drawn = {name: points if name == "held-out" else thinned(points) for name, points in curves.items() if points}
    values = [y for points in drawn.values() for _, y in points if math.isfinite(y)]
    if not values:
        return Markup("")
    low, high = min(0.0, *values), max(values) or 1.0
    last = max(row.step for row in log)

    def x(step: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * step / max(last, 1)

    def y(loss: float) -> float:
        return 10 + (HEIGHT - BOTTOM - 10) * (high - loss) / ((high - low) or 1.0)

    marks = []
    for tick in ticks(low, high):
        marks.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>')
        marks.append(f'<text x="{LEFT - 6}" y="{y(tick) + 3:.1f}" text-anchor="end" class="tick">{tick:g}</text>')
    for tick in ticks(0, last):
        marks.append(f'<text x="{x(tick):.1f}" y="{HEIGHT - 10}" text-anchor="middle" class="tick">{tick:,.0f}</text>')
    for number, (name, points) in enumerate(drawn.items()):
        places = [(x(step), y(loss)) for step, loss in points if math.isfinite(loss)]
        if name == "held-out":
            marks += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{COLOURS[name]}"/>' for a, b in places]
        else:
            path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in places)
            marks.append(f'<path d="{path}" fill="none" stroke="{COLOURS[name]}" stroke-width="1.5"/>')
        place = f'x="{WIDTH - RIGHT - 2}" y="{22 + 14 * number}" text-anchor="end"'
        marks.append(f'<text {place} fill="{COLOURS[name]}">{name}</text>')
    what = "; ".join(f"{name} {points[0][1]:.3g} to {points[-1][1]:.3g}" for name, points in drawn.items())
    svg = Markup('<svg viewBox="0 0 {:g} {:g}" role="img"><title>{}</title><desc>{}</desc>{}</svg>')
    return svg.format(WIDTH, HEIGHT, visible(title), what, Markup("".join(marks)))


def thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Reduce a curve to at most POINTS points by averaging."""
    size = max(1, math.ceil(len(points) / POINTS))
    groups = [points[i : i + size] for i in range(0, len(points), size)]
    return [(sum(a for a, _ in some) / len(some), sum(b for _, b in some) / len(some)) for some in groups]


def ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers between `low` and `high`."""
    raw = (high - low) / 5
    if raw <= 0 or not math.isfinite(raw):
        return [low]
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * n for n in (1, 2, 5, 10) if power * n >= raw * 0.999)
    return [round(step * n, 10) for n in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def _mean(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):.3f}" if values else ""
