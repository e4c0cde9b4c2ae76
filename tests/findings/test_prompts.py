"""Prompt sensitivity: tables, a fair choice and failures, on runs worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from overtone.findings.analysis import cases_behind
from overtone.findings.prompts.compute import Choice, Prompts, prompts, sentences
from overtone.results.load import open_run
from overtone.schema import Score
from tests.report.fake_run import make_run
from tests.results.small import RUBRICS, Maker, item


def score(key: str, value: float | None) -> Score:
    return Score(f"{key}@j", f"{key}@j|v1", value, "" if value is not None else "unread")


def found(folder: Path, values: dict[str, list[float | None]], ves: dict[str, list[float]] | None = None) -> Prompts:
    """C4 (and VES) of each script's reply under each prompt."""
    run = Maker(folder)
    for prompt, row in values.items():
        for i, c4 in enumerate(row):
            talk = item(f"c{i}", "converse", level=3, script=f"s{i}")
            more = [score("ves", ves[prompt][i])] if ves else []
            run.answered(talk, "well", score("cspeechrel", c4), *more, condition=f"{prompt}/audio")
    return prompts(open_run(run.done(), light=True))


def choice(of: Prompts, by: tuple[str, ...]) -> Choice:
    (one,) = (c for c in of.choices if c.by == by)
    return one


def test_every_prompt_has_its_own_numbers(tmp_path: Path) -> None:
    table = found(tmp_path, {"enhance": [4, 5, None], "zero": [1, 2, 3]})
    assert [(r.prompt, r.measures["cspeechrel"].value, r.measures["cspeechrel"].scored) for r in table.rows] == [
        ("zero", 2, 3),
        ("enhance", 4.5, 2),
    ]


def test_a_prompt_that_is_best_everywhere_is_chosen_by_both_halves_without_optimism(tmp_path: Path) -> None:
    one = choice(found(tmp_path, {"zero": [1, 2, 1, 2], "enhance": [3, 4, 3, 4]}), ("cspeechrel",))
    assert (one.overall, one.halves) == ("enhance", ("enhance", "enhance"))
    assert one.in_sample["cspeechrel"].value == one.fair["cspeechrel"].value == 3.5
    assert one.optimism["cspeechrel"].value == 0


def test_a_half_is_shown_under_the_prompt_that_the_other_chose(tmp_path: Path) -> None:
    scripts = sorted(f"synthesis/s{i}" for i in range(20))
    order = np.random.default_rng(5).permutation(20)
    inside = {scripts[i] for i in order[:10]}
    scripts = [f"synthesis/s{i}" for i in range(20)]
    zero: list[float | None] = [5 if s in inside else 1 for s in scripts]  # zero is best on the first half alone
    basic: list[float | None] = [2 if s in inside else 4 for s in scripts]
    table = found(tmp_path, {"zero": zero, "basic": basic})
    one = choice(table, ("cspeechrel",))
    assert one.halves == ("zero", "basic")
    assert one.fair["cspeechrel"].value == pytest.approx((2 + 2 + 1 + 1) / 4)
    assert one.overall == "zero"  # 3 and 3: the plainer one
    assert one.in_sample["cspeechrel"].value == 3
    assert one.optimism["cspeechrel"].value == pytest.approx(1.5)
    assert any("one half of the scripts chooses zero, the other basic" in s.text for s in sentences(table))


def test_no_best_prompt_is_named_on_few_scripts(tmp_path: Path) -> None:
    told = [s.text for s in sentences(found(tmp_path, {"zero": [1, 2, 1, 2], "enhance": [3, 4, 3, 4]}))]
    assert [text for text in told if "the best prompt by C4 (4 of 20)" in text]
    assert not any(text.startswith("Best prompt") for text in told)


def test_intervals_of_few_scripts_stay_within_the_scale(tmp_path: Path) -> None:
    run = Maker(tmp_path)
    run.store.set_meta({"rubrics": RUBRICS})
    for prompt, row in {"zero": (1.0, 4.0), "enhance": (5.0, 1.0)}.items():
        for i, c4 in enumerate(row):
            talk = item(f"c{i}", "converse", level=3, script=f"s{i}")
            run.answered(talk, "well", score("cspeechrel", c4), condition=f"{prompt}/audio")
    one = choice(prompts(open_run(run.done(), light=True)), ("cspeechrel",))
    for e in (one.in_sample["cspeechrel"], one.fair["cspeechrel"]):
        assert e.low is not None and e.high is not None and (e.low >= 1 and e.high <= 5)
    gap = one.optimism["cspeechrel"]
    assert (gap.low, gap.high) == (-4, 4)


