"""The public interface: a run in one call, also inside a running event loop, and the linked view of a case."""

from __future__ import annotations

from pathlib import Path

import pytest

import overtone
from overtone.errors import UsageError
from tests.servers import OpenAIServer


def test_run_score_and_open(small: Path, tmp_path: Path) -> None:
    with OpenAIServer() as server:
        model = f"openai:any?base_url={server.base_url}"
        with overtone.run("echomind", data=small, model=model, out=tmp_path / "run", prompt="zero") as run:
            assert run.summary().answered == 18
        assert overtone.score(tmp_path / "run")["wer"] == 6
        assert server.count == 18
    with overtone.open_run(tmp_path / "run") as run:
        assert len(list(run.items())) == len(list(run.replies())) == 18
        assert run.about["benchmark"] == "echomind"
        metrics = {score.metric for _, score in run.scores()}
        assert {"wer", "wer_raw", "accuracy", "accuracy_strict", "semsim"} <= metrics


async def test_run_works_inside_a_running_event_loop(small: Path, tmp_path: Path) -> None:
    with OpenAIServer() as server:
        model = f"openai:any?base_url={server.base_url}"
        with overtone.run("echomind", data=small, model=model, out=tmp_path / "run", limit=2) as run:
            assert len(list(run.replies())) == 2


def test_a_case_shows_the_levels_side_by_side(small: Path, tmp_path: Path) -> None:
    with OpenAIServer() as server:
        model = f"openai:any?base_url={server.base_url}"
        with overtone.run("echomind", data=small, model=model, out=tmp_path / "run") as run:
            view = run.case("synthesis/id_0/target")
    assert view.words == "This is line number 0."
    assert [len(part) for part in (view.transcripts, view.voice, view.reasoning, view.replies)] == [1, 1, 0, 1]


def test_errors_of_the_api_are_overtone_errors(tmp_path: Path) -> None:
    with pytest.raises(overtone.OvertoneError, match="is not a run"):
        overtone.open_run(tmp_path)
    with pytest.raises(overtone.OvertoneError, match="did you mean 'echomind'"):
        overtone.run("echomnd", data=tmp_path, model="cascade")


def test_a_misspelt_setting_is_refused(small: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no setting 'limt'; did you mean 'limit'"):
        overtone.run("echomind", data=small, model="cascade", out=tmp_path / "run", limt=2)
    assert not (tmp_path / "run").exists()


def test_a_run_whose_model_fails_again_and_again_is_scored_so_far_and_says_so(
    small: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def breaks_later(request: overtone.Request) -> str:
        if request.task == "choose":
            raise ValueError("no such attribute")
        return "This is line number 0."

    with overtone.run("echomind", data=small, model=breaks_later, out=tmp_path / "run", prompt="zero") as run:
        assert {score.metric for _, score in run.scores()} >= {"wer", "semsim"}
        assert any(item.task == "choose" for item in run.items())
    assert "no such attribute" in caplog.text
    assert "the same call" in caplog.text


def test_what_prints_itself_fits_a_screen_and_names_the_call_for_the_rest(small: Path, tmp_path: Path) -> None:
    def says(words: str) -> overtone.Run:
        out = tmp_path / words.replace(" ", "-")
        return overtone.run("echomind", data=small, model=lambda request: words, out=out, progress=False)

    with says("The answer is: A") as first, says("The answer is: B") as second:
        shown = {
            "print(run.table())": repr(first),
            "print(comparison.tables)": repr(overtone.compare(first, second)),
            "print(findings.markdown())": repr(first.findings()),
        }
    for rest, text in shown.items():
        lines = text.splitlines()
        assert len(lines) <= 41
        assert (len(lines) == 41) == lines[-1].endswith(rest)
    assert any(len(text.splitlines()) == 41 for text in shown.values())
