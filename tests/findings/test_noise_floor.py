"""The noise floor: a model of known randomness gives its spread back, and differences below it are marked."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from overtone.cli import main
from overtone.findings.analysis import cases_behind, compute_findings
from overtone.findings.figure_source import FigureSource, NothingToDraw
from overtone.findings.finding_tables import tables_of
from overtone.findings.noise_floor import NoiseFloor, NoiseRow, draw, noise_floor, sentences
from overtone.results.comparison import compare
from overtone.results.comparison_text import sentences as compared
from overtone.results.load import Reading, open_run
from overtone.runs.store import Store
from overtone.schema import Reply, Score
from tests.results.pairs import asked

KEY = "noise-floor/task/audio/voice_accuracy"
SCRIPTS = 80
CHANCES = np.random.default_rng(0).beta(2, 1, SCRIPTS)


def made(folder: Path, seed: int, chances: np.ndarray = CHANCES, repeats: int = 3) -> Path:
    """A run of one question per script, each answered correctly with its own chance."""
    rng = np.random.default_rng(seed)
    store = Store.create(folder)
    store.plan([(asked(number), ["task/audio"]) for number in range(len(chances))], repeats)
    for ask in store.open_asks(0, 10_000):
        right = bool(rng.random() < chances[int(ask.item.id[1:])])
        letter = "A" if right else "B"
        store.add_reply(ask, 0, Reply(letter), sent=b"[]", latency=1.0, attempts=1)
        detail: dict[str, float | int | str | None] = {"status": "parsed", "answer": letter}
        store.add_scores([(ask.id, Score("accuracy", "accuracy|v1", float(right), detail=detail))])
    store.set_meta({"benchmark": "toy", "model": folder.name, "label": folder.name})
    store.close()
    return folder


@pytest.fixture(scope="module")
def reading(tmp_path_factory: pytest.TempPathFactory) -> Reading:
    return open_run(made(tmp_path_factory.mktemp("noise") / "a", 1), light=True)


def row_of(found: NoiseFloor) -> NoiseRow:
    return next(row for row in found.rows if row.key == KEY)


def test_the_spread_of_a_model_of_known_randomness_is_found(reading: Reading) -> None:
    row = row_of(noise_floor(reading))
    truth = math.sqrt(float((CHANCES * (1 - CHANCES)).sum())) / SCRIPTS
    assert row.spread.low is not None and row.spread.high is not None and row.spread.value is not None
    assert row.spread.low < truth < row.spread.high and row.spread.value == pytest.approx(truth, rel=0.15)
    assert row.repeats == len(row.means) == 3 and row.spread.scored == row.spread.asked == SCRIPTS
    answers = [a for a in reading.answers if a.repeat == 1]
    assert row.means[1] == pytest.approx(sum(a.value("accuracy") or 0.0 for a in answers) / SCRIPTS)


def test_the_smallest_difference_follows_from_the_spread_and_the_repeats(reading: Reading) -> None:
    row = row_of(noise_floor(reading))
    assert row.spread.value is not None
    assert row.once.value == pytest.approx(1.96 * math.sqrt(2) * row.spread.value, rel=1e-3)
    assert row.difference.value == pytest.approx((row.once.value or 0.0) / math.sqrt(3))


def test_sentence_table_and_figure_show_the_same_row(reading: Reading) -> None:
    (result,) = compute_findings([reading], ["noise-floor"])
    row = row_of(result.data)
    (sentence,) = (s for s in result.sentences if s.key == KEY)
    points = f"{100 * (row.spread.value or 0.0):.1f} points"
    assert "varies between 3 repeats of 80 items" in sentence.text and points in sentence.text
    (table,) = tables_of(result)
    assert table.lines[0].cells[1].estimate is not None and table.lines[0].cells[1].estimate.value == row.spread.value
    drawing = draw(FigureSource([reading]), 480.0)
    assert [mark.key for mark in drawing.marks].count(f"1:{KEY}") >= 5, "three repeats, the difference and its line"
    assert sentence.text in drawing.text


def test_its_cases_are_those_asked_again_and_those_that_varied(reading: Reading) -> None:
    cases, varied = cases_behind([reading], KEY), cases_behind([reading], f"{KEY}/varied")
    assert len(cases) == SCRIPTS and 0 < len(varied) < SCRIPTS
    answers: dict[str, set[float | None]] = {}
    for answer in reading.answers:
        answers.setdefault(answer.item.case, set()).add(answer.value("accuracy"))
    assert varied == [case for case in cases if len(answers[case]) > 1]


def test_without_repeats_it_says_what_to_run(tmp_path: Path) -> None:
    once = open_run(made(tmp_path / "once", 1, repeats=1), light=True)
    (result,) = compute_findings([once], ["noise-floor"])
    assert result.data.rows == [] and result.sentences == () and "--repeats 3" in result.advice[0]
    with pytest.raises(NothingToDraw, match="--repeats 3"):
        draw(FigureSource([once]), 480.0)


def test_few_scripts_have_no_sentence(tmp_path: Path) -> None:
    few = noise_floor(open_run(made(tmp_path / "few", 1, CHANCES[:9]), light=True))
    (sentence,) = sentences(few)
    assert sentence.text.startswith("Not enough data") and "(9 of 10)" in sentence.text and few.rows


def test_answers_that_never_change_are_said_to_have_no_spread(tmp_path: Path) -> None:
    sure = noise_floor(open_run(made(tmp_path / "sure", 1, np.ones(12)), light=True))
    (sentence,) = sentences(sure)
    assert sentence.text.endswith("is the same in all 3 repeats of each of 12 items: no spread.")


def test_a_comparison_marks_differences_that_chance_alone_gives(tmp_path: Path, reading: Reading) -> None:
    same = open_run(made(tmp_path / "b", 2), light=True)
    worse = open_run(made(tmp_path / "c", 3, 0.5 * CHANCES), light=True)
    once = [open_run(made(tmp_path / f"once{seed}", seed, repeats=1), light=True) for seed in (1, 2)]
    for first, second, marked in ((reading, same, True), (reading, worse, False), (*once, False)):
        found = compare(first, second)
        (row,) = (r for r in found.tables[0].rows if r.measure == "voice_accuracy")
        assert (row.noise is None) == (first is once[0])
        assert row.within_noise is marked
        assert ("smaller than the run-to-run spread of ±" in compared(found)[0].text) is marked


def test_the_noise_of_a_comparison_is_that_of_its_paired_differences(tmp_path: Path, reading: Reading) -> None:
    """Two runs of one model: 95 % of their differences lie within 1.96 · √(2 Σ p(1 − p) ÷ 3) ÷ n."""
    row = compare(reading, open_run(made(tmp_path / "b", 2), light=True)).tables[0].rows[0]
    truth = 1.96 * math.sqrt(2 * float((CHANCES * (1 - CHANCES)).sum()) / 3) / SCRIPTS
    assert row.noise == pytest.approx(truth, rel=0.15)


def test_the_commands_show_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [str(made(tmp_path / name, seed)) for seed, name in enumerate(("a", "b"))]
    assert main(["compare", *runs]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "smaller than the run-to-run spread of ±" in printed and "run-to-run ±" in printed
    assert main(["report", *runs, "-o", str(tmp_path / "r.html")]) == 0
    page = (tmp_path / "r.html").read_text()
    assert 'id="finding-noise-floor"' in page and "smaller than the run-to-run spread of ±" in page
