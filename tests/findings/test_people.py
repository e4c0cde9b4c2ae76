"""The finding `people`: planted preferences are found, unusable sessions are left out, judges are compared."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from overtone.cli import main
from overtone.findings.analysis import cases_behind, compute_findings
from overtone.findings.people.compute import People
from overtone.report.case_links import CaseFinder
from overtone.report.latex_tables import latex
from overtone.report.named_tables import named_tables
from overtone.results.cases import case
from overtone.results.load import open_run
from overtone.results.people_scores import said
from overtone.runs.store import Store
from overtone.schema import Score
from overtone.studio.labels import Given, sync
from tests.report.test_latex_tables import compiled, overfull
from tests.studio.helpers import new_study, spoken_runs
from tests.studio.labels.helpers import simulate

KEYS = {"cctxfit", "crespnat", "ccolloqdeg"}


def found(*runs: Path) -> People:
    (result,) = compute_findings([open_run(run, light=True) for run in runs], ["people"])
    assert isinstance(result.data, People)
    return result.data


def rated(folder: Path, worth: dict[str, float], *flags: str, careless: int = 0, scripts: int = 15) -> list[Given]:
    names = tuple(worth)
    made = new_study(folder, *flags, names=names, scripts=scripts)
    given = simulate(made, worth, raters=10, careless=careless, seed=3)
    assert all(not one.problem for one in sync(made, given))
    return given


def test_planted_means_are_ranked_and_careless_sessions_are_left_out(tmp_path: Path) -> None:
    given = rated(tmp_path, {"monday": 2.4, "friday": 3.6, "sunday": 3.5}, careless=2)
    data = found(tmp_path / "monday", tmp_path / "friday", tmp_path / "sunday")
    key = data.means[0].dimension.key
    means = [row for row in data.means if row.dimension.key == key]
    assert [row.run for row in means] == [0, 1, 2] and {row.raters for row in means} == {8}
    worth = [row.mean.value for row in means]
    assert worth[0] < min(worth[1:]) - 0.7  # type: ignore[type-var,operator]
    for row in means:  # random answers pull every mean to the middle
        assert row.mean.value is not None and row.everyone.value is not None
        assert abs(row.everyone.value - 3) < abs(row.mean.value - 3)
    gaps = {row.runs: row for row in data.gaps if row.dimension.key == key}
    assert gaps["monday", "friday"].adjusted < 0.05 and gaps["monday", "friday"].decision.verdict == "decided"  # type: ignore[operator]
    assert gaps["friday", "sunday"].adjusted > 0.05  # type: ignore[operator]
    assert len({one.rater for one in given}) == 10


def test_votes_on_pairs_count_once_and_ties_have_their_share(tmp_path: Path) -> None:
    rated(tmp_path, {"monday": 3.0, "friday": 4.2}, "--design", "ab")
    runs = tmp_path / "monday", tmp_path / "friday"
    (pair,) = found(*runs).pairs
    assert pair.runs == ("monday", "friday") and pair.votes == 30 * 10
    assert sum(pair.shares.values()) == pytest.approx(1) and pair.shares["both_good"] > 0
    assert pair.lead.high < 0 and pair.adjusted < 0.001  # type: ignore[operator]
    assert pair.acceptable[1] == pytest.approx(pair.shares["B"] + pair.shares["both_good"])
    assert pair.everyone == pytest.approx(pair.lead.value)  # no session was unusable
    assert found(runs[1]).pairs[0].votes == 300  # one of the runs holds the votes too


def test_comparisons_on_a_scale_have_the_sign_of_the_first_run(tmp_path: Path) -> None:
    made = new_study(tmp_path, "--design", "cmos", scripts=12)
    sync(made, simulate(made, {"monday": 3.0, "friday": 4.5}, raters=8))
    (result,) = compute_findings([open_run(tmp_path / name) for name in ("monday", "friday")], ["people"])
    (pair,) = result.data.pairs
    assert pair.graded and pair.lead.high < 0 and pair.shares["B"] > pair.shares["A"] and pair.acceptable is None
    assert set(pair.shares) == {"A", "B", "same"}
    assert any("monday minus friday is −" in sentence.text for sentence in result.sentences)


def test_a_case_shows_a_comparison_from_the_side_of_its_own_reply(tmp_path: Path) -> None:
    made = new_study(tmp_path, "--design", "cmos", scripts=12)
    given = simulate(made, {"monday": 3.0, "friday": 9.0}, raters=4)  # friday is much better on every screen
    sync(made, given)
    shown = {}
    for name in ("monday", "friday"):
        with Store.read(tmp_path / name) as store:
            view = case(store, "synthesis/s1/target")
        (one,) = said(view.replies[0].answers[0], view.studies)
        shown[name] = one.counts
    assert shown == {"monday": {"−3": 4}, "friday": {"+3": 4}}


def test_each_number_leads_to_its_cases(tmp_path: Path) -> None:
    rated(tmp_path, {"monday": 2.4, "friday": 3.6})
    readings = [open_run(tmp_path / name, light=True) for name in ("monday", "friday")]
    (result,) = compute_findings(readings, ["people"])
    row = result.data.means[0]
    assert len(cases_behind(readings, row.key)) == row.mean.scored
    assert len(cases_behind(readings, result.data.gaps[0].key)) >= row.mean.scored


def test_a_judge_that_follows_people_agrees_with_them(tmp_path: Path) -> None:
    rated(tmp_path, {"monday": 3.0, "friday": 3.0})
    run = tmp_path / "monday"
    reading = open_run(run)
    study = next(iter(reading.studies.values()))
    key = min(KEYS & study.questions.keys())
    with Store.create(run) as store:
        for answer in reading.answers:
            mean = next(one.mean for one in said(answer, {study.id: study}) if one.dimension == key)
            assert mean is not None
            for judge, value in (("good", round(mean)), ("bad", 1 + answer.ask % 5)):
                name = f"{key}@{judge}"
                store.add_scores([(answer.ask, Score(name, f"{name}|v1|judge:{judge}|", float(value)))])
        store.commit()
    rows = {judged.row.judge: judged.row for judged in found(run).judges}
    assert rows["good"].alpha.value > 0.75 and abs(rows["bad"].alpha.value) < 0.4  # type: ignore[operator,arg-type]
    assert rows["good"].raters == 10 and rows["good"].ceiling is not None
    assert any(
        "Judge good against people" in s.text for s in compute_findings([open_run(run)], ["people"])[0].sentences
    )


def test_cues_that_people_heard_are_compared_with_the_intended_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = new_study(tmp_path, "--design", "label", scripts=9)
    given = []
    for one in simulate(made, {"monday": 3, "friday": 3}, raters=5):
        cue = one.unit.replies[0].texts["cue"]
        right = next((name for name in ("sad", "happy") if name in cue or (name == "happy" and "happ" in cue)), "none")
        heard = "tired" if one.rater.startswith("r001") else right
        given.append(msgspec.structs.replace(one, values={"heard": [heard], "intensity": 3}))
    sync(made, given)
    data = found(tmp_path / "monday")
    rows = {row.intended: row for row in data.heard}
    assert rows["sad"].heard == {"sad": 12, "tired": 3} and rows["sad"].answers == 15
    assert [row.dimension.key for row in data.means] == ["intensity"]  # not one mean per cue
    capsys.readouterr()
    assert main(["case", str(tmp_path / "monday"), "synthesis/s0/target"]) == 0
    assert "What one hears (5 people): sad × 4, tired × 1" in capsys.readouterr().out
    assert main(["table", "judged", str(tmp_path / "monday")]) == 0


def test_a_run_without_labels_says_how_to_ask_people(tmp_path: Path) -> None:
    (run,) = spoken_runs(tmp_path, "monday")
    (result,) = compute_findings([open_run(run, light=True)], ["people"])
    assert "overtone studio new" in result.advice[0] and not result.sentences


def test_few_raters_are_not_enough_for_a_sentence(tmp_path: Path) -> None:
    made = new_study(tmp_path)
    sync(made, simulate(made, {"monday": 2.0, "friday": 4.0}, raters=3))
    (result,) = compute_findings([open_run(tmp_path / name) for name in ("monday", "friday")], ["people"])
    assert all("Not enough data" in s.text for s in result.sentences)
    assert "only 3 people rated" in result.data.means[0].mean.note


def test_a_case_shows_what_people_said_without_saying_who(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = rated(tmp_path, {"monday": 2.4, "friday": 3.6}, careless=1)
    with Store.read(tmp_path / "monday") as store:
        view = case(store, "synthesis/s1/target")
    (one, *_) = said(view.replies[0].answers[0], view.studies)
    assert sum(one.counts.values()) == 9 and one.unusable == 1
    capsys.readouterr()
    assert main(["case", str(tmp_path / "monday"), "synthesis/s1/target"]) == 0
    printed = capsys.readouterr().out
    assert "people, " in printed and "1 more in unusable sessions" in printed
    assert not any(g.rater in printed for g in given)


def test_a_number_in_the_table_of_judged_replies_leads_to_its_replies(tmp_path: Path) -> None:
    rated(tmp_path, {"monday": 2.4, "friday": 3.6}, careless=1)
    readings = [open_run(tmp_path / name, light=True) for name in ("monday", "friday")]
    (table, *_) = named_tables("judged", readings)
    cells = [(line.run, cell) for line in table.lines for cell in line.cells if cell.key]
    assert cells and {line.names[-1] for line in table.lines} == {"people"}
    for run, cell in cells:
        assert run is not None and cell.estimate is not None
        assert len(CaseFinder(readings[run]).answers(cell.key)) == cell.estimate.scored


def test_tables_and_report_show_people_beside_judges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = rated(tmp_path, {"monday": 2.4, "friday": 3.6}, careless=1)
    runs = [str(tmp_path / name) for name in ("monday", "friday")]
    capsys.readouterr()
    assert main(["table", "judged", *runs]) == 0
    printed = capsys.readouterr().out
    assert "people" in printed and "9 raters" in printed
    assert main(["report", *runs, "-o", str(tmp_path / "r.html")]) == 0
    page = (tmp_path / "r.html").read_text()
    assert "9 raters" in page and "What people say" in page and '"pe":' in page
    assert not any(g.rater in page for g in given)


@pytest.mark.latex
@pytest.mark.parametrize("design", ["acr", "ab", "cmos"])
def test_its_tables_fit_a_page_in_print(tmp_path: Path, design: str) -> None:
    rated(tmp_path, {"monday": 2.4, "friday": 3.6, "sunday": 3.7}, "--design", design)
    readings = [open_run(tmp_path / name, light=True) for name in ("monday", "friday", "sunday")]
    tables = named_tables("people", readings, "all")
    assert tables and not overfull(
        compiled(tmp_path, latex(tables, ["hf:an/Extremely-Long-Model-Name-7B-2026", "b", "c"]))
    )
