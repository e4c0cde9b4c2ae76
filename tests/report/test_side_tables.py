"""What a benchmark keeps apart is shown apart: in the terminal and on the page, only where there is data."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from overtone.report.page import write_report
from overtone.report.side_tables import apart, bases, wrong_answers
from overtone.report.terminal import print_run
from overtone.results.load import open_run
from overtone.results.summary import ConditionSummary, summarise_reading
from tests.report.browser import chromium
from tests.report.fake_run import make_run
from tests.report.open_run import make_open_run

TITLES = ("False cues", "Words against voice", "Dialogues", "Controls", "Fixed answers")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_open_run(tmp_path_factory.mktemp("open") / "run", scripts=40)


@pytest.fixture(scope="module")
def conditions(run: Path) -> list[ConditionSummary]:
    return summarise_reading(open_run(run, light=True)).conditions


def test_every_part_has_its_table(conditions: list[ConditionSummary]) -> None:
    tables = {t.title: t for t in apart([(0, c) for c in conditions])}
    assert tuple(tables) == TITLES
    for table in tables.values():
        assert all(len(line.cells) == len(table.heads) for line in table.lines)
        assert all(len(line.names) == len(table.names) for line in table.lines)
    assert [line.names for line in tables["False cues"].lines] == [("validated cues",), ("cues not validated",)]
    dominance = tables["Words against voice"].heads.index("Text-dominance ↓")
    told = {line.names[1]: line.cells[dominance].estimate for line in tables["Words against voice"].lines}
    assert told["conflict"] is not None and told["congruent"] is None, "on a twin the words are right"
    gap = next(line for line in tables["Dialogues"].lines if line.names[1] == "changed − steady")
    assert [cell.estimate is not None for cell in gap.cells] == [False, True]


def test_wrong_answers_name_their_readings(conditions: list[ConditionSummary]) -> None:
    table = wrong_answers([(0, c) for c in conditions])
    assert {line.names[0] for line in table.lines} == {"target", "alternative", "neutral"}
    assert {"Wrong", "Words alone", "Harmful"} <= set(table.heads)
    neutral = next(line for line in table.lines if line.names == ("neutral",))
    assert neutral.cells[table.heads.index("Words alone")].small == "0", "there the words are right"


def test_a_benchmark_without_parts_gets_no_such_tables(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", scripts=4)
    found = summarise_reading(open_run(folder, light=True)).conditions
    assert apart([(0, c) for c in found]) == [] and bases([("a", c) for c in found]) == []
    page = write_report([folder], tmp_path / "report.html").read_text()
    assert "Separate parts" not in page and 'class="basis"' not in page


def test_a_sentence_that_holds_for_all_is_said_once(conditions: list[ConditionSummary]) -> None:
    assert len(bases([("one", c) for c in conditions])) == 1
    other = [c for c in conditions if c.condition == "task/audio"]
    unlike = [*(("one", c) for c in conditions), ("two", _without(other[0]))]
    assert [s.split(":")[0] for s in bases(unlike)] == ["one", "two"]


def _without(c: ConditionSummary) -> ConditionSummary:
    from msgspec.structs import replace

    return replace(c, validated_cues=())


def test_the_terminal_says_over_which_cues_and_shows_the_rest_below(run: Path) -> None:
    out = io.StringIO()
    print_run(run, out)
    text = out.getvalue()
    assert "Over the 23 validated cues of 35 that were asked about." in text and text.count("cues not validated") >= 3
    for title in (*TITLES, "Wrong answers"):
        assert title in text, title
    assert "d′" in text and "−" in text


def test_the_page_shows_the_parts_and_both_turns_of_a_dialogue(run: Path, tmp_path: Path) -> None:
    report = write_report([run], tmp_path / "report.html")
    with chromium() as tab:
        tab.open(report, "#case=synthesis%2Fo0%2Fchanged")
        told, log = tab.text("#case"), tab.log
        heads = tab.page.locator("#apart h3").all_text_contents()
        marked = tab.page.locator("#map-0 th .n").all()
    assert tuple(heads) == TITLES and log == []
    assert "Reference replies" in told and "I see. How are you holding up?" in told and "Enjoy it!" in told
    assert told.count("Turn 2") == 2 and told.count("SemSim") == 2 and "changed dialogue" in told
    assert len(marked) == 12, "cues that are not validated are marked in the map"


def test_where_no_cue_is_validated_the_page_has_no_headline_and_says_why(tmp_path: Path) -> None:
    folder = make_open_run(tmp_path / "run", scripts=8, validated=0)
    page = write_report([folder], tmp_path / "report.html").read_text()
    assert "No headline: none of the " in page and page.count('<tr class="aside">') == 2
    out = io.StringIO()
    print_run(folder, out)
    assert "No headline: none of the " in out.getvalue() and "cues not validated" in out.getvalue()
    assert "validated cues" not in out.getvalue()
