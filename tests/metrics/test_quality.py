"""Predictors of speech quality: the references' numbers on real recordings, sounds that cannot be rated, and deaths."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from overtone.audio import read
from overtone.errors import OvertoneError
from overtone.metrics import distillmos, dnsmos, nisqa, utmos
from overtone.metrics._helper import Helper
from overtone.metrics._quality import Quality
from tests.metrics.speech import spoken

HERE = Path(__file__).parent
EXPECTED: dict[str, dict[str, dict[str, float]]] = json.loads((HERE / "quality.json").read_text())
worker = pytest.mark.worker


def voice(seconds: float, rate: int, seed: int = 0) -> np.ndarray:
    """Something like speech: a buzz with a moving pitch, in syllables, with a little noise."""
    t = np.arange(int(seconds * rate)) / rate
    phase = 2 * np.pi * np.cumsum(120 + 20 * np.sin(2 * np.pi * 0.7 * t)) / rate
    buzz = sum(np.sin(k * phase) / k for k in range(1, 12))
    noise = np.random.default_rng(seed).normal(0, 0.003, len(t))
    return (0.1 * buzz * (0.5 + 0.5 * np.sin(2 * np.pi * 4 * t)) + noise).astype(np.float32)


@pytest.fixture(scope="module")
def noise_mos() -> Iterator[Quality]:
    metric = dnsmos.load()
    yield metric
    metric.close()


def _of(name: str, shared: Path) -> Quality:
    if name.startswith("nisqa"):
        return nisqa.load(weights=str(shared / "weights" / f"{name}.tar"))
    return {"dnsmos": dnsmos, "distillmos": distillmos}[name].load()


@worker
@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "clips"),
    [
        ("nisqa", 99),
        ("nisqa_tts", 2),
        ("dnsmos", 2),
        ("distillmos", 2),
        *(pytest.param(name, 99, marks=pytest.mark.full) for name in ("nisqa_tts", "dnsmos", "distillmos")),
    ],
)
def test_real_recordings_have_the_references_values(shared: Path, name: str, clips: int) -> None:
    metric = _of(name, shared)
    chosen = list(EXPECTED)[:clips]
    heard = metric.hear([read(shared / "data" / clip) for clip in chosen])
    metric.close()
    for clip, values in zip(chosen, heard, strict=True):
        assert values == pytest.approx(EXPECTED[clip][name], abs=1e-4), clip


@worker
def test_a_value_does_not_depend_on_its_company(noise_mos: Quality) -> None:
    sounds = [(voice(s, 16_000, n), 16_000) for n, s in enumerate((1.0, 10.2))]
    together = noise_mos.hear(sounds)
    for sound, values in zip(sounds, together, strict=True):
        assert noise_mos.hear([sound])[0] == pytest.approx(values, abs=1e-5)


@worker
def test_a_sound_that_cannot_be_rated_has_a_reason_and_the_others_their_values(noise_mos: Quality) -> None:
    nothing = np.zeros(0, np.float32)
    broken = np.full(16_000, np.nan, np.float32)
    sounds = [nothing, voice(2, 16_000), np.zeros(32_000, np.float32), voice(0.1, 16_000), broken]
    heard = noise_mos.hear([(x, 16_000) for x in sounds])
    assert heard[0] == "the sound is empty"
    assert isinstance(heard[1], dict) and set(heard[1]) == set(dnsmos.NAMES)
    assert all(math.isfinite(v) for v in heard[1].values())
    assert heard[2] == "the sound is silent"
    assert heard[3] == "too short to rate: 0.1 s, and dnsmos needs 0.25"
    assert heard[4] == "the sound has NaN or infinite samples"


@worker
def test_the_rate_of_a_recording_hardly_matters(noise_mos: Quality) -> None:
    at16, at48 = noise_mos.hear([(voice(4, 16_000), 16_000), (voice(4, 48_000), 48_000)])
    assert isinstance(at16, dict) and isinstance(at48, dict)
    assert at16["dnsmos_ovrl"] == pytest.approx(at48["dnsmos_ovrl"], abs=0.3)
    assert isinstance(noise_mos.hear([(voice(4, 8_000), 8_000)])[0], dict)


@worker
def test_replies_are_scored_with_the_weights_named_in_the_signature(noise_mos: Quality, tmp_path: Path) -> None:
    rows = noise_mos.score([spoken(tmp_path, "Hello.", None), spoken(tmp_path, "Hello.", (voice(1, 16_000), 16_000))])
    assert [s.metric for s in rows[0]] == [s.metric for s in rows[1]] == list(dnsmos.NAMES)
    assert {s.reason for s in rows[0]} == {"the reply has no audio"}
    assert all(s.value is not None and 0 < s.value < 5.5 for s in rows[1])
    assert rows[1][0].signature.startswith("dnsmos_ovrl|v1|weights:sig_bak_ovr.269fbebd+model_v8.")


FRAGILE = """
import os, sys
import numpy as np, protocol

