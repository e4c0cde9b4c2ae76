"""EmoAlign: equal emotions match, unknown ones never do, and every missing sound has its reason."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest

from overtone.cues import BY_SLUG
from overtone.embedded.emotion import Emotion
from overtone.errors import OvertoneError, UsageError
from overtone.metrics import Answered
from overtone.metrics.emoalign import LABELS, EmoAlign, Sound, load, matches, named, profile
from overtone.schema import Score, Turn
from tests.metrics.speech import spoken

RATE = 16_000


class Told:
    """A predictor that says what it was told to, sound after sound."""

    def __init__(self, *labels: str) -> None:
        self.labels = list(labels)
        self.heard = 0

    def identity(self) -> str:
        return "told-1"

    def predict(self, sound: Sound) -> Emotion:
        self.heard += 1
        return Emotion(self.labels.pop(0), {"happy": 0.7, "sad": 0.3})


def tone(hz: float) -> Sound:
    return (0.2 * np.sin(2 * np.pi * hz * np.arange(RATE) / RATE)).astype(np.float32), RATE


def of_cue(a: Answered, cue: str, turns: Sequence[str] = ()) -> Answered:
    made = tuple(Turn(None, cue=c) for c in turns) or a.item.turns
    return msgspec.structs.replace(a, item=msgspec.structs.replace(a.item, cue=cue, turns=made))


def scored(predictor: Told, a: Answered) -> tuple[Score, Score]:
    ((reference, style),) = EmoAlign(predictor).score([a])
    assert (reference.metric, style.metric) == ("emoalign_reference", "emoalign_profile")
    return reference, style


def test_the_same_emotion_is_a_match_and_another_is_not(tmp_path: Path) -> None:
    a = of_cue(spoken(tmp_path, "Oh!", tone(200), tone(300)), "sad")
    reference, style = scored(Told("sad", "sad"), a)
    assert (reference.value, style.value) == (1.0, 1.0)
    assert reference.detail["reply"] == reference.detail["wanted"] == "sad"
    reference, style = scored(Told("happy", "sad"), a)
    assert (reference.value, style.value) == (0.0, 0.0)
    reference, style = scored(Told("sad", "neutral"), a)
    assert (reference.value, style.value) == (0.0, 1.0)


@pytest.mark.parametrize("label", ["unknown", "other"])
def test_unknown_and_other_never_match_not_even_themselves(tmp_path: Path, label: str) -> None:
    a = spoken(tmp_path, "Oh!", tone(200), tone(300))
    reference, style = scored(Told(label, label), a)
    assert (reference.value, style.value) == (0.0, 0.0)
    assert reference.detail["reply_unknown"] == reference.detail["wanted_unknown"] == 1
    assert not matches(label, label)


def test_a_reply_without_audio_is_unscored_and_without_a_reference_only_the_profile_is_scored(tmp_path: Path) -> None:
    for score in scored(Told(), spoken(tmp_path, "Oh!", None, tone(300))):
        assert score.value is None and score.reason == "the reply has no audio"
    reference, style = scored(Told("neutral"), spoken(tmp_path, "Oh!", tone(200)))
    assert reference.value is None and reference.reason == "no reference audio"
    assert style.value == 1.0


def test_a_reference_that_several_replies_share_is_heard_once(tmp_path: Path) -> None:
    predictor = Told("sad", "sad", "sad", "happy")
    a = spoken(tmp_path, "Oh!", tone(200), tone(300))
    rows = EmoAlign(predictor).score([a, a, a])
    assert [row[0].value for row in rows] == [1.0, 1.0, 0.0]
    assert predictor.heard == 4


def test_the_signature_names_the_predictor_and_the_profiles(tmp_path: Path) -> None:
    reference, style = scored(Told("sad", "sad"), spoken(tmp_path, "Oh!", tone(200), tone(300)))
    assert reference.signature == "emoalign_reference|v1|predictor:told-1"
    assert style.signature.startswith("emoalign_profile|v1|predictor:told-1|profiles:")


def test_every_cue_has_a_profile_and_a_dialogue_goes_by_its_turn(tmp_path: Path) -> None:
    a = spoken(tmp_path, "Oh!", tone(200))
    for cue in BY_SLUG:
        assert profile(of_cue(a, cue)) in LABELS, cue
    assert profile(of_cue(a, "")) == "neutral"
    assert profile(of_cue(a, "no-such-cue")) == "unknown"
    assert profile(of_cue(a, "happy", ("sad", "happy"))) == "sad"  # the reply is to the first turn


def test_an_unknown_predictor_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="did you mean 'emotion2vec'"):
        load(predictor="emotion2vek")


def test_the_embedded_predictor_agrees_with_itself_on_the_same_sound(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    t = np.arange(2 * RATE) / RATE
    voice = sum(np.sin(2 * np.pi * 140 * k * t + k) / k for k in range(1, 20)) * (0.6 + 0.4 * np.sin(2 * np.pi * 4 * t))
    sound = (0.05 * voice + 0.001 * rng.standard_normal(len(t))).astype(np.float32), RATE
    ((reference, _),) = load().score([spoken(tmp_path, "Oh!", sound, sound)])
    assert reference.detail["reply"] == reference.detail["wanted"]
    assert reference.value == float(reference.detail["reply_unknown"] == 0)
    assert "predictor:overtone-emotion-" in reference.signature


# ── emotion2vec ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_models_tokens_become_nine_english_labels() -> None:
    found = named(["生气/angry", "开心/happy", "<unk>"], [0.2, 0.5, 0.3])
    assert found == {"angry": 0.2, "happy": 0.5, "unknown": 0.3}
    with pytest.raises(OvertoneError, match="give another model"):
        named(["joy"], [1.0])


def test_without_the_measuring_environment_the_reason_says_what_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERTONE_MEASURES", str(tmp_path / "nowhere"))
    ((reference, style),) = load(predictor="emotion2vec").score([spoken(tmp_path, "Oh!", tone(200), tone(300))])
    assert reference.value is None and style.value is None
    assert "overtone setup measures" in reference.reason
    assert "predictor:iic/emotion2vec_plus_large:missing" in reference.signature


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like a downloaded emotion2vec+, with random weights, made by FunASR's own class."""
    folder = tmp_path_factory.mktemp("emotion2vec") / "tiny"
    python = Path(os.environ["OVERTONE_MEASURES"]) / "bin/python"
    if not python.is_file() or subprocess.run([python, "-c", "import funasr"], capture_output=True).returncode:
        pytest.skip("FunASR is not in the measuring environment; run 'overtone setup measures'")
    maker = Path(__file__).with_name("make_tiny_emotion2vec.py")
    subprocess.run([python, maker, folder], check=True, capture_output=True)
    return folder


@pytest.mark.worker
@pytest.mark.timeout(180)
def test_funasr_loads_an_emotion2vec_folder_and_names_emotions(tmp_path: Path, tiny: Path) -> None:
    metric = load(predictor="emotion2vec", model=str(tiny))
    a = spoken(tmp_path, "Oh!", tone(200), tone(200))
    b = spoken(tmp_path, "Oh!", (tone(500)[0], 8_000), tone(200))
    first, second = metric.score([a, b])
    assert first[0].detail["reply"] == first[0].detail["wanted"]
    probability = first[0].detail["reply_probability"]
    assert isinstance(probability, float) and 1 / 9 <= probability <= 1
    assert second[0].value is not None
    assert "|predictor:tiny-" in first[0].signature and ":funasr" in first[0].signature
