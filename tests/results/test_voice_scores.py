"""How replies sound, per style, counted by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone.results.load import open_run
from overtone.results.voice_scores import spoken
from overtone.schema import Score
from overtone.scores import built_in
from tests.results.small import Maker
from tests.results.test_judge_scores import talk


def prosody(value: float | None, pitch: float | None = None) -> Score:
    if value is None:
        return Score("expressiveness", "prosody|v3", None, "the reply has no audio")
    detail: dict[str, float | int | str | None] = {"f0_hz": pitch, "flat": int(value < 0.7), "pause_share": None}
    return Score("expressiveness", "prosody|v3", value, "", detail)


def test_measures_stand_over_all_clips_and_by_style(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    make.answered(talk("s1", "target"), "x", prosody(1.2, 200.0), Score("nisqa_mos", "nisqa|v1", 4.0))
    make.answered(talk("s2", "target"), "x", prosody(0.6, 100.0), Score("nisqa_mos", "nisqa|v1", 3.0))
    make.answered(talk("s1", "neutral"), "x", prosody(None), Score("nisqa_mos", "nisqa|v1", None, "no audio"))
    make.answered(talk("s2", "neutral"), "x", prosody(0.9, 150.0), Score("nisqa_mos", "nisqa|v1", 5.0))
    make.failed(talk("s3", "target"))
    every, target, neutral = spoken(open_run(make.done(), light=True).answers, built_in())
    assert (every.style, target.style, neutral.style) == ("", "target", "neutral")
    assert every.measures["expressiveness"].value == pytest.approx(0.9)
    pitch = every.measures["f0_hz"]
    assert (pitch.value, pitch.scored, pitch.asked) == (150.0, 3, 5)
    assert every.measures["flat"].value == pytest.approx(1 / 3) and target.measures["flat"].value == 0.5
    quality = every.measures["nisqa_mos"]
    assert (quality.value, quality.scored, quality.asked) == (4.0, 3, 5)
    assert neutral.measures["f0_hz"].value == 150.0 and every.measures["pause_share"].value is None
    assert "utmos" not in every.measures


def test_a_model_that_does_not_speak_has_no_such_table(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    make.answered(talk("s1", "target"), "x", prosody(None))
    assert spoken(open_run(make.done(), light=True).answers, built_in()) == []
