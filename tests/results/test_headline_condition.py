"""Whose clips a number is over: synthesised ones in the headline, human ones in rows of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone.cli._main import main
from overtone.errors import UsageError
from overtone.findings.analysis import compute_findings
from overtone.findings.finding import Settings
from overtone.findings.leaderboard.compute import Leaderboard
from overtone.report.case_links import CaseFinder
from overtone.report.page import write_report
from overtone.report.score_tables import result_tables
from overtone.results.headline_condition import by_condition, clips_note, headline_sources, of_source, over_headline
from overtone.results.load import Reading, open_run
from overtone.results.sample_size import needs
from overtone.results.summary import summarise_reading
from overtone.runs.store import Store
from tests.results.small import Maker, item

SCRIPTS = 10


def make(folder: Path, rights: dict[str, int]) -> Path:
    """A run of ten scripts per source, on which that many questions are answered rightly."""
    run = Maker(folder)
    run.store.set_meta({"benchmark": "echomind", "model": f"openai:{folder.name}"})
    for source, right in rights.items():
        for number in range(SCRIPTS):
            group = f"{source}/s{number}"
            for level in (1, 2):
                more = {"case": f"{group}/target", "group": group, "source": source, "level": level}
                one = item(f"{group}/{level}", "choose", **more)  # type: ignore[arg-type]
                run.choice(one, "A" if number < right else "B")
    return run.done()


def both(folder: Path) -> Path:
    return make(folder, {"synthesis": 8, "human": 2})


def voice(reading: Reading) -> dict[str, tuple[float | None, int]]:
    rows = summarise_reading(reading).conditions
    return {c.condition: (c.measures["voice_accuracy"].value, c.measures["voice_accuracy"].asked) for c in rows}


def test_the_headline_is_of_synthesised_clips_and_human_clips_have_their_own_row(tmp_path: Path) -> None:
    reading = open_run(both(tmp_path / "run"), light=True)
    assert voice(reading) == {"task/audio": (0.8, SCRIPTS), "task/audio (human)": (0.2, SCRIPTS)}


def test_one_source_alone_or_all_of_them_can_be_asked_for(tmp_path: Path) -> None:
    reading = open_run(both(tmp_path / "run"), light=True)
    assert voice(of_source(reading, "human")) == {"task/audio": (0.2, SCRIPTS)}
    assert voice(of_source(reading, "all")) == {"task/audio": (0.5, 2 * SCRIPTS)}
    assert "all sources together" in clips_note(of_source(reading, "all"))


def test_a_run_of_one_source_has_plain_rows_and_no_note(tmp_path: Path) -> None:
    reading = open_run(make(tmp_path / "run", {"human": 3}), light=True)
    assert list(by_condition(reading)) == ["task/audio"]
    assert clips_note(reading) == ""


def test_without_synthesised_clips_only_human_ones_are_kept_apart() -> None:
    assert headline_sources(["human", "kokoro", "piper", ""]) == {"kokoro", "piper"}
    assert headline_sources(["human"]) == {"human"}


def test_every_number_of_a_row_of_human_clips_leads_to_human_cases(tmp_path: Path) -> None:
    reading = open_run(both(tmp_path / "run"), light=True)
    (table,) = result_tables("results", [reading])
    assert "have rows of their own" in table.hint
    finder = CaseFinder(reading)
    for line in table.lines:
        source = "human" if line.condition.endswith("(human)") else "synthesis"
        for key in (cell.key for cell in line.cells if cell.key):
            assert finder.cases(key) and all(case.startswith(f"{source}/") for case in finder.cases(key))


def test_runs_that_are_read_together_stand_on_the_clips_they_share(tmp_path: Path) -> None:
    runs = [open_run(both(tmp_path / "both")), open_run(make(tmp_path / "people", {"human": 5}))]
    assert [{a.item.source for a in r.answers} for r in over_headline(runs)] == [{"human"}, {"human"}]
    assert [{a.item.source for a in r.answers} for r in over_headline(runs[:1])] == [{"synthesis"}]


def board(readings: list[Reading], source: str = "") -> Leaderboard:
    (found,) = compute_findings(readings, ["leaderboard"], Settings(source=source))
    return found.data


def test_the_leaderboard_compares_synthesised_clips_with_the_published_rows(tmp_path: Path) -> None:
    runs = [open_run(both(tmp_path / "both"), light=True), open_run(make(tmp_path / "p", {"human": 5}), light=True)]
    found = board(runs)
    assert isinstance(found, Leaderboard)
    first, second = (entrant.cells["voice_accuracy"] for entrant in found.entrants[-2:])
    assert first.value == pytest.approx(80.0) and not any("clips" in why for why in first.differs)
    assert "scripts: 10 of the paper's 1,137" in first.differs
    assert second.value == pytest.approx(50.0) and any("clips: human" in why for why in second.differs)
    asked = board(runs, "human")
    assert isinstance(asked, Leaderboard)
    cell = asked.entrants[-2].cells["voice_accuracy"]
    assert cell.value == pytest.approx(20.0) and any("clips: human" in why for why in cell.differs)


def test_planning_counts_the_scripts_of_the_headline(tmp_path: Path) -> None:
    rows = needs(0.1, 0.8, [open_run(both(tmp_path / "run"), light=True)])
    assert {row.have for row in rows} == {SCRIPTS}


def test_an_unknown_source_is_refused_with_those_there_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(both(tmp_path / "run"))
    assert main(["table", "results", run, "--source", "humans"]) == 2
    assert "it has synthesis, human" in capsys.readouterr().err
    with pytest.raises(UsageError, match="does not name the sources"):
        write_report([plain(tmp_path / "plain")], tmp_path / "r.html", source="human")


def plain(folder: Path) -> Path:
    run = Maker(folder)
    run.choice(item("v", "choose"), "A")
    return run.done()


def test_findings_say_on_whose_clips_they_stand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(both(tmp_path / "run"))
    assert main(["analyze", run, "--finding", "leaderboard"]) == 0
    page = capsys.readouterr().out
    assert "Over the clips of synthesis; --source chooses those of human, or all." in page
    assert main(["analyze", run, "--finding", "leaderboard", "--source", "human"]) == 0
    assert "Over the clips" not in capsys.readouterr().out
    assert main(["analyze", run, "--finding", "source", "--source", "human"]) == 0
    assert "on synthesis" in capsys.readouterr().out, "the comparison of sources reads them all"


def test_compare_and_check_stand_on_the_source_that_was_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = str(both(tmp_path / "a")), str(make(tmp_path / "b", {"synthesis": 8, "human": 9}))
    assert main(["compare", first, second]) == 0
    page = capsys.readouterr().out
    assert "20 asks in both" in page and "Over the clips of synthesis" in page
    assert main(["compare", first, second, "--source", "all"]) == 0
    assert "40 asks in both" in capsys.readouterr().out
    assert main(["check", first, "--require", "voice_accuracy >= 0.7"]) == 0
    assert main(["check", first, "--require", "voice_accuracy >= 0.7", "--source", "human"]) == 1


def test_a_report_can_be_of_one_source(tmp_path: Path) -> None:
    run = both(tmp_path / "run")
    page = write_report([run], tmp_path / "all.html").read_text()
    assert "task/audio (human)" in page and "have rows of their own" in page
    alone = write_report([run], tmp_path / "human.html", source="human").read_text()
    assert "task/audio (human)" not in alone and "synthesis/s1/target" not in alone
    with Store.read(run) as store:
        assert "synthesis/s1/target" in dict(store.cases())


def test_no_sentence_names_other_sources_where_the_headline_has_all(tmp_path: Path) -> None:
    reading = open_run(make(tmp_path / "run", {"common": 3, "fisher": 4}))
    assert set(headline_sources(["common", "fisher"])) == {"common", "fisher"}
    assert clips_note(reading) == ""
    (narrowed,) = over_headline([reading])
    assert narrowed.notes == reading.notes and len(narrowed.answers) == len(reading.answers)
