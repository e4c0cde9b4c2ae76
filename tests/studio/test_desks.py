"""Study files of the two desks: what is recorded or reviewed, what is left out, and verdicts as sheets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from overtone.build import review_sheets
from overtone.cli import main
from overtone.studio import contents, review_verdicts, script_parts, study
from overtone.studio.designs.record import ScriptUnit
from overtone.studio.store import Store
from overtone.studio.study import Study
from tests.arena.helpers import make_run
from tests.studio.desk_helpers import desk, some_scripts


def review(of: Study, *verdicts: dict[str, Any]) -> None:
    """One reviewer gives these verdicts on the units in their order."""
    with Store.open(of) as store:
        if store.state() == "new":
            store.freeze(contents.read(of).units, sides=0)
        label = store.people.invite(1)[0].label
        store.people.consent(label, of.consent_sha, True, {})
        by_unit = dict(zip(sorted(store.units()), verdicts, strict=True))
        for slot in store.sessions.enter(label):
            store.answers.add(label, slot.id, f"{slot.id}-done", by_unit[slot.unit], plays={}, ms=1, done=True)


def test_a_speaker_gets_whole_scripts_plain_first_and_none_about_sex_or_age(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = desk(tmp_path, "record", some_scripts("sad", "rain", "child", "male"))
    printed = capsys.readouterr().out
    assert "2 scripts about the speaker's sex or age are left out" in printed
    assert "Microphones work at https addresses" in printed and "'Put a study on the web'" in printed
    units = contents.read(made).units
    assert len(units) == 2 and all(isinstance(unit, ScriptUnit) for unit in units)
    sad, rain = (unit.parts for unit in units if isinstance(unit, ScriptUnit))
    assert sad[0].key == "plain" and {s for part in sad for s in part.styles} == {
        "target", "alternative", "neutral",
    }  # fmt: skip
    assert {"target", "neutral"} <= set(rain[0].styles)  # the scene is mixed into the plain take
    assert len({part.instruction for part in sad}) == len(sad)


def test_scripts_of_a_run_are_recorded_in_the_cues_that_it_used(tmp_path: Path) -> None:
    run = make_run(tmp_path / "monday", 3.0, scripts=3)
    path = tmp_path / "desk.toml"
    assert main(["studio", "new", str(path), "--design", "record", "--scripts", str(run)]) == 0
    read = study.read(path)
    assert [source.path for source in read.sources] == ["monday"]
    assert len(script_parts.spoken(read)[0]) == 3


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--design", "record"), "needs --scripts"),
        (("--design", "record", "--scripts", "nothing"), "no such file, run or set"),
        (("--design", "record", "--scripts", "open", "--rubric", "echomind"), "takes no rubric"),
        (("--design", "review", "--scripts", "open", "--round", "4"), "must be 1, 2 or 3"),
        (("--design", "review", "--subject", "clips"), "needs --from SET"),
    ],
)
def test_a_desk_that_cannot_be_is_refused_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: tuple[str, ...], message: str
) -> None:
    assert main(["studio", "new", str(tmp_path / "desk.toml"), *flags]) == 2
    assert message in capsys.readouterr().err and not (tmp_path / "desk.toml").exists()


def test_each_question_of_a_script_can_be_reviewed_alone(tmp_path: Path) -> None:
    (script,) = some_scripts("sad")
    made = desk(tmp_path, "review", [script], "--subject", "questions")
    units = contents.read(made).units
    assert [unit.id for unit in units] == [f"{script.id}/{one.category}" for one in script.reasoning]
    assert units[0].texts["question"] == script.reasoning[0].question and "target: " in units[0].texts["options"]


def test_verdicts_of_a_desk_become_sheets_that_a_build_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = desk(tmp_path, "review", some_scripts("sad", "rain"))
    review(made, {"verdict": "accept"}, {"verdict": "reject", "note": "=no"})
    review(made, {"verdict": "accept"}, {"verdict": "revise", "revised:words": "Other words."})
    scripts, sheets = str(tmp_path / "desk-scripts.jsonl"), tmp_path / "reviews"
    capsys.readouterr()
    assert main(["build", "review", scripts, "--studio", str(made.path), "--reviews", str(sheets)]) == 0
    said = capsys.readouterr().out
    assert "proposed for" in said and "Other words." in said and "1 reject" in said
    again = review_sheets.read_reviews(sheets)
    assert {(r.script, r.verdict, r.round) for r in again} == {
        (r.script, r.verdict, r.round) for r in review_verdicts.read(made.path).reviews
    }
    assert main(["build", "review", scripts, "--studio", str(made.path), "--round", "1"]) == 2
    later = tmp_path / "later.toml"
    flags = ["--design", "review", "--scripts", scripts, "--round", "1", "--after", str(made.path)]
    assert main(["studio", "new", str(later), *flags]) == 2
    assert "is not earlier than round 1" in capsys.readouterr().err
