"""Requirements read, held, failed and left open; non-inferiority with its margin, by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone.analysis.judged import read_dimensions
from overtone.analysis.reading import open_run
from overtone.analysis.requirements import (
    Margin,
    Requirement,
    behind,
    check,
    differences,
    parse_margin,
    parse_requirement,
    sentences,
)
from overtone.analysis.summary import summarise_reading
from overtone.errors import UsageError
from tests.analysis.pairs import answers, asked, opened, talks
from tests.analysis.small import Maker, item
from tests.report.fake_run import make_run

EIGHT = [True] * 6 + [False] * 2


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("voice_accuracy >= 0.60", Requirement("voice_accuracy", ">=", 0.6)),
        ("wer<.1", Requirement("wer", "<", 0.1)),
        (" c4@gpt-4o.mini > 3 ", Requirement("c4@gpt-4o.mini", ">", 3)),
        ("style_margin <= -1e-2", Requirement("style_margin", "<=", -0.01)),
    ],
)
def test_a_requirement_is_a_name_a_sign_and_a_number(text: str, wanted: Requirement) -> None:
    assert parse_requirement(text) == wanted
    assert parse_requirement(str(wanted)) == wanted


@pytest.mark.parametrize(
    "text", ["", "wer", "wer 0.1", "wer = 0.1", "wer == 1", "wer >= x", "0.1 < wer", "wer < 1 c4 > 2", "wer < 1e999"]
)
def test_what_is_no_requirement_is_an_error_that_shows_one(text: str) -> None:
    with pytest.raises(UsageError):
        parse_requirement(text)


@pytest.mark.parametrize("text", ["c4", "c4:", "c4:-1", "c4:0", "c4:x", ":0.1", "c4:0.1:2"])
def test_what_is_no_margin_is_an_error_that_shows_one(text: str) -> None:
    assert parse_margin("c4@j:0.1") == Margin("c4@j", 0.1)
    with pytest.raises(UsageError, match=r"like c4:0\.1"):
        parse_margin(text)


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("voice_accuracy >= 0.75", "holds"),
        ("voice_accuracy > 0.75", "fails"),
        ("voice_accuracy <= 0.75", "holds"),
        ("voice_accuracy < 0.75", "fails"),
        ("voice_accuracy_strict >= 0.7", "holds"),
        ("reasoning_accuracy >= 0.1", "unknown"),
        ("wer <= 0.1", "unknown"),
        ("c4 >= 1", "unknown"),
        ("bertscore >= 0", "unknown"),
    ],
)
def test_a_requirement_holds_by_its_value(tmp_path: Path, text: str, state: str) -> None:
    (run,) = opened(answers(tmp_path / "a", EIGHT))
    found = check(run, [parse_requirement(text)])
    assert found.state == state
    assert len(found.rows) == 1


def test_the_interval_is_shown_beside_and_does_not_decide(tmp_path: Path) -> None:
    (run,) = opened(answers(tmp_path / "a", EIGHT))
    rows = check(run, [parse_requirement(f"voice_accuracy >= {x}") for x in ("0.7", "0.1", "0.99")]).rows
    assert [row.state for row in rows] == ["holds", "holds", "fails"]
    assert len({row.key for row in rows}) == 3
    assert "includes the other side" in rows[0].said
    assert "lies on its side" in rows[1].said
    assert "lies on the other side" in rows[2].said


def test_missing_replies_that_could_turn_it_are_said(tmp_path: Path) -> None:
    (run,) = opened(answers(tmp_path / "a", [*EIGHT, None, None]))
    (row,) = check(run, [parse_requirement("voice_accuracy >= 0.7")]).rows
    assert row.state == "holds"
    assert "8 of 10 scored; the missing ones could turn it" in row.said
    (sure,) = check(run, [parse_requirement("voice_accuracy >= 0.5")]).rows
    assert "could turn" not in sure.said


def test_one_failure_outweighs_what_is_open(tmp_path: Path) -> None:
    (run,) = opened(answers(tmp_path / "a", EIGHT))
    names = ("voice_accuracy >= 0.7", "c4 >= 3", "voice_accuracy >= 0.9")
    found = check(run, [parse_requirement(name) for name in names])
    assert [row.state for row in found.rows] == ["holds", "unknown", "fails"]
    assert found.state == "fails"
    assert check(run, [parse_requirement(name) for name in names[:2]]).state == "unknown"
    assert [text.split(":")[0] for text in sentences(found)] == [
        "voice_accuracy >= 0.7 (task/audio) holds",
        "c4 >= 3 is open",
        "voice_accuracy >= 0.9 (task/audio) fails",
    ]


def test_values_are_the_headline_s(tmp_path: Path) -> None:
    run = open_run(make_run(tmp_path / "a", judges=("one", "two")), light=True)
    summary = summarise_reading(run)
    told = {c.condition: c for c in summary.conditions}
    names = ("voice_accuracy", "reasoning_accuracy", "wer_raw", "semsim", "reply_semsim", "wer_corpus")
    for name in names:
        rows = check(run, [Requirement(name, ">=", 0)]).rows
        assert rows
        for row in rows:
            known = told[row.condition].measures[name]
            assert (row.found.value, row.found.scored, row.found.asked) == (known.value, known.scored, known.asked)
            assert (row.found.low, row.found.high) == (known.low, known.high)
            assert (row.found.best, row.found.worst) == (known.best, known.worst)
            assert behind(run, row.key)
    assert read_dimensions(run.meta, run.signatures)
    for name, judge in (("c4", ""), ("c4@two", "two")):
        for row in check(run, [Requirement(name, ">=", 0)]).rows:
            rows_of = told[row.condition].judged
            known = next(r.headline for r in rows_of if (r.dimension.key, r.judge) == ("cspeechrel", judge))
            assert row.found.value == pytest.approx(known.value)
            assert (row.found.scored, row.found.asked) == (known.scored, known.asked)


def test_every_condition_is_held_to_it_unless_one_is_named(tmp_path: Path) -> None:
    run = open_run(make_run(tmp_path / "a"), light=True)
    required = [parse_requirement("reply_semsim >= 0.1")]
    assert [row.condition for row in check(run, required).rows] == ["zero/audio", "enhance/audio"]
    assert [row.condition for row in check(run, required, conditions=["zero/audio"]).rows] == ["zero/audio"]


def test_only_validated_cues_count_where_there_are_any(tmp_path: Path) -> None:
    maker = Maker(tmp_path / "a")
    for number in range(4):
        maker.choice(asked(number, status="validated" if number < 3 else "unvalidated"), "A" if number < 3 else "B")
    maker.choice(asked(9, part="false-cue"), "B")
    (run,) = opened(maker.done())
    assert check(run, [parse_requirement("voice_accuracy >= 1")]).state == "holds"
    unsure = Maker(tmp_path / "b")
    unsure.choice(asked(1, status="unvalidated"), "A")
    (run,) = opened(unsure.done())
    assert "over cues that are not validated" in check(run, [parse_requirement("voice_accuracy >= 1")]).rows[0].said


def test_a_name_of_two_measures_or_of_none_is_an_error(tmp_path: Path) -> None:
    (run,) = opened(answers(tmp_path / "a", EIGHT))
    with pytest.raises(UsageError, match="voice_accuracy and reasoning_accuracy"):
        check(run, [parse_requirement("accuracy > 0.5")])
    with pytest.raises(UsageError, match="did you mean 'bertscore'"):
        check(run, [parse_requirement("bertscor > 0.5")])


def test_a_judge_the_run_does_not_have_is_open_and_names_those_it_has(tmp_path: Path) -> None:
    (run,) = opened(talks(tmp_path / "a", [3, 4]))
    (row,) = check(run, [parse_requirement("c4@gpt >= 3")]).rows
    assert row.state == "unknown"
    assert row.said.endswith("it was scored by j")


# ── beside a baseline ───────────────────────────────────────────────────────────────────────────────────────────────


def test_no_worse_holds_by_the_bound_and_not_by_the_value(tmp_path: Path) -> None:
    before = [3.0] * 8
    after = [3.0] * 6 + [2.6, 3.4]  # no difference on the whole
    base, run = opened(talks(tmp_path / "a", before), talks(tmp_path / "b", after))
    (wide,) = check(run, [], [Margin("c4", 0.2)], base).rows
    (narrow,) = check(run, [], [Margin("c4", 0.01)], base).rows
    assert wide.found.value == narrow.found.value == pytest.approx(0)
    assert (wide.state, narrow.state) == ("holds", "fails")
    assert wide.found.low is not None
    assert -0.2 < wide.found.low < -0.01
    assert wide.p is not None
    assert narrow.p is not None
    assert wide.p <= 0.05 < narrow.p


def test_the_one_sided_bound_of_equal_steps_is_known(tmp_path: Path) -> None:
    # Every script fell by 0.1: the test of "worse by 0.2 or more" flips six equal gains of 0.1, p = 1 / 2^6.
    base, run = opened(talks(tmp_path / "a", [3.0] * 6), talks(tmp_path / "b", [2.9] * 6))
    (row,) = check(run, [], [Margin("c4", 0.2)], base).rows
    assert row.p == 1 / 64
    assert row.found.low == pytest.approx(-0.1)
    assert row.state == "holds"
    assert check(run, [], [Margin("c4", 0.1)], base).state == "fails"  # by exactly the margin is worse by the margin


def test_for_an_error_rate_more_is_worse(tmp_path: Path) -> None:
    made = []
    for name, errors in (("a", 1), ("b", 2)):
        maker = Maker(tmp_path / name)
        for number in range(8):
            maker.transcript(item(f"t{number}", "transcribe", category="asr", script=f"s{number}"), errors, 4)
        made.append(maker.done())
    base, run = opened(*made)
    (row,) = check(run, [], [Margin("wer", 0.2)], base).rows
    assert (row.state, row.found.value) == ("fails", 0.25)
    assert "at most +0.25" in row.said
    assert check(run, [], [Margin("wer", 0.3)], base).state == "holds"
    assert check(base, [], [Margin("wer", 0.01)], run).state == "holds"


def test_too_few_scripts_show_nothing_and_so_fail(tmp_path: Path) -> None:
    base, run = opened(talks(tmp_path / "a", [3.0] * 4), talks(tmp_path / "b", [3.0] * 4))
    (row,) = check(run, [], [Margin("c4", 0.1)], base).rows
    assert row.state == "fails"
    assert "too few scripts" in row.said


def test_a_required_measure_without_a_margin_fails_where_it_is_worse_beyond_chance(tmp_path: Path) -> None:
    base, run, close = opened(
        answers(tmp_path / "a", [True] * 16),
        answers(tmp_path / "b", [True] * 8 + [False] * 8),
        answers(tmp_path / "c", [True] * 15 + [False]),
    )
    required = [parse_requirement("voice_accuracy >= 0.2")]
    worse, near = check(run, required, [], base), check(close, required, [], base)
    assert [(row.required, row.state) for row in worse.rows] == [
        ("voice_accuracy >= 0.2", "holds"),
        ("voice_accuracy not worse", "fails"),
    ]
    assert near.state == "holds"
    assert len(behind(run, worse.rows[1].key, base)) == 16


def test_no_shared_item_or_score_leaves_it_open(tmp_path: Path) -> None:
    base, run = opened(talks(tmp_path / "a", [None, None]), talks(tmp_path / "b", [3.0, 3.0]))
    assert check(run, [], [Margin("c4", 0.1)], base).state == "unknown"
    other, plain = opened(answers(tmp_path / "c", EIGHT), answers(tmp_path / "d", EIGHT))
    assert check(plain, [], [Margin("c4", 0.1)], other).state == "unknown"


def test_signatures_that_differ_are_found_only_in_what_is_asked(tmp_path: Path) -> None:
    base, run = opened(answers(tmp_path / "a", EIGHT), answers(tmp_path / "b", EIGHT, version=2))
    (found,) = differences(run, base, [], [Margin("voice_accuracy", 0.1)])
    assert found.what == "signature of accuracy"
    assert differences(run, base, [parse_requirement("voice_accuracy > 0.1")], [])
    assert differences(run, base, [], [Margin("wer", 0.1)]) == []


def test_a_margin_needs_a_baseline_and_a_measure_with_a_better_side(tmp_path: Path) -> None:
    base, run = opened(answers(tmp_path / "a", EIGHT), answers(tmp_path / "b", EIGHT))
    with pytest.raises(UsageError, match="--baseline"):
        check(run, [], [Margin("voice_accuracy", 0.1)])
    with pytest.raises(UsageError, match="nothing is worse"):
        check(run, [], [Margin("reply_words", 0.1)], base)
