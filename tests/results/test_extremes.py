"""The worst and the best replies, and by whose word."""

from __future__ import annotations

from pathlib import Path

from overtone.results.extremes import Extremes
from overtone.schema import Score
from tests.results.small import Maker
from tests.results.test_judge_scores import found, score, talk


def ends(make: Maker) -> Extremes | None:
    return found(make)[1].extremes


def test_the_panel_ranks_and_its_reasons_come_along(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    for n, (a, b) in enumerate([(5, 5), (1, 2), (3, 3), (1, 1)]):
        make.answered(talk(f"s{n}", "target"), "x", score("cspeechrel@a", a), score("cspeechrel@b", b))
    make.answered(talk("s9", "target"), "x", score("cspeechrel@a", 1), score("cspeechrel@b", None, reason="unread"))
    told = ends(make)
    assert told is not None and (told.by, told.judged) == ("C4", True)
    assert [e.case for e in told.worst] == ["synthesis/s3/target", "synthesis/s1/target"]
    assert [(e.case, e.value) for e in told.best] == [("synthesis/s0/target", 5.0), ("synthesis/s2/target", 3.0)]
    assert [(w.judge, w.value, w.why) for w in told.worst[1].words] == [("a", 1.0, "because"), ("b", 2.0, "because")]


def test_equal_replies_are_told_apart_by_the_other_dimensions(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    for n, other in enumerate((3, 5, 1)):
        make.answered(talk(f"s{n}", "target"), "x", score("cspeechrel@a", 3), score("ves@a", other))
    told = ends(make)
    assert told is not None
    assert (told.worst[0].case, told.best[0].case) == ("synthesis/s2/target", "synthesis/s1/target")


def test_where_lower_is_better_the_highest_is_the_worst(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    for n, claim in enumerate((0, 1)):
        make.answered(talk(f"s{n}", "neutral"), "x", score("false_cue@a", claim))
    told = ends(make)
    assert told is not None and told.worst[0].case == "synthesis/s1/neutral" and told.worst[0].value == 1.0


def test_without_judges_likeness_ranks_and_says_so(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    for n, value in enumerate((0.9, -0.2)):
        make.answered(
            talk(f"s{n}", "target"), "x", Score("bertscore", "b|v1", value), Score("semsim", "s|v1", 1 - value)
        )
    told = ends(make)
    assert told is not None and (told.by, told.judged) == ("BERTScore", False)
    assert (told.worst[0].case, told.worst[0].value, told.worst[0].words) == ("synthesis/s1/target", -0.2, [])


def test_replies_that_are_all_alike_have_no_ends(tmp_path: Path) -> None:
    make = Maker(tmp_path)
    for n in range(3):
        make.answered(talk(f"s{n}", "target"), "x", score("cspeechrel@a", 3))
    assert ends(make) is None
