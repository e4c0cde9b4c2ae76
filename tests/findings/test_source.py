"""Synthesised against human voices on the scripts both have, worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone.findings.analysis import cases_behind
from overtone.findings.source.compute import SourceRow, Sources, sentences, source
from overtone.results.load import Reading, open_run
from overtone.schema import Item, Score
from tests.report.fake_run import make_run
from tests.results.small import RUBRICS, Maker, item

C4 = {"synthesis": {"s1": 4.0, "s2": 5.0, "s3": 3.0, "s9": 1.0}, "human": {"s1": 3.0, "s2": 3.0, "s3": 3.0, "s8": 5.0}}


def spoken(name: str, task: str, voice: str, script: str, **more: object) -> Item:
    group = f"{voice}/{script}"
    own = {"case": f"{group}/target", "group": group, "source": voice, **more}
    return item(f"{voice}/{name}", task, script=script, **own)  # type: ignore[arg-type]


def make(folder: Path, values: dict[str, dict[str, float]] = C4, signature: str = "cspeechrel@j|v1") -> Reading:
    run = Maker(folder)
    run.store.set_meta({"model": "openai:one"})
    for voice, rows in values.items():
        for script, c4 in rows.items():
            talk = spoken(f"c-{script}", "converse", voice, script, level=3)
            run.answered(talk, "well", Score("cspeechrel@j", signature, c4), condition="enhance/audio")
            for q in range(2):  # the second is right where it is spoken by the engine
                question = spoken(f"v{q}-{script}", "choose", voice, script)
                run.choice(question, "A" if q == 0 or voice == "synthesis" else "B")
    return open_run(run.done(), light=True)


def overall(found: Sources, measure: str) -> SourceRow:
    (row,) = (r for r in found.rows if (r.by, r.measure) == ("overall", measure))
    return row


def test_only_scripts_that_both_sources_have_are_compared(tmp_path: Path) -> None:
    reading = make(tmp_path)
    found = source(reading)
    row = overall(found, "cspeechrel")
    assert row.sources == ("synthesis", "human")
    assert (row.first.value, row.second.value, row.difference.value) == (4.0, 3.0, 1.0)
    assert (row.difference.scored, row.difference.scripts, found.scripts) == (3, 3, 3)
    voice = overall(found, "voice_accuracy")
    assert (voice.first.value, voice.second.value, voice.difference.value) == (1.0, 0.5, 0.5)
    assert voice.difference.low is None, "three scripts are too few for an interval"
    assert voice.p == pytest.approx(2 / 8) and voice.tests == 2
    assert sorted(cases_behind([reading], row.key)) == sorted(f"{v}/s{i}/target" for v in C4 for i in (1, 2, 3))
    assert {(r.by, r.name) for r in found.rows} == {
        ("overall", "overall"), ("style", "target"), ("dimension", "paralinguistic")
    }  # fmt: skip
    assert len({r.key for r in found.rows}) == len(found.rows)


def test_each_source_may_be_a_run_of_its_own(tmp_path: Path) -> None:
    both = [make(tmp_path / voice, {voice: C4[voice]}) for voice in C4]
    assert overall(source(both), "cspeechrel").difference.value == 1.0


def test_what_was_measured_differently_in_the_two_runs_is_left_out(tmp_path: Path) -> None:
    both = [make(tmp_path / v, {v: C4[v]}, signature=f"cspeechrel@j|v1|judge:{v}") for v in C4]
    found = source(both)
    assert {r.measure for r in found.rows} == {"voice_accuracy"}
    assert found.notes == ["C4 was measured differently in the runs and is left out."]


def test_a_reply_without_a_score_takes_its_pair_with_it(tmp_path: Path) -> None:
    reading = make(tmp_path)
    answer = next(a for a in reading.answers if a.item.case == "human/s1/target" and a.item.task == "converse")
    answer.scores = {}
    row = overall(source(reading), "cspeechrel")
    assert (row.difference.scored, row.difference.asked) == (2, 3)
    assert (row.first.value, row.second.value) == (4.0, 3.0)


def test_sentences_say_which_is_worse_and_when_a_difference_is_not_significant(tmp_path: Path) -> None:
    same = {f"s{n}": float(3 + n % 2) for n in range(8)}
    other = {f"s{n}": float(3 + (n // 2) % 2) for n in range(8)}
    told = [s.text for s in sentences(source(make(tmp_path, {"synthesis": same, "human": other})))]
    assert any(s.startswith("Voice accuracy") and "worse on human by 50 points" in s for s in told)
    assert any(s.startswith("C4") and "not statistically significant" in s for s in told)


def test_sources_with_few_scripts_in_common_are_not_compared_in_a_sentence(tmp_path: Path) -> None:
    (told,) = (s.text for s in sentences(source(make(tmp_path))))
    assert "Voice accuracy under task/audio, synthesis against human (3 of 6)" in told


def test_one_source_or_no_script_in_common_is_said(tmp_path: Path) -> None:
    assert "One source only (synthesis)" in source(make(tmp_path / "a", {"synthesis": C4["synthesis"]})).notes[0]
    apart = source(make(tmp_path / "b", {"synthesis": {"s1": 1.0}, "human": {"s2": 1.0}}))
    assert apart.rows == [] and "No script was asked in two" in apart.notes[0]
    empty = source(open_run(Maker(tmp_path / "c").done(), light=True))
    assert empty.rows == [] and sentences(empty) == []
    assert empty.notes == ["One source only (not named): nothing to compare."]
    usual = source(open_run(make_run(tmp_path / "d"), light=True))
    assert usual.rows == []


def test_a_script_stands_with_the_cues_not_validated_if_either_of_its_clips_does(tmp_path: Path) -> None:
    run = Maker(tmp_path)
    for voice in C4:
        for script in ("s1", "s2"):
            status = "unvalidated" if (voice, script) == ("human", "s2") else "validated"
            run.choice(spoken(f"v-{script}", "choose", voice, script, status=status), "A")
    found = source(open_run(run.done(), light=True))
    assert [(r.basis, r.difference.scored) for r in found.rows if r.by == "overall"] == [
        ("validated", 1),
        ("unvalidated", 1),
    ]


def test_intervals_of_few_scripts_stay_within_the_scale(tmp_path: Path) -> None:
    rows = {"synthesis": {"s1": 5.0, "s2": 2.0}, "human": {"s1": 1.0, "s2": 5.0}}
    reading = make(tmp_path, rows)
    reading.meta["rubrics"] = RUBRICS
    row = overall(source(reading), "cspeechrel")
    assert (row.first.low, row.first.high) == (1.0, 5.0)
    assert (row.second.low, row.second.high) == (1.0, 5.0)
    assert (row.difference.low, row.difference.high) == (None, None), "two scripts are too few for an interval"
    assert row.first.best is None and row.first.worst is None
