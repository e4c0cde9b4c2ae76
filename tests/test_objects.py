"""Python objects in place of names: functions and objects as models and metrics, and a run that shows itself."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import numpy as np
import pandas
import pytest

import overtone
from overtone import registry
from overtone.audio import encode_wav
from overtone.errors import UsageError
from overtone.metrics import Answered
from overtone.models import python
from overtone.schema import Item, Reply, Request, Score
from tests.servers import OpenAIServer


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_plugins", {room: {} for room in registry.PLUGIN_ROOMS})
    monkeypatch.setattr(python, "_objects", {})


def parrot(request: Request) -> str:
    return f"A. {request.messages[-1].text[:20]} so it is"


def shouting(answered: Answered) -> float | None:
    return float(answered.text.isupper()) if answered.item.task == "converse" else None


def test_a_function_is_a_model_and_a_function_is_a_metric(small: Path, tmp_path: Path) -> None:
    with overtone.run("echomind", data=small, model=parrot, metrics=[shouting], out=tmp_path / "run") as run:
        assert run.about["model"] == "python:parrot"
        values = {score.value for _, score in run.scores() if score.metric == "shouting"}
        assert values == {0.0}
        assert run.summary().answered == len(list(run.items())) > 0


def test_an_asynchronous_function_is_asked_several_times_at_once(small: Path, tmp_path: Path) -> None:
    now = most = 0

    async def slow(request: Request) -> Reply:
        nonlocal now, most
        now, most = now + 1, max(most, now + 1)
        await asyncio.sleep(0.05)
        now -= 1
        return Reply("A")

    with overtone.run("echomind", data=small, model=slow, out=tmp_path / "run") as run:
        assert run.summary().answered > 0
    assert most > 1


def test_a_function_may_answer_in_speech(small: Path, tmp_path: Path) -> None:
    wav = encode_wav(np.zeros(1600, np.float32), 16_000)

    def speak(request: Request) -> tuple[str, bytes]:
        return "Hm.", wav

    with overtone.run("echomind", data=small, model=speak, out=tmp_path / "run", levels=[3]) as run:
        assert all(reply.audio for reply in run.replies())


def test_a_changed_function_is_another_model(small: Path, tmp_path: Path) -> None:
    overtone.run("echomind", data=small, model=parrot, out=tmp_path / "run", limit=2).close()

    def other(request: Request) -> str:
        return "B"

    other.__name__ = "parrot"
    with pytest.raises(overtone.OvertoneError, match="contains another run"):
        overtone.run("echomind", data=small, model=other, out=tmp_path / "run", limit=2)


class Caps:
    """Scores replies in capitals."""

    name = "caps"
    version = 1

    def applies(self, item: Item) -> bool:
        return item.task == "choose"

    def score(self, answered: list[Answered]) -> list[list[Score]]:
        return [[Score("caps", "caps|v1", float(one.text.isupper()))] for one in answered]


def test_register_makes_objects_usable_by_name(small: Path, tmp_path: Path) -> None:
    @overtone.register
    def one(request: Request) -> str:
        return "A"

    overtone.register(Caps())
    with overtone.run("echomind", data=small, model="python:one", metrics=["caps"], out=tmp_path / "run") as run:
        assert {score.value for _, score in run.scores() if score.metric == "caps"} == {1.0}
    with pytest.raises(UsageError, match="neither a module"):
        overtone.register(3)
    with pytest.raises(UsageError, match="built-in of metrics"):
        overtone.register(Caps(), "wer")


def test_a_model_that_is_not_registered_says_what_to_do(small: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="pass it as model="):
        overtone.run("echomind", data=small, model="python:gone", out=tmp_path / "run")
    with pytest.raises(UsageError, match="give a SPEC, a function, or an object"):
        overtone.run("echomind", data=small, model=3, out=tmp_path / "run")  # type: ignore[arg-type]


def test_what_a_function_returns_wrongly_is_a_failure_of_the_item(small: Path, tmp_path: Path) -> None:
    with pytest.raises(overtone.OvertoneError, match="returned int"):
        overtone.run("echomind", data=small, model=lambda request: 3, out=tmp_path / "run")  # type: ignore[arg-type,return-value]


def test_a_run_shows_itself_as_text_html_tables_and_a_data_frame(small: Path, tmp_path: Path) -> None:
    with OpenAIServer() as server:
        model = f"openai:any?base_url={server.base_url}"
        run = overtone.run("echomind", data=small, model=model, out=tmp_path / "<b>run</b>", prompt="zero")
    with run:
        text = repr(run)
        assert text.startswith("Run of openai:any")
        assert "Hearing and reasoning" in text
        assert len(text.splitlines()) <= 42
        page = run._repr_html_()
        assert "<table" in page
        assert page.count("<audio") == 3
        assert "<b>run</b>" not in page
        frame = run.to_pandas()
        assert isinstance(frame, pandas.DataFrame)
        assert len(frame) == 18
        assert frame["score_wer"].notna().sum() == 3
        assert {"item", "text", "score_accuracy", "latency"} <= set(frame.columns)
        numbers = run.table("tasks").to_pandas()
        assert {"column", "value", "low", "high"} <= set(numbers.columns)
        assert "\\begin{tabular}" in run.table("tasks").latex()
        with pytest.raises(UsageError, match="did you mean 'results'"):
            run.table("result")
        assert run.findings("funnel").markdown().count("## ") >= 1
        assert run.report(tmp_path / "report.html").stat().st_size > 10_000


def test_two_runs_are_compared(small: Path, tmp_path: Path) -> None:
    first = overtone.run("echomind", data=small, model=parrot, out=tmp_path / "first")
    second = overtone.run("echomind", data=small, model=lambda request: "B", out=tmp_path / "second")
    with first, second:
        found = overtone.compare(first, second)
        assert found.result.shared == len(list(first.items()))
        assert found.sentences
        assert "asks in both" in repr(found)
        assert found._repr_html_().startswith("<ul>")


def test_the_interface_can_be_listed() -> None:
    assert {"run", "wer", "compare", "register"} <= set(dir(overtone))


def test_without_pandas_the_error_names_the_line_that_installs_it(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with overtone.run("echomind", data=small, model=parrot, out=tmp_path / "run", limit=1) as run:
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(overtone.OvertoneError, match="pip install pandas"):
            run.to_pandas()
