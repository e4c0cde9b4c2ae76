"""No interval leaves the scale of its measure, however few scripts it is of."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone.report.score_tables import RESULTS, result_tables
from overtone.results.load import Reading, open_run
from overtone.results.measures import Estimate
from overtone.results.summary import ConditionSummary, summarise_reading
from overtone.schema import Score
from overtone.scores import built_in
from tests.results.small import Maker, item

Detail = dict[str, float | int | str | None]
CLOSED = {name: about for name, about in built_in().items() if about.reduce == "mean"}
RUBRICS = (
    '{"cspeechrel": {"label": "C4", "low": 1, "high": 5, "styles": ["target"]},'
    ' "cspeechrel_implicit": {"label": "C4, implicit", "low": 1, "high": 5, "styles": ["target"]}}'
)


def extremes(folder: Path) -> Reading:
    """Two scripts, at the two ends of every scale: an interval by Student's t is wider than any of them."""
    run = Maker(folder)
    run.store.set_meta({"rubrics": RUBRICS})
    for number, script in enumerate(("s1", "s2")):
        scores = []
        for name, about in CLOSED.items():
            low = about.floor if about.low is None else about.low
            ends = (0.3 if low is None else max(low, -0.5), 1.0 if about.high is None else about.high)
            told: Detail = {"reply": "sad", "wanted": "sad" if number else "happy"} if "emoalign" in name else {}
            scores.append(Score(name, f"{name}|v1", ends[number], "", told))
        detail: Detail = {"pause_share": 0.9 * number, "f0_hz": 80.0 + 300 * number}
        scores.append(Score("expressiveness", "expressiveness|v1", 3.0 * number, "", detail))
        for judge in ("a", "b"):
            scores.append(Score(f"cspeechrel@{judge}", f"cspeechrel@{judge}|v1", 1.0))
            scores.append(Score(f"cspeechrel_implicit@{judge}", f"cspeechrel_implicit@{judge}|v1", 1.0 + 4 * number))
        talk = item(f"c{number}", "converse", level=3, category="conversation", script=script)
        run.answered(talk, "well", *scores, condition="enhance/audio", audio=b"RIFF" if number else b"RIFX")
        run.choice(item(f"v{number}", "choose", script=script), "A" if number else "B")
        run.transcript(item(f"t{number}", "transcribe", category="asr", script=script), 4 * number, 4)
    return open_run(run.done(), light=True)


@pytest.fixture(scope="module")
def reading(tmp_path_factory: pytest.TempPathFactory) -> Reading:
    return extremes(tmp_path_factory.mktemp("extremes") / "run")


@pytest.fixture(scope="module")
def measures(reading: Reading) -> dict[str, Estimate]:
    found = summarise_reading(reading).conditions
    return next(c.conversation.measures for c in found if c.conversation is not None)


@pytest.mark.parametrize("name", sorted(CLOSED))
def test_the_interval_of_a_metric_ends_with_its_scale(measures: dict[str, Estimate], name: str) -> None:
    e, about = measures[name], CLOSED[name]
    assert e.value is not None and e.low is not None and e.high is not None
    low = about.floor if about.low is None else about.low
    assert low is None or e.low >= low
    assert about.high is None or e.high <= about.high
    assert e.low <= e.value <= e.high


def test_the_interval_of_bertscore_ends_at_the_lowest_cosine(measures: dict[str, Estimate]) -> None:
    e = measures["bertscore"]
    assert (e.value, e.low, e.high) == (0.25, -1.0, 1.0)
    assert (e.best, e.worst) == (None, None), "a missing reply is not taken to be that bad"


def test_no_interval_of_any_table_leaves_its_scale(reading: Reading) -> None:
    seen = 0
    for name in RESULTS.keys() - {"headline", "published"}:
        for table in result_tables(name, [reading]):
            for line in table.lines:
                for head, cell in zip(table.heads, line.cells, strict=True):
                    e = cell.estimate
                    if e is None or e.low is None or e.high is None:
                        continue
                    seen += 1
                    place = (table.key, head, e)
                    if cell.kind in ("percent", "points"):
                        assert e.low >= -1 and (e.high <= 1 or "WER" in head), place
                    elif table.key.startswith("judged") or "1 to 5" in head:
                        assert 1 <= e.low <= e.high <= 5, place
                    elif table.key == "differences":
                        assert -4 <= e.low <= e.high <= 4, place
    assert seen > 40


def agreeing(folder: Path, scripts: int, errors: int = 0) -> ConditionSummary:
    """Scripts that agree in everything: transcripts with so many errors, replies that a judge rates 2."""
    run = Maker(folder)
    run.store.set_meta({"rubrics": RUBRICS})
    for number in range(scripts):
        run.transcript(item(f"t{number}", "transcribe", category="asr", script=f"s{number}"), errors, 4)
        talk = item(f"c{number}", "converse", level=3, category="conversation", script=f"s{number}")
        margin = Score("style_margin", "style_margin|v3", 0.25)
        judged = [Score(f"cspeechrel@{j}", f"cspeechrel@{j}|v1", 2.0) for j in ("a", "b")]
        run.answered(talk, "well", *judged, margin)
    return summarise_reading(open_run(run.done(), light=True)).conditions[0]


@pytest.mark.parametrize(("scripts", "most"), [(2, 0.99), (3, 0.87), (100, 0.04)])
def test_scripts_that_all_agree_leave_open_what_so_few_can_not_exclude(
    tmp_path: Path, scripts: int, most: float
) -> None:
    found = agreeing(tmp_path / "run", scripts)
    for wer in (found.measures["wer_raw"], found.measures["wer_corpus"]):
        assert wer.value == 0.0 and wer.low == 0.0
        assert wer.high is not None and most - 0.02 < wer.high < most, "as wide as that of a share of 0"
        assert "all scripts agree" in wer.note
    panel = next(row.headline for row in found.judged if row.judge == "")
    assert panel.value == 2.0 and panel.low is not None and panel.high is not None
    assert panel.low == pytest.approx(2 - most, abs=0.02) and panel.high == pytest.approx(2 + 3 * most, abs=0.06)


def test_a_number_without_spread_on_an_open_scale_has_no_interval_and_says_why(tmp_path: Path) -> None:
    found = agreeing(tmp_path / "run", 5)
    assert found.conversation is not None
    margin = found.conversation.measures["style_margin"]
    assert (margin.value, margin.low, margin.high) == (0.25, None, None)
    assert margin.note == "no interval: the few scripts all agree, so their spread is unknown"


def test_the_interval_of_word_errors_is_not_cut_at_the_largest_rate_seen(tmp_path: Path) -> None:
    run = Maker(tmp_path / "run")
    for number, errors in enumerate((3, 4, 5, 5)):
        run.transcript(item(f"t{number}", "transcribe", category="asr", script=f"s{number}"), errors, 4)
    found = summarise_reading(open_run(run.done(), light=True)).conditions[0]
    wer = found.measures["wer_raw"]
    half = 3.182446 * 0.957427 / 4 / 2  # Student's t of 3 degrees of freedom × the standard error
    assert wer.value == pytest.approx(17 / 16)
    assert wer.high == pytest.approx(17 / 16 + half, abs=1e-4) and wer.high > 1.25, "an error rate has no highest"
    assert wer.low == pytest.approx(17 / 16 - half, abs=1e-4)
