"""The log of a training run, and its report: one self-contained HTML file.

The report has the losses of all stages, the speed, and the model's replies to held-out clips during training. All texts
are escaped.
"""

from __future__ import annotations

import base64
import contextlib
import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from overtone.paths import shown, shown_lines, write_whole

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
    """Read a stage's evaluations, the last one of each step."""
    return list({look.step: look for look in _lines(path, Look)}.values())


def _lines(path: Path, kind: Any) -> list[Any]:
    rows = []
    for line in path.read_bytes().splitlines() if path.is_file() else ():
        with contextlib.suppress(msgspec.DecodeError):
            rows.append(msgspec.json.decode(line, type=kind))
    return rows


def write_report(out: Path) -> Path:
    """Write OUT/report.html from the files in OUT."""
    run = msgspec.json.decode((out / RUN).read_bytes(), type=RunDescription)
    names = [str(stage["name"]) for stage in run.stages]
    logs = {name: read_log(out / f"stage-{name}" / LOG) for name in names}
    looks = {name: read_looks(out / f"stage-{name}" / LOOKS) for name in names}
    parts = [f"<h1>{_escaped(run.title)}</h1>", _summary(run, logs, looks)]
    for stage in run.stages:
        name = str(stage["name"])
        if logs[name]:
            parts.append(f"<h2>Stage {_escaped(name)}: {_escaped(str(stage['title']))}</h2>")
            parts.append(picture(logs[name], looks[name], f"Loss of stage {name}"))
            parts.append(_losses(looks[name]))
            parts.append(_margins(out / f"stage-{name}" / MARGINS))
    parts.append(_samples(out, names, looks))
    settings = msgspec.json.format(msgspec.json.encode(run.settings), indent=1).decode()
    parts.append(f"<h2>Settings</h2><pre>{escape(shown_lines(settings))}</pre>")
    path = out / REPORT
    write_whole(path, _PAGE.format(title=_escaped(run.title), body="\n".join(filter(None, parts))).encode())
    return path


def _summary(run: RunDescription, logs: dict[str, list[Row]], looks: dict[str, list[Look]]) -> str:
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
    note = (
        "<p>Losses are means over the last tenth of each stage, in nats per token. Positions are those of the language "
        "model in one process, without padding.</p>"
    )
    return table(head, rows) + note


def _losses(looks: Sequence[Look]) -> str:
    if not any(look.losses for look in looks):
        return ""
    names = sorted({name for look in looks for name in look.losses})
    rows = [
        [f"{look.step:,}", *(f"{look.losses[name]:.3f}" if name in look.losses else "" for name in names)]
        for look in looks
    ]
    return "<h3>Held-out loss by task</h3>" + table(("step", *names), rows)


def _margins(path: Path) -> str:
    margins: list[Margin] = _lines(path, Margin)
    rows = [
        [f"{one.step:,}", one.part, f"{one.pairs}", f"{one.loss:.3f}", f"{one.margin:+.2f}", f"{100 * one.right:.0f} %",
         f"{one.chosen:+.2f}", f"{one.rejected:+.2f}"]
        for one in {(one.step, one.part): one for one in margins}.values()
    ]  # fmt: skip
    head = ("step", "part", "pairs", "loss", "margin, nats", "correct", "chosen", "rejected")
    return f"<h3>Preference pairs</h3>{table(head, rows)}" if rows else ""


