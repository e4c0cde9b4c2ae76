"""Two runs compared: differences, tests and flips by hand; what is refused, and what is counted."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from overtone.errors import UsageError
from overtone.results import measure_names
from overtone.results.comparability import refuse
from overtone.results.comparison import behind, compare, differences, left_out, share
from overtone.results.comparison_text import overview, sentences
from overtone.schema import Score
from tests.report.fake_run import make_run
from tests.results.pairs import DIMENSION, ZERO, answers, asked, judged, opened, talked, talks
from tests.results.small import Maker, item

FIRST = [True, True, True, True, False, False, False, False]
SECOND = [True, True, True, False, True, True, True, True]
KEY = "compare/task/audio/voice_accuracy/all"


def prompts(**texts: str) -> dict[str, str]:
    told = {"texts": {k.replace("_", "."): v for k, v in texts.items()}, "origins": {}}
    return {"prompts": str(hash(tuple(texts.values()))), "prompt_texts": msgspec.json.encode(told).decode()}


def test_difference_and_p_are_those_worked_out_by_hand(tmp_path: Path) -> None:
    a, b = opened(answers(tmp_path / "a", FIRST), answers(tmp_path / "b", SECOND))
    found = compare(a, b)
    (row,) = found.tables[0].rows
    assert (row.key, row.first, row.second) == (KEY, 0.5, 7 / 8)
    assert row.by.value == 3 / 8
    # five scripts changed, four for the better: 2 · P(at least 4 of 5) = 2 · 6 / 32
    assert row.p == pytest.approx(0.375)
    assert row.adjusted == row.p
    assert row.by.low is not None
    assert row.by.low < 0 < row.by.value
    assert row.verdict == ""
    assert sentences(found)[0].text == (
        "Voice accuracy (task/audio): the difference of +37.5 points is not statistically significant (p = 0.375, "
        "two-sided paired test clustered by script, Holm correction over 1 headline test); 95 % interval of this row "
        "alone −33.3 to +100.0, 8 pairs from 8 scripts."
    )
    assert (found.shared, found.only_first, found.only_second) == (8, 0, 0)


def test_a_difference_that_only_rounding_makes_is_none(tmp_path: Path) -> None:
    for name, noise in (("a", 0.0), ("b", 4e-8)):
        run = Maker(tmp_path / name)
        for number in range(8):
            moved = 0.25 if name == "b" and number == 7 else noise
            run.answered(talked(number), "well", Score("semsim", "semsim|v1", 0.5 + moved), condition=ZERO)
        run.done()
    found = compare(*opened(tmp_path / "a", tmp_path / "b"), ["reply_semsim"])
    (row,), (flips,) = found.tables[0].rows, found.flips
    assert (row.improved, row.worse) == (1, 0)
    assert row.by.value == pytest.approx(0.25 / 8, abs=1e-12) and row.p == 1.0
    assert [flip.item for flip in flips.improved] == ["c7"] and flips.worse == ()
    assert "|unchanged:below 1e-06 of the scale" in found.signature


def test_turning_the_runs_round_turns_the_sign_and_nothing_else(tmp_path: Path) -> None:
    a, b = opened(answers(tmp_path / "a", FIRST), answers(tmp_path / "b", SECOND))
    (there,), (back,) = compare(a, b).tables[0].rows, compare(b, a).tables[0].rows
    assert there.by.value == -back.by.value  # type: ignore[operator]
    assert (there.by.low, there.by.high) == pytest.approx((-back.by.high, -back.by.low))  # type: ignore[operator]
    assert there.p == back.p
    assert (there.worse, there.improved) == (back.improved, back.worse)


def test_flipped_cases_are_named_in_both_directions(tmp_path: Path) -> None:
    a, b = opened(answers(tmp_path / "a", FIRST), answers(tmp_path / "b", SECOND))
    (flips,) = compare(a, b).flips
    assert [f.item for f in flips.worse] == ["q3"]
    assert [f.item for f in flips.improved] == ["q4", "q5", "q6", "q7"]
    assert (flips.worse[0].was, flips.worse[0].now) == ("A", "B")
    assert flips.worse[0].case == "synthesis/s3/target"


def test_a_run_against_itself_differs_by_nothing(tmp_path: Path) -> None:
    (a,) = opened(answers(tmp_path / "a", FIRST))
    found = compare(a, a)
    (row,) = found.tables[0].rows
    assert (row.by.value, row.by.low, row.by.high, row.p) == (0, 0, 0, 1)
    assert not found.unlike
    assert not found.flips[0].worse
    assert not found.flips[0].improved


def test_what_is_unpaired_or_scored_once_is_counted_not_used(tmp_path: Path) -> None:
    a, b = opened(answers(tmp_path / "a", [*FIRST, True]), answers(tmp_path / "b", [None, *SECOND[1:]]))
    found = compare(a, b)
    (row,) = found.tables[0].rows
    assert (found.shared, found.only_first, found.only_second) == (8, 1, 0)
    assert (row.by.scored, row.by.asked, row.only_first, row.only_second) == (7, 8, 1, 0)
    assert row.first == 3 / 7


def test_no_overlap_and_no_score_leave_no_table(tmp_path: Path) -> None:
    maker = Maker(tmp_path / "b")
    maker.choice(asked(100), "A")
    maker.pending(asked(0))
    a, b = opened(answers(tmp_path / "a", [None, True]), maker.done())
    found = compare(a, b)
    assert (found.shared, found.only_first, found.only_second) == (1, 1, 1)
    assert found.tables == ()
    assert [s.text for s in sentences(found)] == ["The runs share no item that both have scores for."]


def test_one_script_gives_a_difference_without_an_interval(tmp_path: Path) -> None:
    a, b = opened(answers(tmp_path / "a", [False]), answers(tmp_path / "b", [True]))
    (row,) = compare(a, b).tables[0].rows
    assert (row.by.value, row.by.low, row.by.high, row.p) == (1, None, None, 1)
    assert row.by.note == "too few scripts"
    assert row.verdict == ""
    assert sentences(compare(a, b))[0].text == (
        "Voice accuracy (task/audio): not enough data to test the difference of +100.0 points: 1 script is "
        "too few, 1 headline test needs at least 6."
    )


def test_rows_of_one_script_count_as_one(tmp_path: Path) -> None:
    made = []
    for name, letter in (("a", "B"), ("b", "A")):
        maker = Maker(tmp_path / name)
        for script in range(3):
            for number in range(10):
                maker.choice(asked(100 * script + number, group=f"synthesis/s{script}"), letter)
        made.append(maker.done())
    a, b = opened(*made)
    (row,) = compare(a, b).tables[0].rows
    assert (row.by.scored, row.by.scripts) == (30, 3)
    assert row.p == 2 / 8  # three signs, not thirty


def test_holm_goes_over_the_rows_of_a_table_and_cues_have_their_own(tmp_path: Path) -> None:
    made = []
    for name, worse in (("a", True), ("b", False)):
        maker = Maker(tmp_path / name)
        for number in range(24):
            cue = ("sad", "happy")[number % 2]
            letter = "B" if worse and cue == "sad" else "A"
            maker.choice(asked(number, cue=cue), letter)
            maker.choice(asked(100 + number, level=2, category="suggestion", cue=cue), "A")
        made.append(maker.done())
    a, b = opened(*made)
    found = compare(a, b)
    overall, *by_cue = found.tables
    voice, reasoning = overall.rows
    assert (voice.level, reasoning.level) == (1, 2)
    assert voice.adjusted == pytest.approx(2 * voice.p)  # type: ignore[operator]
    assert voice.verdict == "better"
    assert reasoning.adjusted == 1
    assert [t.key for t in by_cue] == [
        "compare/task/audio/voice_accuracy/cue",
        "compare/task/audio/reasoning_accuracy/cue",
    ]
    rows = {row.cue: row for row in by_cue[0].rows}
    assert set(rows) == {"happy", "sad"}
    assert (rows["sad"].by.value, rows["happy"].by.value) == (1, 0)
    assert rows["sad"].p == pytest.approx(2 / 2**12)
    assert rows["sad"].adjusted == pytest.approx(4 / 2**12)
    assert "b is 50.0 points higher than a, which is better; the difference is statistically significant (p =" in (
        sentences(found)[0].text
    )
    keys = [row.key for table in found.tables for row in table.rows]
    assert len(set(keys)) == len(keys)


def test_a_lower_word_error_rate_is_better(tmp_path: Path) -> None:
    made = []
    for name, errors in (("a", 2), ("b", 1)):
        maker = Maker(tmp_path / name)
        for number in range(8):
            maker.transcript(item(f"t{number}", "transcribe", category="asr", script=f"s{number}"), errors, 4)
        made.append(maker.done())
    a, b = opened(*made)
    (row,) = compare(a, b).tables[0].rows
    assert (row.measure, row.by.value, row.verdict) == ("wer_raw", -0.25, "better")
    assert (row.worse, row.improved) == (0, 8)


def test_cues_that_are_not_validated_stand_apart(tmp_path: Path) -> None:
    made = []
    for name, letter in (("a", "B"), ("b", "A")):
        maker = Maker(tmp_path / name)
        for number in range(6):
            sure = number < 4
            maker.choice(asked(number, status="validated" if sure else "unvalidated"), letter if sure else "A")
        maker.choice(asked(50, part="control"), letter)  # no part of the headline
        made.append(maker.done())
    a, b = opened(*made)
    rows = compare(a, b).tables[0].rows
    assert [(row.basis, row.by.value, row.by.scored) for row in rows] == [("validated", 1, 4), ("unvalidated", 0, 2)]
    assert behind(a, b, rows[1].key) == ["synthesis/s4/target", "synthesis/s5/target"]


def test_every_row_leads_back_to_its_cases(tmp_path: Path) -> None:
    a, b = opened(make_run(tmp_path / "a"), make_run(tmp_path / "b", seed=2, skill=0.9))
    found = compare(a, b)
    cases = {x.item.case for x, _ in share(a, b)[0]}
    for table in found.tables:
        for row in table.rows:
            mine = behind(a, b, row.key)
            assert set(mine) <= cases
            assert len(mine) == len(set(mine))
            assert bool(mine) == bool(row.by.scored)
    assert behind(a, b, "compare/nothing") == []
    assert compare(a, b) == found  # the same every time


# ── judges ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_judged_dimensions_are_compared_by_any_of_their_names(tmp_path: Path) -> None:
    a, b = opened(talks(tmp_path / "a", [3, 3, 3, 3, None]), talks(tmp_path / "b", [4, 4, 2, 4, 5]))
    for name in ("c4", DIMENSION, "c4@j", f"{DIMENSION}@j"):
        (row,) = compare(a, b, [name]).tables[0].rows
        assert (row.by.value, row.by.scored, row.only_second, row.level) == (0.5, 4, 1, 3)
    (row,) = compare(a, b).tables[0].rows
    assert (row.measure, row.condition) == (DIMENSION, ZERO)
    flips = compare(a, b).flips[0]
    assert [(f.item, f.first, f.second) for f in flips.worse] == [("c2", 3, 2)]


def test_a_judge_of_one_run_only_is_left_out_and_named(tmp_path: Path) -> None:
    maker = Maker(tmp_path / "b")
    for number in range(4):
        other = judged(1, "other", "|v1")
        maker.answered(talked(number), "well", judged(4), other, condition=ZERO)
    a, b = opened(talks(tmp_path / "a", [3, 3, 3, 3]), maker.done())
    found = compare(a, b, ["c4"])
    assert found.tables[0].rows[0].by.value == 1
    assert any("other judged only one of the runs and is not used" in note for note in found.notes)
    assert left_out(measure_names.questions()[0], ["exch", "good"]).endswith(
        "exch and good judged only one of the runs and are not used"
    )


def test_yes_or_no_of_a_judge_is_a_share_whose_changes_are_listed_by_size(tmp_path: Path) -> None:
    made = []
    for name, values in (("a", [0.0, 1 / 3, 1.0, 0.0]), ("b", [1 / 3, 0.0, 0.0, 1.0])):
        maker = Maker(tmp_path / name)
        for number, value in enumerate(values):
            score = Score("false_cue@j", "false_cue@j|v1", value)
            maker.answered(talked(number, style="neutral", cue=""), "well", score, condition=ZERO)
        told = {"false_cue": {"label": "False cue", "low": 0, "high": 1, "better": "lower", "styles": ["neutral"]}}
        maker.store.set_meta({"rubrics": msgspec.json.encode(told).decode()})
        made.append(maker.done())
    a, b = opened(*made)
    found = compare(a, b)
    (row,) = found.tables[0].rows
    assert (row.shown, row.better, row.by.value) == ("percent", "lower", 0)
    assert not found.flips[0].right_or_wrong
    assert [f.item for f in found.flips[0].worse] == ["c3", "c0"]
    assert [f.item for f in found.flips[0].improved] == ["c2", "c1"]


def test_reading_a_transcript_instead_of_text_is_no_other_signature(tmp_path: Path) -> None:
    first = talks(tmp_path / "a", [3, 3])
    second = talks(tmp_path / "b", [3, 3], signature="|v1|judge:openai:j|text:transcript")
    third = talks(tmp_path / "c", [3, 3], signature="|v2|judge:openai:j|text:transcript")
    a, b, c = opened(first, second, third)
    assert differences(a, b)[0] == []
    (found,) = differences(a, c)[0]
    assert found.what == f"signature of {DIMENSION}@j"


# ── what is refused ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_another_signature_is_refused_only_where_it_is_compared(tmp_path: Path) -> None:
    a, b = opened(answers(tmp_path / "a", FIRST), answers(tmp_path / "b", SECOND, version=2))
    (found,) = differences(a, b)[0]
    assert str(found) == "signature of accuracy: accuracy|v1 against accuracy|v2"
    assert differences(a, b, ["wer"])[0] == []
    with pytest.raises(UsageError, match=r"(?s)not comparable.*accuracy\|v1.*ask again"):
        refuse([found], "ask again")
    assert compare(a, b).unlike == (found,)  # forced, and named


def test_another_benchmark_and_other_items_are_differences(tmp_path: Path) -> None:
    a, b = opened(answers(tmp_path / "a", FIRST), answers(tmp_path / "b", SECOND, meta={"benchmark": "other"}))
    assert [str(one) for one in differences(a, b)[0]] == ["benchmark: toy against other"]
    maker = Maker(tmp_path / "c")
    maker.choice(asked(0, question="why?"), "A")
    maker.choice(asked(1), "A")
    (c,) = opened(maker.done())
    assert [one.what for one in differences(a, c)[0]] == ["1 of 2 shared items, e.g. q0"]


def test_changed_clips_are_a_difference(tmp_path: Path) -> None:
    made = []
    for name, digest in (("a", "1" * 64), ("b", "2" * 64)):
        maker = Maker(tmp_path / name)
        maker.choice(asked(0), "A")
        maker.store.add_clip("a.wav", digest, 10, 0, 1.0)
        maker.store.add_clip(f"{name}-only.wav", digest, 10, 0, 1.0)
        made.append(maker.done())
    a, b = opened(*made)
    (found,) = differences(a, b)[0]
    assert found.what == "1 of 1 shared clips, e.g. a.wav"


def test_prompts_matter_where_they_were_used(tmp_path: Path) -> None:
    one = answers(tmp_path / "a", FIRST, meta=prompts(choose_user="Which?", zero_system="x"))
    unused = answers(tmp_path / "b", FIRST, meta=prompts(choose_user="Which?", zero_system="y"))
    used = answers(tmp_path / "c", FIRST, meta=prompts(choose_user="What?", zero_system="x"))
    a, b, c = opened(one, unused, used)
    assert differences(a, b)[0] == []
    (found,) = differences(a, c)[0]
    assert str(found) == "prompt choose.user: 'Which?' against 'What?'"


def test_a_prompt_changed_because_a_model_needs_it_is_a_note(tmp_path: Path) -> None:
    told = {"texts": {"choose.user": "What?"}, "origins": {"choose.user": "default; changed for this model: why not"}}
    own = {"prompts": "x", "prompt_texts": msgspec.json.encode(told).decode()}
    a, b = opened(
        answers(tmp_path / "a", FIRST, meta=prompts(choose_user="Which?")), answers(tmp_path / "b", FIRST, meta=own)
    )
    found, notes = differences(a, b)
    assert found == []
    assert "choose.user" in notes[0]


def test_prompts_that_cannot_be_read_are_compared_by_their_hash(tmp_path: Path) -> None:
    a, b = opened(
        answers(tmp_path / "a", FIRST, meta={"prompts": "1", "prompt_texts": "[" * 5000}),
        answers(tmp_path / "b", FIRST, meta={"prompts": "2", "prompt_texts": "{}"}),
    )
    assert [str(one) for one in differences(a, b)[0]] == ["prompts: 1 against 2"]


def test_a_wrong_name_gets_the_nearest_and_a_corpus_score_the_reason(tmp_path: Path) -> None:
    a, b = opened(answers(tmp_path / "a", FIRST), answers(tmp_path / "b", SECOND))
    with pytest.raises(UsageError, match="did you mean 'voice_accuracy'"):
        compare(a, b, ["voice_acuracy"])
    with pytest.raises(UsageError, match="computed over many replies"):
        compare(a, b, ["bleu_corpus"])
    with pytest.raises(UsageError, match="does not name a judge"):
        compare(a, b, ["c4@"])
    assert [row.measure for row in compare(a, b, ["accuracy"]).tables[0].rows] == ["voice_accuracy"]


def test_the_overview_says_which_run_is_better_on_what_and_by_how_much(tmp_path: Path) -> None:
    mixed = [number % 2 == 0 for number in range(20)]
    good, bad, same, few = opened(
        answers(tmp_path / "good", [True] * 20),
        answers(tmp_path / "bad", [False] * 18 + [True] * 2),
        answers(tmp_path / "same", [True] * 19 + [False]),
        answers(tmp_path / "few", mixed[:3]),
    )
    better = "good is better than bad on Voice accuracy (by 90.0 points, p < 0.001)."
    assert overview(compare(good, bad)) == better == overview(compare(bad, good))
    assert overview(compare(good, same)) == "No difference is statistically significant: Voice accuracy."
    assert overview(compare(good, few)).startswith("Too little data to test Voice accuracy: 3 scripts are too few")
    assert "no item has a score in both runs" in overview(compare(*opened(
        answers(tmp_path / "x", [None] * 2), answers(tmp_path / "y", [True] * 2))))  # fmt: skip
