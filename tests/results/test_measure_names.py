"""A measure by its name: one reading of it for findings, comparisons and checks."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from overtone.results import measure_names
from overtone.results.load import Reading, open_run
from overtone.schema import Score
from tests.results.small import Maker, item

DESCRIBED = {
    "cspeechrel": {"label": "Speech relevance (C4)", "low": 1, "high": 5, "styles": ["target", "alternative"]},
    "false_cue": {"label": "False cue", "low": 0, "high": 1, "better": "lower", "styles": ["neutral"]},
    "fits": {"label": "Fits", "low": 1, "high": 5, "only": {"category": ["chat"]}},
}


def make(folder: Path, judges: str = "ab", *, described: bool = True) -> Reading:
    """Replies in three styles; every judge's C4 is one more than the last one's, and there is a part kept apart."""
    run = Maker(folder)
    if described:
        run.store.set_meta({"rubrics": msgspec.json.encode(DESCRIBED).decode()})
    for number, style in enumerate(("target", "alternative", "neutral")):
        category = "chat" if style == "target" else "other"
        talk = item(style, "converse", level=3, category=category, script=f"s{number}", style=style)
        scores = [Score("semsim", "semsim|v1", 0.5), Score("bleu", "bleu|v1", 0.25)]
        for n, judge in enumerate(judges):
            if style == "neutral":
                scores.append(Score(f"false_cue@{judge}", "false_cue|v1", float(n)))
            else:
                scores.append(Score(f"cspeechrel@{judge}", "cspeechrel|v1", 2.0 + n))
            scores.append(Score(f"fits@{judge}", "fits|v1", 4.0))
        run.answered(talk, "well", *scores, condition="enhance/audio")
    apart = item("apart", "converse", level=3, script="s9", part="control")
    run.answered(apart, "well", Score("cspeechrel@late", "cspeechrel|v1", 1.0), condition="enhance/audio")
    return open_run(run.done())


def styles(reading: Reading, name: str) -> list[str]:
    measure = measure_names.measures_of([reading])[name]
    return [a.item.style for a in reading.answers if not a.item.part and measure.belongs(a.item)]


def test_findings_and_comparisons_read_a_dimension_alike(tmp_path: Path) -> None:
    reading = make(tmp_path)
    of_finding = measure_names.measures_of([reading])["cspeechrel"]
    (of_comparison,) = (m for m in measure_names.headline([reading]) if m.name == "cspeechrel")
    typed = measure_names.find_one("c4", [reading])
    for measure in (of_finding, of_comparison, typed):
        assert measure.scores == ("cspeechrel@a", "cspeechrel@b"), "a judge of what is kept apart is on no panel"
        assert measure.label == "Speech relevance (C4)"
        assert (measure.task, measure.level, measure.good, measure.bad) == ("converse", 3, 5.0, 1.0)
        assert [measure.read(a) for a in reading.answers[:3]] == [2.5, 2.5, None]
    assert measure_names.find_one("c4@b", [reading]).read(reading.answers[0]) == 3.0
    assert measure_names.judges_left_out(typed, [reading]) == ["late"]


def test_a_panel_is_of_the_judges_that_all_runs_have(tmp_path: Path) -> None:
    readings = [make(tmp_path / "one", "ab"), make(tmp_path / "two", "bc")]
    assert measure_names.measures_of(readings)["cspeechrel"].scores == ("cspeechrel@b",)
    assert measure_names.find_one("c4", readings).scores == ("cspeechrel@b",)
    assert "cspeechrel" not in measure_names.measures_of([readings[0], make(tmp_path / "three", "")])


def test_a_dimension_belongs_to_what_the_run_says_it_is_asked_about(tmp_path: Path) -> None:
    told, untold = make(tmp_path / "told"), make(tmp_path / "untold", described=False)
    assert styles(told, "cspeechrel") == styles(untold, "cspeechrel") == ["target", "alternative"]
    assert styles(told, "false_cue") == styles(untold, "false_cue") == ["neutral"]
    assert styles(told, "fits") == ["target"], "it is asked about chats only"
    assert styles(untold, "fits") == ["target", "alternative", "neutral"]
    assert measure_names.measures_of([untold])["cspeechrel"].label == "C4", "where the run does not say"


def test_a_share_of_judges_is_a_proportion_that_less_of_is_better(tmp_path: Path) -> None:
    reading = make(tmp_path)
    measure = measure_names.find_one("false_cue", [reading])
    assert (measure.kind, measure.about.shown, measure.about.better) == ("proportion", "percent", "lower")
    assert (measure.good, measure.bad, measure.right_or_wrong) == (0.0, 1.0, False)
    assert measure.estimate(reading.answers[:3]).value == 0.5
    assert measure_names.is_percent("false_cue") and measure_names.short("false_cue") == "False cue"


def test_a_judge_that_leaves_its_scale_does_not_break_the_reading(tmp_path: Path) -> None:
    reading = make(tmp_path, "a")
    reading.answers[2].scores["false_cue@a"] = Score("false_cue@a", "false_cue|v1", 7.0)
    assert measure_names.find_one("false_cue", [reading]).estimate(reading.answers[:3]).value == 7.0


def test_every_name_that_findings_speak_of_is_one_that_can_be_typed(tmp_path: Path) -> None:
    reading = make(tmp_path)
    for name, measure in measure_names.measures_of([reading]).items():
        found = measure_names.find_one(name, [reading])
        assert (found.scores, found.label, found.about) == (measure.scores, measure.label, measure.about)
        assert found.about.shown == measure_names.about(name).shown


def test_metrics_are_there_where_all_runs_have_them(tmp_path: Path) -> None:
    one, other = make(tmp_path / "one"), make(tmp_path / "other")
    for answer in other.answers:
        answer.scores.pop("bleu", None)
    assert "bleu" in measure_names.measures_of([one]) and "bleu" not in measure_names.measures_of([one, other])
    assert "reply_semsim" in measure_names.measures_of([one])
    assert "reply_semsim" not in measure_names.measures_of([one], only={"bleu"})


def test_a_missing_transcript_is_all_wrong_at_worst_though_errors_have_no_highest_rate() -> None:
    by_name = {m.name: m for m in measure_names.headline([])}
    assert (by_name["wer_raw"].good, by_name["wer_raw"].bad) == (0.0, 1.0)
    wer = measure_names.find_one("wer", [])
    assert (wer.good, wer.bad, wer.about.high) == (0.0, 1.0, None)
    above = by_name["wer_raw"].side([(1.5, "a"), (0.0, "b")])
    assert above.low == 0.0 and above.high == pytest.approx(0.75 + 12.7062 * 0.75, abs=1e-3), "there is no highest rate"
    gap = by_name["wer_raw"].gap([(1.5, 0.0, "a"), (0.0, 1.0, "b")])
    assert gap.low is not None and gap.low < -1.5, "nor a largest difference"


@pytest.mark.parametrize("name", ["style_margin", "bertscore"])
def test_a_scale_without_ends_bounds_nothing(name: str) -> None:
    gap = measure_names.find_one(name, []).gap([(9.0, 0.0, "a"), (0.0, 9.0, "b")])
    assert gap.high is not None and gap.high > 9
    assert measure_names.about(name).low is None
