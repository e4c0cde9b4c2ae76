"""One self-contained HTML file for one or several runs: it works from disk, needs no network and trusts no text.

Text of models, data and file names is hostile. It is escaped here (Jinja2 autoescape, JSON that cannot end its
element), the page only sets textContent, and a Content-Security-Policy allows no script but our own.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

from markupsafe import Markup

from overtone.display.table_data import PartTable, bounds, counted
from overtone.errors import StoreError, UsageError
from overtone.findings.figure_source import FigureSource
from overtone.findings.verdict import LEAST_SCRIPTS
from overtone.html_page import asset, write_page
from overtone.judge_trust.calibration import Calibrated, calibrated_means
from overtone.judge_trust.labels import Labels
from overtone.report import reply_tables, template_tables
from overtone.report.arena_page import arena_section, read_standings
from overtone.report.case_data import Chunks, pack, to_json
from overtone.report.case_links import where
from overtone.report.extreme_cards import ends
from overtone.report.findings_page import sections
from overtone.report.first_screen import cards
from overtone.report.flips import comparisons
from overtone.report.glossary import GLOSSARY, explained, gloss, meaning
from overtone.report.headline_tables import headlines, published
from overtone.report.links import Links
from overtone.report.media import Media
from overtone.report.missing_tables import absent_sections, has_values, what_fills
from overtone.report.score_tables import timings_table
from overtone.results import style_following
from overtone.results.headline import cases_by_key, has_own_tables
from overtone.results.headline_condition import check_source, of_source
from overtone.results.heard_items import mark_heard
from overtone.results.load import Reading, open_run, signature_differences
from overtone.results.measures import Estimate
from overtone.results.summary import Summary, summarise_reading
from overtone.runs import audio_probe
from overtone.text import by_kind, interval, percent, seconds, value_of

GENERATOR = b'<meta name="generator" content="Overtone '
SCRIPTS = ("page.js", "sections.js", "list.js", "filters.js", "case.js", "panel.js", "links.js")  # in one scope


def write_report(
    runs: list[Path],
    out: Path,
    embed_audio: bool = False,
    calibrated: Path | Callable[[Reading], Labels] | None = None,
    arena: Path | None = None,
    missing: Sequence[str] = (),
    source: str = "",
    heard: str = "",
    data: Sequence[Path] = (),
    warn: Callable[[str], None] = lambda text: None,
) -> Path:
    """Write the report of `runs` to `out` and return its path. If it fails, no file is left behind.

    `calibrated` is a file of people's labels, or returns the labels of a run; the judges' means corrected by these
    labels are shown beside the uncorrected ones. `arena` is a folder of `overtone arena`, whose standings are shown
    too. `missing` says which runs are not in the report, and why. `source` restricts the report to the clips of one
    source; "all" pools all sources. `heard` makes items count that a model heard, see `heard_items`.
    Clips are embedded from data folders in the working directory or in `data`; `warn` receives a note on runs whose
    clips are not embedded.
    """
    if not runs:
        raise UsageError("name at least one run")
    check_not_folder(out)
    with _beside(out) as file:
        _write(runs, out, embed_audio, calibrated, arena, missing, source, heard, data, warn, Chunks(file))
    return out


@contextlib.contextmanager
def _beside(out: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file on the same disk as the report. Raises StoreError if that disk fails."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out.parent) as file:
            yield file
    except OSError as error:
        raise StoreError(f"cannot write {out}: {error.strerror}; choose another file with -o") from None


def _write(
    runs: list[Path],
    out: Path,
    embed_audio: bool,
    calibrated: Path | Callable[[Reading], Labels] | None,
    arena: Path | None,
    missing: Sequence[str],
    source: str,
    heard: str,
    data: Sequence[Path],
    warn: Callable[[str], None],
    chunks: Chunks,
) -> None:
    standings = read_standings(arena) if arena else None
    readings = sorted((open_run(folder, light=True) for folder in runs), key=has_own_tables)
    check_source(readings, source)
    mark_heard(readings, heard)
    readings = [of_source(reading, source) for reading in readings]
    media = Media(out, embed_audio, data)
    labels = run_labels(readings)
    corrected = []
    if calibrated is not None:
        given = [calibrated(reading) if callable(calibrated) else calibrated for reading in readings]
        corrected = [calibrated_means(reading, own) for reading, own in zip(readings, given, strict=True)]
    index = pack(readings, labels, media, chunks)
    links = Links(readings, [row[0] for row in index["cases"]], corrected)
    context = _context(readings, labels, corrected)
    context["warnings"] = [*missing, *media.notes(), *context["warnings"]]
    for note in media.notes():
        warn(note)
    linked = [reading for reading in readings if not has_own_tables(reading)]  # their levels share scripts
    pictured = FigureSource(linked, labels[: len(linked)], arena=standings)
    context["findings"] = sections(pictured, links) if linked else []
    context["finding_labels"] = labels[: len(linked)] if len(linked) < len(labels) else []
    context["suites"] = _own_tables(readings, links)
    context["published"] = published(readings)
    everybody = FigureSource(readings, labels, arena=standings)
    context["arena"] = arena_section(arena, standings, everybody, links) if arena and standings else None
    summaries = [run["summary"] for run in context["runs"]]
    context["cards"] = cards(readings, summaries, pictured)
    context["ends"], sounds = ends(zip(context["runs"], summaries, readings, strict=True), media)
    context["compared"] = comparisons(readings, labels, links, media, sounds)
    context["absent"] = absent_sections(context) if linked else []
    media.check_size()
    write_page(
        out,
        "overtone.report",
        "report.html.j2",
        {
            **context,
            **_functions(links),
            "index": Markup(to_json(index)),
            "case_count": len(index["cases"]),
            "card_sounds": Markup(to_json(sounds)),
            "glossary": GLOSSARY,
            "few": LEAST_SCRIPTS,
            "chunks": chunks,
            "sounds": (media.block(number) for number in range(len(media.blocks))),
            "embedded": embed_audio,
        },
        css=asset("overtone.report", "app.css"),
        js=f'"use strict";\n(function () {{\n{"".join(asset("overtone.report", name) for name in SCRIPTS)}}})();\n',
    )


def check_not_folder(out: Path) -> None:
    """Raise UsageError if the report's file is a folder."""
    if out.is_dir():
        raise UsageError(f"{out} is a folder; give the report a file name, e.g. {out}/report.html")


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(4096)