def test_chance_alone_makes_the_in_sample_choice_look_better_than_it_is(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    gaps = []
    for number in range(40):
        values = {p: [float(v) for v in rng.integers(1, 6, 12)] for p in ("zero", "basic", "enhance")}
        one = choice(found(tmp_path / str(number), values), ("cspeechrel",))  # type: ignore[arg-type]
        gaps.append((one.in_sample["cspeechrel"].value or 0) - (one.fair["cspeechrel"].value or 0))
    assert np.mean(gaps) > 0.2


def test_the_choice_is_by_both_measures_together_and_each_alone(tmp_path: Path) -> None:
    c4: dict[str, list[float | None]] = {"zero": [3, 3, 3, 3], "basic": [4, 4, 4, 4]}
    table = found(tmp_path, c4, {"zero": [5, 5, 5, 5], "basic": [1, 1, 1, 1]})
    assert {c.by: c.overall for c in table.choices} == {
        ("cspeechrel", "ves"): "zero", ("cspeechrel",): "basic", ("ves",): "zero"
    }  # fmt: skip
    assert choice(table, ("ves",)).fair["cspeechrel"].value == 3


def test_only_replies_that_every_prompt_has_a_value_for_take_part(tmp_path: Path) -> None:
    run_folder = tmp_path / "run"
    table = found(run_folder, {"zero": [1, 1, 1, 5], "basic": [2, 2, 2, None]})
    one = choice(table, ("cspeechrel",))
    assert one.overall == "basic"
    assert one.in_sample["cspeechrel"].scored == 3
    reading = open_run(run_folder, light=True)
    assert cases_behind([reading], f"{one.key}/cspeechrel") == [f"synthesis/s{i}/target" for i in range(3)]
    assert len(cases_behind([reading], "prompts/all/zero/cspeechrel")) == 4
    assert len(cases_behind([reading], "prompts/all/basic/cspeechrel")) == 3


def test_what_was_not_done_is_counted_by_kind_and_prompt(tmp_path: Path) -> None:
    run = Maker(tmp_path)
    kinds = [{"text": "fine"}, {"text": " "}, {"text": "", "refused": True}, {"text": "and then", "finish": "length"}]
    for i, reply in enumerate(kinds * 3):
        run.answered(item(f"c{i}", "converse", level=3, script=f"s{i}"), condition="zero/audio", **reply)  # type: ignore[arg-type]
    for i in range(3):
        run.failed(item(f"f{i}", "converse", level=3, script=f"f{i}"), condition="zero/audio")
    for i, how in enumerate(("parsed", "empty", "hedged", "unparsable")):
        run.choice(item(f"v{i}", "choose", script=f"s{i}"), "A" if how == "parsed" else None, how)
    reading = open_run(run.done(), light=True)
    rows = {(r.prompt, r.task): r for r in prompts(reading).failures}
    shares = {k: e.value for k, e in rows["zero", "converse"].kinds.items()}
    assert shares == {"failed": 0.2, "empty": 0.25, "refused": 0.25, "cut off": 0.25}
    assert {k: e.value for k, e in rows["task", "choose"].kinds.items()} == {
        "failed": 0, "empty": 0.25, "refused": 0, "cut off": 0, "unparsable": 0.5
    }  # fmt: skip
    assert cases_behind([reading], f"{rows['zero', 'converse'].key}/empty") == [
        f"synthesis/s{i}/target" for i in (1, 5, 9)
    ]
    assert any("empty 25 %" in s.text for s in sentences(prompts(reading)))


def test_without_a_judge_or_a_second_prompt_no_choice_is_made_and_the_reason_is_said(tmp_path: Path) -> None:
    one = found(tmp_path / "one", {"basic": [1, 2]})
    assert one.choices == [] and "one prompt only (basic)" in one.notes[0]
    run = Maker(tmp_path / "none")
    for prompt in ("zero", "basic"):
        run.answered(item("c", "converse", level=3), "x", condition=f"{prompt}/audio")
    none = prompts(open_run(run.done(), light=True))
    assert none.choices == [] and "score the run with a judge" in none.notes[0]
    alone = found(tmp_path / "alone", {"zero": [1], "basic": [2]})
    assert alone.choices == []
    empty = Maker(tmp_path / "empty")
    assert prompts(open_run(empty.done(), light=True)) == Prompts([], [], [], [])


def test_a_run_of_usual_shape_is_told_the_same_every_time_with_keys_of_its_own(tmp_path: Path) -> None:
    reading = open_run(make_run(tmp_path, judges=("j", "k"), voice=True), light=True)
    table = prompts(reading)
    assert table == prompts(reading)
    keys = [r.key for part in (table.rows, table.choices, table.failures) for r in part]
    assert len(set(keys)) == len(keys)
    assert [r.prompt for r in table.rows] == ["zero", "enhance"]
    assert "Best prompt by C4" in sentences(table)[0].text or "the best prompt by C4" in sentences(table)[0].text
