"""A run beside its baseline: the rule of `compare`, one-sided margins by hand, and missing replies."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone.errors import UsageError
from overtone.results import measure_names
from overtone.results.checking import behind, check
from overtone.results.comparison import compare
from overtone.results.comparison_text import sentences
from overtone.results.requirements import Margin, parse_requirement
from tests.report.fake_run import make_run
from tests.results.pairs import answers, asked, opened, talks
from tests.results.small import Maker, item

EIGHT = [True] * 6 + [False] * 2


def hearing(folder: Path, right: int, scripts: int = 8, *, unsure: int = 0) -> Path:
    """A run with a voice and a reasoning question of each script: voice questions right on some, reasoning on all.

    `unsure` more scripts have a voice question about a cue that is not validated, answered like the others.
    """
    maker = Maker(folder)
    for number in range(scripts):
        maker.choice(asked(number, status="validated"), "A" if number < right else "B")
        maker.choice(asked(100 + number, level=2, category="suggestion", status="validated"), "A")
    for number in range(unsure):
        maker.choice(asked(200 + number, status="unvalidated", cue="happy"), "A" if right else "B")
    maker.store.set_meta({"benchmark": "toy", "label": folder.name, "model": folder.name})
    return maker.done()


# ── one rule ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_interval_that_excludes_zero_is_called_the_same_by_compare_and_check(tmp_path: Path) -> None:
    # Six of eight scripts fell: p = 2 / 2^6 alone, 4 / 2^6 after Holm over two tests. The interval excludes 0.
    base, run = opened(hearing(tmp_path / "a", 8), hearing(tmp_path / "b", 2))
    row = compare(base, run).tables[0].rows[0]
    assert row.by.high is not None and row.by.high < 0
    assert (row.p, row.adjusted, row.tests, row.verdict) == (2 / 64, 4 / 64, 2, "")
    found = check(run, baseline=base)
    assert [(one.required, one.state) for one in found.rows] == [
        ("voice_accuracy not significantly worse", "holds"),
        ("reasoning_accuracy not significantly worse", "holds"),
        ("missing replies <= 1 %", "holds"),
    ]
    assert found.rows[0].p == row.adjusted
    rule = "(p = 0.062, two-sided paired test clustered by script, Holm correction over 2 headline tests)"
    assert (
        f"the difference of −75.0 points is not statistically significant {rule}"
        in sentences(compare(base, run))[0].text
    )
    assert f"the difference of −75.0 points is not statistically significant {rule}" in found.rows[0].text
    assert "uncorrected, so it can exclude 0" in found.rows[0].text


@pytest.mark.parametrize("skill", [0.35, 0.55, 0.7, 0.95])
def test_check_fails_exactly_what_compare_calls_worse(tmp_path: Path, skill: float) -> None:
    base = make_run(tmp_path / "a", judges=("one",), scripts=40, skill=0.7)
    run = make_run(tmp_path / "b", judges=("one",), scripts=40, skill=skill, seed=5)
    first, second = opened(base, run)
    verdicts = {f"{row.condition}/{row.measure}": row.verdict for row in compare(first, second).tables[0].rows}
    rows = [row for row in check(second, baseline=first).rows if row.key.endswith("/not-worse")]
    assert len(rows) == len(verdicts) > 4
    decided = 0
    for row in rows:
        name = row.key.split("/")[3]
        verdict = verdicts[f"{row.condition}/{measure_names.TYPED.get(name, name)}"]
        decided += row.state != "undecided"
        assert row.state in ("fails" if verdict == "worse" else "holds", "undecided"), row.text
    assert decided


def test_the_correction_does_not_depend_on_what_is_named(tmp_path: Path) -> None:
    base, run = opened(hearing(tmp_path / "a", 8), hearing(tmp_path / "b", 2))
    whole = compare(base, run).tables[0].rows[0]
    (alone,) = compare(base, run, ["voice_accuracy"]).tables[0].rows
    strict = compare(base, run, ["voice_accuracy", "voice_accuracy_strict"]).tables[0].rows
    assert alone == whole == strict[0]
    assert (strict[1].family, strict[1].tests, strict[1].adjusted) == ("tests of other measures", 1, 2 / 64)
    (row, _) = check(run, [], [], base).rows[:2]
    required = check(run, [parse_requirement("voice_accuracy > 0")], [], base).rows
    assert required[1] == row


def test_cues_that_are_not_validated_are_no_part_of_the_family(tmp_path: Path) -> None:
    base, run = opened(hearing(tmp_path / "a", 8, unsure=8), hearing(tmp_path / "b", 0, unsure=8))
    rows = compare(base, run).tables[0].rows
    assert {row.basis: (row.tests, row.family) for row in rows if row.measure == "voice_accuracy"} == {
        "validated": (2, "headline tests"),
        "unvalidated": (1, "headline tests on cues not validated"),
    }
    found = check(run, baseline=base)
    assert [(one.value.scored, one.p) for one in found.rows[:2]] == [(8, 4 / 2**8), (8, 1.0)]
    (by_cue,) = compare(base, run).tables[1:]
    assert {row.cue: (row.tests, row.family) for row in by_cue.rows} == {
        "sad": (1, "tests of single cues"),
        "happy": (1, "tests of single cues on cues not validated"),
    }


def test_a_judged_measure_is_the_headline_s_by_any_of_its_names(tmp_path: Path) -> None:
    base, run = opened(talks(tmp_path / "a", [4.0] * 8), talks(tmp_path / "b", [2.0] * 8))
    names = ("c4", "c4@j", "cspeechrel")
    rows = [check(run, [parse_requirement(f"{name} > 1")], [], base).rows[1] for name in names]
    assert {row.p for row in rows} == {compare(base, run).tables[0].rows[0].adjusted}
    assert all("Holm correction over 1 headline test)" in row.text for row in rows)
    assert check(run, baseline=base).rows[0].required == "c4 not significantly worse"


def test_a_required_measure_fails_where_it_is_significantly_worse(tmp_path: Path) -> None:
    base, run, close = opened(
        answers(tmp_path / "a", [True] * 16),
        answers(tmp_path / "b", [True] * 8 + [False] * 8),
        answers(tmp_path / "c", [True] * 15 + [False]),
    )
    required = [parse_requirement("voice_accuracy >= 0.2")]
    worse, near = check(run, required, [], base), check(close, required, [], base)
    assert [(row.required, row.state) for row in worse.rows] == [
        ("voice_accuracy >= 20 %", "holds"),
        ("voice_accuracy not significantly worse", "fails"),
        ("missing replies <= 1 %", "holds"),
    ]
    assert "the run is 50.0 points lower than the baseline, which is worse" in worse.rows[1].text
    assert near.state == "holds"
    assert len(behind(run, worse.rows[1].key, base)) == 16


def test_a_baseline_alone_gates_the_headline_and_so_do_requirements_on_operation(tmp_path: Path) -> None:
    base, run = opened(hearing(tmp_path / "a", 8), hearing(tmp_path / "b", 0))
    names = ["voice_accuracy not significantly worse", "reasoning_accuracy not significantly worse"]
    found = check(run, baseline=base)
    assert [row.required for row in found.rows[:-1]] == names
    assert found.state == "fails"
    beside = check(run, [parse_requirement("latency_p95 <= 5"), parse_requirement("failures <= 1%")], [], base)
    assert [row.required for row in beside.rows[2:-1]] == names
    named = check(run, [parse_requirement("reasoning_accuracy > 0")], [], base)
    assert [row.required for row in named.rows[1:-1]] == names
    assert named.state == "fails"  # a requirement on another measure does not switch off what fails
    margin = check(run, [], [Margin("reasoning_accuracy", 90, "%")], base)
    assert [row.required for row in margin.rows[:-1]] == ["reasoning_accuracy worse by less than 90 points", names[0]]
    assert margin.state == "fails"


@pytest.mark.parametrize("names", [("voice_accuracy", "voice_accuracy"), ("c4", "cspeechrel"), ("c4@j", "c4")])
def test_two_margins_for_one_measure_are_refused(tmp_path: Path, names: tuple[str, str]) -> None:
    base, run = opened(talks(tmp_path / "a", [4.0] * 8), talks(tmp_path / "b", [2.0] * 8))
    with pytest.raises(UsageError, match="two margins for one measure"):
        check(run, [], [Margin(names[0], 0.1), Margin(names[1], 0.9)], base)


def test_a_headline_measure_that_the_run_was_not_asked_is_undecided(tmp_path: Path) -> None:
    base = hearing(tmp_path / "a", 8)
    maker = Maker(tmp_path / "b")
    for number in range(8):
        maker.choice(asked(100 + number, level=2, category="suggestion", status="validated"), "A")
    maker.store.set_meta({"benchmark": "toy"})
    first, run = opened(base, maker.done())
    found = check(run, baseline=first)
    assert [(row.required.split()[0], row.condition, row.state) for row in found.rows] == [
        ("voice_accuracy", "task/audio", "undecided"),
        ("reasoning_accuracy", "task/audio", "holds"),
        ("missing", "", "holds"),
    ]
    assert "the baseline has 8 such items and the run has none of them" in found.rows[0].text
    assert found.notes == ("8 of the baseline's 16 asks are not in the run and are not compared",)
    row = check(run, [], [Margin("voice_accuracy", 10, "%")], first).rows[0]
    assert (row.required, row.condition, row.state) == (
        "voice_accuracy worse by less than 10 points",
        "task/audio",
        "undecided",
    )


def test_cues_that_are_not_validated_do_not_stand_in_for_those_the_run_was_not_asked(tmp_path: Path) -> None:
    maker = Maker(tmp_path / "b")
    for number in range(8):
        maker.choice(asked(200 + number, status="unvalidated", cue="happy"), "A")
    maker.store.set_meta({"benchmark": "toy"})
    base, run = opened(hearing(tmp_path / "a", 8, unsure=8), maker.done())
    assert check(run, baseline=base).rows[0].state == "undecided"
    row = check(run, [], [Margin("voice_accuracy", 50, "%")], base).rows[0]
    assert row.state == "undecided" and "the run has none of them" in row.text


def test_asks_of_the_baseline_outside_the_core_are_counted_too(tmp_path: Path) -> None:
    maker = Maker(tmp_path / "a")
    for number in range(8):
        maker.choice(asked(number), "A")
    for number in range(3):
        maker.choice(asked(50 + number, part="control"), "A")
    maker.store.set_meta({"benchmark": "toy"})
    base, run = opened(maker.done(), answers(tmp_path / "b", [True] * 6))
    found = check(run, baseline=base)
    assert "5 of the baseline's 11 asks are not in the run and are not compared" in found.notes
    assert "6 pairs of the baseline's 8 asks from 6 scripts" in found.rows[0].text


def test_a_row_without_a_significant_difference_says_what_it_could_have_found(tmp_path: Path) -> None:
    texts = []
    for size in (8, 200):
        base, run = opened(answers(tmp_path / f"a{size}", [True] * size), answers(tmp_path / f"b{size}", [True] * size))
        texts.append(check(run, baseline=base).rows[0].text)
    assert "the smallest difference that this test detects with 80 % power is about 75.0 points" in texts[0]  # 6 of 8
    assert "is about 10." in texts[1]
    worse = opened(answers(tmp_path / "c", [False] * 20), answers(tmp_path / "d", [True] * 20))
    assert "power" not in check(worse[0], baseline=worse[1]).rows[0].text


def test_a_dimension_that_only_the_baseline_was_judged_by_is_undecided(tmp_path: Path) -> None:
    plain = Maker(tmp_path / "b")
    for number in range(8):
        plain.answered(item(f"c{number}", "converse", level=3, category="conversation", script=f"s{number}"), "well",
                       condition="zero/audio")  # fmt: skip
    base, run = opened(talks(tmp_path / "a", [4.0] * 8), plain.done())
    found = check(run, baseline=base)
    assert found.state == "undecided"
    assert found.rows[0].required == "c4 not significantly worse"
    assert "no judge of the baseline scored the run" in found.rows[0].text


def test_too_few_scripts_for_any_difference_are_undecided(tmp_path: Path) -> None:
    base, run = opened(answers(tmp_path / "a", [True] * 5), answers(tmp_path / "b", [False] * 5))
    row = check(run, baseline=base).rows[0]
    assert row.state == "undecided"
    assert "5 scripts are too few, 1 headline test needs at least 6" in row.text
    base, run = opened(answers(tmp_path / "c", [True] * 6), answers(tmp_path / "d", [False] * 6))
    assert check(run, baseline=base).rows[0].state == "fails"
    base, run = opened(hearing(tmp_path / "e", 6, 6), hearing(tmp_path / "f", 0, 6))
    assert "6 scripts are too few, 2 headline tests need at least 7" in check(run, baseline=base).rows[0].text


def test_few_scripts_are_enough_where_the_other_tests_of_the_family_are_significant(tmp_path: Path) -> None:
    made = []
    for name, letter in (("a", "A"), ("b", "B")):
        maker = Maker(tmp_path / name)
        for number in range(16):
            maker.choice(asked(number), letter)
        for number in range(6):  # alone p = 2 / 2^6, and Holm's second step does not enlarge it
            maker.choice(asked(100 + number, level=2, category="suggestion"), letter)
        made.append(maker.done())
    base, run = opened(*made)
    assert [row.verdict for row in compare(base, run).tables[0].rows] == ["worse", "worse"]
    assert [row.state for row in check(run, baseline=base).rows] == ["fails", "fails", "holds"]


def test_nothing_in_common_is_undecided_and_the_rest_of_the_baseline_is_noted(tmp_path: Path) -> None:
    maker = Maker(tmp_path / "b")
    maker.choice(asked(100), "A")
    base, run = opened(answers(tmp_path / "a", EIGHT, meta={"benchmark": ""}), maker.done())
    found = check(run, baseline=base)
    assert found.state == "undecided"
    assert "the run has none of them" in found.rows[0].text
    assert "8 of the baseline's 8 asks are not in the run and are not compared" in found.notes


# ── missing replies ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_comparison_that_missing_replies_could_turn_is_undecided(tmp_path: Path) -> None:
    base, run, sure = opened(
        answers(tmp_path / "a", [True] * 20),
        answers(tmp_path / "b", [True] * 13 + [None] * 7),
        answers(tmp_path / "c", [True] * 19 + [None]),
    )
    rows = check(run, baseline=base).rows
    assert [row.state for row in rows] == ["undecided", "fails"]
    assert "7 pairs without a value on both sides could change the verdict" in rows[0].text
    assert check(sure, baseline=base).rows[0].state == "holds"  # one reply turns nothing
    half, broken = opened(
        answers(tmp_path / "d", [True] * 10 + [False] * 10),
        answers(tmp_path / "e", [False] * 6 + [True] * 4 + [None] * 4 + [False] * 6),
    )
    assert compare(half, broken).tables[0].rows[0].verdict == "worse"
    assert check(broken, baseline=half).rows[0].state == "undecided"  # six fell, p = 0.03; four might have risen


def test_a_margin_that_missing_replies_could_turn_is_undecided(tmp_path: Path) -> None:
    base, run = opened(answers(tmp_path / "a", [True] * 40), answers(tmp_path / "b", [True] * 36 + [None] * 4))
    rows = check(run, [], [Margin("voice_accuracy", 5, "%"), Margin("voice_accuracy_strict", 30, "%")], base).rows
    assert [row.state for row in rows[:2]] == ["undecided", "holds"]
    assert "4 pairs without a value" in rows[0].text


def test_a_reply_that_neither_run_has_a_score_for_is_not_missing(tmp_path: Path) -> None:
    values: list[float | None] = [3.0] * 8 + [None] * 8
    base, run = opened(talks(tmp_path / "a", values), talks(tmp_path / "b", values))
    row = check(run, [], [Margin("c4", 0.1)], base).rows[0]
    assert (row.state, row.value.scored, row.value.asked) == ("holds", 8, 16)


# ── margins ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_no_worse_holds_by_the_bound_and_not_by_the_value(tmp_path: Path) -> None:
    before = [3.0] * 8
    after = [3.0] * 6 + [2.6, 3.4]  # no difference on the whole
    base, run = opened(talks(tmp_path / "a", before), talks(tmp_path / "b", after))
    wide = check(run, [], [Margin("c4", 0.2)], base).rows[0]
    narrow = check(run, [], [Margin("c4", 0.01)], base).rows[0]
    assert wide.value.value == narrow.value.value == pytest.approx(0)
    assert (wide.state, narrow.state) == ("holds", "fails")
    assert wide.value.low is not None
    assert -0.2 < wide.value.low < -0.01
    assert wide.p is not None
    assert narrow.p is not None
    assert wide.p <= 0.05 < narrow.p
    assert "one-sided margin test, paired and clustered by script, not corrected for other tests" in wide.text


def test_the_one_sided_bound_of_equal_steps_is_known(tmp_path: Path) -> None:
    # Every script fell by 0.1: the test of "worse by 0.2 or more" flips six equal gains of 0.1, p = 1 / 2^6.
    base, run = opened(talks(tmp_path / "a", [3.0] * 6), talks(tmp_path / "b", [2.9] * 6))
    row = check(run, [], [Margin("c4", 0.2)], base).rows[0]
    assert row.p == 1 / 64
    assert row.value.low == pytest.approx(-0.1)
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
    row = check(run, [], [Margin("wer", 20, "%")], base).rows[0]
    assert (row.state, row.value.value) == ("fails", 0.25)
    assert row.required == "wer worse by less than 20 points"
    assert "at most +25.0 points, not within the margin of 20 points" in row.text
    assert check(run, [], [Margin("wer", 0.3)], base).rows[0].state == "holds"
    assert check(run, [], [Margin("wer", 0.3)], base).state == "fails"  # the headline's wer_raw is tested all the same
    assert check(run, [], [Margin("wer", 0.3), Margin("wer_raw", 0.3)], base).state == "holds"
    assert check(base, [], [Margin("wer", 0.01)], run).state == "holds"


def test_too_few_scripts_show_nothing_so_that_a_margin_fails(tmp_path: Path) -> None:
    base, run = opened(talks(tmp_path / "a", [3.0] * 4), talks(tmp_path / "b", [3.0] * 4))
    row = check(run, [], [Margin("c4", 0.1)], base).rows[0]
    assert row.state == "fails"
    assert "too few scripts" in row.text


def test_no_shared_item_or_score_is_undecided(tmp_path: Path) -> None:
    base, run = opened(talks(tmp_path / "a", [None, None]), talks(tmp_path / "b", [3.0, 3.0]))
    assert check(run, [], [Margin("c4", 0.1)], base).state == "undecided"
    other, plain = opened(answers(tmp_path / "c", EIGHT), answers(tmp_path / "d", EIGHT))
    assert check(plain, [], [Margin("c4", 0.1)], other).state == "undecided"


def test_signatures_that_differ_matter_in_the_headline_whatever_is_named(tmp_path: Path) -> None:
    base, run = opened(answers(tmp_path / "a", EIGHT), answers(tmp_path / "b", EIGHT, version=2))
    (found,) = check(run, [], [Margin("voice_accuracy", 0.1)], base).unlike
    assert found.what == "signature of accuracy"
    assert check(run, [parse_requirement("voice_accuracy > 0.1")], [], base).unlike
    assert check(run, baseline=base).unlike
    assert check(run, [], [Margin("wer", 0.1)], base).unlike
    assert compare(base, run, ["wer"]).unlike == ()


def test_a_margin_needs_a_baseline_and_a_measure_with_a_better_side(tmp_path: Path) -> None:
    base, run = opened(answers(tmp_path / "a", EIGHT), answers(tmp_path / "b", EIGHT))
    with pytest.raises(UsageError, match="--baseline"):
        check(run, [], [Margin("voice_accuracy", 0.1)])
    with pytest.raises(UsageError, match="cannot be worse"):
        check(run, [], [Margin("reply_words", 0.1)], base)
    with pytest.raises(UsageError, match="write 5%"):
        check(run, [], [Margin("voice_accuracy", 5)], base)