def check_writable(out: Path) -> None:
    """Raise UsageError before a long run if its report could not be written. A file that is not a report of Overtone
    is never replaced, because an untrusted run file may name any file."""
    check_not_folder(out)
    try:
        if out.exists() and GENERATOR not in _beginning(out):
            raise UsageError(f"{out} exists and is not a report of Overtone; choose another file")
        out.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=out.parent).close()
    except OSError as error:
        raise UsageError(f"the report {out} could not be written: {error.strerror}; choose another file") from None


def _own_tables(readings: list[Reading], links: Links) -> list[PartTable]:
    """Return the headline tables of the runs' benchmarks, and register the links of their numbers in `links`."""
    made = headlines(readings)
    keys = {cell.key for table in made for line in table.lines for cell in line.cells}
    for number, reading in enumerate(readings):
        links.take(((f"{number + 1}:{key}", cases) for key, cases in cases_by_key(reading)), keys, [number])
    return made


def run_labels(readings: list[Reading]) -> list[str]:
    """Return a short name for each run: its model. If several runs have the same model, the name of the benchmark or
    else of the folder is added."""
    models = [_model_name(r.meta.get("model", "")) or r.name for r in readings]
    asked = [(m, r.benchmark) for m, r in zip(models, readings, strict=True)]
    more = [r.benchmark if asked.count(pair) == 1 else r.name for pair, r in zip(asked, readings, strict=True)]
    labels = [m if models.count(m) == 1 else f"{m} ({x})" for m, x in zip(models, more, strict=True)]
    return [x if labels.count(x) == 1 else f"{x} #{n}" for n, x in enumerate(labels, 1)]


def _model_name(spec: str) -> str:
    """Return the SPEC without its options. If the SPEC names a path, return only the last part."""
    kind, colon, name = spec.partition("?")[0].partition(":")
    return f"{kind}{colon}{Path(name).name if name.startswith(('/', '.', '~')) else name}"


def _functions(links: Links) -> dict[str, Any]:
    """Return the functions that the templates call."""
    return {
        "percent": partial(by_kind, kind="percent"),
        "interval": interval,
        "bounds": bounds,
        "counted": counted,
        "seconds": seconds,
        "value_of": value_of,
        "whisker": whisker,
        "where": where,
        "linked": links.linked,
        "cases": links.cases,
        "picture": links.picture,
        "sets": links.json,
        "footnotes": footnotes,
        "gloss": gloss,
        "explained": explained,
        "meaning": meaning,
        "has_values": has_values,
        "what_fills": what_fills,
        "bar": bar,
    }


