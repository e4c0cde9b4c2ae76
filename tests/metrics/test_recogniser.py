"""A Whisper in the measuring environment as the recogniser: it starts, hears the same twice, and says why it cannot."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from overtone.errors import OvertoneError
from overtone.metrics._recogniser import Embedded, Whisper, recogniser_of
from overtone.metrics.consistency import load
from tests.metrics.speech import spoken

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    python = Path(__file__).parents[2] / ".venv-worker/bin/python"
    folder = tmp_path_factory.mktemp("model") / "tiny-whisper"
    done = subprocess.run([python, HERE / "make_tiny_whisper.py", folder], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return folder


@pytest.mark.worker
@pytest.mark.timeout(180)
def test_a_whisper_model_transcribes_in_the_measuring_environment(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERTONE_MEASURES", str(Path(__file__).parents[2] / ".venv-worker"))
    whisper = Whisper(str(tiny))
    rng = np.random.default_rng(1)
    sound = (0.1 * rng.standard_normal(24_000)).astype(np.float32)
    heard = whisper.transcribe(sound, 24_000, "en")
    assert heard and heard == whisper.transcribe(sound, 24_000, "en"), "random weights, but decoded greedily"
    assert whisper.identity().startswith("tiny-whisper@")
    long = np.concatenate([sound] * 45)  # 45 s: two pieces
    assert len(whisper.transcribe(long, 24_000)) > len(heard)
    metric = load(recogniser=str(tiny))
    metric.recogniser = whisper  # the same process: starting torch takes its time
    ((score,),) = metric.score([spoken(tmp_path, "some words", (sound, 24_000))])
    assert score.detail["transcript"] == heard and f"|recogniser:{whisper.identity()}" in score.signature


def test_without_the_environment_the_reason_names_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OVERTONE_MEASURES", str(tmp_path / "nothing"))
    whisper = recogniser_of("openai/whisper-large-v3")
    assert whisper.identity() == "whisper-large-v3:missing"
    with pytest.raises(OvertoneError, match="overtone setup measures"):
        whisper.transcribe(np.zeros(100, np.float32), 16_000)


def test_ours_refuses_what_is_not_english() -> None:
    assert isinstance(recogniser_of(""), Embedded)
    with pytest.raises(OvertoneError, match="hears English alone"):
        Embedded().transcribe(np.zeros(100, np.float32), 16_000, "zh")
