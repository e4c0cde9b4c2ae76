"""What telling the cue gives, right or wrong, worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone.findings.analysis import cases_behind
from overtone.findings.upper.compute import sentences, upper
from overtone.results.load import Reading, open_run
from overtone.schema import Score
from tests.report.fake_run import make_run
from tests.results.small import RUBRICS, Maker, item

Values = dict[str, list[float | None]]
CUES = ("sad", "sad", "happy", "happy", "shout", "shout")


def make(folder: Path, values: Values, **more: object) -> Reading:
    """C4 of each script's reply under each condition; None is a reply that the judge's answer could not be read for."""
    run = Maker(folder)
    run.store.set_meta({"model": "openai:one"})
    for condition, row in values.items():
        for i, c4 in enumerate(row):
            talk = item(f"c{i}", "converse", level=3, script=f"s{i}", cue=CUES[i % len(CUES)], **more)  # type: ignore[arg-type]
            score = Score("cspeechrel@j", "cspeechrel@j|v1", c4, "" if c4 is not None else "unread")
            run.answered(talk, "well", score, condition=f"{condition}/audio")
    return open_run(run.done(), light=True)


def twice(values: Values) -> Values:
    """The same on as many scripts again: a sentence on a difference needs six."""
    return {condition: row * 2 for condition, row in values.items()}


def test_the_gain_is_paired_and_stands_beside_that_of_a_wrong_cue(tmp_path: Path) -> None:
    reading = make(tmp_path, {"enhance": [1, 2, 3, 2], "oracle": [4, 5, 5, 4], "oracle-false": [2, 3, 5, 3]})
    found = upper(reading)
    row = found.row("cspeechrel")
    assert row is not None
    assert (row.base.value, row.right.value, row.gain.value) == (2.0, 4.5, 2.5)
    assert row.wrong is not None and row.survives is not None and row.beyond is not None
    assert (row.wrong.value, row.survives.value, row.beyond.value) == (3.25, 1.25, 1.25)
    assert row.share is None and row.gain.low is None, "four scripts are too few for an interval"
    assert (row.gain_test.p, row.gain_test.tests) == (2 / 16, 2)
    sad = found.row("cspeechrel", "cue", "sad")
    assert sad is not None and (sad.gain.value, sad.gain.scored) == (3.0, 2)
    dimension = found.row("cspeechrel", "dimension", "paralinguistic")
    assert dimension is not None and dimension.gain.value == 2.5
    assert cases_behind([reading], sad.key) == ["synthesis/s0/target", "synthesis/s1/target"]
    assert len({r.key for r in found.rows}) == len(found.rows)


def test_a_gain_that_a_wrong_cue_gives_too_is_called_mere_mention(tmp_path: Path) -> None:
    found = upper(
        make(tmp_path, twice({"enhance": [1, 2, 2, 1], "oracle": [4, 5, 4, 4], "oracle-false": [4, 4, 5, 4]}))
    )
    text = sentences(found)[0].text
    assert "with the cue stated in words, 4.25" in text
    assert "The gain may come from mentioning any cue" in text
    row = found.row("cspeechrel")
    assert row is not None and row.share is not None and row.share.value == pytest.approx(1.0)


def test_no_share_is_given_where_there_is_no_gain(tmp_path: Path) -> None:
    found = upper(
        make(tmp_path, twice({"enhance": [3, 2, 3, 2], "oracle": [3, 3, 2, 2], "oracle-false": [3, 2, 2, 2]}))
    )
    row = found.row("cspeechrel")
    assert row is not None and row.share is None and row.gain.value == 0
    assert "not statistically significant" in sentences(found)[0].text


def test_only_replies_scored_under_every_condition_count(tmp_path: Path) -> None:
    reading = make(tmp_path, {"enhance": [1, 1, 1], "oracle": [2, 2, 5], "oracle-false": [1, 1, None]})
    row = upper(reading).row("cspeechrel")
    assert row is not None and row.wrong is not None
    assert (row.gain.value, row.gain.scored, row.gain.asked) == (1.0, 2, 3)
    assert (row.base.scored, row.wrong.scored) == (2, 2)
    assert cases_behind([reading], row.key) == ["synthesis/s0/target", "synthesis/s1/target"]


def test_without_a_wrong_cue_the_gain_stands_alone_and_that_is_said(tmp_path: Path) -> None:
    found = upper(make(tmp_path, {"enhance": [1, 2], "oracle": [4, 5]}))
    row = found.row("cspeechrel")
    assert row is not None and row.gain.value == 3 and row.survives is None
    assert "the gain from a wrong cue is unknown" in found.notes[0]


def test_the_told_replies_may_be_a_run_of_their_own(tmp_path: Path) -> None:
    runs = [make(tmp_path / "a", {"enhance": [1, 2]}), make(tmp_path / "b", {"oracle": [4, 5]})]
    row = upper(runs).row("cspeechrel")
    assert row is not None and row.gain.value == 3
    runs[1].meta["model"] = "openai:other"
    assert any("different models" in note for note in upper(runs).notes)


def test_neutral_clips_have_no_cue_to_tell(tmp_path: Path) -> None:
    run = Maker(tmp_path)
    for condition, c4 in (("enhance", 1.0), ("oracle", 5.0)):
        talk = item("c", "converse", level=3, cue="", style="neutral")
        run.answered(talk, "x", Score("cspeechrel@j", "cspeechrel@j|v1", c4), condition=f"{condition}/audio")
    found = upper(open_run(run.done(), light=True))
    assert found.rows == [] and "No clip with a cue was asked under enhance/audio." in found.notes


def test_a_run_that_was_told_nothing_says_so(tmp_path: Path) -> None:
    found = upper(open_run(make_run(tmp_path / "a", judges=("j",)), light=True))
    assert found.rows == []
    assert sentences(found) == [] and found.notes == ["No clip with a cue was asked under oracle/audio."]
    assert upper(open_run(Maker(tmp_path / "b").done(), light=True)).rows == []
    nothing = upper(make(tmp_path / "c", {"enhance": [None, None], "oracle": [1, 2]}))
    assert sentences(nothing) == []


def test_cues_not_validated_stand_apart(tmp_path: Path) -> None:
    found = upper(make(tmp_path, {"enhance": [1, 2] * 3, "oracle": [4, 5] * 3}, status="unvalidated"))
    assert {r.basis for r in found.rows} == {"unvalidated"}
    assert "(cues not validated)" in sentences(found)[0].text


def test_intervals_of_few_scripts_stay_within_the_scale(tmp_path: Path) -> None:
    values: Values = {"enhance": [1, 1, 1, 1, 1, 5], "oracle": [5, 5, 5, 5, 5, 1], "oracle-false": [2, 2, 2, 2, 2, 5]}
    reading = make(tmp_path, values)
    reading.meta["rubrics"] = RUBRICS
    row = upper(reading).row("cspeechrel")
    assert row is not None and row.wrong is not None and row.survives is not None and row.beyond is not None
    for e, low, high in [(row.right, 1.0, 5.0), (row.gain, -4.0, 4.0), (row.beyond, -4.0, 4.0)]:
        assert e.low is not None and e.high is not None
        assert low <= e.low < e.high <= high


def test_a_gain_on_few_scripts_is_not_spoken_of(tmp_path: Path) -> None:
    found = upper(make(tmp_path, {"enhance": [1, 2, 2, 1, 1], "oracle": [4, 5, 4, 4, 5]}))
    (sentence,) = sentences(found)
    assert sentence.text.startswith("Not enough data for a sentence on: C4 with the cue stated (5 of 6).")
    assert "It needs at least 6 scripts: with five, even a difference of the same sign" in sentence.text
