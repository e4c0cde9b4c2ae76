"""`overtone study report`: analyse a folder of results and write one HTML page with all numbers and pictures."""

from __future__ import annotations

from pathlib import Path

import msgspec
from markupsafe import Markup

from overtone.display.drawing import Drawing, svg
from overtone.errors import DataError
from overtone.html_page import asset, write_page
from overtone.paths import shown

from . import pictures, report_tables, results
from . import study_analysis as analyses
from .answers import KEY_FILE, Key
from .study_analysis import ANALYSIS, Analysis
from .study_folder import DESCRIPTION, read_study

REPORT = "report.html"
TITLE = "The study of two perspectives"


def analysis_of(folder: Path, key: Path | None = None) -> Analysis:
    """Return the analysis of a folder of results.

    It is computed with the answer key and written to FOLDER/analysis.json. Without a key, it is read from that file.
    Raises DataError for a folder without results, and for one that has neither a key nor an analysis of these results.
    """
    where = shown(str(folder))
    if not folder.is_dir():
        raise DataError(f"{where}: there is no such folder; name the --out of `overtone study perspectives`")
    study = read_study(folder, None)
    if not results.paths(folder):
        started = (folder / DESCRIPTION).is_file()
        raise DataError(
            f"{where}: has no results{' yet' if started else ''}; "
            + ("continue the study first" if started else "name the --out of `overtone study perspectives`")
        )
    own = folder / KEY_FILE
    if key is None and not own.is_file():
        if (folder / ANALYSIS).is_file():
            return analyses.read(folder, study)
        raise DataError(
            f"{where}: has neither {KEY_FILE}, with which results are analysed, nor {ANALYSIS}. Name the answer key of "
            "these results with --key"
        )
    answers = Key.read(key or own)
    found = results.read(folder, study, answers.sha256)
    analysis = analyses.analyse(found, answers, study, analyses.fingerprint(folder))
    analyses.write(folder, analysis)
    return analysis


def write_report(analysis: Analysis, out: Path) -> Path:
    """Write the page of an analysis and return its path."""
    splits = [split for split in ("genre", "document") if report_tables.section(analysis, (split,))]
    drawings = [*(pictures.arms(analysis, split) for split in splits), pictures.contrasts(analysis)]
    sections = [(title, tables) for title, words in report_tables.SECTIONS
                if (tables := report_tables.section(analysis, words))]  # fmt: skip
    context = {
        "title": TITLE,
        "a": msgspec.to_builtins(analysis),
        "answer": report_tables.answer(analysis),
        "state": report_tables.state(analysis),
        "primary": report_tables.primary_grid(analysis),
        "primary_picture": _inline(pictures.primary(analysis)) if analysis.primary else "",
        "pictures": [_inline(drawing) for drawing in drawings],
        "sections": sections,
        "marks": report_tables.MARKS,
        "contrasts": report_tables.contrast_grid,
        "grid": report_tables.outcome_grid,
        "testable": report_tables.testable_grid(analysis),
        "power": report_tables.power_grid(analysis),
        "blocks": report_tables.block_grid(analysis),
    }
    package = "overtone.studies.perspectives"
    return write_page(out, package, "report.html.j2", context, css=asset(package, "report.css"))


def _inline(drawing: Drawing) -> Markup:
    return Markup(svg(drawing, inline=True))  # its texts are escaped
