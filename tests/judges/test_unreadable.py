"""A judge that cannot be read costs little, hides no other judge's numbers, is named, and can be removed from a run."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from bench.data import make
from overtone.cli import main
from overtone.cli._judges import Judging
from overtone.judges.forget import forget
from overtone.judges.judge_run import FILE
from overtone.judges.judgement import Outcome
from overtone.judges.panel import UNREADABLE
from overtone.report.page import write_report
from overtone.results import measure_names
from overtone.results.load import open_run
from overtone.results.summary import summarise_reading
from overtone.runs.store import Store
from tests.judges.helpers import reply, sit
from tests.judges.server import JudgeServer
from tests.judges.test_judge_run import asked_of, judge_scores, other_scores
from tests.results.small import Maker, item
from tests.servers import OpenAIServer


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of 24 replies in eight scripts."""
    folder = tmp_path_factory.mktemp("unreadable")
    data = make(folder / "data", scripts=8, questions=0, seconds=0.2)
    with OpenAIServer() as model:
        assert asked_of(data, folder / "run", model) == 0
    return folder / "run"


@pytest.fixture
def finished(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "run"))


def score(folder: Path, *more: str) -> int:
    return main(["score", str(folder), "-q", *more])


def test_a_judge_without_a_verdict_is_left_out_of_the_panel_and_named(
    finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with JudgeServer() as server:
        for name in ("first", "second"):
            assert score(finished, "--judge", server.spec("rubrics=echomind", name=name)) == 0
        before = {(r.dimension.key, r.judge): r.headline for r in _judged(finished)}
        server.always = "words"
        assert score(finished, "--judge", server.spec("rubrics=echomind", name="mute")) == 3
    after = {(r.dimension.key, r.judge): r.headline for r in _judged(finished)}
    assert after == before and before["cctxfit", ""].scored == 24
    reading = open_run(finished, light=True)
    assert any("Judge mute gave no verdict on" in note and "--forget mute" in note for note in reading.notes)
    (measure,) = measure_names.find("cctxfit", [reading])
    assert measure.scores == ("cctxfit@first", "cctxfit@second")
    assert [t.judge for t in summarise_reading(reading).troubles if t.dimension.key == "cctxfit"] == ["mute"]
    capsys.readouterr()
    main(["score", str(finished)])
    assert "Judge mute gave no verdict" in capsys.readouterr().out
    write_report([finished], finished / "report.html")
    assert "Judge mute gave no verdict" in (finished / "report.html").read_text()


def _judged(folder: Path) -> list:
    (condition,) = summarise_reading(open_run(folder, light=True)).conditions
    return condition.judged


def test_asking_stops_after_twenty_unreadable_verdicts_in_a_row(tmp_path: Path) -> None:
    subjects = [reply(number, "neutral") for number in range(60)]
    with JudgeServer() as server:
        server.behave(*["words"] * (UNREADABLE - 1), "good")  # one short of it, then a verdict: the count starts again
        server.always = "words"
        judgements, outcome = sit(server.spec("again=0"), "false-cue", subjects, tmp_path / FILE)
        asked = server.count
        assert asked == 2 * UNREADABLE
        assert (outcome.stopped, outcome.answered, outcome.unread) == ("unreadable", 1, 2 * UNREADABLE - 1)
        assert "20 verdicts in a row by the rubric false-cue" in judgements[-1].draws[0].problem
        _, outcome = sit(server.spec("again=0"), "false-cue", subjects, tmp_path / FILE)
        assert server.count == asked, "the same command does not pay for another twenty"
        assert outcome.stopped == "unreadable" and outcome.answered == 1


def test_one_rubric_that_cannot_be_read_does_not_stop_the_others(finished: Path) -> None:
    def verdict(asked: object) -> dict[str, int | str]:
        text = asked.text  # type: ignore[attr-defined]
        return {"cspeechrel_implicit": "nonsense"} if '"cspeechrel_implicit"' in text else {"false_cue": "no"}

    with JudgeServer(verdict=verdict) as server:
        spec = server.spec("rubrics=implicit,false-cue&again=0&repeats=3&connections=1")
        assert score(finished, "--judge", spec) == 3
        assert server.count == UNREADABLE + 3 * 8  # 16 cued replies are asked thrice by implicit, 8 neutral ones
    values = [s.value for (_, name), s in judge_scores(finished).items() if name.startswith("false_cue@")]
    assert values == [0.0] * 8


@pytest.mark.parametrize("quiet", [True, False])
def test_no_verdict_at_all_is_exit_code_3(finished: Path, quiet: bool, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["-q"] if quiet else []
    with JudgeServer() as server:
        server.always = "prose"
        assert main(["score", str(finished), *flags, "--judge", server.spec("rubrics=false-cue")]) == 3
    told = capsys.readouterr()
    assert "judge scripted: 0 verdicts, 8 unreadable" in (told.err if quiet else told.out)
    with JudgeServer() as server:  # no question in this run: the judge has nothing to say
        assert main(["score", str(finished), *flags, "--judge", server.spec("rubrics=sakura", name="idle")]) == 3
        assert server.count == 0
    told = capsys.readouterr()
    assert "its rubrics apply to no reply of this run" in (told.err if quiet else told.out)


def test_a_forgotten_judge_leaves_nothing_behind_and_is_asked_anew(
    finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with JudgeServer() as server:
        assert score(finished, "--judge", server.spec("rubrics=echomind", name="steady")) == 0
        steady = judge_scores(finished)
        server.always = "words"
        spec = server.spec("rubrics=echomind,false-cue&again=0&connections=1")
        assert score(finished, "--judge", spec) == 3
        others = other_scores(finished)
        capsys.readouterr()
        assert main(["score", str(finished), "--forget", "scripted"]) == 0
        told = capsys.readouterr().out
        assert "removed 96 scores of 24 replies and 28 verdicts by scripted" in told  # 8 false-cue, 20 echomind
        assert judge_scores(finished) == steady and other_scores(finished) == others
        with Store.read(finished) as store:
            assert "scripted" not in store.meta()["rubrics"] and "steady" in store.meta()["rubrics"]
        server.always = None
        asked = server.count
        assert score(finished, "--judge", spec) == 0
        assert server.count == asked + 24 + 8, "its unreadable verdicts are gone from the cache"
        assert score(finished, "--forget", spec, "--judge", spec) == 0, "a SPEC names it too"
        assert server.count == asked + 2 * (24 + 8)


def test_a_judge_that_is_not_there_cannot_be_forgotten(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with JudgeServer() as server:
        score(finished, "--judge", server.spec("rubrics=false-cue"))
    assert score(finished, "--forget", "nobody") == 2
    assert "no run has scores or verdicts of this judge; judges here: scripted" in capsys.readouterr().err


def test_verdicts_of_older_versions_are_forgotten_unless_another_judge_shares_them(finished: Path) -> None:
    with JudgeServer() as server:
        score(finished, "--judge", server.spec("rubrics=false-cue&label=one"))
        score(finished, "--judge", server.spec("rubrics=false-cue&label=two"))  # the same question: kept from before
        assert server.count == 8
    db = sqlite3.connect(finished / FILE)
    with db:
        db.execute("UPDATE verdicts SET judge = 'openai:scripted'")  # as before labels were kept
    db.close()
    assert forget(finished, "one").verdicts == 0, "two still rests on them"
    assert forget(finished, "two").verdicts == 8
    with sqlite3.connect(finished / FILE) as db:
        assert db.execute("SELECT count(*) FROM verdicts").fetchone() == (0,)


def test_a_quiet_command_still_reports_verdicts_that_could_not_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    judging = Judging([])
    judging.add_outcome("half", Outcome(asked=10, answered=5, unread=5, requests=15))
    judging.add_outcome("whole", Outcome(asked=10, answered=10, requests=10))
    judging.warn()
    error = capsys.readouterr().err
    assert error.splitlines() == ["overtone: judge half: 5 verdicts, 5 unreadable, 0 missing; 15 requests"]
    assert judging.exit_code == 0


def test_a_judge_of_a_run_without_replies_is_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make = Maker(tmp_path / "run")
    for number in range(3):
        make.failed(item(f"c{number}", "converse", level=3, script=f"s{number}"))
    with JudgeServer() as server:
        main(["score", str(make.done()), "--judge", f"openai:j?base_url={server.base_url}&rubrics=echomind"])
    printed = capsys.readouterr().out
    assert "no reply to judge" in printed and printed.splitlines()[-1].endswith("no reply was scored")
