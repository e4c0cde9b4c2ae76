"""EchoMind's own clips, as released, through all three levels: broken headers, stereo, spaces in names and all."""

from __future__ import annotations

from pathlib import Path

import pytest

from overtone.cli import main
from overtone.runs.store import Store
from tests.servers import OpenAIServer

pytestmark = pytest.mark.shared


def test_the_released_clips_are_asked_at_every_level_and_linked(shared: Path, tmp_path: Path) -> None:
    data = shared / "data" / "echomind_demo"
    with OpenAIServer() as server:
        model = f"openai:any?base_url={server.base_url}"
        words = [
            "--data",
            str(data),
            "--model",
            model,
            "--out",
            str(tmp_path / "run"),
            "--asr",
            "all",
            "--prompt",
            "all",
        ]
        assert main(["run", "echomind", *words, "-q"]) == 0
        assert server.count == 15 + 6 + 15 * 5
    with Store.read(tmp_path / "run") as store:
        assert store.counts() == {"pending": 0, "answered": 96, "failed": 0}
        lengths = [seconds for *_, seconds in store.clips().values()]
        assert len(lengths) == 19
        assert all(1 < seconds < 20 for seconds in lengths)
        linked = {item.level for item in store.items() if item.case == "synthesis/id_854/target"}
        assert linked == {1, 2, 3}
        scored = {score.metric for _, score in store.scores() if score.value is not None}
        assert {"wer", "wer_raw", "accuracy", "accuracy_strict"} <= scored


@pytest.mark.local
def test_the_embedded_model_hears_the_released_clips(shared: Path, tmp_path: Path) -> None:
    words = ["--data", str(shared / "data" / "echomind_demo"), "--model", "cascade?max_tokens=8", "--levels", "1,2"]
    assert main(["run", "echomind", *words, "--out", str(tmp_path / "run"), "-q"]) == 0
    with Store.read(tmp_path / "run") as store:
        rates = [score.value for _, score in store.scores() if score.metric == "wer"]
        assert len(rates) == 5
        assert sum(rate for rate in rates if rate is not None) / 5 < 0.15
