"""`overtone table`: its names, its formats, where it writes, and what it refuses."""

from __future__ import annotations

import csv
import io
import resource
from pathlib import Path

import pytest

from bench.findings_runs import make_runs
from overtone.cli import main
from overtone.display.table_data import Cell, Line, PartTable
from overtone.findings.lookup import known_findings
from overtone.report.case_links import CaseFinder
from overtone.report.score_tables import RESULTS, result_tables
from overtone.report.table_formats import make_console, to_terminal
from overtone.results.load import open_run
from overtone.schema import Score
from tests.findings.asked_people import ask_people
from tests.report.fake_run import make_run
from tests.results.small import Maker, item


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folders = make_runs(tmp_path_factory.mktemp("runs"), runs=2, scripts=6)
    for worth, folder in enumerate(folders, 2):
        ask_people(folder, worth)
    return [str(folder) for folder in folders]


def out(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main(["table", *words]) == code
    told = capsys.readouterr()
    return told.out if code == 0 else told.err


def test_without_a_name_all_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    lines = out(capsys).splitlines()
    assert [line.split()[0] for line in lines] == [*known_findings(), *RESULTS, "published-levels"]
    assert all(len(line.split()) > 3 for line in lines)


@pytest.mark.parametrize("name", known_findings())
@pytest.mark.parametrize("form", ["table", "markdown", "latex", "csv"])
def test_every_finding_is_a_table_in_every_format(
    name: str, form: str, runs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    text = out(capsys, name, *runs, "--format", form)
    assert len(text) > 200
    if form == "csv":
        rows = list(csv.DictReader(io.StringIO(text)))
        assert all(float(row["value"]) is not None for row in rows if row["low"])
        assert all(row["key"] for row in rows if row["scored"])


def test_results_are_tables_too(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    readings = [open_run(Path(run), light=True) for run in runs]
    for name in [name for name in RESULTS if name != "headline"]:  # EchoMind's own are the results
        tables = result_tables(name, readings)
        assert tables, name
        told = {line.run for table in tables for line in table.lines}
        assert told == ({None} if name == "published" else {0, 1}), name
    text = out(capsys, "results", *runs, "--format", "csv")
    assert {row["run"] for row in csv.DictReader(io.StringIO(text))} == {"made-up:chain", "made-up:deaf"}


def test_every_number_of_the_results_leads_to_its_replies(runs: list[str]) -> None:
    reading = open_run(Path(runs[0]), light=True)
    finder = CaseFinder(reading)
    for name in ("results", "tasks", "cues"):
        cells = [c for t in result_tables(name, [reading]) for line in t.lines for c in line.cells]
        assert cells
        for cell in cells:
            if cell.estimate is not None:
                assert len(finder.answers(cell.key)) == cell.estimate.scored, cell.key
            assert cell.key or cell == Cell()


def test_the_headline_is_that_of_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_run(tmp_path / "run", scripts=6, failures=False, audio=False)
    rows = list(csv.DictReader(io.StringIO(out(capsys, "tasks", str(run), "--format", "csv"))))
    assert {row["Level"] for row in rows} == {"understanding", "reasoning"}
    cues = out(capsys, "cues", str(run), "--format", "markdown")
    assert "| Category | Cue |" in cues and "Voice ACC ↑" in cues


def test_words_are_a_column_once_and_are_not_called_percent(tmp_path: Path) -> None:
    make = Maker(tmp_path / "run")
    for number in range(3):
        talk = item(f"c{number}", "converse", level=3, script=f"s{number}")
        counts = [Score("reply_words", "reply_words|v2", 4.0 + number), Score("reply_chars", "reply_chars|v2", 20.0)]
        make.answered(talk, "Oh, that is sad.", *counts)
    (table,) = result_tables("results", [open_run(make.done(), light=True)])
    assert table.key == "conversation" and table.heads.count("Words") == 1 and "Characters" in table.heads
    assert all(len(line.cells) == len(table.heads) for line in table.lines)
    assert "words and characters per reply" in table.hint


def test_a_condition_stands_in_a_heading_once() -> None:
    line = Line(0, "task/audio", ("task/audio", "all"), (Cell(kind="text", text="3"),))
    page = io.StringIO()
    table = PartTable("x", "Title", "", ("Given", "Over"), ("Count",), (line, line))
    to_terminal(make_console(page, 80), [table], ["run"])
    assert page.getvalue().split("\n")[1] == "Title · task/audio"


@pytest.mark.parametrize("name", ["leaderboard", "published", "published-levels"])
def test_what_was_published_needs_no_run(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = out(capsys, name)
    assert ("GPT-4o-Audio" in text) == (name != "published-levels")
    assert ("0.72¹ [" in text) == (name == "published-levels")


def test_what_was_published_is_that_of_the_runs_benchmarks_and_there_once(
    runs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    every, own = out(capsys, "published"), out(capsys, "published", *runs)
    assert every.count("EchoMind, main results") == own.count("EchoMind, main results") == 1
    assert "EmpathyEval" in every and "EmpathyEval" not in own
    toy = Maker(tmp_path / "toy")
    toy.choice(item("q", "choose"), "A")
    toy.done()
    assert "no data for the table published" in out(capsys, "published", str(tmp_path / "toy"), code=2)


def test_the_files_ending_says_the_format(tmp_path: Path, runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for ending, begins in ((".md", "## "), (".tex", "% \\usepackage"), (".csv", "table,run"), (".txt", "The funnel")):
        path = tmp_path / "new" / f"t{ending}"
        assert out(capsys, "funnel", runs[0], "-o", str(path)) == f"{path}\n"
        assert path.read_text().startswith(begins)
    assert out(capsys, "funnel", runs[0], "-o", str(path), "--format", "csv")  # written over
    assert path.read_text().startswith("table,run")


def test_breakdowns_are_chosen(runs: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    text = out(capsys, "funnel", runs[0], "--by", "dimension")
    assert "speaker" in text and "paralinguistic" in text
    refused = out(capsys, "prompts", runs[0], "--by", "cue", code=2)
    assert "prompts has no breakdown by cue; it has overall" in refused


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["funel"], "did you mean 'funnel'"),
        (["funnel"], "needs runs: overtone table funnel RUN"),
        (["published-levels", "RUN"], "covers published results only"),
        (["funnel", "nowhere"], "nowhere"),
        (["funnel", "RUN", "RUN"], "given twice"),
        (["funnel", "RUN", "-o", "FOLDER"], "is a folder"),
        (["funnel", "RUN", "-o", "table.docx"], "name a file that ends in .md, .tex, .csv, .txt"),
        (["funnel", "RUN", "-o", "table.md", "--format", "csv"], "the file name ends like markdown"),
        (["funnel", "RUN", "--set", "funnel.used=9"], "from 1 to 5"),
        (["RUN"], "name the table before the runs"),
        (["results", "RUN", "--by", "cue"], "has no breakdown"),
    ],
)
def test_what_cannot_be_made_is_refused(
    words: list[str], says: str, tmp_path: Path, runs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    real = [{"RUN": runs[0], "FOLDER": str(tmp_path)}.get(word, word) for word in words]
    text = out(capsys, *real, code=2)
    assert says in text and text.count("\n") == 1


def test_a_table_that_runs_have_nothing_for_says_what_to_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    maker = Maker(tmp_path / "run")
    maker.transcript(item("t", "transcribe"), 1, 4)
    run = str(maker.done())
    assert "run with --prompt enhance,oracle,oracle-false" in out(capsys, "upper", run, code=2)
    assert "no data for the table judged" in out(capsys, "judged", run, code=2)
    assert "openai: with stream=yes" in out(capsys, "timings", run, code=2)


def test_a_file_that_cannot_be_written_is_a_clear_error(
    tmp_path: Path, runs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    text = out(capsys, "published", "-o", str(tmp_path / "file" / "t.md"), code=2)
    assert "cannot write" in text and "choose another file" in text


def test_a_full_disk_leaves_the_table_that_was_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "table.csv"
    file.write_text("yesterday")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))  # no file can grow beyond 100 bytes
    try:
        assert main(["table", "published-levels", "-o", str(file)]) != 0
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert f"cannot write {file}" in capsys.readouterr().err
    assert file.read_text() == "yesterday" and list(tmp_path.iterdir()) == [file]