def _samples(out: Path, names: Sequence[str], looks: dict[str, list[Look]]) -> str:
    samples = [(name, look, said) for name in names for look in looks[name] for said in look.said]
    if not samples:
        return ""
    rows, left = [], _EMBEDDED
    for name, look, said in samples:
        sound = ""
        path = out / f"stage-{name}" / Path(said.wav).name  # a log may be untrusted: only files of its own folder
        if said.wav and path.is_file() and path.stat().st_size < left:
            left -= path.stat().st_size
            coded = base64.b64encode(path.read_bytes()).decode()
            sound = f'<audio controls preload="none" src="data:audio/wav;base64,{coded}"></audio>'
        asked = said.question + (f" [{said.labels}]" if said.labels else "")
        cells = [asked, said.thought, said.text or said.failure, said.reference]
        texts = "".join(f"<td>{_escaped(cell)}</td>" for cell in cells)
        where = f"<td>{_escaped(name)}, {look.step:,}</td><td>{_escaped(said.key)}</td>"
        rows.append(f"<tr>{where}{texts}<td>{sound}</td></tr>")
    head = "".join(
        f"<th>{x}</th>" for x in ("stage, step", "record", "query", "thought", "reply", "reference", "speech")
    )
    return f"<h2>Replies to held-out clips</h2><table><tr>{head}</tr>{''.join(rows)}</table>"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return an HTML table with escaped cells."""
    top = "".join(f"<th>{_escaped(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{_escaped(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{top}</tr>{body}</table>"


def picture(log: Sequence[Row], looks: Sequence[Look], title: str) -> str:
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
        return ""
    low, high = min(0.0, *values), max(values) or 1.0
    last = max(row.step for row in log)

    def x(step: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * step / max(last, 1)

    def y(loss: float) -> float:
        return 10 + (HEIGHT - BOTTOM - 10) * (high - loss) / ((high - low) or 1.0)

    marks = []
    for tick in ticks(low, high):
        marks.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>')
        marks.append(f'<text x="{LEFT - 6}" y="{y(tick) + 3:.1f}" text-anchor="end">{tick:g}</text>')
    for tick in ticks(0, last):
        marks.append(f'<text x="{x(tick):.1f}" y="{HEIGHT - 10}" text-anchor="middle">{tick:,.0f}</text>')
    for number, (name, points) in enumerate(drawn.items()):
        places = [(x(step), y(loss)) for step, loss in points if math.isfinite(loss)]
        if name == "held-out":
            marks += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{COLOURS[name]}"/>' for a, b in places]
        else:
            path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in places)
            marks.append(f'<path d="{path}" fill="none" stroke="{COLOURS[name]}" stroke-width="1.5"/>')
        place = f'x="{WIDTH - RIGHT - 2}" y="{22 + 14 * number}" text-anchor="end"'
        marks.append(f'<text {place} style="fill:{COLOURS[name]}">{name}</text>')
    what = "; ".join(f"{name} {points[0][1]:.3g} to {points[-1][1]:.3g}" for name, points in drawn.items())
    return (
        f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img"><title>{_escaped(title)}</title>'
        + f"<desc>{_escaped(what)}</desc>"
        + "".join(marks)
        + "</svg>"
    )


def thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Reduce a curve to at most POINTS points by averaging."""
    size = max(1, math.ceil(len(points) / POINTS))
    groups = [points[i : i + size] for i in range(0, len(points), size)]
    return [(sum(a for a, _ in some) / len(some), sum(b for _, b in some) / len(some)) for some in groups]


def ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers between two."""
    raw = (high - low) / 5
    if raw <= 0 or not math.isfinite(raw):
        return [low]
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * n for n in (1, 2, 5, 10) if power * n >= raw * 0.999)
    return [round(step * n, 10) for n in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def _mean(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):.3f}" if values else ""


def _escaped(text: str) -> str:
    return escape(shown(text))


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; media-src data:; base-uri 'none'; form-action 'none'">
<style>
:root {{ color-scheme: light dark }}
body {{ font: 14px/1.45 Helvetica, Arial, sans-serif; max-width: 1000px; margin: 2em auto; padding: 0 1em }}
table {{ border-collapse: collapse; margin: 1em 0; display: block; overflow-x: auto }}
th, td {{ text-align: left; vertical-align: top; padding: 3px 10px 3px 0; border-bottom: 1px solid #8884 }}
svg {{ width: 100%; background: #fff }} svg text {{ font-size: 11px; fill: #5f6368 }} .grid {{ stroke: #d9dce1 }}
pre {{ overflow-x: auto; font-size: 12px }} audio {{ width: 220px }}
</style></head><body>
{body}
</body></html>
"""
