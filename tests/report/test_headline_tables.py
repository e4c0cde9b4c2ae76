"""A benchmark's own tables as tables: keys, arrows, and what was published as printed."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest

from overtone.cli import main
from overtone.report.headline_tables import first_screen, headlines, published
from overtone.report.page import write_report
from overtone.report.terminal import print_run
from overtone.results.headline import cases_by_key
from overtone.results.load import Reading, open_run
from overtone.results.published import COLUMNS, papers
from overtone.schema import Score
from overtone.suite import find_suite
from tests.report.fake_run import make_run
from tests.results.small import Maker, item


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Four questions in two groups; one of them is answered wrongly."""
    made = Maker(tmp_path / "run")
    for n in range(4):
        one = item(f"q{n}", "choose", level=2, category="tone", script=f"g{n // 2}", benchmark="empathyeval")
        made.choice(one, "A" if n else "B")
    made.store.set_meta({"benchmark": "empathyeval"})
    made.store.commit()
    return tmp_path / "run"


def test_a_benchmarks_own_table_stands_in_terminal_page_and_alone(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_run(run)
    assert "EmpathyEval" in capsys.readouterr().out
    assert main(["table", "headline", str(run), "--format", "csv"]) == 0
    assert "66.66" in capsys.readouterr().out
    page = write_report([run], tmp_path / "report.html").read_text(encoding="utf-8")
    assert 'href="#behind=1%3Asuite/empathyeval/task/audio/final"' in page
    assert "Qwen2.5-Omni-7B" in page


def test_the_first_screen_has_no_table_of_what_was_told_already_and_names_the_others(tmp_path: Path) -> None:
    made = Maker(tmp_path / "run")
    for n in range(3):
        one = item(f"a{n}", "choose", category="sound-aqa", script=f"a{n}", benchmark="air-bench", topic="sound")
        made.answered(one, "A", Score("air_letter", "l|v1", 1.0), Score("accuracy", "a|v1", 1.0))
        talk = item(f"c{n}", "converse", level=3, category="speech-qa", script=f"c{n}", benchmark="air-bench")
        told = msgspec.structs.replace(talk, topic="speech", case=f"chat/{n}")
        made.answered(told, "Yes.", Score("air_a@j", "j|v1", 7.0), Score("air_b@j", "j|v1", 8.0))
    made.store.set_meta({"benchmark": "air-bench"})
    made.store.commit()
    first, others = first_screen(open_run(tmp_path / "run"))
    assert [table.title for table in first] == ["AIR-Bench, foundation", "AIR-Bench, chat"]
    assert others == ["AIR-Bench, foundation by task", "AIR-Bench, chat: against the reference"]
    out = io.StringIO()
    print_run(tmp_path / "run", out)
    (line,) = [line for line in out.getvalue().splitlines() if "by task" in line]
    assert line == f"2 more: {'; '.join(others)} (overtone table headline {tmp_path / 'run'})"


def test_an_empty_headline_says_that_a_judge_is_wanted(tmp_path: Path) -> None:
    out = io.StringIO()
    for name, judged in (("bare", False), ("judged", True)):
        made = Maker(tmp_path / name)
        one = item("c", "converse", level=3, category="emotion", benchmark="sd-eval")
        made.answered(one, "Yes.", *([Score("rating_emotion@j", "j|v1", 7.0)] if judged else []))
        made.store.set_meta({"benchmark": "sd-eval"})
        made.store.commit()
        print_run(tmp_path / name, out)
    assert f"(overtone score {tmp_path / 'bare'} --judge SPEC)" in out.getvalue()
    assert out.getvalue().count("must be judged first") == 1


def test_beside_others_findings_are_of_the_runs_whose_levels_share_scripts(run: Path, tmp_path: Path) -> None:
    linked = make_run(tmp_path / "linked", scripts=6)
    page = write_report([run, linked], tmp_path / "report.html").read_text(encoding="utf-8")
    assert 'href="#behind=2%3Asuite/empathyeval/task/audio/final"' in page, "linked runs stand first"
    assert 'href="#behind=1%3Afunnel/' in page and 'href="#behind=2%3Afunnel/' not in page
    assert "whose levels share their scripts" in page
    alone = write_report([run], tmp_path / "alone.html").read_text(encoding="utf-8")
    assert 'id="findings"' not in alone and 'href="#findings"' not in alone


def test_the_headline_of_a_benchmark_has_a_key_under_every_number(run: Path) -> None:
    reading = open_run(run)
    (table,) = headlines([reading])
    assert table.heads[:3] == ("Final\u00a0↑", "Acc\u00a0↑", "Bonus\u00a0↑") and len(table.lines) == 1
    final, right, whole = table.lines[0].cells[:3]
    assert final.estimate is not None and final.estimate.value == (3 + 1) / (4 + 2)
    assert right.estimate is not None and right.estimate.value == 3
    assert whole.estimate is not None and whole.estimate.value == 1
    known = {f"1:{key}" for key, _ in cases_by_key(reading)}
    assert {cell.key for cell in table.lines[0].cells if cell.key} <= known


def _reading(benchmark: str) -> Reading:
    return Reading(Path(), {"benchmark": benchmark}, [], [], {}, [], 0, Path, suite=find_suite(benchmark))


def test_published_results_stand_as_printed() -> None:
    (table,) = published([_reading(name) for name in ("empathyeval", "open", "empathyeval")])
    row = next(line for line in table.lines if line.names == ("Qwen2.5-Omni-7B",))
    assert [cell.text for cell in row.cells] == ["249", "35", "0.389", "0.381", "0.420"]


def test_echominds_published_table_is_there_once_as_printed() -> None:
    (table,) = published([_reading("echomind"), _reading("echomind")])
    assert table.heads[0] == "WER ↓" and table.heads[-1] == "VES ↑"
    rows = {line.names[0]: [cell.text for cell in line.cells] for line in table.lines}
    assert len(rows) == 14 and rows["GPT-4o-Audio"][0] == "10.74" and rows["Step-Audio"][0] == "–"
    assert rows["Audio-Flamingo3"][3] == "58.80", "zeros at the end are printed"
    every = [t.key for t in published([])]
    assert len(set(every)) == len(every)
    assert {"published-echomind-0", "published-mmau-0", "published-empathyeval-0"} <= set(every)


def test_the_leaderboard_knows_every_published_column() -> None:
    (table,) = published([_reading("echomind")])
    assert tuple(column.title for column in COLUMNS) == table.heads
    assert [column.key for column in COLUMNS if column.better == "lower"] == ["wer"]
    assert papers()["GPT-4o-Audio"]["ves"] == 3.34
