"""Tables as LaTeX: they compile with booktabs, and nothing runs over the margin, whatever names there are."""

from __future__ import annotations

import csv
import io
import re
import subprocess
from pathlib import Path

import pytest

from bench.findings_runs import make_runs
from overtone.cli import main
from overtone.display.grid import Look, grid
from overtone.display.table_data import Cell, Line, PartTable
from overtone.findings.finding import Settings
from overtone.findings.lookup import known_findings
from overtone.report.latex_tables import escaped, latex
from overtone.report.model_tables import model_tables
from overtone.report.named_tables import named_tables, table_names
from overtone.results.load import Reading, open_run
from overtone.results.measures import Estimate

NAMES = (
    "openai:gpt_4o%audio&preview#2", r"a{b}\c$d~e^f", "中文模型 9B", "modèle-très-étendu/ß", "x" * 90, "two words",
    "hf:organisation-of-the-lab/An-Extremely-Long-Model-Name-Instruct-7B-2026-01-31", "[x]", "🙂", '"q" <i> |',
    "żółw ą",
    "*",
)  # fmt: skip


def compiled(folder: Path, text: str, paper: str = "a4paper") -> str:
    """The log of pdflatex over a two-column article that inputs the tables. It must end without an error."""
    (folder / "tables.tex").write_text(text)
    start = rf"\documentclass[twocolumn,{paper}]{{article}}\usepackage{{booktabs}}\begin{{document}}"
    (folder / "paper.tex").write_text(start + "\n\\input{tables}\n\\end{document}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=120, check=False)
    log = (folder / "paper.log").read_text(errors="replace")
    assert done.returncode == 0, [line for line in log.splitlines() if line.startswith("!")]
    return log


def overfull(log: str) -> list[float]:
    return [x for x in map(float, re.findall(r"Overfull \\hbox \(([0-9.]+)pt too wide", log)) if x > 2]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return sorted(make_runs(tmp_path_factory.mktemp("runs"), runs=12, scripts=6))


@pytest.mark.latex
@pytest.mark.parametrize("paper", ["a4paper", "letterpaper"])
@pytest.mark.parametrize("look", [Look(), Look(compact=True, bold_best=True)], ids=["full", "compact"])
def test_the_headline_of_twelve_models_fits_the_page(runs: list[Path], look: Look, paper: str, tmp_path: Path) -> None:
    tables = model_tables([open_run(run, light=True) for run in runs], Settings())
    assert [table.key.rpartition("/")[2] for table in tables] == [
        "main", "voice", "reasoning", "text", "audio", "rq1", "rq2", "rq3",
    ]  # fmt: skip
    log = compiled(tmp_path, latex(tables, NAMES, look=look), paper)
    assert not overfull(log)
    assert "Float too large" not in log


@pytest.fixture(scope="module")
def readings(runs: list[Path]) -> list[Reading]:
    return [open_run(run, light=True) for run in runs]


@pytest.mark.latex
@pytest.mark.parametrize("name", [name for name in table_names() if name != "people"])  # nobody labelled these runs
def test_every_table_of_twelve_models_fits_the_page(name: str, readings: list[Reading], tmp_path: Path) -> None:
    for by in ("overall", "all") if name in known_findings() else ("overall",):
        tables = named_tables(name, readings, by)
        log = compiled(tmp_path, latex(tables, NAMES))
        assert not overfull(log), by
        assert "Float too large" not in log, by


def test_tables_with_many_floats_clear_the_page_between_them_and_not_at_the_end() -> None:
    tables = [of_models((0.1, 0.5, 1.0))] * 20
    texts = latex(tables).split("\\clearpage")
    assert [text.count(r"\begin{table") for text in texts] == [10, 10]


@pytest.mark.latex
def test_a_page_that_is_too_narrow_is_noticed(tmp_path: Path) -> None:
    text = r"\begin{table}\begin{tabular}{l}" + "word " * 60 + r"\end{tabular}\end{table}"
    assert overfull(compiled(tmp_path, text))


def of_models(*rows: tuple[float | None, ...], heads: tuple[str, ...] = ("WER ↓", "ACC ↑", "Other")) -> PartTable:
    lines = [
        Line(run, "", (), tuple(Cell(None if x is None else Estimate(x, x - 0.05, x + 0.07, 40, 40)) for x in row))
        for run, row in enumerate(rows)
    ]
    return PartTable("k/main", "Main", "Hint.", (), heads, tuple(lines), run_head="Model")


def test_the_best_is_bold_by_the_direction_of_its_column() -> None:
    made = grid(
        of_models((0.1, 0.5, 1.0), (0.2, 0.7, 2.0), (0.3, 0.70001, None)), ("a", "b", "c"), Look(bold_best=True)
    )
    bold = [[words.bold for words in cells][-3:] for _, cells in made.rows]
    assert bold == [[True, False, False], [False, True, False], [False, True, False]]


def test_compact_cells_have_half_the_width_and_the_caption_has_n() -> None:
    made = grid(of_models((0.1, 0.5, 1.0), (0.2, 0.7, 2.0)), ("a", "b"), Look(compact=True))
    assert made.heads == ["WER ↓", "ACC ↑", "Other"]
    assert made.rows[0][1][0].line == "10.0 ±6.0"
    assert made.hint.endswith("± is half the width of the 95 % interval by script. n = 40.")


def test_abbreviations_are_explained_in_the_caption() -> None:
    table = PartTable("k", "T", "", (), ("Long head ↑",), of_models((0.1,)).lines, short={"Long head ↑": "LH ↑"})
    text = latex([table])
    assert r"LH $\uparrow$" in text and r"LH: Long head." in text


def test_unsupported_characters_keep_their_number() -> None:
    assert escaped("中") == r"\overtonechar{中}{U+4E2D}"
    assert escaped("é_") == r"é\_"


def out(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main(["table", *words]) == code
    told = capsys.readouterr()
    return told.out if code == 0 else told.err


def test_columns_caption_and_label_are_those_given(runs: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    words = ("headline", *map(str, runs[:2]), "--format", "latex", "--part", "main", "--columns", "c4,WER")
    text = out(capsys, *words, "--caption", r"Ours~\cite{x}.", "--label", "tab:ours")
    assert r"\caption{Ours~\cite{x}.}" in text and r"\label{tab:ours}" in text
    assert r"Model & C4 $\uparrow$ & WER $\downarrow$" in text
    assert "ACC" not in text


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--columns", "C5", "--part", "main"], "--columns C5: no such column"),
        (["--part", "mein"], "did you mean 'main'"),
        (["--caption", "x", "--format", "latex"], "choose one with --part: main, voice"),
        (["--caption", "x"], "--caption applies to LaTeX"),
        (["--caption", "{", "--part", "main", "--format", "latex"], "not balanced"),
        (["--label", "a b", "--part", "main", "--format", "latex"], "use letters"),
        (["--compact", "--format", "csv"], "does not apply to CSV"),
        (["-o", "x.docx"], "an unknown ending"),
        (["-o", "x.docx", "--format", "latex"], "an unknown ending"),
    ],
)
def test_what_a_table_cannot_have_is_refused(
    words: list[str], told: str, runs: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert told in out(capsys, "headline", str(runs[0]), *words, code=2)


def test_the_headline_has_the_numbers_of_the_leaderboard(runs: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    texts = [
        out(capsys, "headline", str(runs[0]), "--part", "main", "--format", "csv"),
        out(capsys, "leaderboard", str(runs[0]), "--by", "all", "--format", "csv"),
    ]
    ours, theirs = ({row["key"]: row for row in csv.DictReader(io.StringIO(text)) if row["key"]} for text in texts)
    assert len(ours) == 16
    for key, row in ours.items():
        assert [row[x] for x in ("value", "low", "high", "scored")] == [
            theirs[key][x] for x in ("value", "low", "high", "scored")
        ]
