"""The tables of findings: every number there, with its key and the cases under it, at every breakdown and width."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.cells import cell_len

from bench.findings_runs import make_runs
from overtone.display.table_data import Line, PartTable
from overtone.findings.analysis import cases_by_key, compute_findings
from overtone.findings.finding import FindingResult, Settings
from overtone.findings.finding_tables import joined, tables_of
from overtone.findings.funnel.compute import Funnel
from overtone.findings.levels.compute import Levels, published_levels
from overtone.findings.levels.tables import level_tables
from overtone.findings.lookup import known_findings
from overtone.report.latex_tables import latex
from overtone.report.table_formats import make_console, markdown, to_terminal
from overtone.results.load import Reading, open_run
from tests.findings.asked_people import ask_people
from tests.results.small import Maker, item

BREAKDOWNS = ("overall", "dimension", "style", "category", "cue", "all")


@pytest.fixture(scope="module")
def readings(tmp_path_factory: pytest.TempPathFactory) -> list[Reading]:
    folders = make_runs(tmp_path_factory.mktemp("runs"), runs=2, scripts=14)
    for worth, folder in enumerate(folders, 2):
        ask_people(folder, worth)
    return [open_run(folder, light=True) for folder in folders]


@pytest.fixture(scope="module")
def found(readings: list[Reading]) -> list[FindingResult[Any]]:
    return compute_findings(readings)


@pytest.fixture(scope="module")
def nothing(tmp_path_factory: pytest.TempPathFactory) -> list[FindingResult[Any]]:
    """The findings of a run of one transcript."""
    maker = Maker(tmp_path_factory.mktemp("small") / "run")
    maker.transcript(item("t", "transcribe"), 1, 4)
    return compute_findings([open_run(maker.done(), light=True)])


def by_key(tables: list[PartTable], key: str) -> PartTable:
    return next(table for table in tables if table.key == key)


def lines(table: PartTable, run: int) -> list[Line]:
    return [line for line in table.lines if line.run == run]


def test_every_finding_has_tables(found: list[FindingResult[Any]]) -> None:
    assert {finding.name for finding in found} == set(known_findings())
    assert all(tables_of(finding) for finding in found)


@pytest.mark.parametrize("by", BREAKDOWNS)
def test_every_number_has_a_key_that_leads_to_cases(
    by: str, found: list[FindingResult[Any]], readings: list[Reading]
) -> None:
    for finding in found:
        known = {key for key, _ in cases_by_key(readings, finding)}
        for table in tables_of(finding, by):
            for line in table.lines:
                for head, cell in zip(table.heads, line.cells, strict=True):
                    if cell.estimate is not None:
                        assert cell.key in known, (table.key, head, cell.key)


def test_a_table_has_as_many_cells_as_heads_and_names(found: list[FindingResult[Any]]) -> None:
    for finding in found:
        for by in BREAKDOWNS:
            for table in tables_of(finding, by):
                assert len(set(table.heads)) == len(table.heads)
                assert all(len(line.cells) == len(table.heads) for line in table.lines)
                assert all(len(line.names) == len(table.names) for line in table.lines)
                assert table.title and table.hint


def test_all_breakdowns_hold_what_each_of_them_holds(found: list[FindingResult[Any]]) -> None:
    for finding in found:
        if finding.name == "prompts":  # has no breakdown: all columns instead
            continue
        everything = {c.key for t in tables_of(finding, "all") for line in t.lines for c in line.cells}
        for by in finding.finding.breakdowns:
            own = {c.key for t in tables_of(finding, by) for line in t.lines for c in line.cells}
            assert own <= everything, (finding.name, by)


def test_the_funnel_has_a_line_for_each_stage_with_both_sides_of_its_step(found: list[FindingResult[Any]]) -> None:
    finding = next(f for f in found if f.name == "funnel")
    table = by_key(tables_of(finding), "funnel")
    assert {line.condition for line in table.lines} == {"enhance/audio"}
    assert [line.names[-1] for line in table.lines] == [
        "heard the words", "heard the cue", "reasoned from it", "used it in the reply", "sounded right",
    ]  # fmt: skip
    assert isinstance(finding.data, Funnel)
    row = next(r for r in finding.data.rows if r.key == "funnel/enhance/audio/overall/used")
    cells = table.lines[3].cells
    assert [c.key for c in cells if c.estimate] == [
        f"1:{row.key}{end}" for end in ("", "/given", "/otherwise", "/step", "/through")
    ]
    assert cells[0].estimate is not None and cells[0].estimate.value == row.reached.value
    assert cells[4].kind == "points" and cells[4].estimate is not None
    assert row.step is not None and cells[4].estimate.value == row.step.difference.value


def test_another_prompt_or_input_can_stand_for_the_run(found: list[FindingResult[Any]]) -> None:
    finding = next(f for f in found if f.name == "funnel")
    zero = by_key(tables_of(finding, "overall", Settings(prompt="zero")), "funnel")
    assert {line.condition for line in zero.lines} == {"zero/audio"}
    words = by_key(tables_of(finding, "overall", Settings(input="transcript")), "funnel")
    assert {line.condition for line in words.lines} == {"enhance/transcript"}
    every = by_key(tables_of(finding, "all"), "funnel")
    assert {"zero/audio", "oracle/audio"} <= {line.condition for line in every.lines}


def test_tables_of_several_runs_become_one_with_all_columns(found: list[FindingResult[Any]]) -> None:
    both = [f for f in found if f.name == "funnel"]
    whole = by_key(joined(t for f in both for t in tables_of(f)), "funnel")
    assert [len(lines(whole, run)) for run in (0, 1)] == [5, 5]
    assert {line.cells[0].key[:2] for line in lines(whole, 1)} == {"2:"}
    one = PartTable("k", "T", "", ("N",), ("A",), (Line(0, "", ("x",), whole.lines[0].cells[:1]),))
    other = PartTable("k", "T", "", ("N",), ("B", "A"), (Line(1, "", ("y",), whole.lines[1].cells[:2]),))
    (merged,) = joined([one, other])
    assert merged.heads == ("A", "B")
    assert merged.lines[0].cells[1].estimate is None
    assert merged.lines[1].cells == (whole.lines[1].cells[1], whole.lines[1].cells[0])


def test_a_matrix_of_levels_has_r_above_and_rho_below_the_diagonal(found: list[FindingResult[Any]]) -> None:
    finding = next(f for f in found if f.name == "levels")
    assert isinstance(finding.data, Levels)
    table = by_key(tables_of(finding), "levels/all/case/within")
    row = finding.data.row("case", "within", "voice_accuracy", "cspeechrel")
    voice, c4 = table.heads.index("Voice accuracy"), table.heads.index("C4")
    assert table.lines[voice].cells[voice].estimate is None
    above, below = table.lines[voice].cells[c4].estimate, table.lines[c4].cells[voice].estimate
    assert above is not None and below is not None and row is not None
    assert (above.value, below.value) == (row.pearson.value, row.spearman.value)


def test_the_papers_levels_stand_without_a_run() -> None:
    tables = level_tables(published_levels())
    assert [table.key for table in tables] == ["levels", "levels/published/model/between"]
    cell = tables[0].lines[0].cells[0]
    assert cell.estimate is not None and cell.estimate.value == pytest.approx(0.719, abs=0.001)
    assert not cell.key  # the paper's cases are not here


def test_the_boards_mark_what_is_not_like_for_like(found: list[FindingResult[Any]]) -> None:
    finding = next(f for f in found if f.name == "leaderboard")
    tables = tables_of(finding)
    assert [table.key for table in tables] == ["leaderboard/lb1", "leaderboard/lb2", "leaderboard/lb3"]
    for table in tables:
        own = [line for line in table.lines if line.names[1].startswith("▸")]
        assert len(own) == 2
        for line in own:
            assert any("the paper's" in note for note in line.cells[0].notes)
            assert line.cells[1].text  # ranks that are left open
        paper = [line for line in table.lines if line not in own]
        assert len(paper) in (10, 14)
        assert not any(cell.key or cell.notes for line in paper for cell in line.cells)


def test_the_fair_choice_stands_beside_the_flattering_one(found: list[FindingResult[Any]]) -> None:
    finding = next(f for f in found if f.name == "prompts")
    tables = tables_of(finding)
    assert [table.key for table in tables][:2] == ["prompts", "choice"]
    assert [line.names[-1] for line in tables[0].lines] == ["zero", "basic", "enhance"]
    fair, flattered, by = tables[1].lines[0].cells
    assert fair.estimate is not None and flattered.estimate is not None and by.estimate is not None
    assert by.estimate.value == pytest.approx((flattered.estimate.value or 0) - (fair.estimate.value or 0))


def test_a_wrong_cue_stands_beside_the_right_one(found: list[FindingResult[Any]]) -> None:
    table = tables_of(next(f for f in found if f.name == "upper"))[0]
    values = {h: c.estimate.value for h, c in zip(table.heads, table.lines[0].cells, strict=True) if c.estimate}
    right, wrong = values["Cue stated"], values["Wrong cue stated"]
    assert right is not None and wrong is not None
    assert values["Right minus wrong ↑"] == pytest.approx(right - wrong)


@pytest.mark.parametrize("width", [80, 160])
def test_all_tables_fit_the_terminal(width: int, found: list[FindingResult[Any]]) -> None:
    out = io.StringIO()
    tables = joined(t for f in found for t in tables_of(f))
    to_terminal(make_console(out, width), tables, ["a run with a rather long name", "b"], hints=True)
    assert max(map(cell_len, out.getvalue().splitlines())) <= width


def test_all_tables_are_written_as_markdown_and_latex(found: list[FindingResult[Any]]) -> None:
    tables = joined(t for f in found for t in tables_of(f, "all"))
    assert markdown(tables, ["a", "b"]).count("\n## ") == len(tables) - 1
    made = latex(tables, ["a", "b"])
    assert made.count(r"\begin{tabular}") == made.count(r"\end{tabular}") >= len(tables), "wide ones have panels"
    floats = [part for part in made.split(r"\begin{table")[1:] if ", continued." not in part]
    assert len(floats) == len(tables), "one float for each table, besides those that continue it"
    assert all(ord(c) < 128 for c in made), sorted({c for c in made if ord(c) > 127})


def test_what_cannot_be_told_says_what_to_run(
    nothing: list[FindingResult[Any]], found: list[FindingResult[Any]]
) -> None:
    told = {finding.name: finding.notes for finding in nothing}
    wanted = {
        "funnel": "--levels 2",
        "sensitivity": "--repeats 2",
        "text-only": "--input audio,transcript",
        "levels": "at least three models",
        "prompts": "--prompt zero,basic,enhance",
        "source": "clips of two",
        "upper": "--prompt enhance,oracle,oracle-false",
        "leaderboard": "overtone score RUN --judge",
    }
    for name, words in wanted.items():
        assert any(words in line for line in told[name]), (name, told[name])
    rich = {finding.name: finding.advice for finding in found if finding.runs[0] == 0}
    assert [name for name, lines in rich.items() if lines] == ["levels"]


def test_a_run_of_one_script_has_tables_of_what_it_has(nothing: list[FindingResult[Any]]) -> None:
    funnel = next(f for f in nothing if f.name == "funnel")
    (table,) = tables_of(funnel)
    assert [line.names for line in table.lines] == [("heard the words",)]
    for finding in nothing:
        for by in BREAKDOWNS:
            tables_of(finding, by)
