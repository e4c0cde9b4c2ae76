"""Runs among the paper's models: their places, worked out by hand, and what is said of how they were measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone.findings.analysis import cases_behind
from overtone.findings.leaderboard.compute import Leaderboard, Place, leaderboard, sentences
from overtone.results.load import Reading, open_run
from overtone.schema import Score
from tests.report.fake_run import make_run
from tests.results.small import Maker, item

PAPERS_JUDGE = (
    "|v1|rubric:echomind.1.ab|judge:openai:gpt-4o|temperature:0|seed:0|repeats:1|calls:together|hears:nothing"
)


def make(
    folder: Path, *, benchmark: str = "echomind", judge: str = PAPERS_JUDGE, voice: tuple[int, int] = (3, 4)
) -> Reading:
    """Four scripts: `voice` of its voice questions right, two of four reasoning questions, C1 4 and C4 3."""
    run = Maker(folder)
    run.store.set_meta({"benchmark": benchmark, "model": "openai:mine", "label": "mine"})
    for i in range(voice[1]):
        more = {"script": f"s{i}", "source": "synthesis"}
        run.choice(item(f"v{i}", "choose", **more), "A" if i < voice[0] else "B")  # type: ignore[arg-type]
        run.choice(item(f"r{i}", "choose", level=2, **more), "A" if i % 2 else "B")  # type: ignore[arg-type]
        talk = item(f"c{i}", "converse", level=3, **more)  # type: ignore[arg-type]
        scores = [Score(f"{k}@gpt-4o", f"{k}@gpt-4o{judge}", v) for k, v in (("cctxfit", 4.0), ("cspeechrel", 3.0))]
        semsim = Score("semsim", "semsim|v1|cosine|embedder:all-MiniLM-L6-v2@53aa", 0.5)
        run.answered(talk, "well", semsim, *scores, condition="basic/audio")
    return open_run(run.done(), light=True)


def mine(found: Leaderboard, board: str) -> Place:
    (places,) = (b.places for b in found.boards if b.key == board)
    (place,) = (p for p in places if p.entrant.run == 0)
    return place


def test_without_runs_it_is_the_papers_in_its_three_orders() -> None:
    found = leaderboard([])
    assert len(found.entrants) == 14
    first = [[p.entrant.name for p in b.places][:3] for b in found.boards]
    assert first[0] == ["GPT-4o-Audio", "Audio-Flamingo3", "DeSTA2.5-Audio"]  # 67.1, 61.5, 59.9
    assert first[1] == ["GPT-4o-Audio", "Kimi-Audio", "Qwen2.5-Omni-7B"]
    assert first[2] == ["GPT-4o-Audio", "DeSTA2.5-Audio", "OpenS2S"]  # 3.895, 3.745, 3.665
    assert [len(b.places) for b in found.boards] == [14, 10, 14]
    assert set(found.boards[1].absent) == {
        "Audio-Flamingo3", "Audio-Flamingo3+Think", "Audio-Flamingo3-chat", "DeSTA2.5-Audio"
    }  # fmt: skip
    assert sentences(found) == []
    assert found.boards[0].places[0].score.value == pytest.approx((66.25 + 68.04) / 2)


def test_a_run_stands_where_its_numbers_put_it(tmp_path: Path) -> None:
    reading = make(tmp_path)
    found = leaderboard([reading])
    first, words = mine(found, "lb1"), mine(found, "lb3")
    assert first.score.value == pytest.approx((75 + 50) / 2)
    assert first.rank == 2  # below 67.1, above 61.5
    assert first.sure is not None and first.sure[0] == 1 and first.sure[1] > 2
    assert words.score.value == pytest.approx(3.5)
    assert words.rank == 6  # below 3.895, 3.745, 3.665, 3.605 and 3.515
    assert "mine" in found.boards[1].absent
    assert cases_behind([reading], f"{first.entrant.key}/voice_accuracy") == [
        f"synthesis/s{i}/target" for i in range(4)
    ]
    assert len({e.key for e in found.entrants}) == 15


def test_each_cell_says_what_was_measured_otherwise(tmp_path: Path) -> None:
    cells = leaderboard([make(tmp_path)]).entrants[-1].cells
    assert any(d.startswith("scripts: 4 of the paper's 1,137") for d in cells["voice_accuracy"].differs)
    assert any("not released" in u for u in cells["voice_accuracy"].untold)
    assert any(d.startswith("prompt: basic") for d in cells["c4"].differs)
    assert not any(d.startswith("judge") for d in cells["c4"].differs)
    assert "rubric: in our own words" in cells["c4"].differs
    assert any(u.startswith("styles averaged: target here") for u in cells["c1"].untold)
    assert cells["ves"].value is None and cells["semsim"].value is None
    assert cells["voice_accuracy"].value == pytest.approx(75)
    assert cells["voice_accuracy"].estimate is not None and cells["voice_accuracy"].estimate.high == pytest.approx(
        100, abs=8
    )


def test_another_judge_and_another_benchmark_are_named(tmp_path: Path) -> None:
    other = PAPERS_JUDGE.replace("openai:gpt-4o", "worker:small").replace("together", "apart")
    cells = leaderboard([make(tmp_path, benchmark="open", judge=other)]).entrants[-1].cells
    assert "benchmark: open, not EchoMind" in cells["voice_accuracy"].differs
    assert "judge: worker:small; the paper's is gpt-4o" in cells["c4"].differs
    assert any("one question at a time" in d for d in cells["c4"].differs)


def test_a_dated_version_of_the_papers_judge_is_that_judge(tmp_path: Path) -> None:
    for name, same in (("gpt-4o-2024-08-06", True), ("gpt-4o-mini", False)):
        judge = PAPERS_JUDGE.replace("gpt-4o", name)
        cells = leaderboard([make(tmp_path / name, judge=judge)]).entrants[-1].cells
        assert (not any(d.startswith("judge") for d in cells["c4"].differs)) is same


def test_two_runs_of_one_name_keep_their_own_rows_and_a_full_run_has_every_cell(tmp_path: Path) -> None:
    reading = open_run(make_run(tmp_path / "a", judges=("j", "k"), voice=True), light=True)
    reading.meta["label"] = "twin"
    found = leaderboard([reading, reading], prompt="zero")
    assert len({e.key for e in found.entrants}) == 16
    cells = found.entrants[-1].cells
    assert {k for k, c in cells.items() if c.value is not None} == {
        "wer", "semsim", "voice_accuracy", "reasoning_accuracy", "bleu", "rouge_l", "bertscore", "c1", "c4", "nisqa",
        "emoalign",
    }  # fmt: skip
    assert all(c.differs for c in cells.values() if c.value is not None)
    assert any("embedder: minilm" in d or "embedder: another" in d for d in cells["semsim"].differs)
    assert any(d.startswith("prompt: zero") for d in cells["bleu"].differs)
    text = [s.text for s in sentences(found)]
    assert len(text) == 4 and all("not measured as in the paper" in s for s in text)


def test_a_run_without_replies_or_answers_has_a_row_without_numbers(tmp_path: Path) -> None:
    run = Maker(tmp_path)
    run.failed(item("v", "choose"))
    found = leaderboard([open_run(run.done(), light=True)])
    assert all(c.value is None for c in found.entrants[-1].cells.values())
    assert [len(b.places) for b in found.boards] == [14, 10, 14]


def test_what_a_board_sorts_by_has_no_interval_beyond_its_scale(tmp_path: Path) -> None:
    score = mine(leaderboard([make(tmp_path, voice=(2, 2))]), "lb1").score
    assert score.value == 75
    assert (score.low, score.high) == (0, 100), "two scripts alone would leave far more open"
