"""Which metrics score a run: the standard ones, those of its benchmark's protocol, and those that are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone import registry
from overtone.errors import UsageError
from overtone.scores import own_metrics
from overtone.scoring import load_metrics, score_run
from tests.report.fake_run import make_run

PROTOCOLS = {"mmau": "mmau", "air-bench": "air-bench", "uro-bench": "uro"}


@pytest.mark.parametrize(("benchmark", "metric"), PROTOCOLS.items())
def test_a_benchmarks_own_metric_scores_its_own_runs_only(benchmark: str, metric: str) -> None:
    assert own_metrics(benchmark).keys() == {metric}
    assert load_metrics((), benchmark).keys() - load_metrics(()).keys() == {metric}
    assert metric not in load_metrics((), "echomind") and metric not in registry.listing("metrics")


def test_no_benchmark_declares_a_metric_under_a_standard_name() -> None:
    for benchmark in registry.builtins("benchmarks"):
        assert not own_metrics(benchmark).keys() & registry.builtins("metrics").keys()


def test_a_protocol_takes_options_by_name_on_its_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")  # the model is not here, and is not to be downloaded
    found = load_metrics(["uro?recogniser=openai/whisper-tiny"], "uro-bench")["uro"]
    assert found.recogniser.identity().startswith("whisper-tiny")  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="--metric uro: it scores replies to uro-bench only"):
        load_metrics(["uro"], "echomind")
    with pytest.raises(UsageError, match="unknown metric 'urro'"):
        load_metrics(["urro"], "uro-bench")


def test_a_run_of_a_benchmark_that_is_not_here_is_scored_by_the_standard_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(tmp_path / "run", scripts=2)
    monkeypatch.setitem(registry._built_in("benchmarks"), "echomind", registry._built_in("benchmarks")["echomind"])
    monkeypatch.delitem(registry._built_in("benchmarks"), "echomind")
    assert score_run(tmp_path / "run")["choice"] > 0