def load(options):
    def call(header, blobs):
        for blob in blobs:
            if np.frombuffer(blob, np.float32)[0] == np.float32(0.5):
                print("segmentation fault, say", file=sys.stderr, flush=True)
                os._exit(139)
        return {"values": [{"dnsmos_ovrl": float(len(b) // 4)} for b in blobs]}, []
    call.facts = {"names": ["dnsmos_ovrl"], "weights": "none", "least": 0.0, "most": None}
    return call

sys.exit(protocol.serve_calls(load))
"""


@pytest.fixture
def fragile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Quality:
    """A predictor that dies of any sound whose first sample is 0.5, run by the Python of the tests."""
    (tmp_path / "measures/bin").mkdir(parents=True)
    (tmp_path / "measures/bin/python").symlink_to(sys.executable)
    monkeypatch.setenv("OVERTONE_MEASURES", str(tmp_path / "measures"))
    (tmp_path / "fragile.py").write_text(FRAGILE)
    metric = Quality("dnsmos", 1, 16_000, ("dnsmos_ovrl",))
    metric._helper = Helper(str(tmp_path / "fragile.py"), {})
    return metric


def test_a_predictor_that_dies_mid_way_leaves_the_other_scores(fragile: Quality) -> None:
    sounds = [np.full(n, 0.5 if n == 300 else 0.25, np.float32) for n in (100, 200, 300, 400)]
    heard = fragile.hear([(x, 16_000) for x in sounds])
    assert [heard[0], heard[1], heard[3]] == [{"dnsmos_ovrl": float(n)} for n in (100, 200, 400)]
    assert isinstance(heard[2], str) and "exit status 139" in heard[2] and "segmentation fault, say" in heard[2]


def test_a_predictor_that_dies_of_everything_is_given_up(fragile: Quality) -> None:
    heard = fragile.hear([(np.full(100, 0.5, np.float32), 16_000)] * 5)
    assert all("exit status 139" in str(h) for h in heard[:3])
    assert all("given up" in str(h) for h in heard[3:])


def test_without_weights_nisqa_says_where_they_come_from(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("OVERTONE_NISQA", raising=False)
    assert "gabrielmittag/NISQA" in str(nisqa.load().hear([(voice(1, 16_000), 16_000)])[0])
    scores = nisqa.load(weights=str(tmp_path / "none.tar")).score([spoken(tmp_path, "Hi.", (voice(1, 16_000), 16_000))])
    assert [s.metric for s in scores[0]] == list(nisqa.NAMES)
    assert all(s.value is None and "there is no file" in s.reason for s in scores[0])
    assert scores[0][0].signature == "nisqa_mos|v1|weights:missing|rate:48000|resampler:soxr-hq"


@worker
def test_a_checkpoint_that_would_run_code_is_refused(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    (tmp_path / "evil.tar").write_bytes(
        b"cposix\nsystem\n(S'touch " + str(trap).encode() + b"'\ntR."  # a pickle that starts a program when it is read
    )
    with pytest.raises(OvertoneError, match="not a NISQA checkpoint that can be loaded safely"):
        nisqa.load(weights=str(tmp_path / "evil.tar")).open()
    assert not trap.exists()


HUB = """
dependencies = ["torch", "torchaudio"]
import torch, torchaudio

class Tiny(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(2.0))

    def forward(self, wave, sr):
        wave = torchaudio.functional.resample(wave, orig_freq=sr, new_freq=16000)
        return 1 + self.scale * wave.abs().mean(dim=1)

def utmos22_strong(progress=True, pretrained=True):
    if pretrained:
        raise RuntimeError("no network here")
    return Tiny()
"""


@worker
def test_utmos_is_called_as_published_from_a_local_copy_with_local_weights(tmp_path: Path) -> None:
    """No weights of UTMOS are here: a small model with the published call signature stands for it."""
    (tmp_path / "hub").mkdir()
    (tmp_path / "hub/hubconf.py").write_text(HUB)
    code = "import torch; torch.save({'scale': torch.tensor(3.0)}, 'w.pt')"
    python = Path(os.environ["OVERTONE_MEASURES"]) / "bin/python"
    subprocess.run([python, "-c", code], cwd=tmp_path, check=True)
    metric = utmos.load(source=str(tmp_path / "hub"), weights=str(tmp_path / "w.pt"))
    sound = voice(2, 16_000)
    assert metric.hear([(sound, 16_000)]) == [{"utmos": pytest.approx(1 + 3 * np.abs(sound).mean(), abs=1e-4)}]
    assert metric.signature("utmos").startswith("utmos|v1|weights:hub.")
    metric.close()


def test_utmos_is_fetched_only_when_its_code_is_trusted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("OVERTONE_TRUST_REMOTE_CODE", raising=False)
    assert "OVERTONE_TRUST_REMOTE_CODE=yes" in str(utmos.load().hear([(voice(1, 16_000), 16_000)])[0])
    with pytest.raises(OvertoneError, match=r"no hubconf\.py"):
        utmos.load(source=str(tmp_path)).open()
