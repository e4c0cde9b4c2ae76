"""What judges said, against numbers worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from overtone.results.load import open_run
from overtone.results.summary import ConditionSummary, Summary, summarise_reading
from overtone.schema import Item, Score
from tests.results.small import Maker, item

CUED = ["target", "alternative"]
RUBRICS: dict[str, dict[str, Any]] = {
    "cspeechrel": {"label": "C4", "low": 1, "high": 5, "better": "higher", "styles": CUED, "unvalidated": {"a": False}},
    "cspeechrel_implicit": {"label": "C4, quiet", "low": 1, "high": 5, "better": "higher", "styles": CUED},
    "false_cue": {"label": "False cue", "low": 0, "high": 1, "better": "lower", "styles": ["neutral"]},
    "ves": {"label": "VES", "low": 1, "high": 5, "better": "higher", "styles": CUED},
}


def talk(script: str, style: str, **more: Any) -> Item:
    return item(
        f"{script}/{style}", "converse", level=3, script=script, case=f"synthesis/{script}/{style}", style=style, **more
    )


def score(name: str, value: float | None, values: str = "", hears: str = "nothing", reason: str = "") -> Score:
    model = name.partition("@")[2].removesuffix("-eye")
    signature = (
        f"{name}|v1|rubric:r.1.aa|judge:openai:{model}|temperature:0|seed:0|repeats:1|calls:together|hears:{hears}"
    )
    detail: dict[str, float | int | str | None] = {"why": "because", "values": values, "draws": 1}
    if value is None:
        detail["unread"] = 1
    return Score(name, signature, value, reason, detail)


def found(make: Maker, rubrics: dict[str, Any] | str | None = None) -> tuple[Summary, ConditionSummary]:
    told = RUBRICS if rubrics is None else rubrics
    make.store.set_meta({"rubrics": told if isinstance(told, str) else msgspec.json.encode(told).decode()})
    summary = summarise_reading(open_run(make.done(), light=True))
    (condition,) = summary.conditions
    return summary, condition


def test_a_dimension_about_the_cue_is_over_cued_clips_with_target_alone_beside_it(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    for script, target, other in (("s1", 5, 3), ("s2", 3, 1)):
        make.answered(talk(script, "target"), "x", score("cspeechrel@a", target))
        make.answered(talk(script, "alternative"), "x", score("cspeechrel@a", other))
        make.answered(talk(script, "neutral"), "x", score("false_cue@a", float(script == "s1")))
    make.failed(talk("s3", "target"))
    _, c = found(make)
    rows = {r.dimension.key: r for r in c.judged}
    speech, false = rows["cspeechrel"], rows["false_cue"]
    assert (speech.headline.value, speech.headline.scored, speech.headline.asked) == (3.0, 4, 5)
    assert (speech.headline.best, speech.headline.worst) == ((12 + 5) / 5, (12 + 1) / 5)
    assert speech.target is not None and speech.target.value == 4.0
    assert {s: e.value for s, e in speech.styles.items()} == {"target": 4.0, "alternative": 2.0}
    assert false.headline.value == 0.5 and false.target is None and false.dimension.share
    assert false.headline.low is not None and 0 < false.headline.low < 0.5, "a rate's interval stays within 0 and 1"
    assert (speech.unvalidated, false.unvalidated) == (False, True), "a judge nobody vouches for is not validated"
    assert speech.headline.scripts == 2 and speech.signature.startswith("cspeechrel@a|v1")


def test_the_panel_is_the_mean_of_replies_that_all_judges_scored(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    make.answered(talk("s1", "target"), "x", score("ves@a", 5), score("ves@b", 2))
    make.answered(talk("s2", "target"), "x", score("ves@a", 1), score("ves@b", None, reason="unread: seven"))
    make.answered(talk("s3", "target"), "x", score("ves@a", 1))
    summary, c = found(make)
    panel, a, b = c.judged
    assert (panel.judge, panel.headline.value, panel.headline.scored, panel.headline.asked) == ("", 3.5, 1, 3)
    assert a.headline.value == pytest.approx(7 / 3) and b.headline.value == 2.0
    (trouble,) = summary.troubles
    assert (trouble.judge, trouble.asked, trouble.unscored, trouble.unread) == ("b", 2, 1, 1)
    assert trouble.reasons == {"unread: seven": 1}


def told(name: str, value: float | None, reason: str = "", **detail: int) -> Score:
    return Score(name, f"{name}|v1", value, reason, {"draws": 1, **detail})


def test_only_verdicts_that_came_and_could_not_be_read_are_unread(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    scores = [
        told("ves@a", None, "the answer is empty", unread=1, missing=0, skipped=0),
        told("ves@a", None, "the reply has no audio", unread=0, missing=0, skipped=1),
        told("ves@a", None, "not judged: its budget of 3 requests is spent", unread=0, missing=1, skipped=0),
        # as earlier runs hold them
        told("ves@a", None, "the reply has no audio", unread=1),
        told("ves@a", None, "not judged: its budget of 3 requests is spent", unread=1),
        told("ves@a", None, "the judge did not answer: timeout", unread=1),
        told("ves@a", None, "the answer is empty", unread=1),
        told("ves@a", 4.0),
    ]
    for number, one in enumerate(scores):
        make.answered(talk(f"s{number}", "target"), "x", one)
    summary, _ = found(make)
    (trouble,) = summary.troubles
    assert (trouble.unscored, trouble.unread, trouble.missing, trouble.skipped) == (7, 2, 3, 2)


def test_agreement_says_how_many_replies_each_judge_rated_where_that_differs(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    for number in range(6):
        third = (score("ves@c", 3),) if number < 2 else ()
        make.answered(talk(f"s{number}", "target"), "x", score("ves@a", 1 + number % 5), score("ves@b", 2), *third)
    summary, _ = found(make)
    (row,) = summary.agreement
    assert (row.alpha.scored, row.alpha.asked) == (6, 6)
    assert row.alpha.note == "replies rated: a 6, b 6, c 2"


def test_one_judge_is_no_panel(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    make.answered(talk("s1", "target"), "x", score("ves@a", 5))
    summary, c = found(make)
    assert [r.judge for r in c.judged] == ["a"] and summary.agreement == []


def test_what_quiet_use_adds_is_paired_by_reply(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    for script, plain, quiet in (("s1", 2, 4), ("s2", 3, 4), ("s3", 5, None)):
        make.answered(talk(script, "target"), "x", score("cspeechrel@a", plain), score("cspeechrel_implicit@a", quiet))
    _, c = found(make)
    (difference,) = c.differences
    assert (difference.kind, difference.by.value, difference.by.scored, difference.by.asked) == ("implicit", 1.5, 2, 3)
    assert difference.by.low is not None


def test_a_judge_that_hears_is_set_against_itself_reading_a_description(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    for script, ear, eye in (("s1", 5, 3), ("s2", 4, 3)):
        scores = (score("ves@a", ear, hears="audio"), score("ves@a-eye", eye, hears="description"))
        make.answered(talk(script, "target"), "x", *scores)
    _, c = found(make)
    (difference,) = c.differences
    assert (difference.kind, difference.judge, difference.by.value) == ("hears", "openai:a", 1.5)


def test_judges_of_different_models_are_not_called_two_ways_of_one(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    scores = (score("ves@a", 5, hears="audio"), score("ves@b", 3, hears="description"))
    make.answered(talk("s1", "target"), "x", *scores)
    assert found(make)[1].differences == []


def test_agreement_between_judges_and_between_draws(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    for n, (a, b) in enumerate([(1, 1), (2, 3), (3, 3), (5, 5), (4, 2)]):
        scores = (score("ves@a", a, f"{a},{a}"), score("ves@b", b, f"{b}"))
        make.answered(talk(f"s{n}", "target"), "x", *scores)
    between, again = found(make)[0].agreement
    assert (between.kind, between.who, between.replies, between.exact, between.within_one) == (
        "judges", ("a", "b"), 5, 0.6, 0.8,
    )  # fmt: skip
    assert between.alpha.value is not None and between.alpha.low is not None
    assert between.alpha.low <= between.alpha.value < 1 and between.spearman is not None and between.spearman > 0.5
    assert (again.kind, again.who, again.alpha.value, again.exact) == ("repeats", ("a",), 1.0, 1.0)


def test_yes_and_no_of_repeated_draws_are_compared(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    for n, draws in enumerate(("yes,yes", "no,no", "yes,no", "no,no")):
        make.answered(talk(f"s{n}", "neutral"), "x", score("false_cue@a", 0.5, draws))
    (again,) = found(make)[0].agreement
    assert again.exact == 0.75 and again.within_one is None


@pytest.mark.parametrize(
    "rubrics", ["", "not json", "[1]", '{"ves": 3}', '{"ves": {"low": "x"}}', '{"ves": {"label": {"a": 1}}}'],
)  # fmt: skip
def test_a_run_without_a_word_on_its_rubrics_still_shows_its_scores(tmp_path: Path, rubrics: str) -> None:
    make = Maker(tmp_path)
    make.answered(talk("s1", "target"), "x", score("ves@a", 4))
    make.answered(talk("s1", "neutral"), "x")
    _, c = found(make, rubrics)
    (row,) = c.judged
    assert (row.dimension.label, row.headline.value, row.headline.asked) == ("ves", 4.0, 1)
    assert row.headline.best is None and row.unvalidated


def test_clips_whose_cue_is_not_validated_are_judged_apart_and_other_parts_not_at_all(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    make.answered(talk("s1", "target", status="validated"), "x", score("ves@a", 4))
    make.answered(talk("s2", "target", status="unvalidated"), "x", score("ves@a", 1))
    make.answered(talk("s3", "target", part="conflict"), "x", score("ves@a", 2))
    _, c = found(make)
    assert [(r.basis, r.headline.value) for r in c.judged] == [("validated", 4.0), ("unvalidated", 1.0)]


def test_where_no_cue_is_validated_neutral_clips_do_not_stand_alone(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    make.answered(talk("s1", "target", status="unvalidated"), "x", score("cctxfit@a", 1))
    make.answered(talk("s1", "neutral"), "x", score("cctxfit@a", 5))
    _, c = found(make)
    assert [(r.basis, r.headline.value) for r in c.judged] == [("unvalidated", 3.0)]
    assert c.extremes is not None and c.extremes.worst[0].case == "synthesis/s1/target"


def test_no_number_is_made_of_draws_that_are_none(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    for n in range(3):
        make.answered(talk(f"s{n}", "target"), "x", score("ves@a", 3, "3,nan,maybe"))
    assert found(make)[0].agreement == []