def _context(readings: list[Reading], labels: list[str], corrected: list[list[Calibrated]]) -> dict[str, Any]:
    summaries = [summarise_reading(reading) for reading in readings]
    several = len({s.benchmark for s in summaries}) > 1
    runs = [_run(n, s, label, several) for n, (s, label) in enumerate(zip(summaries, labels, strict=True))]
    names = ", ".join(dict.fromkeys(s.benchmark for s in summaries if s.benchmark)) or "run"
    title = f"{names}: {labels[0]}" if len(runs) == 1 else f"{names}: {len(runs)} runs"
    return {
        "title": title,
        "lead": _lead(summaries),
        "warnings": _warnings(summaries),
        "differences": signature_differences(readings),
        "runs": runs,
        "written": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "calibrated": reply_tables.calibrated(corrected, summaries),
        "signed_following": lambda line: summaries[line.run].signatures.get(style_following.METRIC, ""),
        "timings": timings_table(readings),
        **template_tables.tables(runs),
    }


def _lead(summaries: list[Summary]) -> str:
    most: dict[str, int] = {}
    for s in summaries:
        most[s.benchmark] = max(s.cases, most.get(s.benchmark, 0))
    cases = sum(most.values())
    asked = sum(s.asked for s in summaries)
    answered = sum(s.answered for s in summaries)
    return f"{cases:,} cases, {asked:,} requests, {answered:,} answered"


def _warnings(summaries: list[Summary]) -> list[str]:
    lines = []
    for summary in summaries:
        probe = audio_probe.read(summary.meta.get(audio_probe.META))
        if probe is not None and probe.warning:
            lines.append(f"{summary.name}: {probe.warning}")
        missing = summary.failed + summary.pending
        if summary.asked and missing / summary.asked > 0.05:
            share = percent(missing / summary.asked)
            lines.append(f"{share} of {summary.name}’s replies are missing; read its numbers with their bounds")
    return lines


def _run(number: int, summary: Summary, label: str, several: bool) -> dict[str, Any]:
    asked = max(1, summary.asked)
    return {
        "number": number,
        "label": label,
        "summary": summary,
        "bar": [round(100 * summary.answered / asked, 2), round(100 * summary.failed / asked, 2)],
        "facts": template_tables.facts(summary),
        "notes": summary.notes,
        "prefix": f"{summary.benchmark}/" if several else "",
    }


def footnotes(table: PartTable) -> list[str]:
    """Return the notes on the numbers of a table, without duplicates."""
    return list(dict.fromkeys(note for line in table.lines for cell in line.cells for note in cell.all_notes))


def bar(e: Estimate, chance: float | None) -> Markup:
    """Draw a share as a bar from 0 to 100 with its interval, and a dashed tick at chance."""
    x = [round(100 * min(1.0, max(0.0, v or 0.0)), 1) for v in (e.value, e.low, e.high, chance)]
    line = Markup('<path class="w-line" d="M{0} 6H{1}"/>').format(x[1], x[2]) if e.low is not None else ""
    tick = Markup('<path class="w-chance" d="M{0} 0v12"/>').format(x[3]) if chance is not None else ""
    return Markup(
        '<svg class="share" viewBox="0 0 100 12" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="s-all" width="100" height="12"/><rect class="s-part" width="{0}" height="12"/>{1}{2}</svg>'
    ).format(x[0], line, tick)


def whisker(e: Estimate, chance: float | None) -> Markup:
    """Draw an interval between 0 and 100: a line, a dot, and a dashed tick at chance."""
    x = [round(2 + 96 * min(1.0, max(0.0, v or 0.0)), 1) for v in (e.low, e.high, e.value, chance)]
    tick = Markup('<path class="w-chance" d="M{0} 1v8"/>').format(x[3]) if chance is not None else ""
    return Markup(
        '<svg class="whisker" width="100" height="10" viewBox="0 0 100 10" aria-hidden="true">'
        '<path class="w-axis" d="M2 5h96"/>{4}<path class="w-line" d="M{0} 5H{1}"/>'
        '<circle class="w-dot" cx="{2}" cy="5" r="3"/></svg>'
    ).format(x[0], x[1], x[2], x[3], tick)
