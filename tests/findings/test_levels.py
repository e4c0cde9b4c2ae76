"""How levels go together: the paper's table to the printed digits, and small runs worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from overtone.errors import UsageError
from overtone.findings.analysis import cases_behind
from overtone.findings.levels import compute as found_in
from overtone.findings.levels.compute import Levels, levels, published_levels, sentences
from overtone.results.load import Reading, open_run
from overtone.schema import Score
from overtone.stats import correlation
from tests.report.fake_run import make_run
from tests.results.small import Maker, item

V, R, C1, C4, VES, EMO = "voice_accuracy", "reasoning_accuracy", "cctxfit", "cspeechrel", "ves", "emoalign_reference"
PRINTED = [  # pair, 14 rows: Pearson and Spearman; 12 rows: Pearson and Spearman
    (V, R, 0.719, 0.710, 0.857, 0.923),
    (V, C4, -0.027, 0.020, -0.082, -0.032),
    (R, C4, 0.020, -0.015, 0.041, 0.074),
    (V, VES, 0.518, 0.685, 0.518, 0.685),
    (R, VES, 0.301, 0.576, 0.301, 0.576),
    (C4, VES, 0.591, 0.419, 0.591, 0.419),
    (C1, C4, 0.711, 0.779, 0.893, 0.858),
    (EMO, VES, -0.093, -0.042, -0.093, -0.042),
]


@pytest.fixture(scope="module")
def tables() -> tuple[Levels, Levels]:
    return published_levels(), published_levels(variants=False)


@pytest.mark.parametrize(("first", "second", "r14", "s14", "r12", "s12"), PRINTED)
def test_the_coefficients_of_the_published_table_come_out_to_the_printed_digits(
    tables: tuple[Levels, Levels], first: str, second: str, r14: float, s14: float, r12: float, s12: float
) -> None:
    for table, r, rho in ((tables[0], r14, s14), (tables[1], r12, s12)):
        row = table.row("model", "between", first, second)
        assert row is not None
        assert row.pearson.value == pytest.approx(r, abs=0.0005 + 1e-9)
        assert row.spearman.value == pytest.approx(rho, abs=0.0005 + 1e-9)
        if VES in (first, second):
            assert row.models == 10
        assert row.pearson.low is not None and row.pearson.high is not None
        assert row.pearson.low < r < row.pearson.high


def test_the_published_table_has_fourteen_rows_of_twelve_models(tables: tuple[Levels, Levels]) -> None:
    assert [len(t.models) for t in tables] == [14, 12]
    assert {r.level for t in tables for r in t.rows} == {"model"}
    assert any(
        "no clear correlation" in s.text and "r for this pair alone includes 0" in s.text for s in sentences(tables[0])
    )
    with pytest.raises(UsageError):
        cases_behind([], tables[0].rows[0].key)


def make(
    folder: Path, name: str, hears: list[float], relates: list[float], cues: list[str], shift: float = 0
) -> Reading:
    """One voice question and one judged reply for each script."""
    run = Maker(folder / name)
    run.store.set_meta({"model": name})
    for i, (right, c4, cue) in enumerate(zip(hears, relates, cues, strict=True)):
        script = {"script": f"s{i}", "cue": cue}
        run.choice(item(f"v{i}", "choose", **script), "A" if right else "B")  # type: ignore[arg-type]
        score = Score("cspeechrel@j", "cspeechrel@j|v1|judge:openai:j", c4 + shift)
        talk = item(f"c{i}", "converse", level=3, **script)  # type: ignore[arg-type]
        run.answered(talk, "well", score, condition="enhance/audio")
    return open_run(run.done(), light=True)


def test_within_models_the_case_level_is_the_plain_coefficient_of_one_run(tmp_path: Path) -> None:
    hears, c4 = [1.0, 0, 1, 1, 0, 0, 1, 0], [5.0, 1, 4, 2, 3, 2, 5, 1]
    reading = make(tmp_path, "a", hears, c4, ["sad", "sad", "happy", "happy", "shout", "shout", "fast", "fast"])
    found = levels([reading])
    row = found.row("case", "within", V, C4)
    assert row is not None
    assert row.pearson.value == pytest.approx(correlation.pearson(hears, c4))
    assert row.spearman.value == pytest.approx(correlation.spearman(hears, c4))
    assert (row.pearson.scored, row.pearson.asked, row.pearson.scripts) == (8, 8, 8)
    cue = found.row("cue", "within", V, C4)
    assert cue is not None
    assert cue.pearson.value == pytest.approx(correlation.pearson([0.5, 1, 0, 0.5], [3, 3, 2.5, 3]))
    between = found.row("model", "between", V, C4)
    assert between is not None and between.pearson.value is None
    assert between.pearson.note == "needs at least three models"
    assert found.row("case", "between", V, C4) is None
    assert cases_behind([reading], row.key) == [f"synthesis/s{i}/target" for i in range(8)]


def test_a_model_that_is_better_at_everything_does_not_make_its_cases_go_together(tmp_path: Path) -> None:
    cues = ["sad", "happy", "shout", "fast"]
    readings = [
        make(tmp_path, name, [float(k < n) for k in range(4)], [3, 2, 3, 2], cues, shift=n / 2)
        for n, name in ((1, "weak"), (2, "middling"), (3, "strong"))
    ]
    found = levels(readings)
    between, within = found.row("model", "between", V, C4), found.row("case", "within", V, C4)
    assert between is not None and within is not None
    assert between.pearson.value == pytest.approx(1)
    assert between.models == 3 and "only 3 models: too few for an interval" in between.pearson.note
    assert between.pearson.low is None and between.spearman.low is None
    assert any("Across 3 models, Voice accuracy and C4 (3 of 8)" in s.text for s in sentences(found))
    rows = [([float(k < n) - n / 4 for k in range(4)], [0.5, -0.5, 0.5, -0.5]) for n in (1, 2, 3)]
    x, y = (np.concatenate([r[k] for r in rows]) for k in (0, 1))
    assert within.pearson.value == pytest.approx(correlation.pearson(x, y))
    assert len({r.key for r in found.rows}) == len(found.rows)


@pytest.mark.parametrize(("scripts", "known"), [(7, False), (8, True)])
def test_few_scripts_give_a_coefficient_but_no_interval(tmp_path: Path, scripts: int, known: bool) -> None:
    rng = np.random.default_rng(3)
    hears = [float(i % 2) for i in range(scripts)]
    c4 = [2 + x + float(y) for x, y in zip(hears, rng.normal(0, 1, scripts), strict=True)]
    cues = [["sad", "happy", "shout", "fast"][i % 4] for i in range(scripts)]
    found = levels([make(tmp_path, "a", hears, c4, cues)])
    for level in ("case", "cue"):
        row = found.row(level, "within", V, C4)
        assert row is not None
        for e in (row.pearson, row.spearman):
            assert e.value is not None
            assert (e.low is not None, e.high is not None) == (known, known)
            assert (e.note == "only 7 scripts: too few for an interval") == (not known)
    told = [s.text for s in sentences(found) if s.text.startswith("From")]
    assert len(told) == (2 if known else 0)
    lacking = [s.text for s in sentences(found) if s.text.startswith("Not enough data")]
    assert known or "From case to case within a model, Voice accuracy and C4 (7 of 8)" in lacking[0]


def test_two_scripts_that_agree_do_not_look_sure(tmp_path: Path) -> None:
    row = levels([make(tmp_path, "a", [1, 0], [5, 1], ["sad", "happy"])]).row("case", "within", V, C4)
    assert row is not None and row.pearson.value == pytest.approx(1)
    assert (row.pearson.low, row.pearson.high) == (None, None)
    assert "only 2 scripts" in row.pearson.note


def test_another_way_of_measuring_is_left_out_and_said(tmp_path: Path) -> None:
    cues = ["sad", "happy", "shout"]
    readings = [make(tmp_path, name, [1, 0, 1], [3, 2, 1], cues) for name in ("a", "b", "c")]
    readings[2].signatures["cspeechrel@j"] = "cspeechrel@j|v1|judge:openai:other"
    found = levels(readings)
    row = found.row("case", "within", V, C4)
    assert row is not None and row.models == 2
    assert any("C4 was measured in another way in" in note for note in found.notes)


def test_cues_that_are_not_validated_stand_apart(tmp_path: Path) -> None:
    run = Maker(tmp_path)
    for i in range(8):
        more = {"script": f"s{i}", "status": "validated" if i < 4 else "unvalidated"}
        run.choice(item(f"v{i}", "choose", **more), "A" if i % 2 else "B")  # type: ignore[arg-type]
        run.choice(item(f"r{i}", "choose", level=2, **more), "A" if i % 2 == (i < 4) else "B")  # type: ignore[arg-type]
    found = levels([open_run(run.done(), light=True)])
    rows = {r.basis: r.pearson.value for r in found.rows if r.level == "case"}
    assert rows == {"validated": pytest.approx(1), "unvalidated": pytest.approx(-1)}


def test_a_run_without_answers_or_judges_says_nothing(tmp_path: Path) -> None:
    run = Maker(tmp_path)
    run.failed(item("v", "choose"))
    found = levels([open_run(run.done(), light=True)])
    assert (found.rows, sentences(found)) == ([], [])


def test_runs_of_usual_size_are_told_the_same_every_time(tmp_path: Path) -> None:
    readings = [
        open_run(
            make_run(tmp_path / str(n), scripts=30, skill=0.5 + n / 10, seed=n, judges=("j",), voice=True), light=True
        )
        for n in range(3)
    ]
    for reading in readings:
        reading.meta["model"] = reading.folder.name
    found = levels(readings)
    assert found == levels(readings)
    assert {(r.level, r.scope) for r in found.rows} == {
        ("model", "between"), ("cue", "within"), ("cue", "between"), ("case", "within"), ("case", "between")
    }  # fmt: skip
    for row in found.rows:
        assert row.pearson.value is None or -1 <= row.pearson.value <= 1
    case = found.row("case", "within", V, C4)
    assert case is not None and case.pearson.low is not None
    assert sentences(found)
    assert found_in.SIGNATURE.startswith("levels|v1")
